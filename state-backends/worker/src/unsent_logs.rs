//! Lines of runs that the store has not confirmed.

use std::{
    collections::{BTreeMap, VecDeque, btree_map::Entry},
    time::Instant,
};

use interval_queue_contract::Micros;
use interval_queue_task_contract::{LOG_LINE_BYTES, MAX_LOG_LINES, NewLogLine, RunLog};

use crate::run_id::RunId;

/// Approximate.
const MAX_STEP_BYTES: usize = 1 << 20;

#[derive(Clone, Debug, Default)]
struct Unsent {
    last: u32,
    /// Unconfirmed lines, at most [`MAX_LOG_LINES`].
    lines: VecDeque<(u32, Instant, String)>,
    /// Last line in the step under way.
    sent: u32,
    has_ended: bool,
}

/// The logs of all runs with a token in force, and of ended ones with lines to send.
#[derive(Clone, Debug, Default)]
pub struct UnsentLogs(BTreeMap<RunId, Unsent>);

impl UnsentLogs {
    pub(crate) fn has_ended(&self) -> bool {
        self.0.values().any(|log| log.has_ended)
    }

    pub(crate) fn are_all_sent(&self) -> bool {
        self.0.values().all(|log| log.lines.back().is_none_or(|(number, ..)| *number <= log.sent))
    }

    pub(crate) fn write(&mut self, run: RunId, at: Instant, text: String) {
        let log = self.0.entry(run).or_default();
        log.last = log.last.saturating_add(1);
        log.lines.push_back((log.last, at, text));
        if log.lines.len() > MAX_LOG_LINES {
            log.lines.pop_front();
        }
    }

    pub(crate) fn end(&mut self, run: RunId) {
        if let Entry::Occupied(mut log) = self.0.entry(run) {
            match log.get().lines.is_empty() {
                true => _ = log.remove(),
                false => log.get_mut().has_ended = true,
            }
        }
    }

    pub(crate) fn remove(&mut self, run: RunId) {
        self.0.remove(&run);
    }

    /// Lines of ended runs come first.
    pub(crate) fn take_step(&mut self, now: Instant) -> Vec<RunLog> {
        let mut logs: Vec<_> = self.0.iter_mut().filter(|(_, log)| !log.lines.is_empty()).collect();
        logs.sort_by_key(|(_, log)| !log.has_ended);
        let mut bytes = 0;
        let mut step = Vec::new();
        for (run, log) in logs {
            if bytes > MAX_STEP_BYTES {
                break;
            }
            let line = |(number, at, text): &(u32, Instant, String)| NewLogLine {
                number: *number,
                age: Micros::from_duration(now.saturating_duration_since(*at)),
                text: text.clone(),
            };
            bytes += log.lines.iter().map(|(.., text)| text.len() + LOG_LINE_BYTES).sum::<usize>();
            log.sent = log.last;
            step.push(RunLog { id: run.id, token: run.token, lines: log.lines.iter().map(line).collect() });
        }
        step
    }

    pub(crate) fn confirm(&mut self) {
        self.0.retain(|_, log| {
            let sent = std::mem::take(&mut log.sent);
            log.lines.retain(|(number, ..)| *number > sent);
            !log.has_ended || !log.lines.is_empty()
        });
    }

    /// The step got no reply: its lines are sent again.
    pub(crate) fn keep(&mut self) {
        self.0.values_mut().for_each(|log| log.sent = 0);
    }
}
