//! Setups of stored tasks in which every promise holds, each explored to its end. Run with `INTERVAL_QUEUE_MODEL=large`
//! for larger ones besides, which take minutes.

use std::env;

use interval_queue_contract::{MaxRunning, Micros};
use interval_queue_model::tasks::{
    Once, Requests, Setup, Sight, Starts, Trouble, attempts, check, id, key, task,
};
use interval_queue_task_contract::{
    Change, NewEdge, NewTask, OnConflict, OnFailure, Outcome, SettingsChange, Unique, Until, Verb,
};

const NONE: Trouble = Trouble { timeouts: 0, doubles: 0, crashes: 0, stops: 0 };
const A_CRASH: Trouble = Trouble { crashes: 1, ..NONE };
const A_TIMEOUT: Trouble = Trouble { timeouts: 1, ..NONE };

/// Every state keeps every promise, and among them are some in which this could be seen.
#[track_caller]
fn holds(name: &str, what: &str, setup: Setup, sights: &[Sight]) {
    let verdict = check(&setup);
    verdict.tell(name, what, "every promise in every state that can be reached");
    assert!(verdict.refuted.is_none(), "{name}: {:?}\n{}", verdict.refuted, verdict.story.join("\n"));
    assert!(verdict.states > 1_000, "only {} states", verdict.states);
    for sight in sights.iter().chain(&[Sight::Start, Sight::Done]) {
        assert!(verdict.sights.contains(sight), "{name} never shows {sight:?}");
    }
}

fn slow(setup: Setup) -> Setup {
    Setup { requests: Requests::Slow, ..setup }
}

fn once(most: u32, number: u32) -> NewTask {
    NewTask { policy: Some(attempts(most)), ..task(number) }
}

fn keyed(number: u32) -> NewTask {
    NewTask { key: Some(key("k")), ..once(1, number) }
}

fn ordered(number: u32) -> NewTask {
    NewTask { ordered: true, ..keyed(number) }
}

fn behind(number: u32, ups: &[u32], on_failure: OnFailure) -> NewTask {
    let edge = |up: &u32| NewEdge { up: id(*up), name: None, on_failure };
    NewTask { edges: ups.iter().map(edge).collect(), ..once(1, number) }
}

fn named(number: u32, until: Until, on_conflict: OnConflict) -> NewTask {
    NewTask { unique: Some(Unique { name: key("n"), until }), on_conflict, ..once(1, number) }
}

fn fails() -> Once {
    Once::End(Outcome::Failed("a failure".into()))
}

fn errs() -> Once {
    Once::End(Outcome::Error("an error".into()))
}

#[test]
fn late_workers() {
    let setup = Setup { starts: Starts::Late, ..Setup::new(2, [task(1)]) };
    let what = "two workers and a task, as late as they like";
    holds(
        "late",
        what,
        setup,
        &[Sight::LeaseEnded, Sight::Died, Sight::Lost, Sight::LostOnTheWay, Sight::Restate, Sight::Failed],
    );
}

#[test]
fn a_death() {
    let setup = Setup::new(3, [once(1, 1)]).trouble(A_CRASH);
    let setup = setup.punctual();
    holds("death", "one of three workers dies at any instant", setup, &[Sight::Died, Sight::Failed]);
}

#[test]
fn lost_answers() {
    let setup = Setup::new(2, [once(1, 1)]).trouble(Trouble { timeouts: 2, ..NONE });
    holds("lost-answers", "two answers are lost", setup, &[Sight::LostOnTheWay]);
}

#[test]
fn lost_requests() {
    let setup = slow(Setup::new(2, [once(1, 1)])).trouble(A_TIMEOUT);
    let what = "a request or an answer is lost, or the request arrives when its worker has asked again";
    holds("lost-request", what, setup, &[Sight::Stray, Sight::Superseded, Sight::LostOnTheWay]);
}

#[test]
fn a_doubled_request() {
    let setup =
        slow(Setup::new(1, [once(1, 1)])).trouble(Trouble { doubles: 1, timeouts: 1, crashes: 0, stops: 0 });
    holds(
        "doubled",
        "a request arrives twice, and another one gets no answer",
        setup,
        &[Sight::Stray, Sight::Superseded],
    );
}

#[test]
fn ends_of_all_sorts() {
    let wait = Outcome::Retry(Micros::from_millis(1_000), "later".into());
    let setup = Setup::new(2, [task(1)]);
    let setup = setup.once([errs(), errs(), Once::End(wait), Once::End(Outcome::Released)]);
    let setup = setup.punctual();
    holds("ends", "runs that err, ask to be run again and are given back", setup, &[Sight::Failed]);
}

#[test]
fn a_key() {
    let setup = Setup::new(2, [keyed(1), keyed(2)]).trouble(A_CRASH);
    holds(
        "key",
        "two tasks of one key, and a worker dies",
        setup,
        &[Sight::Full, Sight::HandOver, Sight::Died],
    );
}

#[test]
fn a_key_for_two() {
    let setup = Setup::new(2, [keyed(1), keyed(2), keyed(3)]);
    let setup = Setup { settings: SettingsChange { key_limit: Some(2), ..setup.settings.clone() }, ..setup };
    let setup = setup.punctual();
    holds("key-of-two", "three tasks of a key of which two may run", setup, &[Sight::Full, Sight::HandOver]);
}

#[test]
fn an_ordered_key() {
    let first = NewTask { policy: Some(attempts(2)), ..ordered(1) };
    let setup = Setup::new(2, [first, ordered(2)]).once([errs()]);
    let setup = setup.punctual();
    holds("ordered", "two ordered tasks, of which the first errs", setup, &[Sight::Full, Sight::HandOver]);
}

#[test]
fn a_limit() {
    let setup = Setup::new(2, [once(1, 1), once(1, 2)]).trouble(A_CRASH);
    let settings = SettingsChange { max_running: MaxRunning::AtMost(1), ..setup.settings.clone() };
    holds(
        "limit",
        "one of two tasks may run, and a worker dies",
        Setup { settings, ..setup },
        &[Sight::Full],
    );
}

#[test]
fn a_diamond() {
    let tasks = [
        once(1, 1),
        behind(2, &[1], OnFailure::Cancel),
        behind(3, &[1], OnFailure::Run),
        behind(4, &[2, 3], OnFailure::Run),
    ];
    let setup = Setup::new(2, tasks).once([fails()]);
    let setup = setup.punctual();
    holds("diamond", "a diamond, and a run fails", setup, &[Sight::Failed, Sight::Cancelled]);
}

#[test]
fn an_upstream_that_is_retried() {
    let tasks = [once(1, 1), behind(2, &[1], OnFailure::Wait)];
    let setup = Setup::new(2, tasks).once([fails(), Once::Verb(Verb::Retry, 1)]);
    let setup = setup.punctual();
    holds(
        "held",
        "a task waits for one that failed, until that is retried",
        setup,
        &[Sight::Failed, Sight::Retried],
    );
}

#[test]
fn a_unique_name() {
    let setup = Setup::new(2, [named(1, Until::Ended, OnConflict::Keep)]);
    let again = Once::Add(named(2, Until::Ended, OnConflict::Keep));
    let setup = setup.once([again, Once::Verb(Verb::Retry, 1)]);
    let setup = setup.punctual();
    holds(
        "unique",
        "a second task of a unique name, and the first is retried",
        setup,
        &[Sight::Kept, Sight::Retried],
    );
}

#[test]
fn a_unique_name_until_leased() {
    let setup = Setup::new(2, [named(1, Until::Leased, OnConflict::Replace)]);
    let again = Once::Add(named(2, Until::Leased, OnConflict::Replace));
    let setup = setup.once([again, Once::Verb(Verb::Retry, 1)]);
    let setup = setup.punctual();
    holds(
        "unique-replace",
        "a second task of a unique name takes the place of the first",
        setup,
        &[Sight::Replaced, Sight::Retried],
    );
}

#[test]
fn a_cancel() {
    let setup = Setup::new(2, [once(2, 1)]).once([Once::Verb(Verb::Cancel, 1), Once::Verb(Verb::Retry, 1)]);
    let setup = setup.punctual();
    holds(
        "cancel",
        "a task is cancelled and retried",
        setup,
        &[Sight::Stop, Sight::Cancelled, Sight::Retried],
    );
}

#[test]
fn a_more_urgent_task() {
    let urgent = NewTask { priority: 1, ..keyed(2) };
    let setup = Setup::new(2, [keyed(1)]).once([Once::Add(urgent)]);
    let setup = setup.punctual();
    holds("urgent", "a more urgent task of the same key comes", setup, &[Sight::Displaced]);
}

#[test]
fn a_stop() {
    let setup = Setup::new(2, [once(1, 1)]).trouble(Trouble { stops: 1, ..NONE });
    holds("stop", "a worker is told to stop", setup, &[Sight::Died]);
}

#[test]
fn tasks_in_hand() {
    let setup = Setup { places: (1, 1), ..Setup::new(2, [keyed(1), keyed(2)]) };
    holds("in-hand", "workers take tasks of one key ahead", setup, &[Sight::Died]);
}

#[test]
fn a_pause() {
    let setup = Setup::new(2, [once(1, 1)]).once([Once::Change(Change::Pause), Once::Change(Change::Resume)]);
    holds("pause", "the queue is paused and resumed", setup, &[Sight::Died]);
}

#[test]
fn larger_setups() {
    if env::var("INTERVAL_QUEUE_MODEL").as_deref() != Ok("large") {
        println!("skipped: takes minutes, set INTERVAL_QUEUE_MODEL=large");
        return;
    }
    let three = Setup::new(3, [once(1, 1)]);
    holds("large-three", "three workers and a task, as late as they like", three, &[Sight::Died]);
}
