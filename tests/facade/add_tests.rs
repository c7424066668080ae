//! `add` is quick: it waits for room and for nothing else, and its handle tells the rest.

use futures::{FutureExt, future::join_all};
use interval_queue::{Error, ErrorKind, IntervalQueue, Ticket};
use tokio::time::{Instant, sleep};

use crate::common::{Starts, add_in_turn, all_done, far, memory, ms, open, shard, wired};

#[tokio::test(start_paused = true)]
async fn a_loop_of_adds_takes_no_time_at_any_pace_and_few_commands() {
    for interval in [1, 10, 100, 150, 3_600_000] {
        let (_, wire) = wired();
        let queue = open(wire.clone(), ms(interval)).await;
        let (starts, began, before) = (Starts::new(), Instant::now(), wire.counts().steps);
        for job in 0..1000 {
            queue.add(starts.job(job)).await.unwrap();
        }
        let last = queue.add(starts.job(1000)).await.unwrap();
        assert_eq!(began.elapsed(), ms(0), "at {interval} ms");
        last.ticket().await.unwrap();
        let steps = wire.counts().steps - before;
        assert!(steps <= 3, "{steps} commands at {interval} ms");
        sleep(ms(interval * 30)).await;
        let jobs = starts.jobs();
        assert!(jobs.len() >= 20 && jobs.is_sorted(), "at {interval} ms: {jobs:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_producer_that_yields_between_adds_shares_commands() {
    let (_, wire) = wired();
    let queue = open(wire.clone(), ms(50)).await;
    let before = wire.counts().steps;
    for _ in 0..1000 {
        queue.add(async {}).await.unwrap();
        sleep(ms(1)).await;
    }
    // A second and more: each slot asks, and takes what came since.
    let steps = wire.counts().steps - before;
    assert!(steps <= 60, "{steps} commands");
}

#[tokio::test(start_paused = true)]
async fn a_ticket_can_be_asked_for_often_and_by_many() {
    let (_, wire, queue) = far(ms(100)).await;
    wire.change(|faults| faults.delay_before = ms(50));
    let job = queue.add(async { 7 }).await.unwrap();
    assert!(job.ticket().now_or_never().is_none(), "it has none yet");
    let tickets = join_all((0..3).map(|_| job.ticket())).await;
    assert!(tickets.iter().all(|ticket| *ticket.as_ref().unwrap() == Ticket::new(1)));
    assert_eq!(job.await.unwrap(), 7);
}

#[tokio::test(start_paused = true)]
async fn a_job_has_a_position_before_it_has_its_ticket() {
    let (_, state) = memory();
    let queue = shard(&state, ms(100)).await;
    let starts = Starts::new();
    let first = add_in_turn(std::slice::from_ref(&queue), &starts, 3).await;
    let last = queue.add(starts.job(3)).await.unwrap();
    let (before, estimate) = (last.position(), last.estimated_start().unwrap());
    last.ticket().await.unwrap();
    assert_eq!((before, last.position()), (Some(2), Some(2)));
    assert!(estimate > ms(290) && estimate <= ms(301), "{estimate:?}");
    all_done(first).await;
}

#[tokio::test(start_paused = true)]
async fn a_latest_start_is_judged_by_memory_or_a_read() {
    let kind = |result: Result<Ticket, Error>| result.unwrap_err().kind();
    let (state, wire) = wired();
    let queue = shard(&wire, ms(1000)).await;
    let busy = shard(&state, ms(1000)).await;
    busy.add_all((0..20).map(|_| async {})).await.unwrap()[19].ticket().await.unwrap();
    // What it heard when it was opened is not true any more, which it cannot know.
    let first = queue.job(async {}).start_within(ms(5000)).add().await.unwrap();
    assert_eq!(first.await.unwrap_err().kind(), ErrorKind::TooLate, "its ticket tells");
    let known = queue.job(async {}).start_within(ms(5000)).add().await;
    assert_eq!(known.map(|_| ()).unwrap_err().kind(), ErrorKind::TooLate, "it has heard since");

    sleep(ms(1500)).await;
    let (reads, taken) = (wire.counts().reads, busy.status().await.shared.unwrap().record.ticket);
    let late = queue.job(async {}).start_within(ms(5000)).add().now_or_never().unwrap().unwrap();
    let behind = queue.add(async {}).await.unwrap();
    assert_eq!(kind(late.ticket().await), ErrorKind::TooLate);
    assert_eq!(late.await.unwrap_err().kind(), ErrorKind::TooLate);
    assert_eq!(wire.counts().reads, reads + 1);
    // The refused one took no ticket.
    assert_eq!(behind.ticket().await.unwrap(), taken.after(1));
    assert!(behind.cancel());
    queue.wait_idle().await;
}

#[tokio::test(start_paused = true)]
async fn a_job_rejected_after_its_add_is_reported_to_the_hook() {
    let (_, state) = memory();
    let (sender, mut told) = tokio::sync::mpsc::unbounded_channel();
    let builder = IntervalQueue::builder("test").interval(ms(1000));
    let builder = builder.on_error(move |error| sender.send(error.kind()).unwrap());
    let queue = builder.open(state).await.unwrap();
    queue.add_all((0..5).map(|_| async {})).await.unwrap();
    queue.pause().await.unwrap();
    queue.job(async {}).start_within(ms(20_000)).add().await.unwrap();
    assert_eq!(told.recv().await, Some(ErrorKind::TooLate));
}
