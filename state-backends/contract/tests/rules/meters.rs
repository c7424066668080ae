//! Bursts and quotas: several rates hold together, and what was not used comes back up to the burst.

use interval_queue_contract::{
    Change, LateStart, MAX_LEAD, MaxRunning, Memory, Micros, OnExisting, Rate, Rates, StateErrorKind, Step,
    WaitReason,
};

use crate::common::*;

/// Five a second with bursts of 20, and a quota that gives 30 at once and one every 10 s.
fn published() -> Rates {
    rates(&[(200, 20), (10_000, 30)])
}

fn rates(of: &[(u64, u32)]) -> Rates {
    Rates::of(of.iter().map(|&(interval, burst)| Rate { interval: ms(interval), burst })).unwrap()
}

fn opened(rates: Rates) -> State {
    let mut state = State::empty();
    let open =
        Change::Open { rates: Some(rates), max_running: MaxRunning::Keep, on_existing: OnExisting::Fail };
    state.change(open).unwrap();
    state
}

/// When the jobs of a shard start that has this many and asks for one after the other, counted from `T0`.
fn starts(state: &mut State, shard: &mut Shard, first: u64, count: u64) -> Vec<u64> {
    shard.take(state, count as u32);
    let slots = (first..first + count).map(|ticket| {
        let stepped = shard.ask(state, &[ticket], Micros::ZERO);
        let slot = match slots(&stepped).first() {
            Some(slot) => *slot,
            None => {
                state.reading.now = state.now() + wait(&stepped).1.unwrap();
                let stepped = shard.ask(state, &[ticket], Micros::ZERO);
                slots(&stepped)[0]
            }
        };
        (slot - T0).get() / 1000
    });
    slots.collect()
}

#[test]
fn a_burst_starts_at_once_and_the_rest_at_the_rate() {
    let mut state = opened(rates(&[(200, 3)]));
    let mut shard = Shard::new("a");
    assert_eq!(starts(&mut state, &mut shard, 1, 6), [0, 0, 0, 200, 400, 600]);
    // After a second without starts there are three more.
    state.at(1_600);
    assert_eq!(starts(&mut state, &mut shard, 7, 5), [1_600, 1_600, 1_600, 1_800, 2_000]);
}

#[test]
fn the_stricter_rate_decides_at_any_time() {
    let mut state = opened(published());
    let starts = starts(&mut state, &mut Shard::new("a"), 1, 33);
    assert_eq!(starts[..20], [0; 20]);
    // Ten more of the quota are left; then it gives one every ten seconds.
    let rest: Vec<u64> = (1..=10).map(|n| n * 200).chain([10_000, 20_000, 30_000]).collect();
    assert_eq!(starts[20..], rest);
}

#[test]
fn slots_behind_others_come_as_the_rates_give_them() {
    let mut state = opened(rates(&[(100, 2)]));
    Shard::new("opener").start(&mut state, 2, Micros::ZERO);
    Shard::new("b").take(&mut state, 4);
    let mut shard = Shard::new("a").with(&mut state, 1);
    // Those before it come 100 to 400 ms later.
    let stepped = shard.ask(&mut state, &[7], ms(10));
    assert_eq!(wait(&stepped), (behind("b", 3), Some(ms(495))));
}

#[test]
fn a_missed_slot_stays_in_the_burst_for_the_late_ticket() {
    let mut state = opened(rates(&[(100, 5)]));
    let mut late = Shard::new("late").with(&mut state, 1);
    let mut other = Shard::new("other").with(&mut state, 2);
    assert_eq!(other.slot(&mut state, 2, 1), ms(0), "its own place is due as well");
    state.at(50);
    assert_eq!(late.slot(&mut state, 1, 1), ms(50));
    assert_eq!(other.slot(&mut state, 3, 1), ms(50));
}

#[test]
fn an_overtaken_ticket_owns_its_slot_while_the_quota_allows_it() {
    for (quota, slot) in [(5, ms(100)), (4, ms(1_000))] {
        let mut state = opened(rates(&[(100, 1), (1_000, quota)]));
        Shard::new("opener").start(&mut state, 1, Micros::ZERO);
        let mut slow = Shard::new("slow").with(&mut state, 1);
        let mut quick = Shard::new("quick").with(&mut state, 3);
        let stepped = quick.ask(&mut state, &[3, 4, 5], MAX_LEAD);
        assert_eq!(slots(&stepped), [200, 300, 400].map(|at| T0 + ms(at)));
        assert_eq!(slow.slot(&mut state, 2, 1), slot, "quota {quota}");
    }
}

#[test]
fn a_weight_above_the_burst_waits_for_all_of_it_and_is_paid_off() {
    let mut state = opened(rates(&[(100, 3)]));
    let mut shard = Shard::new("a");
    shard.start(&mut state, 1, Micros::ZERO);
    shard.take(&mut state, 2);
    assert_eq!(shard.slot(&mut state, 2, 5), ms(100), "three are there when the first has come back");
    assert_eq!(shard.slot(&mut state, 3, 1), ms(400), "two more are owed");
}

/// Two shards from an empty burst of ten on, one slot each 100 ms: a heavy job has the first ticket and asks from
/// then on, another shard always has light ones and asks before it at each instant. When they start.
fn heavy_beside_light(weight: u32, from: u64) -> (u64, Vec<u64>) {
    let mut state = opened(rates(&[(100, 10)]));
    Shard::new("opener").start(&mut state, 10, Micros::ZERO);
    let mut heavy = Shard::new("heavy").with(&mut state, 1);
    let mut light = Shard::new("light").with(&mut state, 50);
    heavy.say(&mut state, |step| Step { ask: vec![ask(11, weight)], ..step });
    let mut lights = Vec::new();
    for at in (0..5_000).step_by(50) {
        state.at(at);
        // A shard that holds a late ticket asks as early as it may, and so before all others.
        let overtaken = state.record().current >= t(11);
        for asks in [overtaken, !overtaken] {
            if asks && at >= from {
                let stepped = heavy.say(&mut state, |step| Step { ask: vec![ask(11, weight)], ..step });
                if !stepped.grants.is_empty() {
                    return (at, lights);
                }
            } else if !asks {
                while !light.ask(&mut state, &[12 + lights.len() as u64], Micros::ZERO).grants.is_empty() {
                    lights.push(at);
                }
            }
        }
    }
    panic!("light jobs used up what a job of weight {weight} waits for: {lights:?}");
}

#[test]
fn light_jobs_leave_a_heavy_one_before_them_what_it_waits_for() {
    for weight in [8, 10, 12] {
        let at = u64::from(weight.min(10)) * 100;
        assert_eq!(heavy_beside_light(weight, 0), (at, vec![]), "weight {weight}");
    }
    // Once it was overtaken, the others use what is there beyond it, and no slot is lost.
    assert_eq!(heavy_beside_light(8, 1_300), (1_300, vec![900, 1_000, 1_100, 1_200]));
    // A job that needs all of the burst has it because its shard asks first.
    assert_eq!(heavy_beside_light(10, 1_300), (1_300, vec![1_100, 1_200]));
}

#[test]
fn jobs_leave_bursts_to_heavy_ones_of_every_shard_before_them() {
    let mut state = opened(rates(&[(100, 20)]));
    Shard::new("opener").start(&mut state, 20, Micros::ZERO);
    let mut heavy = [4, 5].map(|weight| (Shard::new(&format!("of {weight}")).with(&mut state, 1), weight));
    for (n, (shard, weight)) in heavy.iter_mut().enumerate() {
        let ask = vec![ask(21 + n as u64, *weight)];
        let stepped = shard.say(&mut state, |step| Step { ask, ..step });
        assert_eq!(wait(&stepped).1, Some(ms([400, 900][n])));
    }
    let mut light = Shard::new("light").with(&mut state, 1);
    let stepped = light.ask(&mut state, &[23], Micros::ZERO);
    assert_eq!(wait(&stepped), (behind("of 4", 21), Some(ms(1_000))));
}

#[test]
fn no_burst_ends_a_hold_and_a_pause_refills() {
    let mut state = opened(rates(&[(100, 3)]));
    let mut shard = Shard::new("a");
    state.change(Change::Hold(ms(1_000))).unwrap();
    assert_eq!(starts(&mut state, &mut shard, 1, 3), [1_000, 1_100, 1_200]);
    state.change(Change::Pause).unwrap();
    state.at(9_000);
    state.change(Change::Resume).unwrap();
    assert_eq!(starts(&mut state, &mut shard, 4, 4), [9_000, 9_000, 9_000, 9_100]);
}

#[test]
fn a_loss_brings_no_burst() {
    let mut state = opened(published());
    let mut shard = Shard::new("a");
    shard.start(&mut state, 20, Micros::ZERO);
    shard.take(&mut state, 3);
    state.at(1_000);
    state.stored = None;
    let stepped = shard.ask(&mut state, &[21], Micros::ZERO);
    assert_eq!(wait(&stepped).0, WaitReason::Slot);
    let meters = state.record().meters;
    // As many as could have been granted since are taken for used: at most those of the burst.
    assert_eq!(meters[0].tat, T0 + ms(1_000 + 20 * 200));
    assert!(meters[1].tat > T0 + ms(1_000 + 20 * 10_000), "{meters:?}");
    assert!(meters[1].tat <= T0 + ms(1_000 + 30 * 10_000), "{meters:?}");
}

#[test]
fn a_new_shard_on_a_restarted_server_finds_the_bursts_used() {
    let mut state = opened(published());
    state.reading.incarnation = "other".into();
    state.at(1_000);
    state.change(open(None, MaxRunning::Keep, OnExisting::Fail)).unwrap();
    let tats: Vec<_> = state.record().meters.iter().map(|meter| meter.tat - state.now()).collect();
    assert_eq!(tats, [ms(20 * 200), ms(30 * 10_000)]);
}

#[test]
fn a_reset_leaves_at_most_an_empty_burst() {
    let mut state = opened(rates(&[(100, 3)]));
    let mut shard = Shard::new("a").with(&mut state, 1);
    assert_eq!(shard.slot(&mut state, 1, 1_000), ms(0));
    state.change(Change::Reset).unwrap();
    assert_eq!(state.record().meters[0].tat, T0 + MAX_LEAD + ms(300));
}

#[test]
fn debts_carry_over_to_other_rates() {
    let set = |state: &mut State, to: Rates| {
        state.change(Change::Set { rates: Some(to), max_running: MaxRunning::Keep }).unwrap();
        let tats = state.record().meters.iter().map(|meter| (meter.tat - T0).get() / 1000);
        tats.collect::<Vec<_>>()
    };
    let mut state = opened(rates(&[(200, 20)]));
    Shard::new("a").start(&mut state, 20, Micros::ZERO);
    assert_eq!(set(&mut state, rates(&[(200, 20), (10_000, 30)])), [4_000, 200_000], "a quota that is added");
    assert_eq!(set(&mut state, rates(&[(200, 20)])), [4_000], "and dropped");
    assert_eq!(set(&mut state, rates(&[(1_000, 1)])), [1_000], "a burst is owed once");
    assert_eq!(set(&mut state, rates(&[(10, 50)])), [10]);
}

#[test]
fn a_weight_above_the_burst_is_owed_in_full_by_an_added_quota() {
    let mut state = opened(rates(&[(100, 1)]));
    let mut shard = Shard::new("a").with(&mut state, 2);
    assert_eq!(shard.slot(&mut state, 1, 5), ms(0));
    let to = Some(rates(&[(50, 1), (1_000, 3)]));
    state.change(Change::Set { rates: to, max_running: MaxRunning::Keep }).unwrap();
    assert_eq!(shard.slot(&mut state, 2, 1), ms(1_000), "the quota begins empty");
    assert_eq!(tat(state.record()), T0 + ms(1_050));
    let meters = |rates| {
        let mut state = opened(rates);
        Shard::new("b").with(&mut state, 1).slot(&mut state, 1, 5);
        let to = Some(self::rates(&[(50, 1), (1_000, 30)]));
        state.change(Change::Set { rates: to, max_running: MaxRunning::Keep }).unwrap();
        state.record().meters.iter().map(|meter| (meter.tat - T0).get() / 1000).collect::<Vec<_>>()
    };
    assert_eq!(meters(rates(&[(100, 1)])), [5 * 50, 5 * 1_000]);
    assert_eq!(meters(rates(&[(100, 8)])), [50, 5 * 1_000], "five of a burst are no debt beyond one");
}

#[test]
fn a_longer_interval_returns_no_burst_before_reserved_slots() {
    let mut state = opened(rates(&[(10, 3)]));
    let mut early = Shard::new("early");
    early.start(&mut state, 3, Micros::ZERO);
    let mut behind = Shard::new("behind").with(&mut state, 5);
    let mut far = Shard::new("far").with(&mut state, 1);
    assert_eq!(far.ask(&mut state, &[9], MAX_LEAD).grants.len(), 1);
    assert_eq!(state.record().last_slot, T0 + ms(60));
    let to = Some(rates(&[(100, 3)]));
    state.change(Change::Set { rates: to, max_running: MaxRunning::Keep }).unwrap();
    let stepped = behind.ask(&mut state, &[4], ms(0));
    assert_eq!(wait(&stepped), (WaitReason::Slot, Some(ms(100))));
}

#[test]
fn new_rates_grant_no_slot_before_the_last_reserved_one() {
    let mut state = opened(rates(&[(10, 3)]));
    let mut early = Shard::new("early");
    early.start(&mut state, 3 + 20, MAX_LEAD);
    assert_eq!(state.record().last_slot, T0 + ms(200));
    for to in [(100, 3), (1, 3), (100, 30), (10, 5)] {
        let mut state = state.clone();
        let to = Some(rates(&[to]));
        state.change(Change::Set { rates: to, max_running: MaxRunning::Keep }).unwrap();
        assert!(state.record().next_slot(1) >= T0 + ms(200), "{to:?}: {:?}", state.record().meters);
    }
}

#[test]
fn a_pause_before_a_change_of_rates_counts_for_nothing() {
    let mut state = opened(rates(&[(10, 1)]));
    Shard::new("a").start(&mut state, 1, Micros::ZERO);
    state.change(Change::Pause).unwrap();
    state.at(3_600_000);
    state.change(Change::Resume).unwrap();
    let to = Some(rates(&[(1_000, 1)]));
    state.change(Change::Set { rates: to, max_running: MaxRunning::Keep }).unwrap();
    assert_eq!(state.record().next_slot(1), state.now() + ms(1_000));
}

#[test]
fn a_loss_before_a_change_of_rates_counts_for_nothing() {
    let mut state = opened(rates(&[(1, 1)]));
    let mut shard = Shard::new("a");
    shard.start(&mut state, 1, Micros::ZERO);
    shard.take(&mut state, 1);
    state.stored = None;
    shard.ask(&mut state, &[2], ms(400));
    let to = Some(rates(&[(1_000, 1)]));
    state.change(Change::Set { rates: to, max_running: MaxRunning::Keep }).unwrap();
    assert_eq!(state.record().next_slot(1), T0 + ms(400 + 1_000));
}

#[test]
fn a_late_start_moves_the_next_slot_unless_somebody_has_it() {
    let late = |ticket: u64, at: u64| Some(LateStart { ticket: t(ticket), at: T0 + ms(at) });
    let mut state = State::begun();
    let mut shard = Shard::new("a");
    state.at(30);
    shard.say(&mut state, |step| Step { late_start: late(1, 30), ..step });
    assert_eq!(state.record().next_slot(1), T0 + ms(130));
    // It cannot have started later than now, and somebody has the next slot already.
    shard.say(&mut state, |step| Step { late_start: late(1, 9_000), ..step });
    assert_eq!(state.record().next_slot(1), T0 + ms(130));
    Shard::new("b").start(&mut state, 1, MAX_LEAD);
    shard.say(&mut state, |step| Step { late_start: late(1, 30), ..step });
    assert_eq!(state.record().next_slot(1), T0 + ms(230));
    // Where there are bursts, a late start is as good as any.
    let mut state = opened(rates(&[(100, 2)]));
    shard = Shard::new("c");
    shard.start(&mut state, 1, Micros::ZERO);
    let before = state.record().meters;
    state.at(30);
    shard.say(&mut state, |step| Step { late_start: late(1, 30), ..step });
    assert_eq!(state.record().meters, before);
}

#[test]
fn other_rates_are_a_conflict_that_names_both() {
    let mut state = opened(published());
    let other = open(Some(INTERVAL), MaxRunning::Keep, OnExisting::Fail);
    let error = state.change(other).unwrap_err();
    assert_eq!(error.kind(), StateErrorKind::Conflict);
    let text = error.to_string();
    assert!(text.contains("every 200ms with bursts of 20, and every 10s with bursts of 30"), "{text}");
    assert!(text.contains("every 100ms"), "{text}");
    let same = Change::Open {
        rates: Some(published()),
        max_running: MaxRunning::Keep,
        on_existing: OnExisting::Fail,
    };
    assert!(state.change_with(same, Memory::default()).is_ok());
}
