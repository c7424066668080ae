//! G3 and G5 on real processes: one that is stopped past its slots loses the slots and no job, and does not start what
//! is long overdue in a burst when it goes on.
#![cfg(unix)]

#[path = "common/process/mod.rs"]
mod process;

use std::thread;

use process::{
    Options, Scene, Worker, assert_kept_pace, finish, micros, ms, now, on_file, on_redis, wait_until,
};

on_file!(one_stopped_past_its_slots_keeps_its_place_and_brings_no_burst);
on_redis!(one_stopped_past_its_slots_keeps_its_place_and_brings_no_burst);

fn one_stopped_past_its_slots_keeps_its_place_and_brings_no_burst(scene: &mut Scene) {
    let (interval, lease) = (ms(20), ms(500));
    // The state is far away, so that a shard has several grants in hand at a time.
    let mut workers = scene.workers::<3>(Options::every(interval).lease(lease).away(ms(30)));
    let [sleeper, others @ ..] = &mut workers;
    sleeper.begin_to_add(40);
    others.iter_mut().for_each(|worker| worker.begin_to_add(100));
    workers.iter().for_each(|worker| worker.done());
    scene.wait_for_starts(10);

    let [sleeper, others @ ..] = workers;
    freeze_with_grants_in_hand(scene, &sleeper);
    let frozen = now();
    thread::sleep(ms(2_500));
    let before = scene.log.starts_of(sleeper.number).len();
    assert!(before < 40, "the sleeper has jobs left");
    let thawed = now();
    sleeper.thaw();
    finish(others);
    finish([sleeper]);

    let log = &scene.log;
    log.assert_nothing_lost_or_doubled();
    log.assert_tickets_unique();
    log.assert_paced(interval, 0);
    // Once its lease had ended, the others had all slots.
    let alone = log.starts_since(frozen + micros(lease) + micros(interval) * 4);
    let alone: Vec<_> = alone.into_iter().filter(|start| start.at < thawed).collect();
    assert_kept_pace(&alone, interval);
    // Its late jobs come before the younger ones of the others.
    let last_of_sleeper = log.starts_of(0).last().unwrap().at;
    assert!(log.starts_since(last_of_sleeper).len() > 20, "late jobs go first");
    assert!(scene.place.record().shards.is_empty());
}

/// Stops it while it has slots that are yet to come. One that is stopped while it holds the lock of the state file keeps
/// everybody waiting; then another moment is tried.
fn freeze_with_grants_in_hand(scene: &Scene, worker: &Worker) {
    wait_until("a process is stopped with grants in hand", || {
        worker.freeze();
        // What it said before has been heard by then.
        thread::sleep(ms(50));
        let started = scene.log.starts().len();
        thread::sleep(ms(150));
        let in_hand = scene.log.in_hand(worker.number);
        if in_hand >= 2 && scene.log.starts().len() > started {
            return true;
        }
        worker.thaw();
        thread::sleep(ms(7));
        false
    });
}
