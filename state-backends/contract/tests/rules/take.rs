//! Tickets: unique, rising, and the same for a request that is tried again.

use interval_queue_contract::{Memory, StateErrorKind, Step, Take, Taken, Ticket};

use crate::common::*;

fn request(request: u64, count: u32, weights: &[u32]) -> Option<Take> {
    Some(Take { request, count, weights: weights.to_vec() })
}

#[test]
fn tickets_rise_over_all_shards() {
    let mut state = State::opened();
    let first = Shard::new("a").take(&mut state, 3).taken;
    let second = Shard::new("b").take(&mut state, 1).taken;
    assert_eq!(first, Some(Taken { first: t(1), count: 3 }));
    assert_eq!(second, Some(Taken { first: t(4), count: 1 }));
}

#[test]
fn a_retried_take_gets_the_same_tickets_and_a_new_one_others() {
    let mut state = State::opened();
    let mut a = Shard::new("a");
    let taken = a.take(&mut state, 2).taken;
    Shard::new("b").take(&mut state, 1);
    for _ in 0..2 {
        assert_eq!(a.say(&mut state, |step| Step { take: request(1, 2, &[]), ..step }).taken, taken);
        a.say(&mut state, |step| Step { then: Some(t(1)), ..step });
    }
    assert_eq!(state.record().ticket, t(3));
    let next = a.say(&mut state, |step| Step { take: request(2, 1, &[]), then: Some(t(1)), ..step });
    assert_eq!(next.taken.unwrap().first, t(4));
}

#[test]
fn take_and_the_first_grant_are_one_command() {
    let mut state = State::opened();
    let mut a = Shard::new("a");
    let stepped = a.say(&mut state, |step| Step { take: request(1, 3, &[1]), ..step });
    assert_eq!(stepped.grants.len(), 1);
    assert_eq!(stepped.grants[0].ticket, t(1));
    assert_eq!(state.record().shards[&a.id].head, Some(t(2)));
    assert!(stepped.wait.is_some());
}

#[test]
fn a_new_ticket_does_not_lower_the_head() {
    let mut state = State::begun();
    let mut a = Shard::new("a").with(&mut state, 1);
    a.say(&mut state, |step| Step { take: request(2, 2, &[]), then: Some(t(2)), ..step });
    assert_eq!(state.record().shards[&a.id].head, Some(t(2)));
}

#[test]
fn when_no_tickets_are_left_nothing_is_taken() {
    let mut state = State::begun();
    let mut a = Shard::new("a");
    a.memory = Memory { ticket: Ticket::new(Ticket::MAX.get() - 2), ..Memory::of(state.record()) };
    let step = Step { take: request(9, 3, &[]), ..a.step() };
    let before = state.stored.clone();
    assert_eq!(a.send(&mut state, step).unwrap_err().kind(), StateErrorKind::Invalid);
    assert_eq!(state.stored, before);
    let taken = a.take(&mut state, 2).taken.unwrap();
    assert_eq!(taken.first.after(1), Ticket::MAX);
}

#[test]
fn tickets_that_a_shard_holds_are_not_given_again() {
    let mut state = State::begun();
    Shard::new("a").say(&mut state, |step| Step { then: Some(t(50)), ..step });
    assert_eq!(Shard::new("b").take(&mut state, 1).taken.unwrap().first, t(51));
}
