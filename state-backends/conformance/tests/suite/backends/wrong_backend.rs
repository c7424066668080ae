//! Backends that are atomic, and wrong in one other way each.

use std::collections::BTreeMap;

use interval_queue_contract::{Label, Presence, Ticket};
use tokio::sync::Mutex;

use super::*;

/// What a backend does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    Nothing,
    DropsLabels,
    /// Letters beyond ASCII become question marks.
    ManglesLabels,
    DropsGaps,
    DropsTheLastTake,
    DropsTheGrants,
    /// Its instants are of milliseconds.
    RoundsInstants,
    /// Its counts are signed.
    ClipsCounts,
    /// It carries out again what has happened.
    AppliesTwice,
    /// It leaves a mark of what it refuses.
    StoresRefused,
    /// It stores after some replies only.
    ForgetsSome,
    /// It says that each reply comes from another server.
    ChangesIncarnation,
    /// What was deleted stays stored.
    KeepsDeleted,
    /// The clock of its looks is ahead of that of its other commands.
    LooksAhead,
    /// It reads the clock before it waits for the lock.
    ReadsTheClockEarly,
}

/// Locks, applies and stores, but for what is wrong. A command takes a while, during which others wait for
/// it.
#[derive(Debug)]
pub(crate) struct Slow {
    wrong: Wrong,
    clock: Clock,
    records: Mutex<BTreeMap<QueueName, Record>>,
}

impl Slow {
    pub(crate) fn new(wrong: Wrong) -> Self {
        Self { wrong, clock: Clock::default(), records: Mutex::default() }
    }

    fn spoil(&self, record: &mut Record) {
        match self.wrong {
            Wrong::DropsGaps => record.gaps_until = Ticket::NONE,
            Wrong::RoundsInstants => record.last_slot = Micros::new(record.last_slot.get() / 1000 * 1000),
            _ => record.shards.values_mut().for_each(|presence| self.spoil_presence(presence)),
        }
    }

    fn spoil_presence(&self, presence: &mut Presence) {
        match self.wrong {
            Wrong::DropsLabels => presence.label = Label::default(),
            Wrong::ManglesLabels => {
                let ascii = presence.label.as_str().replace(|letter: char| !letter.is_ascii(), "?");
                presence.label = Label::new(ascii).unwrap();
            }
            Wrong::DropsTheLastTake => presence.last_take = None,
            Wrong::DropsTheGrants => presence.granted.clear(),
            Wrong::ClipsCounts => presence.running = presence.running.min(i32::MAX as u32),
            _ => {}
        }
    }
}

#[async_trait::async_trait]
impl SharedState for Slow {
    async fn apply(&self, queue: &QueueName, command: Command) -> Result<Reply, StateError> {
        let early = self.clock.reading();
        let mut records = self.records.lock().await;
        let mut reading = if self.wrong == Wrong::ReadsTheClockEarly { early } else { self.clock.reading() };
        if self.wrong == Wrong::ChangesIncarnation {
            reading.incarnation = (reading.now.get() % 2).to_string();
        }
        if self.wrong == Wrong::LooksAhead && command == Command::Read {
            reading.now = reading.now + Micros::from_millis(300);
        }
        // Beside the longer one it counts for nothing that a busy machine reads the clock for one and much
        // later for another.
        let long = if self.wrong == Wrong::ReadsTheClockEarly { 5000 } else { 500 };
        tokio::time::sleep(Duration::from_micros(long)).await;
        let mut record = records.get(queue).cloned();
        let reply = rules::apply(&mut record, &reading, &command);
        match (self.wrong, &reply) {
            (Wrong::AppliesTwice, Ok(_)) => {
                let _again = rules::apply(&mut record, &reading, &command);
            }
            (Wrong::StoresRefused, Err(_)) => {
                record.iter_mut().for_each(|record| record.gaps_until = record.ticket)
            }
            (Wrong::ForgetsSome, _) if reading.now.get().is_multiple_of(8) => return reply,
            _ => {}
        }
        if command == Command::Read {
            return reply;
        }
        if let Some(mut record) = record {
            self.spoil(&mut record);
            records.insert(queue.clone(), record);
        } else if self.wrong != Wrong::KeepsDeleted {
            records.remove(queue);
        }
        reply
    }
}
