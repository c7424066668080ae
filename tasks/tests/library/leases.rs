//! A worker and its lease: outages, cancellation, deadlines, death.

use std::sync::{Arc, Mutex, atomic::Ordering};

use futures::FutureExt;
use interval_queue::StateErrorKind;
use interval_queue_tasks::{
    Context, ErrorKind, Order, Selector, State, Task, TaskError, Verb, Worker, contract::AttemptEnd,
};
use tokio::time::sleep;

use crate::common::{Alive, Faulty, builder, finish, ms, now, queue, secs, spawned, stored};

type Done = Result<(), TaskError>;

/// Works for a minute, and is seen to.
fn minute(
    alive: &Alive,
) -> impl Fn(Context, ()) -> futures::future::BoxFuture<'static, Done> + Send + Sync + use<> {
    let alive = alive.clone();
    move |_: Context, (): ()| {
        let alive = alive.clone();
        Box::pin(async move {
            let _here = alive.begin();
            sleep(secs(60)).await;
            Ok(())
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_cut_off_worker_drops_its_runs_before_another_gets_them() {
    let store = Faulty::new();
    let beside = store.beside();
    let (queue, other) = (store.open(builder()).await, beside.open(builder()).await);
    let id = queue.add(Task::new("a", &())).await.unwrap().id();
    let (here, there) = (Alive::default(), Alive::default());
    let worker = Worker::builder(&queue).handler("a", minute(&here)).build().unwrap();
    let (handle, ended) = (worker.handle(), spawned(worker));
    sleep(ms(500)).await;
    assert_eq!(here.count(), 1);
    store.set_down(true);
    let rescuer = Worker::builder(&other).handler("a", minute(&there)).build().unwrap();
    let rescue = rescuer.handle();
    let rescued = spawned(rescuer);
    let cut = now();
    while there.count() == 0 {
        sleep(ms(100)).await;
        assert!(here.count() + there.count() <= 1, "two run at {:?}", cut.elapsed());
    }
    assert!(cut.elapsed() < secs(60), "{:?}", cut.elapsed());
    store.set_down(false);
    sleep(secs(90)).await;
    let task = stored(&queue, id).await.task;
    assert_eq!((task.state, task.token.attempt, task.failures), (State::Done, 2, 1));
    assert!(task.history[0].error.as_ref().unwrap().contains("was not heard of"), "{:?}", task.history);
    handle.stop();
    rescue.stop();
    assert_eq!((ended.await.unwrap().done, rescued.await.unwrap().done), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn a_short_outage_costs_no_run_and_no_result() {
    let store = Faulty::new();
    let queue = store.open(builder()).await;
    let alive = Alive::default();
    queue.add_all([Task::new("long", &()), Task::new("short", &())]).await.unwrap();
    let worker = Worker::builder(&queue)
        .handler("long", minute(&alive))
        .handler("short", |_: Context, (): ()| sleep(secs(5)).map(Done::Ok));
    let worker = worker.build().unwrap();
    let running = tokio::spawn(worker.run_until_empty());
    sleep(secs(1)).await;
    store.set_down(true);
    sleep(secs(20)).await;
    store.set_down(false);
    let totals = running.await.unwrap().unwrap();
    assert_eq!((totals.done, totals.released), (2, 0));
    let all = queue.page(&Selector::default(), Order::Oldest, 10, false).await.unwrap().tasks;
    assert!(all.iter().all(|stored| stored.task.token.attempt == 1), "each ran once");
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_costs_nothing() {
    let store = Faulty::new();
    let queue = store.open(builder()).await;
    queue.add_all((0..50).map(|_| Task::new("a", &()))).await.unwrap();
    let loses = store.lost.clone();
    let worker = Worker::builder(&queue).jobs(3).handler("a", move |_: Context, (): ()| {
        loses.store(1, Ordering::Relaxed);
        sleep(ms(50)).map(Done::Ok)
    });
    assert_eq!(finish(worker).await.done, 50);
    let all = queue.page(&Selector::default(), Order::Oldest, 100, false).await.unwrap().tasks;
    assert!(all.iter().all(|stored| stored.task.state == State::Done && stored.task.failures == 0));
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_task_is_notified_and_ends() {
    let queue = queue().await;
    let ids = queue
        .add_all([Task::new("hears", &()), Task::new("deaf", &()), Task::new("done", &())])
        .await
        .unwrap();
    let heard = Arc::new(Mutex::new(None));
    let hears = heard.clone();
    let alive = Alive::default();
    let worker = Worker::builder(&queue)
        .handler("hears", move |context: Context, (): ()| {
            let hears = hears.clone();
            async move {
                context.cancelled().await;
                assert!(context.is_cancelled());
                *hears.lock().unwrap() = Some(now());
                Err::<(), _>(TaskError::released())
            }
        })
        .handler("deaf", minute(&alive))
        .handler("done", |context: Context, (): ()| async move {
            context.cancelled().await;
            Done::Ok(())
        });
    let worker = worker.build().unwrap();
    let (handle, ended) = (worker.handle(), spawned(worker));
    sleep(secs(1)).await;
    let cancelled = now();
    queue.change(&Selector::default(), Verb::Cancel, false).await.unwrap();
    let error = queue.wait::<()>(ids[0].id()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    assert!(heard.lock().unwrap().unwrap() - cancelled < secs(15), "within half a lease");
    assert_eq!(queue.wait::<()>(ids[1].id()).await.unwrap_err().kind(), ErrorKind::Cancelled);
    assert_eq!(alive.count(), 0, "one that does not listen is dropped");
    assert_eq!(queue.wait::<()>(ids[2].id()).await.unwrap_err().kind(), ErrorKind::Cancelled);
    let late = stored(&queue, ids[2].id()).await.task;
    assert_eq!(late.history.last().map(|attempt| attempt.end), Some(AttemptEnd::Done), "its run was done");
    handle.stop();
    ended.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_run_ends_at_its_deadline() {
    let queue = queue().await;
    let alive = Alive::default();
    let id = queue.add(Task::new("a", &()).deadline(secs(10))).await.unwrap().id();
    finish(Worker::builder(&queue).handler("a", minute(&alive))).await;
    let task = stored(&queue, id).await.task;
    assert_eq!((task.state, task.error.as_deref()), (State::Failed, Some("its deadline has passed")));
}

#[tokio::test(start_paused = true)]
async fn only_an_error_of_the_first_step_ends_the_worker() {
    let store = Faulty::new();
    let queue = store.open(builder()).await;
    let id = queue.add(Task::new("a", &())).await.unwrap().id();
    let worker = || Worker::builder(&queue).handler("a", |_: Context, (): ()| sleep(secs(2)).map(Done::Ok));
    *store.error.lock().unwrap() = Some(StateErrorKind::Denied);
    let error = worker().build().unwrap().run().await.unwrap_err();
    assert_eq!(error.state().map(interval_queue::StateError::kind), Some(StateErrorKind::Denied));

    *store.error.lock().unwrap() = None;
    let worker = worker().build().unwrap();
    let running = tokio::spawn(worker.run_until_empty());
    sleep(secs(1)).await;
    *store.error.lock().unwrap() = Some(StateErrorKind::Full);
    sleep(secs(10)).await;
    *store.error.lock().unwrap() = None;
    assert_eq!(running.await.unwrap().unwrap().done, 1);
    assert_eq!(stored(&queue, id).await.task.token.attempt, 1);
}

#[tokio::test(start_paused = true)]
async fn a_connection_reports_the_lease_and_outages() {
    let store = Faulty::new();
    let queue = store.open(builder()).await;
    let worker =
        Worker::builder(&queue).lease(secs(10)).handler("a", minute(&Alive::default())).build().unwrap();
    let (handle, mut connection) = (worker.handle(), worker.handle().connection());
    assert!(connection.borrow().sent.is_none() && connection.borrow().lease.is_none());
    let ended = spawned(worker);
    let leased = connection.wait_for(|connection| connection.lease.is_some()).await.unwrap().clone();
    let lease = leased.lease.unwrap();
    assert_eq!((Some(lease.since), lease.length), (leased.sent, secs(10)));

    store.set_down(true);
    let failing = connection.wait_for(|connection| connection.failing.is_some()).await.unwrap().clone();
    assert!(failing.failing.unwrap().error.is_retryable());
    assert!(failing.lease.unwrap().since < failing.sent.unwrap(), "a failed poll renews no lease");
    store.set_down(false);
    let renewed = connection.wait_for(|connection| connection.failing.is_none()).await.unwrap().clone();
    assert_eq!(renewed.lease.unwrap().since, renewed.sent.unwrap());
    handle.stop();
    ended.await.unwrap();
}
