//! The choice to run alone when the state is lost: each shard at its share of the rate, every job once, and
//! back again without a burst.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use async_trait::async_trait;
use interval_queue::{
    Builder, ErrorKind, IntervalQueue, JobHandle, JobOptions, Late, MaxRunning, MemoryState, Reason,
    SharedState, StateError, StateErrorKind, Ticket, WhenStateIsLost,
    contract::{Command, QueueName, Reply},
};
use interval_queue_conformance::Faulty;
use tokio::{runtime::Handle, time::sleep};

use crate::common::{
    Noting, Start, Starts, add_in_turn, all_done, memory, ms, queue as name, spawned, wired, with_ticket,
};

const INTERVAL: Duration = Duration::from_millis(100);
/// How long the state has to fail a shard before it runs alone.
const AFTER: Duration = Duration::from_secs(2);

fn builder(shards: u32) -> Builder {
    let alone = WhenStateIsLost::RunAlone { after: AFTER, shards };
    IntervalQueue::builder("test").interval(INTERVAL).linger(Duration::ZERO).when_state_is_lost(alone)
}

/// One shard of so many, and the wire between it and the state.
async fn shard(state: &Noting, shards: u32) -> (IntervalQueue, Faulty) {
    let wire = Faulty::new(state.clone());
    (builder(shards).open(wire.clone()).await.unwrap(), wire)
}

/// The same on a state of its own, and what starts from now on.
async fn one_of(shards: u32) -> (Noting, IntervalQueue, Faulty, Starts) {
    let state = memory().1;
    let (queue, wire) = shard(&state, shards).await;
    (state, queue, wire, Starts::new())
}

/// Three shards of three, each with its own wire.
async fn three(state: &Noting) -> (Vec<IntervalQueue>, Vec<Faulty>) {
    let mut shards = Vec::new();
    for _ in 0..3 {
        shards.push(shard(state, 3).await);
    }
    shards.into_iter().unzip()
}

fn cut_off<'a>(wires: impl IntoIterator<Item = &'a Faulty>) {
    wires.into_iter().for_each(|wire| wire.change(|faults| faults.outage = true));
}

fn reconnect<'a>(wires: impl IntoIterator<Item = &'a Faulty>) {
    wires.into_iter().for_each(|wire| wire.change(|faults| faults.outage = false));
}

/// Gives each shard jobs without waiting for their tickets. The tasks end with the jobs.
fn pour(
    shards: &[IntervalQueue],
    starts: &Starts,
    jobs: std::ops::Range<usize>,
) -> Vec<tokio::task::JoinHandle<()>> {
    jobs.map(|job| spawned(&shards[job % shards.len()], starts.job(job))).collect()
}

async fn done(jobs: Vec<tokio::task::JoinHandle<()>>) {
    for job in jobs {
        job.await.unwrap();
    }
}

/// Asserts that no window of time has more starts than fit, but for `more`.
fn assert_no_window_exceeds(starts: &[Start], more: usize) {
    for (first, start) in starts.iter().enumerate() {
        for (last, end) in starts.iter().enumerate().skip(first) {
            let fit = (end.at - start.at).as_nanos() / INTERVAL.as_nanos() + 1;
            let many = last - first + 1;
            assert!(many as u128 <= fit + more as u128, "{many} starts from {start:?} to {end:?}, {fit} fit");
        }
    }
}

/// The starts between two instants.
fn between(starts: &Starts, from: Duration, to: Duration) -> Vec<Start> {
    starts.all().into_iter().filter(|start| start.at >= from && start.at < to).collect()
}

#[tokio::test(start_paused = true)]
async fn the_only_shard_goes_on_at_the_whole_rate() {
    let (memory, state) = memory();
    let (queue, wire) = shard(&state, 1).await;
    let starts = Starts::new();
    let handles = add_in_turn(std::slice::from_ref(&queue), &starts, 200).await;
    sleep(ms(1_000)).await;
    cut_off([&wire]);
    sleep(ms(9_000)).await;
    assert_eq!(between(&starts, ms(1_300), ms(3_000)), [], "it waits first");
    let alone = between(&starts, ms(4_000), ms(10_000)).len();
    assert!((59..=60).contains(&alone), "{alone} starts in 60 intervals");
    let reason = queue.status().await.reason;
    assert!(reason.to_string().ends_with("; running alone at one start every 100ms"), "{reason}");
    assert!(matches!(reason, Reason::StateUnreachable { alone: Some(INTERVAL), .. }));
    let estimate = handles[199].estimated_start().unwrap();
    let left = u32::try_from(199 - starts.all().len()).unwrap();
    assert!(estimate > INTERVAL * left && estimate <= INTERVAL * (left + 1), "{estimate:?} for {left}");

    reconnect([&wire]);
    all_done(handles).await;
    assert_eq!(starts.jobs(), (0..200).collect::<Vec<_>>());
    assert!(starts.gaps().into_iter().all(|gap| gap >= INTERVAL), "{:?}", starts.gaps());
    let tickets: Vec<_> = state.slots().into_iter().map(|slot| slot.ticket.get()).collect();
    assert_eq!(tickets, (1..=tickets.len() as u64).collect::<Vec<_>>(), "it keeps its lowest tickets");
    assert!(tickets.len() < 150, "many took none");
    queue.wait_idle().await;
    assert!(memory.snapshot(&name()).unwrap().shards.is_empty());
}

#[tokio::test(start_paused = true)]
async fn three_shards_together_keep_the_rate() {
    let (_, state) = memory();
    let (shards, wires) = three(&state).await;
    let starts = Starts::new();
    let jobs = pour(&shards, &starts, 0..2_000);
    sleep(ms(1_000)).await;
    cut_off(&wires);
    sleep(ms(120_000)).await;
    assert_no_window_exceeds(&starts.all(), 3);
    let alone = between(&starts, ms(10_000), ms(120_000)).len();
    assert!(alone * 10 > 1_100 * 8, "{alone} starts in 1,100 intervals");
    jobs.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test(start_paused = true)]
async fn the_record_corrects_a_number_that_is_too_small() {
    let (_, state) = memory();
    let mut opened = Vec::new();
    for _ in 0..3 {
        opened.push(shard(&state, 1).await);
    }
    let (shards, wires): (Vec<_>, Vec<_>) = opened.into_iter().unzip();
    let starts = Starts::new();
    let jobs = pour(&shards, &starts, 0..600);
    // Half a lease, so that each has heard of all.
    sleep(ms(3_000)).await;
    cut_off(&wires);
    sleep(ms(30_000)).await;
    assert_no_window_exceeds(&starts.all(), 3);
    let Reason::StateUnreachable { alone, .. } = shards[0].status().await.reason else { panic!() };
    assert_eq!(alone, Some(INTERVAL * 3));
    jobs.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test(start_paused = true)]
async fn jobs_of_the_outage_start_in_order_and_without_a_ticket() {
    let (_, queue, wire, starts) = one_of(2).await;
    cut_off([&wire]);
    // The first is in a take that fails, the others come while it is tried again.
    let mut handles = Vec::new();
    for job in 0..5 {
        let handle: JobHandle<()> = queue.add(starts.job(job)).await.unwrap();
        assert_eq!(handle.ticket().await.unwrap(), Ticket::NONE);
        assert_eq!(handle.position(), None, "it has started");
        handles.push(handle);
    }
    let turn = queue.turn().await.unwrap();
    assert_eq!(turn.ticket(), Ticket::NONE);
    drop(turn);
    let tried = AtomicUsize::new(0);
    let retry = interval_queue::Retry::times(2).first_delay(ms(1));
    let retried = queue
        .retrying(retry, move || {
            let first = tried.fetch_add(1, SeqCst) == 0;
            async move { if first { Err("no") } else { Ok("yes") } }
        })
        .add();
    assert_eq!(retried.await.unwrap().await.unwrap(), Ok("yes"));
    all_done(handles).await;
    assert_eq!(starts.jobs(), [0, 1, 2, 3, 4]);
    assert!(starts.gaps().into_iter().all(|gap| gap >= INTERVAL * 2), "{:?}", starts.gaps());
    // It says good-bye in vain, and then is idle.
    queue.wait_idle().await;
    assert_eq!(Handle::current().metrics().num_alive_tasks(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_priority_counts_with_and_without_a_ticket() {
    let (_, queue, wire, starts) = one_of(1).await;
    queue.add(async {}).await.unwrap().await.unwrap();
    // Two that have their tickets, of which one is less urgent.
    queue.hold(ms(60_000)).await.unwrap();
    let low = JobOptions::new().priority(-1);
    let handles = vec![
        queue.job(starts.job(0)).options(low.clone()).add().await.unwrap(),
        queue.add(starts.job(1)).await.unwrap(),
    ];
    cut_off([&wire]);
    let add = |job: usize, options: JobOptions| {
        let (queue, job) = (queue.clone(), starts.job(job));
        tokio::spawn(async move { queue.job(job).options(options).add().await.unwrap().await.unwrap() })
    };
    let mut added = Vec::new();
    for job in 2..8 {
        let options = match job {
            2 => low.clone(),
            7 => JobOptions::new().priority(9),
            _ => JobOptions::new(),
        };
        added.push(add(job, options));
        // One after the other: the first are in a take that fails.
        tokio::task::yield_now().await;
    }
    for added in added {
        added.await.unwrap();
    }
    all_done(handles).await;
    assert_eq!(starts.jobs(), [7, 1, 3, 4, 5, 6, 0, 2]);
    assert!(starts.gaps().into_iter().all(|gap| gap >= INTERVAL), "{:?}", starts.gaps());
}

#[tokio::test(start_paused = true)]
async fn a_heavy_job_takes_as_many_shares() {
    let (_, queue, wire, starts) = one_of(2).await;
    cut_off([&wire]);
    for (job, weight) in [(0, 1), (1, 5), (2, 1)] {
        let added = queue.job(starts.job(job)).options(JobOptions::new().weight(weight)).add();
        added.await.unwrap().await.unwrap();
    }
    let gaps = starts.gaps();
    assert!(gaps[0] >= INTERVAL * 2 && gaps[0] < INTERVAL * 3, "{gaps:?}");
    assert!(gaps[1] >= INTERVAL * 10 && gaps[1] < INTERVAL * 11, "{gaps:?}");
}

#[tokio::test(start_paused = true)]
async fn the_running_limit_is_shared_out() {
    let (_, wire) = wired();
    let queue = builder(2).max_running(5).open(wire.clone()).await.unwrap();
    cut_off([&wire]);
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let job = || {
        let (queue, running, most) = (queue.clone(), running.clone(), most.clone());
        tokio::spawn(async move {
            let job = async move {
                most.fetch_max(running.fetch_add(1, SeqCst) + 1, SeqCst);
                sleep(ms(5_000)).await;
                running.fetch_sub(1, SeqCst);
            };
            queue.add(job).await.unwrap().await.unwrap();
        })
    };
    done((0..9).map(|_| job()).collect()).await;
    assert_eq!(most.load(SeqCst), 2, "half of five");
    // A limit below the number of shards leaves each one.
    reconnect([&wire]);
    queue.set_max_running(MaxRunning::AtMost(1)).await.unwrap();
    most.store(0, SeqCst);
    cut_off([&wire]);
    done((0..3).map(|_| job()).collect()).await;
    assert_eq!(most.load(SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn cancelled_jobs_do_not_start_and_a_closed_queue_finishes() {
    let (_, queue, wire, starts) = one_of(1).await;
    let mut handles = add_in_turn(std::slice::from_ref(&queue), &starts, 100).await;
    cut_off([&wire]);
    sleep(ms(5_000)).await;
    let last = handles.pop().unwrap();
    assert!(last.cancel());
    assert_eq!(last.await.unwrap_err().kind(), ErrorKind::Cancelled);
    let withdrawn = queue.add(starts.job(100)).await.unwrap();
    assert!(tokio::time::timeout(ms(10), withdrawn.ticket()).await.is_err(), "there are others before it");
    assert!(withdrawn.cancel());
    queue.close().await;
    all_done(handles).await;
    assert_eq!(starts.jobs(), (0..99).collect::<Vec<_>>());
    assert_eq!(Handle::current().metrics().num_alive_tasks(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_ends_what_waits_and_runs() {
    let (_, queue, wire, starts) = one_of(1).await;
    cut_off([&wire]);
    let long = with_ticket(&queue, sleep(ms(3_600_000))).await;
    let jobs = pour(std::slice::from_ref(&queue), &starts, 0..100);
    sleep(ms(1_000)).await;
    let started = starts.all().len();
    assert!(started >= 9);
    let ended = queue.shutdown(ms(100)).await;
    assert_eq!((ended.cancelled, ended.aborted), (100 - started, 1));
    assert_eq!(long.await.unwrap_err().kind(), ErrorKind::Cancelled);
    sleep(ms(60_000)).await;
    assert_eq!(starts.all().len(), started);
    let refused = jobs.into_iter().map(async |job| usize::from(job.await.is_err()));
    assert_eq!(futures::future::join_all(refused).await.into_iter().sum::<usize>(), 100 - started);
    assert_eq!(Handle::current().metrics().num_alive_tasks(), 0);
}

#[tokio::test(start_paused = true)]
async fn no_job_starts_twice_when_replies_are_lost() {
    for lost in 1..6 {
        let (memory, state) = memory();
        let (queue, wire) = shard(&state, 1).await;
        wire.change(|faults| faults.time_out = ms(300));
        let starts = Starts::new();
        let first = pour(std::slice::from_ref(&queue), &starts, 0..20);
        // The replies that are lost bring tickets and grants.
        sleep(ms(150)).await;
        let second = pour(std::slice::from_ref(&queue), &starts, 20..40);
        (0..lost).for_each(|_| wire.lose_next_reply());
        sleep(ms(350 * lost)).await;
        cut_off([&wire]);
        sleep(ms(3_500)).await;
        assert!((5..35).contains(&starts.all().len()), "some ran alone, some are left");
        reconnect([&wire]);
        // Replies may be left that are to be lost.
        while queue.tick().await.state_unreachable {}
        done(first).await;
        done(second).await;
        starts.assert_each_once(0..40);
        queue.wait_idle().await;
        assert!(memory.snapshot(&name()).unwrap().shards.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_paused_or_held_shard_starts_nothing_alone() {
    let (_, queue, wire, starts) = one_of(1).await;
    queue.pause().await.unwrap();
    let paused = queue.add(starts.job(0)).await.unwrap();
    cut_off([&wire]);
    let another = pour(std::slice::from_ref(&queue), &starts, 1..2);
    sleep(ms(600_000)).await;
    assert_eq!(starts.all(), []);
    let Reason::StateUnreachable { alone: None, .. } = queue.status().await.reason else { panic!() };
    reconnect([&wire]);
    queue.resume().await.unwrap();
    paused.await.unwrap();
    done(another).await;

    queue.hold(ms(60_000)).await.unwrap();
    let held = queue.add(starts.job(2)).await.unwrap();
    let until = starts.all()[1].at + ms(60_000);
    cut_off([&wire]);
    held.await.unwrap();
    assert!(starts.all()[2].at >= until, "{:?}", starts.all());
}

#[tokio::test(start_paused = true)]
async fn shards_that_come_back_one_after_another_make_no_burst() {
    let (memory, state) = memory();
    let (shards, wires) = three(&state).await;
    let starts = Starts::new();
    let mut jobs = pour(&shards, &starts, 0..1_500);
    sleep(ms(5_000)).await;
    cut_off(&wires);
    sleep(ms(60_000)).await;
    for wire in &wires {
        reconnect([wire]);
        sleep(ms(4_000)).await;
    }
    jobs.extend(pour(&shards, &starts, 1_500..2_000));
    done(jobs).await;
    starts.assert_each_once(0..2_000);
    assert_no_window_exceeds(&starts.all(), 6);
    // From a while after they came back they have the whole rate again, on the state's slots alone.
    let whole = between(&starts, ms(120_000), ms(180_000)).len();
    assert!(whole >= 595, "{whole} starts in 600 intervals");
    let settling = between(&starts, ms(70_000), ms(90_000)).len();
    assert!(settling >= 100, "{settling} starts in 200 intervals");
    for shard in &shards {
        shard.wait_idle().await;
    }
    assert!(memory.snapshot(&name()).unwrap().shards.is_empty());
    assert_eq!(Handle::current().metrics().num_alive_tasks(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_shard_that_settles_keeps_nobody_waiting_who_stayed() {
    let (state, queue, wire, starts) = one_of(3).await;
    let jobs = pour(std::slice::from_ref(&queue), &starts, 0..300);
    cut_off([&wire]);
    sleep(ms(20_000)).await;
    reconnect([&wire]);
    queue.tick().await;
    let back = starts.all().len();
    // Its tickets are older, but nobody waits for what it uses slowly.
    let (other, _) = shard(&state, 3).await;
    let added = add_in_turn(std::slice::from_ref(&other), &Starts::new(), 50).await;
    tokio::time::timeout(INTERVAL * 100, all_done(added)).await.unwrap();
    assert!(starts.all().len() > back + 10, "nor is it starved");
    done(jobs).await;
    starts.assert_each_once(0..300);
}

#[tokio::test(start_paused = true)]
async fn tickets_that_a_settling_shard_keeps_back_cost_no_slots() {
    let (_, state) = memory();
    let (queue, wire) = shard(&state, 3).await;
    let (starts, others) = (Starts::new(), Starts::new());
    cut_off([&wire]);
    let jobs = pour(std::slice::from_ref(&queue), &starts, 0..1_000);
    sleep(ms(20_000)).await;
    // Each has one job at a time, now with many tickets between.
    let mut busy = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let (other, others) = (shard(&state, 3).await.0, others.clone());
        busy.spawn(async move {
            loop {
                other.add(others.job(0)).await.unwrap().await.unwrap();
            }
        });
    }
    sleep(ms(2_000)).await;
    reconnect([&wire]);
    queue.tick().await;
    let back = starts.all().len() + others.all().len();
    sleep(ms(10_000)).await;
    let used = starts.all().len() + others.all().len() - back;
    // But for those until others, once, hear that the block is not in their way.
    assert!(used >= 70, "{used} of 100 slots were used");
    busy.shutdown().await;
    jobs.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test(start_paused = true)]
async fn shards_that_settle_together_go_on_while_jobs_are_added() {
    let (_, state) = memory();
    let (shards, wires) = three(&state).await;
    let starts = Starts::new();
    let mut jobs = pour(&shards, &starts, 0..1_500);
    sleep(ms(3_000)).await;
    cut_off(&wires);
    // Shorter than a lease: the record knows all of them when they are back.
    sleep(ms(3_500)).await;
    reconnect(&wires);
    futures::future::join_all(shards.iter().map(IntervalQueue::tick)).await;
    let back = starts.all().len();
    for job in 1_500..1_650 {
        jobs.extend(pour(&shards, &starts, job..job + 1));
        sleep(ms(100)).await;
    }
    let started = starts.all().len() - back;
    assert!(started >= 80, "{started} starts in 150 intervals");
    done(jobs).await;
    starts.assert_each_once(0..1_650);
}

#[tokio::test(start_paused = true)]
async fn a_shard_that_settles_keeps_its_share_while_jobs_are_added() {
    for late in [Late::NextSlot, Late::Requeue] {
        let (state, wire) = wired();
        let queue = builder(3).late(late).open(wire.clone()).await.unwrap();
        let (other, _) = shard(&state, 3).await;
        let (starts, others) = (Starts::new(), Starts::new());
        let jobs = pour(std::slice::from_ref(&queue), &starts, 0..300);
        cut_off([&wire]);
        sleep(ms(20_000)).await;
        reconnect([&wire]);
        queue.tick().await;
        let back = starts.all().len();
        let others = pour(std::slice::from_ref(&other), &others, 0..500);
        for job in 300..450 {
            queue.add(starts.job(job)).await.unwrap();
            sleep(ms(100)).await;
        }
        // 150 intervals went by.
        let started = starts.all().len() - back;
        assert!((25..=52).contains(&started), "{started} starts, {late:?}");
        done(jobs).await;
        done(others).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_tick_is_answered_while_the_shard_settles() {
    let (_, queue, wire, starts) = one_of(100).await;
    let jobs = pour(std::slice::from_ref(&queue), &starts, 0..10);
    cut_off([&wire]);
    sleep(ms(20_000)).await;
    reconnect([&wire]);
    for _ in 0..3 {
        let tick = tokio::time::timeout(ms(100), queue.tick()).await.unwrap();
        assert!(!tick.state_unreachable);
        sleep(ms(10)).await;
    }
    done(jobs).await;
    assert_no_window_exceeds(&starts.all(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_old_failure_does_not_count() {
    let (_, queue, wire, starts) = one_of(1).await;
    cut_off([&wire]);
    queue.add(starts.job(0)).await.unwrap().await.unwrap();
    queue.wait_idle().await;
    sleep(ms(3_600_000)).await;
    // The state has been back for an hour when one command fails.
    reconnect([&wire]);
    wire.lose_next_request();
    let job = queue.add(starts.job(1)).await.unwrap();
    assert_eq!(job.ticket().await.unwrap(), Ticket::new(1), "it did not run alone");
    job.await.unwrap();
}

/// A state that refuses while it is told to.
#[derive(Debug, Clone)]
struct Refusing {
    inner: MemoryState,
    refuses: Arc<AtomicBool>,
}

#[async_trait]
impl SharedState for Refusing {
    async fn apply(&self, queue: &QueueName, command: Command) -> Result<Reply, StateError> {
        if self.refuses.load(SeqCst) {
            return Err(StateError::new(StateErrorKind::Denied, "not any more"));
        }
        self.inner.apply(queue, command).await
    }
}

#[tokio::test(start_paused = true)]
async fn an_idle_shard_tries_the_store_before_it_runs_alone() {
    let (_, state) = memory();
    let (queue, wire) = shard(&state, 1).await;
    let (other, _) = shard(&state, 1).await;
    let starts = Starts::new();
    cut_off([&wire]);
    queue.add(starts.job(0)).await.unwrap().await.unwrap();
    queue.wait_idle().await;
    reconnect([&wire]);
    other.pause().await.unwrap();
    // Its share would allow a start, and the old failure is not too old to go by.
    sleep(ms(1_000)).await;
    let job = queue.add(starts.job(1)).await.unwrap();
    sleep(ms(10_000)).await;
    assert_eq!(starts.jobs(), [0], "the queue is paused, and the state can be asked");
    other.resume().await.unwrap();
    queue.start();
    job.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_state_that_refuses_is_not_lost() {
    let state = Refusing { inner: MemoryState::new(), refuses: Arc::default() };
    let queue = builder(1).open(state.clone()).await.unwrap();
    let starts = Starts::new();
    let handles = add_in_turn(std::slice::from_ref(&queue), &starts, 10).await;
    state.refuses.store(true, SeqCst);
    sleep(ms(60_000)).await;
    let started = starts.all().len();
    assert!(started < 10);
    let refused = queue.add(async {}).await.unwrap();
    for error in [refused.ticket().await.unwrap_err(), refused.await.unwrap_err()] {
        assert_eq!(error.state().unwrap().kind(), StateErrorKind::Denied);
    }
    assert_eq!(starts.all().len(), started);
    state.refuses.store(false, SeqCst);
    all_done(handles).await;
}

#[tokio::test]
async fn a_choice_that_makes_no_sense_is_refused() {
    for (after, shards, text) in [
        (AFTER, 0, "to run alone as one of 0 shards: give how many there may be, at least 1"),
        (ms(999), 3, "to run alone after 999ms is out of range: give 1s to 31622400s"),
        (Duration::MAX, 3, ""),
    ] {
        let state = MemoryState::new();
        let choice = WhenStateIsLost::RunAlone { after, shards };
        let builder = IntervalQueue::builder("test")
            .interval(INTERVAL)
            .linger(Duration::ZERO)
            .when_state_is_lost(choice);
        let error = builder.open(state.clone()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().starts_with(text), "{error}");
        assert!(state.snapshot(&name()).is_none(), "nothing is stored");
    }
}
