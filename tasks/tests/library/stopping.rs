//! How a worker ends.

use interval_queue_tasks::{Context, State, Task, TaskError, Worker};
use tokio::time::sleep;

use crate::common::{Alive, Faulty, builder, finish, now, queue, secs, spawned, stored};

type Done = Result<(), TaskError>;

/// A handler that takes so many seconds.
fn takes(
    alive: &Alive,
) -> impl Fn(Context, u64) -> futures::future::BoxFuture<'static, Done> + Send + Sync + use<> {
    let alive = alive.clone();
    move |_: Context, seconds: u64| {
        let alive = alive.clone();
        Box::pin(async move {
            let _here = alive.begin();
            sleep(secs(seconds)).await;
            Ok(())
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_stopping_worker_lets_runs_end_and_gives_back_the_rest() {
    let queue = queue().await;
    let ids = queue.add_all([5, 60, 1, 1].map(|seconds| Task::new("a", &seconds))).await.unwrap();
    let alive = Alive::default();
    let worker = Worker::builder(&queue).jobs(2).grace(secs(10)).handler("a", takes(&alive)).build().unwrap();
    let (handle, ended) = (worker.handle(), spawned(worker));
    sleep(secs(1)).await;
    assert_eq!(alive.count(), 2);
    let began = now();
    handle.stop();
    let totals = ended.await.unwrap();
    assert_eq!((totals.done, totals.released), (1, 1));
    assert!(began.elapsed() >= secs(10) && began.elapsed() < secs(16), "{:?}", began.elapsed());
    assert_eq!(alive.count(), 0);
    let mut states = Vec::new();
    for id in &ids {
        let task = stored(&queue, id.id()).await.task;
        assert_eq!((task.failures, task.worker.filter(|_| task.state == State::Leased)), (0, None));
        states.push(task.state);
    }
    assert_eq!(states, [State::Done, State::Ready, State::Ready, State::Ready]);
    assert_eq!(
        finish(Worker::builder(&queue).handler("a", takes(&alive))).await.done,
        3,
        "nobody waits for a lease"
    );
}

/// Given back, it would run twice.
#[tokio::test(start_paused = true)]
async fn a_run_with_a_single_attempt_that_has_to_end_has_failed() {
    let queue = queue().await;
    let ids = queue.add_all([60, 60].map(|seconds| Task::new("a", &seconds).max_attempts(1))).await.unwrap();
    let handler = takes(&Alive::default());
    let worker = Worker::builder(&queue).jobs(1).grace(secs(10)).handler("a", handler).build().unwrap();
    let totals = worker.run_until(sleep(secs(1))).await.unwrap();
    assert_eq!((totals.failed, totals.released), (1, 0));
    let begun = stored(&queue, ids[0].id()).await.task;
    assert_eq!((begun.state, begun.failures), (State::Failed, 1));
    assert!(
        begun.error.as_deref().is_some_and(|error| error.contains("single attempt")),
        "{:?}",
        begun.error
    );
    assert_eq!(stored(&queue, ids[1].id()).await.task.state, State::Ready, "that one has not begun");
}

#[tokio::test(start_paused = true)]
async fn a_worker_runs_until_something_happens() {
    let queue = queue().await;
    queue.add(Task::new("a", &3_u64)).await.unwrap();
    let worker = Worker::builder(&queue).handler("a", takes(&Alive::default())).build().unwrap();
    let began = now();
    let totals = worker.run_until(sleep(secs(1))).await.unwrap();
    assert_eq!(totals.done, 1);
    assert!(began.elapsed() < secs(4), "{:?}", began.elapsed());
    let workers = queue.workers().await.unwrap();
    assert!(
        workers[0].alive_for.is_none_or(|left| left.to_duration() <= secs(1)),
        "it has parted: {workers:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_is_dropped_drops_its_runs() {
    let queue = queue().await;
    let id = queue.add(Task::new("a", &60_u64)).await.unwrap().id();
    let alive = Alive::default();
    let running = spawned(Worker::builder(&queue).handler("a", takes(&alive)).build().unwrap());
    sleep(secs(1)).await;
    assert_eq!(alive.count(), 1);
    running.abort();
    sleep(secs(1)).await;
    assert_eq!(alive.count(), 0);
    let began = now();
    finish(Worker::builder(&queue).handler("a", takes(&alive))).await;
    assert!(began.elapsed() >= secs(60) && began.elapsed() < secs(120), "{:?}", began.elapsed());
    assert_eq!(stored(&queue, id).await.task.failures, 1);
}

#[tokio::test(start_paused = true)]
async fn a_worker_stops_though_the_store_is_gone() {
    let store = Faulty::new();
    let queue = store.open(builder()).await;
    queue.add(Task::new("a", &2_u64)).await.unwrap();
    let worker = Worker::builder(&queue).handler("a", takes(&Alive::default())).build().unwrap();
    let (handle, ended) = (worker.handle(), spawned(worker));
    sleep(secs(1)).await;
    store.set_down(true);
    let began = now();
    handle.stop_within(secs(5));
    ended.await.unwrap();
    assert!(began.elapsed() <= secs(40), "{:?}", began.elapsed());
}
