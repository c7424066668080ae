//! G7: no jobs waiting or running: no timers, no tasks, no I/O, no presence in the record.

use interval_queue::{IntervalQueue, WakeUps};
use interval_queue_conformance::Faulty;
use tokio::runtime::Handle;

use crate::common::{Starts, add_in_turn, all_done, far, memory, ms, queue, shards, wired};

#[tokio::test(start_paused = true)]
async fn nothing_is_left_after_the_last_job() {
    let (memory, state) = memory();
    let faulty = Faulty::new(state);
    let shards = shards(3, &faulty, ms(10)).await;
    let starts = Starts::new();
    let handles = add_in_turn(&shards, &starts, 30).await;
    all_done(handles).await;
    for shard in &shards {
        shard.wait_idle().await;
    }
    tokio::task::yield_now().await;
    assert_eq!(Handle::current().metrics().num_alive_tasks(), 0);
    assert!(memory.snapshot(&queue()).unwrap().shards.is_empty());
    let before = faulty.counts();
    tokio::time::sleep(ms(3_600_000)).await;
    assert_eq!(faulty.counts(), before);
}

#[tokio::test(start_paused = true)]
async fn a_job_on_an_idle_queue_costs_one_command() {
    let (_, faulty, queue) = far(ms(10)).await;
    let opened = faulty.counts().total();
    for _ in 0..5 {
        queue.add(async {}).await.unwrap().await.unwrap();
        tokio::time::sleep(ms(100)).await;
    }
    assert_eq!(faulty.counts().total() - opened, 5);
}

#[tokio::test(start_paused = true)]
async fn a_paused_shard_listens_and_looks_twice_a_minute_at_most() {
    for (wake_ups, tasks, looks) in [(WakeUps::On, 1, 120), (WakeUps::Off, 0, 0)] {
        let (_, faulty) = wired();
        let builder = IntervalQueue::builder("test").interval(ms(10)).wake_ups(wake_ups);
        let queue = builder.open(faulty.clone()).await.unwrap();
        queue.pause().await.unwrap();
        let job = queue.add(async {}).await.unwrap();
        tokio::time::sleep(ms(50)).await;
        let before = faulty.counts().total();
        assert_eq!(Handle::current().metrics().num_alive_tasks(), tasks);
        tokio::time::sleep(ms(3_600_000)).await;
        assert!(faulty.counts().total() - before <= looks, "{wake_ups:?}: {:?}", faulty.counts());
        queue.resume().await.unwrap();
        job.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_long_job_is_known_while_it_runs_and_forgotten_after() {
    let (memory, state) = memory();
    let queue = IntervalQueue::builder("test").interval(ms(10)).lease(ms(1000)).open(state).await.unwrap();
    let job = queue.add(tokio::time::sleep(ms(5_000))).await.unwrap();
    tokio::time::sleep(ms(2_000)).await;
    let record = memory.snapshot(queue.name()).unwrap();
    assert_eq!(record.shards.values().map(|presence| presence.running).collect::<Vec<_>>(), [1]);
    job.await.unwrap();
    queue.wait_idle().await;
    assert!(memory.snapshot(queue.name()).unwrap().shards.is_empty());
    assert_eq!(Handle::current().metrics().num_alive_tasks(), 0);
}
