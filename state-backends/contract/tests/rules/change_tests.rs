//! Changes for all shards.

use interval_queue_contract::{
    Change, MAX_LEAD, MaxRunning, Micros, OnExisting, Rates, Settings, StateErrorKind,
};

use crate::common::*;

const MINUTE: Micros = ms(60_000);

fn set(interval: Option<Micros>, max_running: MaxRunning) -> Change {
    Change::Set { rates: interval.map(Rates::every), max_running }
}

#[test]
fn only_an_opening_with_an_interval_creates_a_queue() {
    let mut state = State::empty();
    for change in [
        open(None, MaxRunning::Keep, OnExisting::Keep),
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
    let settings = Settings { rates: Rates::every(MINUTE), max_running: Some(3) };
    assert_eq!(state.record().settings(), settings);
    assert_eq!(changed.memory.settings(), settings);
}

#[test]
fn a_new_queue_starts_at_once_also_where_a_server_holds_it() {
    let mut state = State::empty();
    state.reading.incarnation = "first".into();
    let opened = state.change(open(Some(MINUTE), MaxRunning::Keep, OnExisting::Fail)).unwrap();
    assert_eq!(opened.memory.at, T0, "its reply tells the time, as every other does");
    let slots = Shard::new("a").start(&mut state, 1, Micros::ZERO);
    assert_eq!(slots, [T0], "nothing was lost yet");
}

#[test]
fn reopening_applies_its_policy_and_only_a_reset_resets() {
    let limit = MaxRunning::AtMost(3);
    for (on_existing, interval, max_running, resets) in [
        (OnExisting::Replace, MINUTE, Some(3), false),
        (OnExisting::Reset, MINUTE, Some(3), true),
        (OnExisting::Keep, INTERVAL, None, false),
    ] {
        let mut state = line().change(Change::Pause).state;
        let changed = state.change(open(Some(MINUTE), limit, on_existing)).unwrap();
        assert_eq!(changed.before, Some(Settings { rates: Rates::every(INTERVAL), max_running: None }));
        let record = state.record();
        assert_eq!(
            record.settings(),
            Settings { rates: Rates::every(interval), max_running },
            "{on_existing:?}"
        );
        assert_eq!((record.paused, record.shards.is_empty()), (!resets, resets), "{on_existing:?}");
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
fn settings_not_named_stay() {
    let mut state = State::begun();
    state.change(set(None, MaxRunning::AtMost(2))).unwrap();
    state.change(set(Some(MINUTE), MaxRunning::Keep)).unwrap();
    assert_eq!(state.record().settings(), Settings { rates: Rates::every(MINUTE), max_running: Some(2) });
    state.change(set(None, MaxRunning::Unlimited)).unwrap();
    assert_eq!(state.record().settings(), Settings { rates: Rates::every(MINUTE), max_running: None });
}

#[test]
fn an_operators_change_is_a_new_revision() {
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
        (Change::Hold(MINUTE), 0),
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
    let mut line = line();
    for (hold, until) in [(500, 500), (200, 500), (900, 900)] {
        line = line.hold(hold);
        assert_eq!(line.state.record().held_until, T0 + ms(until));
    }
}

#[test]
fn a_shorter_interval_frees_the_next_slot_at_once() {
    line().interval(60_000).free_at(60_000).interval(20).free_at(20);
}

/// A heavy job whose slot is a full lead ahead may not have started yet: none of its room is given to others,
/// at the new interval.
#[test]
fn a_heavy_job_keeps_its_room_when_the_interval_changes() {
    for (interval, next) in [(200, 2_000), (10, 1_050)] {
        let line = line().hold(1_000).heavy(2, 5, 1_000).interval(interval);
        line.at(next - 1).refused(3, 0).at(next).slot(3, next);
    }
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
    assert_eq!(tat(after), T0 + INTERVAL + MAX_LEAD, "slots granted before may still be ahead");
    assert_eq!(after.gaps_until, after.ticket);
}

#[test]
fn a_reset_forgets_the_lead_of_one_bad_stall() {
    let line = line().slot(2, 100).change(Change::Reset).at(5_000).restart().refused(3, 40);
    // A loss costs an interval and the longest lead since the reset.
    line.free_at(5_140);
}

/// Who holds which ticket is what a reset is there to forget: a slot that the line before it had may be
/// another's.
#[test]
fn after_a_reset_no_overtaken_ticket_owns_a_slot() {
    line().slot(4, 300).change(Change::Reset).keep(4).slot(4, 400).keep(2).slot(2, 500);
}

#[test]
fn after_a_reset_the_shards_go_on() {
    line().change(Change::Reset).slot(3, 100).slot(2, 200);
}
