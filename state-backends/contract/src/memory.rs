//! A shard's memory of the record. Every command carries it, to restore a lost record.

use serde::{Deserialize, Serialize};

use crate::{
    InvalidInput, Meters, Micros, Record, Settings, Ticket,
    limits::{CLOCK_TOLERANCE, check_lead},
};

/// The part of the record that a shard saw last. The default remembers nothing.
///
/// A shard sends it back unread but for the estimates below: instants of the store's clock mean
/// nothing to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Memory {
    /// Time of the reply on the store's clock. Zero: never.
    pub at: Micros,
    /// Sequence number of the command that got this reply.
    pub sequence: u64,
    /// The last ticket taken.
    pub ticket: Ticket,
    /// The highest ticket started.
    pub current: Ticket,
    /// State of the rates, without a hold.
    pub meters: Meters,
    /// Rises with every change of settings, pause or hold. Zero: no memory.
    pub revision: u64,
    /// Running limit of all shards. `None`: unlimited.
    pub max_running: Option<u32>,
    /// Whether the queue is paused.
    pub paused: bool,
    /// Nothing starts before this instant.
    pub held_until: Micros,
    /// The longest lead that a shard used.
    pub longest_lead: Micros,
    /// Number of shards in the record after the command, including the sender if present. No rule
    /// reads it.
    #[serde(default)]
    pub shards: u32,
}

impl Memory {
    /// The memory of `record`.
    pub fn of(record: &Record) -> Self {
        Self {
            at: record.seen_at,
            sequence: 0,
            ticket: record.ticket,
            current: record.current,
            meters: record.meters,
            revision: record.revision,
            max_running: record.max_running,
            paused: record.paused,
            held_until: record.held_until,
            longest_lead: record.longest_lead,
            shards: u32::try_from(record.shards.len()).unwrap_or(u32::MAX),
        }
    }

    /// Merges a reply. Concurrent replies may come in any order.
    pub fn learn(&mut self, seen: Memory) {
        // Meters go with settings: an older change may have reserved more.
        let mut newest = if seen.revision >= self.revision { seen } else { *self };
        let back = newest.at - seen.at;
        if back > CLOCK_TOLERANCE {
            // The clock was stepped back: instants of another reply move with it.
            newest.held_until = newest.held_until - back;
            newest.meters.move_back(back);
        }
        *self = Self {
            at: seen.at,
            shards: seen.shards,
            sequence: self.sequence.max(seen.sequence),
            ticket: self.ticket.max(seen.ticket),
            current: self.current.max(seen.current),
            ..newest
        };
    }

    /// Whether nothing is remembered.
    pub fn is_empty(&self) -> bool {
        self.revision == 0
    }

    /// A record may be lifted to the memory, so some record must match it.
    pub(crate) fn check(&self) -> Result<(), InvalidInput> {
        if self.current > self.ticket {
            return Err(InvalidInput::new(format!(
                "a memory of current {} above ticket {}: echo what a reply brought",
                self.current, self.ticket
            )));
        }
        // An otherwise empty memory still lifts the record's lead.
        check_lead(self.longest_lead)?;
        if self.is_empty() {
            return Ok(());
        }
        if self.max_running == Some(0) {
            return Err(InvalidInput::new("a memory of max_running 0: echo what a reply brought"));
        }
        self.meters.rates().check()
    }

    /// The rates and the running limit.
    pub fn settings(&self) -> Settings {
        Settings { rates: self.meters.rates(), max_running: self.max_running }
    }

    /// The shortest interval.
    pub fn interval(&self) -> Micros {
        self.meters.first().interval
    }

    /// The least time between two slots: zero with bursts.
    pub fn spacing(&self) -> Micros {
        let first = self.meters.first();
        if first.burst > 1 { Micros::ZERO } else { first.interval }
    }

    /// Maximum number of tickets before `ticket`; some may have no living owner.
    pub fn ahead_of(&self, ticket: Ticket) -> u64 {
        ticket.behind(self.current.after(1))
    }

    /// The slot, on the store's clock, of a job of this weight after `slots` jobs of weight 1, all
    /// used from [`at`](Memory::at) on.
    pub fn slot_behind(&self, slots: u64, weight: u32) -> Micros {
        self.meters.slot_behind(self.held_until, self.at, slots, 0, weight)
    }

    /// Time from [`at`](Memory::at) to the slot of `ticket` at weight 1 if every earlier ticket is
    /// used.
    pub fn slot_in(&self, ticket: Ticket) -> Micros {
        self.slot_behind(self.ahead_of(ticket), 1) - self.at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Meter;

    fn meters(tat: u64) -> Meters {
        [Meter { interval: Micros::new(100), burst: 1, tat: Micros::new(tat) }].into_iter().collect()
    }

    #[test]
    fn an_impossible_lead_is_rejected_without_other_memory() {
        let lead = |longest_lead| Memory { longest_lead, ..Memory::default() }.check();
        assert!(lead(Micros::from_millis(1000)).is_ok());
        assert!(lead(Micros::new(1_000_001)).unwrap_err().to_string().contains("lead"));
    }

    #[test]
    fn the_estimate_counts_the_tickets_ahead() {
        let memory = Memory {
            at: Micros::new(1_000),
            current: Ticket::new(4),
            meters: meters(1_500),
            ..Memory::default()
        };
        assert_eq!(memory.ahead_of(Ticket::new(5)), 0);
        assert_eq!(memory.ahead_of(Ticket::new(2)), 0);
        assert_eq!(memory.slot_in(Ticket::new(5)), Micros::new(500));
        assert_eq!(memory.slot_in(Ticket::new(8)), Micros::new(800));
        let held = Memory { held_until: Micros::new(9_000), ..memory };
        assert_eq!(held.slot_in(Ticket::new(5)), Micros::new(8_000));
        let idle = Memory { meters: meters(0), ..memory };
        assert_eq!(idle.slot_in(Ticket::new(6)), Micros::new(100));
    }

    #[test]
    fn a_hold_known_to_the_shard_alone_moves_back_with_the_clock() {
        let hour = Micros::from_millis(3_600_000);
        let known =
            Memory { at: hour * 3, revision: 7, held_until: hour * 3 + Micros::new(9), ..Memory::default() };
        let mut memory = known;
        memory.learn(Memory { at: hour, revision: 1, ..Memory::default() });
        assert_eq!((memory.revision, memory.at, memory.held_until), (7, hour, hour + Micros::new(9)));
        let mut memory = known;
        memory.learn(Memory { at: hour * 4, revision: 1, ..Memory::default() });
        assert_eq!(memory.held_until, known.held_until);
    }

    #[test]
    fn an_older_reply_that_comes_later_brings_no_old_slot_back() {
        let reset =
            Memory { at: Micros::new(2_000), revision: 2, meters: meters(2_100), ..Memory::default() };
        let older = Memory { at: Micros::new(1_900), revision: 1, meters: meters(9_000_000), ..reset };
        let mut memory = reset;
        memory.learn(older);
        assert_eq!((memory.revision, memory.meters), (2, reset.meters));
    }
}
