//! Tickets: unique, rising, and the same for a request that is tried again.

use interval_queue_contract::{Memory, StateErrorKind, Step, Take, Taken, Ticket};

use crate::common::*;

#[test]
fn tickets_rise_over_all_shards() {
    let mut state = State::opened();
    let first = Shard::new("a").take(&mut state, 3).taken;
    let second = Shard::new("b").take(&mut state, 1).taken;
    assert_eq!(first, Some(Taken { first: t(1), count: 3 }));
    assert_eq!(second, Some(Taken { first: t(4), count: 1 }));
}

#[test]
fn a_retry_gets_the_same_tickets_and_the_next_request_others() {
    let mut state = State::opened();
    let mut a = Shard::new("a");
    let taken = a.take(&mut state, 2).taken.unwrap();
    Shard::new("b").take(&mut state, 1);
    let retry = Take { request: 1, count: 2, weights: vec![] };
    let step = Step { take: Some(retry), ..a.step() };
    assert_eq!(a.send(&mut state, step).unwrap().taken, Some(taken));
    assert_eq!(state.record().ticket, t(3));
    let then = Some(taken.first);
    let step = Step { take: Some(a.new_take(1, vec![])), then, ..a.step() };
    assert_eq!(a.send(&mut state, step).unwrap().taken.unwrap().first, t(4));
}

#[test]
fn a_retry_is_known_also_after_other_steps() {
    let mut state = State::opened();
    let mut a = Shard::new("a");
    let taken = a.take(&mut state, 2).taken;
    let step = Step { then: Some(t(1)), ..a.step() };
    a.send(&mut state, step).unwrap();
    let retry = Take { request: 1, count: 2, weights: vec![] };
    let step = Step { take: Some(retry), then: None, ..a.step() };
    assert_eq!(a.send(&mut state, step).unwrap().taken, taken);
}

#[test]
fn take_and_the_first_grant_are_one_command() {
    let mut state = State::opened();
    let mut a = Shard::new("a");
    let step = Step { take: Some(a.new_take(3, vec![1])), ..a.step() };
    let stepped = a.send(&mut state, step).unwrap();
    assert_eq!(stepped.grants.len(), 1);
    assert_eq!(stepped.grants[0].ticket, t(1));
    assert_eq!(state.record().shards[&a.id].head, Some(t(2)));
    assert!(stepped.wait.is_some());
}

#[test]
fn a_new_ticket_does_not_lower_the_head() {
    let mut state = State::begun();
    let mut a = Shard::new("a");
    a.take(&mut state, 1);
    let step = Step { take: Some(a.new_take(2, vec![])), then: Some(t(2)), ..a.step() };
    a.send(&mut state, step).unwrap();
    assert_eq!(state.record().shards[&a.id].head, Some(t(2)));
}

#[test]
fn when_no_tickets_are_left_nothing_is_taken() {
    let mut state = State::begun();
    let mut a = Shard::new("a");
    a.memory = Memory { ticket: Ticket::new(Ticket::MAX.get() - 2), ..Memory::of(state.record()) };
    let step = Step { take: Some(a.new_take(3, vec![])), ..a.step() };
    let before = state.stored.clone();
    assert_eq!(a.send(&mut state, step).unwrap_err().kind(), StateErrorKind::Invalid);
    assert_eq!(state.stored, before);
    let taken = a.take(&mut state, 2).taken.unwrap();
    assert_eq!(taken.first.after(1), Ticket::MAX);
}

#[test]
fn tickets_that_a_shard_holds_are_not_given_again() {
    let mut state = State::begun();
    let mut a = Shard::new("a");
    let step = Step { then: Some(t(50)), ..a.step() };
    a.send(&mut state, step).unwrap();
    assert_eq!(Shard::new("b").take(&mut state, 1).taken.unwrap().first, t(51));
}
