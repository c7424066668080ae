//! G3 and G5 on real processes: one that is stopped past its slots loses the slots and no job, and does not start what
//! is long overdue in a burst when it goes on.
#![cfg(all(unix, any(feature = "json-file", feature = "sqlite", feature = "redis", feature = "postgres")))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "common/process/mod.rs"]
mod process;

use std::thread;

use process::{
    Options, Scene, Start, Worker, assert_kept_pace, everywhere, finish, micros, ms, now, wait_until,
};

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
    let thawed = now();
    sleeper.thaw();
    finish(others);
    finish([sleeper]);

    let log = &scene.log;
    log.assert_nothing_lost_or_doubled();
    log.assert_tickets_unique();
    log.assert_paced(interval, 0);
    log.assert_no_bursts(interval);
    // Once its lease had ended, the others had all slots.
    let alone = log.starts_since(frozen + micros(lease) + micros(interval) * 4);
    let alone: Vec<_> = alone.into_iter().filter(|start| start.at < thawed).collect();
    assert_kept_pace(&alone, interval);
    // Its late jobs come before the younger ones of the others, but for those that were granted already.
    let tickets = log.tickets();
    let ticket = |start: &Start| tickets[&(start.worker, start.job)];
    let overtaken_by = alone.iter().map(ticket).max().unwrap();
    let (of_sleeper, of_others): (Vec<_>, Vec<_>) =
        log.starts_since(thawed).into_iter().partition(|start| start.worker == 0);
    let late: Vec<_> = of_sleeper.into_iter().filter(|start| ticket(start) < overtaken_by).collect();
    assert!(late.len() >= 20, "{} jobs were late", late.len());
    let before_late = of_others.iter().filter(|start| start.at < late[late.len() - 1].at).count();
    assert!(before_late <= late.len(), "{before_late} others before {} late ones", late.len());
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
