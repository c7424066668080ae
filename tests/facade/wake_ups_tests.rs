//! Wake-ups: whoever idles in a pause goes on when another process resumes the queue. Only then is anything
//! watched.

use std::{
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
        mpsc,
    },
    task::{Context, Poll},
};

use async_trait::async_trait;
use futures::{Stream, StreamExt};
use interval_queue::{
    IntervalQueue, MemoryState, SharedState, StateError, StateErrorKind, WakeUps,
    contract::{Changes, Command, QueueName, Reply},
};
use interval_queue_conformance::Faulty;
use tokio::{runtime::Handle, time::sleep};

use crate::common::{Random, Starts, add_in_turn, all_done, memory, ms, with_ticket};

/// A memory that counts who watches it, and whose watching can go wrong.
#[derive(Clone, Debug)]
struct Watched {
    inner: Faulty,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    open: AtomicUsize,
    begun: AtomicUsize,
    trouble: Mutex<Trouble>,
    /// The next one who stops to watch waits for this.
    gate: Mutex<Option<mpsc::Receiver<()>>>,
}

#[derive(Clone, Copy, Debug, Default)]
enum Trouble {
    #[default]
    None,
    /// Nobody can watch.
    Refused,
    /// As above, and with a panic.
    Panic,
    /// Whatever watches ends at once.
    Ends,
    /// Any command is told.
    Noise,
    /// To begin takes up to so many milliseconds, of which a part passes after the watching has begun.
    Slow(u64),
}

struct Open(Arc<Shared>, Changes);

impl Stream for Open {
    type Item = ();
    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<()>> {
        match *self.0.trouble.lock().unwrap() {
            Trouble::Ends => return Poll::Ready(None),
            Trouble::Noise => return Poll::Ready(Some(())),
            _ => {}
        }
        self.1.poll_next_unpin(context)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let gate = self.0.gate.lock().unwrap().take();
        if let Some(gate) = gate {
            let _ = gate.recv();
        }
        self.0.open.fetch_sub(1, SeqCst);
    }
}

impl Watched {
    fn new() -> Self {
        Self { inner: Faulty::new(MemoryState::new()), shared: Arc::default() }
    }

    fn suffer(&self, trouble: Trouble) {
        *self.shared.trouble.lock().unwrap() = trouble;
    }

    /// How many streams there are.
    fn open(&self) -> usize {
        self.shared.open.load(SeqCst)
    }

    /// Commands but for those that began to watch.
    fn commands(&self) -> u64 {
        self.inner.counts().total() - self.inner.counts().watches
    }
}

#[async_trait]
impl SharedState for Watched {
    async fn apply(&self, queue: &QueueName, command: Command) -> Result<Reply, StateError> {
        self.inner.apply(queue, command).await
    }

    async fn changes(&self, queue: &QueueName) -> Result<Changes, StateError> {
        let begun = self.shared.begun.fetch_add(1, SeqCst);
        let trouble = *self.shared.trouble.lock().unwrap();
        let mut random = Random(begun as u64);
        match trouble {
            Trouble::Refused => {
                return Err(StateError::new(StateErrorKind::Unreachable, "nobody can watch"));
            }
            Trouble::Panic => panic!("a backend with a bug"),
            Trouble::Slow(most) => sleep(ms(random.below(most))).await,
            _ => {}
        }
        let changes = self.inner.changes(queue).await?;
        self.shared.open.fetch_add(1, SeqCst);
        let open = Open(self.shared.clone(), changes);
        if let Trouble::Slow(most) = trouble {
            sleep(ms(random.below(most))).await;
        }
        Ok(Box::pin(open))
    }
}

async fn shards(count: usize, state: &(impl SharedState + Clone), wake_ups: WakeUps) -> Vec<IntervalQueue> {
    let mut shards = Vec::new();
    for _ in 0..count {
        let builder = IntervalQueue::builder("test").interval(ms(10)).linger(ms(0)).wake_ups(wake_ups);
        shards.push(builder.open(state.clone()).await.unwrap());
    }
    shards
}

fn tasks() -> usize {
    Handle::current().metrics().num_alive_tasks()
}

#[tokio::test(start_paused = true)]
async fn all_go_on_in_order_when_one_resumes() {
    let (_, state) = memory();
    let shards = shards(3, &state, WakeUps::On).await;
    let starts = Starts::new();
    shards[0].pause().await.unwrap();
    let jobs = add_in_turn(&shards, &starts, 30).await;
    // Shorter than the lease, so that who waits is known.
    sleep(ms(1_000)).await;
    assert!(starts.all().is_empty());
    shards[1].resume().await.unwrap();
    tokio::time::timeout(ms(1_000), all_done(jobs)).await.expect("all go on without a tick");
    assert_eq!(starts.jobs(), (0..30).collect::<Vec<_>>());
    state.assert_spaced(ms(10));
}

#[tokio::test(start_paused = true)]
async fn a_shard_with_a_far_slot_is_notified_that_it_came_nearer() {
    for (trouble, wake_ups, within) in [
        (Trouble::None, WakeUps::On, 0..100),
        (Trouble::Refused, WakeUps::On, 0..3_000),
        // The lease of so long an interval is five minutes.
        (Trouble::None, WakeUps::Off, 100_000..150_000),
    ] {
        let state = Watched::new();
        state.suffer(trouble);
        let open = || IntervalQueue::builder("test").interval(ms(86_400_000)).wake_ups(wake_ups);
        let (one, other) =
            (open().open(state.clone()).await.unwrap(), open().open(state.clone()).await.unwrap());
        one.add(async {}).await.unwrap().await.unwrap();
        let job = with_ticket(&other, async {}).await;
        sleep(ms(1_000)).await;
        assert_eq!(state.open(), usize::from(within.end == 100), "{trouble:?} {wake_ups:?}");
        one.set_interval(ms(10)).await.unwrap();
        let began = tokio::time::Instant::now();
        job.await.unwrap();
        let took = began.elapsed().as_millis();
        assert!(within.contains(&took), "{trouble:?} {wake_ups:?}: {took} ms");
        sleep(ms(100)).await;
        assert_eq!((state.open(), tasks()), (0, 0), "nothing waits any more");
    }
}

#[tokio::test(start_paused = true)]
async fn with_wake_ups_off_others_wait_for_their_tick() {
    let state = Watched::new();
    let shards = shards(2, &state, WakeUps::Off).await;
    shards[0].pause().await.unwrap();
    let job = with_ticket(&shards[1], async {}).await;
    shards[0].resume().await.unwrap();
    sleep(ms(3_600_000)).await;
    assert_eq!(shards[1].waiting(), 1);
    assert_eq!(state.shared.begun.load(SeqCst), 0);
    shards[1].tick().await;
    job.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn nothing_is_watched_unless_jobs_wait_in_a_pause() {
    let state = Watched::new();
    let shards = shards(2, &state, WakeUps::On).await;
    assert_eq!((state.open(), tasks()), (0, 0), "opening watches nothing");
    let starts = Starts::new();
    all_done(add_in_turn(&shards, &starts, 20).await).await;
    assert_eq!(state.shared.begun.load(SeqCst), 0, "no pause, no watching");
    shards[0].pause().await.unwrap();
    sleep(ms(100)).await;
    assert_eq!((state.open(), tasks()), (0, 0), "nothing waits");

    let job = shards[1].add(async {}).await.unwrap();
    let other = shards[1].add(async {}).await.unwrap();
    sleep(ms(100)).await;
    assert_eq!((state.open(), tasks()), (1, 1));
    let before = state.commands();
    sleep(ms(3_600_000)).await;
    let looks = state.commands() - before;
    assert!((110..=120).contains(&looks), "a look each half minute, not {looks}");
    job.cancel();
    sleep(ms(100)).await;
    assert_eq!((state.open(), tasks()), (1, 1));
    other.cancel();
    sleep(ms(100)).await;
    assert_eq!((state.open(), tasks()), (0, 0), "nothing waits any more");

    let job = shards[1].add(async {}).await.unwrap();
    sleep(ms(100)).await;
    assert_eq!((state.open(), tasks()), (1, 1));
    shards[0].resume().await.unwrap();
    job.await.unwrap();
    shards[1].wait_idle().await;
    sleep(ms(1)).await;
    assert_eq!((state.open(), tasks()), (0, 0), "the pause is over");

    shards[0].pause().await.unwrap();
    shards[1].add(async {}).await.unwrap();
    sleep(ms(100)).await;
    assert_eq!(state.open(), 1);
    shards[1].shutdown(ms(100)).await;
    sleep(ms(1)).await;
    assert_eq!((state.open(), tasks()), (0, 0), "shut down");
}

#[tokio::test(start_paused = true)]
async fn a_shard_with_a_running_job_is_woken_too() {
    let state = Watched::new();
    let shards = shards(2, &state, WakeUps::On).await;
    let long = shards[1].add(sleep(ms(3_600_000))).await.unwrap();
    sleep(ms(50)).await;
    shards[0].pause().await.unwrap();
    let job = shards[1].add(async {}).await.unwrap();
    sleep(ms(100)).await;
    shards[0].resume().await.unwrap();
    tokio::time::timeout(ms(100), job).await.expect("long before half a lease").unwrap();
    long.cancel();
}

#[tokio::test(start_paused = true)]
async fn a_reset_wakes_and_a_new_interval_is_noticed() {
    let state = Watched::new();
    let shards = shards(2, &state, WakeUps::On).await;
    shards[0].pause().await.unwrap();
    let job = shards[1].add(async {}).await.unwrap();
    sleep(ms(100)).await;
    shards[0].set_interval(ms(40)).await.unwrap();
    sleep(ms(100)).await;
    assert_eq!(shards[1].interval(), ms(40), "asked, and found that it is still a pause");
    assert_eq!((shards[1].waiting(), state.open()), (1, 1));
    shards[0].reset().await.unwrap();
    job.await.unwrap();
}

/// Pauses that end while the watching begins, or shortly after it, at every distance.
#[tokio::test(start_paused = true)]
async fn no_resume_is_missed_however_it_races_the_watching() {
    let state = Watched::new();
    state.inner.change(|faults| {
        (faults.delay_before, faults.delay_after, faults.vary_delays) = (ms(3), ms(3), true);
    });
    let shards = shards(2, &state, WakeUps::On).await;
    state.suffer(Trouble::Slow(8));
    let mut random = Random(7);
    for round in 0..3_000 {
        shards[0].pause().await.unwrap();
        let job = shards[1].add(async {}).await.unwrap();
        sleep(ms(random.below(30))).await;
        shards[0].resume().await.unwrap();
        if random.once_in(3) {
            // A second pause while the first one is just noticed to be over.
            sleep(ms(random.below(12))).await;
            shards[0].pause().await.unwrap();
            sleep(ms(random.below(30))).await;
            shards[0].resume().await.unwrap();
        }
        let done = tokio::time::timeout(ms(60_000), job).await;
        done.unwrap_or_else(|_| panic!("the resume of round {round} was missed")).unwrap();
    }
    sleep(ms(100)).await;
    assert_eq!((state.open(), tasks()), (0, 0));
    assert!(state.shared.begun.load(SeqCst) > 2_000, "most pauses were watched");
}

#[tokio::test(start_paused = true)]
async fn failures_during_a_pause_are_retried() {
    for trouble in [Trouble::Refused, Trouble::Panic, Trouble::Ends] {
        let state = Watched::new();
        let shards = shards(2, &state, WakeUps::On).await;
        shards[0].pause().await.unwrap();
        state.suffer(trouble);
        let job = shards[1].add(async {}).await.unwrap();
        sleep(ms(600_000)).await;
        let tries = state.shared.begun.load(SeqCst);
        assert!((50..2_000).contains(&tries), "{trouble:?}: {tries} tries in ten minutes");
        assert!(state.commands() < 2_000, "{trouble:?}");

        // It looks meanwhile.
        shards[0].resume().await.unwrap();
        let done = tokio::time::timeout(ms(5_000), job).await;
        done.unwrap_or_else(|_| panic!("{trouble:?}: it does not look")).unwrap();

        shards[0].pause().await.unwrap();
        let job = shards[1].add(async {}).await.unwrap();
        sleep(ms(60_000)).await;
        state.suffer(Trouble::None);
        shards[0].resume().await.unwrap();
        let done = tokio::time::timeout(ms(10_000), job).await;
        done.unwrap_or_else(|_| panic!("{trouble:?} is over, and the shard was not woken")).unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_notifies_too_often_is_polled_in_bounds() {
    let state = Watched::new();
    let shards = shards(1, &state, WakeUps::On).await;
    shards[0].pause().await.unwrap();
    state.suffer(Trouble::Noise);
    let job = shards[0].add(async {}).await.unwrap();
    let before = state.commands();
    sleep(ms(10_000)).await;
    let asked = state.commands() - before;
    assert!(asked <= 510, "{asked} commands in ten seconds");
    job.cancel();
}

/// A state that cannot tell of changes, and counts how often it is read.
#[derive(Clone, Debug)]
struct Silent(Faulty);

#[async_trait]
impl SharedState for Silent {
    async fn apply(&self, queue: &QueueName, command: Command) -> Result<Reply, StateError> {
        self.0.apply(queue, command).await
    }
}

#[tokio::test(start_paused = true)]
async fn without_notifications_a_shard_polls_now_and_then() {
    let state = Silent(Faulty::new(MemoryState::new()));
    let open = || IntervalQueue::builder("test").interval(ms(10)).open(state.clone());
    let (one, other) = (open().await.unwrap(), open().await.unwrap());
    one.pause().await.unwrap();
    let job = with_ticket(&other, async {}).await;
    sleep(ms(100)).await;
    let before = state.0.counts();
    sleep(ms(3_600_000)).await;
    let looks = state.0.counts().reads - before.reads;
    assert!((1_500..2_200).contains(&looks), "{looks} looks in an hour");
    assert_eq!(state.0.counts().steps, before.steps, "one read a look and nothing else");
    one.resume().await.unwrap();
    tokio::time::timeout(ms(2_600), job).await.expect("it looks every two seconds or so").unwrap();
    other.wait_idle().await;
    sleep(ms(3_000)).await;
    assert_eq!(tasks(), 0, "nothing waits any more");
}

/// As above, but on threads and in real time, where more can happen between two looks at the line.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_resume_is_missed_on_threads() {
    let state = MemoryState::new();
    let shards = shards(3, &state, WakeUps::On).await;
    shards[0].set_interval(std::time::Duration::from_micros(1)).await.unwrap();
    let mut random = Random(3);
    for round in 0..500 {
        shards[0].pause().await.unwrap();
        let mut jobs = Vec::new();
        for shard in &shards[1..] {
            jobs.push(shard.add(async {}).await.unwrap());
        }
        for _ in 0..random.below(4) {
            shards[0].resume().await.unwrap();
            for _ in 0..random.below(20) {
                tokio::task::yield_now().await;
            }
            shards[0].pause().await.unwrap();
        }
        shards[0].resume().await.unwrap();
        let done = tokio::time::timeout(ms(60_000), all_done(jobs)).await;
        done.unwrap_or_else(|_| panic!("the resume of round {round} was missed"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_pause_right_after_another_one_is_watched() {
    let state = Watched::new();
    let shards = shards(2, &state, WakeUps::On).await;
    let (go_on, gate) = mpsc::channel();
    shards[0].pause().await.unwrap();
    let first = shards[1].add(async {}).await.unwrap();
    while state.open() != 1 {
        sleep(ms(1)).await;
    }
    *state.shared.gate.lock().unwrap() = Some(gate);
    shards[0].resume().await.unwrap();
    first.await.unwrap();
    shards[0].pause().await.unwrap();
    let second = shards[1].add(async {}).await.unwrap();
    assert!(shards[1].tick().await.paused);
    go_on.send(()).unwrap();
    shards[0].resume().await.unwrap();
    tokio::time::timeout(ms(60_000), second).await.expect("it was not watched").unwrap();
}

#[test]
fn a_shard_whose_runtime_ended_watches_in_the_next_runtime() {
    let runtime =
        || tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let state = Watched::new();
    let until_open = async |count| {
        while state.open() != count {
            sleep(ms(1)).await;
        }
    };
    let first = runtime();
    let (shards, early) = first.block_on(async {
        let shards = shards(2, &state, WakeUps::On).await;
        shards[0].pause().await.unwrap();
        let job = shards[1].add(async {}).await.unwrap();
        until_open(1).await;
        (shards, job)
    });
    drop(first);
    assert_eq!(state.open(), 0, "it ended with its runtime");
    runtime().block_on(async {
        let late = shards[1].add(async {}).await.unwrap();
        until_open(1).await;
        shards[0].resume().await.unwrap();
        let done = tokio::time::timeout(ms(60_000), all_done([early, late])).await;
        done.expect("both go on");
        until_open(0).await;
    });
}

/// Two instances on a state that processes share.
#[cfg(feature = "json-file")]
async fn resumes_on(url: &str) {
    let open = || IntervalQueue::builder("test").interval(ms(10)).connect(url);
    let (one, other) = (open().await.unwrap(), open().await.unwrap());
    one.pause().await.unwrap();
    let job = with_ticket(&other, async {}).await;
    sleep(ms(100)).await;
    assert_eq!(other.waiting(), 1);
    one.resume().await.unwrap();
    tokio::time::timeout(ms(60_000), job).await.expect("the resume resumes").unwrap();
}

#[cfg(feature = "json-file")]
#[tokio::test]
async fn a_resume_is_notified_on_a_file() {
    let directory = tempfile::tempdir().unwrap();
    resumes_on(&format!("file:{}", directory.path().join("pace.json").display())).await;
}

#[cfg(all(feature = "json-file", feature = "sqlite"))]
#[tokio::test]
async fn a_resume_is_notified_on_sqlite() {
    let directory = tempfile::tempdir().unwrap();
    resumes_on(&format!("sqlite:{}", directory.path().join("pace.db").display())).await;
}
