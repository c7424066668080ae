//! G3 and G5 on real processes: one that is stopped past its slots loses the slots and no job, and does not
//! start what is long overdue in a burst when it goes on.

use std::thread;

use crate::process::{Options, Scene, everywhere, micros, ms, now, stop_and_finish};

everywhere!(one_stopped_past_its_slots_keeps_its_place_and_brings_no_burst);

// Takes six seconds: the process is stopped for longer than its lease.
fn one_stopped_past_its_slots_keeps_its_place_and_brings_no_burst(scene: &mut Scene) {
    let (interval, lease) = (ms(10), ms(500));
    // The state is far away, so that a shard has several grants in hand at a time.
    let mut workers = scene.workers::<3>(Options::every(interval).lease(lease).away(ms(50)));
    for (worker, depth) in workers.iter_mut().zip([60, 30, 30]) {
        worker.keep(depth);
    }
    scene.wait_for_starts(60);
    let sleeper = &workers[0];
    scene.freeze_with_grants_in_hand(sleeper, 8);
    let frozen = now();
    thread::sleep(ms(2_500));
    let thawed = now();
    sleeper.thaw();
    scene.wait_for_starts(scene.log.count_of_starts() + 150);
    stop_and_finish(workers);

    let log = &scene.log;
    log.assert_nothing_lost_or_doubled();
    log.assert_tickets_unique();
    log.assert_paced(interval, 0);
    // Once its lease had ended, the others had all slots.
    let alone = log.slots_between(frozen + micros(lease) + micros(interval) * 4, thawed);
    log.assert_kept_pace(alone.iter().map(|slot| slot.at), interval);
    // Its late jobs come before the younger ones of the others.
    let overtaken_by = alone.iter().map(|slot| slot.ticket).max().unwrap();
    let mut late = log.slots_between(thawed, u64::MAX);
    late.retain(|slot| slot.worker == 0 && slot.ticket < overtaken_by);
    assert!(late.len() >= 20, "{} jobs were late", late.len());
    let early = log.not_yielding(&late, lease / 2);
    assert!(early.is_empty(), "G3: younger ones came first: {early:?}");
    assert!(scene.place.record().shards.is_empty());
}
