//! Steps of the state's clock.

use interval_queue_contract::{Change, Command, MAX_LEAD, Micros};

use crate::common::*;

#[test]
fn hosts_that_differ_a_little_see_the_latest_time() {
    let (mut state, mut a, ..) = three();
    state.at(100);
    a.ask(&mut state, &[2], Micros::ZERO);
    state.reading.now = T0 - ms(900);
    let free_at = tat(state.record());
    let snapshot = state.apply(&Command::Read).unwrap().read().unwrap().unwrap();
    assert_eq!(snapshot.at, T0 + ms(100));
    assert_eq!(Shard::new("d").start(&mut state, 1, MAX_LEAD).len(), 1);
    assert_eq!((state.record().seen_at, tat(state.record()) > free_at), (T0 + ms(100), true));
}

#[test]
fn a_step_back_moves_all_instants_with_it() {
    let (mut state, ..) = three();
    state.change(Change::Hold(ms(30))).unwrap();
    state.stored.as_mut().unwrap().lifted_at = T0;
    let before = state.record().clone();
    let hour = ms(3_600_000);
    state.reading.now = T0 - hour;
    state.change(Change::Pause).unwrap();
    let after = state.record();
    assert_eq!(tat(after), tat(&before) - hour);
    assert_eq!(after.held_until, before.held_until - hour);
    assert_eq!(after.seen_at, before.seen_at - hour);
    assert_eq!(after.lifted_at, before.lifted_at - hour);
    for (id, presence) in &before.shards {
        assert_eq!(after.shards[id].expires_at, presence.expires_at - hour);
    }
}

#[test]
fn after_a_step_back_the_next_slot_is_as_far_as_before() {
    // Not an hour later.
    line().with(|state| state.reading.now = T0 - ms(3_600_000)).waits(2, 0, 100);
}

#[test]
fn a_step_forward_ends_leases_and_the_late_rule_heals_it() {
    // The others seem dead. The first one lives, and its place is good.
    line().at(3_600_000).slot(3, 3_600_000).slot(4, 3_600_100).slot(2, 3_600_200);
}

#[test]
fn a_read_does_not_move_the_stored_time() {
    let mut state = State::begun();
    state.at(500);
    let before = state.stored.clone();
    let snapshot = state.apply(&Command::Read).unwrap().read().unwrap().unwrap();
    assert_eq!(snapshot.at, T0 + ms(500));
    assert_eq!(state.stored, before);
}

#[test]
fn an_overtaken_ticket_loses_its_slot_by_a_clock_step_back() {
    let (mut state, mut a, mut b, _) = three();
    // The shard of ticket 3 overtakes that of ticket 2, and has its slot in hand when the clock is stepped.
    state.at(50);
    assert_eq!(b.ask(&mut state, &[3], MAX_LEAD).grants.len(), 1);
    let granted = tat(state.record());
    // The record was written 20 ms before: what it reserved is that much later from now on.
    state.reading.now = T0 + ms(70) - ms(3_600_000);
    let stepped = a.ask(&mut state, &[2], MAX_LEAD);
    let slot = stepped.grants[0].slot;
    assert_eq!(slot, granted - (T0 + ms(50) - state.now()), "it comes after all that was granted");
}
