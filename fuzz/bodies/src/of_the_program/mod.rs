//! Files of the program by links, since a program has no library; and what the bodies ask of them.

mod duration;
mod ended;
mod exit_mapping;
mod guard_clock;
mod lines;
mod orders;
mod output_tail;
mod stderr_writer;

use std::io::Read;

use futures::FutureExt;
use interval_queue::task_contract::Json;
use tokio::sync::mpsc;

use crate::exit::Failure;
pub(crate) use {
    duration::{interval, positive},
    ended::{Ended, RunEnd},
    exit_mapping::TaskOutcome as Outcome,
    orders::{GuardReport, Order},
    output_tail::OutputTail,
};

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

/// What a guard hears of its worker: all orders up to the first that is none, and what is left of the bytes.
pub(crate) fn orders(mut bytes: &[u8]) -> (Vec<Order>, &[u8]) {
    let mut all = Vec::new();
    loop {
        // What is in memory is not waited for.
        match orders::read_order(&mut bytes).now_or_never().unwrap() {
            Some(order) => all.push(order),
            None => return (all, bytes),
        }
    }
}

/// What is written to the terminal of what a command says in these pieces.
pub(crate) fn spoken<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let (sender, mut receiver) = mpsc::channel(10_000);
    let mut writer = stderr_writer::StderrHandle::of(sender);
    pieces.for_each(|piece| writer.write(piece).now_or_never().unwrap());
    writer.end().now_or_never().unwrap();
    let mut all = Vec::new();
    while let Ok(piece) = receiver.try_recv() {
        all.extend(piece);
    }
    all
}
