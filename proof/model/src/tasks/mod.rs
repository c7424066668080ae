//! Stored tasks.

mod calm;
mod flaw;
mod hash;
mod judge;
mod member;
mod model;
mod promise;
mod setup;
mod story;
mod world;

pub use flaw::Flaw;
pub use model::{Action, End, Queue};
pub use promise::{Promise, Sight};
pub use setup::{Lateness, Once, Requests, Setup, Starts, Trouble, attempts, id, key, task};
pub use world::World;

/// What the checker found in a setup.
pub type Verdict = crate::Verdict<Promise, Action, Sight>;

/// Explores everything that can happen in the setup, until there is nothing new or a promise is broken.
pub fn check(setup: &Setup) -> Verdict {
    crate::report::explore(Queue::new(setup.clone()))
}
