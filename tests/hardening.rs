//! Attacks on the core. Each test states a promise; those that fail show a defect.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::disallowed_methods, missing_docs)]

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    task::{Context, Wake, Waker},
    time::Duration,
};

use async_trait::async_trait;
use interval_queue::{
    IntervalQueue, MemoryState, Retry, SharedState, StateError, StateErrorKind,
    contract::{Command, QueueName, Reply, Step},
};
use tokio::time::{Instant, sleep, timeout};

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// What the wire does to one command: (delay before, delay after, lose the reply, panic).
#[derive(Clone, Copy, Debug, Default)]
struct Fate {
    before: Duration,
    after: Duration,
    lose_request: bool,
    lose_reply: bool,
    panic: bool,
}

type Decide = Arc<Mutex<Box<dyn FnMut(&Command) -> Fate + Send>>>;

#[derive(Clone)]
struct Wire {
    inner: MemoryState,
    decide: Decide,
}

impl std::fmt::Debug for Wire {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Wire")
    }
}

impl Wire {
    fn new(inner: MemoryState) -> Self {
        Self { inner, decide: Arc::new(Mutex::new(Box::new(|_| Fate::default()))) }
    }
    fn set(&self, decide: impl FnMut(&Command) -> Fate + Send + 'static) {
        *self.decide.lock().unwrap() = Box::new(decide);
    }
}

#[async_trait]
impl SharedState for Wire {
    async fn apply(&self, queue: &QueueName, command: Command) -> Result<Reply, StateError> {
        let fate = (self.decide.lock().unwrap())(&command);
        assert!(!fate.panic, "a backend with a bug");
        let lost = || Err(StateError::new(StateErrorKind::TimedOut, "lost"));
        if !fate.before.is_zero() {
            sleep(fate.before).await;
        }
        if fate.lose_request {
            return lost();
        }
        let reply = self.inner.apply(queue, command).await;
        if !fate.after.is_zero() {
            sleep(fate.after).await;
        }
        if fate.lose_reply { lost() } else { reply }
    }
}

fn step_of(command: &Command) -> Option<&Step> {
    match command {
        Command::Step(step) => Some(step),
        _ => None,
    }
}

async fn open(state: impl SharedState, interval: Duration) -> IntervalQueue {
    IntervalQueue::builder("test").interval(interval).open(state).await.unwrap()
}

fn name() -> QueueName {
    QueueName::new("test").unwrap()
}

// A step asked before the resume, whose reply (paused) arrives after it.
#[tokio::test(start_paused = true)]
async fn a_resume_is_not_undone_by_an_older_reply() {
    let wire = Wire::new(MemoryState::new());
    let queue = open(wire.clone(), ms(10)).await;
    queue.pause().await.unwrap();
    wire.set(|command| match step_of(command) {
        Some(_) => Fate { after: ms(20), ..Fate::default() },
        None => Fate::default(),
    });
    let job = tokio::spawn({
        let queue = queue.clone();
        async move { queue.add(async {}).await.unwrap().await.unwrap() }
    });
    sleep(ms(5)).await; // the step was answered "paused", the reply is on its way
    queue.resume().await.unwrap();
    timeout(ms(600_000), job).await.expect("the shard that resumed starts").unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_new_interval_is_not_undone_by_an_older_reply() {
    let wire = Wire::new(MemoryState::new());
    let queue = open(wire.clone(), Duration::from_secs(3600)).await;
    queue.add(async {}).await.unwrap().await.unwrap();
    wire.set(|command| match step_of(command) {
        Some(_) => Fate { after: ms(20), ..Fate::default() },
        None => Fate::default(),
    });
    let job = tokio::spawn({
        let queue = queue.clone();
        async move { queue.add(async {}).await.unwrap().await.unwrap() }
    });
    sleep(ms(5)).await;
    queue.set_interval(ms(1)).await.unwrap();
    timeout(ms(5_000), job).await.expect("the shard that changed it notices").unwrap();
}

#[tokio::test(start_paused = true)]
async fn tick_returns_soon_also_with_a_grant_in_hand() {
    let queue = open(MemoryState::new(), Duration::from_secs(100)).await;
    queue.add(async {}).await.unwrap().await.unwrap();
    let long = queue.add(sleep(Duration::from_secs(3600))).await.unwrap();
    sleep(Duration::from_millis(99_999)).await; // the grant is in hand, the slot is 1 ms away
    let began = Instant::now();
    let tick = timeout(Duration::from_secs(10), queue.tick()).await;
    println!("{tick:?} after {:?}", began.elapsed());
    assert!(tick.is_ok(), "a tick waits for an answer only if something was asked");
    drop(long);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_that_returned_true_is_kept_while_the_next_attempt_takes_its_ticket() {
    let wire = Wire::new(MemoryState::new());
    let queue = open(wire.clone(), ms(10)).await;
    wire.set(|command| match step_of(command).and_then(|step| step.take.as_ref()) {
        Some(_) => Fate { before: ms(100), ..Fate::default() },
        None => Fate::default(),
    });
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = runs.clone();
    let job = queue
        .add_retrying(Retry::times(3).first_delay(ms(1)), move || {
            counted.fetch_add(1, SeqCst);
            async { Err::<(), _>("no") }
        })
        .await
        .unwrap();
    while runs.load(SeqCst) == 0 {
        sleep(ms(1)).await;
    }
    sleep(ms(20)).await; // the backoff is over, the ticket is being taken
    let cancelled = job.cancel();
    let result = timeout(ms(60_000), job).await.unwrap();
    println!("{result:?}");
    assert!(cancelled);
    assert_eq!(runs.load(SeqCst), 1, "cancel said that it will not run again");
}

#[tokio::test(start_paused = true)]
async fn shutdown_aborts_a_retrying_job_too() {
    let queue = open(MemoryState::new(), ms(10)).await;
    let job = queue
        .add_retrying(Retry::times(3), || async {
            sleep(Duration::from_secs(3600)).await;
            Ok::<_, ()>(())
        })
        .await
        .unwrap();
    sleep(ms(100)).await;
    assert_eq!(queue.running(), 1);
    let down = queue.shutdown(ms(100)).await;
    println!("{down:?} running {}", queue.running());
    assert_eq!(queue.running(), 0, "running ones are aborted after the grace");
    drop(job);
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_the_drop_of_a_waiting_job_does_not_stop_a_shutdown() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("dropped");
        }
    }
    let state = MemoryState::new();
    let queue = open(state.clone(), Duration::from_secs(60)).await;
    queue.add(async {}).await.unwrap().await.unwrap();
    let bomb = Bomb;
    let job = queue
        .add(async move {
            let _bomb = bomb;
        })
        .await
        .unwrap();
    let down = tokio::spawn({
        let queue = queue.clone();
        async move { queue.shutdown(ms(10)).await }
    });
    let down = down.await;
    sleep(ms(1000)).await;
    println!("{down:?} {:?}", state.snapshot(&name()).unwrap().shards);
    assert!(down.is_ok());
    assert!(state.snapshot(&name()).unwrap().shards.is_empty());
    drop(job);
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_the_drop_of_a_finished_job_is_its_error() {
    struct Fut;
    impl Future for Fut {
        type Output = ();
        fn poll(self: std::pin::Pin<&mut Self>, _: &mut std::task::Context<'_>) -> std::task::Poll<()> {
            std::task::Poll::Ready(())
        }
    }
    impl Drop for Fut {
        fn drop(&mut self) {
            panic!("dropped");
        }
    }
    let queue = open(MemoryState::new(), ms(10)).await;
    let error = queue.add(Fut).await.unwrap().await.unwrap_err();
    assert_eq!(queue.running(), 0);
    assert_eq!(error.kind(), interval_queue::ErrorKind::Panicked);
}

#[tokio::test(start_paused = true)]
async fn one_lost_goodbye_does_not_block_the_others_for_a_lease() {
    let memory = MemoryState::new();
    let wire = Wire::new(memory.clone());
    let lease = Duration::from_secs(60);
    let a = IntervalQueue::builder("test").interval(ms(10)).max_running(1).lease(lease);
    let a = a.open(wire.clone()).await.unwrap();
    let b = IntervalQueue::builder("test").lease(lease).open(memory.clone()).await.unwrap();
    let lost = Arc::new(AtomicBool::new(false));
    wire.set({
        let lost = lost.clone();
        move |command| {
            let goodbye = step_of(command)
                .is_some_and(|step| step.running == 0 && step.ask.is_empty() && step.take.is_none());
            Fate { lose_request: goodbye && !lost.swap(true, SeqCst), ..Fate::default() }
        }
    });
    a.add(sleep(ms(50))).await.unwrap().await.unwrap();
    a.wait_idle().await;
    assert!(lost.load(SeqCst));
    let left = memory.snapshot(&name()).unwrap().shards.len();
    let began = Instant::now();
    b.add(async {}).await.unwrap().await.unwrap();
    println!("left {left}, waited {:?}", began.elapsed());
    assert_eq!(left, 0, "wait_idle: nothing of it is left in the record");
}

#[tokio::test(start_paused = true)]
async fn a_backend_that_panics_once_stops_nothing() {
    let wire = Wire::new(MemoryState::new());
    let queue = open(wire.clone(), ms(10)).await;
    let mut once = true;
    wire.set(move |_| Fate { panic: std::mem::take(&mut once), ..Fate::default() });
    let job = timeout(ms(60_000), queue.add(async {})).await.expect("the ticket is taken again");
    timeout(ms(60_000), job.unwrap()).await.unwrap().unwrap();
}

#[test]
fn a_tick_from_a_runtime_that_ends_does_not_leave_jobs_behind() {
    let main = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (queue, done) = main.block_on(async {
        let state = MemoryState::new();
        let queue = open(state, ms(50)).await;
        queue.pause().await.unwrap();
        let done = Arc::new(AtomicUsize::new(0));
        for _ in 0..10 {
            let done = done.clone();
            queue
                .add(async move {
                    done.fetch_add(1, SeqCst);
                })
                .await
                .unwrap()
                .detach();
        }
        (queue, done)
    });
    std::thread::sleep(ms(50));
    std::thread::spawn({
        let queue = queue.clone();
        move || {
            let small = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            small.block_on(async {
                queue.resume().await.unwrap();
                queue.tick().await;
            });
        }
    })
    .join()
    .unwrap();
    std::thread::sleep(ms(3000));
    assert_eq!(done.load(SeqCst), 10, "the queue's own runtime lives");
}

#[test]
fn a_driver_whose_runtime_ends_hands_over() {
    let main = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let queue = main.block_on(open(MemoryState::new(), ms(50)));
    let small = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    // The driver is born in the small runtime.
    small.block_on(async {
        queue.add(async {}).await.unwrap().detach();
        queue.add(async {}).await.unwrap().detach()
    });
    let handle = main.block_on(queue.add(async {})).unwrap();
    drop(small);
    let result = main.block_on(async { timeout(ms(5000), handle).await });
    assert!(result.is_ok(), "a job of the main runtime waits for ever");
}

#[tokio::test(start_paused = true)]
async fn a_wrapped_function_is_not_called_before_its_slot() {
    let queue = open(MemoryState::new(), ms(10)).await;
    queue.pause().await.unwrap();
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let f = queue.wrap(move |_: ()| {
        counted.fetch_add(1, SeqCst);
        async {}
    });
    let call = f(());
    let _ = timeout(ms(100), call).await;
    assert_eq!(calls.load(SeqCst), 0, "the calls are paced");
}

#[tokio::test(start_paused = true)]
async fn a_retry_in_backoff_leaves_no_presence_when_it_is_cancelled() {
    let state = MemoryState::new();
    let queue = open(state.clone(), ms(10)).await;
    let job = queue
        .add_retrying(Retry::times(3).first_delay(Duration::from_secs(60)), || async {
            sleep(Duration::from_secs(4)).await; // longer than half a lease
            Err::<(), _>("no")
        })
        .await
        .unwrap();
    sleep(Duration::from_millis(4_500)).await;
    println!("{:?}", state.snapshot(&name()).unwrap().shards);
    job.cancel();
    queue.wait_idle().await;
    assert!(
        state.snapshot(&name()).unwrap().shards.is_empty(),
        "{:?}",
        state.snapshot(&name()).unwrap().shards
    );
}

#[tokio::test(start_paused = true)]
async fn a_tick_waits_for_an_answer_to_its_own_question() {
    let memory = MemoryState::new();
    let wire = Wire::new(memory.clone());
    let (queue, other) = (open(wire.clone(), ms(10)).await, open(memory, ms(10)).await);
    wire.set(|_| Fate { after: ms(50), ..Fate::default() });
    queue.pause().await.unwrap();
    let job = tokio::spawn({
        let queue = queue.clone();
        async move { queue.add(async {}).await.unwrap().await }
    });
    sleep(ms(5)).await;
    other.resume().await.unwrap();
    let tick = queue.tick().await;
    assert!(!tick.paused, "it was resumed before the tick");
    timeout(ms(5000), job).await.unwrap().unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_long_interval_set_by_mistake_is_mended_also_after_a_heavy_job() {
    let queue = open(MemoryState::new(), Duration::from_secs(3600)).await;
    let heavy = interval_queue::JobOptions::new().weight(10);
    queue.add_with(heavy, async {}).await.unwrap().await.unwrap();
    queue.set_interval(ms(1)).await.unwrap();
    let began = Instant::now();
    queue.add(async {}).await.unwrap().await.unwrap();
    assert!(began.elapsed() < ms(100), "{:?}", began.elapsed());
}

// Other tasks of the thread, the started jobs among them, get their turn while slots come faster than steps.
#[tokio::test]
async fn a_driver_that_is_behind_lets_other_tasks_run() {
    let queue = open(MemoryState::new(), Duration::from_micros(1)).await;
    queue.pause().await.unwrap();
    let ran = Arc::new(AtomicUsize::new(0));
    for _ in 0..20_000 {
        let ran = ran.clone();
        queue
            .add(async move {
                ran.fetch_add(1, SeqCst);
            })
            .await
            .unwrap()
            .detach();
    }
    queue.resume().await.unwrap();
    let mut seen = std::collections::BTreeSet::new();
    while queue.waiting() + queue.running() > 0 {
        tokio::task::yield_now().await;
        seen.insert(queue.waiting());
    }
    println!("other tasks saw {} stages of 20,000 jobs", seen.len());
    assert!(seen.len() > 20, "{seen:?}");
}

#[test]
fn a_waker_may_use_the_queue() {
    struct Look(Mutex<Option<IntervalQueue>>, AtomicUsize);
    impl Wake for Look {
        fn wake(self: Arc<Self>) {
            if let Some(q) = self.0.lock().unwrap().as_ref() {
                let _ = q.waiting();
            }
            self.1.fetch_add(1, SeqCst);
        }
    }
    let rt = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let q = rt.block_on(open(MemoryState::new(), ms(10)));
    let look = Arc::new(Look(Mutex::new(Some(q.clone())), AtomicUsize::new(0)));
    let _guard = rt.enter();
    let mut add = Box::pin(q.add(async {}));
    let waker = Waker::from(look.clone());
    assert!(add.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    let began = std::time::Instant::now();
    while look.1.load(SeqCst) == 0 && began.elapsed() < ms(3000) {
        std::thread::sleep(ms(10));
    }
    let woken = look.1.load(SeqCst);
    if woken == 0 {
        // Whatever is dropped now would wait for the lock, too.
        std::mem::forget((add, look));
        drop(_guard);
        std::mem::forget(rt);
        panic!("deadlock: the waker ran while the line was locked");
    }
}

#[test]
fn a_handle_hears_that_its_runtime_ended() {
    let main = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let small = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (q, job) = small.block_on(async {
        let q = open(MemoryState::new(), Duration::from_secs(1)).await;
        q.add(async {}).await.unwrap().detach();
        let j = q.add(async {}).await.unwrap();
        (q, j)
    });
    drop(small);
    let r = main.block_on(async { timeout(ms(4000), job).await });
    println!("{r:?} waiting {}", q.waiting());
    assert!(r.is_ok(), "JobHandle: cancelled if its runtime ended");
}

#[test]
fn nothing_is_accepted_after_close_returned() {
    let rt = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap();
    rt.block_on(async {
        let mut after = 0;
        for _ in 0..3000 {
            let q = open(MemoryState::new(), Duration::from_micros(1)).await;
            let closed = Arc::new(AtomicBool::new(false));
            let go = Arc::new(tokio::sync::Barrier::new(2));
            let adder = tokio::spawn({
                let (q, closed, go) = (q.clone(), closed.clone(), go.clone());
                async move {
                    go.wait().await;
                    match q.add(async move { closed.load(SeqCst) }).await {
                        Ok(j) => j.await.unwrap(),
                        Err(_) => false,
                    }
                }
            });
            go.wait().await;
            q.close().await;
            closed.store(true, SeqCst);
            after += usize::from(adder.await.unwrap());
        }
        println!("jobs that ran after close returned: {after} of 3000");
        assert_eq!(after, 0);
    });
}
