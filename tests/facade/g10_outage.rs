//! G10: state unreachable: nothing starts, jobs keep waiting, the application is told, and work resumes by
//! itself.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use interval_queue::{ErrorKind, IntervalQueue, Reason, StateErrorKind};

use crate::common::{Starts, add_in_turn, all_done, far, ms, spawned, wired};

#[tokio::test(start_paused = true)]
async fn an_outage_stops_starts_is_reported_and_heals() {
    let (state, wire) = wired();
    let told = Arc::new(AtomicUsize::new(0));
    let hook = {
        let told = told.clone();
        move |error: &interval_queue::Error| {
            assert_eq!(error.kind(), ErrorKind::State);
            told.fetch_add(1, Ordering::Relaxed);
        }
    };
    let queue = IntervalQueue::builder("test")
        .interval(ms(50))
        .linger(ms(0))
        .on_error(hook)
        .open(wire.clone())
        .await
        .unwrap();
    let starts = Starts::new();
    let handles = add_in_turn(std::slice::from_ref(&queue), &starts, 40).await;
    tokio::time::sleep(ms(500)).await;
    wire.change(|faults| faults.outage = true);
    tokio::time::sleep(ms(200)).await;
    let started = starts.all().len();
    let before = wire.counts();
    // Jobs added now wait for their ticket as the others wait for their slot.
    let late = spawned(&queue, starts.job(40));
    tokio::time::sleep(ms(30_000)).await;
    assert_eq!(starts.all().len(), started);
    match queue.status().await.reason {
        Reason::StateUnreachable { since, .. } => assert!(since > ms(29_000), "{since:?}"),
        other => panic!("{other}"),
    }
    let tries = wire.counts().total() - before.total();
    assert!((5..60).contains(&tries), "it backs off: {tries} tries");

    wire.change(|faults| faults.outage = false);
    all_done(handles).await;
    late.await.unwrap();
    // The hook runs on threads of its own.
    let heard = || told.load(Ordering::Relaxed) as u64;
    while heard() < tries {
        std::thread::yield_now();
    }
    assert_eq!(starts.jobs(), (0..=40).collect::<Vec<_>>());
    let gap = starts.gaps().into_iter().max().unwrap();
    assert!(gap < ms(45_000), "it resumes within the longest delay: {gap:?}");
    state.assert_spaced(ms(50));
}

#[tokio::test(start_paused = true)]
async fn a_tick_ends_the_waiting_between_tries() {
    let (_, wire, queue) = far(ms(50)).await;
    wire.change(|faults| faults.outage = true);
    let job = spawned(&queue, async {});
    tokio::time::sleep(ms(60_000)).await;
    wire.change(|faults| faults.outage = false);
    queue.tick().await;
    tokio::time::timeout(ms(100), job).await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn opening_fails_at_once_when_nobody_answers() {
    let (_, wire) = wired();
    wire.change(|faults| faults.outage = true);
    let error = IntervalQueue::builder("test").interval(ms(50)).open(wire).await.unwrap_err();
    assert_eq!(error.state().unwrap().kind(), StateErrorKind::Unreachable);
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_panics_stops_nothing() {
    let (_, wire) = wired();
    let builder = IntervalQueue::builder("test").interval(ms(50)).on_error(|_| panic!("on purpose"));
    let queue = builder.open(wire.clone()).await.unwrap();
    wire.lose_next_request();
    queue.add(async {}).await.unwrap().await.unwrap();
}
