//! Leases: who counts as alive, and what becomes of what the dead held.

use interval_queue_contract::{Memory, Micros, StateErrorKind, Step, Take, WaitReason};

use crate::common::*;

/// A queue with a shard of a short lease and so many tickets, and one with a ticket behind them.
fn behind_one_with(lease: u64, tickets: u32) -> (State, Shard) {
    let mut state = State::begun();
    Shard::new("dead").leased(ms(lease)).take(&mut state, tickets);
    let b = Shard::new("b").with(&mut state, 1);
    (state, b)
}

#[test]
fn a_dead_shard_blocks_until_its_lease_ends_and_no_longer() {
    let (mut state, mut b) = behind_one_with(500, 100);
    state.at(499);
    assert_eq!(wait(&b.ask(&mut state, &[102], Micros::ZERO)).0, behind("dead", 2));
    state.at(500);
    assert_eq!(b.ask(&mut state, &[102], Micros::ZERO).grants.len(), 1);
}

#[test]
fn tickets_of_the_dead_are_gaps() {
    let (mut state, mut b) = behind_one_with(100, 10);
    assert_eq!(state.record().gaps_until, t(0));
    state.at(100);
    b.ask(&mut state, &[12], Micros::ZERO);
    assert_eq!(state.record().gaps_until, t(12));
}

#[test]
fn a_dead_shard_that_only_ran_jobs_leaves_no_gap() {
    let mut state = State::begun();
    let dead = busy(&mut state, ms(100), 1);
    state.at(100);
    Shard::new("b").take(&mut state, 1);
    assert!(!state.record().shards.contains_key(&dead.id));
    assert_eq!(state.record().gaps_until, t(0));
}

#[test]
fn a_stepping_shard_is_alive_and_keeps_its_take_however_late() {
    let mut state = State::begun();
    let mut slow = Shard::new("slow").leased(ms(100));
    let taken = slow.take(&mut state, 3).taken;
    state.at(10_000);
    let take = Some(Take { request: 1, count: 3, weights: vec![] });
    assert_eq!(slow.say(&mut state, |step| Step { take, ..step }).taken, taken);
    assert_eq!(state.record().gaps_until, t(0));
}

#[test]
fn running_jobs_of_all_living_shards_are_counted() {
    let (mut state, mut a, mut b, mut c) = three();
    state.limit(3);
    state.at(1_000);
    c.say(&mut state, |step| Step { running: 2, ..step });
    assert_eq!(a.ask(&mut state, &[2], Micros::ZERO).grants.len(), 1, "the third");
    state.at(2_000);
    assert_eq!(wait(&b.ask(&mut state, &[3], Micros::ZERO)).0, WaitReason::AtMaxRunning);
    assert!(!a.say(&mut state, |step| step).present, "its job has ended");
    assert_eq!(b.ask(&mut state, &[3], Micros::ZERO).grants.len(), 1);
}

#[test]
fn jobs_granted_by_one_step_count_for_the_next_of_its_tickets() {
    let mut state = State::begun();
    state.limit(2);
    state.at(1_000);
    let mut a = Shard::new("a").with(&mut state, 3);
    let stepped = a.ask(&mut state, &[2, 3, 4], ms(1_000));
    assert_eq!(stepped.grants.len(), 2);
    assert_eq!(wait(&stepped).0, WaitReason::AtMaxRunning);
    assert_eq!(state.record().shards[&a.id].running, 2);
}

#[test]
fn jobs_of_a_dead_shard_are_free_when_its_lease_ends() {
    let line = line().limit(1).with(|state| drop(busy(state, ms(5_000), 1)));
    line.at(4_999).waits_because(2, 0, WaitReason::AtMaxRunning).at(5_000).starts(2);
}

#[test]
fn a_request_renews_the_lease_and_an_idle_shard_leaves() {
    let (mut state, mut a, ..) = three();
    state.at(50);
    a.ask(&mut state, &[2], Micros::ZERO);
    assert_eq!(state.record().shards[&a.id].expires_at, T0 + ms(60_050));
    assert!(!a.say(&mut state, |step| step).present);
    assert!(!state.record().shards.contains_key(&a.id));
}

#[test]
fn an_older_step_changes_nothing() {
    let (mut state, mut a, ..) = three();
    let old = a.step();
    a.ask(&mut state, &[2], Micros::ZERO);
    let before = state.stored.clone();
    for sequence in [old.sequence, a.sequence] {
        let step = Step { sequence, ..old.clone() };
        assert_eq!(a.send(&mut state, step).unwrap_err().kind(), StateErrorKind::Superseded);
    }
    assert_eq!(state.stored, before);
}

#[test]
fn a_reply_counts_living_shards_and_the_sender_if_it_stays() {
    let (mut state, mut a, mut b, mut c) = three();
    assert_eq!((a.memory.shards, b.memory.shards, c.memory.shards), (1, 2, 3));
    assert_eq!(b.say(&mut state, |step| step).memory.shards, 2);
    state.at(60_000);
    assert_eq!(c.ask(&mut state, &[4], Micros::ZERO).memory.shards, 0, "a is dead, c is done");
    assert_eq!(a.take(&mut state, 1).memory.shards, 1);
}

#[test]
fn a_memory_without_a_count_of_shards_is_readable() {
    let (_, _, _, c) = three();
    let mut json = serde_json::to_value(c.memory).unwrap();
    json.as_object_mut().unwrap().remove("shards").unwrap();
    let read: Memory = serde_json::from_value(json).unwrap();
    assert_eq!(read, Memory { shards: 0, ..c.memory });
}
