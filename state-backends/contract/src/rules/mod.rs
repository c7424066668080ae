//! Every rule about tickets, slots and time, as one pure function.
//!
//! A backend makes [`apply`] atomic and adds nothing. Each noun of the rules has a file: `clock` (steps of
//! the state's clock), `loss` (a record that was lost or rewound), `presence` (leases), `slot` (which ticket
//! may start when), `again` (a reply that was lost), `wait` (when to ask again), `step` and `change` (the two
//! commands that write), `delete` (the change that leaves nothing).

mod again;
mod change;
mod clock;
mod delete;
mod loss;
mod presence;
mod slot;
mod step;
mod wait;

use crate::{Change, Command, Micros, Record, Reply, Snapshot, StateError, StateErrorKind};

/// What a backend reads while it holds the record: its clock, and which server this is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The state's clock, the same one for all processes.
    pub now: Micros,
    /// Names the server process that holds the record, where a restart of it may lose the last writes.
    /// Empty where that has no meaning.
    pub incarnation: String,
}

impl Reading {
    /// The reading of a state that is not held by a server.
    pub fn of_clock(now: Micros) -> Self {
        Self { now, incarnation: String::new() }
    }
}

/// Carries out one command on a record: the only thing that ever changes one.
///
/// `record` is none if nothing is stored for the queue. Store it again if the reply is `Ok` and the command
/// is not [`Command::Read`]; if it is none then, remove what is stored.
///
/// # Errors
///
/// The record is unchanged. [`Invalid`](StateErrorKind::Invalid): the command breaks a bound.
/// [`NotFound`](StateErrorKind::NotFound): there is no such queue. [`Conflict`](StateErrorKind::Conflict):
/// opened to fail on other settings, or to be deleted while it is used.
/// [`Superseded`](StateErrorKind::Superseded): a newer step came before.
pub fn apply(record: &mut Option<Record>, reading: &Reading, command: &Command) -> Result<Reply, StateError> {
    command.check()?;
    match command {
        Command::Step(step) => step::apply(record, reading, step).map(Reply::Stepped),
        Command::Change(Change::Delete(deletion), _) => {
            delete::apply(record, reading, *deletion).map(Reply::Changed)
        }
        Command::Change(change, memory) => change::apply(record, reading, change, memory).map(Reply::Changed),
        Command::Read => Ok(Reply::Read(record.clone().map(|mut record| {
            let written_at = record.seen_at;
            let at = clock::arrive(&mut record, reading.now);
            // A look is no use of the queue.
            record.seen_at = written_at.min(at);
            Snapshot { at, record }
        }))),
    }
}

fn not_found() -> StateError {
    StateError::new(StateErrorKind::NotFound, "there is no such queue yet: open it with an interval")
}
