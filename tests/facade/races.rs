//! Replies that cross with what people do, panics in odd places, and what else must not stop a queue.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use interval_queue::{IntervalQueue, MemoryState, Retry};
use tokio::time::{Instant, sleep, timeout};

use crate::{
    common::{ms, open, queue as name, spawned},
    wire::{Fate, Wire, step_of},
};

/// Adds a job whose step is answered at once, but the reply takes its time.
fn add_with_a_slow_reply(wire: &Wire, queue: &IntervalQueue) -> tokio::task::JoinHandle<()> {
    wire.set(|command| match step_of(command) {
        Some(_) => Fate { after: ms(20), ..Fate::default() },
        None => Fate::default(),
    });
    let queue = queue.clone();
    tokio::spawn(async move { queue.add(async {}).await.unwrap().await.unwrap() })
}

// A step asked before the resume, whose reply (paused) arrives after it.

#[tokio::test(start_paused = true)]
async fn a_resume_is_not_undone_by_an_older_reply() {
    let wire = Wire::new(MemoryState::new());
    let queue = open(wire.clone(), ms(10)).await;
    queue.pause().await.unwrap();
    let job = add_with_a_slow_reply(&wire, &queue);
    sleep(ms(5)).await; // the step was answered "paused", the reply is on its way
    queue.resume().await.unwrap();
    timeout(ms(600_000), job).await.expect("the shard that resumed starts").unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_new_interval_is_not_undone_by_an_older_reply() {
    let wire = Wire::new(MemoryState::new());
    let queue = open(wire.clone(), Duration::from_secs(3600)).await;
    queue.add(async {}).await.unwrap().await.unwrap();
    let job = add_with_a_slow_reply(&wire, &queue);
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
    let tick = timeout(Duration::from_secs(10), queue.tick()).await;
    assert!(tick.is_ok(), "a tick waits for an answer only if something was asked");
    drop(long);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_holds_while_the_next_attempt_takes_its_ticket() {
    let wire = Wire::new(MemoryState::new());
    let queue = open(wire.clone(), ms(10)).await;
    wire.set(|command| match step_of(command).and_then(|step| step.take.as_ref()) {
        Some(_) => Fate { before: ms(100), ..Fate::default() },
        None => Fate::default(),
    });
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = runs.clone();
    let job = queue
        .retrying(Retry::times(3).first_delay(ms(1)), move || {
            counted.fetch_add(1, SeqCst);
            async { Err::<(), _>("no") }
        })
        .add()
        .await
        .unwrap();
    while runs.load(SeqCst) == 0 {
        sleep(ms(1)).await;
    }
    sleep(ms(20)).await; // the backoff is over, the ticket is being taken
    let cancelled = job.cancel();
    let _ = timeout(ms(60_000), job).await.unwrap();
    assert!(cancelled);
    assert_eq!(runs.load(SeqCst), 1, "cancel said that it will not run again");
}

#[tokio::test(start_paused = true)]
async fn shutdown_aborts_a_retrying_job_too() {
    let queue = open(MemoryState::new(), ms(10)).await;
    let job = queue
        .retrying(Retry::times(3), || async {
            sleep(Duration::from_secs(3600)).await;
            Ok::<_, ()>(())
        })
        .add()
        .await
        .unwrap();
    sleep(ms(100)).await;
    assert_eq!(queue.running(), 1);
    assert_eq!(queue.shutdown(ms(100)).await.aborted, 1);
    assert_eq!(queue.running(), 0, "running ones are aborted after the grace");
    drop(job);
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_the_drop_of_a_job_does_not_stop_a_shutdown() {
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
async fn a_lost_last_step_does_not_block_others_for_a_lease() {
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
    b.add(async {}).await.unwrap().await.unwrap();
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
        .retrying(Retry::times(3).first_delay(Duration::from_secs(60)), || async {
            sleep(Duration::from_secs(4)).await; // longer than half a lease
            Err::<(), _>("no")
        })
        .add()
        .await
        .unwrap();
    sleep(Duration::from_millis(4_500)).await;
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
    let job = spawned(&queue, async {});
    sleep(ms(5)).await;
    other.resume().await.unwrap();
    let tick = queue.tick().await;
    assert!(!tick.paused, "it was resumed before the tick");
    timeout(ms(5000), job).await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_mistakenly_long_interval_is_mended_after_a_heavy_job() {
    let queue = open(MemoryState::new(), Duration::from_secs(3600)).await;
    let heavy = interval_queue::JobOptions::new().weight(10);
    queue.job(async {}).options(heavy).add().await.unwrap().await.unwrap();
    queue.set_interval(ms(1)).await.unwrap();
    let began = Instant::now();
    queue.add(async {}).await.unwrap().await.unwrap();
    assert!(began.elapsed() < ms(100), "{:?}", began.elapsed());
}

// Other tasks of the thread, the started jobs among them, get their turn while slots come faster than steps.

#[tokio::test(start_paused = true)]
async fn tickets_of_a_withdrawn_job_are_given_up_after_a_lost_reply() {
    let memory = MemoryState::new();
    let wire = interval_queue_conformance::Faulty::new(memory.clone());
    let queue = open(wire.clone(), Duration::from_secs(3600)).await;
    queue.add(async {}).await.unwrap().await.unwrap();
    wire.change(|faults| faults.time_out = ms(50));
    wire.lose_next_reply();
    let withdrawn = queue.add(async {}).await.unwrap();
    assert!(timeout(ms(10), withdrawn.ticket()).await.is_err());
    assert!(withdrawn.cancel());
    assert_eq!(memory.snapshot(&name()).unwrap().shards.len(), 1, "the ticket was taken");
    queue.wait_idle().await;
    assert!(memory.snapshot(&name()).unwrap().shards.is_empty());
}
