//! One step of a shard: takes tickets, requests slots, reports the rest.

use super::{Reading, again, clock, loss, not_found, presence, slot::Counter};
use crate::{
    Ask, Grant, LastTake, LateStart, Memory, Micros, Presence, Record, StateError, StateErrorKind, Step,
    Stepped, Take, Taken, Ticket,
};

pub(super) fn apply(
    stored: &mut Option<Record>,
    reading: &Reading,
    step: &Step,
) -> Result<Stepped, StateError> {
    let known = stored.as_ref().and_then(|record| record.shards.get(&step.shard));
    refuse(stored.as_ref(), known, step)?;
    let sequence = known.map(|known| known.sequence);
    let record = match stored {
        Some(record) => record,
        None => stored.insert(loss::recall(&step.memory).ok_or_else(not_found)?),
    };

    let now = clock::arrive(record, reading.now);
    let witness = loss::Witness { memory: &step.memory, sequence };
    record.longest_lead = record.longest_lead.max(step.lead);
    loss::lift(record, now, &reading.incarnation, &witness);
    let was_full = presence::is_full(record, presence::running(record));
    // Until this shard is inserted, the record lists only the others.
    let known = record.shards.remove(&step.shard);
    presence::expire(record, now);
    record_dropped(record, known.as_ref(), step);

    if let Some(late) = step.late_start {
        move_on(record, late, now);
    }

    let last_take = known.as_ref().and_then(|known| known.last_take);
    let last_take = step.take.as_ref().map(|wanted| take(record, last_take, wanted)).or(last_take);
    let taken =
        step.take.as_ref().and(last_take).map(|taken| Taken { first: taken.first, count: taken.count });
    let others = presence::Others::of(record);
    let running = others.running + u64::from(step.running);
    if was_full && !presence::is_full(record, running) {
        presence::count_slots_from(record, now);
    }

    let unreceived = again::unreceived(known, step);
    let mut counter = Counter { record, others, now, lead: step.lead, late: step.late, running, unreceived };
    let mut grants = Vec::new();
    let mut head = None;
    let mut refused = None;
    for ask in step.asked(taken) {
        match counter.grant(ask) {
            Ok(slot) => grants.push(Grant { ticket: ask.ticket, slot }),
            Err(reason) => {
                (head, refused) = (Some(ask), Some(reason));
                break;
            }
        }
    }
    let head = head.or_else(|| left(step, taken).map(|ticket| Ask { ticket, weight: 1 }));
    let wait = head.map(|head| counter.wait(head, refused, step.lease));

    // Without a limit no shard must know when a job ends, so a short job needs no second command.
    let granted = u32::try_from(grants.len()).unwrap_or(u32::MAX);
    let counted = record.max_running.is_some() && granted > 0;
    let present = head.is_some() || step.running > 0 || counted;
    if present {
        let presence = Presence {
            head: head.map(|ask| ask.ticket),
            weight: head.map_or(1, |ask| ask.weight),
            running: step.running.saturating_add(granted),
            expires_at: now + step.lease,
            sequence: step.sequence,
            last_take,
            granted: again::remembered(record, &grants, step.asked(taken)),
            label: step.label.clone(),
        };
        record.shards.insert(step.shard.clone(), presence);
    }
    let memory = Memory { sequence: step.sequence, ..Memory::of(record) };
    Ok(Stepped { memory, taken, grants, wait, present })
}

/// All that can fail, before any change.
fn refuse(record: Option<&Record>, known: Option<&Presence>, step: &Step) -> Result<(), StateError> {
    if let Some(known) = known.filter(|known| known.sequence >= step.sequence) {
        return Err(StateError::new(
            StateErrorKind::Superseded,
            format!("step {} of shard {} came after step {}", step.sequence, step.shard, known.sequence),
        ));
    }
    let last = record.map_or(Ticket::NONE, |record| record.ticket).max(step.memory.ticket).max(highest(step));
    let wanted = step.take.as_ref().map_or(0, |take| u64::from(take.count));
    if wanted > Ticket::MAX.behind(last) {
        return Err(StateError::new(StateErrorKind::Invalid, format!("no tickets are left after {last}")));
    }
    Ok(())
}

fn record_dropped(record: &mut Record, known: Option<&Presence>, step: &Step) {
    record.ticket = record.ticket.max(highest(step));
    if let Some(given_up) = step.given_up {
        record.gaps_until = record.gaps_until.max(given_up.min(record.ticket));
    }
    // Another shard may hold equal tickets: no overtaken ticket owns a slot.
    let head = known.and_then(|known| known.head);
    if step.ask.first().is_some_and(|ask| head.is_none_or(|head| head > ask.ticket)) {
        record.break_line(record.ticket.after(1));
    }
}

/// Keeps the next slot an interval after a late start, unless it is taken.
fn move_on(record: &mut Record, late: LateStart, now: Micros) {
    let line = record.meters.first();
    let next = late.at.min(now) + line.interval;
    if line.burst == 1 && late.ticket == record.current && line.tat < next {
        record.meters[0].tat = next;
        record.last_slot = record.last_slot.max(late.at.min(now));
        record.break_line(record.current.after(1));
    }
}

fn highest(step: &Step) -> Ticket {
    step.then.or(step.ask.last().map(|ask| ask.ticket)).unwrap_or(Ticket::NONE)
}

fn take(record: &mut Record, last: Option<LastTake>, wanted: &Take) -> LastTake {
    if let Some(last) = last.filter(|last| last.request == wanted.request) {
        return last;
    }
    let first = record.ticket.after(1);
    record.ticket = record.ticket.after(u64::from(wanted.count));
    LastTake { request: wanted.request, first, count: wanted.count }
}

/// The lowest ticket that remains if all requests are granted.
fn left(step: &Step, taken: Option<Taken>) -> Option<Ticket> {
    let asked = step.take.as_ref().map_or(0, |take| take.weights.len() as u64);
    let new = taken.filter(|taken| u64::from(taken.count) > asked).map(|taken| taken.first.after(asked));
    step.then.or(new)
}
