//! Tickets that missed their slot.

use interval_queue_contract::{Micros, WaitReason};

use crate::common::*;

#[test]
fn a_late_ticket_takes_the_next_free_slot_before_younger_ones() {
    // The first has its own, though ticket 2 did not start.
    line().at(200).slot(3, 200).slot(2, 300).slot(4, 400);
}

#[test]
fn a_late_ticket_asks_with_all_its_lead_and_so_comes_before_younger_ones() {
    let mut line = line().at(200).slot(3, 200).waits(2, 20, 80);
    assert!(line.wait(4, 20).1 > Some(ms(80)));
}

#[test]
fn while_the_holder_of_a_late_ticket_is_silent_slots_do_not_slip() {
    let mut line = line().at(200).slot(3, 200);
    // Whatever its lead, the younger one asks half a millisecond ahead, which is enough for a near state.
    for lead in [2, 20, 1_000] {
        assert_eq!(line.wait(4, lead).1, Some(ms(100) - Micros::new(500)), "{lead:?}");
    }
    line.at(299).slot(4, 300);
}

#[test]
fn who_gave_up_the_last_grant_comes_before_younger_ones_too() {
    line().slot(2, 100).at(150).waits(2, 20, 30).refused(3, 1_000).slot(2, 200);
}

#[test]
fn many_late_tickets_ask_one_after_the_other() {
    line().at(300).slot(4, 300).waits(2, 20, 80).waits(3, 20, 180);
}

#[test]
fn who_wants_another_place_instead_is_told_that_it_missed_its_slot_and_spends_none() {
    line().requeue().at(200).slot(3, 200).told(2, 1_000, WaitReason::Missed).free_at(300);
}

/// The grant came too late to be used, and nobody has started since: its slot is lost all the same.
#[test]
fn who_gave_up_its_grant_has_missed_its_slot_also_as_the_last_that_started() {
    line().requeue().slot(2, 100).at(101).told(2, 1_000, WaitReason::Missed);
}

#[test]
fn who_was_only_overtaken_has_not_missed_its_slot() {
    line().requeue().slot(3, 200).slot(2, 100);
}

#[test]
fn who_missed_nothing_but_was_slow_is_not_late() {
    // Nobody has started since.
    line().requeue().at(5_000).starts(2);
}
