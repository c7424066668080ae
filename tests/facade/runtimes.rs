//! Several runtimes and threads: where the driver lives, and whom it lets run. On real time.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    task::{Context, Wake, Waker},
    time::Duration,
};

use futures::FutureExt;
use interval_queue::{IntervalQueue, MemoryState, WakeUps};
use tokio::time::timeout;

use crate::common::{ms, open};

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
                .unwrap();
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
        queue.add(async {}).await.unwrap();
        drop(queue.add(async {}).await.unwrap());
    });
    let handle = main.block_on(queue.add(async {})).unwrap();
    drop(small);
    let result = main.block_on(async { timeout(ms(5000), handle).await });
    assert!(result.is_ok(), "a job of the main runtime waits for ever");
}

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
            .unwrap();
    }
    queue.resume().await.unwrap();
    let mut seen = std::collections::BTreeSet::new();
    while queue.waiting() + queue.running() > 0 {
        tokio::task::yield_now().await;
        seen.insert(queue.waiting());
    }
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
    let waker = Waker::from(look.clone());
    // The driver, in another thread, may be quicker.
    let pending = (0..1000).find_map(|_| {
        let job = q.add(async {}).now_or_never().unwrap().unwrap();
        let mut ticket = Box::pin(async move { job.ticket().await });
        ticket.as_mut().poll(&mut Context::from_waker(&waker)).is_pending().then_some(ticket)
    });
    let ticket = pending.expect("a ticket that is waited for");
    for _ in 0..300 {
        if look.1.load(SeqCst) > 0 {
            break;
        }
        std::thread::sleep(ms(10));
    }
    let woken = look.1.load(SeqCst);
    if woken == 0 {
        // Whatever is dropped now would wait for the lock, too.
        std::mem::forget((ticket, look));
        drop(_guard);
        std::mem::forget(rt);
        panic!("deadlock: the waker ran while the line was locked");
    }
}

#[test]
fn a_handle_fails_when_its_runtime_ends() {
    let main = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let small = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (_queue, job) = small.block_on(async {
        let q = open(MemoryState::new(), Duration::from_secs(1)).await;
        q.add(async {}).await.unwrap();
        let j = q.add(async {}).await.unwrap();
        (q, j)
    });
    drop(small);
    let result = main.block_on(async { timeout(ms(4000), job).await });
    assert!(result.is_ok(), "who waits for the job hands the line over");
}

#[test]
fn a_pause_is_watched_on_when_the_runtime_that_watched_it_ends() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (one, two) = (runtime(), runtime());
    let state = MemoryState::new();
    let watching = || {
        let builder = IntervalQueue::builder("test").interval(ms(10)).wake_ups(WakeUps::On);
        builder.open(state.clone())
    };
    let queue = one.block_on(watching()).unwrap();
    let other = two.block_on(watching()).unwrap();
    two.block_on(other.pause()).unwrap();
    let mut job = one.block_on(queue.add(async {})).unwrap();
    // It has gone idle, and watches.
    one.block_on(async { tokio::time::sleep(ms(100)).await });
    drop(one);
    two.block_on(async {
        assert!(timeout(ms(200), &mut job).await.is_err(), "it is paused");
        other.resume().await.unwrap();
        timeout(Duration::from_secs(10), job).await.expect("it hears of the end of the pause").unwrap();
    });
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
        assert_eq!(after, 0);
    });
}
