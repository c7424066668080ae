//! G1, G6 on real processes for rates as services publish them: bursts, and a quota. No window has too many slots,
//! and what was not used at once is used later.

use std::time::Duration;

use interval_queue::Rate;

use crate::process::{Options, Scene, everywhere, finish, ms};

everywhere!(a_published_limit_is_kept_and_used_up);

/// A hundred a second with bursts of 5, and no more than 80 in two seconds.
fn published() -> Options {
    Options::every(ms(10)).burst(5).quota(80, Duration::from_secs(2))
}

fn a_published_limit_is_kept_and_used_up(scene: &mut Scene) {
    let options = published();
    let rates = options.pace().rates().unwrap();
    assert_eq!(rates.len(), 2, "{rates}");
    let mut workers = scene.workers::<4>(options);
    workers.iter_mut().for_each(|worker| worker.begin_to_add(30));
    finish(workers);

    let log = &scene.log;
    log.assert_nothing_lost_or_doubled();
    log.assert_tickets_unique();
    let mut slots: Vec<u64> = log.slots().iter().map(|slot| slot.at).collect();
    slots.sort_unstable();
    for rate in rates.iter() {
        assert_eq!(beyond(&slots, rate), 0, "{rate}: {slots:?}");
    }
    // In any two seconds, wherever they begin.
    let fullest = slots
        .iter()
        .map(|first| slots.iter().filter(|slot| (*first..first + 2_000_000).contains(slot)).count());
    assert!(fullest.max().unwrap() <= 80, "{slots:?}");
    // All waited from the beginning, so the last slot is where the rates put it, as far as the host let them.
    let took = (slots[slots.len() - 1] - slots[0]) as f64;
    let late = log.mean_lateness(slots[0], slots[slots.len() - 1]) * 10.0;
    let ideal = ideal(slots.len() as u64, &rates) as f64;
    assert!(took <= (ideal * 1.25).max(ideal + late * slots.len() as f64), "{took} µs instead of {ideal} µs");
}

/// By how many slots any window of any length has more than a burst and what its length gives.
fn beyond(slots: &[u64], rate: &Rate) -> u64 {
    let (interval, burst) = (rate.interval.get(), u64::from(rate.burst));
    let mut tat = 0;
    let beyond = slots.iter().map(|&slot| {
        tat = slot.max(tat) + interval;
        (tat - slot).saturating_sub(interval * burst).div_ceil(interval)
    });
    beyond.max().unwrap_or(0)
}

/// How long the last of so many comes after the first if all are there at once.
fn ideal(count: u64, rates: &[Rate]) -> u64 {
    let last = |rate: &Rate| rate.interval.get() * count.saturating_sub(u64::from(rate.burst));
    rates.iter().map(last).max().unwrap_or(0)
}
