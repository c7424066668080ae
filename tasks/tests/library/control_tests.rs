//! Selectors and verbs, pause and settings.

use interval_queue_tasks::{Context, Selector, SettingsChange, State, Task, TaskError, Verb, Worker};
use tokio::time::sleep;

use crate::common::{finish, now, queue, secs, spawned, stored};

type Done = Result<(), TaskError>;

#[tokio::test(start_paused = true)]
async fn a_change_acts_on_all_that_is_selected_and_a_dry_run_shows_it() {
    let queue = queue().await;
    let tasks = (0..2_500).map(|n| Task::new(if n % 2 == 0 { "even" } else { "odd" }, &n));
    queue.add_all(tasks).await.unwrap();
    let even = Selector { kinds: vec!["even".to_owned().try_into().unwrap()], ..Selector::default() };
    let would = queue.change(&even, Verb::Cancel, true).await.unwrap();
    assert_eq!(would.ids.len(), 1_250, "more than one command selects");
    assert!(!stored(&queue, would.ids[0]).await.task.state.is_ended());
    assert_eq!(queue.change(&even, Verb::Cancel, false).await.unwrap(), would);
    let cancelled = Selector::states([State::Cancelled]);
    assert_eq!(queue.change(&cancelled, Verb::Retry, true).await.unwrap().ids.len(), 1_250);
    assert_eq!(stored(&queue, would.ids[0]).await.task.state, State::Cancelled);
    // A part of them, and then the rest.
    let some =
        async |most, dry_run| queue.change_at_most(most, &cancelled, Verb::Retry, dry_run).await.unwrap().ids;
    assert_eq!(some(1_100, true).await, would.ids[..1_100]);
    assert_eq!(some(1_100, false).await, would.ids[..1_100]);
    assert_eq!(some(0, false).await, []);
    assert_eq!(some(1_100, false).await, would.ids[1_100..]);
}

#[tokio::test(start_paused = true)]
async fn nothing_starts_in_a_pause_and_it_ends_at_once() {
    let queue = queue().await;
    queue.pause().await.unwrap();
    let id = queue.add(Task::new("a", &())).await.unwrap().id();
    let worker =
        Worker::builder(&queue).handler("a", |_: Context, (): ()| async { Done::Ok(()) }).build().unwrap();
    let (handle, ended) = (worker.handle(), spawned(worker));
    sleep(secs(60)).await;
    assert!(!stored(&queue, id).await.task.state.is_ended());
    let began = now();
    queue.resume().await.unwrap();
    queue.wait::<()>(id).await.unwrap();
    assert!(began.elapsed() < secs(1), "{:?}", began.elapsed());
    handle.stop();
    ended.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_kind_and_a_key_are_paused_by_themselves() {
    let queue = queue().await;
    let ids = queue
        .add_all([Task::new("a", &()), Task::new("b", &()).key("k"), Task::new("b", &())])
        .await
        .unwrap();
    queue.pause_kind("a", true).await.unwrap();
    queue.set_key_limit("k", Some(0)).await.unwrap();
    let handler = |_: Context| async { Ok::<_, TaskError>(interval_queue_tasks::Json::default()) };
    let worker = Worker::builder(&queue).handler_for(["a", "b"], handler).build().unwrap();
    worker.run_until(sleep(secs(30))).await.unwrap();
    let mut states = Vec::new();
    for id in &ids {
        states.push(stored(&queue, id.id()).await.task.state.is_ended());
    }
    assert_eq!(states, [false, false, true]);
    queue.pause_kind("a", false).await.unwrap();
    queue.set_key_limit("k", None).await.unwrap();
    assert_eq!(finish(Worker::builder(&queue).handler_for(["a", "b"], handler)).await.done, 2);
}

#[tokio::test(start_paused = true)]
async fn settings_are_changed_for_all() {
    let queue = queue().await;
    let change = SettingsChange { key_limit: Some(3), ..SettingsChange::default() };
    assert_eq!(queue.set(change).await.unwrap().key_limit, 3);
    let wrong = SettingsChange { key_limit: Some(0), ..SettingsChange::default() };
    assert_eq!(queue.set(wrong).await.unwrap_err().to_string(), "key limit 0: give at least 1");
}
