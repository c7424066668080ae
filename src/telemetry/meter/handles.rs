//! The metrics of a shard, registered when it is opened.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use interval_queue_contract::{QueueName, StateError};
use metrics::{
    Counter, Gauge, Histogram, Label, Unit, counter, describe_counter, describe_gauge, describe_histogram,
    gauge, histogram,
};

use super::MetricsLabel;
use crate::{
    line::LostBecause,
    telemetry::{
        Outcome, Refused, Sent,
        name::{self, label, metric},
    },
};

/// Its part of a gauge that shards share; subtracted on drop.
struct Level {
    gauge: Gauge,
    shown: AtomicUsize,
}

impl Level {
    /// The line's lock orders the calls.
    fn change_to(&self, now: usize) -> f64 {
        let shown = self.shown.load(Ordering::Relaxed);
        if now == shown {
            return 0.0;
        }
        self.shown.store(now, Ordering::Relaxed);
        now as f64 - shown as f64
    }

    fn apply(&self, change: f64) {
        if change > 0.0 {
            self.gauge.increment(change);
        } else if change < 0.0 {
            self.gauge.decrement(-change);
        }
    }
}

impl Drop for Level {
    fn drop(&mut self) {
        self.apply(self.change_to(0));
    }
}

#[derive(Clone, Copy, Default)]
pub(crate) struct Levels {
    waiting: f64,
    running: f64,
}

pub(crate) struct Meter {
    labels: Vec<Label>,
    waiting: Level,
    running: Level,
    started: Counter,
    finished: [Counter; Outcome::NAMES.len()],
    slots_used: Counter,
    slots_lost: [Counter; LostBecause::NAMES.len()],
    refused: [Counter; Refused::NAMES.len()],
    wait: Histogram,
    start_lateness: Histogram,
    run: Histogram,
    state_latency: [Histogram; Sent::NAMES.len()],
}

impl Meter {
    /// Describes the metrics each time: cheap, and reaches a recorder that was installed late.
    pub(crate) fn new(queue: &QueueName, choice: MetricsLabel) -> Self {
        let labels: Vec<_> = match choice {
            MetricsLabel::QueueName => Some(queue.to_string()),
            MetricsLabel::Text(text) => Some(text),
            MetricsLabel::Absent => None,
        }
        .map(|text| Label::new(label::QUEUE, text))
        .into_iter()
        .collect();
        describe_counter!(metric::STATE_ERRORS, Unit::Count, "failed commands, by kind");
        let gauge = |name, text| {
            describe_gauge!(name, Unit::Count, text);
            Level { gauge: gauge!(name, labels.iter()), shown: AtomicUsize::new(0) }
        };
        let counter = |name, text| {
            describe_counter!(name, Unit::Count, text);
            counter!(name, labels.iter())
        };
        let seconds = |name, text| {
            describe_histogram!(name, Unit::Seconds, text);
            histogram!(name, labels.iter())
        };
        Self {
            waiting: gauge(metric::WAITING, "jobs that have not started"),
            running: gauge(metric::RUNNING, "running jobs and turns"),
            started: counter(metric::STARTED, "jobs and turns that started"),
            finished: {
                let name = metric::FINISHED;
                describe_counter!(name, Unit::Count, "jobs and turns that ended, by outcome");
                Outcome::NAMES.map(|outcome| counter!(name, and(&labels, label::OUTCOME, outcome)))
            },
            slots_used: counter(metric::SLOTS_USED, "granted slots in which a job or turn started"),
            slots_lost: {
                let name = metric::SLOTS_LOST;
                describe_counter!(name, Unit::Count, "granted slots without a start, by reason");
                LostBecause::NAMES.map(|reason| counter!(name, and(&labels, label::REASON, reason)))
            },
            refused: {
                describe_counter!(metric::REFUSED, Unit::Count, "jobs refused, or given up later, by reason");
                Refused::NAMES.map(|reason| counter!(metric::REFUSED, and(&labels, label::REASON, reason)))
            },
            wait: seconds(metric::WAIT, "from the call of add to the start"),
            start_lateness: seconds(metric::START_LATENESS, "from the slot to the start"),
            run: seconds(metric::RUN, "from the start to the end"),
            state_latency: {
                let name = metric::STATE_LATENCY;
                describe_histogram!(name, Unit::Seconds, "from command to reply, by command");
                Sent::NAMES.map(|sent| histogram!(name, and(&labels, label::COMMAND, sent)))
            },
            labels,
        }
    }

    pub(crate) fn levels(&self, waiting: usize, running: usize) -> Levels {
        Levels { waiting: self.waiting.change_to(waiting), running: self.running.change_to(running) }
    }

    pub(crate) fn apply(&self, levels: Levels) {
        self.waiting.apply(levels.waiting);
        self.running.apply(levels.running);
    }

    pub(crate) fn started(&self, waited: Option<Duration>, late: Option<Duration>) {
        self.started.increment(1);
        if let Some(waited) = waited {
            self.wait.record(waited);
        }
        if let Some(late) = late {
            self.slots_used.increment(1);
            self.start_lateness.record(late);
        }
    }

    pub(crate) fn finished(&self, outcome: Outcome, ran: Duration) {
        self.finished[outcome as usize].increment(1);
        self.run.record(ran);
    }

    pub(crate) fn slot_lost(&self, reason: LostBecause) {
        self.slots_lost[reason as usize].increment(1);
    }

    pub(crate) fn refused(&self, reason: Refused, jobs: usize) {
        self.refused[reason as usize].increment(jobs as u64);
    }

    pub(crate) fn replied<T>(&self, sent: Sent, took: Duration, reply: &Result<T, StateError>) {
        match reply {
            Ok(_) => self.state_latency[sent as usize].record(took),
            // Rare, and of many kinds: looked up on use.
            Err(error) => {
                let labels = and(&self.labels, label::KIND, name::kind(error.kind()));
                counter!(metric::STATE_ERRORS, labels).increment(1);
            }
        }
    }
}

fn and(labels: &[Label], name: &'static str, value: &'static str) -> Vec<Label> {
    labels.iter().cloned().chain([Label::from_static_parts(name, value)]).collect()
}
