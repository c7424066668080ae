//! Wrong variants of the rules and of the workers. The rules and the worker themselves stay as they are: a flaw
//! tampers with what goes into them, with the rows that they find, and with what comes out.

use std::time::Instant;

use interval_queue_contract::{Micros, StateError};
use interval_queue_memory::Tables;
use interval_queue_task_contract::{Command, Reply, rules};
use interval_queue_worker::Worker;

use super::Setup;

/// What is wrong with the rules or the workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// Rules: a settle is obeyed whatever its token.
    NoFence,
}

/// The real rules, unless a flaw tampers with them.
pub(crate) fn apply(
    setup: &Setup,
    tables: &mut Tables,
    now: Micros,
    command: &Command,
) -> Result<Reply, StateError> {
    match setup.share {
        None => rules::apply(tables, now, command),
        Some(share) => rules::apply_in_shares(tables, now, share, command),
    }
}

/// A worker has taken in a reply.
pub(crate) fn heard(_flaw: Option<Flaw>, _worker: &mut Worker, _now: Instant) {}
