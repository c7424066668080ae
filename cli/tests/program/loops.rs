//! Four shell loops on one queue: one pace, nothing lost, also when somebody dies in the middle.

use std::{fs, time::Duration};

use rustix::process::Signal;

use crate::{
    place_tests::{Backend, on_each_state},
    process::{Stopwatch, wait_until},
};

on_each_state!(four_loops_keep_one_pace, the_loops_go_on_when_one_is_killed);

const LOOPS: u32 = 4;
const ROUNDS: u32 = 10;
const INTERVAL: Duration = Duration::from_millis(50);

fn script() -> String {
    format!(
        "for i in $(seq {ROUNDS}); do \"$IQ\" run --every 50ms -- sh -c 'echo $$ >> starts' || exit 1; done"
    )
}

fn starts(place: &Backend) -> usize {
    fs::read_to_string(place.path("starts")).unwrap_or_default().lines().count()
}

fn four_loops_keep_one_pace(place: &mut Backend) {
    let clock = Stopwatch::start();
    let loops: Vec<_> = (0..LOOPS).map(|_| place.shell(&script())).collect();
    for process in loops {
        let output = process.finish();
        assert!(output.status.success(), "{output:?}");
        assert!(output.stderr.is_empty(), "{output:?}");
    }
    let elapsed = clock.elapsed();
    assert_eq!(starts(place), (LOOPS * ROUNDS) as usize);
    // The first slot came after the clock was started, the last one before it was read.
    assert!(elapsed >= INTERVAL * (LOOPS * ROUNDS - 1), "{elapsed:?}");
}

fn the_loops_go_on_when_one_is_killed(place: &mut Backend) {
    place.ok(&["run", "--every", "50ms", "--", "true"]);
    place.ok(&["pause"]);
    let killed = place.spawn(&["run", "--", "true"]);
    wait_until("the first waits", || place.waiting() == 1);
    let loops: Vec<_> = (0..LOOPS).map(|_| place.shell(&script())).collect();
    wait_until("all wait", || place.waiting() == LOOPS as usize + 1);
    killed.signal(Signal::KILL);
    place.ok(&["resume"]);
    for process in loops {
        let output = process.finish();
        assert!(output.status.success(), "{output:?}");
    }
    assert_eq!(starts(place), (LOOPS * ROUNDS) as usize);
}
