//! What is counted is what happened, and the gauges come back to zero.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    sync::{Arc, Mutex, mpsc},
    thread,
    time::Duration,
};

use futures::FutureExt;
use interval_queue::{IntervalQueue, JobGroup, JobOptions, MemoryState, Retry, telemetry::MetricsLabel};
use metrics::{
    Counter, Gauge, GaugeFn, Histogram, Key, KeyName, LocalRecorderGuard, Metadata, Recorder, SharedString,
    Unit,
};
use metrics_util::{
    MetricKind,
    debugging::{DebugValue, DebuggingRecorder, Snapshotter},
};
use tokio::time::sleep;

use crate::common::{Starts, add_in_turn, all_done, far, memory, ms, one, shards, spawned};

/// What was measured, under the name and the labels as `name{label=value,…}`.
struct Measured {
    snapshotter: Snapshotter,
    sums: RefCell<BTreeMap<String, f64>>,
    samples: RefCell<BTreeMap<String, Vec<f64>>>,
    _local: LocalRecorderGuard<'static>,
}

impl Measured {
    /// Measures what this thread does: a test with all its tasks.
    fn new() -> Self {
        let recorder = Box::leak(Box::new(DebuggingRecorder::new()));
        Self {
            snapshotter: recorder.snapshotter(),
            sums: RefCell::default(),
            samples: RefCell::default(),
            _local: metrics::set_default_local_recorder(recorder),
        }
    }

    /// A snapshot takes away what it shows, so they are added up.
    fn look(&self) {
        for (key, _, _, value) in self.snapshotter.snapshot().into_vec() {
            let labels = key.key().labels().map(|label| format!("{}={}", label.key(), label.value()));
            let labels = labels.collect::<Vec<_>>().join(",");
            let key = format!("{}{{{labels}}}", key.key().name().trim_start_matches("interval_queue_"));
            match value {
                DebugValue::Counter(count) => *self.sums.borrow_mut().entry(key).or_default() += count as f64,
                DebugValue::Gauge(change) => *self.sums.borrow_mut().entry(key).or_default() += change.0,
                DebugValue::Histogram(new) => {
                    let new = new.into_iter().map(|sample| sample.0);
                    self.samples.borrow_mut().entry(key).or_default().extend(new);
                }
            }
        }
    }

    /// What a counter or a gauge of the queue `test` shows.
    fn get(&self, key: &str) -> f64 {
        self.look();
        let key = labelled(key);
        self.sums.borrow().get(&key).copied().unwrap_or_else(|| panic!("no {key}: {:?}", self.sums.borrow()))
    }

    /// What a histogram of the queue `test` was given.
    fn samples(&self, key: &str) -> Vec<f64> {
        self.look();
        let key = labelled(key);
        self.samples.borrow().get(&key).cloned().unwrap_or_else(|| panic!("no {key}"))
    }

    fn levels(&self) -> (f64, f64) {
        (self.get("waiting"), self.get("running"))
    }
}

/// `name outcome=ok` as the key of the queue `test`.
fn labelled(key: &str) -> String {
    match key.split_once(' ') {
        Some((name, label)) => format!("{name}{{queue=test,{label}}}"),
        None => format!("{key}{{queue=test}}"),
    }
}

#[tokio::test(start_paused = true)]
async fn it_counts_starts_and_how_long_jobs_wait_and_run() {
    let measured = Measured::new();
    let queue = one(ms(100)).await;
    let jobs = queue.add_all((0..5).map(|_| async { sleep(ms(250)).await })).await.unwrap();
    sleep(ms(150)).await;
    assert_eq!(measured.levels(), (3.0, 2.0));
    all_done(jobs).await;
    drop(queue.turn().await.unwrap());
    assert_eq!(measured.levels(), (0.0, 0.0));
    assert_eq!(measured.get("started_total"), 6.0);
    assert_eq!(measured.get("finished_total outcome=ok"), 6.0);
    assert_eq!(measured.get("slots_used_total"), 6.0);
    let waits = measured.samples("wait_seconds");
    assert_eq!(waits.len(), 6);
    for (number, wait) in waits.iter().take(5).enumerate() {
        let slot = number as f64 * 0.1;
        assert!((slot..slot + 0.05).contains(wait), "{number}: {waits:?}");
    }
    let runs = measured.samples("run_seconds");
    assert!(runs[..5].iter().all(|run| (0.25..0.26).contains(run)), "{runs:?}");
    let late = measured.samples("start_lateness_seconds");
    assert!(late.len() == 6 && late.iter().all(|late| (0.0..0.05).contains(late)), "{late:?}");
}

#[tokio::test(start_paused = true)]
async fn it_counts_how_jobs_ended() {
    let measured = Measured::new();
    let queue = one(ms(10)).await;
    queue.add(async { panic!("on purpose") }).await.unwrap().await.unwrap_err();
    let limited = JobOptions::new().timeout(ms(5));
    queue.job(std::future::pending::<()>()).options(limited).add().await.unwrap().await.unwrap_err();
    let fails = queue.retrying(Retry::times(2), || async { Err::<(), ()>(()) }).add().await.unwrap();
    fails.await.unwrap().unwrap_err();
    let endless = queue.add(std::future::pending::<()>()).await.unwrap();
    sleep(ms(50)).await;
    assert_eq!(measured.levels(), (0.0, 1.0));
    queue.shutdown(ms(1)).await;
    endless.await.unwrap_err();
    let ends = ["ok", "failed", "panicked", "timed_out", "cancelled"];
    let ends = ends.map(|outcome| measured.get(&format!("finished_total outcome={outcome}")));
    assert_eq!(ends, [0.0, 3.0, 1.0, 1.0, 1.0]);
    assert_eq!(measured.get("started_total"), 6.0);
    assert_eq!(measured.levels(), (0.0, 0.0));
}

#[tokio::test(start_paused = true)]
async fn the_gauges_follow_every_way_out_of_the_line() {
    let measured = Measured::new();
    let queue = one(ms(1_000)).await;
    queue.add(async {}).await.unwrap().await.unwrap();
    let group = JobGroup::new();
    let plain = queue.add_all((0..3).map(|_| async {})).await.unwrap();
    let grouped = JobOptions::new().group(&group);
    let grouped = queue.jobs((0..4).map(|_| async {})).options(grouped).add().await.unwrap();
    queue.pause().await.unwrap();
    let hasty = JobOptions::new().start_within(ms(60_000));
    let hasty = queue.jobs((0..2).map(|_| async {})).options(hasty).add().await.unwrap();
    assert_eq!(measured.get("waiting"), 9.0);
    assert!(plain[0].cancel());
    assert_eq!(measured.get("waiting"), 8.0);
    assert_eq!(group.cancel(), 4);
    assert_eq!(measured.get("waiting"), 4.0);
    for job in hasty {
        job.await.unwrap_err();
    }
    assert_eq!((measured.get("waiting"), measured.get("refused_total reason=too_late")), (2.0, 2.0));
    queue.shutdown(ms(0)).await;
    assert_eq!(measured.levels(), (0.0, 0.0));
    assert_eq!(measured.get("started_total"), 1.0);
    drop((plain, grouped));
}

#[tokio::test(start_paused = true)]
async fn shards_of_a_queue_add_up_and_take_their_share_with_them() {
    let measured = Measured::new();
    let state = memory().1;
    let both = shards(2, &state, ms(1_000)).await;
    let starts = Starts::new();
    let jobs = add_in_turn(&both, &starts, 7).await;
    sleep(ms(100)).await;
    assert_eq!(measured.get("waiting"), 6.0);
    both[0].shutdown(ms(0)).await;
    assert_eq!(measured.get("waiting"), 3.0);
    drop(jobs);
    both[1].wait_idle().await;
    assert_eq!(measured.get("waiting"), 0.0);
    assert_eq!(measured.get("started_total"), 4.0);
}

#[test]
fn a_shard_that_ends_with_its_runtime_takes_its_share_with_it() {
    let measured = Measured::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let queue = runtime.block_on(async {
        let queue = one(ms(60_000)).await;
        let jobs = queue.add_all((0..3).map(|_| std::future::pending::<()>())).await.unwrap();
        while queue.running() == 0 {
            tokio::task::yield_now().await;
        }
        drop(jobs);
        queue
    });
    assert_eq!(measured.levels(), (2.0, 1.0));
    drop(runtime);
    assert_eq!(measured.levels(), (2.0, 0.0));
    drop(queue);
    assert_eq!(measured.levels(), (0.0, 0.0));
}

#[tokio::test(start_paused = true)]
async fn every_granted_slot_is_used_or_lost() {
    let measured = Measured::new();
    let (state, wire, queue) = far(ms(20)).await;
    let starts = Starts::new();
    let handles = add_in_turn(std::slice::from_ref(&queue), &starts, 40).await;
    // One reply takes three seconds; what it grants is stale when it arrives.
    wire.change(|faults| faults.delay_after = ms(3_000));
    sleep(ms(30)).await;
    wire.change(|faults| faults.delay_after = ms(0));
    all_done(handles).await;
    let late = measured.get("slots_lost_total reason=late_start");
    assert!(late > 0.0);
    assert_eq!(measured.get("slots_lost_total reason=unwanted"), 0.0);

    let next = add_in_turn(std::slice::from_ref(&queue), &starts, 2).await.remove(1);
    sleep(next.estimated_start().unwrap() - Duration::from_micros(500)).await;
    assert!(next.cancel(), "its slot was granted a moment ago");
    queue.wait_idle().await;
    assert_eq!(measured.get("slots_lost_total reason=unwanted"), 1.0);

    // A heavy job overtakes one that holds a grant.
    let handles = add_in_turn(std::slice::from_ref(&queue), &starts, 2).await;
    sleep(handles[1].estimated_start().unwrap() - Duration::from_micros(500)).await;
    let heavy = JobOptions::new().weight(3).priority(1);
    queue.job(async {}).options(heavy).add().await.unwrap().await.unwrap();
    all_done(handles).await;
    let light = measured.get("slots_lost_total reason=too_light");
    assert!(light > 0.0);

    assert_eq!(measured.get("slots_used_total"), measured.get("started_total"));
    let granted = state.slots().len() as f64;
    assert_eq!(measured.get("slots_used_total") + late + light + 1.0, granted, "of those it was granted");
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_nobody_took_is_a_lost_slot_and_no_start() {
    let measured = Measured::new();
    let queue = one(ms(10)).await;
    let mut turn = Box::pin(queue.turn().into_future());
    assert!(turn.as_mut().now_or_never().is_none());
    sleep(ms(50)).await;
    assert_eq!(measured.levels(), (0.0, 1.0), "its slot has come");
    drop(turn);
    assert_eq!(measured.levels(), (0.0, 0.0));
    let (started, lost) = (measured.get("started_total"), measured.get("slots_lost_total reason=unwanted"));
    assert_eq!((started, lost), (0.0, 1.0));
}

#[tokio::test(start_paused = true)]
async fn it_counts_jobs_that_are_too_late() {
    let measured = Measured::new();
    let queue = one(ms(1_000)).await;
    queue.add(async {}).await.unwrap().await.unwrap();
    let hasty = JobOptions::new().start_within(ms(300));
    queue.job(async {}).options(hasty.clone()).add().await.unwrap_err();
    assert_eq!(
        measured.get("refused_total reason=too_late"),
        1.0,
        "refused: its slot is known to be too far away"
    );
    queue.pause().await.unwrap();
    queue.job(async {}).options(hasty).add().await.unwrap().await.unwrap_err();
    assert_eq!(measured.get("refused_total reason=too_late"), 2.0, "given up: counted once");
}

#[tokio::test(start_paused = true)]
async fn it_counts_errors_and_measures_commands() {
    let measured = Measured::new();
    let (_, wire, queue) = far(ms(50)).await;
    wire.change(|faults| (faults.delay_before, faults.delay_after) = (ms(5), ms(5)));
    queue.add(async {}).await.unwrap().await.unwrap();
    queue.hold(ms(1)).await.unwrap();
    queue.status().await;
    queue.wait_idle().await;
    for command in ["step", "change", "read"] {
        let took = measured.samples(&format!("state_latency_seconds command={command}"));
        assert!(took.iter().any(|took| (0.009..0.1).contains(took)), "{command}: {took:?}");
    }
    let before = wire.counts().total();
    wire.change(|faults| faults.outage = true);
    queue.pause().await.unwrap_err();
    let added = spawned(&queue, async {});
    sleep(ms(10_000)).await;
    let failed = (wire.counts().total() - before) as f64;
    assert!(failed > 3.0);
    let counted = measured.get("state_errors_total kind=unreachable");
    // The last one may be under way.
    assert!((failed - 1.0..=failed).contains(&counted), "{counted} of {failed}");
    wire.change(|faults| faults.outage = false);
    added.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_label_can_be_another_or_none() {
    let measured = Measured::new();
    let labels = [
        MetricsLabel::Text("customers".into()),
        MetricsLabel::Text("customers".into()),
        MetricsLabel::Absent,
    ];
    for (number, label) in labels.into_iter().enumerate() {
        let builder = IntervalQueue::builder(format!("customer {number}")).metrics_label(label);
        let queue = builder.interval(ms(10)).open(MemoryState::new()).await.unwrap();
        queue.add(async {}).await.unwrap().await.unwrap();
    }
    measured.look();
    let sums = measured.sums.borrow();
    assert_eq!((sums["started_total{queue=customers}"], sums["started_total{}"]), (2.0, 1.0));
    assert_eq!(sums["finished_total{queue=customers,outcome=ok}"], 2.0);
    assert!(sums.keys().all(|key| !key.contains("customer 0")), "{sums:?}");
}

#[tokio::test(start_paused = true)]
async fn each_metric_has_its_unit_and_is_documented() {
    const PAGE: &str = include_str!("../../src/telemetry/mod.rs");
    let measured = Measured::new();
    let (_, wire, queue) = far(ms(10)).await;
    wire.change(|faults| faults.outage = true);
    queue.pause().await.unwrap_err();
    let all = measured.snapshotter.snapshot().into_vec();
    let mut names = Vec::new();
    for (key, unit, description, _) in all {
        let name = key.key().name().to_owned();
        let expected = if name.ends_with("_seconds") { Unit::Seconds } else { Unit::Count };
        assert_eq!(unit, Some(expected), "{name}");
        let kind = match key.kind() {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram => "histogram",
        };
        let row = PAGE.lines().find(|line| line.starts_with(&format!("//! | `{name}` | {kind} |"))).unwrap();
        let said = description.unwrap();
        let words = row.rsplit('|').nth(1).unwrap().replace('`', "");
        assert!(said.starts_with(words.trim()), "{said:?} and {words:?}");
        for label in key.key().labels().filter(|label| label.key() != "queue") {
            assert!(row.contains(&format!("`{}`", label.key())), "{label:?}");
            assert!(PAGE.contains(&format!("`{}`", label.value())) || label.key() == "kind", "{label:?}");
        }
        names.push(name);
    }
    names.sort();
    names.dedup();
    assert_eq!(names.len(), PAGE.lines().filter(|line| line.starts_with("//! | `interval_queue_")).count());
}

/// Asks a group with whatever is counted.
#[derive(Clone, Default)]
struct Asking(Arc<Mutex<Option<JobGroup>>>);

impl GaugeFn for Asking {
    fn increment(&self, _: f64) {
        let group = self.0.lock().unwrap().clone();
        assert!(group.is_none_or(|group| !group.is_cancelled()));
    }

    fn decrement(&self, value: f64) {
        self.increment(value);
    }

    fn set(&self, value: f64) {
        self.increment(value);
    }
}

impl Recorder for Asking {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, _: &Key, _: &Metadata<'_>) -> Counter {
        Counter::noop()
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(Arc::new(self.clone()))
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

#[test]
fn a_recorder_may_ask_a_group_while_its_jobs_are_added() {
    let (ended, end) = mpsc::channel();
    // In a thread of its own, which can be left behind.
    thread::spawn(move || {
        let (recorder, group) = (Asking::default(), JobGroup::new());
        *recorder.0.lock().unwrap() = Some(group.clone());
        metrics::with_local_recorder(&recorder, || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let queue = one(ms(10)).await;
                let options = JobOptions::new().group(&group);
                queue.job(async {}).options(options).add().await.unwrap().await.unwrap();
            });
        });
        ended.send(()).unwrap();
    });
    end.recv_timeout(Duration::from_secs(60)).unwrap();
}
