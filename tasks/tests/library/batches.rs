//! Handlers that take several tasks in one call.

use std::sync::{Arc, Mutex};

use interval_queue_tasks::{
    Context, Permits, QueueOrder, Selector, State, Task, TaskError, TaskId, TaskQueue, Totals, Verb, Worker,
    WorkerBuilder,
};
use tokio::time::sleep;

use crate::common::{Alive, finish, ms, now, queue, secs, spawned, stored};

type Batch = Vec<(Context, u32)>;
type Outcomes = Result<Vec<Result<u32, TaskError>>, TaskError>;

/// Payloads of each call.
#[derive(Clone, Default)]
struct Calls(Arc<Mutex<Vec<Vec<u32>>>>);

impl Calls {
    fn note(&self, batch: &Batch) {
        self.0.lock().unwrap().push(batch.iter().map(|(_, payload)| *payload).collect());
    }

    fn all(&self) -> Vec<Vec<u32>> {
        self.0.lock().unwrap().clone()
    }
}

async fn add(queue: &TaskQueue, payloads: impl IntoIterator<Item = u32>) -> Vec<TaskId> {
    let tasks = payloads.into_iter().map(|payload| Task::new("a", &payload));
    queue.add_all(tasks).await.unwrap().iter().map(|added| added.id()).collect()
}

/// A worker of batches of three tasks, each of which is done with the double of its payload.
fn doubling(queue: &TaskQueue, calls: &Calls) -> WorkerBuilder {
    let calls = calls.clone();
    Worker::builder(queue).batch("a", 3, ms(100), move |batch: Batch| {
        calls.note(&batch);
        async move { Ok::<_, TaskError>(batch.into_iter().map(|(_, n)| Ok(n * 2)).collect()) }
    })
}

/// Runs two tasks with a handler that ends all calls in the same way; returns their errors.
async fn errors(outcomes: fn(Batch) -> Outcomes) -> (Totals, Vec<String>) {
    let queue = queue().await;
    let tasks = (0..2).map(|n| Task::new("a", &n).max_attempts(1));
    let added = queue.add_all(tasks).await.unwrap();
    let worker = Worker::builder(&queue).batch("a", 2, ms(100), move |batch: Batch| async move {
        sleep(ms(1)).await;
        outcomes(batch)
    });
    let totals = finish(worker).await;
    let mut errors = Vec::new();
    for added in added {
        errors.push(stored(&queue, added.id()).await.task.error.unwrap());
    }
    (totals, errors)
}

#[tokio::test(start_paused = true)]
async fn a_full_batch_is_called_at_once() {
    let (queue, calls) = (queue().await, Calls::default());
    let ids = add(&queue, 0..6).await;
    let began = now();
    assert_eq!(finish(doubling(&queue, &calls)).await.done, 6);
    assert_eq!(calls.all(), [[0, 1, 2], [3, 4, 5]]);
    assert!(began.elapsed() < ms(100), "{:?}", began.elapsed());
    assert_eq!(queue.wait::<u32>(ids[4]).await.unwrap(), 8);
}

#[tokio::test(start_paused = true)]
async fn a_batch_that_is_not_full_waits() {
    let (queue, calls) = (queue().await, Calls::default());
    let worker = doubling(&queue, &calls).build().unwrap();
    let (handle, ended) = (worker.handle(), spawned(worker));
    sleep(ms(10)).await;
    let began = now();
    let first = add(&queue, [1]).await[0];
    sleep(ms(50)).await;
    add(&queue, [2]).await;
    assert_eq!(queue.wait::<u32>(first).await.unwrap(), 2);
    assert_eq!(calls.all(), [[1, 2]]);
    assert!((ms(100)..ms(200)).contains(&began.elapsed()), "{:?}", began.elapsed());
    handle.stop();
    assert_eq!(ended.await.unwrap().done, 2);
}

#[tokio::test(start_paused = true)]
async fn a_batch_of_all_permits_is_full() {
    let (queue, calls) = (queue().await, Calls::default());
    add(&queue, 0..4).await;
    let began = now();
    finish(doubling(&queue, &calls).jobs(2)).await;
    assert_eq!(calls.all(), [[0, 1], [2, 3]]);
    assert!(began.elapsed() < ms(100), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_batch_of_shared_permits_waits_for_more_tasks() {
    let (queue, calls) = (queue().await, Calls::default());
    let permits = Permits::new(10, QueueOrder::InOrder);
    let worker = doubling(&queue, &calls).permits(&permits).build().unwrap();
    let (handle, ended) = (worker.handle(), spawned(worker));
    sleep(ms(10)).await;
    let first = add(&queue, [1]).await[0];
    sleep(ms(50)).await;
    add(&queue, [2]).await;
    assert_eq!(queue.wait::<u32>(first).await.unwrap(), 2);
    assert_eq!(calls.all(), [[1, 2]]);
    handle.stop();
    assert_eq!(ended.await.unwrap().done, 2);
}

#[tokio::test(start_paused = true)]
async fn a_stop_calls_the_batch_that_waits() {
    let (queue, calls) = (queue().await, Calls::default());
    add(&queue, [1, 2]).await;
    let noted = calls.clone();
    let worker = Worker::builder(&queue).batch("a", 3, secs(3_000), move |batch: Batch| {
        noted.note(&batch);
        async move { Ok::<_, TaskError>(batch.into_iter().map(|(_, n)| Ok(n)).collect()) }
    });
    let worker = worker.build().unwrap();
    let (handle, ended) = (worker.handle(), spawned(worker));
    sleep(secs(1)).await;
    assert!(calls.all().is_empty());
    let began = now();
    handle.stop();
    assert_eq!(ended.await.unwrap().done, 2);
    assert!(began.elapsed() < secs(1), "{:?}", began.elapsed());
    assert_eq!(calls.all(), [[1, 2]]);
}

#[tokio::test(start_paused = true)]
async fn each_task_of_a_batch_has_its_own_outcome() {
    let queue = queue().await;
    let ids = add(&queue, 0..3).await;
    let bad = queue.add(Task::new("a", "no number")).await.unwrap().id();
    let worker = Worker::builder(&queue).batch("a", 9, ms(100), |batch: Batch| async move {
        let outcome = |(context, n): (Context, u32)| match n {
            0 => Ok(context.attempt()),
            1 => Err(TaskError::permanent("never")),
            _ if context.attempt() == 1 => Err(TaskError::failed("once")),
            _ => Ok(context.attempt()),
        };
        Ok::<_, TaskError>(batch.into_iter().map(outcome).collect())
    });
    let totals = finish(worker).await;
    assert_eq!((totals.done, totals.failed, totals.permanent), (2, 3, 2));
    assert_eq!(queue.wait::<u32>(ids[0]).await.unwrap(), 1);
    assert_eq!(stored(&queue, ids[1]).await.task.error.unwrap(), "never");
    assert_eq!(queue.wait::<u32>(ids[2]).await.unwrap(), 2);
    let error = stored(&queue, bad).await.task.error.unwrap();
    assert!(error.starts_with("the payload is not one of kind \"a\""), "{error}");
}

#[tokio::test(start_paused = true)]
async fn an_error_of_a_call_is_that_of_its_tasks() {
    let (totals, found) = errors(|_| Err(TaskError::permanent("no connection"))).await;
    assert_eq!((totals.failed, totals.permanent), (2, 2));
    assert_eq!(found, ["no connection", "no connection"]);
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_a_call_fails_its_tasks() {
    let (totals, found) = errors(|batch| panic!("{} are too many", batch.len())).await;
    assert_eq!((totals.failed, totals.permanent), (2, 0));
    assert_eq!(found, ["panicked: 2 are too many", "panicked: 2 are too many"]);
}

#[tokio::test(start_paused = true)]
async fn a_missing_outcome_fails_all_tasks_of_the_batch() {
    let text = "the handler of a batch returned 1 outcomes for 2 tasks: return one for each task";
    let (totals, found) = errors(|_| Ok(vec![Ok(1)])).await;
    assert_eq!((totals.done, totals.failed), (0, 2));
    assert_eq!(found, [text, text]);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_task_leaves_the_waiting_batch() {
    let (queue, calls) = (queue().await, Calls::default());
    let ids = add(&queue, [1, 2]).await;
    let noted = calls.clone();
    let worker = Worker::builder(&queue).batch("a", 3, secs(30), move |batch: Batch| {
        noted.note(&batch);
        async move { Ok::<_, TaskError>(batch.into_iter().map(|(_, n)| Ok(n)).collect()) }
    });
    let worker = worker.lease(secs(5)).build().unwrap();
    let (handle, ended) = (worker.handle(), spawned(worker));
    sleep(secs(1)).await;
    queue.change(&Selector::ids([ids[0]]), Verb::Cancel, false).await.unwrap();
    // Less than the five seconds after which the run is dropped.
    sleep(secs(3)).await;
    assert_eq!(stored(&queue, ids[0]).await.task.state, State::Cancelled);
    assert!(calls.all().is_empty(), "the batch waits on");
    // The batch is full with three tasks that have not left.
    add(&queue, [3, 4]).await;
    sleep(secs(5)).await;
    assert_eq!(calls.all(), [[2, 3, 4]]);
    handle.stop();
    assert_eq!(ended.await.unwrap().done, 3);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_times_out_leaves_the_others_in_the_call() {
    let queue = queue().await;
    let slow = Task::new("a", &1).timeout(secs(10)).max_attempts(1);
    let ids = queue.add_all([slow, Task::new("a", &2)]).await.unwrap();
    let worker = Worker::builder(&queue).batch("a", 2, ms(100), |batch: Batch| async move {
        sleep(secs(60)).await;
        Ok::<_, TaskError>(batch.into_iter().map(|(_, n)| Ok(n)).collect())
    });
    let totals = finish(worker).await;
    assert_eq!((totals.done, totals.failed), (1, 1));
    assert_eq!(stored(&queue, ids[0].id()).await.task.error.unwrap(), "timed out after 10s");
    assert_eq!(queue.wait::<u32>(ids[1].id()).await.unwrap(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_call_is_dropped_with_its_runs() {
    let (queue, alive) = (queue().await, Alive::default());
    add(&queue, 0..3).await;
    let begun = alive.clone();
    let worker = Worker::builder(&queue).batch("a", 3, ms(100), move |_: Batch| {
        let guard = begun.begin();
        async move {
            let _guard = guard;
            std::future::pending::<Outcomes>().await
        }
    });
    let ended = spawned(worker.build().unwrap());
    sleep(secs(1)).await;
    assert_eq!(alive.count(), 1);
    ended.abort();
    sleep(secs(1)).await;
    assert_eq!(alive.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_size_or_wait_out_of_bounds_is_named() {
    let queue = queue().await;
    let build = |most, wait| {
        let worker =
            Worker::builder(&queue).batch("a", most, wait, |_: Batch| async { Outcomes::Ok(vec![]) });
        worker.build().unwrap_err().to_string()
    };
    assert_eq!(build(0, ms(1)), "batches of 0 tasks of kind \"a\": give 1 to 10000");
    assert_eq!(build(10_001, ms(1)), "batches of 10001 tasks of kind \"a\": give 1 to 10000");
    let text = build(2, secs(7200));
    assert_eq!(text, "batches of kind \"a\" wait 7200s for more tasks: give at most an hour");
}
