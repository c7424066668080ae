//! Wrong variants of the rules and of the shards. Each must be refuted, by a promise that is named here and
//! by a shortest way whose end is: a checker that lets them pass, or refutes them for another reason, is
//! worth nothing.

use interval_queue_model::{Action, Asking, Flaw, Loss, Promise, Requests, Setup, Trouble, check};

const NONE: Trouble = Trouble { timeouts: 0, crashes: 0, pauses: 0, holds: 0, cancels: 0, losses: 0 };
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

#[test]
fn a_late_ticket_that_gets_no_slot_waits_for_ever() {
    let setup = Setup::new([&[1]]);
    let what = "rules without slots for late tickets";
    let way = [Action::Send(0), Action::Pass];
    refutes("no-late-rule", what, setup, Flaw::NoLateRule, Promise::Liveness, &way);
}

#[test]
fn the_dead_keep_their_place_without_a_lease() {
    let setup = Setup { limit: Some(1), ..Setup::new([&[1], &[1]]) };
    let setup = setup.trouble(Trouble { crashes: 1, ..NONE });
    let what = "rules without leases: one job may run, and its shard dies";
    let way = [Action::Send(0), Action::Crash(0), Action::Add(1)];
    refutes("no-lease", what, setup, Flaw::NoLease, Promise::Liveness, &way);
}

#[test]
fn current_goes_back_if_it_is_set() {
    let setup = Setup::new([&[1, 1]]);
    let what = "rules that set current to the ticket they grant";
    let way = [Action::Send(0), Action::Receive(0), Action::Pass, Action::Send(0)];
    refutes("current-is-set", what, setup, Flaw::CurrentIsSet, Promise::Forward, &way);
}

#[test]
fn an_overtaken_ticket_must_know_whether_its_slot_is_still_its_own() {
    let setup = Setup::new([&[1, 1], &[1]]);
    let what = "rules that forget from which ticket on slots follow distances (line_from)";
    let way = [Action::Send(0), Action::Send(1), Action::Send(0)];
    refutes("no-line-from", what, setup, Flaw::NoLineFrom, Promise::Spacing, &way);
}

#[test]
fn a_heavy_job_moves_the_next_slot_by_its_weight() {
    let setup = Setup::new([&[2], &[1]]);
    let what = "rules that count a heavy job as one interval";
    let way = [Action::Send(0), Action::Send(1)];
    refutes("weight-forgotten", what, setup, Flaw::WeightForgotten, Promise::Spacing, &way);
}

#[test]
fn a_grant_looks_at_the_pause() {
    let setup = Setup::new([&[1]]).trouble(Trouble { pauses: 1, ..NONE });
    let what = "rules that grant without a look at the pause";
    let way = [Action::Pause, Action::Send(0)];
    refutes("pause-ignored", what, setup, Flaw::PauseIgnored, Promise::Obedience, &way);
}

/// What comes of it, if it goes on, are two running jobs where one may.
#[test]
fn an_old_step_must_not_undo_a_newer_one() {
    let setup = Setup { limit: Some(1), requests: Requests::Slow, ..Setup::new([&[1], &[1]]) };
    let setup = setup.lead(0).trouble(A_TIMEOUT);
    let what = "rules that do not refuse a step after a newer one";
    let way = [Action::TimeOut(0), Action::Arrive(0), Action::Stray(0)];
    refutes("no-sequence", what, setup, Flaw::NoSequence, Promise::Forward, &way);
}

/// Two jobs then share one ticket, and one of them never starts.
#[test]
fn without_memories_a_loss_gives_tickets_out_twice() {
    let setup = Setup { losses: vec![Loss::Rewound], ..Setup::new([&[1, 1]]) };
    let setup = setup.lead(0).trouble(Trouble { losses: 1, ..NONE });
    let what = "rules that lift nothing to what shards remember";
    let way = [Action::Save, Action::Send(0), Action::Lose(Loss::Rewound), Action::Send(0)];
    refutes("no-lift", what, setup, Flaw::NoLift, Promise::Liveness, &way);
}

#[test]
fn a_quota_is_charged_for_each_slot() {
    let setup = Setup { quota: Some((3, 2)), ..Setup::new([&[1, 1], &[1]]) };
    let what = "rules that charge no quota";
    let way = [Action::Send(0), Action::Pass, Action::Send(1)];
    refutes("quota-forgotten", what, setup, Flaw::QuotaForgotten, Promise::Spacing, &way);
}

#[test]
fn an_own_slot_needs_what_is_left_of_a_quota() {
    let setup = Setup { interval: 2, lease: 4, quota: Some((4, 2)), ..Setup::new([&[1, 1], &[1]]) };
    let setup = Setup { leads: vec![0, 2], asking: Asking::WhenTold, ..setup };
    let what = "rules that give an overtaken ticket its slot when the quota is used up";
    let way = [Action::Send(1), Action::Send(0)];
    refutes("own-slot-beyond-quota", what, setup, Flaw::OwnSlotBeyondQuota, Promise::Spacing, &way);
}

#[test]
fn a_loss_gives_no_burst_back() {
    let setup = Setup { burst: 2, losses: vec![Loss::FailedOver], ..Setup::new([&[1, 1], &[1]]) };
    let setup = setup.lead(0).trouble(Trouble { losses: 1, ..NONE });
    let what = "rules that give all bursts back when something was lost";
    let way = [Action::Send(0), Action::Lose(Loss::FailedOver), Action::Send(1), Action::Send(1)];
    refutes("loss-refills", what, setup, Flaw::LossRefills, Promise::Recovery, &way);
}

#[test]
fn no_burst_ends_a_hold() {
    let setup = Setup { burst: 2, ..Setup::new([&[1]]) }.trouble(Trouble { holds: 1, ..NONE });
    let what = "rules that look at no hold while a burst is there";
    let way = [Action::Hold, Action::Send(0)];
    refutes("burst-ends-hold", what, setup, Flaw::BurstEndsHold, Promise::Obedience, &way);
}

#[test]
fn a_step_sent_again_as_it_was_is_refused_for_ever() {
    let setup = Setup::new([&[1], &[1]]).lead(0).trouble(A_TIMEOUT);
    let what = "a shard that sends a step again as it was until it gets an answer";
    let way = [Action::Send(1), Action::TimeOut(1)];
    refutes("resends", what, setup, Flaw::ResendsAsItWas, Promise::Liveness, &way);
}

#[test]
fn a_grant_that_is_replayed_starts_its_job_twice() {
    let setup = Setup::new([&[1]]).trouble(A_TIMEOUT);
    let what = "a shard that sends a step again as it was and uses both answers";
    let way = [Action::TimeOut(0), Action::Send(0), Action::ReceiveLate(0), Action::Start(0)];
    refutes("both-answers", what, setup, Flaw::TakesBothAnswers, Promise::Once, &way);
}

#[test]
fn a_guess_at_the_tickets_of_a_lost_answer_starts_one_twice() {
    let setup = Setup::new([&[1], &[1]]).trouble(A_TIMEOUT);
    let what = "a shard that supposes a take without an answer brought the next tickets it knows of";
    let way = [Action::TimeOut(1), Action::Send(1), Action::Start(1)];
    refutes("guessed-tickets", what, setup, Flaw::GuessesItsTickets, Promise::Once, &way);
}

#[test]
fn starting_when_the_state_is_silent_is_starting_without_a_grant() {
    let setup = Setup::new([&[1]]).trouble(A_TIMEOUT);
    let what = "a shard that starts when the state does not answer";
    let way = [Action::TimeOut(0), Action::Start(0)];
    refutes("fails-open", what, setup, Flaw::FailsOpen, Promise::Granted, &way);
}
