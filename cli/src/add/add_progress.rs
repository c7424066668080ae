//! The progress of `add`, for a terminal.

use std::io::{self, IsTerminal};

use indicatif::{HumanCount, ProgressBar};

use crate::progress::bar;

pub(super) struct Progress(ProgressBar);

impl Progress {
    /// Shown if stderr is a terminal and stdout is not: ids go to stdout.
    pub(super) fn of_stdin(quiet: bool) -> Self {
        let is_drawn = !quiet && io::stderr().is_terminal() && !io::stdout().is_terminal();
        let size = rustix::fs::fstat(io::stdin()).ok().filter(|stat| {
            rustix::fs::FileType::from_raw_mode(stat.st_mode) == rustix::fs::FileType::RegularFile
        });
        let size = size.and_then(|stat| u64::try_from(stat.st_size).ok());
        let template = if size.is_some() { "[{bar:16}] {wide_msg} ETA {eta}" } else { "{wide_msg}" };
        let bar = bar(is_drawn, template);
        size.into_iter().for_each(|size| bar.set_length(size));
        Self(bar)
    }

    pub(super) fn post(&self, added: u64, read: u64) {
        self.0.set_message(format!("{} added", HumanCount(added)));
        self.0.inc(read);
    }

    pub(super) fn clear(self) {
        self.0.finish_and_clear();
    }
}
