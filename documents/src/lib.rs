//! Documents about an interval queue: the structs behind each `--json` answer of the program, the
//! JSON Schema derived from them, and reasons in words. A web page, an HTTP API and bindings print
//! the same documents. [`NewFlow`] is the one that they read. [`Alert`] is a condition on the
//! status of a queue.
//!
//! Times that end in `_us` are whole microseconds: instants since 1970 on the store's clock, or
//! durations. Later versions may add fields; no field changes its meaning.

mod alert;
mod changes;
pub mod duration;
mod event;
mod explain;
mod failures;
mod flow;
pub mod instant;
mod new_flow;
mod queue;
mod rate;
mod run;
mod schedule;
pub mod schema;
mod settings;
mod task;
mod times;
mod why;
pub mod words;
mod worker;

pub use alert::{Alert, Fired};
pub use changes::{Change, Corrected, Recount, TagCount, Taken, Transfer};
pub use event::{Event, LoggedLine, MissedEvents};
pub use explain::{Explanation, MAX_READ};
pub use failures::{Failure, Failures};
pub use flow::{Flow, FlowStatus, WrongTask};
pub use new_flow::NewFlow;
pub use queue::{Condition, Counts, KindCounts, Measured, PausedKey, PausedKind, Queue, Tasks};
pub use rate::{QueueStatus, Rate, Shard, Unpaced, Unreadable, in_order};
pub use run::{Attempt, OwnPolicy, Policy, Progress};
pub use schedule::{AfterEnd, Cron, Every, LastTask, Missed, Rule, Schedule, UpTo};
pub use settings::{Keep, Settings};
pub use task::{Edge, LogLine, Task};
pub use times::{Day, Days, Durations, Hour, KindDays, KindTimes, Length, Throughput, Times};
pub use why::Why;
pub use worker::{Worker, Workers};

use interval_queue::Micros;

/// Microseconds of an optional instant or duration.
fn micros(at: Option<Micros>) -> Option<u64> {
    at.map(Micros::get)
}
