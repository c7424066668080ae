//! Why a script refused a command. It has changed nothing then.

use interval_queue_contract::{Change, Command, MaxRunning, Micros, StateError, StateErrorKind};

/// The error of a refusal: its kind, then details. None if there is no such refusal.
pub(super) fn read(words: &[String], command: &Command) -> Option<StateError> {
    let (kind, details) = words.split_first()?;
    let detail =
        |n: usize| details.get(n).map_or_else(String::new, |detail| detail.escape_debug().to_string());
    let (kind, message) = match kind.as_str() {
        "not-found" => {
            (StateErrorKind::NotFound, "there is no such queue yet: open it with an interval".to_owned())
        }
        "superseded" => (StateErrorKind::Superseded, superseded(command, &detail(0))),
        "no-tickets-left" => (StateErrorKind::Invalid, format!("no tickets are left after {}", detail(0))),
        "conflict" => (StateErrorKind::Conflict, conflict(command, &detail(0), &detail(1))),
        "newer" => (
            StateErrorKind::NewerVersion,
            format!(
                "the record has version {}, this program reads up to {}: upgrade it",
                detail(0),
                detail(1)
            ),
        ),
        "foreign" => {
            (StateErrorKind::Foreign, format!("this is not the record of an interval queue: {}", detail(0)))
        }
        "denied" => (
            StateErrorKind::Denied,
            format!("the redis user may not run {} on the keys of the queue: extend its ACL", detail(0)),
        ),
        _ => return None,
    };
    Some(StateError::new(kind, message))
}

fn superseded(command: &Command, known: &str) -> String {
    match command {
        Command::Step(step) => {
            format!("step {} of shard {} came after step {known}", step.sequence, step.shard)
        }
        _ => format!("it came after step {known}"),
    }
}

fn conflict(command: &Command, interval: &str, limit: &str) -> String {
    let text = |interval: Micros, limit: &str| {
        let limit = if limit == "0" { "no" } else { limit };
        format!("an interval of {:?} and {limit} running limit", interval.to_duration())
    };
    let stored = Micros::new(interval.parse().unwrap_or_default());
    let wanted = match command {
        Command::Change(Change::Open { interval, max_running, .. }, _) => {
            let wanted_limit = match max_running {
                MaxRunning::AtMost(limit) => limit.to_string(),
                MaxRunning::Unlimited => "0".to_owned(),
                _ => limit.to_owned(),
            };
            text(interval.unwrap_or(stored), &wanted_limit)
        }
        _ => "other settings".to_owned(),
    };
    format!("the queue is there with {}, not {wanted}", text(stored, limit))
}
