//! Decodes refusals of the script. A refused command has changed nothing.

use interval_queue_contract::{
    Command, Label, Micros, Presence, Rate, Rates, Record, Settings, ShardId, StateError, StateErrorKind,
    Ticket,
    rules::{self, Reading},
};

/// `None`: no such refusal.
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
        "in-use" => return in_use(details, command),
        rule => {
            let details: Option<Vec<u64>> = details.iter().map(|detail| detail.parse().ok()).collect();
            return of_a_rule(rule, &details?, command);
        }
    };
    Some(StateError::new(kind, message))
}

/// Runs the rule on a record with the relevant fields, so that its text exists once.
fn of_a_rule(kind: &str, details: &[u64], command: &Command) -> Option<StateError> {
    let record = |rates, max_running| Record::new(Settings { rates, max_running });
    let any = Rates::every(Micros::new(1));
    let mut now = Micros::ZERO;
    let mut record = match (kind, details, command) {
        ("not-found", [], _) => None,
        ("conflict", [limit, rates @ ..], _) => {
            let rate = |rate: &[u64]| {
                Some(Rate { interval: Micros::new(rate[0]), burst: u32::try_from(*rate.get(1)?).ok()? })
            };
            let rates: Option<Vec<_>> = rates.chunks(2).map(rate).collect();
            Some(record(
                Rates::of(rates?).ok()?,
                Some(u32::try_from(*limit).ok()?).filter(|&limit| limit > 0),
            ))
        }
        ("no-tickets-left", &[last], _) => Some(Record { ticket: Ticket::new(last), ..record(any, None) }),
        ("not-idle", &[paused, ahead, idle], _) => {
            now = Micros::new(idle);
            let held_until = now + Micros::new(ahead);
            Some(Record { paused: paused == 1, held_until, ..record(any, None) })
        }
        ("superseded", &[sequence], Command::Step(step)) => {
            let mut record = record(any, None);
            record.shards.insert(step.shard.clone(), presence(sequence, Label::default()));
            Some(record)
        }
        _ => return None,
    };
    rules::apply(&mut record, &Reading::of_clock(now), command).err()
}

/// Each shard is an id and a label.
fn in_use(shards: &[String], command: &Command) -> Option<StateError> {
    let mut record = Record::new(Settings { rates: Rates::every(Micros::new(1)), max_running: None });
    for shard in shards.chunks(2) {
        let [id, label] = shard else { return None };
        record.shards.insert(ShardId::new(id).ok()?, presence(0, Label::new(label).ok()?));
    }
    rules::apply(&mut Some(record), &Reading::of_clock(Micros::ZERO), command).err()
}

fn presence(sequence: u64, label: Label) -> Presence {
    Presence {
        head: None,
        weight: 1,
        running: 0,
        expires_at: Micros::MAX,
        sequence,
        last_take: None,
        granted: Vec::new(),
        label,
    }
}
