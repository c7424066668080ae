//! While it waits: pause, deadline, interruption, death, and a state that goes away.

use std::{fs, os::unix::process::ExitStatusExt, process::Output, thread::sleep, time::Duration};

use rustix::process::Signal;

use crate::{
    place_tests::{Backend, on_each_state},
    process::{Process, text, wait_until},
};

on_each_state!(
    a_pause_is_waited_out,
    a_start_that_comes_too_late_is_given_up,
    an_interrupted_process_returns_its_ticket,
    a_killed_process_delays_others_by_at_most_a_lease,
    a_state_that_goes_away_is_told_once_and_waited_for,
);

fn a_pause_is_waited_out(place: &mut Backend) {
    place.ok(&["run", "--every", "10ms", "--", "true"]);
    place.ok(&["pause"]);
    let mut process = place.spawn(&["run", "--", "echo", "started"]);
    wait_until("it waits", || place.waiting() == 1);
    // By now the shard has gone idle, unless the program ticks.
    sleep(Duration::from_secs(2));
    assert_eq!(process.ended(), None);
    assert_eq!(place.status()["status"], "paused");
    place.ok(&["resume"]);
    let output = process.finish();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(text(&output.stdout), "started\n");
    assert_eq!(text(&output.stderr), "");
}

fn a_start_that_comes_too_late_is_given_up(place: &mut Backend) {
    place.ok(&["run", "--every", "1h", "--", "true"]);
    let output = place.run(&["run", "--start-within", "300ms", "--", "echo", "started"]);
    assert_eq!(output.status.code(), Some(75), "{output:?}");
    assert_eq!(text(&output.stdout), "");
    assert!(text(&output.stderr).contains("not started within 300ms: its slot has not come"), "{output:?}");
    assert_eq!(place.status()["shards"], serde_json::json!([]));
    let now_or_never = ["run", "--start-within", "0s", "--", "echo", "started"];
    let refused = |output: Output, says: &str| {
        assert_eq!(output.status.code(), Some(75), "{output:?}");
        assert!(text(&output.stderr).starts_with("interval-queue: not started now: the job "), "{output:?}");
        assert!(text(&output.stderr).contains(says), "{output:?}");
    };
    refused(place.run(&now_or_never), "later than it may");
    place.ok(&["pause"]);
    refused(place.run(&now_or_never), "could not start");
    let output = place.run(&["run", "--start-within", "2s", "--", "echo", "started"]);
    assert!(text(&output.stderr).contains("the queue is paused"), "{output:?}");
    // Its time is that of the start: CMD itself may take longer.
    place.ok(&["resume"]);
    place.ok(&["set", "--every", "1ms"]);
    assert_eq!(place.ok(&["run", "--start-within", "30s", "--", "echo", "started"]), "started\n");
    // A busy machine may be too late for a slot; then another one comes.
    wait_until("it starts now", || {
        let output = place.run(&now_or_never);
        output.status.success() && text(&output.stdout) == "started\n"
    });
}

fn an_interrupted_process_returns_its_ticket(place: &mut Backend) {
    place.ok(&["run", "--every", "1h", "--", "true"]);
    for signal in [Signal::INT, Signal::TERM, Signal::HUP, Signal::USR1] {
        let process = place.spawn(&["run", "--", "echo", "started"]);
        wait_until("it waits", || place.waiting() == 1);
        process.signal(signal);
        let output = process.finish();
        assert_eq!(output.status.signal(), Some(signal.as_raw()), "{output:?}");
        assert_eq!(text(&output.stdout), "");
        assert_eq!(place.status()["shards"], serde_json::json!([]), "{signal:?}");
    }
    // Nothing is left of them to be waited for.
    place.ok(&["set", "--every", "1ms"]);
    place.ok(&["run", "--start-within", "3s", "--", "true"]);
}

fn a_killed_process_delays_others_by_at_most_a_lease(place: &mut Backend) {
    place.ok(&["run", "--every", "10ms", "--", "true"]);
    place.ok(&["pause"]);
    let killed = place.spawn(&["run", "--", "true"]);
    wait_until("the first waits", || place.waiting() == 1);
    let others: Vec<_> = (0..3).map(|_| place.spawn(&["run", "--", "true"])).collect();
    wait_until("all wait", || place.waiting() == 4);
    killed.signal(Signal::KILL);
    assert_eq!(killed.finish().status.signal(), Some(9));
    place.ok(&["resume"]);
    for other in others {
        let output = other.finish();
        assert!(output.status.success(), "{output:?}");
    }
    place.ok(&["run", "--", "true"]);
}

/// In a pause the program asks about every second, so that it soon meets what was done to the store.
fn a_state_that_goes_away_is_told_once_and_waited_for(place: &mut Backend) {
    place.ok(&["run", "--every", "10ms", "--", "true"]);
    place.ok(&["pause"]);
    let stderr = place.path("stderr");
    let mut command = place.command(&["run", "--", "echo", "started"]);
    let process = command
        .stdout(fs::File::create(place.path("stdout")).unwrap())
        .stderr(fs::File::create(&stderr).unwrap())
        .spawn()
        .unwrap();
    let mut process = Process::adopt(process);
    let said = || fs::read_to_string(&stderr).unwrap();
    wait_until("it waits", || place.waiting() == 1);
    place.take_away();
    wait_until("it is told", || said().contains("; waiting\n"));
    sleep(Duration::from_secs(2));
    assert_eq!(said().lines().count(), 1, "{}", said());
    place.bring_back();
    wait_until("the end of it is told", || said().contains(" answers again, after "));
    // A server that forgot all knows from the waiting one that the queue is paused.
    assert_eq!(place.status()["status"], "paused");
    place.ok(&["resume"]);
    wait_until("it starts", || process.ended().is_some());
    assert_eq!(fs::read_to_string(place.path("stdout")).unwrap(), "started\n");
    assert_eq!(said().lines().count(), 2, "{}", said());
}

#[test]
fn with_a_deadline_the_first_contact_is_tried_again() {
    let place = Backend::file();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("redis://127.0.0.1:{port}");
    let args = ["run", "--every", "1s", "--start-within", "2s", "--store", &url, "--", "echo", "started"];
    let output = place.run(&args);
    assert_eq!(output.status.code(), Some(75), "{output:?}");
    let said = text(&output.stderr);
    assert_eq!(said.lines().count(), 1, "a short outage is no line of its own: {said}");
    assert!(said.contains("not started within 2s: store redis://127.0.0.1:"), "{said}");
    assert!(said.contains(" unreachable: "), "{said}");
}

#[test]
#[ignore = "needs redis-server: scripts/test runs it"]
fn a_server_that_comes_in_time_is_good_enough() {
    let mut place = Backend::redis();
    place.take_away();
    let process = place.spawn(&["run", "--every", "10ms", "--start-within", "1min", "--", "echo", "started"]);
    sleep(Duration::from_millis(500));
    place.bring_back();
    let output = process.finish();
    assert_eq!(text(&output.stdout), "started\n", "{output:?}");
    assert_eq!(text(&output.stderr), "", "a short outage is not printed");
}

#[test]
#[ignore = "needs redis-server and postgresql: scripts/test runs it"]
fn an_add_waits_for_the_first_contact() {
    for mut place in [Backend::redis(), Backend::postgres()] {
        place.take_away();
        let flow = r#"[{"name": "a", "payload": 1}]"#;
        fs::write(place.path("flow"), flow).unwrap();
        let processes = [place.spawn(&["add", "1"]), place.spawn(&["add", "--flow", "flow"])];
        // Several tries later.
        sleep(Duration::from_secs(2));
        place.bring_back();
        for process in processes {
            let output = process.finish();
            assert!(output.status.success(), "{output:?}");
        }
        let tasks: serde_json::Value = serde_json::from_str(&place.ok(&["tasks", "--json"])).unwrap();
        assert_eq!(
            tasks["counts"]["added"].as_u64().unwrap() + tasks["counts"]["ready"].as_u64().unwrap(),
            2
        );
    }
}
