//! Who may start when: `free_at`, distance, own slots, the line, weight and hold.

use interval_queue_contract::{MAX_LEAD, Micros, Step, Ticket, WaitReason};

use crate::common::*;

#[test]
fn an_idle_queue_grants_at_once_and_reserves_an_interval() {
    let mut state = State::opened();
    assert_eq!(Shard::new("a").start(&mut state, 1, Micros::ZERO), [T0]);
    assert_eq!(tat(state.record()), T0 + INTERVAL);
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
    let mut line = line().at(79).waits_because(2, 20, WaitReason::Slot).at(80);
    let stepped = line.shards[0].1.ask(&mut line.state, &[2], ms(20));
    assert_eq!(stepped.grants[0].slot, T0 + ms(100));
}

#[test]
fn tickets_of_the_living_keep_their_places_used_or_not() {
    line().slot(4, 300);
}

#[test]
fn places_of_nobody_are_jumped_over() {
    line_of(&[5]).slot(6, 100);
}

#[test]
fn asks_that_cross_take_no_slot_from_each_other() {
    let line = line().slot(4, 300).slot(2, 100).slot(3, 200).free_at(400);
    assert_eq!(line.state.record().current, t(4));
}

#[test]
fn an_own_slot_is_good_until_it_is_past() {
    line().slot(4, 300).at(100).slot(2, 100).at(201).slot(3, 400).free_at(500);
}

/// The reply was lost: its slot need not be.
#[test]
fn the_holder_of_the_last_started_ticket_gets_its_slot_again() {
    line().slot(2, 100).keep(2).slot(2, 100);
}

/// None stands behind it to count from, so counting would give its slot to the one before it.
#[test]
fn the_last_ticket_of_all_shares_its_slot_with_nobody() {
    let mut state = State::begun();
    let last = Ticket::MAX.get();
    let record = state.stored.as_mut().unwrap();
    (record.ticket, record.current) = (t(last - 2), t(last - 2));
    let [mut a, mut b] = ["a", "b"].map(|name| Shard::new(name).with(&mut state, 1));
    let slots = [b.slot(&mut state, last, 1), a.slot(&mut state, last - 1, 1)];
    assert_eq!(slots, [ms(200), ms(300)]);
}

/// Three intervals before the end of the line another one starts.
#[test]
fn after_a_late_grant_no_overtaken_ticket_owns_a_slot() {
    line().slot(4, 300).at(150).slot(2, 400).slot(3, 500);
}

#[test]
fn a_weight_reserves_its_intervals_and_moves_earlier_tickets() {
    line().heavy(3, 3, 200).free_at(500).slot(2, 500).slot(4, 600);
}

/// The state cannot know whether the heavy job, which has 100 to 400, has started: its reply may only be
/// slow.
#[test]
fn a_lighter_job_on_the_ticket_of_a_heavy_one_starts_behind_it() {
    line().heavy(2, 3, 100).keep(2).slot(2, 400);
}

#[test]
fn an_own_slot_is_given_once() {
    let mut line = line_of(&[2, 1]).slot(4, 300);
    let say = |step| Step { ask: vec![ask(2, 1)], then: Some(t(3)), lead: MAX_LEAD, ..step };
    let stepped = line.shards[0].1.say(&mut line.state, say);
    assert_eq!(slots(&stepped), [T0 + ms(100)]);
    // The record knows that this ticket has started, and its shard asks again: it may be another's by now.
    line.slot(2, 400);
}

#[test]
fn a_heavy_ticket_that_was_overtaken_does_not_fit_its_own_slot() {
    line().slot(3, 200).heavy(2, 2, 300).free_at(500);
}

#[test]
fn no_slot_comes_before_the_end_of_a_hold() {
    line().slot(4, 300).hold(700).slot(2, 700).slot(3, 800);
    line().slot(2, 100).hold(700).keep(2).slot(2, 700);
}

#[test]
fn behind_a_hold_the_first_ticket_owns_its_slot_again() {
    // Asks that cross take no slot from each other.
    line().hold(200).slot(4, 400).slot(2, 200);
}

#[test]
fn a_short_hold_leaves_the_reserved_slots_alone() {
    line().hold(30).slot(2, 100);
}

#[test]
fn another_interval_counts_from_the_last_slot() {
    line().interval(300).slot(2, 300);
    line().interval(10).slot(2, 10);
}

#[test]
fn after_another_interval_no_overtaken_ticket_owns_a_slot() {
    line().slot(4, 300).slot(2, 100).interval(200).slot(3, 500);
}

#[test]
fn a_forgotten_ticket_does_not_take_the_slot_of_another() {
    let mut state = State::opened();
    Shard::new("opener").start(&mut state, 5, MAX_LEAD);
    let mut lost = Shard::new("lost").leased(ms(100)).with(&mut state, 1);
    state.at(150);
    let mut other = Shard::new("other").with(&mut state, 1);
    assert_eq!(other.slot(&mut state, 7, 1), ms(500), "the lease of ticket 6 has ended");
    assert_eq!(lost.slot(&mut state, 6, 1), ms(600), "its place was given away");
}

#[test]
fn room_left_for_those_before_moves_their_slots_behind() {
    let mut line = line_of(&[2, 2]).limit(2);
    let mut starts = Vec::new();
    for (shard, tickets) in [(1, &[4, 5][..]), (0, &[2]), (0, &[3])] {
        let stepped = line.shards[shard].1.ask(&mut line.state, tickets, MAX_LEAD);
        starts.extend(slots(&stepped));
        line = line.limit(9);
    }
    assert_eq!(starts.len(), 4, "{starts:?}");
    starts.sort_unstable();
    assert!(starts.windows(2).all(|pair| pair[1] - pair[0] >= INTERVAL), "{starts:?}");
}

#[test]
fn all_slots_within_the_lead_are_granted_at_once() {
    let mut line = line_of(&[5]);
    let (_, a) = &mut line.shards[0];
    let stepped = a.say(&mut line.state, |step| Step {
        ask: (2..=5).map(|ticket| ask(ticket, 1)).collect(),
        then: Some(t(6)),
        lead: ms(300),
        ..step
    });
    assert_eq!(slots(&stepped), [T0 + ms(100), T0 + ms(200), T0 + ms(300)]);
    assert_eq!(line.state.record().shards[&a.id].head, Some(t(5)));
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
