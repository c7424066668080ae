//! Setups in which every promise holds, each explored to its end. Run with `INTERVAL_QUEUE_MODEL=large` for
//! larger ones besides, which take minutes.

use std::env;

use interval_queue_model::{Asking, Loss, Requests, Setup, Sight, Trouble, check};

const NONE: Trouble = Trouble { timeouts: 0, crashes: 0, pauses: 0, holds: 0, cancels: 0, losses: 0 };

/// Every state keeps every promise, and among them are some in which this could be seen.
#[track_caller]
fn holds(name: &str, what: &str, setup: Setup, sights: &[Sight]) {
    let verdict = check(&setup);
    verdict.tell(name, what, "every promise in every state that can be reached");
    assert!(verdict.refuted.is_none(), "{name}: {:?}\n{}", verdict.refuted, verdict.story.join("\n"));
    assert!(verdict.states > 1_000, "only {} states", verdict.states);
    for sight in sights.iter().chain(&[Sight::Start, Sight::GivenUp, Sight::LateSlot]) {
        assert!(verdict.sights.contains(sight), "{name} never shows {sight:?}");
    }
}

fn notified(setup: Setup) -> Setup {
    Setup { asking: Asking::WhenTold, ..setup }
}

fn slow(setup: Setup) -> Setup {
    Setup { requests: Requests::Slow, ..setup }
}

/// Two ticks an interval.
fn fine(setup: Setup) -> Setup {
    Setup { interval: 2, lease: 4, ..setup }.lead(2)
}

fn limited(setup: Setup) -> Setup {
    Setup { limit: Some(1), ..setup }
}

fn lossy(setup: Setup, loss: Loss) -> Setup {
    Setup { losses: vec![loss], ..setup }.trouble(Trouble { losses: 1, ..NONE })
}

#[test]
fn three_shards() {
    let setup = Setup::new([&[1], &[1], &[1]]);
    holds("three-shards", "three shards with a job each, as late as they like", setup, &[Sight::LeaseEnded]);
}

#[test]
fn shards_that_act_when_told() {
    let setup = notified(Setup::new([&[1], &[1], &[1]]));
    holds(
        "notified",
        "three shards with a job each that ask when told, or later",
        setup,
        &[Sight::LeaseEnded],
    );
}

#[test]
fn asks_that_cross() {
    let setup = Setup { leads: vec![0, 2], ..fine(notified(Setup::new([&[1, 1], &[1]]))) };
    let what = "two shards with three jobs in half intervals, of which one asks an interval early: asks overtake each other";
    holds("crossing", what, setup, &[Sight::OwnSlot, Sight::LeaseEnded]);
}

#[test]
fn slow_requests() {
    let setup = slow(Setup::new([&[1, 1], &[1]]));
    holds("slow", "requests and answers that take as long as they like", setup, &[Sight::LeaseEnded]);
}

#[test]
fn a_lost_answer() {
    let setup = Setup::new([&[1, 1], &[1]]).trouble(Trouble { timeouts: 1, ..NONE });
    holds("lost-answer", "one answer is lost", setup, &[Sight::OwnSlot]);
}

#[test]
fn a_lost_request() {
    let setup = slow(Setup::new([&[1], &[1]])).lead(0).trouble(Trouble { timeouts: 1, ..NONE });
    let what = "one request or answer is lost, or the request arrives when its shard has asked again";
    holds("lost-request", what, setup, &[Sight::Stray, Sight::Superseded]);
}

#[test]
fn a_death() {
    let setup = Setup::new([&[1], &[1], &[1]]).trouble(Trouble { crashes: 1, ..NONE });
    holds("death", "one of three shards dies at any instant", setup, &[Sight::LeaseEnded]);
}

#[test]
fn the_death_of_one_with_two_jobs() {
    let setup = notified(Setup::new([&[1, 1], &[1]])).trouble(Trouble { crashes: 1, ..NONE });
    holds(
        "death-of-two",
        "a shard with two jobs dies, the other acts when told",
        setup,
        &[Sight::LeaseEnded],
    );
}

#[test]
fn a_pause() {
    let setup = Setup::new([&[1], &[1]]).trouble(Trouble { pauses: 1, ..NONE });
    holds("pause", "the queue is paused and resumed", setup, &[Sight::OwnSlot]);
}

#[test]
fn a_hold() {
    let setup = Setup::new([&[1], &[1]]).trouble(Trouble { holds: 1, ..NONE });
    holds("hold", "the queue is held", setup, &[Sight::LeaseEnded]);
}

#[test]
fn heavy_jobs() {
    let setup = Setup::new([&[2, 1], &[1]]);
    holds("weights", "a job that takes two intervals among others", setup, &[Sight::OwnSlot]);
}

#[test]
fn a_cancelled_job() {
    let setup = Setup::new([&[1, 1], &[1]]).trouble(Trouble { cancels: 1, ..NONE });
    holds("cancel", "a waiting job is withdrawn", setup, &[Sight::LeaseEnded]);
}

#[test]
fn a_running_limit() {
    let setup = limited(Setup::new([&[1], &[1]])).trouble(Trouble { crashes: 1, ..NONE });
    holds("limit", "one job may run at a time, and a shard dies", setup, &[Sight::Full, Sight::LeaseEnded]);
}

#[test]
fn a_record_that_is_gone() {
    let setup = lossy(Setup::new([&[1], &[1]]), Loss::Gone);
    holds("gone", "the record is lost", setup, &[Sight::Lifted]);
}

#[test]
fn a_record_that_is_rewound() {
    let setup = notified(lossy(Setup::new([&[1], &[1]]), Loss::Rewound));
    holds("rewound", "an old copy of the record is put back", setup, &[Sight::Lifted, Sight::Early]);
}

#[test]
fn a_failover() {
    let setup = notified(lossy(Setup::new([&[1], &[1]]), Loss::FailedOver));
    holds("failover", "another server takes over with an old copy of the record", setup, &[Sight::Lifted]);
}

fn bursts(setup: Setup) -> Setup {
    Setup { burst: 2, ..setup }
}

#[test]
fn heavy_jobs_and_a_burst() {
    let setup = bursts(Setup::new([&[3], &[1]]));
    holds("burst-weights", "a job heavier than the burst among others", setup, &[Sight::LeaseEnded]);
}

#[test]
fn a_lost_answer_and_a_burst() {
    let setup = notified(bursts(Setup::new([&[2], &[1]]))).lead(0).trouble(Trouble { timeouts: 1, ..NONE });
    holds("burst-lost-answer", "one answer is lost where two slots may come at once", setup, &[]);
}

#[test]
fn a_lost_answer_that_is_given_again() {
    let setup = limited(notified(bursts(Setup::new([&[1], &[1]])))).trouble(Trouble { timeouts: 1, ..NONE });
    holds(
        "burst-again",
        "one answer is lost, and light jobs are granted the same slots again",
        setup,
        &[Sight::Again],
    );
}

#[test]
fn a_hold_and_a_burst() {
    let setup = bursts(Setup::new([&[1], &[1]])).trouble(Trouble { holds: 1, ..NONE });
    holds("burst-hold", "a queue with bursts is held", setup, &[Sight::LeaseEnded]);
}

#[test]
fn a_burst_in_a_record_that_is_gone() {
    let setup = notified(lossy(bursts(Setup::new([&[1], &[1]])), Loss::Gone));
    holds("burst-gone", "the record of a queue with bursts is lost", setup, &[Sight::Lifted]);
}

#[test]
fn larger_setups() {
    if env::var("INTERVAL_QUEUE_MODEL").as_deref() != Ok("large") {
        println!("skipped: takes minutes, set INTERVAL_QUEUE_MODEL=large");
        return;
    }
    let no_lead = Setup::new([&[1], &[1], &[1]]).lead(0);
    holds("large-no-lead", "three shards that ask when their slot has come", no_lead, &[]);
    let jobs = Setup::new([&[1, 1], &[1, 1]]);
    holds("large-jobs", "two shards with two jobs each", jobs, &[Sight::OwnSlot]);
    let weights = Setup::new([&[2], &[1], &[1]]);
    holds("large-weights", "three shards, one with a job of two intervals", weights, &[Sight::OwnSlot]);
    let pause = Setup::new([&[1, 1], &[1]]).trouble(Trouble { pauses: 1, ..NONE });
    holds("large-pause", "a pause among three jobs", pause, &[Sight::OwnSlot]);
    let hold = Setup::new([&[1, 1], &[1]]).trouble(Trouble { holds: 1, ..NONE });
    holds("large-hold", "a hold among three jobs", hold, &[Sight::OwnSlot]);
    let timeouts = slow(Setup::new([&[1], &[1]])).trouble(Trouble { timeouts: 2, ..NONE });
    holds("large-timeouts", "two steps get no answer", timeouts, &[Sight::Stray, Sight::Superseded]);
}
