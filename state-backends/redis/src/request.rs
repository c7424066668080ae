//! Commands as the arguments of scripts. The head of each script lists what it expects.

use std::time::Duration;

use interval_queue_contract::{
    Change, Command, InvalidInput, Late, MaxRunning, Memory, Micros, OnExisting, StateError, StateErrorKind,
    Step, Ticket,
};

use crate::{
    numbers::Numbers,
    script::{CHANGE, READ, STEP, Script},
};

/// A command that is ready to be sent.
#[derive(Debug)]
pub(crate) struct Request<'a> {
    /// What carries it out.
    pub(crate) script: &'static Script,
    /// Its first argument.
    pub(crate) numbers: Vec<u8>,
    /// Its arguments behind the name of the server.
    pub(crate) words: Vec<&'a str>,
}

impl<'a> Request<'a> {
    /// The request for a command.
    ///
    /// # Errors
    ///
    /// The command breaks a bound, or is of a kind that this version does not know.
    pub(crate) fn new(command: &'a Command, idle_expiry: Duration) -> Result<Self, StateError> {
        command.check()?;
        let mut numbers = Numbers::default();
        match command {
            Command::Read => Ok(Self { script: &READ, numbers: Vec::new(), words: Vec::new() }),
            Command::Step(step) => {
                numbers.micros(Micros::from_duration(idle_expiry));
                memory(&mut numbers, &step.memory)?;
                self::step(&mut numbers, step)?;
                let words = vec![step.shard.as_str(), step.label.as_str()];
                Ok(Self { script: &STEP, numbers: numbers.into_bytes(), words })
            }
            Command::Change(change, seen) => {
                numbers.micros(Micros::from_duration(idle_expiry));
                memory(&mut numbers, seen)?;
                let [verb, policy] = self::change(&mut numbers, *change)?;
                Ok(Self { script: &CHANGE, numbers: numbers.into_bytes(), words: vec!["", verb, policy] })
            }
            _ => Err(unknown("command")),
        }
    }
}

fn memory(numbers: &mut Numbers, memory: &Memory) -> Result<(), InvalidInput> {
    numbers.micros(memory.at);
    numbers.exact("sequence number", memory.sequence)?;
    numbers.ticket(memory.ticket);
    numbers.ticket(memory.current);
    numbers.micros(memory.free_at);
    numbers.exact("revision", memory.revision)?;
    numbers.micros(memory.interval);
    numbers.push(memory.max_running.unwrap_or(0));
    numbers.push(memory.paused);
    numbers.micros(memory.held_until);
    numbers.micros(memory.longest_lead);
    Ok(())
}

fn step(numbers: &mut Numbers, step: &Step) -> Result<(), StateError> {
    numbers.exact("sequence number", step.sequence)?;
    numbers.micros(step.lease);
    numbers.micros(step.lead);
    numbers.push(match step.late {
        Late::NextSlot => 0_u32,
        Late::Requeue => 1,
        _ => return Err(unknown("late policy")),
    });
    numbers.push(step.running);
    numbers.ticket(step.given_up.unwrap_or(Ticket::NONE));
    let (lowest, last) = (step.ask.first(), step.ask.last());
    numbers.optional_ticket(step.then);
    numbers.optional_ticket(lowest.map(|ask| ask.ticket));
    numbers.ticket(step.then.or(last.map(|ask| ask.ticket)).unwrap_or(Ticket::NONE));
    let (request, count, weights): (_, _, &[u32]) = match &step.take {
        Some(take) => (take.request, take.count, &take.weights),
        None => (0, 0, &[]),
    };
    numbers.exact("request number", request)?;
    numbers.push(count);
    // A step has at most 512 of both together.
    numbers.push(step.ask.len() as u32);
    numbers.push(weights.len() as u32);
    for ask in &step.ask {
        numbers.ticket(ask.ticket);
        numbers.push(ask.weight);
    }
    for &weight in weights {
        numbers.push(weight);
    }
    Ok(())
}

/// The change and the policy for a queue that is there.
fn change(numbers: &mut Numbers, change: Change) -> Result<[&'static str; 2], StateError> {
    let (verb, interval, limit, policy, hold) = match change {
        Change::Open { interval, max_running, on_existing } => {
            ("open", interval, max_running, self::policy(on_existing)?, None)
        }
        Change::Set { interval, max_running } => ("set", interval, max_running, "", None),
        Change::Pause => ("pause", None, MaxRunning::Keep, "", None),
        Change::Resume => ("resume", None, MaxRunning::Keep, "", None),
        Change::Hold(duration) => ("hold", None, MaxRunning::Keep, "", Some(duration)),
        Change::Reset => ("reset", None, MaxRunning::Keep, "", None),
        _ => return Err(unknown("change")),
    };
    numbers.micros(interval.unwrap_or(Micros::ZERO));
    match limit {
        MaxRunning::Keep => numbers.push(-1),
        MaxRunning::Unlimited => numbers.push(0),
        MaxRunning::AtMost(limit) => numbers.push(limit),
        _ => return Err(unknown("running limit")),
    }
    numbers.micros(hold.unwrap_or(Micros::ZERO));
    Ok([verb, policy])
}

fn policy(on_existing: OnExisting) -> Result<&'static str, StateError> {
    Ok(match on_existing {
        OnExisting::Replace => "replace",
        OnExisting::Join => "join",
        OnExisting::Fail => "fail",
        OnExisting::Reset => "reset",
        _ => return Err(unknown("policy for a queue that is there")),
    })
}

/// Something that a later version of the contract added.
fn unknown(what: &str) -> StateError {
    StateError::new(
        StateErrorKind::Unsupported,
        format!("this version of interval-queue-redis does not know the {what}: upgrade it"),
    )
}
