//! Schedules: exactly one task for each nominal instant, whatever becomes of workers, clocks and calendars.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use async_trait::async_trait;
use interval_queue::{Micros, QueueName, StateError, contract::Changes};
use interval_queue_memory::MemoryTasks;
use interval_queue_tasks::{
    Context, ErrorKind, Json, Key, Missed, OnConflict, Order, Overlap, Rule, Schedule, Selector, State, Task,
    TaskError, TaskQueue, TaskStore, Worker,
    contract::{Change, Command, NewSchedule, Read, Reply},
};
use jiff::Timestamp;
use tokio::{task::JoinHandle, time::sleep};

use crate::common::{Faulty, builder, now, secs};

type Done = Result<(), TaskError>;

/// The store's clock: it goes as virtual time does, and can be stepped.
#[derive(Clone)]
struct Clock(Arc<AtomicU64>);

impl Clock {
    fn step(&self, seconds: i64) {
        self.0.fetch_add((seconds * 1_000_000).cast_unsigned(), Ordering::Relaxed);
    }
}

fn instant(text: &str) -> u64 {
    text.parse::<Timestamp>().unwrap().as_second().cast_unsigned()
}

/// A memory whose clock shows this now.
fn store(at: &str) -> (Faulty, Clock) {
    let clock = Clock(Arc::new(AtomicU64::new(instant(at) * 1_000_000)));
    let (began, shows) = (now(), clock.clone());
    let tasks = MemoryTasks::with_clock(move || {
        Micros::new(shows.0.load(Ordering::Relaxed).wrapping_add(began.elapsed().as_micros() as u64))
    });
    (Faulty { tasks, ..Faulty::new() }, clock)
}

const NOON: &str = "2026-06-01T12:00:00Z";

/// A queue at noon.
async fn queue() -> (TaskQueue, Clock) {
    let (store, clock) = store(NOON);
    (store.open(builder()).await, clock)
}

/// A worker in the background, whose handler of the kind `k` takes so long. Aborted, it dies.
fn worker(queue: &TaskQueue, takes: Duration) -> JoinHandle<()> {
    let handler = move |_: Context, (): ()| async move {
        sleep(takes).await;
        Done::Ok(())
    };
    let worker = Worker::builder(queue).handler("k", handler).jobs(8).build().unwrap();
    tokio::spawn(async move { worker.run().await.map(drop).unwrap() })
}

fn every(name: &str, seconds: u64) -> Schedule {
    Schedule::every(name, secs(seconds), Task::new("k", &()))
}

/// The instants of which a schedule has made tasks, in seconds behind this one.
async fn made(queue: &TaskQueue, name: &str, since: &str) -> Vec<u64> {
    let tasks = queue.page(&Selector::default(), Order::Oldest, 1_000, false).await.unwrap().tasks;
    let nominal = tasks.into_iter().filter_map(|stored| stored.task.schedule);
    let ours = nominal.filter(|nominal| nominal.schedule.as_str() == name);
    let mut all: Vec<_> = ours.map(|nominal| nominal.at.get() / 1_000_000 - instant(since)).collect();
    all.sort_unstable();
    all
}

#[tokio::test(start_paused = true)]
async fn an_instant_makes_one_task_despite_many_and_dying_workers() {
    let (store, _) = store(NOON);
    let stores = [store.beside(), store.beside(), store.beside()];
    let queue = store.open(builder()).await;
    queue.set_schedule(every("s", 10)).await.unwrap();
    let runs = Arc::new(Mutex::new(Vec::new()));
    let mut workers = Vec::new();
    for store in &stores {
        let runs = runs.clone();
        let queue = store.open(builder()).await;
        let handler = move |context: Context, (): ()| {
            let at = context.scheduled().unwrap().duration_since(UNIX_EPOCH).unwrap().as_secs();
            runs.lock().unwrap().push(at - instant(NOON));
            async { Done::Ok(()) }
        };
        let worker = Worker::builder(&queue).handler("k", handler).build().unwrap();
        workers.push(tokio::spawn(worker.run()));
    }
    sleep(secs(35)).await;
    workers.remove(0).abort();
    for _ in 0..10 {
        sleep(secs(3)).await;
        // An answer that is lost may be that to the task of an instant.
        stores[1].lost.store(1, Ordering::Relaxed);
    }
    stores[1].set_down(true);
    sleep(secs(36)).await;
    let wanted: Vec<_> = (1..=10).map(|n| n * 10).collect();
    assert_eq!(made(&queue, "s", NOON).await, wanted);
    let mut runs = runs.lock().unwrap().clone();
    runs.sort_unstable();
    runs.dedup();
    assert_eq!(runs, wanted, "and a handler is told of each");
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_stepped_makes_no_instant_twice() {
    let (queue, clock) = queue().await;
    queue.set_schedule(every("s", 10)).await.unwrap();
    let _worker = worker(&queue, Duration::ZERO);
    sleep(secs(25)).await;
    clock.step(60);
    sleep(secs(10)).await;
    // Of those that were passed the last one, as after an outage.
    assert_eq!(made(&queue, "s", NOON).await, [10, 20, 80, 90]);
    clock.step(-60);
    sleep(secs(60)).await;
    assert_eq!(made(&queue, "s", NOON).await, [10, 20, 80, 90]);
    sleep(secs(10)).await;
    assert_eq!(made(&queue, "s", NOON).await, [10, 20, 80, 90, 100]);
}

#[tokio::test(start_paused = true)]
async fn missed_instants_are_made_up_for_by_their_schedule() {
    let (queue, _) = queue().await;
    for (name, missed) in
        [("none", Missed::None), ("last", Missed::Last), ("3", Missed::UpTo(3)), ("99", Missed::UpTo(99))]
    {
        queue.set_schedule(every(name, 100).missed(missed)).await.unwrap();
    }
    queue.set_schedule(every("alone", 100).missed(Missed::UpTo(3)).overlap(Overlap::Skip)).await.unwrap();
    // Ten minutes, and the last instant was 80 s ago.
    sleep(secs(680)).await;
    let _worker = worker(&queue, Duration::ZERO);
    sleep(secs(15)).await;
    assert!(made(&queue, "none", NOON).await.is_empty());
    assert_eq!(made(&queue, "last", NOON).await, [600]);
    assert_eq!(made(&queue, "3", NOON).await, [400, 500, 600]);
    assert_eq!(made(&queue, "99", NOON).await, [100, 200, 300, 400, 500, 600]);
    assert_eq!(made(&queue, "alone", NOON).await, [600]);
    sleep(secs(10)).await;
    assert_eq!(made(&queue, "none", NOON).await, [700]);
    assert_eq!(made(&queue, "3", NOON).await, [400, 500, 600, 700]);
}

#[tokio::test(start_paused = true)]
async fn an_overlapping_instant_is_made_skipped_or_kept() {
    let (queue, _) = queue().await;
    for (name, overlap) in [("allow", Overlap::Allow), ("skip", Overlap::Skip), ("keep", Overlap::Keep)] {
        queue.set_schedule(every(name, 10).overlap(overlap)).await.unwrap();
    }
    let _worker = worker(&queue, secs(25));
    sleep(secs(62)).await;
    assert_eq!(made(&queue, "allow", NOON).await, [10, 20, 30, 40, 50, 60]);
    assert_eq!(made(&queue, "skip", NOON).await, [10, 40]);
    // The last one that was kept starts when the run ends, at 35 s and at 60 s.
    assert_eq!(made(&queue, "keep", NOON).await[..2], [10, 30]);
    assert_eq!(made(&queue, "keep", NOON).await.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_following_schedule_never_overlaps_itself() {
    let (queue, _) = queue().await;
    let starts = Arc::new(Mutex::new(Vec::new()));
    let (seen, began) = (starts.clone(), now());
    let handler = move |context: Context, (): ()| {
        assert!(context.scheduled().is_some());
        seen.lock().unwrap().push(began.elapsed().as_secs());
        async {
            sleep(secs(20)).await;
            // A failure is an end, too.
            Err::<(), _>(TaskError::permanent("no"))
        }
    };
    let worker = Worker::builder(&queue).handler("k", handler).jobs(8).build().unwrap();
    tokio::spawn(worker.run());
    queue.set_schedule(Schedule::after_end("s", secs(10), Task::new("k", &()))).await.unwrap();
    sleep(secs(100)).await;
    let starts = starts.lock().unwrap().clone();
    assert_eq!(starts.len(), 4, "{starts:?}");
    assert!(starts.windows(2).all(|pair| (30..33).contains(&(pair[1] - pair[0]))), "{starts:?}");
    assert_eq!(queue.schedules().await.unwrap()[0].next_runs(3), [], "nobody knows");
}

#[tokio::test(start_paused = true)]
async fn a_paused_schedule_makes_nothing_and_goes_on_behind_the_pause() {
    let (queue, _) = queue().await;
    queue.set_schedule(every("s", 10)).await.unwrap();
    queue.set_schedule(every("from the beginning", 10).paused()).await.unwrap();
    let _worker = worker(&queue, Duration::ZERO);
    sleep(secs(15)).await;
    queue.pause_schedule("s").await.unwrap();
    // Every process says its schedules when it starts, which ends no pause.
    queue.set_schedule(every("s", 10)).await.unwrap();
    queue.set_schedule(every("s", 5)).await.unwrap();
    sleep(secs(30)).await;
    let stored = queue.schedules().await.unwrap();
    assert!(stored.iter().all(|schedule| schedule.paused && schedule.next_runs(9).is_empty()));
    assert_eq!(made(&queue, "s", NOON).await, [10]);
    // What is run by hand is beside the instants.
    let id = queue.run_schedule("s").await.unwrap().id();
    queue.wait::<()>(id).await.unwrap();
    assert_eq!(queue.task(id).await.unwrap().unwrap().task.schedule, None);
    queue.resume_schedule("s").await.unwrap();
    queue.resume_schedule("s").await.unwrap();
    sleep(secs(12)).await;
    assert_eq!(made(&queue, "s", NOON).await, [10, 50, 55]);
    assert!(made(&queue, "from the beginning", NOON).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_schedule_is_changed_for_all_and_removed() {
    let (store, _) = store(NOON);
    let queue = store.open(builder()).await;
    queue.set_schedule(every("s", 10)).await.unwrap();
    let other = store.beside().open(builder()).await;
    let _worker = worker(&other, Duration::ZERO);
    sleep(secs(22)).await;
    let revision = async || match store
        .tasks
        .apply(&QueueName::new("test").unwrap(), Command::Read(Read::Schedules))
        .await
        .unwrap()
    {
        Reply::Schedules(all) => all[0].revision,
        other => panic!("{other:?}"),
    };
    let before = revision().await;
    queue.set_schedule(every("s", 10)).await.unwrap();
    assert_eq!(revision().await, before, "nothing has changed");
    let changed = every("s", 60).offset(secs(3)).missed(Missed::UpTo(2)).overlap(Overlap::Skip);
    queue.set_schedule(changed).await.unwrap();
    sleep(secs(50)).await;
    assert_eq!(made(&queue, "s", NOON).await, [10, 20, 63]);
    let [stored] = &queue.schedules().await.unwrap()[..] else { panic!("there is one") };
    let at = |seconds: u64| UNIX_EPOCH + secs(instant(NOON) + seconds);
    assert_eq!(stored.next_runs(2), [at(123), at(183)]);
    assert_eq!((stored.name.as_str(), stored.paused, stored.overlap), ("s", false, Overlap::Skip));
    assert_eq!(stored.missed(), Some(Missed::UpTo(2)));
    assert!(matches!(stored.rule(), Some(Rule::Every { .. })));
    assert_eq!((stored.kind().unwrap().as_str(), stored.payload().unwrap().as_str()), ("k", "null"));
    let last = queue.task(stored.last.unwrap()).await.unwrap().unwrap().task;
    assert_eq!(
        (last.state, last.schedule.unwrap().at.get()),
        (State::Done, (instant(NOON) + 63) * 1_000_000)
    );
    queue.remove_schedule("s").await.unwrap();
    sleep(secs(200)).await;
    assert_eq!(made(&queue, "s", NOON).await, [10, 20, 63], "what was made stays");
    assert!(queue.schedules().await.unwrap().is_empty());
    for error in [
        queue.remove_schedule("s").await.unwrap_err(),
        queue.pause_schedule("s").await.unwrap_err(),
        queue.resume_schedule("s").await.unwrap_err(),
        queue.run_schedule("s").await.unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Missing);
        assert!(error.to_string().contains("there is no schedule \"s\""), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn daylight_saving_time_costs_no_run_and_makes_none_twice() {
    for (begins, line, days, wanted) in [
        // At 02:00 it is 03:00, which is 01:00 UTC.
        (
            "2026-03-27T12:00:00Z",
            "30 2 * * *",
            4,
            &["2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z", "2026-03-31T00:30:00Z"]
                [..],
        ),
        // At 03:00 it is 02:00 again.
        (
            "2026-10-23T12:00:00Z",
            "30 2 * * *",
            4,
            &["2026-10-24T00:30:00Z", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z", "2026-10-27T01:30:00Z"],
        ),
        // What is meant for every hour goes by the time that passes.
        (
            "2026-10-24T23:30:00Z",
            "0 * * * *",
            0,
            &["2026-10-25T00:00:00Z", "2026-10-25T01:00:00Z", "2026-10-25T02:00:00Z"],
        ),
    ] {
        let (store, _) = store(begins);
        let queue = store.open(builder().keep_done(secs(7 * 86_400))).await;
        let task = Task::new("k", &());
        queue.set_schedule(Schedule::cron("s", line, "Europe/Berlin", task)).await.unwrap();
        let worker = worker(&queue, Duration::ZERO);
        sleep(secs(days * 86_400).max(secs(3 * 3_600))).await;
        let wanted: Vec<_> = wanted.iter().map(|at| instant(at) - instant(begins)).collect();
        assert_eq!(made(&queue, "s", begins).await, wanted, "{line} from {begins} on");
        worker.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn an_invalid_schedule_is_rejected_with_a_hint() {
    let (queue, _) = queue().await;
    let task = || Task::new("k", &());
    let cron = |line: &str, zone: &str| Schedule::cron("s", line, zone, task());
    let large = Task::new("k", &"x".repeat(1_100_000));
    for (schedule, says) in [
        (cron("0 0 3 * * *", "UTC"), "cron line \"0 0 3 * * *\": it has 6 fields: give five, minute, hour"),
        (cron("@daily", "UTC"), "write 0 0 * * *"),
        (
            cron("0 3 * * *", "Europe/Atlantis"),
            "there is no time zone \"Europe/Atlantis\": name one of the IANA",
        ),
        (
            cron("0 0 30 2 *", "UTC"),
            "cron line \"0 0 30 2 *\" does not come within four years: there is no such day",
        ),
        (every("s", 0), "interval 0ns: give 1 s to ten years"),
        (Schedule::after_end("s", secs(400_000_000), task()), "give 1 s to ten years"),
        (every("", 10), "schedule \"\" is empty: give it 1 to 200 bytes"),
        (every("s", 10).missed(Missed::UpTo(0)), "missed instants 0: give 1 to 1000"),
        (Schedule::every("s", secs(10), task().after(Task::new("k", &()).id())), "give the schedule a flow"),
        (Schedule::every("s", secs(10), task().not_before(UNIX_EPOCH)), "no time of the clock"),
        (
            Schedule::every("s", secs(10), task().unique("u").on_conflict(OnConflict::Refuse)),
            "keep or replace the one that has its unique name",
        ),
        (Schedule::every("s", secs(10), large), "has 1100002 bytes: this queue stores at most 1048576"),
    ] {
        let error = queue.set_schedule(schedule).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        assert!(error.to_string().contains(says), "{error}");
    }
    assert!(queue.schedules().await.unwrap().is_empty());
    let preview = cron("0 0 31 4 *", "UTC").preview(SystemTime::UNIX_EPOCH, 1).unwrap_err();
    assert_eq!(preview.kind(), ErrorKind::Invalid);
}

/// Stores a schedule that this version cannot read.
pub(crate) async fn set_newer(store: &Faulty, next: Micros) {
    let newer = NewSchedule {
        name: Key::new("newer").unwrap(),
        definition: Json::new(r#"{"version": 3, "moon": "full"}"#).unwrap(),
        next: Some(next),
        paused: false,
        overlap: Overlap::Allow,
    };
    let set = Command::Change(Change::Schedule(newer));
    store.tasks.apply(&QueueName::new("test").unwrap(), set).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_schedule_of_a_newer_version_is_left_to_newer_workers() {
    let (store, _) = store(NOON);
    let queue = store.open(builder()).await;
    set_newer(&store, Micros::new((instant(NOON) + 5) * 1_000_000)).await;
    queue.set_schedule(every("s", 10)).await.unwrap();
    let _worker = worker(&queue, Duration::ZERO);
    sleep(secs(65)).await;
    assert_eq!(made(&queue, "s", NOON).await, [10, 20, 30, 40, 50, 60]);
    assert!(store.steps() < 200, "it looks about once a second: {}", store.steps());
    let all = queue.schedules().await.unwrap();
    assert!(all[0].unread.as_ref().unwrap().contains("stored by a newer version"), "{all:?}");
    assert_eq!((all[0].rule(), all[0].next_runs(2).len()), (None, 0));
    assert_eq!(queue.run_schedule("newer").await.unwrap_err().kind(), ErrorKind::Mismatch);
    // By hand it can be paused, and stays as it is.
    queue.pause_schedule("newer").await.unwrap();
    queue.resume_schedule("newer").await.unwrap();
    assert!(!queue.schedules().await.unwrap()[0].paused);
}

/// A store that fires late.
#[derive(Debug)]
struct SlowToFire(Faulty, Duration);

#[async_trait]
impl TaskStore for SlowToFire {
    async fn apply(&self, queue: &QueueName, command: Command) -> Result<Reply, StateError> {
        if matches!(command, Command::Fire(_)) {
            sleep(self.1).await;
        }
        self.0.apply(queue, command).await
    }

    async fn queues(&self) -> Result<Vec<QueueName>, StateError> {
        self.0.queues().await
    }

    async fn changes(&self, queue: &QueueName) -> Result<Changes, StateError> {
        self.0.changes(queue).await
    }
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_ends_when_empty_runs_due_schedules_first() {
    for late in [0, 30, 700, 5_000].map(Duration::from_millis) {
        let (store, clock) = store(NOON);
        let pace = Arc::new(store.pace.clone());
        let queue = builder().open_parts(Arc::new(SlowToFire(store, late)), pace).await.unwrap();
        for name in ["one", "two"] {
            queue.set_schedule(every(name, 100).missed(Missed::UpTo(100))).await.unwrap();
        }
        clock.step(650);
        let handler = |_: Context, (): ()| async { Done::Ok(()) };
        let worker = Worker::builder(&queue).handler("k", handler).build().unwrap();
        let totals = worker.run_until_empty().await.unwrap();
        assert_eq!(totals.done, 12, "fired {late:?} late");
    }
}

#[tokio::test(start_paused = true)]
async fn a_broken_schedule_does_not_keep_a_worker_from_ending() {
    let (store, clock) = store(NOON);
    let queue = store.open(builder()).await;
    set_newer(&store, Micros::new(instant(NOON) * 1_000_000)).await;
    clock.step(60);
    let handler = |_: Context, (): ()| async { Done::Ok(()) };
    let worker = Worker::builder(&queue).handler("k", handler).build().unwrap();
    let ended = tokio::time::timeout(secs(60), worker.run_until_empty()).await;
    assert_eq!(ended.expect("it ends").unwrap().done, 0);
}

#[tokio::test(start_paused = true)]
async fn a_failing_schedule_is_reported_once() {
    let (store, _) = store(NOON);
    let queue = store.open(builder()).await;
    set_newer(&store, Micros::new((instant(NOON) + 5) * 1_000_000)).await;
    let (sender, mut failures) = tokio::sync::mpsc::unbounded_channel();
    let worker = Worker::builder(&queue)
        .handler("a", |_: Context, (): ()| async { Ok::<_, TaskError>(()) })
        .on_error(move |failure| sender.send(failure.to_string()).unwrap())
        .build()
        .unwrap();
    let _worker = tokio::spawn(worker.run());
    let failure = failures.recv().await.unwrap();
    assert!(failure.starts_with("schedule \"newer\": ") && failure.contains("newer version"), "{failure}");
    sleep(secs(60)).await;
    assert!(failures.try_recv().is_err());
}
