//! G3 and G5 on real processes: one that is stopped past its slots loses the slots and no job, and does not start what
//! is long overdue in a burst when it goes on.
#![cfg(all(unix, any(feature = "json-file", feature = "sqlite", feature = "redis", feature = "postgres")))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "common/process/mod.rs"]
mod process;

use std::thread;

use process::{Options, Scene, Worker, everywhere, finish, micros, ms, now, wait_until};

everywhere!(one_stopped_past_its_slots_keeps_its_place_and_brings_no_burst);

fn one_stopped_past_its_slots_keeps_its_place_and_brings_no_burst(scene: &mut Scene) {
    let (interval, lease) = (ms(10), ms(500));
    // The state is far away, so that a shard has several grants in hand at a time.
    let [mut sleeper, mut others @ ..] =
        scene.workers::<3>(Options::every(interval).lease(lease).away(ms(50)));
    for _ in 0..25 {
        sleeper.begin_to_add(12);
        others.iter_mut().for_each(|other| other.begin_to_add(6));
        sleeper.done();
        others.iter().for_each(Worker::done);
    }
    freeze_with_grants_in_hand(scene, &sleeper);
    let frozen = now();
    thread::sleep(ms(2_500));
    let before = scene.log.starts_of(sleeper.number).len();
    assert!(before < 250, "the sleeper has jobs left");
    let (thawed, sleeper_number) = (now(), sleeper.number);
    sleeper.thaw();
    finish(others);
    finish([sleeper]);

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
    late.retain(|slot| slot.worker == sleeper_number && slot.ticket < overtaken_by);
    assert!(late.len() >= 20, "{} jobs were late", late.len());
    let early = log.not_yielding(&late, lease / 2);
    assert!(early.is_empty(), "G3: younger ones came first: {early:?}");
    assert!(scene.place.record().shards.is_empty());
}

/// Stops it while it has slots that are yet to come. One that is stopped while it holds the lock of the state file keeps
/// everybody waiting; then another moment is tried.
fn freeze_with_grants_in_hand(scene: &Scene, worker: &Worker) {
    wait_until("a process is stopped with grants in hand", || {
        worker.freeze();
        let in_hand = scene.log.slots_to_come().iter().filter(|slot| slot.worker == worker.number).count();
        if in_hand >= 8 && !scene.place.is_locked() {
            return true;
        }
        worker.thaw();
        thread::sleep(ms(7));
        false
    });
}
