//! Files of the program by links, since a program has no library; and what the bodies need of them.

mod exit_mapping;
mod lines;

use std::io::Read;

use interval_queue::task_contract::Json;

use crate::exit::Failure;
pub(crate) use exit_mapping::TaskOutcome as Outcome;

/// The input of `add -`: each line's number and payload, and why reading ended.
pub(crate) fn lines(input: impl Read) -> (Vec<(u64, Json)>, Option<Failure>) {
    let mut source = lines::Source::of(input);
    let mut all = Vec::new();
    while let Some(batch) = source.batch() {
        all.extend(batch.lines.into_iter().map(|line| (line.number.unwrap(), line.payload)));
        if batch.failure.is_some() {
            return (all, batch.failure);
        }
    }
    (all, None)
}
