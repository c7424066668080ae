//! What it prints: too much, for ever, or nothing that can be read.

use std::fs;

use serde_json::json;

use super::{AS_PROMISED, bad, failure, misbehave, tell};
use crate::{
    place_tests::Backend,
    process::{text, wait_until},
    work::{add, task, worker},
};

/// The most memory that a process had, in KiB.
fn most_memory(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
fn a_gigabyte_of_output_fails_and_takes_little_memory() {
    let place = Backend::sqlite();
    let id = add(&place, &["--key", "bad", "--max-attempts", "1", "1"]);
    let worker = worker(&place, &[], &bad("head -c 1000000000 /dev/zero"));
    wait_until("it has ended", || task(&place, &id)["ended_us"].is_u64());
    let task = task(&place, &id);
    let missing = 1_000_000_000 - 131_072;
    let reason = format!("{missing} bytes were left out: print at most 128 KiB");
    assert!(failure(&task).contains(&reason), "{task:#}");
    let most = most_memory(worker.id());
    assert!(most < 100 << 10, "{most} KiB");
    tell(
        "prints a gigabyte",
        1,
        "a failed attempt that says so; the memory of the worker is bounded",
        failure(&task),
    );
}

#[test]
fn a_command_that_prints_forever_is_ended_by_its_timeout() {
    let place = Backend::sqlite();
    let ids = ["yes", "yes error >&2"]
        .map(|script| add(&place, &["--max-attempts", "1", &json!(script).to_string()]));
    let script =
        "\"$IQ\" work --until-empty --timeout 500ms -- sh -c 'tr -d \\\" > script; . ./script' 2> /dev/null";
    let output = place.shell(script).finish();
    assert!(output.status.success(), "{output:?}");
    assert!(failure(&task(&place, &ids[0])).starts_with("timed out"));
    let task = task(&place, &ids[1]);
    assert!(failure(&task).starts_with("timed out: [… "), "{task:#}");
    // It may be killed in the middle of a line.
    let (before, last) = failure(&task).rsplit_once('\n').unwrap();
    assert!(before.ends_with("\nerror") && "error".starts_with(last), "{task:#}");
    tell(
        "prints for ever",
        2,
        "a failed attempt after its timeout; the end of stderr is kept",
        "failed and kept each time",
    );
}

#[test]
fn output_is_json_or_text_with_invalid_bytes_replaced() {
    for (printed, result) in [
        ("{\"a\":", json!("{\"a\":")),
        ("{} {}", json!("{} {}")),
        ("a\\000b", json!("a\0b")),
        ("\\000", json!("\0")),
        ("\\033[1m", json!("\u{1b}[1m")),
        ("\\377\\376 x", json!("\u{fffd}\u{fffd} x")),
        ("\\357\\273\\2771", json!("\u{feff}1")),
    ] {
        let task = misbehave(&[], &format!("printf '{printed}'"));
        assert_eq!((&task["state"], &task["result"]), (&json!("done"), &result), "{printed}");
    }
    tell("prints what is no JSON, no UTF-8 or zeros", 7, "its text is the result", AS_PROMISED);
}

#[test]
fn a_command_that_closes_its_output_is_waited_for() {
    let task = misbehave(&[], "echo 1; exec >&- 2>&- <&-; sleep 1; exit 0");
    assert_eq!((&task["state"], &task["result"]), (&json!("done"), &json!(1)), "{task:#}");
    let task = misbehave(&[], "exec >&- 2>&- <&-; sleep 1; exit 3");
    assert_eq!(failure(&task), "exit code 3");
}

#[test]
fn errors_that_are_no_text_are_readable() {
    let task = misbehave(&[], "printf 'it \\377\\000\\033[1m broke' >&2; exit 3");
    let error = failure(&task);
    assert!(error.starts_with("exit code 3: it ") && error.ends_with(" broke"), "{error:?}");
    // A person who looks at it with the program sees no control characters.
    let place = Backend::sqlite();
    add(&place, &["--key", "bad", "--max-attempts", "1", "1"]);
    let output = worker(&place, &["--until-empty"], &bad("printf 'red \\033[31m' >&2; exit 3")).finish();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let list = place.ok(&["tasks", "list", "--state", "failed"]);
    assert!(list.contains("red") && !list.contains('\u{1b}'), "{list:?}");
}
