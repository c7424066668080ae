//! Every rule of stored tasks, as pure functions over the rows that a store finds.

use interval_queue_contract::Micros;

use crate::{Command, Reply, Rows};

/// Carries out one command on the rows of a queue, at `now` on the store's clock.
///
/// # Errors
///
/// The command cannot be used, or the store failed. The store undoes what was written.
pub fn apply<R: Rows>(rows: &mut R, now: Micros, command: &Command) -> Result<Reply, R::Error> {
    let _ = (rows, now, command);
    unimplemented!()
}
