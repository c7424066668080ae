//! Room to run: how many jobs may run at once, and who starts when there is room again.

use interval_queue_contract::{Change, MAX_LEAD, MaxRunning, WaitReason};

use crate::common::*;

const MINUTE: u64 = 60_000;

/// Three shards that wait, and one that runs so many jobs.
fn line_beside(running: u32) -> Line {
    line().with(|state| drop(busy(state, ms(MINUTE), running)))
}

/// The shard has nothing left.
fn done(state: &mut State, mut shard: Shard) {
    assert!(!shard.say(state, |step| step).present);
}

#[test]
fn an_own_slot_takes_room_as_any_other_does() {
    let mut line = line_of(&[3, 1]).limit(3).slot(5, 400);
    let stepped = line.shards[0].1.ask(&mut line.state, &[2, 3, 4], MAX_LEAD);
    assert_eq!(slots(&stepped), [100, 200].map(|millis| T0 + ms(millis)), "b runs the third");
    assert_eq!(wait(&stepped).0, WaitReason::AtMaxRunning);
}

#[test]
fn earlier_tickets_have_two_polls_to_take_the_last_permit() {
    // It would ask in vain before.
    let line = line_beside(1).limit(2).at(200).waits(3, 0, 200);
    // Its slot came at 200. But the first one asks for room once in 100 ms, and must not find it taken. Then
    // it does not want it.
    line.at(399).waits(3, 0, 1).at(400).starts(3);
}

#[test]
fn how_scarce_room_is_shows_when_the_slot_comes() {
    let mut line = line();
    let busy = busy(&mut line.state, ms(MINUTE), 1);
    // Not two polls later; and with the other one done there is room for both.
    line.limit(2).waits(3, 0, 200).with(|state| done(state, busy)).at(200).starts(3);
}

#[test]
fn permits_enough_for_earlier_tickets_too_are_used_at_once() {
    line_beside(1).limit(3).at(200).starts(3).limit(4).at(300).starts(4);
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
            state.change(Change::Set { rates: None, max_running: MaxRunning::Unlimited }).unwrap();
        }),
    ];
    for (what, end) in ends {
        let mut line = line();
        let busy = busy(&mut line.state, ms(1_000), 1);
        println!("{what}");
        line.limit(1).at(1_000).with(|state| end(state, busy)).waits_because(3, 0, behind("a", 2)).starts(2);
    }
}

#[test]
fn when_a_pause_ends_slots_count_from_then() {
    line()
        .change(Change::Pause)
        .at(1_000)
        .change(Change::Resume)
        .waits_because(3, 0, behind("a", 2))
        .starts(2);
}

/// Otherwise their slots would recede as often as somebody speaks, behind a shard that is slow for ever.
#[test]
fn an_end_below_the_limit_keeps_the_slots_of_distance() {
    let limit = |limit| Change::Set { rates: None, max_running: MaxRunning::AtMost(limit) };
    for change in [Change::Resume, limit(8), limit(10)] {
        line().limit(9).at(150).change(change).refused(3, 0).waits(4, 0, 150);
    }
}

#[test]
fn a_limit_that_stays_reached_makes_nobody_ask_more_often() {
    let mut line = line_beside(3).limit(1).at(1_000);
    for limit in [1, 2, 3] {
        line = line.limit(limit).waits(3, 0, 200);
    }
}
