//! G8 on real processes: pause, hold and a new interval from one process act on all.

use std::thread;

use interval_queue::MAX_LEAD;

use crate::process::{Options, Scene, everywhere, keep, micros, ms, now, stop_and_finish};

everywhere!(
    a_pause_stops_all_and_each_restarts_with_its_tick,
    a_hold_stops_all_until_it_ends,
    a_new_interval_holds_for_all,
);

fn a_pause_stops_all_and_each_restarts_with_its_tick(scene: &mut Scene) {
    let interval = ms(20);
    let mut workers = scene.workers::<3>(Options::every(interval).lease(ms(500)));
    keep(&mut workers, 10);
    scene.wait_for_starts(20);
    workers[0].pause();
    thread::sleep(MAX_LEAD.to_duration());
    let stopped = now();
    // Longer than the lease: the record has forgotten who waits.
    thread::sleep(ms(700));
    let paused = scene.log.starts().len();

    let resumed = now();
    workers[1].resume();
    scene.wait_for_starts(paused + 10);
    let ticked = now();
    let slots = scene.log.slots_between(stopped, resumed);
    assert!(slots.is_empty(), "slots in a pause: {slots:?}");
    let slots = scene.log.slots_between(resumed, ticked);
    assert!(slots.iter().all(|slot| slot.worker == 1), "the others wait for their tick: {slots:?}");
    workers[0].tick();
    workers[2].tick();
    stop_and_finish(workers);

    let log = &scene.log;
    log.assert_nothing_lost_or_doubled();
    log.assert_tickets_unique();
    log.assert_paced(interval, 0);
    assert!(!scene.place.record().paused);
}

fn a_hold_stops_all_until_it_ends(scene: &mut Scene) {
    let (interval, hold) = (ms(20), ms(2_000));
    let mut workers = scene.workers::<3>(Options::every(interval));
    keep(&mut workers, 10);
    scene.wait_for_starts(20);
    let before = now();
    workers[2].hold(hold);
    let held = now();
    thread::sleep(hold);
    scene.wait_for_starts(scene.log.count_of_starts() + 30);
    stop_and_finish(workers);

    let log = &scene.log;
    log.assert_nothing_lost_or_doubled();
    log.assert_paced(interval, 0);
    log.assert_in_order(interval);
    let end = before + micros(hold);
    let during = log.slots_between(held + micros(MAX_LEAD.to_duration()), u64::MAX);
    assert!(during[0].at >= end, "{} µs before the end of the hold", end - during[0].at);
    log.assert_kept_pace(during.iter().map(|slot| slot.at), interval);
}

fn a_new_interval_holds_for_all(scene: &mut Scene) {
    let (quick, slow) = (ms(20), ms(60));
    let mut workers = scene.workers::<3>(Options::every(quick));
    keep(&mut workers, 10);
    scene.wait_for_starts(20);
    workers[0].set_interval(slow);
    thread::sleep(MAX_LEAD.to_duration());
    let slowed = now();
    scene.wait_for_starts(scene.log.count_of_starts() + 12);
    let hurried = now();
    workers[1].set_interval(quick);
    scene.wait_for_starts(scene.log.count_of_starts() + 40);
    stop_and_finish(workers);

    let log = &scene.log;
    log.assert_nothing_lost_or_doubled();
    log.assert_tickets_unique();
    log.assert_paced(quick, 0);
    log.assert_in_order(quick);
    let slow_slots = log.slots_between(slowed, hurried);
    assert!(slow_slots.len() >= 5, "{slow_slots:?}");
    let close = slow_slots.windows(2).find(|pair| pair[1].at - pair[0].at < micros(slow));
    assert!(close.is_none(), "slots closer than {slow:?}: {close:?}");
    // Of the first of these gaps a slow one may be left.
    let quick_slots = log.slots_between(hurried, u64::MAX);
    log.assert_kept_pace(quick_slots[2..].iter().map(|slot| slot.at), quick);
}
