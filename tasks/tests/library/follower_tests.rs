//! Whoever follows a queue is told what becomes of its tasks.

use interval_queue_tasks::{
    Context, ErrorKind, Event, Selector, State, Task, TaskError, TaskQueue, Verb, Worker,
};
use tokio::time::timeout;

use crate::common::{Faulty, finish, ms, queue, secs};

/// Runs a task; with 0 it fails for good.
async fn work(_: Context, number: u32) -> Result<u32, TaskError> {
    if number > 0 { Ok(number) } else { Err(TaskError::permanent("it was nothing")) }
}

fn steps(events: &[Event]) -> Vec<(Option<State>, Option<State>)> {
    events.iter().map(|event| (event.from, event.to)).collect()
}

const DONE: [(Option<State>, Option<State>); 3] = [
    (None, Some(State::Ready)),
    (Some(State::Ready), Some(State::Leased)),
    (Some(State::Leased), Some(State::Done)),
];

async fn runs(queue: &TaskQueue) {
    finish(Worker::builder(queue).handler("work", work)).await;
}

#[tokio::test(start_paused = true)]
async fn a_follower_gets_the_events_of_a_task_from_then_on() {
    let queue = queue().await;
    queue.add(Task::new("work", &9)).await.unwrap();
    runs(&queue).await;
    let mut follower = queue.follow().await.unwrap();
    let none = timeout(secs(600), follower.next()).await;
    assert!(none.is_err(), "nothing happens: {none:?}");
    queue.add(Task::new("work", &1)).await.unwrap();
    runs(&queue).await;
    let followed = follower.next().await.unwrap();
    assert_eq!((steps(&followed.events), followed.missed), (DONE.to_vec(), false));
    let id = queue.add(Task::new("work", &0)).await.unwrap().id();
    runs(&queue).await;
    queue.change(&Selector::ids([id]), Verb::Purge, false).await.unwrap();
    let followed = follower.next().await.unwrap().events;
    assert_eq!(followed[2].error.as_deref(), Some("it was nothing"));
    assert_eq!(
        steps(&followed[2..]),
        [(Some(State::Leased), Some(State::Failed)), (Some(State::Failed), None)]
    );
}

#[tokio::test(start_paused = true)]
async fn nothing_is_lacking_after_a_lost_answer_or_a_short_outage() {
    let faulty = Faulty::new();
    let queue = faulty.beside().open(TaskQueue::builder("jobs")).await;
    let mut follower = faulty.open(TaskQueue::builder("jobs")).await.follow().await.unwrap();
    queue.add(Task::new("work", &1)).await.unwrap();
    faulty.lost.store(1, std::sync::atomic::Ordering::Relaxed);
    runs(&queue).await;
    faulty.set_down(true);
    assert!(timeout(secs(9), follower.next()).await.is_err(), "the store is down");
    faulty.set_down(false);
    assert_eq!(steps(&follower.next().await.unwrap().events), DONE);
}

#[tokio::test(start_paused = true)]
async fn a_follower_that_missed_events_is_notified() {
    let queue = queue().await;
    let mut follower = queue.follow().await.unwrap();
    tokio::time::sleep(secs(91)).await;
    queue.add(Task::new("work", &1)).await.unwrap();
    let followed = follower.next().await.unwrap();
    assert!(followed.missed && followed.events.is_empty(), "{followed:?}");
    runs(&queue).await;
    assert_eq!(steps(&follower.next().await.unwrap().events), DONE[1..]);
    let faulty = Faulty::new();
    let queue = faulty.open(TaskQueue::builder("jobs").timeout(ms(100))).await;
    faulty.set_down(true);
    assert_eq!(queue.follow().await.unwrap_err().kind(), ErrorKind::Store);
}
