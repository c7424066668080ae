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
    telemetry::{Outcome, Sent, name},
};

const WAITING: &str = "interval_queue_waiting";
const RUNNING: &str = "interval_queue_running";
const STARTED: &str = "interval_queue_started_total";
const FINISHED: &str = "interval_queue_finished_total";
const SLOTS_USED: &str = "interval_queue_slots_used_total";
const SLOTS_LOST: &str = "interval_queue_slots_lost_total";
const TOO_LATE: &str = "interval_queue_too_late_total";
const STATE_ERRORS: &str = "interval_queue_state_errors_total";
const WAIT: &str = "interval_queue_wait_seconds";
const START_LATENESS: &str = "interval_queue_start_lateness_seconds";
const RUN: &str = "interval_queue_run_seconds";
const STATE_LATENCY: &str = "interval_queue_state_latency_seconds";

/// Tells the recorder what the metrics are. It costs little, and a recorder that was installed after the
/// first queue was opened hears of it, too.
fn describe() {
    describe_gauge!(WAITING, Unit::Count, "jobs that have not started");
    describe_gauge!(RUNNING, Unit::Count, "jobs and turns that run");
    describe_counter!(STARTED, Unit::Count, "jobs and turns that started");
    describe_counter!(FINISHED, Unit::Count, "jobs and turns that ended, by outcome");
    describe_counter!(SLOTS_USED, Unit::Count, "granted slots in which one started");
    describe_counter!(SLOTS_LOST, Unit::Count, "granted slots in which none did, by reason");
    describe_counter!(TOO_LATE, Unit::Count, "jobs that were refused or given up because of start_within");
    describe_counter!(STATE_ERRORS, Unit::Count, "commands that the state did not carry out, by kind");
    describe_histogram!(WAIT, Unit::Seconds, "from the call of add to the start");
    describe_histogram!(START_LATENESS, Unit::Seconds, "from the slot to the start");
    describe_histogram!(RUN, Unit::Seconds, "from the start to the end");
    describe_histogram!(STATE_LATENCY, Unit::Seconds, "from sending a command to its reply, by command");
}

/// What a shard adds to a gauge that it shares with others: taken back when it ends.
struct Level {
    gauge: Gauge,
    shown: AtomicUsize,
}

impl Level {
    fn new(gauge: Gauge) -> Self {
        Self { gauge, shown: AtomicUsize::new(0) }
    }

    /// By how much it is to change. Called under the lock of the line, which orders the calls.
    fn change_to(&self, now: usize) -> f64 {
        let shown = self.shown.load(Ordering::Relaxed);
        if now == shown {
            return 0.0;
        }
        self.shown.store(now, Ordering::Relaxed);
        now as f64 - shown as f64
    }

    fn tell(&self, change: f64) {
        if change > 0.0 {
            self.gauge.increment(change);
        } else if change < 0.0 {
            self.gauge.decrement(-change);
        }
    }
}

impl Drop for Level {
    fn drop(&mut self) {
        self.tell(self.change_to(0));
    }
}

/// By how much the gauges are to change.
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
    finished: [Counter; Outcome::ALL.len()],
    slots_used: Counter,
    slots_lost: [Counter; LostBecause::ALL.len()],
    too_late: Counter,
    wait: Histogram,
    start_lateness: Histogram,
    run: Histogram,
    state_latency: [Histogram; Sent::ALL.len()],
}

impl Meter {
    pub(crate) fn new(queue: &QueueName, label: MetricsLabel) -> Self {
        describe();
        let labels: Vec<_> = match label {
            MetricsLabel::QueueName => Some(queue.to_string()),
            MetricsLabel::Text(text) => Some(text),
            MetricsLabel::Absent => None,
        }
        .map(|text| Label::new("queue", text))
        .into_iter()
        .collect();
        let and = |label, value| and(&labels, label, value);
        Self {
            waiting: Level::new(gauge!(WAITING, labels.iter())),
            running: Level::new(gauge!(RUNNING, labels.iter())),
            started: counter!(STARTED, labels.iter()),
            finished: Outcome::ALL.map(|outcome| counter!(FINISHED, and("outcome", outcome.name()))),
            slots_used: counter!(SLOTS_USED, labels.iter()),
            slots_lost: LostBecause::ALL.map(|reason| counter!(SLOTS_LOST, and("reason", reason.name()))),
            too_late: counter!(TOO_LATE, labels.iter()),
            wait: histogram!(WAIT, labels.iter()),
            start_lateness: histogram!(START_LATENESS, labels.iter()),
            run: histogram!(RUN, labels.iter()),
            state_latency: Sent::ALL.map(|sent| histogram!(STATE_LATENCY, and("command", sent.name()))),
            labels,
        }
    }

    pub(crate) fn levels(&self, waiting: usize, running: usize) -> Levels {
        Levels { waiting: self.waiting.change_to(waiting), running: self.running.change_to(running) }
    }

    pub(crate) fn tell(&self, levels: Levels) {
        self.waiting.tell(levels.waiting);
        self.running.tell(levels.running);
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

    pub(crate) fn too_late(&self) {
        self.too_late.increment(1);
    }

    pub(crate) fn replied<T>(&self, sent: Sent, took: Duration, reply: &Result<T, StateError>) {
        match reply {
            Ok(_) => self.state_latency[sent as usize].record(took),
            // Rare, and of many kinds: looked up when it happens.
            Err(error) => {
                let labels = and(&self.labels, "kind", name::kind(error.kind()));
                counter!(STATE_ERRORS, labels).increment(1);
            }
        }
    }
}

fn and(labels: &[Label], label: &'static str, value: &'static str) -> Vec<Label> {
    labels.iter().cloned().chain([Label::from_static_parts(label, value)]).collect()
}
