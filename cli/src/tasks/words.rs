//! What is said of tasks, for people.

use std::time::UNIX_EPOCH;

use indicatif::HumanCount;
use interval_queue::{
    Micros,
    task_contract::{ABOVE_ALL, AttemptEnd, Why},
};

use crate::duration::show;

/// Why a task does not run.
pub(super) fn why(why: &Why) -> String {
    match why {
        Why::NoStep => "no worker has looked at the queue since it was added".into(),
        Why::Upstreams => "it waits for other tasks".into(),
        Why::Time(left) => format!("its time comes in {}", show(*left)),
        Why::Key(Some(id)) => format!("task {id} is before it in the line of its key"),
        Why::Key(None) => "as many tasks of its key are ready or run as may".into(),
        Why::KeyPaused => "its key is paused".into(),
        Why::Unserved => "no worker that lives serves its kind".into(),
        Why::KindPaused => "its kind is paused".into(),
        Why::Paused => "the queue is paused: `interval-queue resume` ends it".into(),
        Why::Limit => "as many tasks of the queue run as may".into(),
        Why::Load(least) if *least >= ABOVE_ALL => {
            "all workers that serve its kind are under load, and take nothing".into()
        }
        Why::Load(least) => {
            format!(
                "all workers that serve its kind are under load, and take only priority {least} and higher"
            )
        }
        Why::Room => "no worker that serves its kind has room for its weight".into(),
        Why::Next => "nothing is in its way: a worker with room takes it when its place comes".into(),
        _ => "for a reason that this version does not know".into(),
    }
}

/// How a run ended.
pub(super) fn end(end: AttemptEnd) -> &'static str {
    match end {
        AttemptEnd::Done => "done",
        AttemptEnd::Error => "error",
        AttemptEnd::Retry => "retry",
        AttemptEnd::Released => "released",
        AttemptEnd::Stopped => "stopped",
        AttemptEnd::Died => "died",
        AttemptEnd::Lost => "lost",
    }
}

/// So many of something.
pub(super) fn many(count: usize, one: &str, more: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{} {more}", HumanCount(count as u64)) }
}

/// An instant of the store's clock, in UTC.
pub(super) fn time(at: Micros) -> String {
    UNIX_EPOCH
        .checked_add(at.to_duration())
        .map_or_else(|| "far away".into(), |at| humantime::format_rfc3339_seconds(at).to_string())
}

/// A text that others stored, in one line that speaks to no terminal.
pub(super) fn line(text: &str) -> String {
    text.trim().replace(char::is_control, " ")
}
