//! Wrong variants of the rules and of the workers of stored tasks. Each must be refuted, by a promise that is named
//! here and by a shortest way whose end is: a checker that lets them pass, or refutes them for another reason, is worth
//! nothing.

use interval_queue_contract::MaxRunning;
use interval_queue_model::tasks::{
    Action, End, Flaw, Once, Promise, Requests, Setup, Trouble, attempts, check, id, key, task,
};
use interval_queue_task_contract::{
    NewEdge, NewTask, OnConflict, OnFailure, SettingsChange, Unique, Until, Verb,
};

const NONE: Trouble = Trouble { timeouts: 0, doubles: 0, crashes: 0, stops: 0 };
const A_TIMEOUT: Trouble = Trouble { timeouts: 1, ..NONE };

/// The flaw breaks this promise, in a way in which these things happen in this order, time and much else
/// between them.
#[track_caller]
fn refutes(name: &str, what: &str, setup: Setup, flaw: Flaw, promise: Promise, way: &[Action]) {
    let verdict = check(&Setup { flaw: Some(flaw), ..setup });
    verdict.tell(name, what, &format!("refuted: {}", promise.text()));
    let Some((broken, actions)) = verdict.refuted else { panic!("{name}: nothing was found") };
    assert_eq!(broken, promise, "{}", verdict.story.join("\n"));
    let mut rest = actions.iter();
    for action in way {
        assert!(rest.any(|happened| happened == action), "{name}: no {action:?} in its place: {actions:?}");
    }
}

fn keyed(number: u32) -> NewTask {
    NewTask { key: Some(key("k")), ..task(number) }
}

fn behind(number: u32, up: u32) -> NewTask {
    let edges = vec![NewEdge { up: id(up), name: None, on_failure: OnFailure::Cancel }];
    NewTask { edges, ..task(number) }
}

fn named(number: u32) -> NewTask {
    let unique = Some(Unique { name: key("n"), until: Until::Ended });
    NewTask { unique, on_conflict: OnConflict::Keep, ..task(number) }
}

#[test]
fn a_late_complete_needs_the_token_in_force() {
    let setup = Setup::new(2, [task(1)]);
    let what = "rules that obey a completion whatever its token";
    let way = [Action::End(0, 1, End::Done), Action::Act(0)];
    refutes("no-fence", what, setup, Flaw::NoFence, Promise::Fence, &way);
}

#[test]
fn an_old_step_must_not_undo_a_newer_one() {
    let setup = Setup { requests: Requests::Slow, ..Setup::new(1, [task(1)]) }.trouble(A_TIMEOUT);
    let what = "rules that do not refuse a step after a newer one";
    let way = [Action::TimeOut(0), Action::Arrive(0), Action::Stray(0, 0)];
    refutes("no-sequence", what, setup, Flaw::NoSequence, Promise::Forward, &way);
}

#[test]
fn the_tasks_of_the_dead_go_on_with_a_lease_alone() {
    let setup = Setup::new(2, [task(1)]).trouble(Trouble { crashes: 1, ..NONE });
    let what = "rules by which the lease of a worker never ends";
    refutes("no-lease", what, setup, Flaw::NoLease, Promise::Liveness, &[Action::Act(0), Action::Crash(0)]);
}

#[test]
fn a_key_that_got_free_lets_the_next_one_in() {
    let setup = Setup::new(1, [keyed(1), keyed(2)]);
    let what = "rules that let nobody in when a key gets free";
    let way = [Action::End(0, 1, End::Done), Action::Act(0)];
    refutes("no-hand-over", what, setup, Flaw::NoHandOver, Promise::HandOver, &way);
}

#[test]
fn ends_are_told() {
    let setup = Setup::new(1, [task(1), behind(2, 1)]);
    let what = "rules that tell nobody of an end";
    let way = [Action::End(0, 1, End::Done), Action::Act(0)];
    refutes("ends-not-told", what, setup, Flaw::EndsNotNotified, Promise::Told, &way);
}

#[test]
fn a_task_waits_for_its_upstreams() {
    let setup = Setup::new(1, [task(1), behind(2, 1)]);
    let what = "rules by which a task does not wait for its upstreams";
    refutes("edges-forgotten", what, setup, Flaw::EdgesForgotten, Promise::Edges, &[Action::Act(0)]);
}

#[test]
fn a_lease_that_ended_counts() {
    let setup = Setup::new(2, [task(1)]).trouble(Trouble { crashes: 1, ..NONE });
    let what = "rules that do not count a lease that ended with its worker";
    let way = [Action::Pass, Action::Act(1)];
    refutes("deaths-forgotten", what, setup, Flaw::DeathsForgotten, Promise::Failures, &way);
}

#[test]
fn a_retry_must_not_take_a_name() {
    let once = [Once::Verb(Verb::Cancel, 1), Once::Add(named(2)), Once::Verb(Verb::Retry, 1)];
    let setup = Setup::new(1, [named(1)]).once(once);
    let what = "rules that let a retried task take its unique name from another one";
    let way = [Action::Once(0), Action::Once(1), Action::Once(2)];
    refutes("retry-takes-name", what, setup, Flaw::RetryTakesName, Promise::Unique, &way);
}

#[test]
fn a_cancelled_run_ends_cancelled() {
    let setup = Setup::new(1, [task(1), behind(2, 1)]).once([Once::Verb(Verb::Cancel, 1)]);
    let what = "rules that forget that a run was asked to stop";
    refutes("stop-forgotten", what, setup, Flaw::StopForgotten, Promise::Stopped, &[Action::Once(0)]);
}

#[test]
fn a_limit_counts_what_runs() {
    let setup = Setup::new(2, [task(1), task(2)]);
    let settings = SettingsChange { max_running: MaxRunning::AtMost(1), ..setup.settings.clone() };
    let what = "rules that do not count what is leased already";
    let setup = Setup { settings, ..setup };
    refutes(
        "limit-forgotten",
        what,
        setup,
        Flaw::LimitForgotten,
        Promise::Limit,
        &[Action::Act(0), Action::Act(1)],
    );
}

#[test]
fn the_most_urgent_comes_first() {
    let setup = Setup::new(1, [task(1), task(2)]);
    let what = "rules that lease the least urgent first";
    refutes("last-first", what, setup, Flaw::LastComesFirst, Promise::Order, &[Action::Act(0)]);
}

#[test]
fn a_worker_says_what_it_holds_after_a_lost_answer() {
    let setup = Setup::new(1, [task(1)]).trouble(A_TIMEOUT).punctual();
    let what = "a worker that does not say what it holds after an answer was lost";
    refutes(
        "no-restating",
        what,
        setup,
        Flaw::NoRestating,
        Promise::Liveness,
        &[Action::Act(0), Action::TimeOut(0)],
    );
}

#[test]
fn a_worker_gives_up_at_the_end_of_its_lease() {
    let setup = Setup::new(2, [task(1)]);
    let what = "a worker that goes on beyond the end of its lease";
    let way = [Action::Receive(0), Action::Pass, Action::Act(1)];
    refutes("never-expires", what, setup, Flaw::NeverExpires, Promise::Belief, &way);
}

#[test]
fn a_lease_is_counted_from_sending() {
    let setup = Setup::new(2, [task(1)]);
    let what = "a worker that counts its lease from the answer";
    let way = [Action::Act(0), Action::Pass, Action::Receive(0), Action::Pass, Action::Act(1)];
    refutes("counts-from-answer", what, setup, Flaw::CountsFromAnswer, Promise::Belief, &way);
}

#[test]
fn the_answer_to_a_step_that_was_given_up_is_of_no_use() {
    let setup = Setup::new(1, [task(1)]).trouble(A_TIMEOUT);
    let what = "a worker that uses the answer to a step that it had given up";
    let way = [Action::TimeOut(0), Action::Act(0), Action::ReceiveLate(0)];
    refutes("late-answer", what, setup, Flaw::UsesLateAnswer, Promise::Belief, &way);
}

#[test]
fn a_run_counts_that_its_lease_ended_on() {
    let setup = Setup::new(1, [NewTask { policy: attempts(1).into(), ..task(1) }]);
    let what = "a worker that says nothing of a run that its lease ended on: the run may be the only one";
    let way = [Action::Receive(0), Action::Pass, Action::Act(0)];
    refutes("forgets-runs", what, setup, Flaw::ForgetsRuns, Promise::Failures, &way);
}
