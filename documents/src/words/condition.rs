//! Conditions in force on a queue of tasks, in words.

use interval_queue::Micros;
use interval_queue_tasks::{Condition, Key, Kind, contract::MAX_COUNTED};

use super::{about, number, quoted, tasks, time, visible};

/// Conditions that one line names.
const MAX_NAMED: usize = 4;

/// Conditions on one line: the first with what to do about it, then the others.
pub fn reason<'c>(conditions: impl IntoIterator<Item = &'c Condition>) -> String {
    line(conditions, condition)
}

/// Conditions on one line, without what to do, for a table of queues.
pub fn facts<'c>(conditions: impl IntoIterator<Item = &'c Condition>) -> String {
    line(conditions, fact)
}

fn line<'c>(
    conditions: impl IntoIterator<Item = &'c Condition>,
    of_first: fn(&Condition) -> String,
) -> String {
    let mut conditions = conditions.into_iter();
    let first = conditions.next().map(of_first);
    let mut all: Vec<_> = first.into_iter().chain(conditions.map(fact)).collect();
    let more = all.len().saturating_sub(MAX_NAMED);
    all.truncate(MAX_NAMED);
    if more > 0 {
        all.push(format!("and {more} more"));
    }
    all.join("; ")
}

/// A condition with what to do about it.
pub fn condition(condition: &Condition) -> String {
    let fact = fact(condition);
    match hint(condition) {
        Some(hint) => format!("{fact}: {hint}"),
        None => fact,
    }
}

/// A condition without what to do about it.
pub fn fact(condition: &Condition) -> String {
    match condition {
        Condition::Empty => "no task waits".into(),
        Condition::Paused { since, running } => {
            let running =
                if *running > 0 { format!(", {} still run", number(*running)) } else { String::new() };
            format!("paused{}{running}", since_when(*since))
        }
        Condition::Running { running, limit } => {
            let run = if *running == 1 { "runs" } else { "run" };
            let limit = limit.map_or(String::new(), |limit| format!(", {limit} at most"));
            format!("{} {run}{limit}", number(*running))
        }
        Condition::NoWorker => "no worker is there".into(),
        Condition::Lost { tasks } => format!("{} lost, waiting for a worker", number(*tasks)),
        Condition::Unserved { kind, tasks } => {
            format!("no worker serves kind {}, {}", visible(kind.as_str()), counted(*tasks))
        }
        Condition::KindPaused { kind, tasks, since } => {
            format!("paused: kind {}, {}{}", visible(kind.as_str()), counted(*tasks), since_when(*since))
        }
        Condition::KeyPaused { key, tasks, since } => {
            format!("paused: key {}, {}{}", visible(key.as_str()), counted(*tasks), since_when(*since))
        }
        Condition::RatePaused => "the rate is paused".into(),
        Condition::RateHeld { left } => format!("the rate is held for another {}", about(*left)),
        Condition::Rate { status } => format!("waiting for the next slot: {status}"),
        Condition::Next => "nothing is in the way: a worker with free capacity takes the next one".into(),
        Condition::Time { left } => format!("all wait for their time: the first one in {}", about(*left)),
        Condition::Key => "all wait for their keys".into(),
        Condition::Upstreams => "all wait for other tasks".into(),
        Condition::Miscounted => "the counts are wrong, since rows were removed or added manually".into(),
        _ => "for a reason of a newer version".into(),
    }
}

fn hint(condition: &Condition) -> Option<String> {
    Some(match condition {
        Condition::Paused { .. } | Condition::RatePaused => "`interval-queue resume` ends it".into(),
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
pub fn resume_kind(kind: &Kind) -> String {
    format!("interval-queue resume --kind {}", quoted(kind.as_str()))
}

/// The command that ends the pause of a key.
pub fn resume_key(key: &Key) -> String {
    format!("interval-queue resume --key {}", quoted(key.as_str()))
}

/// A number of tasks that the store counts only up to a limit.
fn counted(of: u64) -> String {
    match of >= MAX_COUNTED.into() {
        true => format!("{} or more tasks", number(of)),
        false => tasks(of),
    }
}

fn since_when(since: Option<Micros>) -> String {
    since.map_or(String::new(), |at| format!(", since {}", time(at)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_the_first_conditions_and_counts_the_rest() {
        let paused = |n: u32| Condition::KeyPaused {
            key: Key::new(format!("customer {n}")).unwrap(),
            tasks: 45,
            since: Some(Micros::new(1_700_000_000_000_000)),
        };
        let first = "paused: key customer 1, 45 tasks, since 2023-11-14T22:13:20Z";
        let all: Vec<_> = (1..=6).map(paused).collect();
        assert_eq!(
            condition(&all[0]),
            format!("{first}: `interval-queue resume --key 'customer 1'` ends it")
        );
        let line = facts(&all);
        assert!(line.starts_with(&format!("{first}; ")) && line.ends_with("; and 2 more"), "{line}");
        assert_eq!(condition(&Condition::Lost { tasks: 2 }), "2 lost, waiting for a worker");
        assert_eq!(counted(10_000), "10,000 or more tasks");
    }
}
