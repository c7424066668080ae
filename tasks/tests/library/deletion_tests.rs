//! A queue that is deleted.

use interval_queue_tasks::{
    Context, ErrorKind, Order, Schedule, Selector, SettingsChange, Task, TaskError, TaskId, TaskQueue, Worker,
};
use tokio::time::sleep;

use crate::common::{queue, secs, spawned};

/// The first ten tasks that are stored, but for ids of purged ones.
async fn stored(queue: &TaskQueue) -> Vec<TaskId> {
    let page = queue.page(&Selector::default(), Order::Oldest, 10, false).await.unwrap();
    page.tasks.iter().map(|stored| stored.task.id).collect()
}

#[tokio::test(start_paused = true)]
async fn a_queue_is_deleted_once_no_worker_serves_it() {
    let queue = queue().await;
    let tasks: Vec<_> = (0..2_500).map(|n| Task::new("a", &n)).collect();
    let first = tasks[0].id();
    // More than one command can do, of which each task waits for the first one.
    queue
        .add_all(tasks.into_iter().map(|task| if task.id() == first { task } else { task.after(first) }))
        .await
        .unwrap();
    queue.set_schedule(Schedule::every("s", secs(10), Task::new("a", &0))).await.unwrap();
    queue.set(SettingsChange { key_limit: Some(7), ..SettingsChange::default() }).await.unwrap();

    let worker = Worker::builder(&queue)
        .handler("b", |_: Context, (): ()| async { Ok::<(), TaskError>(()) })
        .build()
        .unwrap();
    let (handle, ended) = (worker.handle(), spawned(worker));
    sleep(secs(1)).await;
    let refused = queue.delete().await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict);
    assert!(refused.to_string().contains("a worker serves its tasks"), "{refused}");
    assert_eq!(stored(&queue).await.len(), 10);
    handle.stop();
    ended.await.unwrap();
    sleep(secs(2)).await;

    queue.delete().await.unwrap();
    assert_eq!(stored(&queue).await, []);
    assert_eq!(queue.schedules().await.unwrap().len(), 0);
    let overview = queue.overview().await.unwrap();
    assert_eq!((overview.settings.key_limit, overview.paused), (1, false));
    // There is nothing left to delete.
    queue.delete().await.unwrap();
}
