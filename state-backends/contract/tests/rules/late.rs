//! Tickets that missed their slot.

use interval_queue_contract::{Micros, WaitReason};

use crate::common::*;

#[test]
fn a_late_ticket_takes_the_next_free_slot_before_younger_ones() {
    // The first has its own, though ticket 2 did not start.
    line().at(200).slot(3, 200).slot(2, 300).slot(4, 400);
}

#[test]
fn a_late_ticket_requests_with_its_full_lead() {
    let mut line = line().at(200).slot(3, 200).waits(2, 20, 80);
    assert!(line.wait(4, 20).1 > Some(ms(80)));
}

#[test]
fn slots_do_not_slip_while_a_late_holder_is_silent() {
    let mut line = line().at(200).slot(3, 200);
    // Whatever its lead, the younger one asks half a millisecond ahead, which is enough for a near state.
    for lead in [2, 20, 1_000] {
        assert_eq!(line.wait(4, lead).1, Some(ms(100) - Micros::new(500)), "{lead:?}");
    }
    line.at(299).slot(4, 300);
}

#[test]
fn a_shard_that_gave_up_the_last_grant_precedes_younger_ones() {
    line().slot(2, 100).at(150).waits(2, 20, 30).refused(3, 1_000).slot(2, 200);
}

#[test]
fn many_late_tickets_ask_one_after_the_other() {
    line().at(300).slot(4, 300).waits(2, 20, 80).waits(3, 20, 180);
}

#[test]
fn a_requeueing_shard_misses_its_slot_and_spends_none() {
    line().requeue().at(200).slot(3, 200).waits_because(2, 1_000, WaitReason::Missed).free_at(300);
}

/// The grant came too late to be used, and nobody has started since: its slot is lost all the same.
#[test]
fn a_given_up_grant_is_missed_even_after_the_last_start() {
    line().requeue().slot(2, 100).at(101).waits_because(2, 1_000, WaitReason::Missed);
}

#[test]
fn an_overtaken_ticket_has_not_missed_its_slot() {
    line().requeue().slot(3, 200).slot(2, 100);
}

#[test]
fn a_slow_shard_that_missed_no_slot_is_not_late() {
    // Nobody has started since.
    line().requeue().at(5_000).starts(2);
}
