//! Jobs that are added to a busy shard travel with the command that asks for its next slot.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use async_trait::async_trait;
use futures::future::join_all;
use interval_queue::{
    Builder, ErrorKind, IntervalQueue, MemoryState, SharedState, StateError,
    contract::{Command, QueueName, Reply},
};
use tokio::time::{Instant, sleep, sleep_until};

use crate::common::{Starts, all_done, ms, queue, with_ticket};

/// A memory that counts the steps.
#[derive(Clone, Debug, Default)]
struct Counting {
    memory: MemoryState,
    steps: Arc<AtomicUsize>,
}

#[async_trait]
impl SharedState for Counting {
    async fn apply(&self, queue: &QueueName, command: Command) -> Result<Reply, StateError> {
        self.steps.fetch_add(usize::from(matches!(command, Command::Step(_))), SeqCst);
        self.memory.apply(queue, command).await
    }
}

fn builder(interval: Duration) -> Builder {
    IntervalQueue::builder(queue().as_str()).interval(interval)
}

/// Offers jobs at twice the pace to four shards in turn; how many steps there were for a job.
async fn steps_per_job(linger: Option<Duration>) -> f64 {
    const JOBS: usize = 400;
    let state = Counting::default();
    let mut shards = Vec::new();
    for _ in 0..4 {
        let builder = linger.into_iter().fold(builder(ms(10)), Builder::linger);
        shards.push(builder.open(state.clone()).await.unwrap());
    }
    let (starts, began) = (Starts::new(), Instant::now());
    let adds = (0..JOBS).map(|job| {
        let (shard, job_of, at) = (&shards[job % 4], starts.job(job), began + ms(5) * job as u32);
        async move {
            sleep_until(at).await;
            shard.add(job_of).await
        }
    });
    all_done(join_all(adds).await.into_iter().map(Result::unwrap)).await;
    // Nothing is lost by it: every slot is used.
    assert_eq!(starts.all().len(), JOBS);
    let took = starts.all()[JOBS - 1].at - starts.all()[0].at;
    assert!(took < ms(10) * (JOBS as u32 + 3), "{took:?}");
    state.steps.load(SeqCst) as f64 / JOBS as f64
}

#[tokio::test(start_paused = true)]
async fn a_busy_queue_needs_little_more_than_one_command_for_a_job() {
    let lingering = steps_per_job(None).await;
    assert!(lingering < 1.1, "{lingering}");
    let at_once = steps_per_job(Some(Duration::ZERO)).await;
    assert!(at_once > 1.7, "{at_once}");
}

#[tokio::test(start_paused = true)]
async fn a_job_with_nothing_in_front_of_it_never_waits_for_its_ticket() {
    let queue = builder(ms(20)).open(MemoryState::new()).await.unwrap();
    for _ in 0..10 {
        let began = Instant::now();
        let handle = with_ticket(&queue, async {}).await;
        assert_eq!(began.elapsed(), Duration::ZERO);
        handle.await.unwrap();
        sleep(ms(3)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn no_job_waits_for_a_ticket_longer_than_the_linger() {
    for (interval, linger) in [(ms(60), ms(50)), (ms(60), ms(200)), (ms(10), Duration::ZERO), (ms(10), ms(7))]
    {
        let queue = builder(interval).linger(linger).open(MemoryState::new()).await.unwrap();
        let mut handles = Vec::new();
        for _ in 0..30 {
            let began = Instant::now();
            handles.push(with_ticket(&queue, async {}).await);
            let waited = began.elapsed();
            // Tokio's timers are a millisecond coarse.
            assert!(waited <= linger + ms(1), "{waited:?} of {linger:?} at {interval:?}");
        }
        all_done(handles).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_that_lingers_can_be_cancelled() {
    let queue = builder(ms(40)).open(MemoryState::new()).await.unwrap();
    let first = join_all((0..3).map(|_| queue.add(async {}))).await;
    first[2].as_ref().unwrap().ticket().await.unwrap();
    let last = queue.add(async { panic!("it was withdrawn") as () }).await.unwrap();
    assert!(tokio::time::timeout(ms(1), last.ticket()).await.is_err(), "it lingers");
    assert!(last.cancel());
    assert_eq!(last.ticket().await.unwrap_err().kind(), ErrorKind::Cancelled);
    assert_eq!(queue.waiting(), 2, "the first has started, the last is gone");
    for handle in first {
        handle.unwrap().await.unwrap();
    }
    queue.wait_idle().await;
}
