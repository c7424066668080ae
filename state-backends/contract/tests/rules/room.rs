//! Room to run: how many jobs may run at once, and who starts when there is room again.

use interval_queue_contract::{Change, MAX_LEAD, MaxRunning, Micros, Step, WaitReason};

use crate::common::*;

/// A shard that runs a job and waits for nothing.
fn busy(state: &mut State, lease: Micros) -> Shard {
    let mut busy = Shard::new("busy").leased(lease);
    let step = Step { running: 1, ..busy.step() };
    busy.send(state, step).unwrap();
    busy
}

/// The shard has nothing left.
fn done(state: &mut State, mut shard: Shard) {
    let idle = shard.step();
    assert!(!shard.send(state, idle).unwrap().present);
}

#[test]
fn an_own_slot_takes_room_as_any_other_does() {
    let mut state = State::begun();
    state.limit(3);
    let [mut a, mut b] = ["a", "b"].map(Shard::new);
    a.take(&mut state, 3);
    b.take(&mut state, 1);
    assert_eq!(b.slot(&mut state, 5, 1), ms(400));
    let stepped = a.ask(&mut state, &[2, 3, 4], MAX_LEAD);
    assert_eq!(slots(&state, &stepped), [100, 200].map(|millis| T0 + ms(millis)), "b runs the third");
    assert_eq!(wait(&stepped).0, WaitReason::AtMaxRunning);
}

#[test]
fn those_in_front_have_two_polls_to_take_the_last_room() {
    let (mut state, _a, mut b, _c) = three();
    busy(&mut state, ms(60_000));
    state.limit(2);
    state.at(200);
    assert_eq!(wait(&b.ask(&mut state, &[3], Micros::ZERO)).1, Some(ms(200)), "it would ask in vain before");
    state.at(399);
    // Its slot came at 200. But the first one asks for room once in 100 ms, and must not find it taken.
    let stepped = b.ask(&mut state, &[3], Micros::ZERO);
    assert_eq!(wait(&stepped).1, Some(ms(1)), "{stepped:?}");
    state.at(400);
    assert_eq!(b.ask(&mut state, &[3], Micros::ZERO).grants.len(), 1, "the first one does not want it");
}

#[test]
fn how_scarce_room_is_shows_when_the_slot_comes() {
    let (mut state, _a, mut b, _c) = three();
    let busy = busy(&mut state, ms(60_000));
    state.limit(2);
    assert_eq!(wait(&b.ask(&mut state, &[3], Micros::ZERO)).1, Some(ms(200)), "not two polls later");
    done(&mut state, busy);
    state.at(200);
    assert_eq!(b.ask(&mut state, &[3], Micros::ZERO).grants.len(), 1, "room for both");
}

#[test]
fn nobody_leaves_room_that_is_enough_for_those_in_front_too() {
    let (mut state, _a, mut b, mut c) = three();
    busy(&mut state, ms(60_000));
    state.limit(3);
    state.at(200);
    assert_eq!(b.ask(&mut state, &[3], Micros::ZERO).grants.len(), 1);
    state.limit(4);
    state.at(300);
    assert_eq!(c.ask(&mut state, &[4], Micros::ZERO).grants.len(), 1);
}

/// Whatever ends a time in which nothing could start: nobody's slot came meanwhile. Otherwise all of them
/// would have passed, and the first to ask would start first.
#[test]
fn when_there_is_room_again_slots_count_from_then() {
    type End = fn(&mut State, Shard);
    let ends: [(&str, End); 4] = [
        ("the job ends", done),
        ("its lease ends", |_, _| ()),
        ("the limit rises", |state, _| state.limit(5)),
        ("the limit is taken away", |state, _| {
            state.change(Change::Set { interval: None, max_running: MaxRunning::Unlimited }).unwrap();
        }),
    ];
    for (what, end) in ends {
        let (mut state, mut a, mut b, _c) = three();
        let busy = busy(&mut state, ms(1_000));
        state.limit(1);
        state.at(1_000);
        end(&mut state, busy);
        assert!(b.ask(&mut state, &[3], Micros::ZERO).grants.is_empty(), "{what}: ticket 2 is in front");
        let stepped = a.ask(&mut state, &[2], Micros::ZERO);
        assert_eq!(slots(&state, &stepped), [T0 + ms(1_000)], "{what}");
    }
}

#[test]
fn when_a_pause_ends_slots_count_from_then() {
    let (mut state, mut a, mut b, _c) = three();
    state.change(Change::Pause).unwrap();
    state.at(1_000);
    state.change(Change::Resume).unwrap();
    assert!(b.ask(&mut state, &[3], Micros::ZERO).grants.is_empty(), "ticket 2 is in front");
    let stepped = a.ask(&mut state, &[2], Micros::ZERO);
    assert_eq!(slots(&state, &stepped), [T0 + ms(1_000)]);
}

/// Otherwise their slots would recede as often as somebody speaks, behind a shard that is slow for ever.
#[test]
fn what_ended_no_stop_leaves_everybody_the_slot_that_distance_gave() {
    let limit = |limit| Change::Set { interval: None, max_running: MaxRunning::AtMost(limit) };
    for change in [Change::Resume, limit(8), limit(10)] {
        let (mut state, _a, mut b, mut c) = three();
        state.limit(9);
        state.at(150);
        state.change(change).unwrap();
        b.ask(&mut state, &[3], Micros::ZERO);
        assert_eq!(wait(&c.ask(&mut state, &[4], Micros::ZERO)).1, Some(ms(150)), "{change:?}");
    }
}

#[test]
fn a_limit_that_stays_reached_makes_nobody_ask_more_often() {
    let (mut state, _a, mut b, _c) = three();
    let mut busy = Shard::new("busy");
    let step = Step { running: 3, ..busy.step() };
    busy.send(&mut state, step).unwrap();
    state.limit(1);
    state.at(1_000);
    for limit in [1, 2, 3] {
        state.limit(limit);
        assert_eq!(wait(&b.ask(&mut state, &[3], Micros::ZERO)).1, Some(ms(200)), "{limit}");
    }
}
