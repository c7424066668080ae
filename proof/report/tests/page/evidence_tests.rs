//! Evidence that is whole makes a page; evidence that is not makes an error which says what is wrong.

use std::{fs, path::Path};

use interval_queue_report::{Layer, Machine, Report, collect, render};
use serde_json::{Value, json};
use tempfile::TempDir;

fn machine() -> Machine {
    Machine {
        date: "2026-01-31".into(),
        command: "scripts/reliability short".into(),
        rustc: "rustc 1".into(),
        servers: "Redis 7".into(),
        system: "Linux".into(),
        cores: 2,
    }
}

fn run(violation: &Value) -> Value {
    json!({
        "command": "interval-queue-sim run --seeds 0..1", "simulations": 1_000_000, "seconds": 60.0,
        "simulated_seconds": 864_000.0, "jobs": 30, "started": 28, "slots": 29, "early": 1,
        "faults": { "crash": 12_345 }, "violation": violation,
    })
}

fn row(kind: &str, place: &str, promised: &str, happened: &str) -> Value {
    json!({
        "kind": kind, "where": place, "fault": format!("{promised}!"), "injected": 4_321, "promised": promised,
        "happened": happened,
    })
}

fn chaos(place: &str) -> Value {
    let happened = "0 of 9 jobs of the living lost, 0 started twice, 0 without a grant, 0 slots too close";
    let mut row = row("chaos", place, "G4: work goes on", happened);
    row["starts"] = json!(99);
    row["recovery_ms"] = json!({ "median": 4.0, "longest": 12.5 });
    row
}

fn put(directory: &Path, name: &str, content: &Value) {
    fs::write(directory.join(name), content.to_string()).unwrap();
}

const FAULTS: &str = "faults:\n  crash         a shard is killed\n\n\
    rules that can be broken:\n  no-lease      the dead live on\n\n\
    and of stored tasks:\n  no-fence      any token will do\n";

/// A directory of the pace in which nothing is missing or wrong.
fn whole() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    fs::write(path.join("simulation-faults.txt"), FAULTS).unwrap();
    put(path, "simulation-schedules.json", &run(&Value::Null));
    put(path, "simulation-large.json", &run(&Value::Null));
    let violation = json!({ "seed": 7, "what": "G7 (Quiet) at 1 ms: somebody is left" });
    put(path, "simulation-broken-no-lease.json", &run(&violation));
    let holds = row("model", "rules", "every promise", "no violation in 4321 states");
    let flaw =
        row("model", "rules", "refuted: no ticket twice", "refuted in 3 steps, no ticket twice: A adds");
    put(path, "model-three-shards.json", &json!([holds]));
    put(path, "model-no-lift.json", &json!([flaw]));
    put(path, "fuzz-url.json", &json!([row("fuzz", "the URL", "refused", "1 refused")]));
    put(path, "chaos-b.json", &json!([chaos("Redis")]));
    put(path, "chaos-a.json", &json!([chaos("JSON file")]));
    directory
}

fn task_run(violation: &Value) -> Value {
    json!({
        "command": "interval-queue-sim run --seeds 0..1 --tasks 30", "simulations": 7_654, "seconds": 60.0,
        "simulated_seconds": 864_000.0, "tasks": 30, "runs": 28, "steps": 8_765, "faults": { "crash": 54_321 },
        "violation": violation,
    })
}

fn task_chaos() -> Value {
    let happened = "9 tasks, 11 runs; 0 promises broken, 0 of them runs at the same time or under one token";
    let mut row = row("task-chaos", "SQLite", "T3: it runs again", happened);
    row["starts"] = json!(98);
    row["recovery_ms"] = json!({ "median": 5.0, "longest": 13.5 });
    row
}

/// The same of stored tasks.
fn whole_of_tasks() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    fs::write(path.join("simulation-faults.txt"), FAULTS).unwrap();
    put(path, "simulation-schedules.json", &task_run(&Value::Null));
    put(path, "simulation-large.json", &task_run(&Value::Null));
    let violation = json!({ "seed": 7, "what": "T2: two runs" });
    put(path, "simulation-broken-no-fence.json", &task_run(&violation));
    let holds = row("task-model", "rules", "every promise of tasks", "no violation in 5432 states");
    put(path, "task-model-two-workers.json", &json!([holds]));
    put(path, "fuzz-rows.json", &json!([row("fuzz", "the rows", "refused", "1 refused")]));
    put(path, "task-chaos-a.json", &json!([task_chaos()]));
    directory
}

#[track_caller]
fn refused(directory: &TempDir, says: &str) {
    refused_as(directory, Layer::Pace, says);
}

#[track_caller]
fn refused_as(directory: &TempDir, layer: Layer, says: &str) {
    let text = collect(directory.path(), layer, machine()).unwrap_err();
    assert!(text.contains(says), "{text}");
    assert!(!text.contains('\n'), "one line: {text}");
}

#[test]
fn whole_evidence_makes_a_page() {
    let directory = whole();
    let mut report = Report::default();
    report.put(Layer::Pace, collect(directory.path(), Layer::Pace, machine()).unwrap());
    let page = render(&report);
    for part in [
        "2026-01-31",
        "12,345",
        "1,000,000",
        "10.0 days",
        "G7 (Quiet)",
        "the dead live on",
        "no violation in 4321 states",
        "A adds",
        "### JSON file",
        "### Redis",
        "4,321",
        "12.5",
        "the URL",
        "## What is not promised",
    ] {
        assert!(page.contains(part), "{part} is not on the page:\n{page}");
    }
    let again = serde_json::to_string(&report).unwrap();
    assert_eq!(
        render(&serde_json::from_str::<Report>(&again).unwrap()),
        page,
        "what is kept gives the same page"
    );
}

#[test]
fn each_kind_has_to_be_there() {
    let files = [
        ("fuzz-url.json", "no fuzz-*.json"),
        ("simulation-schedules.json", "cannot read"),
        ("simulation-large.json", "cannot read"),
        ("simulation-faults.txt", "cannot read"),
        ("simulation-broken-no-lease.json", "cannot read"),
    ];
    for (file, says) in files {
        let directory = whole();
        fs::remove_file(directory.path().join(file)).unwrap();
        refused(&directory, says);
    }
    let directory = whole();
    fs::remove_file(directory.path().join("chaos-a.json")).unwrap();
    fs::remove_file(directory.path().join("chaos-b.json")).unwrap();
    refused(&directory, "no chaos-*.json: scripts/test -p interval-queue --test chaos writes it");
}

#[test]
fn other_content_is_refused() {
    type Change = (&'static str, fn(&mut Value), &'static str);
    let changes: [Change; 7] = [
        ("kind", |row| row["kind"] = "fuzz".into(), "a row of kind \"fuzz\""),
        ("field", |row| row["extra"] = 1.into(), "not what such a run writes: unknown field `extra`"),
        ("count", |row| row["injected"] = 0.into(), "was never injected"),
        ("text", |row| row["promised"] = " ".into(), "empty text"),
        ("recovery", |row| row["recovery_ms"] = Value::Null, "has no recovery_ms"),
        ("order", |row| row["recovery_ms"]["median"] = 13.into(), "the median is longer"),
        ("starts", |row| row["starts"] = 0.into(), "nothing started"),
    ];
    for (name, change, says) in changes {
        let directory = whole();
        let mut row = chaos("Redis");
        change(&mut row);
        put(directory.path(), "chaos-b.json", &json!([row]));
        println!("{name}");
        refused(&directory, says);
    }
    let directory = whole();
    put(directory.path(), "chaos-c.json", &json!([chaos("Redis")]));
    refused(&directory, "was told by another file, too");
    fs::write(directory.path().join("chaos-c.json"), "[{").unwrap();
    refused(&directory, "chaos-c.json is not what such a run writes");
}

#[test]
fn a_broken_promise_makes_no_page() {
    let violation = json!({ "seed": 7, "what": "G1" });
    for (file, content, says) in [
        ("simulation-schedules.json", run(&violation), "seed 7 broke a promise: G1"),
        ("simulation-large.json", run(&violation), "seed 7 broke a promise: G1"),
        ("simulation-broken-no-lease.json", run(&Value::Null), "the broken rule no-lease was not found"),
        (
            "model-three-shards.json",
            json!([row("model", "rules", "all", "refuted in 3 steps")]),
            "broke a promise",
        ),
        (
            "model-no-lift.json",
            json!([row("model", "rules", "refuted: x", "no violation in 1")]),
            "was not refuted",
        ),
    ] {
        let directory = whole();
        put(directory.path(), file, &content);
        refused(&directory, says);
    }
    for happened in [
        "1 of 9 jobs of the living lost, 0 started twice, 0 without a grant, 0 slots too close",
        "0 of 9 jobs of the living lost, 10 started twice, 0 without a grant, 0 slots too close",
        "0 of 9 jobs of the living lost, 0 started twice, 2 without a grant, 0 slots too close",
    ] {
        let directory = whole();
        let mut row = chaos("Redis");
        row["happened"] = happened.into();
        put(directory.path(), "chaos-b.json", &json!([row]));
        refused(&directory, "broke a promise");
    }
}

#[test]
fn a_fault_that_was_never_simulated_is_missed() {
    let directory = whole();
    let mut schedules = run(&Value::Null);
    schedules["faults"] = json!({});
    put(directory.path(), "simulation-schedules.json", &schedules);
    refused(&directory, "the fault crash was never injected");
}

#[test]
fn each_half_has_its_own_sections_and_its_own_date() {
    let (pace, tasks) = (whole(), whole_of_tasks());
    let mut report = Report::default();
    report.put(Layer::Pace, collect(pace.path(), Layer::Pace, machine()).unwrap());
    let pace_alone = render(&report);
    assert!(!pace_alone.contains("## Stored tasks"));
    let later =
        Machine { date: "2026-02-01".into(), command: "scripts/reliability long tasks".into(), ..machine() };
    report.put(Layer::Tasks, collect(tasks.path(), Layer::Tasks, later).unwrap());
    let page = render(&report);
    let (first, second) = page.split_once("## Stored tasks").unwrap();
    assert!(pace_alone.starts_with(first), "the other half stays as it was");
    let (second, both) = second.split_once("## Malformed input").unwrap();
    for part in [
        "T12",
        "2026-02-01",
        "long tasks",
        "7,654",
        "8,765",
        "54,321",
        "T2: two runs",
        "any token",
        "5432 states",
        "13.5",
    ] {
        assert!(second.contains(part), "{part} is not in that half:\n{second}");
    }
    assert!(!second.contains("the dead live on") && !first.contains("any token"), "each has its own rules");
    assert!(both.contains("the URL") && both.contains("the rows"), "{both}");
    assert!(both.contains("### Of stored tasks"), "{both}");
}

#[test]
fn evidence_of_the_other_half_is_refused() {
    refused_as(
        &whole(),
        Layer::Tasks,
        "counts early, jobs, slots, started: it should count runs, steps, tasks",
    );
    refused(&whole_of_tasks(), "counts runs, steps, tasks: it should count early");
    let directory = whole_of_tasks();
    fs::remove_file(directory.path().join("task-model-two-workers.json")).unwrap();
    refused_as(&directory, Layer::Tasks, "no task-model-*.json");
    let directory = whole_of_tasks();
    let mut row = task_chaos();
    row["happened"] = "9 tasks, 11 runs; 1 promises broken, 1 of them runs at the same time".into();
    put(directory.path(), "task-chaos-a.json", &json!([row]));
    refused_as(&directory, Layer::Tasks, "broke a promise");
}
