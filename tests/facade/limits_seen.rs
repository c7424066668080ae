//! A job of several limits is counted in each of its queues as any other job is, and its slots are used.

use std::{cell::RefCell, collections::BTreeMap};

use interval_queue::{ErrorKind, IntervalQueue, JobGroup, JobOptions, Limits, MemoryState};
use metrics::LocalRecorderGuard;
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use tokio::time::sleep;

use crate::common::ms;

/// What was counted, and how often something was measured.
struct Counted {
    snapshotter: Snapshotter,
    sums: RefCell<BTreeMap<String, f64>>,
    _local: LocalRecorderGuard<'static>,
}

impl Counted {
    fn new() -> Self {
        let recorder = Box::leak(Box::new(DebuggingRecorder::new()));
        let _local = metrics::set_default_local_recorder(recorder);
        Self { snapshotter: recorder.snapshotter(), sums: RefCell::default(), _local }
    }

    /// Of the queues `slow` and `fast`.
    fn get(&self, name: &str) -> [f64; 2] {
        let mut sums = self.sums.borrow_mut();
        for (key, _, _, value) in self.snapshotter.snapshot().into_vec() {
            let mut labels: Vec<_> = key.key().labels().map(|label| label.value().to_owned()).collect();
            labels.insert(1, key.key().name().trim_start_matches("interval_queue_").to_owned());
            *sums.entry(labels.join(" ")).or_default() += match value {
                DebugValue::Counter(count) => count as f64,
                DebugValue::Gauge(change) => change.0,
                DebugValue::Histogram(samples) => samples.len() as f64,
            };
        }
        ["slow", "fast"].map(|queue| sums[&format!("{queue} {name}")])
    }
}

async fn both() -> (Counted, [IntervalQueue; 2], Limits) {
    let (counted, state) = (Counted::new(), MemoryState::new());
    let open = async |name: &str, millis| {
        IntervalQueue::builder(name).interval(ms(millis)).open(state.clone()).await.unwrap()
    };
    let queues = [open("slow", 100).await, open("fast", 10).await];
    let limits = Limits::new(queues.clone()).unwrap();
    (counted, queues, limits)
}

#[tokio::test(start_paused = true)]
async fn jobs_and_turns_of_limits_are_counted_in_each_queue() {
    let (counted, _, limits) = both().await;
    for job in 0..3 {
        limits.run(async move { sleep(ms(job)).await }).await.unwrap();
    }
    drop(limits.turn().await.unwrap());
    limits.run(async { panic!("on purpose") }).await.unwrap_err();
    let options = JobOptions::new().timeout(ms(5));
    limits.run_with(options, std::future::pending::<()>()).await.unwrap_err();
    assert_eq!(counted.get("started_total"), [6.0; 2]);
    assert_eq!(counted.get("slots_used_total"), [6.0; 2]);
    assert_eq!(counted.get("slots_lost_total unwanted"), [0.0; 2]);
    for (outcome, count) in [("ok", 4.0), ("panicked", 1.0), ("timed_out", 1.0), ("cancelled", 0.0)] {
        assert_eq!(counted.get(&format!("finished_total {outcome}")), [count; 2], "{outcome}");
    }
    for histogram in ["wait_seconds", "start_lateness_seconds", "run_seconds"] {
        assert_eq!(counted.get(histogram), [6.0; 2], "{histogram}");
    }
    assert_eq!([counted.get("waiting"), counted.get("running")], [[0.0; 2]; 2]);
}

#[tokio::test(start_paused = true)]
async fn a_slot_in_hand_that_is_not_used_is_lost() {
    let (counted, [_, fast], limits) = both().await;
    drop(limits.turn().await.unwrap());
    fast.pause().await.unwrap();
    let waits = tokio::spawn({
        let limits = limits.clone();
        async move { limits.turn().await.map(drop) }
    });
    sleep(ms(1_000)).await;
    fast.resume().await.unwrap();
    waits.await.unwrap().unwrap();
    let used = counted.get("slots_used_total");
    assert_eq!((counted.get("started_total"), used), ([2.0; 2], [2.0; 2]));
    // A caller that stops waiting while a slot is in hand loses that.
    let lost = counted.get("slots_lost_total unwanted");
    fast.set_max_running(interval_queue::MaxRunning::AtMost(1)).await.unwrap();
    let held = fast.turn().await.unwrap();
    assert!(tokio::time::timeout(ms(120), limits.turn()).await.is_err());
    drop(held);
    sleep(ms(200)).await;
    let [slow, _] = counted.get("slots_lost_total unwanted");
    assert!(slow > lost[0], "{slow} {lost:?}");
    assert_eq!(counted.get("slots_used_total"), [2.0, 3.0]);
}

#[tokio::test(start_paused = true)]
async fn refusals_are_counted_by_their_reasons() {
    let (counted, [slow, fast], limits) = both().await;
    drop(limits.turn().await.unwrap());
    let refused = |reason: &str| counted.get(&format!("refused_total {reason}"));

    let hasty = JobOptions::new().start_within(ms(20));
    assert_eq!(limits.turn_with(hasty.clone()).await.unwrap_err().kind(), ErrorKind::TooLate);
    assert_eq!(refused("too_late"), [1.0; 2], "nobody can tell for which of them");
    slow.turn().options(hasty).await.unwrap_err();
    assert_eq!(refused("too_late"), [2.0, 1.0]);

    let group = JobGroup::new();
    let options = JobOptions::new().group(&group);
    slow.pause().await.unwrap();
    let waits = tokio::spawn({
        let (slow, options) = (slow.clone(), options.clone());
        async move { slow.turn().options(options).await.map(drop) }
    });
    sleep(ms(10)).await;
    assert_eq!(group.cancel(), 1);
    waits.await.unwrap().unwrap_err();
    assert_eq!(refused("cancelled"), [1.0, 0.0]);
    fast.turn().options(options).await.unwrap_err();
    assert_eq!(refused("cancelled"), [1.0, 1.0]);

    let waits = tokio::spawn({
        let slow = slow.clone();
        async move { slow.turn().await.map(drop) }
    });
    sleep(ms(10)).await;
    slow.shutdown(ms(0)).await;
    waits.await.unwrap().unwrap_err();
    assert_eq!(refused("closed"), [1.0, 0.0]);
    slow.turn().await.unwrap_err();
    limits.turn().await.unwrap_err();
    assert_eq!(refused("closed"), [3.0, 0.0]);
    assert_eq!(refused("full"), [0.0; 2]);
}

#[tokio::test(start_paused = true)]
async fn a_job_for_which_there_is_no_room_is_a_refusal() {
    let counted = Counted::new();
    let state = MemoryState::new();
    let slow =
        IntervalQueue::builder("slow").interval(ms(100)).max_waiting(1).open(state.clone()).await.unwrap();
    let _fast = IntervalQueue::builder("fast").interval(ms(10)).open(state).await.unwrap();
    slow.pause().await.unwrap();
    let waits = tokio::spawn({
        let slow = slow.clone();
        async move { slow.turn().await.map(drop) }
    });
    sleep(ms(10)).await;
    assert_eq!(slow.job(async {}).try_add().map(drop).unwrap_err().kind(), ErrorKind::Full);
    assert_eq!(counted.get("refused_total full"), [1.0, 0.0]);
    slow.resume().await.unwrap();
    waits.await.unwrap().unwrap();
}
