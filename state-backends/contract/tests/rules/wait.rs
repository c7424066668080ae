//! When to ask again: late enough to be cheap, early enough to waste no slot.

use interval_queue_contract::{Change, Micros, Step, WaitReason};

use crate::common::*;

#[test]
fn the_next_one_asks_in_the_middle_of_the_lead_before_its_slot() {
    let (mut state, mut a, ..) = three();
    assert_eq!(wait(&a.ask(&mut state, &[2], ms(20))), (WaitReason::Slot, Some(ms(90))));
}

#[test]
fn those_behind_wait_by_distance_and_learn_who_is_first() {
    let (mut state, a, _b, mut c) = three();
    assert_eq!(wait(&c.ask(&mut state, &[4], ms(20))), (behind(&a, 2), Some(ms(290))));
}

#[test]
fn a_hold_is_waited_out() {
    let (mut state, mut a, mut b, _c) = three();
    state.change(Change::Hold(ms(5_000))).unwrap();
    assert_eq!(wait(&a.ask(&mut state, &[2], Micros::ZERO)).1, Some(ms(5_000)));
    assert_eq!(wait(&b.ask(&mut state, &[3], Micros::ZERO)).1, Some(ms(5_100)));
}

#[test]
fn half_the_lease_is_the_longest_wait() {
    let mut state = State::begun();
    let mut a = Shard::new("a").leased(ms(150));
    a.take(&mut state, 1);
    assert_eq!(wait(&a.ask(&mut state, &[2], Micros::ZERO)).1, Some(ms(75)));
}

#[test]
fn when_a_lease_ends_those_behind_ask_one_after_the_other() {
    let mut state = State::begun();
    Shard::new("dead").leased(ms(500)).take(&mut state, 1_000);
    let mut asks = Vec::new();
    for name in ["a", "b", "c", "d"] {
        let mut shard = Shard::new(name);
        shard.take(&mut state, 1);
        let ticket = state.record().ticket.get();
        asks.push(wait(&shard.ask(&mut state, &[ticket], Micros::ZERO)).1.unwrap());
    }
    // The first one at the end, each further one a millisecond later: those before it may have died with the
    // first.
    assert_eq!(asks, [500, 501, 502, 503].map(ms));
}

#[test]
fn who_is_blocked_asks_when_a_lease_ends() {
    let mut state = State::begun();
    let mut dying = Shard::new("dying").leased(ms(200));
    dying.take(&mut state, 5);
    let mut b = Shard::new("b");
    b.take(&mut state, 1);
    assert_eq!(wait(&b.ask(&mut state, &[7], ms(20))), (behind(&dying, 2), Some(ms(200))));
}

#[test]
fn who_is_not_blocked_does_not_mind_the_leases_of_others() {
    let mut state = State::begun();
    let mut a = Shard::new("a");
    a.take(&mut state, 1);
    Shard::new("dying").leased(ms(100)).take(&mut state, 1);
    state.change(Change::Hold(ms(500))).unwrap();
    assert_eq!(wait(&a.ask(&mut state, &[2], Micros::ZERO)), (WaitReason::Slot, Some(ms(500))));
}

#[test]
fn who_still_owns_a_slot_asks_for_that() {
    let mut state = State::begun();
    let [mut a, mut b] = ["a", "b"].map(Shard::new);
    a.take(&mut state, 2);
    b.take(&mut state, 1);
    assert_eq!(b.slot(&mut state, 4, 1), ms(300));
    let step = Step { ask: vec![ask(2, 1)], then: Some(t(3)), lead: ms(20), ..a.step() };
    let stepped = a.send(&mut state, step).unwrap();
    assert_eq!(slots(&state, &stepped), [T0 + ms(100)]);
    assert_eq!(wait(&stepped).1, Some(ms(190)));
}

#[test]
fn among_gaps_rank_counts_instead_of_distance() {
    let mut state = State::begun();
    let mut dying = Shard::new("dying").leased(ms(100));
    let [mut a, mut b] = ["a", "b"].map(Shard::new);
    dying.take(&mut state, 1_000);
    a.take(&mut state, 1);
    b.take(&mut state, 1);
    // While it lives, the thousand tickets count.
    assert!(wait(&b.ask(&mut state, &[1_003], Micros::ZERO)).1 >= Some(ms(100)));
    state.at(101);
    assert_eq!(a.ask(&mut state, &[1_002], Micros::ZERO).grants.len(), 1);
    state.at(110);
    let mut last = Shard::new("last");
    last.take(&mut state, 1);
    let (_, ask_in) = wait(&last.ask(&mut state, &[1_004], Micros::ZERO));
    assert_eq!(ask_in, Some(ms(191)), "by distance too, now that the gap is passed");
}

#[test]
fn once_the_gap_is_passed_distance_counts_again() {
    let mut state = State::begun();
    Shard::new("dying").leased(ms(100)).take(&mut state, 1);
    let [mut a, mut b, mut c] = ["a", "b", "c"].map(Shard::new);
    a.take(&mut state, 1);
    state.at(101);
    assert_eq!(a.ask(&mut state, &[3], Micros::ZERO).grants.len(), 1, "the last ticket of the gap");
    b.take(&mut state, 5);
    c.take(&mut state, 1);
    assert_eq!(wait(&c.ask(&mut state, &[9], Micros::ZERO)).1, Some(ms(600)), "five are before it");
}

#[test]
fn among_gaps_nobody_asks_twice_within_an_interval() {
    let (mut state, _a, mut b, mut c) = three();
    let step = Step { ask: vec![ask(4, 1)], given_up: Some(t(4)), ..c.step() };
    c.send(&mut state, step).unwrap();
    // Both slots by rank are past by now: without a bound they would ask at once, again and again.
    let mut far = Shard::new("far");
    far.take(&mut state, 50);
    b.ask(&mut state, &[3], Micros::ZERO);
    state.stored.as_mut().unwrap().gaps_until = t(54);
    state.at(950);
    let (_, ask_in) = wait(&far.ask(&mut state, &[54], Micros::ZERO));
    assert_eq!(ask_in, Some(INTERVAL));
}

#[test]
fn a_dropped_ticket_makes_waiters_count_by_rank_until_it_is_passed() {
    let mut state = State::begun();
    let [mut a, mut b] = ["a", "b"].map(Shard::new);
    a.take(&mut state, 100);
    b.take(&mut state, 1);
    assert_eq!(wait(&b.ask(&mut state, &[102], Micros::ZERO)).1, Some(ms(10_100)));
    // All but its first were cancelled.
    let step = Step { ask: vec![ask(2, 1)], given_up: Some(t(101)), ..a.step() };
    a.send(&mut state, step).unwrap();
    assert_eq!(state.record().gaps_until, t(101));
    assert_eq!(wait(&b.ask(&mut state, &[102], Micros::ZERO)), (behind(&a, 2), Some(ms(200))));
}

#[test]
fn a_ticket_dropped_later_does_not_end_the_gap_of_a_higher_one() {
    let mut state = State::begun();
    let [mut a, mut b, mut c] = ["a", "b", "c"].map(Shard::new);
    a.take(&mut state, 5);
    b.take(&mut state, 100);
    c.take(&mut state, 1);
    let step = Step { ask: vec![ask(7, 1)], given_up: Some(t(106)), ..b.step() };
    b.send(&mut state, step).unwrap();
    let step = Step { ask: vec![ask(2, 1)], given_up: Some(t(6)), ..a.step() };
    a.send(&mut state, step).unwrap();
    assert_eq!(state.record().gaps_until, t(106));
    assert_eq!(wait(&c.ask(&mut state, &[107], ms(20))).1, Some(ms(290)), "two are before it, not 105");
}

#[test]
fn a_ticket_that_nobody_took_is_no_gap_for_those_to_come() {
    let (mut state, mut a, ..) = three();
    let step = Step { ask: vec![ask(2, 1)], given_up: Some(t(1_000)), ..a.step() };
    a.send(&mut state, step).unwrap();
    assert_eq!(state.record().gaps_until, t(4), "else a thousand tickets would ask by rank");
}

#[test]
fn who_is_paused_waits_to_be_woken() {
    let (mut state, mut a, ..) = three();
    state.change(Change::Pause).unwrap();
    assert_eq!(wait(&a.ask(&mut state, &[2], ms(20))), (WaitReason::Paused, None));
    state.change(Change::Resume).unwrap();
    assert_eq!(wait(&a.ask(&mut state, &[2], ms(20))), (WaitReason::Slot, Some(ms(90))));
}

#[test]
fn at_the_running_limit_the_first_asks_once_an_interval_and_others_less() {
    let (mut state, mut a, mut b, _c) = three();
    let mut busy = Shard::new("busy");
    let step = Step { running: 1, ..busy.step() };
    busy.send(&mut state, step).unwrap();
    state.limit(1);
    // As soon as their slots have passed, and ever after.
    for millis in [200, 500] {
        state.at(millis);
        assert_eq!(wait(&a.ask(&mut state, &[2], ms(20))), (WaitReason::AtMaxRunning, Some(ms(100))));
        assert_eq!(wait(&b.ask(&mut state, &[3], ms(20))), (WaitReason::AtMaxRunning, Some(ms(200))));
    }
}

#[test]
fn before_its_slot_nobody_asks_for_room() {
    let (mut state, mut a, mut b, _c) = three();
    let mut busy = Shard::new("busy");
    let step = Step { running: 1, ..busy.step() };
    busy.send(&mut state, step).unwrap();
    state.limit(1);
    state.change(Change::Hold(ms(5_000))).unwrap();
    let at_limit = |ask_in| (WaitReason::AtMaxRunning, Some(ms(ask_in)));
    assert_eq!(wait(&a.ask(&mut state, &[2], Micros::ZERO)), at_limit(5_000), "fifty asks in vain otherwise");
    state.at(4_990);
    assert_eq!(wait(&a.ask(&mut state, &[2], Micros::ZERO)), at_limit(10), "and none too late for it");
    assert_eq!(wait(&b.ask(&mut state, &[3], Micros::ZERO)), at_limit(110));
}

#[test]
fn at_the_running_limit_a_lease_that_ends_is_worth_asking() {
    let (mut state, mut a, ..) = three();
    let mut busy = Shard::new("busy").leased(ms(100));
    let step = Step { running: 1, ..busy.step() };
    busy.send(&mut state, step).unwrap();
    state.limit(1);
    state.at(30);
    assert_eq!(wait(&a.ask(&mut state, &[2], Micros::ZERO)).1, Some(ms(70)));
    state.at(100);
    assert_eq!(a.ask(&mut state, &[2], Micros::ZERO).grants.len(), 1);
}

#[test]
fn a_heavy_ticket_that_was_overtaken_waits_for_the_end_of_the_line() {
    let (mut state, mut a, mut b, _c) = three();
    assert_eq!(b.slot(&mut state, 3, 1), ms(200));
    let step = Step { ask: vec![ask(2, 2)], lead: ms(250), ..a.step() };
    let stepped = a.send(&mut state, step).unwrap();
    // By its place it would ask for a slot that it does not fit, at once and again and again.
    assert_eq!(wait(&stepped).1, Some(ms(50)));
}
