//! Files of the program by links, since a program has no library; and what the bodies ask of them.

mod exit_mapping;
mod lines;

use std::io::Read;

use interval_queue::task_contract::Json;

use crate::exit::Failure;
pub(crate) use exit_mapping::TaskOutcome as Outcome;

/// What `add -` makes of its input: the number of each line with its payload, and why it reads no more.
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
