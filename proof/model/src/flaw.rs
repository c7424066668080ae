//! Wrong variants of the rules and of the shards. The rules themselves stay as they are: a flaw tampers with
//! what goes into them and with what comes out.

use interval_queue_contract::{
    Command, Memory, Meter, Meters, Micros, Reading, Record, Reply, StateError, Step, Stepped, Ticket, rules,
};

use crate::setup::{NOW, TICK};

/// What is wrong with the rules or the shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// Rules: a ticket that missed its slot gets no other one.
    NoLateRule,
    /// Rules: the presence of a shard never ends.
    NoLease,
    /// Rules: a grant sets `current` instead of raising it.
    CurrentIsSet,
    /// Rules: overtaken tickets own their slot whatever moved slots since (`line_from` is forgotten).
    NoLineFrom,
    /// Rules: a grant moves `free_at` by one interval, whatever the job weighs.
    WeightForgotten,
    /// Rules: grants are given without a look at the pause.
    PauseIgnored,
    /// Rules: a step that was overtaken by a later one is not refused.
    NoSequence,
    /// Rules: what shards remember lifts nothing.
    NoLift,
    /// Rules: grants leave all meters but the first as they are.
    QuotaForgotten,
    /// Rules: an overtaken ticket owns its slot whatever the quota says.
    OwnSlotBeyondQuota,
    /// Rules: a record that forgot something gets all of its bursts back.
    LossRefills,
    /// Rules: a hold is not looked at while a burst is there.
    BurstEndsHold,
    /// Shard: a step without an answer is sent again as it was.
    ResendsAsItWas,
    /// Shard: the same, and it uses both answers if the first one comes late.
    TakesBothAnswers,
    /// Shard: it supposes that a take without an answer brought the next tickets.
    GuessesItsTickets,
    /// Shard: it starts when the state does not answer.
    FailsOpen,
}

impl Flaw {
    /// Whether it is a shard that sends a step again as it was.
    pub(crate) fn resends(self) -> bool {
        matches!(self, Self::ResendsAsItWas | Self::TakesBothAnswers)
    }
}

/// The real rules, unless a flaw tampers with them.
pub(crate) fn apply(
    flaw: Option<Flaw>,
    stored: &mut Option<Record>,
    reading: &Reading,
    step: &Step,
) -> Result<Stepped, StateError> {
    let changed = |stored: &mut Option<Record>, step| {
        rules::apply(stored, reading, &Command::Step(step)).and_then(Reply::stepped)
    };
    let real = |stored: &mut Option<Record>| changed(stored, step.clone());
    let Some(before) = stored.clone() else {
        return real(stored);
    };
    match flaw {
        Some(Flaw::NoLateRule) => {
            let reply = real(stored)?;
            let late = late_grant(&before, stored.as_ref(), &reply);
            if !late {
                return Ok(reply);
            }
            *stored = Some(before);
            let then = step.ask.first().map(|ask| ask.ticket);
            changed(stored, Step { ask: Vec::new(), then, ..step.clone() })
        }
        Some(Flaw::NoLease) => {
            let reply = real(stored)?;
            let presences = stored.iter_mut().flat_map(|record| record.shards.values_mut());
            presences.for_each(|presence| presence.expires_at = NOW + TICK * 1000);
            Ok(reply)
        }
        Some(Flaw::CurrentIsSet) => {
            let reply = real(stored)?;
            if let (Some(record), Some(grant)) = (stored, reply.grants.last()) {
                record.current = grant.ticket;
            }
            Ok(reply)
        }
        Some(Flaw::NoLineFrom) => {
            let reply = real(stored)?;
            if let Some(record) = stored {
                record.line_from = Ticket::NONE;
            }
            Ok(reply)
        }
        Some(Flaw::WeightForgotten) => {
            let reply = real(stored)?;
            if let Some(record) = stored.as_mut().filter(|record| record.meters != before.meters) {
                let last = step.asked(reply.taken).take(reply.grants.len()).last();
                let more = last.map_or(0, |ask| ask.weight - 1);
                for meter in record.meters.iter_mut() {
                    meter.tat = meter.tat - meter.interval * u64::from(more);
                }
            }
            Ok(reply)
        }
        Some(Flaw::PauseIgnored) => {
            if let Some(record) = stored {
                record.paused = false;
            }
            let mut reply = real(stored)?;
            if let Some(record) = stored {
                record.paused = before.paused;
            }
            reply.memory.paused = before.paused;
            Ok(reply)
        }
        Some(Flaw::QuotaForgotten) => {
            let reply = real(stored)?;
            Ok(measured(stored, reply, |now| {
                [now.first()].into_iter().chain(before.meters.iter().copied().skip(1)).collect()
            }))
        }
        Some(Flaw::OwnSlotBeyondQuota) => {
            let overtaken = step.ask.first().is_some_and(|ask| ask.ticket <= before.current);
            let mut memory = step.memory;
            for meters in stored.iter_mut().map(|record| &mut record.meters).chain([&mut memory.meters]) {
                let quotas = meters.iter_mut().skip(1).filter(|_| overtaken);
                quotas.for_each(|meter| meter.tat = Micros::ZERO);
            }
            let reply = changed(stored, Step { memory, ..step.clone() })?;
            let granted = reply.grants.len() as u64;
            let charged = |(n, now): (usize, &Meter)| match before.meters.get(n) {
                Some(before) if n > 0 && overtaken => {
                    Meter { tat: now.tat.max(before.tat + before.interval * granted), ..*now }
                }
                _ => *now,
            };
            Ok(measured(stored, reply, |now| now.iter().enumerate().map(charged).collect()))
        }
        Some(Flaw::LossRefills) => {
            let reply = real(stored)?;
            let lifted = stored.as_ref().is_some_and(|record| record.lifted_at != before.lifted_at);
            let full = |now: Meters| if lifted { Meters::new(&now.rates()) } else { now };
            Ok(measured(stored, reply, full))
        }
        Some(Flaw::BurstEndsHold) => {
            if let Some(record) = stored.as_mut().filter(|record| record.meters.first().burst > 1) {
                record.held_until = Micros::ZERO;
            }
            let mut reply = real(stored)?;
            if let Some(record) = stored {
                record.held_until = before.held_until;
            }
            reply.memory.held_until = before.held_until;
            Ok(reply)
        }
        Some(Flaw::NoSequence) => {
            let known = stored.as_mut().and_then(|record| record.shards.get_mut(&step.shard));
            if let Some(presence) = known {
                presence.sequence = 0;
            }
            let memory = Memory { sequence: 0, ..step.memory };
            changed(stored, Step { memory, ..step.clone() })
        }
        Some(Flaw::NoLift) => {
            let memory = Memory::default();
            changed(stored, Step { memory, ..step.clone() })
        }
        _ => real(stored),
    }
}

/// Tampers with the meters; the shard hears what they say then.
fn measured(stored: &mut Option<Record>, reply: Stepped, change: impl FnOnce(Meters) -> Meters) -> Stepped {
    let Some(record) = stored else { return reply };
    record.meters = change(record.meters);
    Stepped { memory: Memory { meters: record.meters, ..reply.memory }, ..reply }
}

/// Whether the first ticket was granted after it had missed its slot: its own slot would not have moved
/// the first meter.
fn late_grant(before: &Record, after: Option<&Record>, reply: &Stepped) -> bool {
    let overtaken = reply.grants.first().is_some_and(|grant| grant.ticket <= before.current);
    overtaken && after.is_some_and(|after| after.meters.first() != before.meters.first())
}
