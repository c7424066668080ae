//! A store with a flaw fails the check that is there for it, and breaks a promise when fuzzed.

use std::sync::Arc;

use interval_queue_conformance::ManualClock;
use interval_queue_task_conformance::{
    CHECKS, Handles,
    fuzzer::{Target, fuzz},
};

use crate::wrong::{Flaw, Wrong};

fn make(flaw: Flaw) -> Handles {
    let clock = ManualClock::new();
    let store = Arc::new(Wrong::new(flaw, clock.clone()));
    Handles { one: store.clone(), other: store, clock: Some(clock) }
}

/// What the check of this name says to it.
async fn message(check: &str, flaw: Flaw) -> Option<String> {
    let check = CHECKS.iter().find(|found| found.name() == check).unwrap();
    check.run(make(flaw)).await.err().map(|failure| failure.message)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_without_a_flaw_passes_all() {
    let failed = interval_queue_task_conformance::run(async || make(Flaw::Nothing)).await;
    assert!(failed.is_ok(), "{failed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_flaw_fails_the_check_that_is_there_for_it() {
    for (flaw, check) in [
        (Flaw::NoFence, "a_stale_token_changes_nothing"),
        (Flaw::LeaksKeys, "a_key_runs_one_task_at_a_time"),
        (Flaw::LosesCounts, "counts_are_exact"),
        (Flaw::RacesForLeases, "a_task_is_leased_to_one_worker"),
        (Flaw::UndoesNothing, "a_refused_command_changes_nothing"),
        (Flaw::UndoesNothing, "a_batch_is_added_whole_or_not_at_all"),
        (Flaw::ReversesOrder, "the_most_urgent_task_is_leased_first"),
        (Flaw::ForgetsPositions, "equals_run_in_the_order_of_adding"),
        (Flaw::ForgetsPositions, "ordered_tasks_of_names_run_in_the_order_of_adding"),
        (Flaw::ForgetsEdges, "a_task_waits_for_a_thousand_others"),
        (Flaw::HandsNothingOver, "a_key_runs_one_task_at_a_time"),
        (Flaw::NotifiesNobody, "a_failed_upstream_acts_as_its_edges_say"),
        (Flaw::SwapsNobody, "a_more_urgent_task_takes_the_place"),
        (Flaw::ForgivesNoSilence, "an_outage_costs_no_lease"),
        (Flaw::ForgivesNoSilence, "a_stepped_clock_forgets_no_id"),
        (Flaw::ForgivesAllSilence, "ended_tasks_are_purged_while_workers_come_and_go"),
        (Flaw::ForgetsWorkers, "a_dead_worker_is_forgotten_after_an_hour"),
        (Flaw::PurgesInputs, "inputs_are_kept_for_downstreams"),
        (Flaw::IgnoresHoldings, "a_lost_reply_costs_no_attempt"),
        (Flaw::ObeysLateSteps, "an_older_step_changes_nothing"),
        (Flaw::AddsLate, "a_late_add_is_refused"),
        (Flaw::EndsAsUsual, "a_task_cancelled_while_it_runs_ends_cancelled"),
        (Flaw::LosesTimes, "times_are_counted_by_kind_and_hour"),
        (Flaw::KeepsTimes, "times_are_kept_for_a_week"),
        (Flaw::LosesEvents, "events_report_the_changes_of_tasks"),
        (Flaw::KeepsEvents, "a_follower_that_was_away_is_notified_of_gaps"),
    ] {
        assert!(message(check, flaw).await.is_some(), "{flaw:?} passes {check}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_flaw_breaks_a_promise_when_fuzzed() {
    for (flaw, promises) in [
        (Flaw::NoFence, "T2"),
        (Flaw::LeaksKeys, "T6"),
        (Flaw::LosesCounts, "T10"),
        (Flaw::RacesForLeases, "T2"),
        (Flaw::UndoesNothing, "a refused command"),
        (Flaw::ReversesOrder, "T4"),
        (Flaw::ForgetsPositions, "T4"),
        (Flaw::HandsNothingOver, "T6"),
        (Flaw::NotifiesNobody, "T7"),
        (Flaw::SwapsNobody, "T4 T6"),
        (Flaw::ForgivesNoSilence, "T3"),
        (Flaw::PurgesInputs, "T7"),
        (Flaw::IgnoresHoldings, "T3"),
        (Flaw::ObeysLateSteps, "T2"),
        (Flaw::EndsAsUsual, "T9"),
    ] {
        let mut broken = Vec::new();
        let is_expected = |broken: &String| promises.split(' ').any(|promise| broken.contains(promise));
        for seed in 0..80 {
            let clock = ManualClock::new();
            let store = Arc::new(Wrong::new(flaw, clock.clone()));
            broken.extend(
                fuzz(seed, &Target { store, clock, copies: None }).await.err().map(|broken| broken.promise),
            );
            if broken.last().is_some_and(is_expected) {
                break;
            }
        }
        assert!(broken.iter().any(is_expected), "{flaw:?} breaks nothing of {promises}: {broken:?}");
    }
}
