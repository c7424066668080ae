//! What jobs can be given: weight, priority, the latest start, a limit to their run, a group; and a line that
//! is bounded.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures::{FutureExt, future::join_all};
use interval_queue::{Error, ErrorKind, IntervalQueue, JobGroup, JobOptions, Retry};
use tokio::time::sleep;

use crate::common::{
    Random, Starts, add_in_turn, all_done, begun, far, memory, ms, one, spawned, tickets, wired,
};

fn options() -> JobOptions {
    JobOptions::new()
}

fn kind<T>(result: Result<T, Error>) -> ErrorKind {
    result.err().map(|error| error.kind()).expect("an error")
}

#[tokio::test(start_paused = true)]
async fn the_best_job_of_a_shard_runs_whatever_ticket_comes_up() {
    let (state, shards, starts) = begun(2, ms(100)).await;
    let mut handles = add_in_turn(&shards, &starts, 6).await;
    for (job, priority) in [(10, 1), (11, 2), (12, 1), (13, -1)] {
        handles
            .push(shards[0].job(starts.job(job)).options(options().priority(priority)).add().await.unwrap());
    }
    all_done(handles).await;
    // Tickets 1, 3, 5 and 7 to 10 are those of the first shard; the job with the first one started at once.
    assert_eq!(starts.jobs(), [0, 1, 11, 3, 10, 5, 12, 2, 4, 13]);
    state.assert_spaced(ms(100));
}

#[tokio::test(start_paused = true)]
async fn a_priority_can_be_changed_until_the_start() {
    let queue = one(ms(100)).await;
    let starts = Starts::new();
    let handles = add_in_turn(std::slice::from_ref(&queue), &starts, 5).await;
    sleep(ms(10)).await;
    assert!(!handles[0].set_priority(9), "it has started");
    assert!(handles[4].set_priority(3));
    assert!(handles[3].set_priority(5));
    assert!(handles[3].set_priority(2));
    assert_eq!(handles[4].position(), Some(0));
    assert_eq!(handles[2].position(), Some(3));
    assert!(handles[1].cancel());
    assert!(!handles[1].set_priority(1), "it was cancelled");
    queue.wait_idle().await;
    assert_eq!(starts.jobs(), [0, 4, 3, 2]);
}

#[tokio::test(start_paused = true)]
async fn an_urgent_job_does_not_linger() {
    let (_, state) = memory();
    let queue = IntervalQueue::builder("test").interval(ms(50)).open(state).await.unwrap();
    let starts = Starts::new();
    add_in_turn(std::slice::from_ref(&queue), &starts, 20).await.into_iter().for_each(drop);
    let before = starts.all().len();
    queue.job(starts.job(99)).options(options().priority(1)).add().await.unwrap().await.unwrap();
    let position = starts.jobs().iter().position(|job| *job == 99).unwrap();
    assert!(position <= before + 1, "{position} after {before}");
}

#[tokio::test(start_paused = true)]
async fn a_heavy_job_that_overtakes_light_ones_keeps_the_pace() {
    let (state, shards, starts) = begun(2, ms(10)).await;
    let mut handles = add_in_turn(&shards, &starts, 40).await;
    for job in 100..110 {
        sleep(ms(17)).await;
        let heavy = options().weight(3).priority(1);
        handles.push(shards[job % 2].job(starts.job(job)).options(heavy).add().await.unwrap());
    }
    all_done(handles).await;
    assert_eq!(starts.all().len(), 50);
    state.assert_spaced(ms(10));
    let noted = starts.all();
    for pair in noted.windows(2).filter(|pair| pair[0].job >= 100) {
        let gap = pair[1].at - pair[0].at;
        // Timers of virtual time are a millisecond coarse.
        assert!(gap >= ms(29), "{gap:?} after {}", pair[0].job);
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_that_would_be_too_late_is_rejected_without_a_ticket() {
    let queue = one(ms(1000)).await;
    let starts = Starts::new();
    let handles = add_in_turn(std::slice::from_ref(&queue), &starts, 5).await;
    let error =
        queue.job(async {}).options(options().start_within(ms(3500))).add().await.map(|_| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLate);
    assert_eq!(error.to_string(), "the job would start in 5.0s, 1.5s later than it may");
    assert_eq!(queue.waiting(), 4);
    let in_time = queue.job(starts.job(5)).options(options().start_within(ms(5500))).add().await.unwrap();
    all_done(handles).await;
    in_time.await.unwrap();
    assert_eq!(starts.jobs(), [0, 1, 2, 3, 4, 5]);
    assert!(starts.gaps().iter().all(|gap| *gap <= ms(1010)), "no slot is lost: {:?}", starts.gaps());
}

#[tokio::test(start_paused = true)]
async fn the_weight_of_those_before_counts_in_the_quote() {
    let queue = one(ms(1000)).await;
    let heavy: Vec<_> = (0..2).map(|_| async {}).collect();
    drop(queue.jobs(heavy).options(options().weight(10)).add().await.unwrap());
    let last = queue.add(async {}).await.unwrap();
    let estimate = last.estimated_start().unwrap();
    assert!(estimate > ms(19_500) && estimate <= ms(20_500), "{estimate:?}");
    assert_eq!(
        kind(queue.job(async {}).options(options().start_within(ms(15_000))).add().await),
        ErrorKind::TooLate
    );
}

#[tokio::test(start_paused = true)]
async fn a_job_is_given_up_when_its_latest_start_passes() {
    let queue = one(ms(100)).await;
    let starts = Starts::new();
    queue.add(starts.job(0)).await.unwrap().await.unwrap();
    queue.pause().await.unwrap();
    let held = Arc::new(());
    let job = {
        let held = held.clone();
        async move { drop(held) }
    };
    let late = queue.job(job).options(options().start_within(ms(5000))).add().await.unwrap();
    let waits = queue.add(starts.job(1)).await.unwrap();
    let clock = Starts::new();
    assert_eq!(kind(late.await), ErrorKind::TooLate);
    clock.note(0);
    let after = clock.all()[0].at;
    assert!(after >= ms(4999) && after <= ms(5050), "{after:?}");
    tokio::task::yield_now().await;
    assert_eq!(Arc::strong_count(&held), 1, "the job was dropped");
    assert_eq!(queue.waiting(), 1);
    queue.resume().await.unwrap();
    waits.await.unwrap();
    queue.wait_idle().await;
    assert_eq!(starts.jobs(), [0, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_call_without_ticket_ends_when_its_latest_start_passes() {
    let (_, wire, queue) = far(ms(100)).await;
    wire.change(|faults| faults.outage = true);
    let ran = Arc::new(AtomicUsize::new(0));
    let job = {
        let ran = ran.clone();
        async move { ran.fetch_add(1, Ordering::Relaxed) }
    };
    let late = queue.job(job).start_within(ms(3000)).add().await.unwrap();
    assert_eq!(kind(late.ticket().await), ErrorKind::TooLate);
    assert_eq!(kind(late.await), ErrorKind::TooLate);
    assert_eq!(kind(queue.turn().options(options().start_within(ms(3000))).await), ErrorKind::TooLate);
    wire.change(|faults| faults.outage = false);
    queue.wait_idle().await;
    assert_eq!((queue.waiting(), ran.load(Ordering::Relaxed)), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_job_that_runs_too_long_is_dropped_and_makes_room_to_run() {
    let (_, state) = memory();
    let queue = IntervalQueue::builder("test").interval(ms(10)).max_running(1).open(state).await.unwrap();
    let long =
        queue.job(std::future::pending::<()>()).options(options().timeout(ms(200))).add().await.unwrap();
    let short = queue.job(async { 7 }).options(options().timeout(ms(200))).add().await.unwrap();
    let error = long.await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert_eq!(error.to_string(), "the job ran for longer than 200ms");
    assert_eq!(short.await.unwrap(), 7);
    let panics = queue.job(async { panic!("no") }).options(options().timeout(ms(200))).add().await.unwrap();
    let panicked: Result<(), _> = panics.await;
    assert_eq!(kind(panicked), ErrorKind::Panicked);
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_runs_too_long_is_tried_again() {
    let queue = one(ms(10)).await;
    let tries = Arc::new(AtomicUsize::new(0));
    let make = {
        let tries = tries.clone();
        move || {
            let attempt = tries.fetch_add(1, Ordering::Relaxed);
            async move {
                if attempt < 2 {
                    std::future::pending::<()>().await;
                }
                Ok::<_, ()>(attempt)
            }
        }
    };
    let policy = Retry::times(5);
    let job = queue.retrying(policy, make).options(options().timeout(ms(50))).add().await.unwrap();
    assert_eq!(job.await.unwrap(), Ok(2));
    let hangs = || async { std::future::pending::<Result<(), ()>>().await };
    let job = queue.retrying(Retry::times(1), hangs).options(options().timeout(ms(50))).add().await.unwrap();
    assert_eq!(kind(job.await), ErrorKind::TimedOut);
}

#[tokio::test(start_paused = true)]
async fn without_a_permit_add_waits_in_order_and_try_add_rejects() {
    let (_, state) = memory();
    let builder = IntervalQueue::builder("test").interval(ms(100)).linger(ms(0));
    let queue = builder.max_waiting(2).open(state).await.unwrap();
    let starts = Starts::new();
    let adds: Vec<_> = (0..6).map(|job| spawned(&queue, starts.job(job))).collect();
    sleep(ms(50)).await;
    assert_eq!(queue.waiting(), 2, "one has started");
    let error = queue.job(async {}).try_add().map(|_| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Full);
    assert_eq!(error.to_string(), "2 jobs of this shard wait, as many as may: `add` waits for room");
    // Who stops waiting for room takes none.
    assert!(queue.add(starts.job(9)).now_or_never().is_none());
    assert_eq!(
        kind(queue.job(async {}).options(options().start_within(ms(20))).add().await),
        ErrorKind::TooLate
    );
    for add in adds {
        add.await.unwrap();
    }
    assert_eq!(starts.jobs(), [0, 1, 2, 3, 4, 5]);
    assert!(starts.gaps().iter().all(|gap| *gap <= ms(110)), "{:?}", starts.gaps());

    sleep(ms(150)).await;
    queue.job(async {}).try_add().unwrap().await.unwrap();
    let cancelled = queue.job(async {}).try_add().unwrap();
    let kept = queue.job(async {}).try_add().unwrap();
    assert_eq!(kind(queue.job(async {}).try_add()), ErrorKind::Full);
    assert!(cancelled.cancel());
    queue.job(async {}).try_add().unwrap().await.unwrap();
    kept.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_waiter_for_a_permit_fails_when_the_queue_closes() {
    let (_, state) = memory();
    let queue = IntervalQueue::builder("test").interval(ms(100)).max_waiting(1).open(state).await.unwrap();
    queue.pause().await.unwrap();
    let accepted = queue.add(async { 1 }).await.unwrap();
    let waits = tokio::spawn({
        let queue = queue.clone();
        async move { queue.add(async { 2 }).await.map(|_| ()) }
    });
    sleep(ms(10)).await;
    let closing = queue.close();
    assert_eq!(kind(waits.await.unwrap()), ErrorKind::Closed);
    assert_eq!(kind(queue.job(async {}).try_add()), ErrorKind::Closed);
    queue.resume().await.unwrap();
    closing.await;
    assert_eq!(accepted.await.unwrap(), 1);
}

#[tokio::test(start_paused = true)]
async fn many_jobs_take_their_tickets_in_one_command() {
    let (_, wire, queue) = far(ms(100)).await;
    let starts = Starts::new();
    let before = wire.counts().steps;
    let handles = queue.add_all((0..1000).map(|job| starts.job(job))).await.unwrap();
    let tickets = tickets(&handles).await;
    assert_eq!(wire.counts().steps - before, 1);
    assert_eq!(tickets, (1..=1000).collect::<Vec<_>>());
    all_done(handles).await;
    assert_eq!(starts.jobs(), (0..1000).collect::<Vec<_>>());
    assert!(queue.add_all(Vec::<std::future::Ready<()>>::new()).await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn many_jobs_are_added_or_none_of_them() {
    let (_, state) = memory();
    let builder = IntervalQueue::builder("test").interval(ms(100)).linger(ms(0));
    let queue = builder.max_waiting(10).open(state).await.unwrap();
    let starts = Starts::new();
    let jobs = |count| (0..count).map(|job| starts.job(job)).collect::<Vec<_>>();
    let error = queue.add_all(jobs(11)).await.map(|_| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().starts_with("11 jobs at once, of which at most 10 may wait"), "{error}");
    assert!(starts.jobs().is_empty());
    // The last one would start after 900 ms, and is refused by itself.
    let mut handles = queue.jobs(jobs(10)).start_within(ms(850)).add().await.unwrap();
    assert_eq!(kind(handles.pop().unwrap().await), ErrorKind::TooLate);
    all_done(handles).await;
    assert_eq!(starts.jobs(), (0..9).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn a_group_is_cancelled_as_a_whole_on_all_its_queues() {
    let (_, shards, starts) = begun(2, ms(100)).await;
    let group = JobGroup::new();
    let mut members = Vec::new();
    let mut others = Vec::new();
    for job in 0..10 {
        members
            .push(shards[job % 2].job(starts.job(job)).options(options().group(&group)).add().await.unwrap());
        others.push(shards[job % 2].add(starts.job(100 + job)).await.unwrap());
    }
    sleep(ms(450)).await;
    let started = starts.jobs().iter().filter(|job| **job < 100).count();
    assert!(started > 0);
    assert_eq!(group.cancel(), 10 - started);
    assert_eq!(group.cancel(), 0);
    assert!(group.is_cancelled());
    let ended = join_all(members).await;
    let kinds: Vec<_> = ended.into_iter().filter_map(Result::err).map(|error| error.kind()).collect();
    assert_eq!(kinds, vec![ErrorKind::Cancelled; 10 - started]);
    assert_eq!(
        kind(shards[0].job(async {}).options(options().group(&group)).add().await),
        ErrorKind::Cancelled
    );
    assert_eq!(kind(shards[0].turn().options(options().group(&group)).await), ErrorKind::Cancelled);
    all_done(others).await;
    assert_eq!(starts.jobs().len(), 10 + started);
    let last = *starts.gaps().iter().max().unwrap();
    assert!(last <= ms(10_000), "places of the cancelled cost a lease at most: {last:?}");
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_group_ends_calls_without_ticket_and_attempts() {
    let (_, wire, queue) = far(ms(10)).await;
    let group = JobGroup::new();
    let failing = || async { Err::<(), _>("no") };
    let forever = Retry::times(1000).first_delay(ms(100)).longest_delay(ms(100));
    let tried = queue.retrying(forever, failing).options(options().group(&group)).add().await.unwrap();
    sleep(ms(1000)).await;
    wire.change(|faults| faults.outage = true);
    let waits = tokio::spawn({
        let (queue, options) = (queue.clone(), options().group(&group));
        async move { queue.job(async {}).options(options).add().await?.await }
    });
    sleep(ms(1000)).await;
    assert!(group.cancel() >= 1);
    assert_eq!(kind(waits.await.unwrap()), ErrorKind::Cancelled);
    wire.change(|faults| faults.outage = false);
    match tried.await {
        Ok(ended) => assert_eq!(ended, Err("no")),
        Err(error) => assert_eq!(error.kind(), ErrorKind::Cancelled),
    }
    queue.wait_idle().await;
}

#[tokio::test(start_paused = true)]
async fn options_that_cannot_be_used_are_refused_with_their_values() {
    let queue = one(Duration::from_secs(86_400)).await;
    let text = |result: Result<(), Error>| {
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        error.to_string()
    };
    let refused =
        async |options: JobOptions| text(queue.job(async {}).options(options).add().await.map(|_| ()));
    assert!(refused(options().weight(0)).await.contains("weight 0"));
    let heavy = refused(options().weight(367)).await;
    assert!(heavy.starts_with("weight 367 ") && heavy.ends_with("give at most 366"), "{heavy}");
    assert!(refused(options().timeout(Duration::ZERO)).await.contains("timeout 0"));
    let turn = queue.turn().options(options().timeout(ms(10))).await.map(|_| ());
    assert!(text(turn).starts_with("timeout 10ms of a turn"));
    let none = IntervalQueue::builder("none").interval(ms(1)).max_waiting(0).connect("memory:").await;
    assert!(text(none.map(|_| ())).starts_with("max_waiting 0"));
    // Limits beyond what a clock can tell are no limits.
    let forever = options().start_within(Duration::MAX).timeout(Duration::MAX);
    queue.job(async {}).options(forever).add().await.unwrap().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn random_mixes_of_options_end_every_job_once_at_the_rate() {
    for seed in 0..150 {
        let (state, wire) = wired();
        let mut random = Random(seed);
        let mut shards = Vec::new();
        for _ in 0..3 {
            let mut builder = IntervalQueue::builder("test").interval(ms(10)).lease(ms(500));
            if random.once_in(2) {
                builder = builder.max_waiting(20);
            }
            shards.push(builder.open(wire.clone()).await.unwrap());
        }
        let groups: Vec<_> = (0..3).map(|_| JobGroup::new()).collect();
        let (mut ends, mut ran) = (Vec::new(), Vec::new());
        for job in 0..150_u64 {
            let mut options = options().weight(1 + random.below(3) as u32);
            if random.once_in(3) {
                options = options.priority(random.below(5) as i32 - 2);
            }
            if random.once_in(4) {
                options = options.start_within(ms(1 + random.below(400)));
            }
            if random.once_in(5) {
                options = options.timeout(ms(1 + random.below(30)));
            }
            if random.once_in(4) {
                options = options.group(&groups[random.below(3) as usize]);
            }
            let runs = Arc::new(AtomicUsize::new(0));
            let work = {
                let (runs, takes) = (runs.clone(), ms(random.below(40)));
                async move {
                    runs.fetch_add(1, Ordering::Relaxed);
                    sleep(takes).await;
                }
            };
            ran.push(runs);
            let queue = shards[random.below(3) as usize].clone();
            let (change, cancels) = (random.below(6), random.once_in(8));
            let within = ms(random.below(200));
            ends.push(tokio::spawn(async move {
                let handle = queue.job(work).options(options).add().await?;
                if change == 0 {
                    sleep(within).await;
                    handle.set_priority(job as i32 % 7 - 3);
                }
                if cancels {
                    sleep(within).await;
                    handle.cancel();
                }
                handle.await
            }));
            if random.once_in(40) {
                groups[random.below(3) as usize].cancel();
            }
            if random.once_in(50) {
                wire.change(|faults| faults.outage = !faults.outage);
            }
            sleep(ms(random.below(12))).await;
        }
        wire.change(|faults| faults.outage = false);
        for (end, runs) in ends.into_iter().zip(ran) {
            let runs = move || runs.load(Ordering::Relaxed);
            match end.await.unwrap() {
                Ok(()) => assert_eq!(runs(), 1, "seed {seed}"),
                Err(error) => match error.kind() {
                    ErrorKind::TimedOut => assert_eq!(runs(), 1, "seed {seed}"),
                    ErrorKind::TooLate | ErrorKind::Cancelled => {
                        assert_eq!(runs(), 0, "seed {seed}: {error}")
                    }
                    other => panic!("seed {seed}: {other:?}"),
                },
            }
        }
        for shard in &shards {
            shard.wait_idle().await;
            assert_eq!((shard.waiting(), shard.running()), (0, 0), "seed {seed}");
            // All the room is there again.
            shard.add_all((0..20).map(|_| async {})).await.unwrap().into_iter().for_each(drop);
            shard.wait_idle().await;
        }
        state.assert_spaced(ms(10));
    }
}
