//! Adds are kept, whole, and once.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures::{StreamExt, TryStreamExt, stream};
use interval_queue_tasks::{Added, ErrorKind, OnConflict, Order, Selector, State, Task};

use crate::common::{Faulty, builder, finish, ms, queue, secs, stored};

#[tokio::test(start_paused = true)]
async fn ids_rise_within_a_process() {
    let ids: Vec<_> = (0..10_000).map(|n| Task::new("a", &n).id()).collect();
    assert!(ids.is_sorted_by(|one, next| one < next));
}

#[tokio::test(start_paused = true)]
async fn a_batch_is_added_whole_or_not_at_all() {
    let queue = queue().await;
    let elsewhere = Task::new("a", &0).id();
    let batch = [Task::new("a", &1), Task::new("a", &2).after(elsewhere)];
    let ids: Vec<_> = batch.iter().map(Task::id).collect();
    let error = queue.add_all(batch).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Missing, "{error}");
    assert!(error.to_string().contains(&elsewhere.to_string()), "{error}");
    assert_eq!(queue.task(ids[0]).await.unwrap(), None);
    assert_eq!(queue.wait::<()>(ids[0]).await.unwrap_err().kind(), ErrorKind::Missing);
}

#[tokio::test(start_paused = true)]
async fn an_add_with_a_lost_reply_is_repeated_under_the_same_ids() {
    let store = Faulty::new();
    let queue = store.open(builder()).await;
    store.lost.store(3, Ordering::Relaxed);
    let task = Task::new("a", &1);
    assert_eq!(queue.add(task.clone()).await.unwrap(), Added::Again(task.id()));
    let all = queue.page(&Selector::default(), Order::Oldest, 10, true).await.unwrap();
    assert_eq!(all.tasks.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_unanswered_add_fails_and_may_be_retried() {
    let store = Faulty::new();
    let queue = store.open(builder().timeout(secs(20))).await;
    store.set_down(true);
    let task = Task::new("a", &1);
    let error = queue.add(task.clone()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Store);
    assert!(error.to_string().contains("did not happen, tried for"), "nothing was sent: {error}");
    store.set_down(false);
    assert_eq!(queue.add(task.clone()).await.unwrap(), Added::New(task.id()));
    store.lost.store(usize::MAX, Ordering::Relaxed);
    let task = Task::new("a", &2);
    let error = queue.add(task.clone()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unanswered);
    assert!(error.to_string().contains("may have happened: no answer in time"), "{error}");
    store.lost.store(0, Ordering::Relaxed);
    assert_eq!(queue.add(task.clone()).await.unwrap(), Added::Again(task.id()));
}

#[tokio::test(start_paused = true)]
async fn an_add_sent_long_ago_adds_nothing() {
    let store = Faulty::new();
    let queue = store.open(builder().timeout(secs(1))).await;
    let built = Task::new("a", &1);
    tokio::time::sleep(secs(3_600)).await;
    store.set_down(true);
    queue.add(built.clone()).await.unwrap_err();
    store.set_down(false);
    tokio::time::sleep(secs(9 * 60)).await;
    queue.add(built.clone()).await.expect("it counts from sending");

    let late = Task::new("a", &2);
    store.set_down(true);
    queue.add(late.clone()).await.unwrap_err();
    store.set_down(false);
    tokio::time::sleep(secs(11 * 60)).await;
    let error = queue.add(late).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.to_string().contains("was first sent"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_stream_is_added_in_order_and_in_bounded_memory() {
    let store = Faulty::new();
    let queue = store.open(builder()).await;
    store.slow.store(50, Ordering::Relaxed);
    let pulled = AtomicUsize::new(0);
    let tasks: Vec<_> = (0..6_000).map(|n| Task::new("a", &n)).collect();
    // Each five hundredth one waits for the one before it, in the batch before.
    let ids: Vec<_> = tasks.iter().map(Task::id).collect();
    let tasks = tasks.into_iter().enumerate().map(|(n, task)| {
        pulled.fetch_add(1, Ordering::Relaxed);
        if n % 500 == 0 && n > 0 { task.after(ids[n - 1]) } else { task }
    });
    let mut added = queue.add_stream(stream::iter(tasks));
    assert_eq!(added.next().await.unwrap().unwrap(), Added::New(ids[0]));
    assert!(pulled.load(Ordering::Relaxed) <= 2_500, "{pulled:?} are in memory");
    let rest: Vec<_> = added.map_ok(Added::id).try_collect().await.unwrap();
    assert_eq!(rest, ids[1..]);
    let overview = queue.overview().await.unwrap();
    assert_eq!(overview.counts.iter().map(|(_, _, count)| count).max(), Some(&6_000));
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_with_the_first_error() {
    let queue = queue().await;
    let tasks = (0..3_000).map(|n| Task::new("a", &n).priority(if n == 1_200 { 101 } else { 0 }));
    let added: Vec<_> = queue.add_stream(stream::iter(tasks)).collect().await;
    let error = added.last().unwrap().as_ref().unwrap_err();
    assert!(error.to_string().contains("priority 101"), "{error}");
    assert_eq!(added.len(), 1_001, "the batches before it");
}

#[tokio::test(start_paused = true)]
async fn unique_names() {
    let queue = queue().await;
    let named = |n: i32| Task::new("a", &n).unique("the name");
    let first = queue.add(named(1)).await.unwrap().id();
    assert_eq!(queue.add(named(2)).await.unwrap(), Added::Kept(first));
    assert_eq!(queue.add(named(3).on_conflict(OnConflict::Replace)).await.unwrap(), Added::Replaced(first));
    assert_eq!(stored(&queue, first).await.payload.unwrap().as_str(), "3");
    let error = queue.add(named(4).on_conflict(OnConflict::Refuse)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.to_string().contains("\"the name\""), "{error}");
}

#[tokio::test(start_paused = true)]
async fn bad_input_is_named() {
    let queue = queue().await;
    let refused = async |task: Task| {
        let error = queue.add(task).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        error.to_string()
    };
    assert!(refused(Task::new("", &1)).await.contains("kind"));
    assert!(refused(Task::new("a", &1).priority(-101)).await.contains("priority -101: give -100 to 100"));
    assert!(refused(Task::new("a", &1).weight(0)).await.contains("weight 0"));
    assert!(refused(Task::new("a", &1).ordered()).await.contains("needs a key"));
    assert!(refused(Task::new("a", &1).key("")).await.contains("key"));
    assert!(refused(Task::new("a", &1).max_attempts(0)).await.contains("max attempts 0"));
    assert!(refused(Task::new("a", &1).timeout(ms(0))).await.contains("timeout 0"));
    assert!(
        refused(Task::new("a", &std::collections::BTreeMap::from([((1, 2), 3)])))
            .await
            .contains("the payload of a task")
    );
    let large = "x".repeat(2 << 20);
    assert!(refused(Task::new("a", &large)).await.contains("2097154 bytes"));
    let opened = builder().timeout(secs(3_600)).connect("memory:").await.unwrap_err();
    assert!(opened.to_string().contains("timeout 3600s is out of range"), "{opened}");
    let opened = builder().max_running(0).connect("memory:").await.unwrap_err();
    assert!(opened.to_string().contains("max running 0"), "{opened}");
    let opened = builder().interval(ms(0)).connect("memory:").await.unwrap_err();
    assert!(opened.to_string().contains("interval 0"), "{opened}");
}

#[tokio::test(start_paused = true)]
async fn overruled_settings_are_reported() {
    let store = Faulty::new();
    let first = store.open(builder().max_running(3).keep_done(secs(7_200))).await;
    assert_eq!(first.overruled(), None);
    let second = store.open(builder().max_running(5)).await;
    assert_eq!(second.overruled().and_then(|asked| asked.max_running), Some(5));
    let settings = second.overview().await.unwrap().settings;
    assert_eq!((settings.max_running, settings.keep.done.to_duration()), (Some(3), secs(7_200)));
    assert_eq!(settings.keep.failed.to_duration(), secs(14 * 24 * 3_600), "not said, not changed");
}

#[tokio::test(start_paused = true)]
async fn a_part_of_the_policy_goes_over_that_of_the_queue() {
    use interval_queue_tasks::{Context, Policy, TaskError, Worker};
    let policy =
        Policy { max_attempts: 9, backoff: interval_queue::Micros::from_millis(1), ..Policy::default() };
    let queue = builder().policy(policy).connect("memory:").await.unwrap();
    let id = queue.add(Task::new("a", &1).max_attempts(2)).await.unwrap().id();
    let fails = async |_: Context, _: i32| -> Result<(), TaskError> { Err(TaskError::failed("so")) };
    finish(Worker::builder(&queue).handler("a", fails)).await;
    let stored = stored(&queue, id).await.task;
    assert_eq!((stored.state, stored.failures), (State::Failed, 2));
    assert_eq!((stored.policy.max_attempts, stored.policy.backoff), (Some(2), None));
}
