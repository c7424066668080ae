//! G9 on real processes and a state file that people lay hands on: all jobs run once, and a loss brings no burst.
#![cfg(all(unix, feature = "json-file"))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "common/process/mod.rs"]
mod process;

use std::{fs, path::Path};

use process::{Options, Scene, assert_kept_pace, finish, ms, now, on_file};

on_file!(a_file_deleted_while_jobs_wait, an_old_copy_put_back_while_jobs_wait);

/// Two processes have jobs that wait, and a third keeps adding some, when harm is done to their file, twice.
fn goes_on_after(scene: &mut Scene, harm: impl Fn(&Path)) {
    let interval = ms(20);
    let mut workers = scene.workers::<3>(Options::every(interval).lease(ms(1_000)));
    workers[0].begin_to_add(60);
    workers[1].begin_to_add(60);
    workers[2].feed(30, ms(70));
    scene.wait_for_starts(20);
    let path = scene.place.path();
    let old = path.with_extension("old");
    fs::copy(&path, &old).unwrap();
    scene.wait_for_starts(40);
    let before = scene.place.record();
    harm(&path);
    scene.wait_for_starts(60);
    harm(&path);
    let over = now();
    finish(workers);

    let log = &scene.log;
    log.assert_nothing_lost_or_doubled();
    // One for each time.
    log.assert_paced(interval, 2);
    log.assert_no_bursts(interval);
    assert_kept_pace(&log.starts_since(over), interval);
    let record = scene.place.record();
    assert!(record.ticket > before.ticket && record.current > before.current, "{record:?} after {before:?}");
    let highest = log.tickets().into_values().max().unwrap();
    assert_eq!((record.ticket.get(), record.current.get()), (highest, highest));
    assert!(record.shards.is_empty());
}

fn a_file_deleted_while_jobs_wait(scene: &mut Scene) {
    goes_on_after(scene, |path| fs::remove_file(path).unwrap());
}

fn an_old_copy_put_back_while_jobs_wait(scene: &mut Scene) {
    goes_on_after(scene, |path| {
        // At once, so that nobody reads half of it.
        let copy = path.with_extension("copy");
        fs::copy(path.with_extension("old"), &copy).unwrap();
        fs::rename(copy, path).unwrap();
    });
}
