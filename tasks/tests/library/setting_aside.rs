//! Workers that take no tasks of a kind, or of none, for a while.

use interval_queue_tasks::{Context, State, Task, TaskError, Worker, contract::Kind};

use crate::common::{queue, secs, spawned, stored};

async fn done(_: Context, (): ()) -> Result<(), TaskError> {
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_set_aside_is_left_to_others() {
    let queue = queue().await;
    let worker = Worker::builder(&queue).handler("a", done).handler("b", done).build().unwrap();
    let (handle, kind) = (worker.handle(), Kind::new("a").unwrap());
    handle.set_aside(&kind);
    let ended = spawned(worker);
    let ids = queue.add_all([Task::new("a", &()), Task::new("b", &())]).await.unwrap();
    let states = async || {
        tokio::time::sleep(secs(60)).await;
        [stored(&queue, ids[0].id()).await.task.state, stored(&queue, ids[1].id()).await.task.state]
    };
    assert_eq!(states().await, [State::Ready, State::Done]);
    assert_eq!(queue.overview().await.unwrap().unserved, std::slice::from_ref(&kind));
    handle.take_up(&Kind::new("no handler").unwrap());
    handle.take_up(&kind);
    assert_eq!(states().await, [State::Done, State::Done]);
    handle.stop();
    ended.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn tasks_of_a_kind_set_aside_are_not_waited_for() {
    let queue = queue().await;
    let id = queue.add(Task::new("a", &())).await.unwrap().id();
    let worker = Worker::builder(&queue).handler("a", done).handler("b", done).build().unwrap();
    worker.handle().set_aside(&Kind::new("a").unwrap());
    worker.run_until_empty().await.unwrap();
    assert_eq!(stored(&queue, id).await.task.state, State::Ready);
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_rests_takes_nothing_and_does_not_end() {
    let queue = queue().await;
    let id = queue.add(Task::new("a", &())).await.unwrap().id();
    let worker = Worker::builder(&queue).handler("a", done).build().unwrap();
    worker.handle().rest(secs(10));
    let ended = tokio::spawn(worker.run_until_empty());
    tokio::time::sleep(secs(9)).await;
    assert_eq!(stored(&queue, id).await.task.state, State::Ready);
    assert_eq!(ended.await.unwrap().unwrap().done, 1);
}

#[tokio::test(start_paused = true)]
async fn the_reason_of_a_return_is_stored() {
    let queue = queue().await;
    let id = queue.add(Task::new("a", &())).await.unwrap().id();
    let worker = Worker::builder(&queue).handler("a", |context: Context, (): ()| async move {
        match context.token().attempt {
            1 => Err::<(), _>(TaskError::released().because("no room for a process")),
            _ => Err(TaskError::permanent("so")),
        }
    });
    worker.build().unwrap().run_until_empty().await.unwrap();
    let task = stored(&queue, id).await.task;
    assert_eq!(task.history[0].error.as_deref(), Some("no room for a process"));
    assert_eq!((task.failures, task.error.as_deref()), (1, Some("so")));
}
