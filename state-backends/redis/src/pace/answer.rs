//! Decodes the script's answer: packed numbers, or a refusal that changed nothing.

use interval_queue_contract::{
    Change, Changed, Command, Grant, LastTake, MAX_ASK, MAX_RATES, MAX_TAKE, Memory, Meter, Meters, Micros,
    Presence, Rate, Rates, Record, Reply, Settings, ShardId, Snapshot, StateError, StateErrorKind, Step,
    Stepped, Taken, Ticket, Wait, WaitReason,
};
use redis::Value;

use super::refusal;

/// Decodes the answer to `command`.
///
/// # Errors
///
/// The script refused the command, or its answer is invalid.
pub fn decode(command: &Command, answer: Value) -> Result<Reply, StateError> {
    match (command, answer) {
        (Command::Step(step), Value::BulkString(reply)) => Answer(&reply).stepped(step).map(Reply::Stepped),
        (Command::Change(..), Value::BulkString(reply)) => Answer(&reply).changed().map(Reply::Changed),
        (Command::Read, Value::Array(parts)) if parts.first() == Some(&Value::BulkString(b"ok".to_vec())) => {
            let parts: Vec<Vec<u8>> = redis::from_redis_value(Value::Array(parts)).map_err(not_readable)?;
            snapshot(&parts[1..]).map(Reply::Read)
        }
        (_, refused) => {
            let words: Vec<String> = redis::from_redis_value(refused).map_err(not_readable)?;
            Err(refusal::read(&words, command).unwrap_or_else(nonsense))
        }
    }
}

/// The doubles of a reply, read in order.
struct Answer<'a>(&'a [u8]);

impl Answer<'_> {
    fn double(&mut self) -> Result<f64, StateError> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or_else(nonsense)?;
        self.0 = rest;
        Ok(f64::from_le_bytes(*bytes))
    }

    /// Negative: `None`. All others are integers of at most 2⁵³ − 1.
    fn optional(&mut self) -> Result<Option<u64>, StateError> {
        let double = self.double()?;
        // The conversion saturates at both ends and drops a fraction.
        let whole = double as u64;
        if double < 0.0 {
            Ok(None)
        } else if whole <= Micros::MAX.get() && whole as f64 == double {
            Ok(Some(whole))
        } else {
            Err(nonsense())
        }
    }

    fn number(&mut self) -> Result<u64, StateError> {
        self.optional()?.ok_or_else(nonsense)
    }

    fn numbers<const N: usize>(&mut self) -> Result<[u64; N], StateError> {
        let mut numbers = [0; N];
        numbers.iter_mut().try_for_each(|number| self.number().map(|next| *number = next)).map(|()| numbers)
    }

    fn memory(&mut self, sequence: u64) -> Result<Memory, StateError> {
        let [at, ticket, current, revision, max_running, paused] = self.numbers()?;
        let [held_until, longest_lead, shards] = self.numbers()?;
        let more = self.count(MAX_RATES - 1)?;
        // Without a record there are no meters.
        let meters = Some(self.meters(1 + more)?).filter(|_| revision > 0).unwrap_or_default();
        let memory = Memory {
            at: Micros::new(at),
            sequence,
            ticket: Ticket::new(ticket),
            current: Ticket::new(current),
            meters,
            revision,
            max_running: limit(max_running)?,
            paused: paused == 1,
            held_until: Micros::new(held_until),
            longest_lead: Micros::new(longest_lead),
            shards: small(shards)?,
        };
        // The memory is sent with the next command, which would be refused.
        Command::Change(Change::Pause, memory).check().map_err(not_readable)?;
        Ok(memory)
    }

    fn count(&mut self, most: usize) -> Result<usize, StateError> {
        usize::try_from(self.number()?).ok().filter(|&count| count <= most).ok_or_else(nonsense)
    }

    fn meter(&mut self) -> Result<Meter, StateError> {
        let [interval, burst, tat] = self.numbers()?;
        Ok(Meter { interval: Micros::new(interval), burst: small(burst)?, tat: Micros::new(tat) })
    }

    fn meters(&mut self, count: usize) -> Result<Meters, StateError> {
        (0..count).map(|_| self.meter()).collect()
    }

    fn stepped(mut self, step: &Step) -> Result<Stepped, StateError> {
        let memory = self.memory(step.sequence)?;
        let [first, count, present] = self.numbers()?;
        let taken = Taken { first: Ticket::new(first), count: small(count)? };
        let taken = Some(taken).filter(|taken| taken.count > 0);
        // Each ticket is given to a job, so the tickets must exist.
        let within = |taken: Taken| {
            let known = taken.first <= memory.ticket
                && u64::from(taken.count) <= memory.ticket.behind(taken.first) + 1;
            known && (1..=MAX_TAKE).contains(&taken.count)
        };
        if taken.is_some_and(|taken| !within(taken)) {
            return Err(nonsense());
        }
        let ask_in = self.optional()?.map(Micros::new);
        let behind = Ticket::new(self.number()?);
        let grants = self.grants(step, taken)?;
        let wait = reason(text(self.0)?, behind)?.map(|reason| Wait { reason, ask_in });
        Ok(Stepped { memory, taken, grants, wait, present: present == 1 })
    }

    /// Slots belong to the first of the tickets asked for, then to those just taken.
    fn grants(&mut self, step: &Step, taken: Option<Taken>) -> Result<Vec<Grant>, StateError> {
        let weights = step.take.as_ref().map_or(0, |take| take.weights.len());
        let new = taken
            .into_iter()
            .flat_map(|taken| (0..u64::from(taken.count)).map(move |n| taken.first.after(n)));
        let mut asked = step.ask.iter().map(|ask| ask.ticket).chain(new.take(weights));
        // The first slot is always present.
        let [count, mut slot] = self.numbers()?;
        let mut grants = Vec::new();
        for n in 0..count {
            if n > 0 {
                slot = self.number()?;
            }
            let ticket = asked.next().ok_or_else(nonsense)?;
            grants.push(Grant { ticket, slot: Micros::new(slot) });
        }
        Ok(grants)
    }

    fn changed(mut self) -> Result<Changed, StateError> {
        let memory = self.memory(0)?;
        let max_running = limit(self.number()?)?;
        let rates = self.count(MAX_RATES)?;
        let rates = (0..rates).map(|_| {
            let [interval, burst] = self.numbers()?;
            Ok(Rate { interval: Micros::new(interval), burst: small(burst)? })
        });
        let rates: Vec<_> = rates.collect::<Result<_, StateError>>()?;
        if rates.is_empty() {
            return Ok(Changed { memory, before: None });
        }
        let rates = Rates::of(rates).map_err(not_readable)?;
        Ok(Changed { memory, before: Some(Settings { rates, max_running }) })
    }

    fn record(mut self) -> Result<(Micros, Record, Micros), StateError> {
        let at = self.number()?;
        let first = self.meter()?;
        let more = self.count(MAX_RATES - 1)?;
        let [last_slot, max_running, paused, revision, ticket, current] = self.numbers()?;
        let [held_until, line_from, gaps_until, longest_lead, lifted_at, seen_at, back] = self.numbers()?;
        let settings = Settings { rates: Rates::default(), max_running: limit(max_running)? };
        let mut record = Record::new(settings);
        record.meters = [first].into_iter().chain(self.meters(more)?.iter().copied()).collect();
        (record.paused, record.revision) = (paused == 1, revision);
        (record.ticket, record.current) = (Ticket::new(ticket), Ticket::new(current));
        (record.last_slot, record.held_until) = (Micros::new(last_slot), Micros::new(held_until));
        (record.line_from, record.gaps_until) = (Ticket::new(line_from), Ticket::new(gaps_until));
        (record.lifted_at, record.seen_at) = (Micros::new(lifted_at), Micros::new(seen_at));
        record.longest_lead = Micros::new(longest_lead);
        Ok((Micros::new(at), record, Micros::new(back)))
    }

    fn presence(&mut self) -> Result<Presence, StateError> {
        let head = self.optional()?.map(Ticket::new);
        let [running, expires_at, sequence, request, first, count, weight] = self.numbers()?;
        let take = LastTake { request, first: Ticket::new(first), count: small(count)? };
        let grants = self.count(MAX_ASK)?;
        let granted = (0..grants).map(|_| {
            let [ticket, slot] = self.numbers()?;
            Ok(Grant { ticket: Ticket::new(ticket), slot: Micros::new(slot) })
        });
        Ok(Presence {
            head,
            weight: small(weight)?,
            running: small(running)?,
            expires_at: Micros::new(expires_at),
            sequence,
            last_take: (request > 0).then_some(take),
            granted: granted.collect::<Result<_, StateError>>()?,
            label: Default::default(),
        })
    }
}

fn small(number: u64) -> Result<u32, StateError> {
    number.try_into().map_err(|_| nonsense())
}

/// 0: unlimited.
fn limit(number: u64) -> Result<Option<u32>, StateError> {
    Ok(Some(small(number)?).filter(|&limit| limit > 0))
}

/// `None`: it need not wait.
fn reason(words: &str, behind: Ticket) -> Result<Option<WaitReason>, StateError> {
    Ok(Some(match words {
        "" => return Ok(None),
        "slot" => WaitReason::Slot,
        "missed" => WaitReason::Missed,
        "paused" => WaitReason::Paused,
        "at-max-running" => WaitReason::AtMaxRunning,
        _ => {
            let shard = words.strip_prefix("behind ").ok_or_else(nonsense)?;
            WaitReason::Behind { shard: ShardId::new(shard).map_err(not_readable)?, ticket: behind }
        }
    }))
}

/// The answer has no status.
fn snapshot(words: &[Vec<u8>]) -> Result<Option<Snapshot>, StateError> {
    let Some((numbers, words)) = words.split_first() else {
        return Ok(None);
    };
    let (at, mut record, back) = Answer(numbers).record()?;
    let (incarnation, shards) = words.split_first().ok_or_else(nonsense)?;
    record.incarnation = text(incarnation)?.to_owned();
    for entry in shards.chunks(2) {
        let [id, stored] = entry else {
            return Err(nonsense());
        };
        let mut answer = Answer(stored);
        let mut presence = answer.presence()?;
        presence.expires_at = presence.expires_at - back;
        if back > Micros::ZERO {
            presence.granted.clear();
        }
        presence.label = text(answer.0)?.parse().map_err(not_readable)?;
        record.shards.insert(ShardId::new(text(id)?).map_err(not_readable)?, presence);
    }
    record.check()?;
    Ok(Some(Snapshot { at, record }))
}

fn text(bytes: &[u8]) -> Result<&str, StateError> {
    std::str::from_utf8(bytes).map_err(not_readable)
}

fn not_readable(error: impl std::error::Error + Send + Sync + 'static) -> StateError {
    nonsense().with_source(error)
}

fn nonsense() -> StateError {
    StateError::new(
        StateErrorKind::Foreign,
        "what is stored for the queue cannot be read: it was changed by something else",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_tickets_and_instants_are_refused() {
        let most = Micros::MAX.get();
        let read = |number: f64| Answer(&number.to_le_bytes()).optional().ok();
        for (number, expected) in [
            (0.0, Some(Some(0))),
            (most as f64, Some(Some(most))),
            (-1.0, Some(None)),
            (0.5, None),
            (f64::NAN, None),
            (f64::INFINITY, None),
            (9_007_199_254_740_992.0, None),
        ] {
            assert_eq!(read(number), expected, "{number}");
        }
        assert!(Answer(&[0; 7]).number().is_err());
        assert!(Answer(&(-1.0_f64).to_le_bytes()).number().is_err());
    }
}
