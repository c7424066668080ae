//! Backends that are atomic and yet wrong fail the suite where they are.

use std::sync::Arc;

use interval_queue_conformance::{CHECKS, Handles};

use crate::backends::wrong_backend::{Slow, Wrong};

fn make(wrong: Wrong) -> Handles {
    let state = Arc::new(Slow::new(wrong));
    (state.clone(), state)
}

/// What the check of this name says to it.
async fn message(check: &str, wrong: Wrong) -> Option<String> {
    let check = CHECKS.iter().find(|found| found.name() == check).unwrap();
    check.run(make(wrong)).await.err().map(|failure| failure.message)
}

/// The same once it says something. What commands say depends on the time, too: a run may say nothing that shows it.
async fn noticed(check: &str, wrong: Wrong) -> String {
    for _ in 0..50 {
        if let Some(message) = message(check, wrong).await {
            return message;
        }
    }
    panic!("{wrong:?} passed {check}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_backend_is_none_the_worse() {
    let failed = interval_queue_conformance::run(async || make(Wrong::Nothing)).await;
    assert!(failed.is_ok(), "{failed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn broken_rules_are_reported_with_the_revealing_command() {
    for (wrong, says) in [
        (Wrong::DropsLabels, "label"),
        (Wrong::ManglesLabels, "??"),
        (Wrong::DropsGaps, "gaps_until"),
        (Wrong::DropsTheLastTake, "last_take"),
        (Wrong::DropsTheGrants, "granted"),
        (Wrong::RoundsInstants, "last_slot"),
        (Wrong::ClipsCounts, "2147483647"),
        (Wrong::AppliesTwice, "a look shows"),
        (Wrong::StoresRefused, "gaps_until"),
        (Wrong::ForgetsSome, "a look shows"),
        (Wrong::LooksAhead, "the reply is of"),
        (Wrong::ChangesIncarnation, "the state was held by"),
    ] {
        let alone = noticed("commands_follow_the_rules", wrong).await;
        assert!(alone.starts_with("INTERVAL_QUEUE_SEED=") && alone.contains(says), "{wrong:?}: {alone}");
        noticed("commands_that_meet_follow_the_rules", wrong).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_is_read_too_early_is_noticed() {
    let message = message("the_clock_is_read_in_turn", Wrong::ReadsTheClockEarly).await.unwrap();
    assert!(message.contains("apart"), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_remainder_of_a_deleted_queue_is_noticed() {
    let message = message("a_deleted_queue_is_gone", Wrong::KeepsDeleted).await.unwrap();
    assert!(message.contains("None"), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_count_that_was_cut_is_noticed() {
    assert!(message("a_presence_is_stored_as_sent", Wrong::ClipsCounts).await.is_some());
}
