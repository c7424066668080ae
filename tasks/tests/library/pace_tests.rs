//! Starts at a pace: exact over all workers, chosen late, and weighed.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use interval_queue_tasks::{
    Context, DAY, RateLimit, SECOND, Task, TaskError, TaskQueue, Worker, WorkerBuilder,
};
use tokio::time::{Instant, sleep};

use crate::common::{Faulty, builder, finish, ms, now, queue, secs, spawned, stored};

/// When which task started.
#[derive(Clone, Debug)]
struct Starts(Arc<Mutex<Vec<(String, Instant)>>>, Duration);

impl Starts {
    /// Runs that take so long.
    fn taking(time: Duration) -> Self {
        Self(Arc::default(), time)
    }

    fn names(&self) -> Vec<String> {
        self.0.lock().unwrap().iter().map(|(name, _)| name.clone()).collect()
    }

    /// The times between two starts, in whole milliseconds.
    fn apart(&self) -> Vec<u64> {
        let starts = self.0.lock().unwrap();
        let mut at: Vec<_> = starts.iter().map(|(_, at)| *at).collect();
        at.sort();
        at.windows(2).map(|pair| (pair[1] - pair[0]).as_micros().div_ceil(1_000) as u64).collect()
    }

    fn worker(&self, queue: &TaskQueue) -> WorkerBuilder {
        let starts = self.clone();
        Worker::builder(queue).handler("a", move |_: Context, name: String| {
            let starts = starts.clone();
            async move {
                starts.0.lock().unwrap().push((name, now()));
                sleep(starts.1).await;
                Ok::<_, TaskError>(())
            }
        })
    }
}

fn named(names: impl IntoIterator<Item = &'static str>) -> Vec<Task> {
    names.into_iter().map(|name| Task::new("a", name)).collect()
}

#[tokio::test(start_paused = true)]
async fn the_starts_of_all_workers_are_an_interval_apart() {
    let store = Faulty::new();
    let queue = store.open(builder().interval(ms(100))).await;
    // The other one finds the pace that is stored.
    let other = store.beside().open(builder()).await;
    assert_eq!(other.rate_limit().await.unwrap().map(|pace| pace.interval()), Some(ms(100)));
    queue.add_all(named(["x"; 40])).await.unwrap();
    let starts = Starts::taking(ms(250));
    let (one, two) = tokio::join!(finish(starts.worker(&queue)), finish(starts.worker(&other)));
    assert_eq!(one.done + two.done, 40);
    assert!(one.done > 5 && two.done > 5, "both take part: {} and {}", one.done, two.done);
    let apart = starts.apart();
    assert!(apart.iter().all(|&apart| apart >= 100), "{apart:?}");
    assert!(apart.iter().sum::<u64>() <= 39 * 100 + 100, "no slot is left unused: {apart:?}");
}

#[tokio::test(start_paused = true)]
async fn a_more_urgent_task_added_while_others_wait_starts_next() {
    let queue = builder().interval(secs(10)).connect("memory:").await.unwrap();
    queue.add_all(named(["one", "two", "three"])).await.unwrap();
    let starts = Starts::taking(ms(1));
    let worker = starts.worker(&queue).build().unwrap();
    let running = tokio::spawn(worker.run_until_empty());
    sleep(secs(5)).await;
    assert_eq!(starts.names(), ["one"]);
    queue.add(Task::new("a", "urgent").priority(1)).await.unwrap();
    running.await.unwrap().unwrap();
    assert_eq!(starts.names(), ["one", "urgent", "two", "three"]);
    assert!(starts.apart().iter().all(|&apart| (10_000..10_050).contains(&apart)), "{:?}", starts.apart());
}

#[tokio::test(start_paused = true)]
async fn a_heavy_task_takes_as_many_slots_as_it_weighs() {
    let queue = builder().interval(ms(100)).connect("memory:").await.unwrap();
    let tasks = [("one", 1), ("heavy", 5), ("two", 1), ("three", 1)];
    queue.add_all(tasks.map(|(name, weight)| Task::new("a", name).weight(weight))).await.unwrap();
    let starts = Starts::taking(ms(1));
    finish(starts.worker(&queue)).await;
    assert_eq!(starts.names(), ["one", "heavy", "two", "three"]);
    let apart = starts.apart();
    assert!((500..=560).contains(&(apart[0] + apart[1] - 100)), "{apart:?}");
}

#[tokio::test(start_paused = true)]
async fn a_heavy_task_that_is_chosen_late_has_its_own_weight() {
    let queue = builder().interval(secs(1)).connect("memory:").await.unwrap();
    queue.add_all(named(["one", "two", "three"])).await.unwrap();
    let starts = Starts::taking(ms(1));
    let running = tokio::spawn(starts.worker(&queue).build().unwrap().run_until_empty());
    sleep(ms(500)).await;
    queue.add(Task::new("a", "heavy").priority(1).weight(4)).await.unwrap();
    running.await.unwrap().unwrap();
    assert_eq!(starts.names(), ["one", "heavy", "two", "three"]);
    let apart = starts.apart();
    assert!(apart.iter().sum::<u64>() >= 6_000, "the heavy one has four slots: {apart:?}");
    assert!(apart.iter().sum::<u64>() <= 6_100, "{apart:?}");
}

#[tokio::test(start_paused = true)]
async fn without_an_interval_nothing_waits() {
    let queue = queue().await;
    queue.add_all((0..1_000).map(|_| Task::new("a", "x"))).await.unwrap();
    let starts = Starts::taking(ms(0));
    let began = now();
    finish(starts.worker(&queue)).await;
    assert!(queue.rate_limit().await.unwrap().is_none());
    assert!(began.elapsed() < secs(2), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_paced_worker_holds_little_and_gives_it_back_when_it_stops() {
    let queue = builder().interval(secs(600)).connect("memory:").await.unwrap();
    queue.add_all(named(["one", "two", "three", "four"])).await.unwrap();
    let starts = Starts::taking(ms(1));
    let worker = starts.worker(&queue).build().unwrap();
    let (handle, ended) = (worker.handle(), spawned(worker));
    sleep(secs(60)).await;
    let leased: usize = queue.workers().await.unwrap().iter().map(|worker| worker.holds.len()).sum();
    assert_eq!((starts.names(), leased), (vec!["one".to_owned()], 1));
    let began = now();
    handle.stop();
    ended.await.unwrap();
    assert!(began.elapsed() < secs(1), "nobody waits for a far slot: {:?}", began.elapsed());
    let leased: usize = queue.workers().await.unwrap().iter().map(|worker| worker.holds.len()).sum();
    assert_eq!(leased, 0);
}

#[tokio::test(start_paused = true)]
async fn a_held_rate_and_a_paused_queue_start_no_tasks() {
    let queue = builder().interval(ms(100)).connect("memory:").await.unwrap();
    let starts = Starts::taking(ms(1));
    let worker = starts.worker(&queue).build().unwrap();
    let (handle, ended) = (worker.handle(), spawned(worker));
    queue.rate_limit().await.unwrap().unwrap().hold(secs(30)).await.unwrap();
    let id = queue.add(Task::new("a", "held")).await.unwrap().id();
    sleep(secs(29)).await;
    assert_eq!(starts.names().len(), 0);
    queue.wait::<()>(id).await.unwrap();

    queue.pause().await.unwrap();
    let id = queue.add(Task::new("a", "paused")).await.unwrap().id();
    sleep(secs(30)).await;
    assert_eq!(starts.names(), ["held"]);
    queue.resume().await.unwrap();
    queue.wait::<()>(id).await.unwrap();
    assert_eq!(stored(&queue, id).await.task.failures, 0);
    handle.stop();
    ended.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_burst_starts_at_once_and_a_fast_pace_is_kept() {
    let pace = RateLimit::rate(200).per(secs(1)).burst(20);
    let queue = builder().rate_limit(pace).connect("memory:").await.unwrap();
    queue.add_all((0..220).map(|_| Task::new("a", "x"))).await.unwrap();
    let starts = Starts::taking(ms(1));
    let began = now();
    finish(starts.worker(&queue)).await;
    assert_eq!(starts.names().len(), 220);
    assert!(began.elapsed() >= ms(995), "{:?}", began.elapsed());
    assert!(began.elapsed() < ms(1_400), "the rate is used: {:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn rates_and_bursts_are_built_as_those_of_a_queue() {
    let rates = async |builder: interval_queue_tasks::Builder| {
        let queue = builder.connect("memory:").await.unwrap();
        queue.rate_limit().await.unwrap().unwrap().status().await.shared.unwrap().record.settings().rates
    };
    let same = RateLimit::rate(5).per(SECOND).burst(10).and(10_000).per(DAY);
    let built = builder().rate(5).per(SECOND).burst(10).and(10_000).per(DAY);
    assert_eq!(rates(built).await, same.rates().unwrap());
    let again = builder().interval(ms(7)).rate(5).per(SECOND);
    assert_eq!(rates(again).await, RateLimit::rate(5).per(SECOND).rates().unwrap(), "rate starts over");
}
