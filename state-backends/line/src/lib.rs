//! A shard as a state machine: its jobs, tickets and slots, the steps that it sends to the store,
//! and the effect of the replies. No I/O, no clock, no lock, no randomness. The content of jobs is
//! opaque.
//!
//! Input: jobs that [arrive](Line::arrive) or are [withdrawn](Line::withdraw),
//! [replies](Line::absorb) and [failures](Line::fail) of the store, [ends](Line::finish) of jobs,
//! and the time with each call. Output: the job that is [due](Line::next_due), and what the driver
//! does [next](Line::next): send a step, or sleep until an instant.
//!
//! Tickets belong to the shard, not to a job: when a slot comes, the first waiting job runs.
//!
//! The crate `interval-queue` drives the machine with real jobs; the model check, the simulator and
//! the conformance suite drive it, too. The interface is private to them and may change at any
//! time.
//!
//! | noun | in |
//! |---|---|
//! | the line | `line.rs`, `outbound.rs`, `inbound.rs`, `start.rs` |
//! | estimates, joint jobs, share, spacing | `wait_estimate.rs`, `joint.rs`, `share.rs`, `space.rs` |
//! | jobs that have not started | `backlog.rs`, over `jobs.rs`, `order.rs`, `index.rs` |
//! | tickets and grants | `held_tickets.rs`, `grant.rs`, `lost.rs` |
//! | connection to the store | `connection.rs` |
//! | clocks | `clock.rs`, `lead.rs` |
//! | loss of the store | `outage.rs`, `alone.rs` |

mod alone;
mod backlog;
mod clock;
mod connection;
mod grant;
mod held_tickets;
mod inbound;
mod index;
mod jobs;
mod joint;
mod lead;
mod line;
mod lost;
mod order;
mod outage;
mod outbound;
mod share;
mod space;
mod start;
mod wait_estimate;

pub use alone::{Alone, Share};
pub use backlog::{Backlog, Taking};
pub use clock::StateClock;
pub use connection::{COMMAND_TIMEOUT, Connection, Failing, RETRY, retries};
pub use grant::{Granted, MIN_TOLERANCE, Tolerance};
pub use held_tickets::HeldTickets;
pub use inbound::Absorbed;
pub use index::Index;
pub use jobs::{Arriving, Gate, GroupId, IdHasher, JobId, Terms, Waiting, Withdrawn};
pub use lead::Lead;
pub use line::{Identity, Line};
pub use lost::{LostBecause, LostSlot};
pub use order::{Rank, Ranked};
pub use outage::WhenStateIsLost;
pub use outbound::Next;
pub use space::SpaceBy;
pub use start::{Due, Started, Starting};
pub use wait_estimate::MAX_MEMORY_AGE;

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "any instant does")]
fn now() -> std::time::Instant {
    std::time::Instant::now()
}
