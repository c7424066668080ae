//! Several limits at once: a job starts when each of its queues has a slot for it.

use futures::FutureExt;
use interval_queue::{ErrorKind, JobGroup, JobOptions, Limits, MemoryState};
use tokio::time::{Instant, sleep};

use crate::{
    common::{Random, Starts, ms},
    places::{Crew, keep_busy, kind, limits, open},
};

#[tokio::test(start_paused = true)]
async fn a_joint_job_starts_at_once_where_nothing_waits() {
    let (a, b) = (Crew::new("a", ms(100), 1).await, Crew::new("b", ms(10), 1).await);
    let limits = Limits::new([a.shards[0].clone(), b.shards[0].clone()]).unwrap();
    let clock = Starts::new();
    for job in 0..5 {
        let turns = limits.turn().await.unwrap();
        assert_eq!(turns.as_slice().len(), 2);
        clock.note(job);
        a.starts.note(job);
    }
    let last = clock.all()[4].at;
    assert!(clock.all()[0].at <= ms(2), "{:?}", clock.all());
    assert!(last >= ms(400) && last <= ms(420), "{last:?}");
    a.assert_spaced();
    assert_eq!((a.lost(), b.state.slots().len()), (0, 5));
    a.assert_left_nothing().await;
    b.assert_left_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn the_options_of_a_job_hold_in_all_its_queues() {
    let places = [Crew::new("a", ms(100), 2).await, Crew::new("b", ms(10), 2).await];
    let limits = limits(&[&places[0], &places[1]], 0);
    keep_busy(&places[0], &[0, 1], 20).await;

    // The latest start.
    let within = |limit| JobOptions::new().start_within(ms(limit));
    let error = limits.turn_with(within(500)).await.map(|_| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLate);
    assert!(error.to_string().starts_with("the job would start in 1.9s"), "{error}");
    assert_eq!((places[0].shards[0].waiting(), places[1].shards[0].waiting()), (9, 0));
    places[1].shards[1].pause().await.unwrap();
    assert_eq!(kind(limits.turn_with(within(2_500)).await), ErrorKind::TooLate);
    places[1].shards[1].resume().await.unwrap();
    assert_eq!(kind(limits.turn_with(within(0)).await), ErrorKind::TooLate);

    // Groups.
    let group = JobGroup::new();
    let waits = tokio::spawn({
        let (limits, options) = (limits.clone(), JobOptions::new().group(&group));
        async move { limits.run_with(options, async {}).await }
    });
    keep_busy(&places[0], &[0, 1], 20).await;
    assert!(group.cancel() <= 2);
    assert_eq!(kind(limits.turn_with(JobOptions::new().group(&group)).await), ErrorKind::Cancelled);
    let _ = waits.await.unwrap();

    // A limit to the run, a panic, a priority.
    let long = limits.run_with(JobOptions::new().timeout(ms(70)), std::future::pending::<()>()).await;
    assert_eq!(kind(long), ErrorKind::TimedOut);
    assert_eq!(kind(limits.turn_with(JobOptions::new().timeout(ms(70))).await), ErrorKind::Invalid);
    assert_eq!(kind(limits.run(async { panic!("no") }).await), ErrorKind::Panicked);
    keep_busy(&places[0], &[0], 50).await;
    let began = Instant::now();
    limits.run_with(JobOptions::new().priority(1), async {}).await.unwrap();
    assert!(began.elapsed() <= ms(250), "{:?}", began.elapsed());
    assert_eq!(limits.run(async { 7 }).await.unwrap(), 7);
    for place in &places {
        place.assert_left_nothing().await;
    }
}

#[tokio::test(start_paused = true)]
async fn each_queue_has_its_own_weight() {
    let (requests, tokens) = (Crew::new("requests", ms(50), 1).await, Crew::new("tokens", ms(1), 1).await);
    let limits = limits(&[&requests, &tokens], 0);
    let clock = Starts::new();
    for job in 0..3 {
        drop(limits.weighing([1, 350]).unwrap().turn().await.unwrap());
        clock.note(job);
    }
    assert!(clock.gaps().iter().all(|gap| *gap >= ms(348) && *gap <= ms(360)), "{:?}", clock.gaps());
    let error = limits.weighing([1]).map(|_| ()).unwrap_err();
    assert_eq!(error.to_string(), "1 weights for 2 queues: give one for each");
    assert_eq!(kind(limits.weighing([0, 1]).unwrap().turn().await), ErrorKind::Invalid);
    let both = limits.weighing([1, 1]).unwrap().turn_with(JobOptions::new().weight(2)).await;
    assert_eq!(kind(both), ErrorKind::Invalid);
}

#[tokio::test(start_paused = true)]
async fn a_queue_given_twice_is_rejected() {
    let state = MemoryState::new();
    let one = open("one", &state, ms(10)).await;
    let again = open("one", &state, ms(10)).await;
    let elsewhere = open("one", &MemoryState::new(), ms(10)).await;
    assert_eq!(kind(Limits::new([])), ErrorKind::Invalid);
    let error = Limits::new([one.clone(), one.clone()]).unwrap_err();
    assert_eq!((error.kind(), error.to_string().contains("one")), (ErrorKind::Invalid, true));
    let twice = Limits::new([one.clone(), again]).unwrap();
    for _ in 0..2 {
        let error = twice.turn().await.map(|_| ()).unwrap_err();
        assert_eq!((error.kind(), error.to_string().contains("one")), (ErrorKind::Invalid, true));
    }
    Limits::new([one.clone(), elsewhere]).unwrap().run(async {}).await.unwrap();
    one.wait_idle().await;
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_closes_ends_the_job_and_frees_the_others() {
    let places = [Crew::new("a", ms(100), 1).await, Crew::new("b", ms(10), 1).await];
    keep_busy(&places[0], &[0], 50).await;
    let limits = limits(&[&places[0], &places[1]], 0);
    let joint = tokio::spawn({
        let limits = limits.clone();
        async move { limits.run(async {}).await }
    });
    sleep(ms(500)).await;
    places[0].shards[0].shutdown(ms(100)).await;
    assert_eq!(kind(joint.await.unwrap()), ErrorKind::Cancelled);
    assert_eq!(kind(limits.turn().await), ErrorKind::Closed);
    places[1].assert_left_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_stops_waiting_leaves_no_ticket() {
    for seed in 0..10 {
        let mut random = Random(seed);
        let places = [Crew::new("a", ms(50), 2).await, Crew::new("b", ms(10), 2).await];
        let mut tasks = Vec::new();
        for job in 0..100 {
            let limits = limits(&[&places[0], &places[1]], job % 2);
            let (patience, pause) = (ms(random.below(1500)), ms(random.below(1000)));
            let starts = [places[0].starts.clone(), places[1].starts.clone()];
            tasks.push(tokio::spawn(async move {
                sleep(pause).await;
                if let Ok(turns) = tokio::time::timeout(patience, limits.turn()).await {
                    starts.iter().for_each(|starts| starts.note(job));
                    drop(turns);
                }
            }));
        }
        for task in tasks {
            task.await.unwrap();
        }
        for place in &places {
            place.assert_left_nothing().await;
            place.assert_spaced();
        }
        // Nothing is left in the record, and the pace is as it was.
        for place in &places {
            let began = Instant::now();
            for _ in 0..20 {
                drop(place.shards[0].turn().await.unwrap());
                drop(place.shards[1].turn().await.unwrap());
            }
            let took = began.elapsed();
            assert!(took <= place.interval * 42, "{took:?} for 40 at {:?}", place.interval);
        }
        let used: Vec<_> = places.iter().map(|place| place.starts.all().len()).collect();
        println!("seed {seed}: {used:?} started");
    }
}

#[tokio::test(start_paused = true)]
async fn dropped_at_any_await_a_turn_leaves_nothing() {
    for polls in 0..60 {
        let places = [Crew::new("a", ms(50), 1).await, Crew::new("b", ms(10), 1).await];
        keep_busy(&places[1], &[0], 5).await;
        keep_busy(&places[0], &[0], 2).await;
        let limits = limits(&[&places[0], &places[1]], 0);
        {
            let mut turn = Box::pin(limits.turn());
            for _ in 0..polls {
                if turn.as_mut().now_or_never().is_some() {
                    break;
                }
                sleep(ms(2)).await;
            }
        }
        for place in &places {
            place.assert_left_nothing().await;
        }
    }
}
