//! With bursts, a reply that is lost costs nothing: what it granted is granted again to those who ask in time.

use interval_queue_contract::{
    Ask, Change, MAX_LEAD, MaxRunning, Micros, OnExisting, Rate, Rates, Step, Stepped, Take, WaitReason,
};

use crate::common::*;

/// One start in 100 ms as a rule, and so many of them at once. A shard has taken eight tickets.
fn bursty(burst: u32) -> (State, Shard) {
    let mut state = State::empty();
    let rates = Rates::of([Rate { interval: INTERVAL, burst }]).ok();
    let (max_running, on_existing) = (MaxRunning::Keep, OnExisting::Fail);
    state.change(Change::Open { rates, max_running, on_existing }).unwrap();
    let shard = Shard::new("a").with(&mut state, 8);
    (state, shard)
}

/// A step that asks for the tickets up to `last`, with those behind it outstanding.
fn up_to(shard: &mut Shard, last: u64, weight: u32) -> Step {
    let ask: Vec<Ask> = (1..=last).map(|ticket| ask(ticket, weight)).collect();
    Step { ask, then: Some(t(last + 1)), lead: MAX_LEAD, ..shard.step() }
}

/// Makes the step, the reply to which is lost.
fn lose(state: &mut State, shard: &mut Shard, step: Step) -> Stepped {
    let memory = shard.memory;
    let lost = shard.send(state, step).unwrap();
    shard.memory = memory;
    lost
}

/// The reply to a step that asks for three tickets of a burst of two is lost at `T0`.
fn lost() -> (State, Shard) {
    let (mut state, mut shard) = bursty(2);
    let step = up_to(&mut shard, 3, 1);
    let stepped = lose(&mut state, &mut shard, step);
    assert_eq!(slots(&stepped), [T0, T0, T0 + ms(100)]);
    (state, shard)
}

/// The slots that the next step brings, in milliseconds after `T0`.
fn next(state: &mut State, shard: &mut Shard, weight: u32) -> Vec<u64> {
    let step = up_to(shard, 3, weight);
    let stepped = shard.send(state, step).unwrap();
    slots(&stepped).iter().map(|slot| (*slot - T0).get() / 1000).collect()
}

#[test]
fn a_reply_lost_repeatedly_is_repeated_and_charged_once() {
    let (mut state, mut shard) = lost();
    let meters = state.record().meters;
    for millis in [20, 40] {
        state.at(millis);
        let step = up_to(&mut shard, 3, 1);
        assert_eq!(slots(&lose(&mut state, &mut shard, step)), [T0, T0, T0 + ms(100)]);
    }
    state.at(100);
    assert_eq!(next(&mut state, &mut shard, 1), [0, 0, 100], "an interval late at most");
    assert_eq!(state.record().meters, meters);
    assert_eq!(state.record().shards[&shard.id].running, 3);
}

#[test]
fn received_grants_are_not_repeated() {
    let (mut state, mut shard) = lost();
    next(&mut state, &mut shard, 1);
    assert_eq!(next(&mut state, &mut shard, 1), [200, 300, 400]);
}

#[test]
fn a_heavier_job_is_granted_another_slot() {
    let (mut state, mut shard) = lost();
    assert_eq!(next(&mut state, &mut shard, 2), [300, 500, 700]);
    let (mut state, mut shard) = bursty(2);
    let step = up_to(&mut shard, 3, 2);
    lose(&mut state, &mut shard, step);
    assert_eq!(state.record().shards[&shard.id].granted, []);
}

#[test]
fn without_bursts_nothing_is_remembered() {
    let (mut state, mut shard) = bursty(1);
    next(&mut state, &mut shard, 1);
    assert_eq!(state.record().shards[&shard.id].granted, []);
    assert!(!state.record().to_json().unwrap().contains("granted"));
}

#[test]
fn when_the_clock_is_stepped_back_it_is_forgotten() {
    let (mut state, mut shard) = lost();
    state.reading.now = T0 - ms(10_000);
    let step = up_to(&mut shard, 3, 1);
    let stepped = shard.send(&mut state, step).unwrap();
    assert_eq!(slots(&stepped), [200, 300, 400].map(|at| state.now() + ms(at)));
}

#[test]
fn the_tickets_of_a_take_are_granted_again_with_it() {
    let (mut state, mut shard) = bursty(2);
    let [lost, again] = [(); 2].map(|()| {
        let take = Some(Take { request: 7, count: 3, weights: vec![1, 1] });
        let step = Step { take, ..shard.step() };
        lose(&mut state, &mut shard, step)
    });
    assert_eq!((lost.grants.len(), lost.taken), (2, again.taken));
    assert_eq!(lost.grants, again.grants);
}

#[test]
fn a_quota_is_charged_once() {
    let (mut state, mut shard) = bursty(2);
    let rates = [(100, 1), (10_000, 3)].map(|(interval, burst)| Rate { interval: ms(interval), burst });
    state.change(Change::Set { rates: Rates::of(rates).ok(), max_running: MaxRunning::Keep }).unwrap();
    let step = up_to(&mut shard, 3, 1);
    let lost = lose(&mut state, &mut shard, step);
    let meters = state.record().meters;
    // Its first slots have passed, the last one is to come.
    state.at(50);
    let step = up_to(&mut shard, 3, 1);
    assert_eq!(shard.send(&mut state, step).unwrap().grants, lost.grants);
    assert_eq!(state.record().meters, meters);
}

#[test]
fn a_slot_of_an_interval_ago_is_not_granted_again() {
    let (mut state, mut shard) = lost();
    state.reading.now = T0 + ms(100) + Micros::new(1);
    assert_eq!(next(&mut state, &mut shard, 1), [200, 300, 100], "the third is in time");
}

#[test]
fn nothing_is_granted_again_in_a_pause() {
    let (mut state, mut shard) = lost();
    state.change(Change::Pause).unwrap();
    let step = up_to(&mut shard, 3, 1);
    let stepped = shard.send(&mut state, step).unwrap();
    assert_eq!((stepped.grants.len(), wait(&stepped).0), (0, WaitReason::Paused));
}

#[test]
fn a_slot_before_the_end_of_a_hold_is_not_granted_again() {
    let (mut state, mut shard) = lost();
    state.change(Change::Hold(ms(50))).unwrap();
    assert_eq!(next(&mut state, &mut shard, 1), [200, 300, 100]);
}

#[test]
fn a_grant_that_is_given_again_needs_room_to_run() {
    let (mut state, mut shard) = lost();
    state.limit(2);
    let step = up_to(&mut shard, 3, 1);
    let stepped = shard.send(&mut state, step).unwrap();
    assert_eq!((stepped.grants.len(), wait(&stepped).0), (2, WaitReason::AtMaxRunning));
}
