//! The progress of `each`, for the terminal and for the summary.

use std::{
    io,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use indicatif::{HumanCount, ProgressBar};
use interval_queue::Micros;
use rustix::termios::tcgetwinsize;

use crate::{
    connection_state::{ConnectionState, Expectation},
    progress,
    rate::rate,
};
use interval_queue_documents::words::show;

const MIN_BAR_COLUMNS: u16 = 72;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// `None`: the input has not ended.
    pub(crate) total: Option<u64>,
    pub(crate) done: u64,
    pub(crate) failed: u64,
    /// Attempts after the first one of an item.
    pub(crate) retried: u64,
    pub(crate) running: u64,
    /// Mean of the latest starts.
    pub(crate) gap: Option<Duration>,
}

#[derive(Clone, Debug)]
pub(crate) struct Board {
    counts: Arc<Mutex<Counts>>,
    connection: ConnectionState,
}

impl Board {
    pub(crate) fn new(connection: ConnectionState) -> Self {
        Self { counts: Arc::default(), connection }
    }

    pub(crate) fn post(&self, counts: Counts) {
        *self.counts.lock().unwrap_or_else(PoisonError::into_inner) = counts;
    }

    fn counts(&self) -> Counts {
        *self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
pub(crate) struct Progress {
    board: Board,
    bar: ProgressBar,
    drawn: Option<(String, u16)>,
}

impl Progress {
    pub(crate) fn new(board: Board) -> Self {
        let bar = progress::bar(true, "{wide_msg}");
        Self { board, bar, drawn: None }
    }

    pub(crate) fn refresh(&mut self) {
        let counts = self.board.counts();
        let text = text(counts, self.board.connection.expectation());
        let columns = tcgetwinsize(io::stderr()).map_or(80, |size| size.ws_col);
        let drawn = Some((text.clone(), columns));
        if self.drawn == drawn {
            return;
        }
        self.drawn = drawn;
        let with_bar = counts.total.is_some() && columns >= MIN_BAR_COLUMNS;
        self.bar.set_style(progress::style(if with_bar { "[{bar:16}] {wide_msg}" } else { "{wide_msg}" }));
        self.bar.update(|state| {
            state.set_len(counts.total.unwrap_or_default());
            state.set_pos(counts.done + counts.failed);
        });
        self.bar.set_message(text);
    }

    pub(crate) fn aside<T>(&self, act: impl FnOnce() -> T) -> T {
        self.bar.suspend(act)
    }

    pub(crate) fn clear(self) {
        self.bar.finish_and_clear();
    }
}

/// The most important part comes first: the terminal cuts off the rest.
fn text(counts: Counts, expectation: Option<Expectation>) -> String {
    let done = HumanCount(counts.done + counts.failed);
    let mut parts = vec![match counts.total {
        Some(total) => format!("{done}/{}", HumanCount(total)),
        None => format!("{done}"),
    }];
    if counts.failed > 0 {
        parts.push(format!("{} failed", HumanCount(counts.failed)));
    }
    parts.push(format!("{} running", HumanCount(counts.running)));
    match expectation {
        Some(Expectation::Paused) => parts.push("paused".into()),
        Some(Expectation::StateLost) => parts.push("store unreachable".into()),
        Some(Expectation::AtMaxRunning) => parts.push("running limit reached".into()),
        Some(Expectation::In(time)) if time >= Duration::from_secs(1) => {
            parts.push(format!("next in {}", show(whole_seconds(time))));
        }
        _ => {}
    }
    if let Some(gap) = counts.gap {
        parts.push(rate(Micros::from_duration(gap)));
        let left =
            counts.total.map(|total| total.saturating_sub(counts.done + counts.failed + counts.running));
        if let Some(left @ 1..) = left {
            let left = gap.saturating_mul(u32::try_from(left).unwrap_or(u32::MAX));
            parts.push(format!("ETA {}", show(whole_seconds(left))));
        }
    }
    parts.join(", ")
}

fn whole_seconds(time: Duration) -> Duration {
    Duration::from_secs(time.as_secs_f64().round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_progress_begins_with_its_most_important_part() {
        let counts = Counts { done: 1200, failed: 4, running: 3, ..Counts::default() };
        let soon = Some(Expectation::In(Duration::from_millis(10)));
        assert_eq!(text(counts, soon), "1,204, 4 failed, 3 running");
        let gap = Some(Duration::from_secs(2));
        let counts = Counts { total: Some(1303), failed: 0, gap, ..counts };
        assert_eq!(
            text(counts, Some(Expectation::In(Duration::from_millis(1600)))),
            "1,200/1,303, 3 running, next in 2s, 30 per minute, ETA 3m 20s"
        );
        let counts = Counts { gap: None, ..counts };
        assert_eq!(text(counts, Some(Expectation::Paused)), "1,200/1,303, 3 running, paused");
        text(Counts { total: Some(u64::MAX), gap: Some(Duration::MAX), ..counts }, None);
    }
}
