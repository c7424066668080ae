//! Who may start when: `free_at`, distance, own slots, the line, weight and hold.

use interval_queue_contract::{Change, MAX_LEAD, MaxRunning, Micros, Step, Ticket, WaitReason};

use crate::common::*;

#[test]
fn an_idle_queue_grants_at_once_and_reserves_an_interval() {
    let mut state = State::opened();
    let slots = Shard::new("a").start(&mut state, 1, Micros::ZERO);
    assert_eq!(slots, [T0]);
    assert_eq!(state.record().free_at, T0 + INTERVAL);
}

#[test]
fn slots_that_passed_unused_are_not_made_up_for() {
    let mut state = State::begun();
    state.at(1_000);
    let slots = Shard::new("a").start(&mut state, 3, MAX_LEAD);
    assert_eq!(slots, [T0 + ms(1_000), T0 + ms(1_100), T0 + ms(1_200)]);
}

#[test]
fn a_slot_is_granted_no_earlier_than_the_lead_before_it() {
    let (mut state, mut a, ..) = three();
    state.at(79);
    assert_eq!(wait(&a.ask(&mut state, &[2], ms(20))).0, WaitReason::Slot);
    state.at(80);
    assert_eq!(a.ask(&mut state, &[2], ms(20)).grants[0].start_in, ms(20));
}

#[test]
fn tickets_of_the_living_keep_their_places_used_or_not() {
    let (mut state, _a, _b, mut c) = three();
    assert_eq!(c.slot(&mut state, 4, 1), ms(300));
}

#[test]
fn places_of_nobody_are_jumped_over() {
    let mut state = State::begun();
    let mut a = Shard::new("a");
    a.take(&mut state, 5);
    assert_eq!(a.slot(&mut state, 6, 1), ms(100));
}

#[test]
fn asks_that_cross_take_no_slot_from_each_other() {
    let (mut state, mut a, mut b, mut c) = three();
    assert_eq!(c.slot(&mut state, 4, 1), ms(300));
    let record = state.record().clone();
    assert_eq!(a.slot(&mut state, 2, 1), ms(100));
    assert_eq!(b.slot(&mut state, 3, 1), ms(200));
    assert_eq!((state.record().current, state.record().free_at), (record.current, record.free_at));
}

#[test]
fn an_own_slot_is_good_until_it_is_past() {
    let (mut state, mut a, mut b, mut c) = three();
    assert_eq!(c.slot(&mut state, 4, 1), ms(300));
    state.at(100);
    assert_eq!(a.slot(&mut state, 2, 1), ms(100));
    state.at(201);
    assert_eq!(b.slot(&mut state, 3, 1), ms(400));
    assert_eq!(state.record().free_at, T0 + ms(500));
}

#[test]
fn who_still_holds_the_last_ticket_that_started_has_its_slot_again() {
    let (mut state, mut a, ..) = three();
    let granted = a.slot(&mut state, 2, 1);
    let still_has_it = Step { then: Some(t(2)), ..a.step() };
    a.send(&mut state, still_has_it).unwrap();
    assert_eq!(a.slot(&mut state, 2, 1), granted, "the reply was lost: its slot need not be");
}

/// None stands behind it to count from, so counting would give its slot to the one before it.
#[test]
fn the_last_ticket_of_all_shares_its_slot_with_nobody() {
    let mut state = State::begun();
    let last = Ticket::MAX.get();
    let record = state.stored.as_mut().unwrap();
    (record.ticket, record.current) = (t(last - 2), t(last - 2));
    let [mut a, mut b] = ["a", "b"].map(Shard::new);
    a.take(&mut state, 1);
    b.take(&mut state, 1);
    let slots = [b.slot(&mut state, last, 1), a.slot(&mut state, last - 1, 1)];
    assert_eq!(slots, [ms(200), ms(300)]);
}

#[test]
fn after_a_late_grant_no_overtaken_ticket_owns_a_slot() {
    let (mut state, mut a, mut b, mut c) = three();
    assert_eq!(c.slot(&mut state, 4, 1), ms(300));
    state.at(150);
    assert_eq!(a.slot(&mut state, 2, 1), ms(400));
    assert_eq!(
        b.slot(&mut state, 3, 1),
        ms(500),
        "three intervals before the end of the line another one starts"
    );
}

#[test]
fn a_weight_reserves_as_many_intervals_and_moves_those_before_it_behind() {
    let (mut state, mut a, mut b, mut c) = three();
    assert_eq!(b.slot(&mut state, 3, 3), ms(200));
    assert_eq!(state.record().free_at, T0 + ms(500));
    assert_eq!(a.slot(&mut state, 2, 1), ms(500));
    assert_eq!(c.slot(&mut state, 4, 1), ms(600));
}

/// The state cannot know whether the heavy job has started: its reply may only be slow.
#[test]
fn a_lighter_job_on_the_ticket_of_a_heavy_one_starts_behind_it() {
    let (mut state, mut a, ..) = three();
    assert_eq!(a.slot(&mut state, 2, 3), ms(100));
    let still_has_it = Step { then: Some(t(2)), ..a.step() };
    a.send(&mut state, still_has_it).unwrap();
    assert_eq!(a.slot(&mut state, 2, 1), ms(400), "the heavy one has 100 to 400");
}

#[test]
fn an_own_slot_is_given_once() {
    let mut state = State::begun();
    let [mut a, mut b] = ["a", "b"].map(Shard::new);
    a.take(&mut state, 2);
    b.take(&mut state, 1);
    assert_eq!(b.slot(&mut state, 4, 1), ms(300));
    let step = Step { ask: vec![ask(2, 1)], then: Some(t(3)), lead: MAX_LEAD, ..a.step() };
    let stepped = a.send(&mut state, step).unwrap();
    assert_eq!(slots(&state, &stepped), [T0 + ms(100)]);
    // The record knows that this ticket has started, and its shard asks again: it may be another's by now.
    assert_eq!(a.slot(&mut state, 2, 1), ms(400));
}

#[test]
fn a_heavy_ticket_that_was_overtaken_does_not_fit_its_own_slot() {
    let (mut state, mut a, mut b, _c) = three();
    assert_eq!(b.slot(&mut state, 3, 1), ms(200));
    assert_eq!(a.slot(&mut state, 2, 2), ms(300));
    assert_eq!(state.record().free_at, T0 + ms(500));
}

#[test]
fn nobody_starts_before_the_end_of_a_hold_not_even_on_a_slot_of_its_own() {
    let (mut state, mut a, mut b, mut c) = three();
    assert_eq!(c.slot(&mut state, 4, 1), ms(300));
    state.change(Change::Hold(ms(700))).unwrap();
    assert_eq!(a.slot(&mut state, 2, 1), ms(700));
    assert_eq!(b.slot(&mut state, 3, 1), ms(800));
}

#[test]
fn nor_does_the_last_that_started_before_it() {
    let (mut state, mut a, ..) = three();
    assert_eq!(a.slot(&mut state, 2, 1), ms(100));
    state.change(Change::Hold(ms(700))).unwrap();
    let still_has_it = Step { then: Some(t(2)), ..a.step() };
    a.send(&mut state, still_has_it).unwrap();
    assert_eq!(a.slot(&mut state, 2, 1), ms(700));
}

#[test]
fn behind_a_hold_the_first_ticket_owns_its_slot_again() {
    let (mut state, mut a, _b, mut c) = three();
    state.change(Change::Hold(ms(200))).unwrap();
    assert_eq!(c.slot(&mut state, 4, 1), ms(400));
    assert_eq!(a.slot(&mut state, 2, 1), ms(200), "asks that cross take no slot from each other");
}

#[test]
fn a_short_hold_leaves_the_reserved_slots_alone() {
    let (mut state, mut a, ..) = three();
    state.change(Change::Hold(ms(30))).unwrap();
    assert_eq!(a.slot(&mut state, 2, 1), ms(100));
}

#[test]
fn another_interval_counts_from_the_last_slot() {
    for (interval, slot) in [(ms(300), ms(300)), (ms(10), ms(10))] {
        let (mut state, mut a, ..) = three();
        let interval = Some(interval);
        let max_running = MaxRunning::Keep;
        state.change(Change::Set { interval, max_running }).unwrap();
        assert_eq!(a.slot(&mut state, 2, 1), slot);
    }
}

#[test]
fn after_another_interval_no_overtaken_ticket_owns_a_slot() {
    let (mut state, mut a, mut b, mut c) = three();
    assert_eq!(c.slot(&mut state, 4, 1), ms(300));
    assert_eq!(a.slot(&mut state, 2, 1), ms(100));
    let interval = Some(ms(200));
    let max_running = MaxRunning::Keep;
    state.change(Change::Set { interval, max_running }).unwrap();
    assert_eq!(b.slot(&mut state, 3, 1), ms(500));
}

#[test]
fn a_ticket_that_the_record_forgot_does_not_take_the_slot_of_another() {
    let mut state = State::opened();
    let mut lost = Shard::new("lost").leased(ms(100));
    Shard::new("opener").start(&mut state, 5, MAX_LEAD);
    lost.take(&mut state, 1);
    state.at(150);
    let mut other = Shard::new("other");
    other.take(&mut state, 1);
    assert_eq!(other.slot(&mut state, 7, 1), ms(500), "the lease of ticket 6 has ended");
    assert_eq!(lost.slot(&mut state, 6, 1), ms(600), "its place was given away");
}

#[test]
fn room_left_for_those_before_moves_their_slots_behind() {
    let mut state = State::begun();
    state.limit(2);
    let [mut a, mut b] = ["a", "b"].map(Shard::new);
    a.take(&mut state, 2);
    b.take(&mut state, 2);
    let step = Step { ask: vec![ask(4, 1), ask(5, 1)], lead: MAX_LEAD, ..b.step() };
    let stepped = b.send(&mut state, step).unwrap();
    let mut starts = slots(&state, &stepped);
    assert_eq!(starts.len(), 2, "{stepped:?}");
    state.limit(9);
    for ticket in [2, 3] {
        let stepped = a.ask(&mut state, &[ticket], MAX_LEAD);
        starts.extend(slots(&state, &stepped));
    }
    starts.sort_unstable();
    assert!(starts.windows(2).all(|pair| pair[1] - pair[0] >= INTERVAL), "{starts:?}");
}

#[test]
fn as_many_as_fit_the_lead_are_granted_at_once() {
    let mut state = State::begun();
    let mut a = Shard::new("a");
    a.take(&mut state, 5);
    let step = Step {
        ask: (2..=5).map(|ticket| ask(ticket, 1)).collect(),
        then: Some(t(6)),
        lead: ms(300),
        ..a.step()
    };
    let stepped = a.send(&mut state, step).unwrap();
    assert_eq!(slots(&state, &stepped), [T0 + ms(100), T0 + ms(200), T0 + ms(300)]);
    assert_eq!(state.record().shards[&a.id].head, Some(t(5)));
    assert_eq!(wait(&stepped).0, WaitReason::Slot);
}

#[test]
fn a_short_job_without_a_limit_leaves_nothing_behind() {
    let mut state = State::opened();
    let mut a = Shard::new("a");
    a.start(&mut state, 1, Micros::ZERO);
    assert!(state.record().shards.is_empty());
    state.limit(3);
    state.at(100);
    a.start(&mut state, 1, Micros::ZERO);
    assert_eq!(state.record().shards[&a.id].running, 1, "with a limit it is counted until it says otherwise");
}
