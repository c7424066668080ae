//! A record that was lost, rewound or held by a server that was restarted.

use interval_queue_contract::{
    Change, MAX_LEAD, MaxRunning, Memory, Meter, Meters, Micros, OnExisting, Rates, StateErrorKind, Step,
    Take,
};

use crate::common::*;

#[test]
fn a_lost_record_is_lifted_by_the_first_who_remembers() {
    let line = line().limit(7).hold(5_000).change(Change::Pause).refused(2, 0);
    let before = line.state.record().clone();
    let line = line.lose().refused(2, 0);
    let after = line.state.record();
    assert_eq!((after.ticket, after.current), (before.ticket, before.current));
    assert_eq!(after.settings(), before.settings());
    assert!(tat(after) >= tat(&before));
    assert!(after.paused);
    assert_eq!(after.held_until, before.held_until);
}

#[test]
fn a_lost_record_is_not_lifted_by_who_never_saw_it() {
    let mut state = State::empty();
    let mut a = Shard::new("a");
    let step = a.step();
    assert_eq!(a.send(&mut state, step).unwrap_err().kind(), StateErrorKind::NotFound);
    assert_eq!(state.stored, None);
}

#[test]
fn a_change_with_memory_lifts_the_record_even_when_opening() {
    for change in [Change::Pause, open(Some(INTERVAL), MaxRunning::Keep, OnExisting::Replace)] {
        let (mut state, a, ..) = three();
        state.stored = None;
        state.change_with(change, a.memory).unwrap();
        assert_eq!(state.record().ticket, a.memory.ticket);
    }
}

#[test]
fn a_loss_costs_an_interval_and_the_lead_once_for_all_shards() {
    let (mut state, mut a, _b, mut c) = three();
    a.ask(&mut state, &[2], Micros::ZERO);
    c.take_behind(&mut state, 1, Some(t(4)));
    state.stored = None;
    state.at(1_000);
    a.ask(&mut state, &[2], ms(40));
    assert_eq!(state.record().ticket, t(4));
    assert_eq!(tat(state.record()), T0 + ms(1_140), "slots may have been granted that far ahead");
    state.at(1_050);
    c.ask(&mut state, &[4, 5], ms(40));
    assert_eq!(state.record().ticket, t(5), "this one knows more");
    assert_eq!(tat(state.record()), T0 + ms(1_140));
}

#[test]
fn a_restart_after_a_loss_is_another_loss() {
    line().lose().at(1_000).refused(2, 0).at(2_000).restart().refused(3, 0).free_at(2_100);
}

#[test]
fn after_a_restart_no_overtaken_ticket_owns_a_slot() {
    // It may have been given to another.
    line().slot(4, 300).restart().refused(2, 1_000);
}

#[test]
fn a_reading_shard_notices_a_loss() {
    let looked_and_lost = |line: Line| {
        let rewound = line_of(&[1, 1, 1]).state.stored;
        let mut looked = Shard { memory: Memory::of(line.state.record()), ..Shard::new("looked") };
        let mut state = State { stored: rewound, ..line.state };
        looked.take(&mut state, 1);
        state
    };
    let state = looked_and_lost(line().slot(2, 100));
    assert_eq!(state.record().current, t(2), "it saw this ticket start");
    assert!(tat(state.record()) >= T0 + ms(200));
    assert!(looked_and_lost(line().change(Change::Pause)).record().paused, "it saw the pause");
}

#[test]
fn two_shards_with_one_ticket_get_two_slots() {
    let (mut state, mut a, mut b, _c) = three();
    let rewound = state.stored.clone();
    let mut newer = Shard::new("newer");
    let twin = newer.take(&mut state, 1).taken.unwrap();
    state.stored = rewound;
    let other = Shard::new("other").take(&mut state, 1).taken.unwrap();
    assert_eq!(twin, other, "the record has forgotten that it gave this ticket");
    let mut other = Shard { sequence: 1, ..Shard::new("other") };
    let one = other.slot(&mut state, 5, 1);
    let two = newer.slot(&mut state, 5, 1);
    assert!(two >= one + INTERVAL, "{one:?} {two:?}");
    let (three, four) = (a.slot(&mut state, 2, 1), b.slot(&mut state, 3, 1));
    let mut slots = [one, two, three, four];
    slots.sort_unstable();
    assert!(slots.windows(2).all(|pair| pair[1] - pair[0] >= INTERVAL), "{slots:?}");
}

#[test]
fn tickets_that_were_lifted_may_be_gaps() {
    let (mut state, mut a, ..) = three();
    let rewound = state.stored.clone();
    Shard::new("gone").take(&mut state, 500);
    a.ask(&mut state, &[2], Micros::ZERO);
    state.stored = rewound;
    a.ask(&mut state, &[2], Micros::ZERO);
    assert_eq!((state.record().ticket, state.record().gaps_until), (t(504), t(504)));
}

#[test]
fn a_rewound_free_at_is_noticed_by_the_sequence_of_the_shard() {
    let (mut state, mut a, mut b, mut c) = three();
    a.take_behind(&mut state, 1, Some(t(2)));
    state.at(200);
    b.slot(&mut state, 3, 1);
    c.ask(&mut state, &[4], Micros::ZERO);
    let rewound = state.stored.clone();
    // A late grant moves nothing but `free_at`.
    assert_eq!(a.slot(&mut state, 2, 1), ms(300));
    state.stored = rewound;
    a.ask(&mut state, &[5], Micros::ZERO);
    // What was granted may lie a lead ahead.
    state.at(1_000);
    assert!(c.slot(&mut state, 4, 1) >= ms(1_300), "ticket 2 was granted a slot that the record forgot");
}

#[test]
fn another_incarnation_may_have_lost_its_last_writes() {
    let line = line().restart().refused(2, 0).at(5_000).restart().refused(2, 40).free_at(5_140);
    let (record, reading) = (line.state.record(), &line.state.reading);
    assert_eq!(record.incarnation, reading.incarnation);
    assert_eq!(record.gaps_until, t(0), "no ticket was lost");
    // Once for each restart.
    line.at(5_100).slot(2, 5_140);
}

#[test]
fn the_newer_settings_hold_whether_stored_or_remembered() {
    let (mut state, mut a, mut b, _c) = three();
    let rewound = state.stored.clone();
    let set =
        |interval| Change::Set { rates: Some(Rates::every(interval)), max_running: MaxRunning::AtMost(7) };
    state.change(set(ms(250))).unwrap();
    a.ask(&mut state, &[2], Micros::ZERO);
    state.stored = rewound;
    b.ask(&mut state, &[3], Micros::ZERO);
    assert_eq!(state.record().meters.first().interval, INTERVAL, "b does not know better");
    a.ask(&mut state, &[2], Micros::ZERO);
    assert_eq!(state.record().meters.first().interval, ms(250));
    assert_eq!(state.record().max_running, Some(7));
    state.change(set(ms(50))).unwrap();
    a.memory.ticket = t(99);
    a.ask(&mut state, &[2], Micros::ZERO);
    assert_eq!(
        state.record().meters.first().interval,
        ms(50),
        "a loss of tickets brings no old settings back"
    );
    assert_eq!(tat(state.record()), T0 + ms(50), "nor the slot that they reserved");
}

#[test]
fn instants_seen_before_the_clock_stepped_back_are_void() {
    let (mut state, mut a, ..) = three();
    a.slot(&mut state, 2, 1);
    state.stored = None;
    state.reading.now = T0 - ms(3_600_000);
    a.take(&mut state, 1);
    let free_at = tat(state.record());
    assert!(free_at <= state.now() + INTERVAL + MAX_LEAD, "an hour of waiting for nothing");
}

#[test]
fn memory_equal_to_the_record_lifts_nothing() {
    let (mut state, mut a, ..) = three();
    a.ask(&mut state, &[2], Micros::ZERO);
    let before = state.record().clone();
    a.ask(&mut state, &[2], Micros::ZERO);
    let after = state.record();
    assert_eq!(
        (tat(after), after.gaps_until, after.line_from),
        (tat(&before), before.gaps_until, before.line_from)
    );
    assert_eq!(after.lifted_at, Micros::ZERO);
    state.change_with(Change::Resume, Memory::of(&before)).unwrap();
    assert_eq!(state.record().lifted_at, Micros::ZERO);
}

#[test]
fn a_pause_on_a_forgetful_record_is_newer_than_old_settings() {
    let line = line().interval(250).interval(50).interval(100).refused(2, 0).at(1_000).lose();
    let line = line.change(open(Some(INTERVAL), MaxRunning::Keep, OnExisting::Keep)).change(Change::Pause);
    assert!(line.refused(2, 0).state.record().paused, "a remembers older settings");
}

#[test]
fn a_slot_that_only_a_waiting_shard_remembers_is_evidence() {
    let (mut state, mut a, mut b, _) = three();
    state.at(500);
    // A copy that knows every ticket, but no shard.
    let mut copy = state.stored.clone().unwrap();
    copy.current = copy.ticket;
    copy.shards.clear();
    state.stored = Some(copy.clone());
    assert_eq!(a.ask(&mut state, &[2], Micros::ZERO).grants.len(), 1);
    assert!(b.ask(&mut state, &[3], Micros::ZERO).grants.is_empty(), "a has this slot");
    state.stored = Some(copy);
    assert!(b.ask(&mut state, &[3], Micros::ZERO).grants.is_empty(), "a still has it");
}

#[test]
fn hosts_that_differ_a_little_remember_the_same_instants() {
    let line = line().hold(5_000).refused(2, 0);
    let before = line.state.record().clone();
    let line = line.lose().with(|state| state.reading.now = T0 - ms(1_000)).refused(2, 0);
    assert_eq!(line.state.record().held_until, before.held_until);
    assert!(tat(line.state.record()) >= tat(&before));
}

#[test]
fn the_longest_lead_is_remembered_by_all() {
    // The second may have a slot that far ahead.
    line().refused(3, 60).refused(2, 0).lose().at(1_000).refused(2, 0).free_at(1_160);
}

/// The copy is as old as the lift, and does not know what was granted in the same instant.
#[test]
fn two_losses_in_one_instant_are_two() {
    let (mut state, mut a, mut b, mut c) = three();
    for (shard, ticket) in [(&mut a, 2), (&mut b, 3), (&mut c, 4)] {
        shard.ask(&mut state, &[ticket], Micros::ZERO);
    }
    state.stored = None;
    a.ask(&mut state, &[2], Micros::ZERO);
    let copy = state.stored.clone();
    for (shard, ticket) in [(&mut a, 2), (&mut b, 3)] {
        assert_eq!(shard.ask(&mut state, &[ticket], ms(500)).grants.len(), 1);
    }
    let granted = tat(state.record());
    state.stored = copy;
    a.take(&mut state, 1);
    assert!(c.slot(&mut state, 4, 1) >= granted - T0, "b has the slot before, and only b knows");
}

#[test]
fn a_shard_that_only_opened_the_queue_notices_its_loss() {
    let mut state = State::empty();
    let opened = state.change(open(Some(INTERVAL), MaxRunning::Keep, OnExisting::Fail)).unwrap();
    let mut a = Shard { memory: opened.memory, ..Shard::new("a") };
    Shard::new("other").start(&mut state, 1, Micros::ZERO);
    state.stored = None;
    let take = Some(Take { request: 1, count: 1, weights: vec![1] });
    let stepped = a.say(&mut state, |step| Step { take, ..step });
    assert!(stepped.grants.is_empty(), "another may have started a moment ago");
    state.at(100);
    assert_eq!(a.ask(&mut state, &[1], Micros::ZERO).grants.len(), 1);
}

#[test]
fn a_heavy_grant_that_only_its_shard_remembers_keeps_its_room() {
    let (mut state, mut a, mut b, _c) = three();
    let rewound = state.stored.clone();
    assert_eq!(a.slot(&mut state, 2, 50), ms(100));
    state.stored = rewound;
    state.at(200);
    a.take(&mut state, 1);
    state.at(5_099);
    assert!(b.ask(&mut state, &[3], Micros::ZERO).grants.is_empty(), "the heavy one has 100 to 5100");
}

/// The shard remembers the hold, at first as an instant far ahead; the record has it, or has lost that, too.
#[test]
fn a_hold_of_before_the_clock_stepped_back_does_not_return() {
    let step_back = |state: &mut State| state.reading.now = T0 - ms(3_600_000);
    let held = || line().hold(30_000).refused(2, 0).with(step_back);
    let (_, ask_in) = held().refused(3, 0).at(0).wait(2, 0);
    assert!(ask_in <= Some(INTERVAL), "the hold ended an hour ago: {ask_in:?}");
    let state = held().lose().refused(2, 0).state;
    let most = state.now() + ms(30_000);
    assert!(state.record().held_until <= most, "an hour longer than was asked for");
}

/// A record that was rewound and has been used since is ahead of its witness in all but one thing.
#[test]
fn each_thing_remembered_is_evidence_by_itself() {
    let (mut state, mut a, mut b, _c) = three();
    a.ask(&mut state, &[2], Micros::ZERO);
    state.at(1_000);
    b.ask(&mut state, &[3], ms(40));
    let record = state.record().clone();
    let at = |tat| Meters::from_iter([Meter { tat, ..record.meters.first() }]);
    let known = Memory {
        at: T0,
        sequence: a.sequence,
        ticket: t(2),
        current: t(0),
        meters: at(T0),
        revision: record.revision - 1,
        ..Memory::of(&record)
    };
    let ahead = [
        ("nothing more", known, false),
        ("ticket", Memory { ticket: t(5), ..known }, true),
        ("current", Memory { current: t(4), ticket: t(4), ..known }, true),
        ("revision", Memory { revision: record.revision + 1, ..known }, true),
        ("meters", Memory { meters: at(tat(&record) + ms(1)), revision: record.revision, ..known }, true),
        ("its last step", Memory { sequence: a.sequence + 1, ..known }, true),
    ];
    // A step that the record may have forgotten.
    a.sequence += 1;
    for (what, memory, lost) in ahead {
        let mut state = State { stored: Some(record.clone()), reading: state.reading.clone() };
        let mut a = Shard { memory, ..a.clone() };
        a.ask(&mut state, &[2], Micros::ZERO);
        let after = state.record();
        assert_eq!(after.gaps_until == after.ticket, lost, "{what}: tickets may be gaps");
        assert_eq!(after.line_from == after.ticket.after(1), lost, "{what}: tickets may be there twice");
        assert!(
            after.ticket >= memory.ticket && after.current >= memory.current,
            "{what}: they never go back"
        );
    }
}
