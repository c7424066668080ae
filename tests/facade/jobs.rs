//! Jobs and their handles: results, panics, cancelling, retries, turns, closing.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use interval_queue::{ErrorKind, IntervalQueue, JobOptions, Retry};

use crate::common::{
    Starts, add_in_turn, all_done, begun, memory, ms, one, open, queue, shard, shards, tickets,
};

#[tokio::test(start_paused = true)]
async fn a_handle_has_the_result_and_the_position() {
    let queue = one(ms(100)).await;
    let first = queue.add(async { "first" }).await.unwrap();
    let second = queue.add(async { "second" }).await.unwrap();
    let third = queue.add(async { "third" }).await.unwrap();
    assert_eq!(tickets([&first, &second, &third]).await, [1, 2, 3]);
    assert_eq!(third.position(), Some(1));
    let estimate = third.estimated_start().unwrap();
    assert!(estimate > ms(190) && estimate <= ms(201), "{estimate:?}");
    assert_eq!(first.await.unwrap(), "first");
    assert_eq!(third.await.unwrap(), "third");
    assert_eq!(second.position(), None);
    assert_eq!(second.await.unwrap(), "second");
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_an_error_of_its_handle_and_nothing_else() {
    let queue = one(ms(10)).await;
    let what = String::from("good");
    let bad = queue.add(async move { panic!("no {what}") }).await.unwrap();
    let good = queue.add(async { 1 }).await.unwrap();
    let error: interval_queue::Error = bad.await.map(|(): ()| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Panicked);
    assert_eq!(error.to_string(), "the job panicked: no good");
    assert_eq!(*error.into_panic().unwrap().downcast::<String>().unwrap(), "no good");
    assert_eq!(good.await.unwrap(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_handle_detaches() {
    let queue = one(ms(10)).await;
    let starts = Starts::new();
    for job in 0..3 {
        drop(queue.add(starts.job(job)).await.unwrap());
    }
    drop(queue.clone());
    queue.wait_idle().await;
    assert_eq!(starts.jobs(), [0, 1, 2]);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_job_gives_its_place_to_the_next() {
    let queue = one(ms(100)).await;
    let starts = Starts::new();
    let handles = add_in_turn(std::slice::from_ref(&queue), &starts, 10).await;
    for job in [3, 4, 5] {
        assert!(handles[job].cancel());
        assert!(!handles[job].cancel(), "only once");
    }
    for (job, handle) in handles.into_iter().enumerate() {
        match handle.await {
            Ok(()) => assert!(!(3..6).contains(&job)),
            Err(error) => assert_eq!((error.kind(), (3..6).contains(&job)), (ErrorKind::Cancelled, true)),
        }
    }
    assert_eq!(starts.jobs(), [0, 1, 2, 6, 7, 8, 9]);
    assert!(starts.all().last().unwrap().at < ms(650), "no slot was wasted");
}

#[tokio::test(start_paused = true)]
async fn a_mass_cancel_frees_the_slots_for_the_other_shards() {
    let (_, shards, starts) = begun(2, ms(100)).await;
    let mut cancelled = Vec::new();
    let mut kept = Vec::new();
    for job in 0..200 {
        cancelled.push(shards[0].add(starts.job(job)).await.unwrap());
    }
    for job in 200..210 {
        kept.push(shards[1].add(starts.job(job)).await.unwrap());
    }
    tokio::time::sleep(ms(350)).await;
    let gone = cancelled.iter().filter(|handle| handle.cancel()).count();
    assert!(gone > 190);
    all_done(kept).await;
    let last = starts.all().last().unwrap().at;
    assert!(last < ms(5_000 + 2_000), "the waiting shard hears of it within its lease: {last:?}");
}

#[tokio::test(start_paused = true)]
async fn a_failed_job_is_tried_again_at_the_back() {
    let (_, state) = memory();
    let queue = shard(&state, ms(100)).await;
    let tried = Arc::new(AtomicUsize::new(0));
    let job = |fail_first: usize| {
        let tried = tried.clone();
        move || {
            let attempt = tried.fetch_add(1, Ordering::Relaxed);
            async move { if attempt < fail_first { Err(attempt) } else { Ok("done") } }
        }
    };
    let retried = queue.retrying(Retry::times(3).first_delay(ms(10)), job(2)).add().await.unwrap();
    let other = queue.add(async {}).await.unwrap();
    other.await.unwrap();
    assert_eq!(retried.await.unwrap(), Ok("done"));
    assert_eq!(tried.swap(0, Ordering::Relaxed), 3);

    let hopeless = queue.retrying(Retry::times(2).first_delay(ms(10)), job(99)).add().await.unwrap();
    assert_eq!(hopeless.await.unwrap(), Err(2), "the last error");
    assert_eq!(tried.load(Ordering::Relaxed), 3);
    assert_eq!(state.slots().len(), 7, "each attempt takes a slot");
    state.assert_spaced(ms(100));
}

#[tokio::test(start_paused = true)]
async fn a_retrying_job_counts_as_work_until_it_ends() {
    let (_, state) = memory();
    let queue = shard(&state, ms(10)).await;
    let policy = Retry::times(1).first_delay(ms(1_000));
    let job = queue.retrying(policy, || async { Err::<(), _>("no") }).add().await.unwrap();
    queue.wait_idle().await;
    assert_eq!(job.await.unwrap(), Err("no"));
    assert_eq!(state.slots().len(), 2);

    let job = queue.retrying(policy, || async { Err::<(), _>("no") }).add().await.unwrap();
    tokio::time::sleep(ms(100)).await;
    assert!(job.cancel(), "it waits between two attempts");
    assert_eq!(job.await.unwrap(), Err("no"));
    assert_eq!(state.slots().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_job_that_has_ended_cannot_be_cancelled() {
    let queue = one(ms(10)).await;
    let mut plain = queue.add(async {}).await.unwrap();
    (&mut plain).await.unwrap();
    assert!(!plain.cancel());

    let policy = Retry::times(1).first_delay(ms(1));
    for result in [Ok(()), Err("no")] {
        let mut retried = queue.retrying(policy, move || async move { result }).add().await.unwrap();
        assert_eq!((&mut retried).await.unwrap(), result);
        assert!(!retried.cancel(), "{result:?}");
    }
    let mut panicked = queue.retrying(policy, || async { panic!() as Result<(), ()> }).add().await.unwrap();
    assert_eq!((&mut panicked).await.unwrap_err().kind(), ErrorKind::Panicked);
    assert!(!panicked.cancel());

    let mut withdrawn = queue.retrying(policy, || async { Ok::<_, ()>(()) }).add().await.unwrap();
    assert!(withdrawn.cancel());
    assert_eq!((&mut withdrawn).await.unwrap_err().kind(), ErrorKind::Cancelled);
    assert!(!withdrawn.cancel(), "only once");

    // An attempt that runs may still succeed, and a second call does not make it a job that never ran.
    let mut running = queue
        .retrying(policy, || async {
            tokio::time::sleep(ms(500)).await;
            Ok::<_, ()>(())
        })
        .add()
        .await
        .unwrap();
    tokio::time::sleep(ms(100)).await;
    assert!(!running.cancel());
    (&mut running).await.unwrap().unwrap();
    assert!(!running.cancel());
}

#[tokio::test(start_paused = true)]
async fn turns_are_paced_and_count_as_running() {
    let (_, state) = memory();
    let queue =
        IntervalQueue::builder("test").interval(ms(10)).max_running(1).open(state.clone()).await.unwrap();
    let turn = queue.turn().await.unwrap();
    assert_eq!((turn.ticket().get(), queue.running()), (1, 1));
    let waits = tokio::time::timeout(ms(500), queue.turn()).await;
    assert!(waits.is_err(), "the first turn still runs");
    drop(turn);
    drop(queue.turn().await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_closed_queue_finishes_what_it_accepted() {
    let (memory, state) = memory();
    let shard = shard(&state, ms(100)).await;
    let starts = Starts::new();
    for job in 0..5 {
        shard.add(starts.job(job)).await.unwrap();
    }
    let closing = shard.close();
    assert_eq!(shard.add(async {}).await.unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(shard.turn().await.unwrap_err().kind(), ErrorKind::Closed);
    closing.await;
    assert_eq!(starts.jobs(), [0, 1, 2, 3, 4]);
    assert!(memory.snapshot(&queue()).unwrap().shards.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_cancels_what_waits_and_ends_what_runs() {
    let (memory, state) = memory();
    let shards = shards(2, &state, ms(100)).await;
    let quick = shards[0].add(tokio::time::sleep(ms(300))).await.unwrap();
    let slow = shards[0].add(tokio::time::sleep(ms(60_000))).await.unwrap();
    let waiting: Vec<_> = futures::future::join_all((0..50).map(|_| shards[0].add(async {})))
        .await
        .into_iter()
        .map(Result::unwrap)
        .collect();
    let other = shards[1].add(async {}).await.unwrap();
    tokio::time::sleep(ms(150)).await;
    let ended = shards[0].shutdown(ms(1_000)).await;
    assert_eq!(ended.aborted, 1);
    quick.await.unwrap();
    assert_eq!(slow.await.unwrap_err().kind(), ErrorKind::Cancelled);
    let mut cancelled = 0;
    for job in waiting {
        cancelled += usize::from(job.await.is_err());
    }
    assert_eq!(cancelled, ended.cancelled);
    assert!(cancelled >= 45, "{cancelled}");
    tokio::time::timeout(ms(4_000), other).await.expect("the places were given up").unwrap();
    assert!(memory.snapshot(&queue()).unwrap().shards.is_empty());
}

#[tokio::test(start_paused = true)]
async fn options_that_cannot_be_used_are_named() {
    let (memory, state) = memory();
    let shard = shard(&state, ms(100)).await;
    let before = memory.snapshot(&queue());
    let error = shard.job(async {}).options(JobOptions::new().weight(0)).add().await.unwrap_err();
    assert_eq!((error.kind(), error.to_string().contains("weight 0")), (ErrorKind::Invalid, true));
    let policy = Retry::times(1).first_delay(ms(10)).longest_delay(ms(1));
    let error = shard.retrying(policy, || async { Ok::<_, ()>(()) }).add().await.unwrap_err();
    assert!(error.to_string().contains("10ms") && error.to_string().contains("1ms"), "{error}");
    assert_eq!(memory.snapshot(&queue()), before);
}

#[tokio::test(start_paused = true)]
async fn a_time_without_end_is_waited_for() {
    let (_, state) = memory();
    let queue = open(state, ms(100)).await;
    let _running = queue.add(tokio::time::sleep(ms(5_000))).await.unwrap();
    tokio::time::sleep(ms(10)).await;
    let ended = queue.shutdown(std::time::Duration::MAX).await;
    assert_eq!((ended.cancelled, ended.aborted), (0, 0));
}
