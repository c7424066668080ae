//! Changes that concern all shards: settings, pause, hold, reset.

use super::{Reading, clock, loss, not_found, presence};
use crate::{
    Change, Changed, MAX_LEAD, MaxRunning, Memory, Meter, Micros, OnExisting, Rates, Record, Settings,
    StateError, StateErrorKind,
};

pub(super) fn apply(
    stored: &mut Option<Record>,
    reading: &Reading,
    change: &Change,
    memory: &Memory,
) -> Result<Changed, StateError> {
    if let (None, Change::Open { rates, max_running, .. }) = (&stored, change)
        && memory.is_empty()
    {
        let rates = rates.ok_or_else(not_found)?;
        let settings = Settings { rates, max_running: max_running.over(None) };
        let record =
            stored.insert(Record { incarnation: reading.incarnation.clone(), ..Record::new(settings) });
        clock::arrive(record, reading.now);
        return Ok(Changed { memory: Memory::of(record), before: None });
    }
    if let (Some(record), Change::Open { on_existing: OnExisting::Fail, rates, max_running }) =
        (&stored, change)
    {
        refuse_other_settings(record.settings(), *rates, *max_running)?;
    }
    let record = match stored {
        Some(record) => record,
        None => stored.insert(loss::recall(memory).ok_or_else(not_found)?),
    };
    let now = clock::arrive(record, reading.now);
    let witness = loss::Witness { memory, sequence: None };
    loss::lift(record, now, &reading.incarnation, &witness);

    let before = record.settings();
    match *change {
        Change::Open { on_existing: OnExisting::Keep | OnExisting::Fail, .. } => {}
        Change::Delete(_) => {}
        Change::Open { rates, max_running, on_existing } => {
            if settings_over(before, rates, max_running) != before {
                set(record, now, rates, max_running);
            }
            if on_existing == OnExisting::Reset {
                reset(record, now);
            }
        }
        Change::Set { rates, max_running } => set(record, now, rates, max_running),
        Change::Pause => revise(record, |record| record.paused = true),
        Change::Resume => resume(record, now),
        Change::Hold(duration) => hold(record, now + duration),
        Change::Reset => reset(record, now),
    }
    Ok(Changed { memory: Memory::of(record), before: Some(before) })
}

fn refuse_other_settings(
    stored: Settings,
    rates: Option<Rates>,
    max_running: MaxRunning,
) -> Result<(), StateError> {
    let wanted = settings_over(stored, rates, max_running);
    if wanted == stored {
        return Ok(());
    }
    let text = format!("the queue is there with {stored}; wanted was {wanted}");
    Err(StateError::new(StateErrorKind::Conflict, text))
}

/// Numbers the change by time, so that it is the newest even on a record that has forgotten others.
/// Setting an equal value counts: a shard may remember another.
fn revise(record: &mut Record, change: impl FnOnce(&mut Record)) {
    change(record);
    record.revision = (Micros::new(record.revision) + Micros::new(1)).max(record.seen_at).get();
}

fn set(record: &mut Record, now: Micros, rates: Option<Rates>, max_running: MaxRunning) {
    let before = record.settings();
    let Settings { rates, max_running } = settings_over(before, rates, max_running);
    revise(record, |record| {
        if rates != before.rates {
            record.meters.change(&rates, record.last_slot, now);
            record.break_line(record.current.after(1));
        }
        let running = presence::running(record);
        let was_full = presence::is_full(record, running);
        record.max_running = max_running;
        if was_full && !presence::is_full(record, running) {
            presence::count_slots_from(record, now);
        }
    });
}

fn resume(record: &mut Record, now: Micros) {
    if record.paused {
        presence::count_slots_from(record, now);
    }
    revise(record, |record| record.paused = false);
}

fn settings_over(stored: Settings, rates: Option<Rates>, max_running: MaxRunning) -> Settings {
    Settings { rates: rates.unwrap_or(stored.rates), max_running: max_running.over(stored.max_running) }
}

fn hold(record: &mut Record, until: Micros) {
    if until <= record.held_until {
        return;
    }
    revise(record, |record| {
        record.held_until = until;
        record.break_line(record.current.after(1));
    });
}

fn reset(record: &mut Record, now: Micros) {
    revise(record, |record| {
        record.paused = false;
        record.held_until = Micros::ZERO;
        let at_most_empty = |meter: &mut Meter| {
            let burst = meter.interval * u64::from(meter.burst);
            meter.tat = meter.tat.min(now + MAX_LEAD + burst);
        };
        record.meters.iter_mut().for_each(at_most_empty);
        record.break_line(record.ticket.after(1));
        record.gaps_until = record.ticket;
        record.longest_lead = Micros::ZERO;
        record.shards.clear();
    });
}
