//! Why the script refused a command. It has changed nothing then.

use interval_queue_contract::{
    Command, Label, Micros, Presence, Record, Settings, StateError, StateErrorKind, Ticket,
    rules::{self, Reading},
};

/// The error of a refusal: its kind, then details. None if there is no such refusal.
pub(super) fn read(words: &[String], command: &Command) -> Option<StateError> {
    let (kind, details) = words.split_first()?;
    let detail =
        |n: usize| details.get(n).map_or_else(String::new, |detail| detail.escape_debug().to_string());
    let (kind, message) = match kind.as_str() {
        "newer" => {
            let (version, known) = (detail(0), detail(1));
            let text =
                format!("the record has version {version}, this program reads up to {known}: upgrade it");
            (StateErrorKind::NewerVersion, text)
        }
        "foreign" => {
            (StateErrorKind::Foreign, format!("this is not the record of an interval queue: {}", detail(0)))
        }
        "denied" => (
            StateErrorKind::Denied,
            format!("the redis user may not run {} on the keys of the queue: extend its ACL", detail(0)),
        ),
        rule => {
            let details: Option<Vec<u64>> = details.iter().map(|detail| detail.parse().ok()).collect();
            return of_a_rule(rule, &details?, command);
        }
    };
    Some(StateError::new(kind, message))
}

/// What the rules say to the command. Of the record they see what matters, so that their texts stand once.
fn of_a_rule(kind: &str, details: &[u64], command: &Command) -> Option<StateError> {
    let record =
        |interval, max_running| Record::new(Settings { interval: Micros::new(interval), max_running });
    let mut record = match (kind, details, command) {
        ("not-found", [], _) => None,
        ("conflict", &[interval, limit], _) => {
            Some(record(interval, Some(limit.try_into().ok()?).filter(|&limit| limit > 0)))
        }
        ("no-tickets-left", &[last], _) => Some(Record { ticket: Ticket::new(last), ..record(1, None) }),
        ("superseded", &[sequence], Command::Step(step)) => {
            let mut record = record(1, None);
            let presence = Presence {
                head: None,
                running: 0,
                expires_at: Micros::MAX,
                sequence,
                last_take: None,
                label: Label::default(),
            };
            record.shards.insert(step.shard.clone(), presence);
            Some(record)
        }
        _ => return None,
    };
    rules::apply(&mut record, &Reading::of_clock(Micros::ZERO), command).err()
}
