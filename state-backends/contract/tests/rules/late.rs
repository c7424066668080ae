//! Tickets that missed their slot.

use interval_queue_contract::{Late, MAX_LEAD, Micros, WaitReason};

use crate::common::*;

#[test]
fn a_late_ticket_takes_the_next_free_slot_before_younger_ones() {
    let (mut state, mut a, mut b, mut c) = three();
    state.at(200);
    assert_eq!(b.slot(&mut state, 3, 1), ms(200), "its own, though ticket 2 did not start");
    assert_eq!(a.slot(&mut state, 2, 1), ms(300));
    assert_eq!(c.slot(&mut state, 4, 1), ms(400));
}

#[test]
fn a_late_ticket_asks_with_all_its_lead_and_so_comes_before_younger_ones() {
    let (mut state, mut a, mut b, mut c) = three();
    state.at(200);
    b.slot(&mut state, 3, 1);
    let lead = ms(20);
    let (_, late) = wait(&a.ask(&mut state, &[2], lead));
    let (_, younger) = wait(&c.ask(&mut state, &[4], lead));
    assert_eq!(late, Some(ms(80)));
    assert!(late < younger, "{late:?} {younger:?}");
}

#[test]
fn while_the_holder_of_a_late_ticket_is_silent_slots_do_not_slip() {
    let (mut state, _dead, mut b, mut c) = three();
    state.at(200);
    b.slot(&mut state, 3, 1);
    // Whatever its lead, the younger one asks half a millisecond ahead, which is enough for a near state.
    for lead in [ms(2), ms(20), MAX_LEAD] {
        let (_, ask_in) = wait(&c.ask(&mut state, &[4], lead));
        assert_eq!(ask_in, Some(ms(100) - Micros::new(500)), "{lead:?}");
    }
    state.at(299);
    assert_eq!(c.slot(&mut state, 4, 1), ms(300));
}

#[test]
fn who_gave_up_the_last_grant_comes_before_younger_ones_too() {
    let (mut state, mut a, mut b, _c) = three();
    assert_eq!(a.slot(&mut state, 2, 1), ms(100));
    state.at(150);
    assert_eq!(wait(&a.ask(&mut state, &[2], ms(20))).1, Some(ms(30)), "with all its lead");
    assert!(b.ask(&mut state, &[3], MAX_LEAD).grants.is_empty(), "however long its lead is");
    assert_eq!(a.slot(&mut state, 2, 1), ms(200));
}

#[test]
fn many_late_tickets_ask_one_after_the_other() {
    let (mut state, mut a, mut b, mut c) = three();
    state.at(300);
    c.slot(&mut state, 4, 1);
    let lead = ms(20);
    assert_eq!(wait(&a.ask(&mut state, &[2], lead)).1, Some(ms(80)));
    assert_eq!(wait(&b.ask(&mut state, &[3], lead)).1, Some(ms(180)));
}

#[test]
fn who_wants_another_place_instead_is_told_that_it_missed_its_slot() {
    let (mut state, mut a, mut b, _c) = three();
    a.late = Late::Requeue;
    state.at(200);
    b.slot(&mut state, 3, 1);
    let before = state.record().free_at;
    let stepped = a.ask(&mut state, &[2], MAX_LEAD);
    assert_eq!(wait(&stepped).0, WaitReason::Missed);
    assert_eq!(state.record().free_at, before, "no slot is spent");
}

/// The grant came too late to be used, and nobody has started since: its slot is lost all the same.
#[test]
fn who_gave_up_its_grant_has_missed_its_slot_also_as_the_last_that_started() {
    let (mut state, mut a, ..) = three();
    a.late = Late::Requeue;
    assert_eq!(a.slot(&mut state, 2, 1), ms(100));
    state.at(101);
    let stepped = a.ask(&mut state, &[2], MAX_LEAD);
    assert_eq!(wait(&stepped).0, WaitReason::Missed, "{stepped:?}");
}

#[test]
fn who_was_only_overtaken_has_not_missed_its_slot() {
    let (mut state, mut a, mut b, _c) = three();
    a.late = Late::Requeue;
    b.slot(&mut state, 3, 1);
    assert_eq!(a.slot(&mut state, 2, 1), ms(100));
}

#[test]
fn who_missed_nothing_but_was_slow_is_not_late() {
    let (mut state, mut a, ..) = three();
    a.late = Late::Requeue;
    state.at(5_000);
    assert_eq!(a.ask(&mut state, &[2], Micros::ZERO).grants.len(), 1, "nobody has started since");
}
