//! What CMD reads and prints: bounded, whatever it does.

use serde_json::json;

use super::{add, task, work, worker};
use crate::{place_tests::Backend, process::text};

#[test]
fn a_command_that_does_not_read_its_payload_is_none_the_worse() {
    let place = Backend::sqlite();
    let payload = format!("\"{}\"", "x".repeat(100_000));
    let id = add(&place, &[&payload]);
    assert!(work(&place, "exec <&-; echo 1").status.success());
    assert_eq!(task(&place, &id)["result"], 1);
}

#[test]
fn a_payload_as_large_as_may_comes_in_whole() {
    let place = Backend::sqlite();
    let payload = format!("\"{}\"\n", "x".repeat((1 << 20) - 2));
    std::fs::write(place.path("payload"), payload).unwrap();
    assert!(place.shell("\"$IQ\" add - < payload > id").finish().status.success());
    assert!(work(&place, "sleep 0.2; wc -c").status.success());
    let id = std::fs::read_to_string(place.path("id")).unwrap();
    assert_eq!(task(&place, id.trim())["result"], 1 << 20);
}

#[test]
fn an_output_that_had_to_be_cut_is_no_result() {
    let place = Backend::sqlite();
    let fits = add(&place, &["--max-attempts", "1", "131072"]);
    let cut = add(&place, &["--max-attempts", "1", "10000000"]);
    assert!(work(&place, "read size; yes x | tr -d '\\n' | head -c $size").status.success());
    assert_eq!(task(&place, &fits)["result"].as_str().unwrap().len(), 131_072);
    let task = task(&place, &cut);
    assert_eq!((&task["state"], &task["result"]), (&json!("failed"), &json!(null)));
    let error = task["error"].as_str().unwrap();
    assert!(error.contains(&format!("{} bytes were left out", 10_000_000 - 131_072)), "{error}");
}

#[test]
fn of_a_flood_of_errors_the_end_is_kept_and_all_is_passed_on() {
    let place = Backend::sqlite();
    let id = add(&place, &["--max-attempts", "1", "1"]);
    let script = "i=0; while [ $i -lt 2000 ]; do echo \"error number $i of this command\"; i=$((i+1)); done >&2; exit 1";
    let passed = place.shell(&format!("\"$IQ\" work --until-empty -- sh -c '{script}' 2> errors")).finish();
    assert!(passed.status.success(), "{passed:?}");
    let errors = std::fs::read_to_string(place.path("errors")).unwrap();
    let expected: String = (0..2000).map(|n| format!("error number {n} of this command\n")).collect();
    assert!(errors == expected, "{} bytes", errors.len());
    let task = task(&place, &id);
    let error = task["error"].as_str().unwrap();
    assert!(
        error.starts_with("exit code 1: [… ") && error.ends_with("error number 1999 of this command"),
        "{error}"
    );
    assert!(error.len() < 4096, "{}", error.len());
}

#[test]
fn a_command_that_floods_both_for_ever_is_ended_by_its_timeout() {
    let place = Backend::sqlite();
    let id = add(&place, &["--max-attempts", "1", "1"]);
    let output =
        place.shell("\"$IQ\" work --until-empty --timeout 1s -- sh -c 'yes >&2 & yes' 2> /dev/null").finish();
    assert!(output.status.success(), "{output:?}");
    assert!(task(&place, &id)["error"].as_str().unwrap().starts_with("timed out"));
}

#[test]
fn a_stderr_that_nobody_reads_does_not_stop_the_worker() {
    let place = Backend::sqlite();
    let id = add(&place, &["--max-attempts", "1", "1"]);
    // The pipe of this process is full, and the lease goes on.
    let mut still = worker(&place, &["--lease", "3s"], "yes | head -c 3000000 >&2; echo 1");
    crate::process::wait_until("it runs", || task(&place, &id)["state"] == "leased");
    std::thread::sleep(std::time::Duration::from_secs(5));
    let task = task(&place, &id);
    assert_eq!((&task["state"], &task["failures"]), (&json!("leased"), &json!(0)), "{task:#}");
    assert_eq!(still.ended(), None);
}

#[test]
fn text_and_nothing_are_results_too() {
    let place = Backend::sqlite();
    let ids = ["\"two words\"", "\"\"", "\"[1, 2]\""].map(|payload| add(&place, &[payload]));
    assert!(work(&place, "sed 's/^\"//; s/\"$//'").status.success());
    let results = ids.map(|id| task(&place, &id)["result"].clone());
    assert_eq!(results, [json!("two words"), json!(null), json!([1, 2])]);
    assert_eq!(text(&[]), "");
}
