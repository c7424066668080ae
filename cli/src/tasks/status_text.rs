//! The conditions in force on a queue of tasks, for people and programs. Every view of the program
//! prints these texts.

use interval_queue::{
    Micros, Snapshot,
    task_contract::{Key, Kind, Overview},
};
use interval_queue_tasks::{Condition, QueueStatus};
use serde_json::{Value, json};

use super::task_words::{self, quoted};
use crate::{duration::about, text::visible};

/// Maximum conditions on one line.
const MAX_NAMED_CONDITIONS: usize = 4;

/// Formats the conditions on one line: the first one with advice, then others.
pub(crate) fn reason<'c>(conditions: impl IntoIterator<Item = &'c Condition>) -> String {
    line(conditions, text)
}

/// As [`reason`], without advice, for a row of a table.
pub(crate) fn facts<'c>(conditions: impl IntoIterator<Item = &'c Condition>) -> String {
    line(conditions, fact)
}

fn line<'c>(
    conditions: impl IntoIterator<Item = &'c Condition>,
    of_first: fn(&Condition) -> String,
) -> String {
    let mut conditions = conditions.into_iter();
    let first = conditions.next().map(of_first);
    let mut all: Vec<_> = first.into_iter().chain(conditions.map(fact)).collect();
    let more = all.len().saturating_sub(MAX_NAMED_CONDITIONS);
    all.truncate(MAX_NAMED_CONDITIONS);
    if more > 0 {
        all.push(format!("and {more} more"));
    }
    all.join("; ")
}

/// Formats a condition with advice.
pub(crate) fn text(condition: &Condition) -> String {
    let fact = fact(condition);
    hint(condition).map_or(fact.clone(), |hint| format!("{fact}: {hint}"))
}

fn fact(condition: &Condition) -> String {
    match condition {
        Condition::Empty => "no task waits".into(),
        Condition::Paused { since, running } => {
            let running = if *running > 0 {
                format!(", {} still run", task_words::number(*running))
            } else {
                String::new()
            };
            format!("paused{}{running}", since_when(*since))
        }
        Condition::Running { running, limit } => {
            let run = if *running == 1 { "runs" } else { "run" };
            let limit = limit.map_or(String::new(), |limit| format!(", {limit} at most"));
            format!("{} {run}{limit}", task_words::number(*running))
        }
        Condition::NoWorker => "no worker is there".into(),
        Condition::Lost { tasks } => format!("{} lost, waiting for a worker", task_words::number(*tasks)),
        Condition::Unserved { kind, tasks } => {
            format!("no worker serves kind {}, {}", visible(kind.as_str()), tasks_of(*tasks))
        }
        Condition::KindPaused { kind, tasks, since } => {
            format!("paused: kind {}, {}{}", visible(kind.as_str()), tasks_of(*tasks), since_when(*since))
        }
        Condition::KeyPaused { key, tasks, since } => {
            format!("paused: key {}, {}{}", visible(key.as_str()), tasks_of(*tasks), since_when(*since))
        }
        Condition::PacePaused => "the rate is paused".into(),
        Condition::PaceHeld { left } => format!("the rate is held for another {}", about(*left)),
        Condition::Pace { status } => format!("waiting for the next slot: {status}"),
        Condition::Next => "nothing is in the way: a worker with free capacity takes the next one".into(),
        Condition::Time { left } => format!("all wait for their time: the first one in {}", about(*left)),
        Condition::Key => "all wait for their keys".into(),
        Condition::Upstreams => "all wait for other tasks".into(),
        Condition::Miscounted => "the counts are wrong, since rows were removed or added manually".into(),
        _ => "for a reason of a newer version".into(),
    }
}

/// The advice about a condition.
fn hint(condition: &Condition) -> Option<String> {
    Some(match condition {
        Condition::Paused { .. } | Condition::PacePaused => "`interval-queue resume` ends it".into(),
        Condition::KindPaused { kind, .. } => format!("`{}` ends it", resume_kind(kind)),
        Condition::KeyPaused { key, .. } => format!("`{}` ends it", resume_key(key)),
        Condition::NoWorker => "`interval-queue work` starts one".into(),
        Condition::Key => "`interval-queue tasks list --state blocked` lists them".into(),
        Condition::Upstreams => "`interval-queue tasks list --state waiting` lists them".into(),
        Condition::Miscounted => "`interval-queue tasks recount` counts again".into(),
        _ => return None,
    })
}

/// The command that ends the pause of a kind.
pub(super) fn resume_kind(kind: &Kind) -> String {
    format!("interval-queue resume --kind {}", quoted(kind.as_str()))
}

/// The command that ends the pause of a key.
pub(super) fn resume_key(key: &Key) -> String {
    format!("interval-queue resume --key {}", quoted(key.as_str()))
}

fn tasks_of(tasks: u64) -> String {
    let or_more = if tasks >= interval_queue::task_contract::MAX_COUNTED.into() { " or more" } else { "" };
    let what = if tasks == 1 { "task" } else { "tasks" };
    format!("{}{or_more} {what}", task_words::number(tasks))
}

fn since_when(since: Option<Micros>) -> String {
    since.map_or(String::new(), |at| format!(", since {}", task_words::time(at)))
}

/// The JSON fields of the conditions in force, which every object about a queue of tasks has.
pub(crate) fn fields(overview: &Overview, pace: Option<&Snapshot>) -> Value {
    let status = QueueStatus::of(overview, pace);
    let one = |condition: &Condition| json!({ "standing": condition.as_str(), "reason": text(condition) });
    let paused = overview.kinds.iter().filter(|row| row.paused);
    json!({
        "standing": status.condition.as_str(),
        "reason": reason(status.conditions()),
        "also": status.also.iter().map(one).collect::<Vec<_>>(),
        "paused": overview.paused,
        "paused_at_us": overview.paused_at.map(Micros::get),
        "paused_kinds": paused
            .map(|row| json!({ "kind": row.kind, "since_us": row.paused_at.map(Micros::get) }))
            .collect::<Vec<_>>(),
        "paused_keys": overview
            .paused_keys
            .iter()
            .map(|paused| json!({
                "key": paused.key, "tasks": paused.tasks, "since_us": paused.since.map(Micros::get),
            }))
            .collect::<Vec<_>>(),
        "unserved": overview.unserved,
        "lost": overview.lost,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_the_first_ones_and_counts_the_rest() {
        let paused = |n: u32| Condition::KeyPaused {
            key: Key::new(format!("customer {n}")).unwrap(),
            tasks: 45,
            since: Some(Micros::new(1_700_000_000_000_000)),
        };
        assert_eq!(
            text(&paused(2)),
            "paused: key customer 2, 45 tasks, since 2023-11-14T22:13:20Z: \
             `interval-queue resume --key 'customer 2'` ends it"
        );
        assert_eq!(text(&Condition::Lost { tasks: 2 }), "2 lost, waiting for a worker");
        assert_eq!(tasks_of(10_000), "10,000 or more tasks");
    }
}
