//! Tasks in words, for people.

use std::time::UNIX_EPOCH;

use indicatif::HumanCount;
use interval_queue::{
    Micros,
    task_contract::{ABOVE_ALL, AttemptEnd, Task, Why},
};

use super::status_text::{resume_key, resume_kind};
use crate::{duration::about, text::visible};

/// The reason why a task does not run.
pub(super) fn why(task: &Task, why: &Why) -> String {
    match why {
        Why::NoStep => "it was added, and no worker has checked its gates yet".into(),
        Why::Upstreams => "it waits for other tasks".into(),
        Why::Time(left) => format!("its time comes in {}", about(*left)),
        Why::Key(Some(id)) => format!("task {id} of its key is ahead of it"),
        Why::Key(None) => "the limit of its key is reached".into(),
        Why::KeyPaused => match &task.key {
            Some(key) => format!("its key is paused: `{}` ends it", resume_key(key)),
            None => "its key is paused".into(),
        },
        Why::Lost => "the lease of its worker has ended: a poll of another worker takes it back".into(),
        Why::Unserved => "no live worker serves its kind".into(),
        Why::KindPaused => format!("its kind is paused: `{}` ends it", resume_kind(&task.kind)),
        Why::Paused => "the queue is paused: `interval-queue resume` ends it".into(),
        Why::Limit => "the limit of running tasks of the queue is reached".into(),
        Why::Load(least) if *least >= ABOVE_ALL => {
            "all workers of its kind are under load and take no tasks".into()
        }
        Why::Load(least) => {
            format!("all workers of its kind are under load and take only priority {least} and higher")
        }
        Why::Room => "no worker that serves its kind has free capacity for its weight".into(),
        Why::Next => "nothing is in its way: a worker with free capacity takes it after those ahead".into(),
        _ => "for a reason of a newer version".into(),
    }
}

/// The end of a run.
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

/// A count with its noun.
pub(super) fn many(count: usize, one: &str, more: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{} {more}", HumanCount(count as u64)) }
}

/// `1 task`, or `N tasks`.
pub(super) fn tasks(count: u64) -> String {
    format!("{} {}", number(count), if count == 1 { "task" } else { "tasks" })
}

/// An instant of the store's clock, in UTC.
pub(super) fn time(at: Micros) -> String {
    UNIX_EPOCH
        .checked_add(at.to_duration())
        .map_or_else(|| "far away".into(), |at| humantime::format_rfc3339_seconds(at).to_string())
}

/// Formats a number with separators.
pub(super) fn number(of: u64) -> String {
    HumanCount(of).to_string()
}

/// Formats a stored text on one line, so that a terminal shows every character.
pub(super) fn line(text: &str) -> String {
    visible(&text.trim().replace(char::is_control, " ")).into_owned()
}

/// Quotes a word for a shell.
pub(super) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.:/,@%+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_what_was_meant() {
        assert_eq!(quoted("refused:1/2"), "refused:1/2");
        assert_eq!(quoted("it's $HOME"), "'it'\\''s $HOME'");
        assert_eq!(quoted(""), "''");
    }
}
