//! What scripts answer: a reply, or a refusal that changed nothing.

use std::{str::FromStr, vec::IntoIter};

use interval_queue_contract::{
    Change, Changed, Command, Grant, InvalidInput, LastTake, MAX_TAKE, Memory, Micros, Presence, Record,
    Reply, Settings, ShardId, Snapshot, StateError, StateErrorKind, Step, Stepped, Taken, Ticket, Wait,
    WaitReason,
};
use redis::Value;

/// Reads the answer to `command`.
///
/// # Errors
///
/// The script refused the command, or its answer makes no sense.
pub(crate) fn decode(command: &Command, answer: Value) -> Result<Reply, StateError> {
    let values: Vec<String> =
        redis::from_redis_value(answer).map_err(|error| nonsense().with_source(error))?;
    let mut answer = Answer(values.into_iter());
    let status = answer.text()?;
    if status != "ok" {
        return Err(answer.refusal(&status, command));
    }
    match command {
        Command::Step(step) => answer.stepped(step).map(Reply::Stepped),
        Command::Change(..) => answer.changed().map(Reply::Changed),
        _ => answer.snapshot().map(Reply::Read),
    }
}

struct Answer(IntoIter<String>);

impl Answer {
    fn text(&mut self) -> Result<String, StateError> {
        self.0.next().ok_or_else(nonsense)
    }

    fn number<N: FromStr>(&mut self) -> Result<N, StateError> {
        parse(&self.text()?)
    }

    fn optional<N: FromStr>(&mut self) -> Result<Option<N>, StateError> {
        let text = self.text()?;
        (!text.is_empty()).then(|| parse(&text)).transpose()
    }

    fn micros(&mut self) -> Result<Micros, StateError> {
        self.number().map(Micros::new)
    }

    fn ticket(&mut self) -> Result<Ticket, StateError> {
        self.number().map(Ticket::new)
    }

    fn flag(&mut self) -> Result<bool, StateError> {
        Ok(self.text()? == "1")
    }

    fn memory(&mut self, sequence: u64) -> Result<Memory, StateError> {
        let memory = Memory {
            at: self.micros()?,
            sequence,
            ticket: self.ticket()?,
            current: self.ticket()?,
            free_at: self.micros()?,
            revision: self.number()?,
            interval: self.micros()?,
            max_running: self.optional()?,
            paused: self.flag()?,
            held_until: self.micros()?,
            longest_lead: self.micros()?,
            shards: self.number()?,
        };
        // It is echoed with the next command, which would be refused.
        Command::Change(Change::Pause, memory).check().map_err(not_readable)?;
        Ok(memory)
    }

    fn stepped(mut self, step: &Step) -> Result<Stepped, StateError> {
        let memory = self.memory(step.sequence)?;
        let first = self.optional()?.map(Ticket::new);
        let taken = first.zip(self.optional()?).map(|(first, count)| Taken { first, count });
        // The shard is to hold as many tickets.
        let within = |taken: Taken| {
            let known = taken.first <= memory.ticket
                && u64::from(taken.count) <= memory.ticket.behind(taken.first) + 1;
            known && (1..=MAX_TAKE).contains(&taken.count)
        };
        if taken.is_some_and(|taken| !within(taken)) {
            return Err(nonsense());
        }
        let present = self.flag()?;
        let wait = self.wait()?;
        let mut grants = Vec::new();
        while self.0.len() > 0 {
            grants.push(Grant { ticket: self.ticket()?, start_in: self.micros()? });
        }
        Ok(Stepped { memory, taken, grants, wait, present })
    }

    fn wait(&mut self) -> Result<Option<Wait>, StateError> {
        let reason = self.text()?;
        let ask_in = self.optional()?.map(Micros::new);
        let (shard, ticket) = (self.text()?, self.optional()?.map(Ticket::new));
        let reason = match reason.as_str() {
            "" => return Ok(None),
            "slot" => WaitReason::Slot,
            "behind" => WaitReason::Behind {
                shard: ShardId::new(shard).map_err(not_readable)?,
                ticket: ticket.ok_or_else(nonsense)?,
            },
            "missed" => WaitReason::Missed,
            "paused" => WaitReason::Paused,
            "at-max-running" => WaitReason::AtMaxRunning,
            _ => return Err(nonsense()),
        };
        Ok(Some(Wait { reason, ask_in }))
    }

    fn changed(mut self) -> Result<Changed, StateError> {
        let memory = self.memory(0)?;
        let interval = self.optional()?.map(Micros::new);
        let max_running = self.optional()?;
        let before = interval.map(|interval| Settings { interval, max_running });
        Ok(Changed { memory, before })
    }

    fn snapshot(mut self) -> Result<Option<Snapshot>, StateError> {
        if self.0.len() == 0 {
            return Ok(None);
        }
        let at = self.micros()?;
        let incarnation = self.text()?;
        let max_running = self.optional()?;
        let paused = self.flag()?;
        let mut record = Record::new(Settings { interval: self.micros()?, max_running });
        record.incarnation = incarnation;
        record.paused = paused;
        record.revision = self.number()?;
        record.ticket = self.ticket()?;
        record.current = self.ticket()?;
        record.free_at = self.micros()?;
        record.held_until = self.micros()?;
        record.line_from = self.ticket()?;
        record.gaps_until = self.ticket()?;
        record.longest_lead = self.micros()?;
        record.lifted_at = self.micros()?;
        record.seen_at = self.micros()?;
        let _sum_of_running = self.text()?;
        while self.0.len() > 0 {
            let id = ShardId::new(self.text()?).map_err(not_readable)?;
            record.shards.insert(id, presence(&self.text()?)?);
        }
        record.check()?;
        Ok(Some(Snapshot { at, record }))
    }

    fn refusal(mut self, status: &str, command: &Command) -> StateError {
        let detail = self.0.next().unwrap_or_default().escape_debug().to_string();
        let (kind, message) = match status {
            "not-found" => {
                (StateErrorKind::NotFound, "there is no such queue yet: open it with an interval".to_owned())
            }
            "superseded" => (StateErrorKind::Superseded, superseded(command, &detail)),
            "no-tickets-left" => (StateErrorKind::Invalid, format!("no tickets are left after {detail}")),
            "conflict" => {
                let limit = self.0.next().unwrap_or_default().escape_debug().to_string();
                (StateErrorKind::Conflict, conflict(command, &detail, &limit))
            }
            "newer" => (
                StateErrorKind::NewerVersion,
                format!(
                    "the record has version {detail}, this program reads up to {}: upgrade it",
                    Record::VERSION
                ),
            ),
            "foreign" => {
                (StateErrorKind::Foreign, format!("this is not the record of an interval queue: {detail}"))
            }
            "denied" => (
                StateErrorKind::Denied,
                format!("the redis user may not run {detail} on the keys of the queue: extend its ACL"),
            ),
            _ => return nonsense(),
        };
        StateError::new(kind, message)
    }
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
        let limit = if limit.is_empty() { "no" } else { limit };
        format!("an interval of {:?} and {limit} running limit", interval.to_duration())
    };
    let stored = Micros::new(interval.parse().unwrap_or_default());
    let wanted = match command {
        Command::Change(Change::Open { interval, max_running, .. }, _) => {
            use interval_queue_contract::MaxRunning;
            let wanted_limit = match max_running {
                MaxRunning::AtMost(limit) => limit.to_string(),
                MaxRunning::Unlimited => String::new(),
                _ => limit.to_owned(),
            };
            text(interval.unwrap_or(stored), &wanted_limit)
        }
        _ => "other settings".to_owned(),
    };
    format!("the queue is there with {}, not {wanted}", text(stored, limit))
}

/// The line that `presence.lua` writes.
fn presence(line: &str) -> Result<Presence, StateError> {
    let mut words = line.splitn(8, ' ');
    let mut word = || words.next().ok_or_else(nonsense);
    let head = word()?;
    let head = (head != "-").then(|| parse(head)).transpose()?.map(Ticket::new);
    let running = parse(word()?)?;
    let expires_at = Micros::new(parse(word()?)?);
    let sequence = parse(word()?)?;
    let take =
        LastTake { request: parse(word()?)?, first: Ticket::new(parse(word()?)?), count: parse(word()?)? };
    Ok(Presence {
        head,
        running,
        expires_at,
        sequence,
        last_take: (take.request > 0).then_some(take),
        label: word()?.parse().map_err(not_readable)?,
    })
}

fn parse<N: FromStr>(text: &str) -> Result<N, StateError> {
    text.parse().map_err(|_| nonsense())
}

fn not_readable(error: InvalidInput) -> StateError {
    nonsense().with_source(error)
}

fn nonsense() -> StateError {
    StateError::new(
        StateErrorKind::Foreign,
        "what is stored for the queue cannot be read: it was changed by something else",
    )
}
