//! First contact: a queue exists once it was opened with an interval.

use std::time::Duration;

use interval_queue_contract::{
    Change, Command, Deletion, MaxRunning, Micros, OnExisting, Rates, Settings, StateErrorKind,
};

use crate::client::{Handles, kind, open, opened, unopened};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);

fn every(interval: Duration) -> Settings {
    Settings { rates: Rates::every(Micros::from_duration(interval)), max_running: None }
}

/// A read of a missing queue returns `None` and creates nothing.
pub async fn reading_creates_nothing(handles: Handles) {
    let (one, other) = unopened(handles);
    assert_eq!(one.read().await, None);
    assert_eq!(other.read().await, None);
    if let Ok(queues) = one.state().queues().await {
        assert!(!queues.contains(one.queue()), "it lists a queue that nobody opened");
    }
}

/// Steps, and changes other than an open with an interval, fail as `NotFound` and create nothing.
pub async fn steps_and_changes_need_a_queue(handles: Handles) {
    let (one, _) = unopened(handles);
    let step = one.shard("early").step();
    assert_eq!(kind(one.apply(Command::Step(step)).await), StateErrorKind::NotFound);
    let settings = Change::Set {
        rates: Some(Rates::every(Micros::from_duration(SECOND))),
        max_running: MaxRunning::Keep,
    };
    for change in [
        open(None, OnExisting::Keep),
        settings,
        Change::Pause,
        Change::Resume,
        Change::Hold(Micros::ZERO),
        Change::Reset,
        Change::Delete(Deletion::Forced),
    ] {
        assert_eq!(kind(one.change(change).await), StateErrorKind::NotFound, "{change:?}");
    }
    assert_eq!(one.read().await, None);
}

/// An open with an interval creates an empty queue for both handles.
pub async fn opening_creates_the_queue(handles: Handles) {
    let (one, other) = unopened(handles);
    let changed = one.change(open(Some(SECOND), OnExisting::Fail)).await.unwrap();
    assert_eq!(changed.before, None);
    let record = other.snapshot().await.record;
    record.check().unwrap();
    assert_eq!(record.settings(), every(SECOND));
    assert_eq!((record.ticket.get(), record.current.get()), (0, 0));
    assert!(!record.paused && record.shards.is_empty(), "{record:?}");
}

/// By default the last open's settings apply to all. The reply contains the old ones.
pub async fn opening_again_replaces_the_settings(handles: Handles) {
    let (one, other) = opened(handles, SECOND).await;
    let changed = other.change(open(Some(MINUTE), OnExisting::Replace)).await.unwrap();
    assert_eq!(changed.before, Some(every(SECOND)));
    assert_eq!(one.record().await.settings(), every(MINUTE));
}

/// A join keeps the stored settings.
pub async fn joining_keeps_the_settings(handles: Handles) {
    let (one, other) = opened(handles, SECOND).await;
    let before = one.record().await;
    for interval in [Some(MINUTE), None] {
        let changed = other.change(open(interval, OnExisting::Keep)).await.unwrap();
        assert_eq!(changed.memory.settings(), every(SECOND));
    }
    assert_eq!(one.record().await, before);
}

/// `OnExisting::Fail` fails as `Conflict` for other settings and changes nothing.
pub async fn failing_on_other_settings_changes_nothing(handles: Handles) {
    let (one, other) = opened(handles, SECOND).await;
    let before = one.record().await;
    let limited =
        Change::Open { rates: None, max_running: MaxRunning::AtMost(3), on_existing: OnExisting::Fail };
    for change in [open(Some(MINUTE), OnExisting::Fail), limited] {
        assert_eq!(kind(other.change(change).await), StateErrorKind::Conflict, "{change:?}");
    }
    other.change(open(Some(SECOND), OnExisting::Fail)).await.unwrap();
    assert_eq!(one.record().await, before);
}

/// An open with a reset ends pause and hold and removes the shards; tickets stay.
pub async fn opening_can_reset(handles: Handles) {
    let (one, other) = opened(handles, SECOND).await;
    one.shard("forgotten").take(1, 3).await;
    one.change(Change::Pause).await.unwrap();
    one.change(Change::Hold(Micros::from_duration(MINUTE))).await.unwrap();
    other.change(open(Some(MINUTE), OnExisting::Reset)).await.unwrap();
    let record = one.record().await;
    assert_eq!(record.settings(), every(MINUTE));
    assert_eq!(record.ticket.get(), 3);
    assert!(!record.paused && record.held_until == Micros::ZERO, "{record:?}");
    assert!(record.shards.is_empty(), "{record:?}");
}

/// A store that can list its queues lists all opened ones, sorted, each once.
pub async fn opened_queues_are_listed(handles: Handles) {
    let (one, other) = opened(handles, SECOND).await;
    match other.state().queues().await {
        Ok(queues) => {
            assert_eq!(queues.iter().filter(|name| *name == one.queue()).count(), 1);
            assert!(queues.windows(2).all(|pair| pair[0] < pair[1]), "{queues:?}");
        }
        Err(error) => assert_eq!(error.kind(), StateErrorKind::Unsupported, "{error}"),
    }
}
