//! Commands as the arguments of scripts. The head of each script lists what it expects.

use std::time::Duration;

use interval_queue_contract::{
    Change, Command, InvalidInput, Late, MaxRunning, Memory, Micros, OnExisting, StateError, StateErrorKind,
    Step,
};

use crate::script::{CHANGE, READ, STEP, Script};

/// The script that carries out a command, and its arguments.
///
/// # Errors
///
/// The command breaks a bound, or is of a kind that this version does not know.
pub(crate) fn encode(
    command: &Command,
    idle_expiry: Duration,
) -> Result<(&'static Script, Vec<String>), StateError> {
    command.check()?;
    let mut args = Args(vec![idle_expiry.as_millis().to_string()]);
    let script = match command {
        Command::Read => return Ok((&READ, Vec::new())),
        Command::Step(step) => {
            args.memory(&step.memory)?;
            args.step(step)?;
            &STEP
        }
        Command::Change(change, memory) => {
            args.memory(memory)?;
            args.change(*change)?;
            &CHANGE
        }
        _ => return Err(unknown("command")),
    };
    Ok((script, args.0))
}

struct Args(Vec<String>);

impl Args {
    fn push(&mut self, value: impl ToString) {
        self.0.push(value.to_string());
    }

    fn optional(&mut self, value: Option<impl ToString>) {
        self.0.push(value.map_or_else(String::new, |value| value.to_string()));
    }

    fn micros(&mut self, value: Micros) {
        self.push(value.get());
    }

    /// A number that Lua must keep exactly.
    fn exact(&mut self, what: &str, value: u64) -> Result<(), InvalidInput> {
        let most = Micros::MAX.get();
        if value > most {
            return Err(InvalidInput::new(format!("{what} {value} is out of range: at most {most}")));
        }
        self.push(value);
        Ok(())
    }

    fn memory(&mut self, memory: &Memory) -> Result<(), InvalidInput> {
        self.micros(memory.at);
        self.exact("sequence number", memory.sequence)?;
        self.push(memory.ticket);
        self.push(memory.current);
        self.micros(memory.free_at);
        self.exact("revision", memory.revision)?;
        self.micros(memory.interval);
        self.optional(memory.max_running);
        self.push(u8::from(memory.paused));
        self.micros(memory.held_until);
        self.micros(memory.longest_lead);
        Ok(())
    }

    fn step(&mut self, step: &Step) -> Result<(), StateError> {
        self.push(&step.shard);
        self.push(&step.label);
        self.exact("sequence number", step.sequence)?;
        self.micros(step.lease);
        self.micros(step.lead);
        self.push(match step.late {
            Late::NextSlot => "next-slot",
            Late::Requeue => "requeue",
            _ => return Err(unknown("late policy")),
        });
        self.push(step.running);
        self.optional(step.given_up);
        self.optional(step.then);
        match &step.take {
            Some(take) => {
                self.exact("request number", take.request)?;
                self.push(take.count);
            }
            None => self.0.extend([String::new(), String::new()]),
        }
        let weights: &[u32] = step.take.as_ref().map_or(&[], |take| &take.weights);
        self.push(step.ask.len());
        self.push(weights.len());
        for ask in &step.ask {
            self.push(ask.ticket);
            self.push(ask.weight);
        }
        self.0.extend(weights.iter().map(u32::to_string));
        Ok(())
    }

    fn change(&mut self, change: Change) -> Result<(), StateError> {
        let (verb, interval, limit, on_existing, hold) = match change {
            Change::Open { interval, max_running, on_existing } => {
                ("open", interval, max_running, policy(on_existing)?, None)
            }
            Change::Set { interval, max_running } => ("set", interval, max_running, "", None),
            Change::Pause => ("pause", None, MaxRunning::Keep, "", None),
            Change::Resume => ("resume", None, MaxRunning::Keep, "", None),
            Change::Hold(duration) => ("hold", None, MaxRunning::Keep, "", Some(duration)),
            Change::Reset => ("reset", None, MaxRunning::Keep, "", None),
            _ => return Err(unknown("change")),
        };
        self.push(verb);
        self.optional(interval.map(Micros::get));
        self.push(match limit {
            MaxRunning::Keep => "keep".to_owned(),
            MaxRunning::Unlimited => String::new(),
            MaxRunning::AtMost(limit) => limit.to_string(),
            _ => return Err(unknown("running limit")),
        });
        self.push(on_existing);
        self.optional(hold.map(Micros::get));
        Ok(())
    }
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
