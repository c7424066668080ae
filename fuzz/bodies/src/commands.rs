//! Records, readings and commands from bytes: mostly plausible, with numbers at all ends of their
//! ranges.

use arbitrary::{Result, Unstructured};
use interval_queue::{
    MaxRunning,
    contract::{
        Ask, Change, Command, Deletion, Grant, Label, LastTake, Late, LateStart, MAX_INTERVAL, MAX_LEAD,
        MAX_LEASE, MAX_RATES, MAX_TAKE, MIN_LEASE, Memory, Meters, Micros, OnExisting, Presence, Rate, Rates,
        Reading, Record, Settings, ShardId, Step, Take, Ticket,
    },
};

/// Small, near another, or at an end.
fn number(u: &mut Unstructured<'_>) -> Result<u64> {
    const LAST: u64 = Ticket::MAX.get();
    Ok(match u.int_in_range(0..=5)? {
        0..=2 => u.int_in_range(0..=40)?,
        3 => LAST - u.int_in_range(0..=5)?,
        4 => 1_000_000 + u.int_in_range(0..=3_000_000)?,
        _ => u.arbitrary()?,
    })
}

fn micros(u: &mut Unstructured<'_>) -> Result<Micros> {
    number(u).map(Micros::new)
}

fn ticket(u: &mut Unstructured<'_>) -> Result<Ticket> {
    number(u).map(Ticket::new)
}

/// Within the bounds, or now and then anything.
fn within(u: &mut Unstructured<'_>, least: Micros, most: Micros) -> Result<Micros> {
    Ok(match u.int_in_range(0..=9)? {
        0 => least,
        1 => most,
        2 => micros(u)?,
        3..=6 => micros(u)?.clamp(least, most),
        _ => Micros::new(u.int_in_range(least.get()..=most.get())?),
    })
}

/// One rate as a rule, or several; an impossible combination becomes one.
fn rates(u: &mut Unstructured<'_>) -> Result<Rates> {
    let count = if u.ratio(1, 3)? { u.int_in_range(1..=MAX_RATES)? } else { 1 };
    let rates = (0..count).map(|_| {
        let burst = if u.arbitrary()? { 1 } else { few(u)? };
        Ok(Rate { interval: within(u, Micros::new(1), MAX_INTERVAL)?, burst })
    });
    let rates = rates.collect::<Result<Vec<_>>>()?;
    Ok(Rates::of(rates.iter().copied()).unwrap_or_else(|_| Rates::every(rates[0].interval)))
}

fn meters(u: &mut Unstructured<'_>, rates: &Rates) -> Result<Meters> {
    let mut meters = Meters::new(rates);
    for meter in meters.iter_mut() {
        meter.tat = micros(u)?;
    }
    Ok(meters)
}

fn few(u: &mut Unstructured<'_>) -> Result<u32> {
    Ok(match u.int_in_range(0..=7)? {
        0 => u.arbitrary()?,
        1 => 1_000_000,
        _ => u.int_in_range(0..=4)?,
    })
}

fn shard(u: &mut Unstructured<'_>) -> Result<ShardId> {
    Ok(ShardId::new(*u.choose(&["a", "b", "c", "d"])?).unwrap())
}

fn optional<T>(u: &mut Unstructured<'_>, of: fn(&mut Unstructured<'_>) -> Result<T>) -> Result<Option<T>> {
    if u.arbitrary()? { of(u).map(Some) } else { Ok(None) }
}

/// `None`: the bytes give no valid record.
pub(crate) fn record(u: &mut Unstructured<'_>) -> Result<Option<Record>> {
    let settings = Settings { rates: rates(u)?, max_running: optional(u, few)? };
    let mut record = Record::new(settings);
    record.paused = u.ratio(1, 5)?;
    record.revision = number(u)?;
    record.current = ticket(u)?;
    record.ticket = record.current.after(number(u)?);
    record.line_from = ticket(u)?;
    record.gaps_until = ticket(u)?;
    record.longest_lead = within(u, Micros::ZERO, MAX_LEAD)?;
    record.meters = meters(u, &settings.rates)?;
    for instant in [&mut record.last_slot, &mut record.held_until, &mut record.lifted_at, &mut record.seen_at]
    {
        *instant = micros(u)?;
    }
    for _ in 0..u.int_in_range(0..=4)? {
        let presence = Presence {
            head: optional(u, ticket)?.map(|head| head.min(record.ticket)),
            weight: u.int_in_range(1..=3)?,
            running: few(u)?,
            expires_at: micros(u)?,
            sequence: number(u)?,
            last_take: optional(u, last_take)?
                .filter(|_| record.ticket > Ticket::NONE)
                .map(|take| within_ticket(take, record.ticket)),
            granted: (0..u.int_in_range(0..=2)?)
                .map(|_| Ok(Grant { ticket: ticket(u)?.min(record.current), slot: micros(u)? }))
                .collect::<Result<_>>()?,
            label: Label::default(),
        };
        record.shards.insert(shard(u)?, presence);
    }
    Ok(record.check().is_ok().then_some(record))
}

fn last_take(u: &mut Unstructured<'_>) -> Result<LastTake> {
    Ok(LastTake { request: number(u)?, first: ticket(u)?, count: few(u)? })
}

fn within_ticket(take: LastTake, ticket: Ticket) -> LastTake {
    let first = take.first.clamp(Ticket::new(1), ticket);
    let room = u32::try_from(ticket.behind(first) + 1).unwrap_or(u32::MAX);
    LastTake { first, count: take.count.clamp(1, room.min(MAX_TAKE)), ..take }
}

pub(crate) fn reading(u: &mut Unstructured<'_>) -> Result<Reading> {
    Ok(Reading { now: micros(u)?, incarnation: (*u.choose(&["", "", "other"])?).to_owned() })
}

/// Some break a bound. `last`: the memory of the last reply.
pub(crate) fn command(u: &mut Unstructured<'_>, last: Memory) -> Result<Command> {
    Ok(match u.int_in_range(0..=9)? {
        0..=5 => step(u, last)?,
        6..=8 => Command::Change(change(u)?, memory(u, last)?),
        _ => Command::Read,
    })
}

fn memory(u: &mut Unstructured<'_>, last: Memory) -> Result<Memory> {
    match u.int_in_range(0..=3)? {
        0 => return Ok(Memory::default()),
        1 | 2 => return Ok(last),
        _ => {}
    }
    let current = ticket(u)?;
    Ok(Memory {
        at: micros(u)?,
        sequence: number(u)?,
        ticket: current.after(number(u)?),
        current,
        meters: {
            let rates = rates(u)?;
            meters(u, &rates)?
        },
        revision: number(u)?,
        max_running: optional(u, few)?,
        paused: u.arbitrary()?,
        held_until: micros(u)?,
        longest_lead: within(u, Micros::ZERO, MAX_LEAD)?,
        shards: few(u)?,
    })
}

fn step(u: &mut Unstructured<'_>, last: Memory) -> Result<Command> {
    let mut asks = (0..u.int_in_range(0..=4)?)
        .map(|_| Ok(Ask { ticket: ticket(u)?, weight: few(u)?.max(u.int_in_range(0..=1)?) }))
        .collect::<Result<Vec<_>>>()?;
    asks.sort_unstable_by_key(|ask| ask.ticket);
    asks.dedup_by_key(|ask| ask.ticket);
    if u.ratio(1, 20)? {
        asks.reverse();
    }
    Ok(Command::Step(Step {
        shard: shard(u)?,
        label: Label::default(),
        sequence: number(u)?,
        memory: memory(u, last)?,
        lease: within(u, MIN_LEASE, MAX_LEASE)?,
        lead: within(u, Micros::ZERO, MAX_LEAD)?,
        take: optional(u, take)?,
        ask: asks,
        then: if u.ratio(1, 3)? { Some(ticket(u)?) } else { None },
        late: if u.arbitrary()? { Late::NextSlot } else { Late::Requeue },
        running: few(u)?,
        given_up: optional(u, ticket)?,
        late_start: optional(u, |u| Ok(LateStart { ticket: ticket(u)?, at: micros(u)? }))?,
    }))
}

fn take(u: &mut Unstructured<'_>) -> Result<Take> {
    let weights = (0..u.int_in_range(0..=3)?).map(|_| few(u)).collect::<Result<_>>()?;
    Ok(Take { request: number(u)?, count: few(u)?, weights })
}

fn change(u: &mut Unstructured<'_>) -> Result<Change> {
    Ok(match u.int_in_range(0..=7)? {
        0 => Change::Pause,
        1 => Change::Resume,
        2 => Change::Reset,
        3 => Change::Hold(within(u, Micros::ZERO, MAX_INTERVAL)?),
        4 => Change::Set { rates: optional(u, rates)?, max_running: max_running(u)? },
        7 => {
            let idle = micros(u)?;
            Change::Delete(*u.choose(&[Deletion::Unused, Deletion::Idle(idle), Deletion::Forced])?)
        }
        _ => {
            let policies = [OnExisting::Replace, OnExisting::Keep, OnExisting::Fail, OnExisting::Reset];
            Change::Open {
                rates: optional(u, rates)?,
                max_running: max_running(u)?,
                on_existing: *u.choose(&policies)?,
            }
        }
    })
}

fn max_running(u: &mut Unstructured<'_>) -> Result<MaxRunning> {
    Ok(match u.int_in_range(0..=2)? {
        0 => MaxRunning::Keep,
        1 => MaxRunning::Unlimited,
        _ => MaxRunning::AtMost(few(u)?),
    })
}
