//! The checks of the scenes on processes, checked: a queue that is broken on purpose fails them, also on a
//! busy machine, and the queue as it is does not.
#![cfg(all(unix, feature = "json-file"))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "common/process/mod.rs"]
mod process;

use std::{
    process::{Child, Command, Stdio},
    thread,
};

use process::{Fault, Options, Scene, Use, keep, ms, on_file, stop_and_finish};

on_file!(
    a_slot_that_is_used_twice_is_found,
    an_order_that_is_swapped_is_found,
    a_burst_after_a_stop_is_found,
    nothing_is_found_where_nothing_is_wrong,
    nor_where_all_are_near,
);

/// Four loops that keep the processors busy while this lives.
struct Load(Vec<Child>);

impl Load {
    fn begin() -> Self {
        // It ends by itself if the test is killed.
        let mut busy = Command::new("sh");
        busy.args(["-c", "i=0; while [ $i -lt 30000000 ]; do i=$((i + 1)); done"]).stdin(Stdio::null());
        Self((0..4).map(|_| busy.spawn().unwrap()).collect())
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// What was found wrong.
#[derive(Debug, PartialEq, Eq)]
struct Found {
    too_close: usize,
    out_of_order: usize,
    without_grant: usize,
    stale: usize,
}

const NOTHING: Found = Found { too_close: 0, out_of_order: 0, without_grant: 0, stale: 0 };

/// Two workers with the fault beside two without, one of which may be stopped, all on a busy machine. Three
/// rounds, or more until a fault is found: a busy machine may hide it for a while.
fn found(scene: &mut Scene, options: Options, fault: Fault, is_stopped: bool) -> Found {
    let in_hand = if options.away.is_zero() { 0 } else { 3 };
    let rounds = if fault == Fault::None { 3 } else { 15 };
    let _load = Load::begin();
    let options = options.lease(ms(1_000));
    let mut workers = Vec::from(scene.workers::<2>(options));
    workers.extend(scene.workers::<2>(options.broken(fault)));
    keep(&mut workers, 12);
    for _ in 0..rounds {
        if is_stopped {
            scene.freeze_with_grants_in_hand(&workers[3], in_hand);
            thread::sleep(ms(1_500));
            workers[3].thaw();
        }
        scene.wait_for_starts(scene.log.count_of_starts() + 100);
        if is_found(fault, &judged(scene, options)) {
            break;
        }
    }
    stop_and_finish(workers);

    scene.log.assert_nothing_lost_or_doubled();
    let found = judged(scene, options);
    println!("{fault:?}: {found:?} in {} starts", scene.log.count_of_starts());
    found
}

fn judged(scene: &Scene, options: Options) -> Found {
    let log = &scene.log;
    let Use { without_grant, stale } = log.use_of_slots(false);
    Found {
        too_close: log.too_close(options.interval).len(),
        out_of_order: log.out_of_order(options.interval).len(),
        without_grant: without_grant.len(),
        stale: stale.len(),
    }
}

fn is_found(fault: Fault, found: &Found) -> bool {
    match fault {
        Fault::None => false,
        Fault::SlotTwice => found.too_close > 0,
        Fault::Swapped => found.out_of_order > 0,
        Fault::Stale => found.stale > 0,
    }
}

/// Asks cross.
fn far() -> Options {
    Options::every(ms(10)).away(ms(30))
}

fn near() -> Options {
    Options::every(ms(20))
}

fn a_slot_that_is_used_twice_is_found(scene: &mut Scene) {
    assert!(found(scene, far(), Fault::SlotTwice, false).too_close > 0);
}

fn an_order_that_is_swapped_is_found(scene: &mut Scene) {
    assert!(found(scene, near(), Fault::Swapped, false).out_of_order > 0);
}

fn a_burst_after_a_stop_is_found(scene: &mut Scene) {
    assert!(found(scene, far(), Fault::Stale, true).stale > 0);
}

fn nothing_is_found_where_nothing_is_wrong(scene: &mut Scene) {
    assert_eq!(found(scene, far(), Fault::None, true), NOTHING);
}

fn nor_where_all_are_near(scene: &mut Scene) {
    assert_eq!(found(scene, near(), Fault::None, true), NOTHING);
}
