//! A shard of the interval queue as a state machine: its jobs, the tickets and slots it holds, what it says to
//! the shared state and what it makes of the answers. No I/O, no clock, no lock, no randomness. What a job is,
//! it is not told.
//!
//! In go jobs that [arrive](Line::arrive) or are [withdrawn](Line::withdraw), [replies](Line::absorb) and
//! [failures](Line::fail) of the state, the [ends](Line::finish) of jobs, and with all of it the time. Out
//! come what is [due](Line::next_due) to start, and what the driver does [next](Line::next): a step to send,
//! or until when to sleep.
//!
//! Tickets belong to the shard, not to a job: when a slot comes, the first waiting job runs.
//!
//! The crate `interval-queue` drives it with real jobs. The model check, the simulator and the conformance
//! suite drive the same machine. It is no interface for anybody else, and may change at any time.
//!
//! | noun | in |
//! |---|---|
//! | the line | `line.rs`; what it does: `talk.rs`, `hear.rs`, `start.rs`, `quote.rs`, `joint.rs`, `share.rs`, `space.rs` |
//! | jobs that have not started | `backlog.rs`, over `jobs.rs`, `order.rs`, `index.rs` |
//! | tickets and grants | `hand.rs`, `grant.rs`, `lost.rs` |
//! | contact with the state | `contact.rs` |
//! | clocks | `clock.rs`, `lead.rs` |
//! | the state is lost | `outage.rs`, `alone.rs` |

mod alone;
mod backlog;
mod clock;
mod contact;
mod grant;
mod hand;
mod hear;
mod index;
mod jobs;
mod joint;
mod lead;
mod line;
mod lost;
mod order;
mod outage;
mod quote;
mod share;
mod space;
mod start;
mod talk;

pub use alone::{Alone, Share};
pub use backlog::{Backlog, Taking};
pub use clock::StateClock;
pub use contact::{COMMAND_TIMEOUT, Contact, Failing, RETRY, retries};
pub use grant::{Granted, MIN_TOLERANCE, Tolerance};
pub use hand::Hand;
pub use hear::Absorbed;
pub use index::Index;
pub use jobs::{Arriving, Gate, GroupId, IdHasher, JobId, Terms, Waiting, Withdrawn};
pub use lead::Lead;
pub use line::{Identity, Line};
pub use lost::{LostBecause, LostSlot};
pub use order::{Rank, Ranked};
pub use outage::WhenStateIsLost;
pub use quote::FRESH;
pub use space::SpaceBy;
pub use start::{Due, Started, Starting};
pub use talk::Next;

/// The time, for tests that only go on from it.
#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "any instant does")]
fn now() -> std::time::Instant {
    std::time::Instant::now()
}
