//! Files of the program's child processes by links, since a program has no library.

mod end;
pub(crate) mod guard;
mod keep;
mod output_tail;
mod stderr_writer;

use futures::FutureExt;
use tokio::sync::mpsc;

pub(crate) use {
    end::{End, Finished},
    keep::Keep,
    output_tail::OutputTail,
};

/// The output on the terminal if a command prints these pieces to stderr.
pub(crate) fn forwarded<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
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
