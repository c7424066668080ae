//! When to ask again: late enough to be cheap, early enough to waste no slot.

use interval_queue_contract::{Change, Step, WaitReason};

use crate::common::*;

/// Three shards that wait, and one that runs as many jobs as may run.
fn full_line(lease: u64) -> Line {
    line().with(|state| drop(busy(state, ms(lease), 1))).limit(1)
}

#[test]
fn the_next_one_asks_in_the_middle_of_the_lead_before_its_slot() {
    assert_eq!(line().wait(2, 20), (WaitReason::Slot, Some(ms(90))));
}

#[test]
fn later_tickets_wait_by_distance_and_learn_the_first() {
    assert_eq!(line().wait(4, 20), (behind("a", 2), Some(ms(290))));
}

#[test]
fn a_hold_is_waited_out() {
    line().hold(5_000).waits(2, 0, 5_000).waits(3, 0, 5_100);
}

#[test]
fn half_the_lease_is_the_longest_wait() {
    let mut line = line();
    line.shards[0].1.lease = ms(150);
    line.waits(2, 0, 75);
}

#[test]
fn when_a_lease_ends_those_behind_ask_one_after_the_other() {
    let mut state = State::begun();
    Shard::new("dead").leased(ms(500)).take(&mut state, 1_000);
    let asks = ["a", "b", "c", "d"].map(|name| {
        let mut shard = Shard::new(name).with(&mut state, 1);
        let ticket = state.record().ticket.get();
        wait(&shard.ask(&mut state, &[ticket], ms(0))).1.unwrap()
    });
    // The first one at the end, each further one a millisecond later: those before it may have died with the
    // first.
    assert_eq!(asks, [500, 501, 502, 503].map(ms));
}

#[test]
fn a_blocked_shard_requests_when_a_lease_ends() {
    let mut state = State::begun();
    Shard::new("dying").leased(ms(200)).take(&mut state, 5);
    let mut b = Shard::new("b").with(&mut state, 1);
    assert_eq!(wait(&b.ask(&mut state, &[7], ms(20))), (behind("dying", 2), Some(ms(200))));
}

#[test]
fn an_unblocked_shard_ignores_the_leases_of_others() {
    let dying = |state: &mut State| drop(Shard::new("dying").leased(ms(100)).with(state, 1));
    assert_eq!(line_of(&[1]).with(dying).hold(500).wait(2, 0), (WaitReason::Slot, Some(ms(500))));
}

#[test]
fn a_shard_requests_a_slot_that_it_still_owns() {
    let mut line = line_of(&[2, 1]).slot(4, 300);
    let say = |step| Step { ask: vec![ask(2, 1)], then: Some(t(3)), lead: ms(20), ..step };
    let stepped = line.shards[0].1.say(&mut line.state, say);
    assert_eq!(slots(&stepped), [T0 + ms(100)]);
    assert_eq!(wait(&stepped).1, Some(ms(190)));
}

#[test]
fn among_gaps_rank_counts_instead_of_distance() {
    let mut state = State::begun();
    Shard::new("dying").leased(ms(100)).take(&mut state, 1_000);
    let [mut a, mut b] = ["a", "b"].map(|name| Shard::new(name).with(&mut state, 1));
    // While it lives, the thousand tickets count.
    assert!(wait(&b.ask(&mut state, &[1_003], ms(0))).1 >= Some(ms(100)));
    state.at(101);
    assert_eq!(a.ask(&mut state, &[1_002], ms(0)).grants.len(), 1);
    state.at(110);
    let mut last = Shard::new("last").with(&mut state, 1);
    let (_, ask_in) = wait(&last.ask(&mut state, &[1_004], ms(0)));
    assert_eq!(ask_in, Some(ms(191)), "by distance too, now that the gap is passed");
}

#[test]
fn once_the_gap_is_passed_distance_counts_again() {
    let mut state = State::begun();
    Shard::new("dying").leased(ms(100)).take(&mut state, 1);
    let mut a = Shard::new("a").with(&mut state, 1);
    state.at(101);
    assert_eq!(a.ask(&mut state, &[3], ms(0)).grants.len(), 1, "the last ticket of the gap");
    let _b = Shard::new("b").with(&mut state, 5);
    let mut c = Shard::new("c").with(&mut state, 1);
    assert_eq!(wait(&c.ask(&mut state, &[9], ms(0))).1, Some(ms(600)), "five are before it");
}

#[test]
fn among_gaps_nobody_asks_twice_within_an_interval() {
    let (mut state, _a, mut b, mut c) = three();
    c.say(&mut state, |step| Step { ask: vec![ask(4, 1)], given_up: Some(t(4)), ..step });
    // Both slots by rank are past by now: without a bound they would ask at once, again and again.
    let mut far = Shard::new("far").with(&mut state, 50);
    b.ask(&mut state, &[3], ms(0));
    state.stored.as_mut().unwrap().gaps_until = t(54);
    state.at(950);
    assert_eq!(wait(&far.ask(&mut state, &[54], ms(0))).1, Some(INTERVAL));
}

#[test]
fn waiters_count_by_rank_until_a_dropped_ticket_is_passed() {
    let mut line = line_of(&[100, 1]).waits(102, 0, 10_100).drops(2, 101);
    assert_eq!(line.state.record().gaps_until, t(101), "all but its first were cancelled");
    assert_eq!(line.wait(102, 0), (behind("a", 2), Some(ms(200))));
}

#[test]
fn a_ticket_dropped_later_does_not_end_the_gap_of_a_higher_one() {
    let line = line_of(&[5, 100, 1]).drops(7, 106).drops(2, 6);
    assert_eq!(line.state.record().gaps_until, t(106));
    // Two are before it, not 105.
    line.waits(107, 20, 290);
}

#[test]
fn a_ticket_that_nobody_took_is_no_gap_for_those_to_come() {
    let line = line().drops(2, 1_000);
    assert_eq!(line.state.record().gaps_until, t(4), "else a thousand tickets would ask by rank");
}

#[test]
fn a_paused_shard_waits_to_be_woken() {
    let mut line = line().change(Change::Pause);
    assert_eq!(line.wait(2, 20), (WaitReason::Paused, None));
    assert_eq!(line.change(Change::Resume).wait(2, 20), (WaitReason::Slot, Some(ms(90))));
}

#[test]
fn at_the_running_limit_the_first_polls_and_others_less_often() {
    let mut line = full_line(60_000);
    // As soon as their slots have passed, and ever after.
    for millis in [200, 500] {
        line = line.at(millis);
        assert_eq!(line.wait(2, 20), (WaitReason::AtMaxRunning, Some(ms(100))));
        assert_eq!(line.wait(3, 20), (WaitReason::AtMaxRunning, Some(ms(200))));
    }
}

#[test]
fn before_its_slot_nobody_asks_for_room() {
    let mut line = full_line(60_000).hold(5_000);
    let at_limit = |ask_in| (WaitReason::AtMaxRunning, Some(ms(ask_in)));
    assert_eq!(line.wait(2, 0), at_limit(5_000), "fifty asks in vain otherwise");
    line = line.at(4_990);
    assert_eq!(line.wait(2, 0), at_limit(10), "and none too late for it");
    assert_eq!(line.wait(3, 0), at_limit(110));
}

#[test]
fn at_the_running_limit_a_lease_that_ends_is_worth_asking() {
    full_line(100).at(30).waits(2, 0, 70).at(100).starts(2);
}

#[test]
fn an_overtaken_heavy_ticket_waits_for_the_last_slot() {
    let mut line = line().slot(3, 200);
    let say = |step| Step { ask: vec![ask(2, 2)], lead: ms(250), ..step };
    let stepped = line.shards[0].1.say(&mut line.state, say);
    // By its place it would ask for a slot that it does not fit, at once and again and again.
    assert_eq!(wait(&stepped).1, Some(ms(50)));
}
