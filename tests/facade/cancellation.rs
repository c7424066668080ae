//! Every future of the interface dropped at every await: afterwards nothing leaks, and later jobs run.

use std::{
    future::Future,
    pin::{Pin, pin},
    task::{Context, Poll},
    time::Duration,
};

use interval_queue::{IntervalQueue, Retry};
use interval_queue_conformance::Faulty;
use tokio::runtime::Handle;

use crate::common::{memory, ms, queue};

/// Polls a future at most so many times, then is ready without it.
struct Dropping<F> {
    future: Option<Pin<Box<F>>>,
    polls_left: usize,
}

impl<F: Future> Future for Dropping<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if this.polls_left == 0 {
            this.future = None;
            return Poll::Ready(None);
        }
        this.polls_left -= 1;
        let poll = this.future.as_mut().map(|future| future.as_mut().poll(context));
        if this.polls_left == 0 && matches!(poll, Some(Poll::Pending)) {
            this.future = None;
            return Poll::Ready(None);
        }
        poll.map_or(Poll::Ready(None), |poll| poll.map(Some))
    }
}

/// What is tried, from a fresh queue; true once it got to its end.
async fn dropped_at_every_await<F>(what: &str, attempt: impl Fn(IntervalQueue) -> F)
where
    F: Future<Output = ()>,
{
    let mut polls = 0;
    loop {
        polls += 1;
        // With two jobs before it, with a state that takes its time, and dropped also while something else
        // happens.
        for wait in [0, 1, 7, 60] {
            let (memory, state) = memory();
            let wire = Faulty::new(state.clone());
            let builder = IntervalQueue::builder("test").interval(ms(20)).max_running(2).lease(ms(60_000));
            let shard = builder.open(wire.clone()).await.unwrap();
            wire.change(|faults| (faults.delay_before, faults.delay_after) = (ms(3), ms(3)));
            let before: Vec<_> =
                futures::future::join_all((0..2).map(|_| shard.add(tokio::time::sleep(ms(30))))).await;
            let mut attempted =
                pin!(Dropping { future: Some(Box::pin(attempt(shard.clone()))), polls_left: polls });
            let outcome = match tokio::time::timeout(ms(wait), &mut attempted).await {
                Ok(outcome) => outcome,
                Err(_) if polls > 8 => attempted.as_mut().await,
                Err(_) => None,
            };
            attempted.set(Dropping { future: None, polls_left: 0 });
            if memory.snapshot(&queue()).unwrap().paused {
                shard.resume().await.unwrap();
            }
            shard.start();
            for job in before {
                tokio::time::timeout(ms(60_000), job.unwrap()).await.expect("earlier jobs run").unwrap();
            }
            if let Ok(later) = shard.add(async { 7 }).await {
                let later = tokio::time::timeout(Duration::from_secs(120), later).await;
                assert_eq!(
                    later
                        .unwrap_or_else(|_| panic!("{what}, dropped after {polls} polls, is stuck"))
                        .unwrap(),
                    7
                );
            }
            tokio::time::timeout(ms(10_000), shard.wait_idle()).await.unwrap_or_else(|_| {
                panic!("{what}, dropped after {polls} polls, leaves something: {shard:?}");
            });
            tokio::time::sleep(ms(50)).await;
            assert_eq!(Handle::current().metrics().num_alive_tasks(), 0, "{what} leaves a task");
            let record = memory.snapshot(&queue()).unwrap();
            assert!(record.shards.is_empty(), "{what} leaves its presence: {:?}", record.shards);
            state.assert_spaced(ms(20));
            if wait == 60 && outcome.is_some() {
                return;
            }
        }
        assert!(polls < 200, "{what} never ends");
    }
}

macro_rules! dropped {
    ($($name:ident: $attempt:expr;)*) => {$(
        #[tokio::test(start_paused = true)]
        async fn $name() {
            dropped_at_every_await(stringify!($name), $attempt).await;
        }
    )*};
}

dropped! {
    add: |queue| async move {
        queue.add(async {}).await.unwrap();
    };
    add_and_await: |queue| async move {
        queue.add(tokio::time::sleep(ms(5))).await.unwrap().await.unwrap();
    };
    cancel: |queue| async move {
        let job = queue.add(async {}).await.unwrap();
        tokio::task::yield_now().await;
        job.cancel();
        let _ = job.await;
    };
    add_retrying: |queue| async move {
        let mut attempts = 0;
        let policy = Retry::times(2).first_delay(ms(5));
        let job = queue.retrying(policy, move || {
            attempts += 1;
            let outcome = if attempts < 3 { Err("again") } else { Ok(attempts) };
            async move { outcome }
        }).add();
        job.await.unwrap().await.unwrap().unwrap();
    };
    wrap: |queue| async move {
        let double = queue.wrap(|n: u32| async move { n * 2 });
        assert_eq!(double(4).await.unwrap(), 8);
    };
    turn: |queue| async move {
        let turn = queue.turn().await.unwrap();
        tokio::time::sleep(ms(5)).await;
        drop(turn);
    };
    pause_and_resume: |queue| async move {
        queue.pause().await.unwrap();
        queue.resume().await.unwrap();
    };
    hold: |queue| async move { queue.hold(ms(100)).await.unwrap(); };
    set_interval: |queue| async move { queue.set_interval(ms(20)).await.unwrap(); };
    set_max_running: |queue| async move {
        queue.set_max_running(interval_queue::MaxRunning::AtMost(3)).await.unwrap();
    };
    tick: |queue| async move { queue.tick().await; };
    status: |queue| async move { queue.status().await; };
    wait_idle: |queue| async move { queue.wait_idle().await; };
    close: |queue| async move { queue.close().await; };
}

#[cfg(feature = "tower")]
#[tokio::test(start_paused = true)]
async fn paced_calls() {
    use interval_queue::{JobOptions, tower::IntervalLayer};
    use tower::{Layer, ServiceExt, service_fn};

    let service = service_fn(async |(): ()| {
        tokio::time::sleep(ms(5)).await;
        Ok::<_, std::io::Error>(())
    });
    dropped_at_every_await("a call", async |queue| {
        IntervalLayer::new(queue).layer(service).oneshot(()).await.unwrap();
    })
    .await;
    dropped_at_every_await("a call whose slot depends on the request", async |queue| {
        let layer = IntervalLayer::new(queue).options_for(|(): &()| JobOptions::new().weight(2));
        layer.layer(service).oneshot(()).await.unwrap();
    })
    .await;
}

#[cfg(feature = "http")]
#[tokio::test(start_paused = true)]
async fn observe() {
    use http::{HeaderMap, StatusCode};
    dropped_at_every_await("observe", async |queue| {
        let observer = interval_queue::http::Observer::new(queue);
        observer.observe(StatusCode::TOO_MANY_REQUESTS, &HeaderMap::new()).await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn shutdown_dropped_at_every_await() {
    for polls in 1..20 {
        let (memory, state) = memory();
        let shard = IntervalQueue::builder("test").interval(ms(20)).max_running(1).open(state).await.unwrap();
        let running = shard.add(tokio::time::sleep(ms(500))).await.unwrap();
        let waiting = shard.add(async {}).await.unwrap();
        tokio::time::sleep(ms(50)).await;
        Dropping { future: Some(Box::pin(shard.shutdown(ms(100)))), polls_left: polls }.await;
        assert!(waiting.await.is_err());
        let _ = running.await;
        tokio::time::timeout(ms(10_000), shard.wait_idle()).await.unwrap();
        assert!(memory.snapshot(&queue()).unwrap().shards.is_empty());
    }
}
