//! Where the program stays with CMD: running limits, time-outs, signals.

use std::{fs, os::unix::process::ExitStatusExt};

use rustix::process::{Signal, kill_process};

use crate::{
    place_tests::{Backend, on_each_state},
    process::{is_alive, pid, text, wait_until},
};

on_each_state!(
    no_more_run_at_once_than_may,
    the_share_of_who_ends_is_free_at_once,
    the_share_of_who_is_killed_is_free_after_a_lease,
);

fn no_more_run_at_once_than_may(place: &mut Backend) {
    let directory = place.path("running");
    fs::create_dir(&directory).unwrap();
    let script = "touch running/$$; ls running | wc -l >> counts; sleep 0.3; rm running/$$";
    let run = ["run", "--every", "5ms", "--max-running", "2", "--", "sh", "-c", script];
    let processes: Vec<_> = (0..8).map(|_| place.spawn(&run)).collect();
    for process in processes {
        let output = process.finish();
        assert!(output.status.success(), "{output:?}");
    }
    let counts = fs::read_to_string(place.path("counts")).unwrap();
    let counts: Vec<u32> = counts.lines().map(|count| count.trim().parse().unwrap()).collect();
    assert_eq!(counts.len(), 8, "{counts:?}");
    assert!(counts.iter().all(|count| *count <= 2), "{counts:?}");
}

fn the_share_of_who_ends_is_free_at_once(place: &mut Backend) {
    for command in ["exit 0", "exit 3", "kill -KILL $$"] {
        place.run(&["run", "--every", "1ms", "--max-running", "1", "--", "sh", "-c", command]);
        let status = place.status();
        assert_eq!(status["running"], 0, "{command}: {status}");
        assert_eq!(status["shards"], serde_json::json!([]), "{command}");
    }
}

// Takes five seconds: a lease of the shortest kind ends by itself.
fn the_share_of_who_is_killed_is_free_after_a_lease(place: &mut Backend) {
    let script = "echo $$ > id; exec sleep 300 > log 2>&1";
    let killed = place.spawn(&["run", "--every", "1ms", "--max-running", "1", "--", "sh", "-c", script]);
    let id = || fs::read_to_string(place.path("id")).unwrap_or_default().trim().parse::<u32>().ok();
    wait_until("CMD runs", || id().is_some());
    let status = place.status();
    assert_eq!(status["running"], 1, "{status}");
    assert_eq!(status["shards"][0]["label"], format!("sh pid {}", killed.id()));
    killed.signal(Signal::KILL);
    assert_eq!(killed.finish().status.signal(), Some(9));
    // CMD goes on without it, and counts as running until the lease ends.
    assert!(is_alive(id().unwrap()));
    let output = place.run(&["run", "--start-within", "1s", "--", "true"]);
    assert_eq!(output.status.code(), Some(75), "{output:?}");
    assert!(text(&output.stderr).contains("the limit of running jobs is reached"), "{output:?}");
    place.ok(&["run", "--", "true"]);
    kill_process(pid(id().unwrap()), Signal::KILL).unwrap();
}

#[test]
fn a_command_that_takes_too_long_is_ended() {
    let place = Backend::file();
    let script = "trap 'echo ending; exit 9' TERM; echo started; for i in $(seq 500); do sleep 0.1; done";
    let output = place.run(&["run", "--every", "1ms", "--timeout", "500ms", "--", "sh", "-c", script]);
    assert_eq!(output.status.code(), Some(124), "{output:?}");
    assert_eq!(text(&output.stdout), "started\nending\n");
    assert_eq!(place.status()["shards"], serde_json::json!([]));
    let output = place.run(&["run", "--timeout", "1min", "--", "sh", "-c", "exit 9"]);
    assert_eq!(output.status.code(), Some(9), "{output:?}");
}

#[test]
fn a_command_that_does_not_listen_is_killed() {
    let place = Backend::file();
    let script = "trap '' TERM; echo $$; for i in $(seq 1000); do sleep 0.1; done";
    let output = place.run(&["run", "--every", "1ms", "--timeout", "100ms", "--", "sh", "-c", script]);
    assert_eq!(output.status.code(), Some(124), "{output:?}");
    assert!(!is_alive(text(&output.stdout).trim().parse().unwrap()));
}

#[test]
fn a_signal_to_the_program_reaches_the_command_once() {
    let place = Backend::file();
    for (signal, name) in
        [(Signal::TERM, "TERM"), (Signal::INT, "INT"), (Signal::HUP, "HUP"), (Signal::USR2, "USR2")]
    {
        let script = format!(
            "trap 'echo heard >> heard' {name}; echo > ready; for i in $(seq 500); do [ -e stop ] || sleep 0.1; done; exit 5"
        );
        let process =
            place.spawn(&["run", "--every", "1ms", "--max-running", "4", "--", "sh", "-c", &script]);
        wait_until("CMD is ready", || place.path("ready").exists());
        process.signal(signal);
        wait_until("CMD has heard it", || place.path("heard").exists());
        fs::write(place.path("stop"), "").unwrap();
        assert_eq!(process.finish().status.code(), Some(5), "{name}");
        assert_eq!(fs::read_to_string(place.path("heard")).unwrap(), "heard\n", "{name}");
        for file in ["ready", "heard", "stop"] {
            fs::remove_file(place.path(file)).unwrap();
        }
    }
}
