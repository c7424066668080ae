//! Late binding: the place first, the choice last; and no slot is wasted where there is nothing to do.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use futures::FutureExt;
use interval_queue::{Error, ErrorKind, IntervalQueue, JobGroup, Weighed};
use tokio::time::{Instant, sleep, timeout};

use crate::common::{Starts, add_in_turn, all_done, begun, far, memory, ms, one, with_ticket};

/// Jobs by their numbers, as in a table; and when each was chosen.
#[derive(Clone, Default)]
struct Table {
    rows: Arc<Mutex<VecDeque<usize>>>,
    chosen: Arc<Mutex<Vec<Instant>>>,
}

impl Table {
    fn of(rows: impl IntoIterator<Item = usize>) -> Self {
        Self { rows: Arc::new(Mutex::new(rows.into_iter().collect())), ..Self::default() }
    }

    fn next(&self) -> Option<usize> {
        self.chosen.lock().unwrap().push(Instant::now());
        self.rows.lock().unwrap().pop_front()
    }

    /// Runs all of it through the queue.
    async fn pour(&self, queue: &IntervalQueue, starts: &Starts) -> Result<(), Error> {
        let mut jobs = Vec::new();
        while let Some(job) = queue.pull(|| async { self.next().map(|row| starts.job(row)) }).await? {
            jobs.push(job);
        }
        all_done(jobs).await;
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_table_is_paced_and_each_row_chosen_shortly_before_its_slot() {
    let (state, shards, starts) = begun(1, ms(100)).await;
    let (table, began) = (Table::of(0..50), Instant::now());
    table.pour(&shards[0], &starts).await.unwrap();
    assert_eq!(starts.jobs(), (0..50).collect::<Vec<_>>());
    assert!(starts.gaps().iter().all(|gap| *gap <= ms(102)), "no slot is wasted: {:?}", starts.gaps());
    state.assert_spaced(ms(100));
    let chosen = table.chosen.lock().unwrap().clone();
    for (chosen, start) in chosen.iter().zip(starts.all()) {
        let ahead = (began + start.at).saturating_duration_since(*chosen);
        assert!(ahead <= ms(20), "job {} was chosen {ahead:?} before its start", start.job);
    }
}

/// Pulls so often, and there is nothing.
async fn pull_nothing(queue: &IntervalQueue, times: usize) {
    for _ in 0..times {
        let nothing = queue.pull(async || None::<std::future::Ready<()>>).await.unwrap();
        assert!(nothing.is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn tables_of_several_shards_use_every_slot_together() {
    let (state, shards, starts) = begun(3, ms(20)).await;
    let tables: Vec<_> = (0..3).map(|shard| Table::of((shard..300).step_by(3))).collect();
    let pours = tables.iter().zip(&shards).map(|(table, queue)| table.pour(queue, &starts));
    futures::future::try_join_all(pours).await.unwrap();
    starts.assert_each_once(0..300);
    let all = starts.all();
    let took = all[299].at - all[0].at;
    assert!(took <= ms(20 * 306), "{took:?} for 299 intervals of 20 ms");
    state.assert_spaced(ms(20));
}

#[tokio::test(start_paused = true)]
async fn an_empty_pull_wastes_at_most_one_slot_of_other_shards() {
    let (state, shards, starts) = begun(2, ms(20)).await;
    let jobs = shards[0].add_all((0..200).map(|job| starts.job(job))).await.unwrap();
    let own = async {
        for _ in 0..100 {
            // Before the others, so that each of them is in the way of one.
            let nothing = shards[0].pull(async || None::<std::future::Ready<()>>).priority(1).await.unwrap();
            assert!(nothing.is_none());
            sleep(ms(35)).await;
        }
    };
    tokio::join!(own, all_done(jobs));
    let took = starts.all()[199].at - starts.all()[0].at;
    assert!(took <= ms(20 * 201), "{took:?} for 199 intervals of 20 ms");

    let (table, starts) = (Table::of(0..100), Starts::new());
    tokio::join!(pull_nothing(&shards[1], 20), async { table.pour(&shards[0], &starts).await.unwrap() });
    let took = starts.all()[99].at - starts.all()[0].at;
    assert!(took <= ms(20 * (99 + 20 + 2)), "{took:?} for 99 intervals of 20 ms and 20 empty places");
    state.assert_spaced(ms(20));
}

#[tokio::test(start_paused = true)]
async fn a_place_that_is_given_back_goes_to_the_next_job_of_the_shard() {
    let (_, shards, starts) = begun(1, ms(100)).await;
    let queue = &shards[0];
    with_ticket(queue, starts.job(0)).await;
    let nothing = async { queue.pull(async || None::<std::future::Ready<()>>).await.unwrap() };
    let (nothing, next) = tokio::join!(nothing, async {
        sleep(ms(1)).await;
        queue.add(starts.job(1)).await.unwrap().await.unwrap();
    });
    assert!(nothing.is_none());
    let () = next;
    assert!(starts.gaps()[0] <= ms(102), "{:?}", starts.gaps());
}

#[tokio::test(start_paused = true)]
async fn a_pull_keeps_its_position() {
    let (_, shards, starts) = begun(2, ms(100)).await;
    let before = add_in_turn(&shards, &starts, 4).await;
    let pulled = tokio::spawn({
        let (queue, starts) = (shards[1].clone(), starts.clone());
        async move { queue.pull(async || Some(starts.job(4))).await.unwrap().unwrap().await.unwrap() }
    });
    sleep(ms(10)).await;
    let behind = [shards[1].add(starts.job(5)).await.unwrap(), shards[0].add(starts.job(6)).await.unwrap()];
    all_done(before.into_iter().chain(behind)).await;
    pulled.await.unwrap();
    assert_eq!(starts.jobs(), [0, 1, 2, 3, 4, 5, 6]);
}

#[tokio::test(start_paused = true)]
async fn an_ended_pull_chooses_nothing_and_leaves_no_ticket() {
    let queue = one(ms(100)).await;
    let never = async || -> Option<std::future::Ready<()>> { panic!("chosen") };
    with_ticket(&queue, async {}).await;
    queue.hold(ms(10_000)).await.unwrap();
    assert!(timeout(ms(500), queue.pull(never).into_future()).await.is_err());
    assert_eq!(queue.waiting(), 0);
    let group = JobGroup::new();
    let kind = |result: Result<Option<_>, Error>| {
        result.map(|_: Option<interval_queue::JobHandle<()>>| ()).unwrap_err().kind()
    };
    let pulls = async { queue.pull(never).group(&group).await };
    let (pulled, _) = tokio::join!(pulls, async {
        sleep(ms(500)).await;
        assert_eq!(group.cancel(), 1);
    });
    assert_eq!(kind(pulled), ErrorKind::Cancelled);
    let late = queue.pull(never).start_within(ms(2_000)).await;
    assert_eq!(kind(late), ErrorKind::TooLate);
    let (pulled, _) = tokio::join!(async { queue.pull(never).await }, queue.shutdown(ms(10)));
    assert_eq!(kind(pulled), ErrorKind::Cancelled);
    queue.wait_idle().await;
}

#[tokio::test(start_paused = true)]
async fn a_pull_waits_through_pauses_and_outages() {
    let (_, wire, queue) = far(ms(20)).await;
    let starts = Starts::new();
    queue.pause().await.unwrap();
    let pulled = tokio::spawn({
        let (queue, starts) = (queue.clone(), starts.clone());
        async move { queue.pull(async || Some(starts.job(1))).await.unwrap().unwrap().await.unwrap() }
    });
    sleep(ms(5_000)).await;
    assert!(starts.all().is_empty());
    queue.resume().await.unwrap();
    timeout(ms(1_000), pulled).await.unwrap().unwrap();

    wire.change(|faults| faults.outage = true);
    let pulled = tokio::spawn({
        let (queue, starts) = (queue.clone(), starts.clone());
        async move { queue.pull(async || Some(starts.job(2))).await.unwrap().unwrap().await.unwrap() }
    });
    sleep(ms(5_000)).await;
    assert_eq!(starts.jobs(), [1]);
    wire.change(|faults| faults.outage = false);
    timeout(ms(20_000), pulled).await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn now_is_a_free_slot_or_an_answer() {
    let (memory, state) = memory();
    let queue = crate::common::shard(&state, ms(1000)).await;
    assert_eq!(queue.estimate_wait(&Default::default()).await.unwrap(), Some(ms(0)));
    assert_eq!(queue.try_now(async { 7 }).await.unwrap().await.unwrap(), 7);
    let ticket = || memory.snapshot(&crate::common::queue()).unwrap().ticket;
    let before = ticket();
    let refused = queue.try_now(async {}).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::TooLate);
    let starts_in = refused.starts_in().unwrap();
    assert!(starts_in > ms(900) && starts_in <= ms(1000), "{refused}");
    let never = queue.job(async {}).start_within(ms(0)).add().await.unwrap_err();
    assert_eq!((never.kind(), never.starts_in().is_some()), (ErrorKind::TooLate, true));
    assert_eq!(ticket(), before, "neither took a ticket");
    sleep(starts_in).await;
    let starts = Starts::new();
    queue.job(starts.job(0)).start_within(ms(0)).add().await.unwrap().await.unwrap();
    assert!(starts.all()[0].at <= ms(1));
    queue.pause().await.unwrap();
    let paused = queue.try_now(async {}).await.unwrap_err();
    assert_eq!((paused.kind(), paused.starts_in()), (ErrorKind::TooLate, None));
    assert!(paused.to_string().contains("paused"), "{paused}");
    assert!(queue.turn().into_future().now_or_never().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_busy_shard_lets_urgent_jobs_of_others_start() {
    for (ahead, most) in [(None, 110), (Some(3), 6)] {
        let (_, state) = memory();
        let open = |ahead: Option<usize>| {
            let builder = IntervalQueue::builder("test").interval(ms(50)).linger(ms(0));
            ahead.into_iter().fold(builder, interval_queue::Builder::tickets_ahead).open(state.clone())
        };
        let (bulk, other) = (open(ahead).await.unwrap(), open(None).await.unwrap());
        let starts = Starts::new();
        let jobs = bulk.add_all((0..100).map(|job| starts.job(job))).await.unwrap();
        sleep(ms(500)).await;
        let before = starts.jobs().len();
        other.job(starts.job(1000)).priority(1000).add().await.unwrap().await.unwrap();
        let waited = starts.jobs().iter().position(|job| *job == 1000).unwrap() - before;
        assert!(waited <= most && (ahead.is_some() || waited > 80), "{waited} before it, {ahead:?} ahead");
        // One that is urgent to the shard itself overtakes its own, too.
        let before = starts.jobs().len();
        bulk.job(starts.job(2000)).priority(1).add().await.unwrap().await.unwrap();
        let waited = starts.jobs().iter().position(|job| *job == 2000).unwrap() - before;
        assert!(waited <= 2, "{waited} before it, {ahead:?} ahead");
        all_done(jobs).await;
        let bulk_jobs: Vec<_> = starts.jobs().into_iter().filter(|job| *job < 100).collect();
        assert_eq!(bulk_jobs, (0..100).collect::<Vec<_>>(), "in the order of adding");
        let gaps = starts.gaps();
        assert!(gaps.iter().all(|gap| *gap <= ms(52)), "the rate is nominal: {gaps:?}");
    }
    let builder = IntervalQueue::builder("test").interval(ms(50)).tickets_ahead(0);
    assert_eq!(builder.open(memory().1).await.unwrap_err().kind(), ErrorKind::Invalid);
}

#[tokio::test(start_paused = true)]
async fn a_choice_takes_the_intervals_of_its_own_weight() {
    let (state, shards, starts) = begun(1, ms(100)).await;
    let queue = &shards[0];
    let mut jobs = Vec::new();
    for (job, (pulled, weight)) in [(1, 1), (1, 5), (5, 1), (2, 2)].into_iter().enumerate() {
        let choose = || async { Some(Weighed { weight, job: starts.job(job) }) };
        jobs.push(queue.pull(choose).weight(pulled).await.unwrap().unwrap());
    }
    all_done(jobs).await;
    assert_eq!(starts.jobs(), [0, 1, 2, 3]);
    state.assert_spaced(ms(100));
    // A heavy one keeps the slots before its own or behind it.
    let long: u128 = starts.gaps().iter().map(|gap| gap.as_millis()).sum();
    assert!((700..=1_000).contains(&long), "{:?}", starts.gaps());

    let choose = || async { Some(Weighed { weight: 0, job: async {} }) };
    let error = queue.pull(choose).await.unwrap_err();
    assert!(error.kind() == ErrorKind::Invalid && error.to_string().contains("weight 0"), "{error}");
}
