//! Helpers for the tests of an application: what was added, and runs of tasks in the test itself.
//!
//! Use `memory:`, a store of its own for each test, and tokio's paused time, which is then the
//! time of the store. Every helper works with any other store, too.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//! use interval_queue_tasks::{Context, State, Task, TaskError, TaskQueue, Worker, WorkerBuilder, testing};
//! use serde_json::{Value, json};
//!
//! // The application:
//! async fn sign_up(queue: &TaskQueue, name: &str) -> Result<(), interval_queue_tasks::Error> {
//!     let mail = Task::new("mail", &json!({"to": name, "template": "welcome"}));
//!     queue.add(mail.delay(Duration::from_secs(3600))).await?;
//!     Ok(())
//! }
//!
//! async fn mail(context: Context, _: Value) -> Result<(), TaskError> {
//!     if context.attempt() == 1 { Err("the server is busy".into()) } else { Ok(()) }
//! }
//!
//! fn worker(queue: &TaskQueue) -> WorkerBuilder {
//!     Worker::builder(queue).handler("mail", mail)
//! }
//!
//! // Its test, with `#[tokio::test(start_paused = true)]`:
//! let queue = TaskQueue::builder("test").connect("memory:").await?;
//! sign_up(&queue, "Ada").await?;
//! let added = testing::assert_added(&queue, "mail", &json!({"to": "Ada"})).await;
//! assert_eq!(added.task.state, State::Scheduled);
//! testing::refute_added(&queue, "mail", &json!({"to": "Bob"})).await;
//!
//! assert!(testing::run_one(worker(&queue)).await?.is_none(), "the mail waits for an hour");
//! tokio::time::sleep(Duration::from_secs(3600)).await;
//! let tried = testing::run_one(worker(&queue)).await?.unwrap();
//! assert_eq!((tried.task.state, tried.task.failures), (State::Scheduled, 1));
//!
//! tokio::time::sleep(Duration::from_secs(10)).await;
//! assert_eq!(testing::drain(worker(&queue)).await?.done, 1);
//! # Ok(())
//! # }
//! ```
//!
//! # Time
//!
//! A task that waits for its time or for a retry is not ready. To go on, let the time of the store
//! pass, in paused time by [`tokio::time::sleep`]. With a store whose time does not follow the
//! test, make the tasks due at once: [`change`](TaskQueue::change) them by
//! [`Verb::Release`](crate::Verb::Release).

use std::{fmt::Write, panic::Location};

use interval_queue_task_contract::{Kind, MAX_PAGE, Order, Selector, Stored};
use serde::Serialize;
use serde_json::Value;

use crate::{TaskQueue, Totals, WorkerBuilder, error::Error};

/// Maximum tasks, and characters of a payload, in the text of a panic.
const MAX_SHOWN: (usize, usize) = (50, 200);

/// Asserts that a task of this kind and payload is stored, in any state. Returns the first such
/// task in the order of adding.
///
/// An expected object matches a stored object that has all of its fields, with values that match in
/// the same way. Any other value must be equal.
///
/// # Panics
///
/// Panics if there is no such task, with a list of the stored tasks; and if the kind is invalid,
/// or the store fails.
#[track_caller]
pub fn assert_added(
    queue: &TaskQueue,
    kind: &str,
    payload: &(impl Serialize + ?Sized),
) -> impl Future<Output = Stored> + Send {
    let wanted = Wanted::new(queue, kind, payload);
    async move {
        let (found, others) = wanted.find().await;
        found.unwrap_or_else(|| wanted.fail("no task was added", &others))
    }
}

/// Asserts that no task of this kind and payload is stored, in any state. The payload matches as
/// in [`assert_added`].
///
/// # Panics
///
/// Panics if there is such a task, and as [`assert_added`].
#[track_caller]
pub fn refute_added(
    queue: &TaskQueue,
    kind: &str,
    payload: &(impl Serialize + ?Sized),
) -> impl Future<Output = ()> + Send {
    let wanted = Wanted::new(queue, kind, payload);
    async move {
        if let (Some(found), _) = wanted.find().await {
            wanted.fail("a task was added", &[found]);
        }
    }
}

/// Runs the most urgent ready task of the worker's kinds, and returns it as it is stored after the
/// run: ended, or waiting for a retry. `None`: no task is ready.
///
/// The worker is a real one that ends after this run. Its [`jobs`](WorkerBuilder::jobs) and
/// [`prefetch`](WorkerBuilder::prefetch) are ignored. Due schedules have added their tasks before.
///
/// # Errors
///
/// As [`build`](WorkerBuilder::build) and [`run`](crate::Worker::run).
///
/// # Cancel safety
///
/// As [`run`](crate::Worker::run).
pub async fn run_one<S: Send + Sync + 'static>(worker: WorkerBuilder<S>) -> Result<Option<Stored>, Error> {
    let queue = worker.queue().clone();
    match worker.run_one().await? {
        Some(id) => queue.task(id).await,
        None => Ok(None),
    }
}

/// Runs tasks of the worker's kinds until none is ready, with those that become ready meanwhile,
/// and returns how the runs ended. Tasks that wait for their time, for a retry or for another task
/// are left. Due schedules have added their tasks before.
///
/// # Errors
///
/// As [`build`](WorkerBuilder::build) and [`run`](crate::Worker::run).
///
/// # Cancel safety
///
/// As [`run`](crate::Worker::run).
pub async fn drain<S: Send + Sync + 'static>(worker: WorkerBuilder<S>) -> Result<Totals, Error> {
    worker.run_ready().await
}

struct Wanted {
    queue: TaskQueue,
    kind: String,
    payload: Value,
    caller: &'static Location<'static>,
}

impl Wanted {
    #[track_caller]
    fn new(queue: &TaskQueue, kind: &str, payload: &(impl Serialize + ?Sized)) -> Self {
        let caller = Location::caller();
        let kind = Kind::new(kind).unwrap_or_else(|error| panic!("{error}")).to_string();
        let payload = serde_json::to_value(payload)
            .unwrap_or_else(|error| panic!("the expected payload is no JSON: {error}"));
        Self { queue: queue.clone(), kind, payload, caller }
    }

    /// The first match, or all tasks.
    async fn find(&self) -> (Option<Stored>, Vec<Stored>) {
        let (mut others, mut after) = (Vec::new(), Some(Order::Oldest.start()));
        while let Some(from) = after {
            let page = self.queue.page(&Selector::default(), from, MAX_PAGE, true).await;
            let page = page.unwrap_or_else(|error| panic!("at {}: {error}", self.caller));
            after = page.next;
            for stored in page.tasks {
                if self.is_met_by(&stored) {
                    return (Some(stored), others);
                }
                others.push(stored);
            }
        }
        (None, others)
    }

    fn is_met_by(&self, stored: &Stored) -> bool {
        let payload = stored.payload.as_ref().and_then(|json| serde_json::from_str(json.as_str()).ok());
        stored.task.kind.as_str() == self.kind
            && payload.is_some_and(|payload| contains(&payload, &self.payload))
    }

    fn fail(&self, what: &str, stored: &[Stored]) -> ! {
        let Self { queue, kind, payload, caller } = self;
        let mut text = format!("at {caller}: {what} of kind {kind:?} whose payload has {payload}");
        let _ = match stored.len() {
            0 => write!(text, "; queue {:?} has no tasks", queue.name().as_str()),
            tasks => write!(text, "; queue {:?} has {tasks}:", queue.name().as_str()),
        };
        for Stored { task, payload, .. } in stored.iter().take(MAX_SHOWN.0) {
            let payload = payload.as_ref().map_or("", |payload| payload.as_str());
            let shown: String = payload.chars().take(MAX_SHOWN.1).collect();
            let more = if shown.len() < payload.len() { "…" } else { "" };
            let _ = write!(text, "\n  {} {:?} {shown}{more}", task.state, task.kind.as_str());
        }
        if stored.len() > MAX_SHOWN.0 {
            let _ = write!(text, "\n  and {} more", stored.len() - MAX_SHOWN.0);
        }
        panic!("{text}")
    }
}

/// `actual` may have more.
fn contains(actual: &Value, wanted: &Value) -> bool {
    match (actual, wanted) {
        (Value::Object(actual), Value::Object(wanted)) => wanted
            .iter()
            .all(|(name, wanted)| actual.get(name).is_some_and(|actual| contains(actual, wanted))),
        _ => actual == wanted,
    }
}
