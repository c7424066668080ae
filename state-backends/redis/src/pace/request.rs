//! Encodes commands as the arguments of the script, whose head documents them.

use std::{borrow::Cow, time::Duration};

use interval_queue_contract::{
    Change, Command, Deletion, InvalidInput, Late, LateStart, MaxRunning, Memory, Meter, Micros, OnExisting,
    StateError, StateErrorKind, Step, Ticket,
};

/// 0 is a ticket.
const NONE: i64 = -1;

/// The arguments after the name of the server: packed numbers, then words.
///
/// # Errors
///
/// The command breaks a bound, or is of a kind that this version does not know.
pub fn arguments(command: &Command, idle_expiry: Duration) -> Result<Vec<Cow<'_, [u8]>>, StateError> {
    command.check()?;
    let (seen, (numbers, list), words) = match command {
        Command::Read => return Ok(Vec::new()),
        Command::Step(step) => {
            (&step.memory, self::step(step)?, vec![step.shard.as_str(), step.label.as_str()])
        }
        Command::Change(change, seen) => {
            let (numbers, [verb, policy]) = self::change(*change)?;
            (seen, numbers, vec!["", verb, policy])
        }
        _ => return Err(unknown("command")),
    };
    let idle = [micros(Micros::from_duration(idle_expiry))];
    let numbers = idle.into_iter().chain(numbers).chain(memory(seen)?).chain(list);
    // Lua's numbers are doubles. Text would cost both sides more than all else.
    let numbers = numbers.flat_map(|number| (number as f64).to_le_bytes()).collect();
    let words = words.into_iter().map(|word| Cow::Borrowed(word.as_bytes()));
    Ok([Cow::Owned(numbers)].into_iter().chain(words).collect())
}

/// Fixed numbers, and lists of numbers.
type Numbers = (Vec<i64>, Vec<i64>);

fn memory(memory: &Memory) -> Result<Vec<i64>, InvalidInput> {
    let first = memory.meters.first();
    let meter = |meter: &Meter| [micros(meter.interval), meter.burst.into(), micros(meter.tat)];
    let mut numbers = vec![
        micros(memory.at),
        exact("sequence number", memory.sequence)?,
        ticket(memory.ticket),
        ticket(memory.current),
        exact("revision", memory.revision)?,
        memory.max_running.unwrap_or(0).into(),
        memory.paused.into(),
        micros(memory.held_until),
        micros(memory.longest_lead),
        memory.meters.len().saturating_sub(1) as i64,
    ];
    numbers.extend(meter(&first));
    numbers.extend(memory.meters.iter().skip(1).flat_map(meter));
    Ok(numbers)
}

fn step(step: &Step) -> Result<Numbers, StateError> {
    let late = match step.late {
        Late::NextSlot => 0,
        Late::Requeue => 1,
        _ => return Err(unknown("late policy")),
    };
    let (lowest, last) = (step.ask.first(), step.ask.last());
    let highest = step.then.or(last.map(|ask| ask.ticket)).unwrap_or(Ticket::NONE);
    let (request, count, weights): (_, _, &[u32]) = match &step.take {
        Some(take) => (take.request, take.count, &take.weights),
        None => (0, 0, &[]),
    };
    let late_start = step.late_start.unwrap_or(LateStart { ticket: Ticket::NONE, at: Micros::ZERO });
    let numbers = vec![
        exact("sequence number", step.sequence)?,
        micros(step.lease),
        micros(step.lead),
        late,
        step.running.into(),
        ticket(step.given_up.unwrap_or(Ticket::NONE)),
        step.then.map_or(NONE, ticket),
        lowest.map_or(NONE, |ask| ticket(ask.ticket)),
        ticket(highest),
        exact("request number", request)?,
        count.into(),
        ticket(late_start.ticket),
        micros(late_start.at),
        step.ask.len() as i64,
        weights.len() as i64,
    ];
    let asks = step.ask.iter().flat_map(|ask| [ticket(ask.ticket), ask.weight.into()]);
    Ok((numbers, asks.chain(weights.iter().copied().map(i64::from)).collect()))
}

/// Numbers: the running limit, the hold or idle time, the rates. Words: the change, and the policy
/// for an existing queue.
fn change(change: Change) -> Result<(Numbers, [&'static str; 2]), StateError> {
    let (verb, policy, rates, limit, hold) = match change {
        Change::Open { rates, max_running, on_existing } => {
            ("open", self::policy(on_existing)?, rates, max_running, None)
        }
        Change::Set { rates, max_running } => ("set", "", rates, max_running, None),
        Change::Pause => ("pause", "", None, MaxRunning::Keep, None),
        Change::Resume => ("resume", "", None, MaxRunning::Keep, None),
        Change::Hold(duration) => ("hold", "", None, MaxRunning::Keep, Some(duration)),
        Change::Reset => ("reset", "", None, MaxRunning::Keep, None),
        Change::Delete(deletion) => {
            let (policy, idle) = self::deletion(deletion)?;
            ("delete", policy, None, MaxRunning::Keep, idle)
        }
        _ => return Err(unknown("change")),
    };
    let limit = match limit {
        MaxRunning::Keep => NONE,
        MaxRunning::Unlimited => 0,
        MaxRunning::AtMost(limit) => limit.into(),
        _ => return Err(unknown("running limit")),
    };
    let rates = rates.unwrap_or_default();
    let numbers = vec![limit, micros(hold.unwrap_or(Micros::ZERO)), rates.len() as i64];
    let rates = rates.iter().flat_map(|rate| [micros(rate.interval), rate.burst.into()]);
    Ok(((numbers, rates.collect()), [verb, policy]))
}

fn policy(on_existing: OnExisting) -> Result<&'static str, StateError> {
    Ok(match on_existing {
        OnExisting::Replace => "replace",
        OnExisting::Keep => "keep",
        OnExisting::Fail => "fail",
        OnExisting::Reset => "reset",
        _ => return Err(unknown("policy for a queue that is there")),
    })
}

fn deletion(deletion: Deletion) -> Result<(&'static str, Option<Micros>), StateError> {
    Ok(match deletion {
        Deletion::Unused => ("unused", None),
        Deletion::Idle(idle) => ("idle", Some(idle)),
        Deletion::Forced => ("forced", None),
        _ => return Err(unknown("kind of deletion")),
    })
}

fn micros(micros: Micros) -> i64 {
    micros.get() as i64
}

fn ticket(ticket: Ticket) -> i64 {
    ticket.get() as i64
}

fn exact(what: &str, value: u64) -> Result<i64, InvalidInput> {
    let most = Micros::MAX.get();
    if value > most {
        return Err(InvalidInput::new(format!("{what} {value} is out of range: at most {most}")));
    }
    Ok(value as i64)
}

/// For additions of later versions of the contract.
fn unknown(what: &str) -> StateError {
    StateError::new(
        StateErrorKind::Unsupported,
        format!("this version of interval-queue-redis does not know the {what}: upgrade it"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_kept_exactly_or_refused() {
        let most = Micros::MAX.get();
        assert_eq!(exact("ticket", most).map(|number| number as f64 as u64), Ok(most));
        let error = exact("ticket", most + 1).unwrap_err().to_string();
        assert!(error.contains("ticket 9007199254740992"), "{error}");
    }
}
