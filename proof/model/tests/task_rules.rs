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
    NewTask { policy: attempts(most).into(), ..task(number) }
}

fn keyed(number: u32) -> NewTask {
    NewTask { key: Some(key("k")), ..once(1, number) }
}

fn keyed_twice(number: u32) -> NewTask {
    NewTask { policy: attempts(2).into(), ..keyed(number) }
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

fn within() -> Once {
    Once::Within(Outcome::Done(interval_queue_task_contract::Json::default()))
}

fn unheard() -> Once {
    Once::Unheard(Outcome::Done(interval_queue_task_contract::Json::default()))
}

#[test]
fn ends_within_transactions_of_late_workers() {
    let setup = Setup::new(2, [once(2, 1)]).once([within(), unheard()]).trouble(A_CRASH);
    let what = "two workers, as late as they like, end runs within transactions, and one of them dies";
    let sights = [Sight::Within, Sight::Refused, Sight::Lost, Sight::LeaseEnded, Sight::Died];
    holds("within", what, setup, &sights);
}

#[test]
fn ends_within_transactions_at_a_key() {
    let retry = Once::Verb(Verb::Retry, 1);
    let setup = Setup::new(2, [keyed(1), keyed(2)]).once([within(), within(), retry]).trouble(A_CRASH);
    let what = "two tasks of one key end within transactions, one is retried, and a worker dies";
    let sights = [Sight::Within, Sight::HandOver, Sight::Full, Sight::Retried, Sight::Died];
    holds("within-key", what, setup.punctual(), &sights);
}

#[test]
fn ends_within_transactions_upstream() {
    let tasks = [once(1, 1), behind(2, &[1], OnFailure::Cancel)];
    let setup = slow(Setup::new(2, tasks)).once([within(), Once::Verb(Verb::Purge, 1)]).trouble(A_CRASH);
    let what = "an upstream ends within a transaction, and a worker dies";
    holds("within-upstream", what, setup.punctual(), &[Sight::Within, Sight::Died]);
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
fn deaths() {
    let setup = Setup::new(3, [once(2, 1)]).once([errs()]).trouble(Trouble { crashes: 2, ..NONE }).punctual();
    holds("deaths", "two of three workers die at any instant", setup, &[Sight::Died, Sight::Failed]);
}

#[test]
fn a_death_among_the_late() {
    let setup = Setup::new(2, [once(1, 1)]).trouble(A_CRASH);
    holds(
        "death",
        "one of two workers dies, both as late as they like",
        setup,
        &[Sight::Died, Sight::Failed],
    );
}

#[test]
fn lost_answers() {
    let setup = Setup::new(2, [once(1, 1)]).trouble(Trouble { timeouts: 2, ..NONE });
    holds("lost-answers", "two answers are lost", setup, &[Sight::LostOnTheWay]);
}

#[test]
fn lost_requests() {
    let setup = slow(Setup::new(2, [once(1, 1)])).trouble(Trouble { timeouts: 2, ..NONE }).punctual();
    let what = "two requests or answers are lost, or the requests arrive when their worker has asked again";
    holds("lost-requests", what, setup, &[Sight::Stray, Sight::Superseded, Sight::LostOnTheWay]);
}

#[test]
fn a_doubled_request() {
    let setup = slow(Setup::new(1, [once(1, 1)])).trouble(Trouble { doubles: 1, ..A_TIMEOUT });
    let what = "a request arrives twice, and another one gets no answer";
    holds("doubled", what, setup, &[Sight::Stray, Sight::Superseded]);
}

#[test]
fn ends_of_all_sorts() {
    let wait = Outcome::Retry(Micros::from_millis(1_000), "later".into());
    let setup = Setup::new(2, [task(1)]).trouble(Trouble { timeouts: 1, ..A_CRASH }).punctual();
    let setup = setup.once([errs(), errs(), Once::End(wait), Once::End(Outcome::Released)]);
    holds(
        "ends",
        "runs that err, ask to be run again and are given back",
        setup,
        &[Sight::Failed, Sight::Died],
    );
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
    let setup = Setup::new(2, [keyed(1), keyed(2), keyed(3)]).trouble(Trouble { timeouts: 1, ..A_CRASH });
    let settings = SettingsChange { key_limit: Some(2), ..setup.settings.clone() };
    let setup = Setup { settings, ..setup }.punctual();
    let what = "three tasks of a key of which two may run, an answer is lost and a worker dies";
    holds("key-of-two", what, setup, &[Sight::Full, Sight::HandOver, Sight::Died]);
}

#[test]
fn a_limit_of_a_key_that_changes() {
    let less = Change::Set(SettingsChange { key_limit: Some(1), ..SettingsChange::default() });
    let pause = Change::Key(key("k"), Some(0));
    let setup = Setup::new(2, [keyed(1), keyed(2), keyed(3)]);
    let settings = SettingsChange { key_limit: Some(2), ..setup.settings.clone() };
    let setup = Setup { settings, ..setup }.punctual().once([Once::Change(less), Once::Change(pause)]);
    holds("key-changed", "the limit of a key is lowered, and the key is paused", setup, &[Sight::Full]);
}

#[test]
fn an_ordered_key() {
    let first = NewTask { policy: attempts(2).into(), ..ordered(1) };
    let setup = Setup::new(2, [first, ordered(2), ordered(3)]).once([errs()]).trouble(A_CRASH).punctual();
    let what = "three ordered tasks, of which the first errs, and a worker dies";
    holds("ordered", what, setup, &[Sight::Full, Sight::HandOver, Sight::Died]);
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
    use OnFailure::{Cancel, Run};
    let tasks = [once(1, 1), behind(2, &[1], Cancel), behind(3, &[1], Run), behind(4, &[2, 3], Run)];
    let setup = Setup::new(2, tasks).once([fails()]).trouble(A_CRASH).punctual();
    let what = "a diamond, a run fails, and a worker dies";
    holds("diamond", what, setup, &[Sight::Failed, Sight::Cancelled, Sight::Died]);
}

#[test]
fn upstreams_that_are_retried() {
    let tasks = [once(1, 1), behind(2, &[1], OnFailure::Wait), behind(3, &[2], OnFailure::Cancel)];
    let verbs = [Once::Verb(Verb::Retry, 1), Once::Verb(Verb::Cancel, 2)];
    let setup = Setup::new(2, tasks).once([fails()].into_iter().chain(verbs)).punctual();
    let what = "a chain waits for a task that failed, until that is retried, and a part of it is cancelled";
    holds("held", what, setup, &[Sight::Held, Sight::Failed, Sight::Retried, Sight::Cancelled]);
}

#[test]
fn small_shares_of_the_housekeeping() {
    use OnFailure::Cancel;
    let tasks = [keyed(1), behind(2, &[1], Cancel), behind(3, &[1], Cancel), behind(4, &[1, 2, 3], Cancel)];
    let setup = Setup { share: Some(3), ..Setup::new(2, tasks) }.once([fails()]).trouble(A_CRASH).punctual();
    let what = "housekeeping in shares of three things, a run fails, and a worker dies";
    holds("shares", what, setup, &[Sight::Failed, Sight::Cancelled, Sight::Died]);
}

#[test]
fn a_unique_name() {
    let setup = Setup::new(2, [named(1, Until::Ended, OnConflict::Keep)]);
    let again = Once::Add(named(2, Until::Ended, OnConflict::Keep));
    let setup = setup.once([again, Once::Verb(Verb::Retry, 1)]).trouble(A_CRASH).punctual();
    let what = "a second task of a unique name, the first is retried, and a worker dies";
    holds("unique", what, setup, &[Sight::Kept, Sight::Retried]);
}

#[test]
fn a_unique_name_until_leased() {
    let setup = Setup::new(2, [named(1, Until::Leased, OnConflict::Replace)]);
    let again = Once::Add(named(2, Until::Leased, OnConflict::Replace));
    let setup = setup.once([again, errs(), Once::Verb(Verb::Retry, 1)]).trouble(A_TIMEOUT).punctual();
    let what = "a second task of a unique name takes the place of the first, and an answer is lost";
    holds("unique-replace", what, setup, &[Sight::Replaced, Sight::Retried]);
}

#[test]
fn verbs() {
    let once = [Once::Verb(Verb::Cancel, 1), Once::Verb(Verb::Retry, 1), Once::Verb(Verb::Release, 1)];
    let setup = Setup::new(2, [keyed(1), keyed(2)]).once(once).trouble(A_CRASH).punctual();
    let what = "a task is cancelled, retried and given back by an operator, and a worker dies";
    holds("verbs", what, setup, &[Sight::Stop, Sight::Cancelled, Sight::Retried, Sight::Died]);
}

#[test]
fn a_more_urgent_task() {
    let urgent = NewTask { priority: 1, ..keyed(2) };
    let setup = Setup::new(2, [keyed(1), keyed(3)]).once([Once::Add(urgent)]).trouble(A_CRASH).punctual();
    let what = "a more urgent task of the same key comes, and a worker dies";
    holds("urgent", what, setup, &[Sight::Displaced, Sight::Died]);
}

#[test]
fn a_stop() {
    let setup = Setup::new(2, [once(1, 1)]).trouble(Trouble { stops: 1, ..NONE });
    holds("stop", "a worker is told to stop", setup, &[Sight::Died]);
}

#[test]
fn tasks_in_hand() {
    let setup = Setup { permits: (1, 1), ..Setup::new(2, [keyed(1), keyed(2)]) };
    holds("in-hand", "workers may take tasks ahead, and tasks of one key are not", setup, &[Sight::Died]);
    let setup = Setup { permits: (1, 1), ..Setup::new(2, [once(2, 1), once(2, 2)]) };
    let setup = setup.trouble(A_CRASH).punctual();
    holds("prefetched", "workers take tasks ahead, and one dies", setup, &[Sight::Died, Sight::DiedInHand]);
}

#[test]
fn two_places() {
    let setup = Setup { permits: (2, 1), ..Setup::new(2, [once(1, 1), once(2, 2), once(2, 3)]) };
    let setup =
        Setup { starts: Starts::Late, ..setup }.trouble(Trouble { timeouts: 1, ..A_CRASH }).punctual();
    let what = "workers with two places that take a task ahead, an answer is lost and a worker dies";
    holds("two-places", what, setup, &[Sight::Died]);
}

#[test]
fn a_pause() {
    let setup = Setup::new(2, [once(1, 1)]);
    let setup = setup.once([Once::Change(Change::Pause), Once::Change(Change::Resume)]);
    holds("pause", "the queue is paused and resumed", setup, &[Sight::Died]);
}

#[test]
fn larger_setups() {
    if env::var("INTERVAL_QUEUE_MODEL").as_deref() != Ok("large") {
        println!("skipped: takes minutes, set INTERVAL_QUEUE_MODEL=large");
        return;
    }
    let many = Trouble { timeouts: 1, ..A_CRASH };
    let late = Setup::new(3, [once(1, 1)]);
    holds("large-late", "three workers and a task, as late as they like", late, &[Sight::Died]);
    let requests = slow(Setup::new(2, [once(1, 1)])).trouble(A_TIMEOUT);
    let what = "slow requests among workers as late as they like, of which one gets no answer";
    holds("large-requests", what, requests, &[Sight::Stray, Sight::Superseded, Sight::Died]);
    let key = Setup::new(3, [keyed(1), keyed(2), keyed(3)]).trouble(many);
    let settings = SettingsChange { key_limit: Some(2), ..key.settings.clone() };
    let what =
        "three workers, three tasks of a key of which two may run, an answer is lost and a worker dies";
    holds("large-key-of-two", what, Setup { settings, ..key }.punctual(), &[Sight::HandOver, Sight::Died]);
    let verbs =
        [Once::Verb(Verb::Cancel, 1), Once::Verb(Verb::Retry, 1), Once::Verb(Verb::Release, 1), errs()];
    let verbs = Setup::new(3, [keyed_twice(1), keyed_twice(2)]).once(verbs).trouble(A_CRASH).punctual();
    let what = "three workers, a task is cancelled, retried and given back, a run errs and a worker dies";
    holds("large-verbs", what, verbs, &[Sight::Stop, Sight::Retried, Sight::Died]);
    let cancel = [Once::Verb(Verb::Cancel, 1), Once::Verb(Verb::Retry, 1)];
    let cancel = Setup::new(2, [once(2, 1)]).once(cancel);
    let what = "a task is cancelled and retried among workers as late as they like";
    holds("large-cancel", what, cancel, &[Sight::Stop, Sight::Retried, Sight::LeaseEnded]);
}
