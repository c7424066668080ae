//! The wrapper fails as ordered, and no otherwise.

use std::{sync::Arc, time::Duration};

use interval_queue_conformance::{Faults, Faulty};
use interval_queue_contract::{
    Change, Changed, Command, MaxRunning, Memory, Micros, OnExisting, QueueName, Rates, SharedState,
    StateError, StateErrorKind,
};

use crate::backends::Inline;

fn queue() -> QueueName {
    QueueName::new("faulty").unwrap()
}

/// A queue in a state, and a faulty way to it.
async fn opened() -> (Arc<Inline>, Faulty) {
    let state = Arc::new(Inline::default());
    let faulty = Faulty::new(state.clone());
    change(&faulty, open()).await.unwrap();
    (state, faulty)
}

fn open() -> Change {
    Change::Open {
        rates: Some(Rates::every(Micros::from_millis(1))),
        max_running: MaxRunning::Keep,
        on_existing: OnExisting::Replace,
    }
}

async fn change(state: &dyn SharedState, change: Change) -> Result<Changed, StateError> {
    let command = Command::Change(change, Memory::default());
    state.apply(&queue(), command).await?.changed()
}

async fn is_paused(state: &dyn SharedState) -> bool {
    let snapshot = state.apply(&queue(), Command::Read).await.unwrap().read().unwrap();
    snapshot.unwrap().record.paused
}

#[tokio::test]
async fn an_outage_lets_nothing_happen_until_it_ends() {
    let (state, faulty) = opened().await;
    faulty.set(Faults { outage: true, ..Faults::default() });
    let error = change(&faulty, Change::Pause).await.unwrap_err();
    assert_eq!(error.kind(), StateErrorKind::Unreachable);
    assert!(!is_paused(&*state).await);
    faulty.set(Faults::default());
    change(&faulty, Change::Pause).await.unwrap();
    assert!(is_paused(&*state).await);
}

#[tokio::test]
async fn a_lost_request_did_not_happen_and_a_lost_reply_did() {
    let (state, faulty) = opened().await;
    faulty.lose_next_request();
    let error = change(&faulty, Change::Pause).await.unwrap_err();
    assert_eq!(error.kind(), StateErrorKind::TimedOut);
    assert!(!is_paused(&*state).await);
    faulty.lose_next_reply();
    let error = change(&faulty, Change::Pause).await.unwrap_err();
    assert_eq!(error.kind(), StateErrorKind::TimedOut);
    assert!(is_paused(&*state).await);
    change(&faulty, Change::Resume).await.unwrap();
}

#[tokio::test(start_paused = true)]
#[allow(clippy::disallowed_methods, reason = "the test measures virtual time")]
async fn delays_are_virtual_and_a_drop_between_them_has_happened() {
    let (state, faulty) = opened().await;
    faulty.set(Faults {
        delay_before: Duration::from_secs(10),
        delay_after: Duration::from_secs(20),
        ..Faults::default()
    });
    let began = tokio::time::Instant::now();
    change(&faulty, Change::Pause).await.unwrap();
    assert_eq!(began.elapsed().as_secs(), 30);
    for (seconds, paused_after) in [(5, true), (15, false)] {
        let resume = change(&faulty, Change::Resume);
        tokio::time::timeout(Duration::from_secs(seconds), resume).await.unwrap_err();
        assert_eq!(is_paused(&*state).await, paused_after);
    }
}

#[tokio::test]
async fn a_seed_repeats_its_faults_in_the_shares_ordered() {
    async fn outcomes(seed: u64) -> Vec<bool> {
        let (_, faulty) = opened().await;
        let faulty = faulty.seeded(seed);
        faulty.change(|faults| faults.lose_request = 0.3);
        faulty.change(|faults| faults.lose_reply = 0.3);
        let mut outcomes = Vec::new();
        for _ in 0..400 {
            outcomes.push(change(&faulty, Change::Pause).await.is_ok());
        }
        outcomes
    }
    let first = outcomes(1).await;
    assert_eq!(first, outcomes(1).await);
    assert_ne!(first, outcomes(2).await);
    let fine = first.iter().filter(|fine| **fine).count();
    assert!((130..260).contains(&fine), "{fine} of 400, not about half");
}

#[tokio::test]
async fn commands_are_counted_by_kind_also_those_that_fail() {
    let (_, faulty) = opened().await;
    let clone = faulty.clone();
    assert!(!is_paused(&clone).await);
    clone.lose_next_reply();
    change(&faulty, Change::Pause).await.unwrap_err();
    faulty.queues().await.unwrap_err();
    let counts = faulty.counts();
    assert_eq!((counts.steps, counts.changes, counts.reads, counts.lists), (0, 2, 1, 1));
    assert_eq!((counts.total(), counts.errors), (4, 2));
}
