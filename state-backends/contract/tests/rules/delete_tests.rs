//! Queues that are to be forgotten.

use interval_queue_contract::{Change, Changed, Deletion, Memory, Micros, Rates, StateError, StateErrorKind};

use crate::common::*;

const DAY: Micros = ms(24 * 3_600_000);
const UNUSED: Deletion = Deletion::Unused;

fn delete(state: &mut State, deletion: Deletion) -> Result<Changed, StateError> {
    state.change(Change::Delete(deletion))
}

/// Why it is refused, and that nothing happened then.
fn refusal(state: &mut State, deletion: Deletion) -> String {
    let before = state.stored.clone();
    let error = delete(state, deletion).unwrap_err();
    assert_eq!((error.kind(), &state.stored), (StateErrorKind::Conflict, &before), "{error}");
    error.to_string()
}

#[test]
fn a_queue_that_nobody_uses_is_forgotten() {
    for deletion in [UNUSED, Deletion::Idle(ms(900)), Deletion::Forced] {
        let mut state = State::begun();
        state.at(1_000);
        let settings = state.record().settings();
        let changed = delete(&mut state, deletion).unwrap();
        assert_eq!(state.stored, None);
        assert_eq!(changed.before, Some(settings));
        assert_eq!(changed.memory, Memory { at: T0 + ms(1_000), ..Memory::default() });
        assert_eq!(delete(&mut state, deletion).unwrap_err().kind(), StateErrorKind::NotFound);
    }
}

#[test]
fn living_shards_are_named_and_in_the_way_of_all_but_force() {
    let (mut state, mut a, ..) = three();
    assert!(refusal(&mut state, UNUSED).contains("3 shards:  (a),  (b),  (c);"));
    assert!(refusal(&mut state, Deletion::Idle(Micros::ZERO)).contains("3 shards"));
    a.say(&mut state, |step| step);
    assert!(refusal(&mut state, UNUSED).contains("2 shards:  (b),  (c);"));
    for n in 0..7 {
        Shard::new(&format!("d{n}")).take(&mut state, 1);
    }
    assert!(refusal(&mut state, UNUSED).contains("9 shards:  (b),  (c),  (d0),  (d1),  (d2), 4 more;"));
    delete(&mut state, Deletion::Forced).unwrap();
    assert_eq!(state.stored, None);
}

#[test]
fn a_shard_counts_until_its_lease_ends_by_the_clock_that_is() {
    let mut state = State::begun();
    Shard::new("dead").leased(ms(500)).take(&mut state, 1);
    state.at(499);
    assert!(refusal(&mut state, UNUSED).contains("a shard:  (dead);"));
    // Its lease moves with the clock.
    state.at(0);
    state.reading.now = state.reading.now - DAY;
    assert!(refusal(&mut state, UNUSED).contains("dead"));
    state.at(500);
    delete(&mut state, UNUSED).unwrap();
}

#[test]
fn an_idle_queue_is_one_that_nobody_has_written_to_nor_reserved() {
    let wanted = Deletion::Idle(ms(1_000));
    let mut state = State::begun();
    state.at(999);
    assert!(refusal(&mut state, wanted).contains("was used 999ms ago: less than 1s"));
    state.reading.now = state.reading.now - DAY;
    assert!(refusal(&mut state, wanted).contains("for another 100ms"), "the clock was stepped back");
    state.at(1_000);
    state.change(Change::Hold(ms(2_000))).unwrap();
    state.at(2_999);
    assert!(refusal(&mut state, wanted).contains("for another 1ms"));
    state.at(3_000);
    state.clone().change(Change::Delete(wanted)).unwrap();
    state.change(Change::Pause).unwrap();
    state.at(9_000);
    assert!(refusal(&mut state, wanted).contains("paused"));
    delete(&mut state, UNUSED).unwrap();
}

#[test]
fn a_slot_that_is_ahead_is_in_use() {
    let mut state = State::begun();
    Shard::new("heavy").slot(&mut state, 2, 50);
    state.at(5_099);
    assert!(refusal(&mut state, Deletion::Idle(ms(10))).contains("for another 1ms"));
    state.at(5_100);
    delete(&mut state, Deletion::Idle(ms(10))).unwrap();
}

/// What a person does to a queue by force is a loss to its shards: they go on, an interval and a lead later.
#[test]
fn shards_bring_back_what_was_deleted_by_force() {
    let (mut state, _, mut b, _) = three();
    state
        .change(Change::Set { rates: Some(Rates::every(ms(200))), max_running: Default::default() })
        .unwrap();
    b.ask(&mut state, &[3], ms(40));
    let before = state.record().clone();
    delete(&mut state, Deletion::Forced).unwrap();
    state.at(1_000);
    b.ask(&mut state, &[3], ms(40));
    let after = state.record();
    assert_eq!((after.ticket, after.current), (before.ticket, before.current));
    assert_eq!((after.settings(), tat(after)), (before.settings(), T0 + ms(1_240)));
}

#[test]
fn a_memory_of_the_queue_does_not_bring_it_back_to_be_deleted() {
    let (mut state, a, ..) = three();
    state.stored = None;
    let error = state.change_with(Change::Delete(Deletion::Forced), a.memory).unwrap_err();
    assert_eq!((error.kind(), state.stored), (StateErrorKind::NotFound, None));
}
