//! Rules that are wrong on purpose: a simulation that finds nothing wrong with them proves nothing.

use interval_queue_contract::{Command, Memory, Micros, Reading, Record, Reply, StateError, Ticket, rules};

use crate::store::Rules;

/// One way in which the rules can be wrong.
#[derive(Clone, Copy, Debug)]
pub struct Sabotage {
    /// What it is called on the command line.
    pub name: &'static str,
    /// What is wrong.
    pub what: &'static str,
    /// The rules.
    pub rules: Rules,
}

/// All of them.
pub const SABOTAGES: [Sabotage; 7] = [
    sabotage("no-spacing", "a grant does not move the next slot", no_spacing),
    sabotage("no-weight", "a heavy job takes one interval", no_weight),
    sabotage("no-lift", "what shards remember of a lost record is not believed", no_lift),
    sabotage("no-sequence", "a step that arrives again is carried out again", no_sequence),
    sabotage("no-pause", "a pause is forgotten at the next step", no_pause),
    sabotage("set-current", "current is set to the ticket that was granted, not raised", set_current),
    sabotage("no-lease", "the dead never expire", no_lease),
];

const fn sabotage(name: &'static str, what: &'static str, rules: Rules) -> Sabotage {
    Sabotage { name, what, rules }
}

type Applied = Result<Reply, StateError>;

fn no_spacing(record: &mut Option<Record>, reading: &Reading, command: &Command) -> Applied {
    let before = record.as_ref().map(|record| record.free_at);
    let reply = rules::apply(record, reading, command)?;
    if let (Some(record), Some(before), Command::Step(_)) = (record, before, command) {
        record.free_at = before;
    }
    Ok(reply)
}

fn no_weight(record: &mut Option<Record>, reading: &Reading, command: &Command) -> Applied {
    let mut command = command.clone();
    if let Command::Step(step) = &mut command {
        step.ask.iter_mut().for_each(|ask| ask.weight = 1);
        step.take.iter_mut().flat_map(|take| &mut take.weights).for_each(|weight| *weight = 1);
    }
    rules::apply(record, reading, &command)
}

fn no_lift(record: &mut Option<Record>, reading: &Reading, command: &Command) -> Applied {
    let mut command = command.clone();
    if let (Some(record), Command::Step(step)) = (&record, &mut command) {
        step.memory = Memory { sequence: 0, ..Memory::of(record) };
        let highest = record.ticket;
        step.ask.retain(|ask| ask.ticket <= highest);
        step.then = step.then.filter(|then| *then <= highest);
    }
    rules::apply(record, reading, &command)
}

fn no_sequence(record: &mut Option<Record>, reading: &Reading, command: &Command) -> Applied {
    if let (Some(record), Command::Step(step)) = (record.as_mut(), command)
        && let Some(presence) = record.shards.get_mut(&step.shard)
    {
        presence.sequence = presence.sequence.min(step.sequence - 1).max(step.memory.sequence);
        presence.last_take = None;
    }
    rules::apply(record, reading, command)
}

fn no_pause(record: &mut Option<Record>, reading: &Reading, command: &Command) -> Applied {
    if let (Some(record), Command::Step(_)) = (record.as_mut(), command) {
        record.paused = false;
    }
    rules::apply(record, reading, command)
}

fn set_current(record: &mut Option<Record>, reading: &Reading, command: &Command) -> Applied {
    let reply = rules::apply(record, reading, command)?;
    if let (Some(record), Reply::Stepped(stepped)) = (record, &reply)
        && let Some(grant) = stepped.grants.last()
    {
        record.current = grant.ticket.max(Ticket::new(1));
    }
    Ok(reply)
}

fn no_lease(record: &mut Option<Record>, reading: &Reading, command: &Command) -> Applied {
    let reply = rules::apply(record, reading, command)?;
    if let (Some(record), Command::Step(_)) = (record, command) {
        record.shards.values_mut().for_each(|presence| presence.expires_at = Micros::MAX);
    }
    Ok(reply)
}
