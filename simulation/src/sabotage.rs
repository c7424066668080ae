//! Rules that are wrong on purpose: a simulation that finds nothing wrong with them proves nothing.

use interval_queue_contract::{
    Command, Memory, Meter, Meters, Micros, Reading, Record, Reply, StateError, Ticket, rules,
};

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
pub const SABOTAGES: [Sabotage; 12] = [
    sabotage("no-spacing", "a grant does not move the next slot", no_spacing),
    sabotage("no-weight", "a heavy job takes one interval", no_weight),
    sabotage("no-lift", "what shards remember of a lost record is not believed", no_lift),
    sabotage("no-sequence", "a step that arrives again is carried out again", no_sequence),
    sabotage("no-pause", "a pause is forgotten at the next step", no_pause),
    sabotage("set-current", "current is set to the ticket that was granted, not raised", set_current),
    sabotage("no-lease", "the dead never expire", no_lease),
    sabotage("no-quota", "a quota is not charged", no_quota),
    sabotage("free-own-slot", "a slot that a ticket owned is charged to no quota", free_own_slot),
    sabotage("loss-refills", "a server that was restarted gives every burst back", loss_refills),
    sabotage("set-refills", "other rates begin with all of their bursts", set_refills),
    sabotage("burst-ends-hold", "a hold is forgotten where there are bursts", burst_ends_hold),
];

const fn sabotage(name: &'static str, what: &'static str, rules: Rules) -> Sabotage {
    Sabotage { name, what, rules }
}

type Applied = Result<Reply, StateError>;

fn no_spacing(record: &mut Option<Record>, reading: &Reading, command: &Command) -> Applied {
    let before = record.as_ref().map(|record| record.meters);
    let reply = rules::apply(record, reading, command)?;
    if let (Some(record), Some(before), Command::Step(_)) = (record, before, command) {
        record.meters = before;
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

/// Changes the meters without the rules; shards get these values then.
fn tamper(record: &mut Option<Record>, reply: &mut Reply, change: impl FnOnce(&Record) -> Meters) {
    let Some(record) = record else { return };
    record.meters = change(record);
    match reply {
        Reply::Stepped(stepped) => stepped.memory.meters = record.meters,
        Reply::Changed(changed) => changed.memory.meters = record.meters,
        _ => {}
    }
}

/// Of a command that neither set rates nor found a loss.
fn before_it(before: Option<Record>, after: Option<&Record>) -> Option<Meters> {
    let (before, after) = (before?, after?);
    let same = before.meters.rates() == after.meters.rates() && before.lifted_at == after.lifted_at;
    same.then_some(before.meters)
}

fn no_quota(record: &mut Option<Record>, reading: &Reading, command: &Command) -> Applied {
    let before = record.clone();
    let mut reply = rules::apply(record, reading, command)?;
    if let Some(before) = before_it(before, record.as_ref()) {
        tamper(record, &mut reply, |record| {
            [record.meters.first()].into_iter().chain(before.iter().copied().skip(1)).collect()
        });
    }
    Ok(reply)
}

fn free_own_slot(record: &mut Option<Record>, reading: &Reading, command: &Command) -> Applied {
    let before = record.clone();
    let mut reply = rules::apply(record, reading, command)?;
    if let Some(before) = before_it(before, record.as_ref()) {
        tamper(
            record,
            &mut reply,
            |now| if now.meters.first() == before.first() { before } else { now.meters },
        );
    }
    Ok(reply)
}

fn loss_refills(record: &mut Option<Record>, reading: &Reading, command: &Command) -> Applied {
    let before = record.as_ref().map(|record| record.lifted_at);
    let mut reply = rules::apply(record, reading, command)?;
    if record.as_ref().zip(before).is_some_and(|(record, before)| record.lifted_at != before) {
        tamper(record, &mut reply, |record| Meters::new(&record.meters.rates()));
    }
    Ok(reply)
}

fn set_refills(record: &mut Option<Record>, reading: &Reading, command: &Command) -> Applied {
    let before = record.as_ref().map(|record| record.meters.rates());
    let mut reply = rules::apply(record, reading, command)?;
    if record.as_ref().zip(before).is_some_and(|(record, before)| record.meters.rates() != before) {
        tamper(record, &mut reply, |record| {
            let owing_one = |meter: &Meter| Meter { tat: record.last_slot + meter.interval, ..*meter };
            record.meters.iter().map(owing_one).collect()
        });
    }
    Ok(reply)
}

fn burst_ends_hold(record: &mut Option<Record>, reading: &Reading, command: &Command) -> Applied {
    let held =
        record.as_ref().filter(|record| record.meters.first().burst > 1).map(|record| record.held_until);
    if let (Some(record), Some(_), Command::Step(_)) = (record.as_mut(), held, command) {
        record.held_until = Micros::ZERO;
    }
    let reply = rules::apply(record, reading, command)?;
    if let (Some(record), Some(held), Command::Step(_)) = (record, held, command) {
        record.held_until = record.held_until.max(held);
    }
    Ok(reply)
}
