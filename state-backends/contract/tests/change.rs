//! Changes for all shards.

mod common;

use common::*;
use interval_queue_contract::{Change, MAX_LEAD, MaxRunning, Micros, OnExisting, Settings, StateErrorKind};

const MINUTE: Micros = ms(60_000);

fn set(interval: Option<Micros>, max_running: MaxRunning) -> Change {
    Change::Set { interval, max_running }
}

#[test]
fn only_an_opening_with_an_interval_creates_a_queue() {
    let mut state = State::empty();
    for change in [
        open(None, MaxRunning::Keep, OnExisting::Join),
        set(Some(MINUTE), MaxRunning::Keep),
        Change::Pause,
        Change::Resume,
        Change::Hold(MINUTE),
        Change::Reset,
    ] {
        assert_eq!(state.change(change).unwrap_err().kind(), StateErrorKind::NotFound, "{change:?}");
        assert_eq!(state.stored, None);
    }
    let changed = state.change(open(Some(MINUTE), MaxRunning::AtMost(3), OnExisting::Fail)).unwrap();
    assert_eq!(changed.before, None);
    let settings = Settings { interval: MINUTE, max_running: Some(3) };
    assert_eq!(state.record().settings(), settings);
    assert_eq!(changed.memory.settings(), settings);
}

#[test]
fn opening_again_does_as_it_is_told() {
    let limit = MaxRunning::AtMost(3);
    for (on_existing, interval, max_running) in [
        (OnExisting::Replace, MINUTE, Some(3)),
        (OnExisting::Reset, MINUTE, Some(3)),
        (OnExisting::Join, INTERVAL, None),
    ] {
        let mut state = State::begun();
        let changed = state.change(open(Some(MINUTE), limit, on_existing)).unwrap();
        assert_eq!(changed.before, Some(Settings { interval: INTERVAL, max_running: None }));
        assert_eq!(state.record().settings(), Settings { interval, max_running }, "{on_existing:?}");
    }
}

#[test]
fn a_conflict_names_both_and_changes_nothing() {
    let mut state = State::begun();
    let before = state.stored.clone();
    let error = state.change(open(Some(MINUTE), MaxRunning::Keep, OnExisting::Fail)).unwrap_err();
    assert_eq!(error.kind(), StateErrorKind::Conflict);
    assert!(error.to_string().contains("100ms") && error.to_string().contains("60s"), "{error}");
    assert_eq!(state.stored, before);
    state.change(open(Some(INTERVAL), MaxRunning::Unlimited, OnExisting::Fail)).unwrap();
    state.change(open(None, MaxRunning::Keep, OnExisting::Fail)).unwrap();
}

#[test]
fn what_is_not_named_stays() {
    let mut state = State::begun();
    state.change(set(None, MaxRunning::AtMost(2))).unwrap();
    state.change(set(Some(MINUTE), MaxRunning::Keep)).unwrap();
    assert_eq!(state.record().settings(), Settings { interval: MINUTE, max_running: Some(2) });
    state.change(set(None, MaxRunning::Unlimited)).unwrap();
    assert_eq!(state.record().settings(), Settings { interval: MINUTE, max_running: None });
}

#[test]
fn what_a_person_asks_for_is_a_new_revision() {
    let mut state = State::begun();
    for (change, rises) in [
        (Change::Pause, 1),
        (Change::Pause, 1),
        (Change::Resume, 1),
        (Change::Resume, 1),
        (set(Some(INTERVAL), MaxRunning::Unlimited), 1),
        (open(Some(INTERVAL), MaxRunning::Unlimited, OnExisting::Replace), 0),
        (set(Some(MINUTE), MaxRunning::Keep), 1),
        (Change::Hold(MINUTE), 1),
        (Change::Hold(ms(1)), 0),
        (Change::Reset, 1),
    ] {
        let before = state.record().revision;
        state.change(change).unwrap();
        assert_eq!(state.record().revision > before, rises == 1, "{change:?}");
    }
}

#[test]
fn the_longer_hold_stays() {
    let mut state = State::begun();
    state.change(Change::Hold(ms(500))).unwrap();
    state.change(Change::Hold(ms(200))).unwrap();
    assert_eq!(state.record().held_until, T0 + ms(500));
    state.change(Change::Hold(ms(900))).unwrap();
    assert_eq!(state.record().held_until, T0 + ms(900));
}

#[test]
fn a_shorter_interval_frees_the_next_slot_at_once() {
    let mut state = State::begun();
    state.change(set(Some(MINUTE), MaxRunning::Keep)).unwrap();
    assert_eq!(state.record().free_at, T0 + MINUTE);
    state.change(set(Some(ms(20)), MaxRunning::Keep)).unwrap();
    assert_eq!(state.record().free_at, T0 + ms(20));
}

#[test]
fn a_reset_forgets_everything_but_tickets_and_settings() {
    let (mut state, mut a, ..) = three();
    a.slot(&mut state, 2, 1_000_000);
    state.change(Change::Pause).unwrap();
    state.change(Change::Hold(MINUTE)).unwrap();
    let before = state.record().clone();
    state.change(Change::Reset).unwrap();
    let after = state.record();
    assert!(!after.paused && after.shards.is_empty() && after.held_until == Micros::ZERO);
    assert_eq!((after.ticket, after.current), (before.ticket, before.current));
    assert_eq!(after.settings(), before.settings());
    assert_eq!(after.free_at, T0 + INTERVAL + MAX_LEAD, "slots granted before may still be ahead");
    assert_eq!(after.gaps_until, after.ticket);
}

#[test]
fn after_a_reset_the_shards_go_on() {
    let (mut state, mut a, mut b, _c) = three();
    state.change(Change::Reset).unwrap();
    let slots = [b.slot(&mut state, 3, 1), a.slot(&mut state, 2, 1)];
    assert_eq!(slots, [ms(100), ms(200)]);
}
