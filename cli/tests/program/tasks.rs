//! `add` and `tasks`: stored tasks from outside.

use std::fs;

use serde_json::{Value, json};

use crate::{
    place_tests::Backend,
    process::{text, wait_until},
};

fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}

pub(crate) fn add(place: &Backend, args: &[&str]) -> Vec<String> {
    lines(&place.ok(&[&["add"], args].concat()))
}

pub(crate) fn overview(place: &Backend) -> Value {
    serde_json::from_str(&place.ok(&["tasks", "--json", "--over", "0s"])).unwrap()
}

/// What the options select, by its payloads.
fn listed(place: &Backend, options: &[&str]) -> Vec<Value> {
    let listed = place.ok(&[&["tasks", "list", "--json", "--payloads"], options].concat());
    listed.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["payload"].clone()).collect()
}

fn state(place: &Backend, id: &str) -> String {
    let task: Value = serde_json::from_str(&place.ok(&["tasks", "show", id, "--json"])).unwrap();
    task["state"].as_str().unwrap().to_owned()
}

#[test]
fn each_argument_is_a_task_with_an_id() {
    let place = Backend::sqlite();
    let options = [
        "--kind",
        "k",
        "--priority",
        "-3",
        "--key",
        "a",
        "--ordered",
        "--delay",
        "1h",
        "--tag",
        "x",
        "--tag",
        "y",
    ];
    let ids = add(
        &place,
        &[&options[..], &["--max-attempts", "2", "--weight", "3", "1", "-2", "{\"a\": []}"]].concat(),
    );
    assert_eq!(ids.len(), 3);
    let task: Value = serde_json::from_str(&place.ok(&["tasks", "show", &ids[1], "--json"])).unwrap();
    for (field, value) in [
        ("id", json!(ids[1])),
        ("kind", json!("k")),
        ("priority", json!(-3)),
        ("key", json!("a")),
        ("ordered", json!(true)),
        ("tags", json!(["x", "y"])),
        ("own_policy", json!({"max_attempts": 2})),
        ("weight", json!(3)),
        ("payload", json!(-2)),
    ] {
        assert_eq!(task[field], value, "{field} of {task:#}");
    }
    assert_eq!(task["not_before_us"].as_u64().unwrap() - task["added_us"].as_u64().unwrap(), 3_600_000_000);
    assert_eq!(listed(&place, &[]), [json!(1), json!(-2), json!({ "a": [] })]);
    assert_eq!(place.ok(&["add", "-q", "4"]), "");
}

#[test]
fn each_line_is_a_task() {
    let place = Backend::sqlite();
    let input: String = (0..2_500).map(|n| format!("{{\"n\": {n}}}\n")).collect();
    fs::write(place.path("input"), input).unwrap();
    let output = place.shell("\"$IQ\" add - < input > ids").finish();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let ids = lines(&fs::read_to_string(place.path("ids")).unwrap());
    assert_eq!(ids.len(), 2_500);
    assert_eq!(overview(&place)["left"], 2_500);
    // All pages of it.
    assert!(place.shell("\"$IQ\" tasks list --json --payloads > list").finish().status.success());
    let list = fs::read_to_string(place.path("list")).unwrap();
    let list: Vec<Value> = list.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for (n, (task, id)) in list.iter().zip(&ids).enumerate() {
        assert_eq!((&task["payload"]["n"], &task["id"]), (&json!(n), &json!(id)));
    }
    assert_eq!(list.len(), 2_500);
}

#[test]
fn lines_are_added_as_they_come() {
    let place = Backend::sqlite();
    let waiting =
        place.shell("{ echo 1; while ! [ -e stop ]; do sleep 0.05; done; echo 2; } | \"$IQ\" add -");
    let count =
        || place.run(&["tasks", "--json", "--over", "0s"]).status.success() && overview(&place)["left"] == 1;
    wait_until("the first is there while the second is not", count);
    fs::write(place.path("stop"), "").unwrap();
    assert!(waiting.finish().status.success());
    assert_eq!(overview(&place)["left"], 2);
}

#[test]
fn an_invalid_line_is_reported_after_earlier_ones_are_added() {
    let place = Backend::sqlite();
    let cases = [
        ("1\\n2\\nhello\\n4\\n", "line 3: hello is no JSON", "the 2 tasks before it were added", 2),
        ("oops\\n2\\n", "line 1: oops is no JSON", "nothing was added", 0),
        ("1\\n{\"a\": \\n", "line 2: {\"a\": is no JSON", "the task before it was added", 1),
    ];
    let mut all = 0;
    for (input, says, added, count) in cases {
        let output = place.shell(&format!("printf '{input}' | \"$IQ\" add -")).finish();
        assert_eq!(output.status.code(), Some(65), "{output:?}");
        let error = text(&output.stderr);
        assert!(error.contains(says) && error.contains(added), "{error}");
        assert_eq!(lines(&text(&output.stdout)).len(), count);
        all += count;
    }
    assert_eq!(overview(&place)["left"], all);
    let large = "printf '\"'; head -c 1099998 /dev/zero | tr '\\0' '1'; printf '\"'";
    let output = place.shell(&format!("{{ echo 1; {large}; echo; echo 3; }} | \"$IQ\" add -")).finish();
    assert_eq!(output.status.code(), Some(65), "{output:?}");
    assert!(
        text(&output.stderr)
            .contains("line 2 has 1100000 bytes: a payload of this queue has at most 1048576"),
        "{output:?}"
    );
    assert_eq!(overview(&place)["left"], all + 1);
}

#[test]
fn invalid_tasks_are_reported_and_not_stored() {
    let place = Backend::sqlite();
    for (args, says) in [
        (&["hello"][..], "text needs quotes"),
        (&["1", "hello"], "hello is no JSON"),
        (&["1", "-"], "- is stdin"),
        (&["--unique", "x", "1", "2"], "--unique is for one task"),
        (&["--priority", "101", "1"], "-100..=100"),
        (&["--ordered", "1"], "--key"),
        (&["--max-attempts", "0", "1"], "1..=1000000"),
        (&["--kind", "", "1"], "1 to 200"),
        (&["--delay", "20years", "1"], "at most 10years"),
        (&["--delay", "5", "1"], "5s"),
        (&[], "JSON|-"),
    ] {
        let output = place.run(&[&["add"], args].concat());
        assert_eq!(output.status.code(), Some(64), "{args:?}: {output:?}");
        assert!(text(&output.stderr).contains(says), "{args:?}: {output:?}");
        assert!(output.stdout.is_empty());
    }
    let output = place.run(&["tasks"]);
    assert_eq!(output.status.code(), Some(66), "{output:?}");
}

#[test]
fn of_a_unique_name_the_first_one_stands() {
    let place = Backend::sqlite();
    let first = add(&place, &["--unique", "digest", "1"]);
    let second = place.run(&["add", "--unique", "digest", "2"]);
    assert!(second.status.success());
    assert_eq!(lines(&text(&second.stdout)), first);
    let says = format!("nothing was added: task {} holds the unique name \"digest\"", first[0]);
    assert!(text(&second.stderr).contains(&says), "{second:?}");
    assert_eq!(listed(&place, &["--unique", "digest"]), [json!(1)]);
}

#[test]
fn selectors_select() {
    let place = Backend::sqlite();
    add(&place, &["--kind", "a", "--key", "k", "1"]);
    add(&place, &["--kind", "b", "--tag", "t", "2"]);
    let failing = add(&place, &["--kind", "c", "--max-attempts", "1", "3"]);
    let script = "echo 'no connection' >&2; exit 1";
    place.ok(&["work", "--until-empty", "--kind", "c", "--", "sh", "-c", script]);
    let worker: Value = serde_json::from_str(&place.ok(&["tasks", "show", &failing[0], "--json"])).unwrap();
    let worker = worker["worker"].as_str().unwrap();
    for (options, payloads) in [
        (&["--kind", "a"][..], &[1][..]),
        (&["--kind", "a", "--kind", "b"], &[1, 2]),
        (&["--key", "k"], &[1]),
        (&["--tag", "t"], &[2]),
        (&["--state", "failed"], &[3]),
        (&["--state", "failed", "--state", "done"], &[3]),
        (&["--error", "no connection"], &[3]),
        (&["--worker", worker], &[3]),
        (&[&failing[0]], &[3]),
        (&["--older-than", "1us"], &[1, 2, 3]),
        (&["--older-than", "1us", "--state", "failed"], &[3]),
    ] {
        let expected: Vec<_> = payloads.iter().map(|payload| json!(payload)).collect();
        assert_eq!(listed(&place, options), expected, "{options:?}");
    }
    for options in [&["--kind", "d"][..], &["--older-than", "1h"], &["--error", "disk"]] {
        let output = place.run(&[&["tasks", "list"], options].concat());
        assert_eq!(output.status.code(), Some(66), "{options:?}: {output:?}");
        assert!(text(&output.stderr).contains("no task matches"), "{output:?}");
    }
    let list = place.ok(&["tasks", "list"]);
    assert!(list.starts_with("ID ") && list.contains("no connection") && !list.contains("payload"), "{list}");
    // A URL behind the subcommand is where the queue is.
    let output = place
        .command(&["tasks", "list", "--store", &place.url(), "--queue", "mail", "--state", "failed"])
        .env_remove("INTERVAL_QUEUE_STORE")
        .env_remove("INTERVAL_QUEUE_NAME")
        .output()
        .unwrap();
    assert!(text(&output.stdout).contains(&failing[0]), "{output:?}");
}

#[test]
fn verbs_do_what_their_dry_run_says() {
    let place = Backend::sqlite();
    let ids = add(&place, &["--tag", "x", "1", "2"]);
    let late = add(&place, &["--delay", "1h", "3"]);
    let verb = |args: &[&str]| {
        let output = place.run(&[&["tasks"], args].concat());
        (output.status.code(), lines(&text(&output.stdout)), text(&output.stderr))
    };
    let (code, touched, said) = verb(&["cancel", "--tag", "x", "--dry-run"]);
    assert_eq!((code, &touched), (Some(0), &ids), "{said}");
    assert!(said.contains("dry run: 2 tasks would be cancelled"), "{said}");
    assert_eq!(overview(&place)["counts"]["cancelled"], 0);
    let (code, touched, said) = verb(&["cancel", "--tag", "x", "--limit", "1"]);
    assert_eq!((code, &touched[..]), (Some(0), &ids[..1]), "{said}");
    let (code, touched, said) = verb(&["cancel", "--tag", "x"]);
    assert_eq!((code, &touched[..]), (Some(0), &ids[1..]), "{said}");
    assert_eq!(overview(&place)["counts"]["cancelled"], 2);
    assert_eq!(verb(&["cancel", "--tag", "x", "--limit", "0"]).0, Some(64));
    let (code, _, said) = verb(&["cancel", "--flow", "f", "--limit", "1"]);
    assert!(code == Some(64) && said.contains("--limit cannot change a part of a graph"), "{said}");
    let (code, touched, said) = verb(&["cancel", "--tag", "x"]);
    assert_eq!((code, touched.len()), (Some(66), 0), "{said}");
    assert!(said.contains("no task that can be cancelled"), "{said}");
    assert_eq!(verb(&["retry", &ids[0]]).1, [ids[0].clone()]);
    assert_ne!(state(&place, &ids[0]), "cancelled");
    assert_eq!(verb(&["release", "--delay", "x"]).0, Some(64));
    place.ok(&["work", "--until-empty", "--kind", "none", "--", "true"]);
    wait_until("the first step has let it through", || {
        place.ok(&["work", "--until-empty", "--kind", "none", "--", "true"]);
        state(&place, &late[0]) == "scheduled"
    });
    assert_eq!(verb(&["release", "--state", "scheduled"]).1, late);
    assert_ne!(state(&place, &late[0]), "scheduled");
    assert_eq!(verb(&["purge", "--state", "cancelled"]).1, [ids[1].clone()]);
    for verb_name in ["cancel", "retry", "release", "purge"] {
        let (code, _, said) = verb(&[verb_name]);
        assert_eq!(code, Some(64), "{said}");
        assert!(said.contains("--all"), "{said}");
    }
    assert_eq!(verb(&["cancel", "--all"]).1.len(), 2);
    let (code, _, said) = verb(&["show", "17"]);
    assert_eq!(code, Some(64));
    assert!(said.contains("\"17\" is no task id: give it as in"), "{said}");
    let (code, _, said) = verb(&["show", "01957b6e-5e1a-7c3e-9a53-0c6e3a1f2b4d"]);
    assert_eq!(code, Some(66));
    assert!(said.contains("there is no task 01957b6e"), "{said}");
}

#[test]
fn verbs_change_what_tasks_are() {
    let place = Backend::sqlite();
    let ids = add(&place, &["--tag", "x", "1", "2"]);
    let verb = |args: &[&str]| {
        let output = place.run(&[&["tasks"], args].concat());
        (output.status.code(), lines(&text(&output.stdout)), text(&output.stderr))
    };
    let shows = |id: &str, line: &str| {
        let shown = place.ok(&["tasks", "show", id]);
        assert!(shown.contains(line), "{line:?} in {shown}");
    };
    let (code, touched, said) = verb(&["priority", "--to", "-5", "--tag", "x"]);
    assert_eq!((code, &touched), (Some(0), &ids), "{said}");
    assert!(said.contains("2 tasks have another priority"), "{said}");
    shows(&ids[0], "priority    -5");
    assert_eq!(verb(&["priority", "--to", "-5", "--tag", "x"]).0, Some(66), "they have it");
    assert_eq!(verb(&["delay", "--by", "1h", &ids[0]]).1, ids[..1]);
    shows(&ids[0], "why         its time comes in 59m");
    assert_eq!(verb(&["tag", "--add", "y", &ids[1]]).1, ids[1..]);
    shows(&ids[1], "tags        x, y");
    assert_eq!(verb(&["tag", "--remove", "x", "--all"]).1, ids);
    shows(&ids[1], "tags        y");
    for n in 1..32 {
        assert_eq!(verb(&["tag", "--add", &format!("t{n}"), &ids[1]]).0, Some(0));
    }
    let (code, _, said) = verb(&["tag", "--add", "more", "--all"]);
    assert_eq!(code, Some(75), "{said}");
    assert!(said.contains("1 task unchanged: a task has at most 32 tags"), "{said}");
    let wrong: [(&[&str], i32, &str); 6] = [
        (&["priority", "--to", "5"], 64, "--all"),
        (&["priority", "--to", "101", "--all"], 64, "priority 101: give -100 to 100"),
        (&["priority", "--all"], 64, "--to"),
        (&["delay", "--by", "20years", "--all"], 64, "20years is out of range: give at most 10years"),
        (&["tag", "--all"], 64, "--add"),
        (&["tag", "--add", "a", "--remove", "b", "--all"], 64, "cannot be used with"),
    ];
    for (args, wanted, says) in wrong {
        let (code, _, said) = verb(args);
        assert_eq!(code, Some(wanted), "{args:?}: {said}");
        assert!(said.contains(says), "{args:?}: {said}");
    }
}

#[test]
fn a_queue_says_why_nothing_runs() {
    let place = Backend::sqlite();
    let says = |standing: &str, words: &str| {
        let object = overview(&place);
        assert_eq!(object["status"], standing, "{object:#}");
        assert!(object["reason"].as_str().unwrap().contains(words), "{object:#}");
        let shown = place.ok(&["tasks", "--over", "0s"]);
        assert!(shown.contains(words), "{shown}");
    };
    let ids = add(&place, &["1"]);
    says("no_worker", "no worker is there");
    let _other = place.spawn(&["work", "--kind", "other", "--label", "the other", "--", "true"]);
    wait_until("it is there", || place.ok(&["tasks", "--over", "0s"]).contains("the other"));
    says("unserved", "no worker serves kind default, 1 task");
    let shown = place.ok(&["tasks", "show", &ids[0]]);
    assert!(shown.contains("no live worker serves its kind"), "{shown}");
    place.ok(&["pause"]);
    says("paused", "interval-queue resume");
    let paused = place.ok(&["status"]);
    assert!(paused.contains("tasks    1 ready; paused, since 20"), "{paused}");
    place.ok(&["resume"]);
    assert_eq!(place.ok(&["pause", "--kind", "default"]), "mail: stored tasks of kind \"default\" paused\n");
    let shown = place.ok(&["tasks", "show", &ids[0]]);
    assert!(shown.contains("its kind is paused: `interval-queue resume --kind default` ends it"), "{shown}");
    says("kind_paused", "paused: kind default, 1 task, since 20");
    place.ok(&["resume", "--kind", "default"]);
    assert_eq!(
        place.ok(&["pause", "--key", "k", "--key", "l"]),
        "mail: stored tasks of key \"k\" paused\nmail: stored tasks of key \"l\" paused\n"
    );
    let mistyped = place.run(&["pause", "--key", "l"]);
    assert!(text(&mistyped.stderr).contains("warning: no task of key \"l\" is stored now"), "{mistyped:?}");
    let keyed = add(&place, &["--key", "k", "--kind", "other", "1"]);
    assert_eq!(text(&place.run(&["pause", "--key", "k"]).stderr), "");
    wait_until("it waits for its key", || {
        place.ok(&["tasks", "show", &keyed[0]]).contains("its key is paused: `interval-queue resume --key k`")
    });
    // Whatever comes first, a pause of a part is told.
    let object = overview(&place);
    assert_eq!(object["paused_keys"][0]["key"], "k", "{object:#}");
    assert_eq!(object["paused_keys"][0]["tasks"], 1, "{object:#}");
    for shown in [place.ok(&["tasks", "--over", "0s"]), place.ok(&["status"]), place.ok(&["list"])] {
        let shown: String = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(shown.contains("paused: key k, 1 task, since 20"), "{shown}");
    }
    let status: Value = serde_json::from_str(&place.ok(&["status", "--json"])).unwrap();
    assert_eq!(status["tasks"]["also"][0]["status"], "key_paused", "{status:#}");
    place.ok(&["tasks", "cancel", "--all"]);
    place.ok(&["resume", "--key", "k", "--key", "l"]);
    says("empty", "no task waits");
    add(&place, &["--delay", "1h", "--kind", "other", "2"]);
    wait_until("a worker has let it through", || overview(&place)["counts"]["scheduled"] == 1);
    says("time", "the first one in 59m");
    let worker = place.spawn(&["work", "--", "sleep", "1000"]);
    add(&place, &["3"]);
    wait_until("it runs", || overview(&place)["status"] == "running");
    drop(worker);
}

#[test]
fn a_worker_that_was_killed_is_not_counted_on() {
    let place = Backend::sqlite();
    let mut worker = place.spawn(&["work", "--lease", "1s", "--kind", "other", "--", "true"]);
    wait_until("it is there", || place.run(&["tasks", "--over", "0s"]).status.success());
    assert_eq!(worker.ended(), None);
    add(&place, &["--kind", "other", "--delay", "1h", "1"]);
    worker.signal(rustix::process::Signal::KILL);
    // A step that it has begun may still renew its lease.
    worker.finish();
    // Nobody steps, so that nobody holds it for dead either.
    wait_until("it is told that no worker is there", || overview(&place)["status"] == "no_worker");
    let object = overview(&place);
    assert_eq!(object["workers"][0]["lease_left_us"], json!(null), "{object:#}");
    assert_eq!(object["kinds"][0]["served"], json!(false), "{object:#}");
}

#[test]
fn runs_of_a_worker_that_was_killed_are_lost() {
    let place = Backend::sqlite();
    let ids = add(&place, &["1", "2"]);
    let worker = place.spawn(&["work", "--lease", "1s", "--jobs", "2", "--", "sleep", "1000"]);
    wait_until("both run", || overview(&place)["counts"]["leased"] == 2);
    assert_eq!(overview(&place)["status"], "running");
    worker.signal(rustix::process::Signal::KILL);
    // A step that it has begun may still renew its lease.
    worker.finish();
    wait_until("its lease has ended", || overview(&place)["status"] == "no_worker");
    let object = overview(&place);
    assert_eq!((&object["lost"], &object["also"][0]["status"]), (&json!(2), &json!("lost")), "{object:#}");
    for shown in [place.ok(&["tasks", "--over", "0s"]), place.ok(&["status"]), place.ok(&["list"])] {
        let shown: String = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(shown.contains("no worker is there"), "{shown}");
        assert!(shown.contains("2 lost, waiting for a worker"), "{shown}");
    }
    let why = place.ok(&["tasks", "why", &ids[0]]);
    let why: String = why.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(why.contains("the lease of its worker has ended") && why.contains("no worker is there"), "{why}");
}

#[test]
fn a_setting_before_the_first_task_creates_the_queue() {
    let settings: [(&[&str], &str); 4] = [
        (&["tasks", "set", "--max-running", "3"], "at most 3 running"),
        (&["pause"], "stored tasks paused; the queue is new"),
        (&["pause", "--kind", "default"], "stored tasks of kind \"default\" paused"),
        (&["pause", "--key", "k"], "stored tasks of key \"k\" paused"),
    ];
    for (args, says) in settings {
        let place = Backend::sqlite();
        assert!(place.ok(args).contains(says), "{args:?}");
        add(&place, &["--key", "k", "1"]);
        let object = overview(&place);
        let is_set = object["max_running"] == 3 || object["paused"] == true;
        let is_paused =
            object["paused_kinds"][0]["kind"] == "default" || object["paused_keys"][0]["key"] == "k";
        assert!(is_set || is_paused, "{args:?}: {object:#}");
    }
    let place = Backend::sqlite();
    for args in [&["resume"][..], &["resume", "--key", "k"], &["tasks", "set"], &["tasks", "cancel", "--all"]]
    {
        assert_eq!(place.run(args).status.code(), Some(66), "{args:?}");
    }
    assert_eq!(place.ok(&["list", "--json"]), "[]\n");
    let zero = place.run(&["tasks", "set", "--key-limit", "0"]);
    assert!(text(&zero.stderr).contains("give at least 1; to pause one key, run"), "{zero:?}");
}

#[test]
fn a_queue_of_tasks_is_one_row_with_or_without_a_pace() {
    let place = Backend::sqlite();
    add(&place, &["1", "2"]);
    let rows = || place.ok(&["list"]).lines().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(rows().len(), 2);
    assert!(rows()[1].starts_with("mail   -      -     2 ready"), "{:?}", rows());
    let list: Value = serde_json::from_str(&place.ok(&["list", "--json"])).unwrap();
    assert_eq!((&list[0]["status"], &list[0]["tasks"]["left"]), (&json!("no_worker"), &json!(2)), "{list:#}");
    assert!(place.ok(&["set", "--every", "250ms"]).contains("one start every 250ms"));
    assert_eq!(rows().len(), 2);
    assert!(rows()[1].contains("250ms") && rows()[1].contains("2 ready"), "{:?}", rows());
    assert!(rows()[1].contains("no worker is there"), "{:?}", rows());
    let status = place.status();
    assert_eq!((&status["interval_us"], &status["tasks"]["left"]), (&json!(250_000), &json!(2)));
    // There is no such queue at all.
    assert_eq!(place.run(&["set", "--every", "1s", "--queue", "other"]).status.code(), Some(66));
}

#[test]
fn words_of_other_programs_name_the_right_command() {
    let place = Backend::sqlite();
    add(&place, &["1"]);
    for (word, right) in [
        ("pause", "interval-queue pause"),
        ("resume", "interval-queue resume"),
        ("drain", "SIGTERM"),
        ("stats", "interval-queue tasks"),
    ] {
        let output = place.run(&["tasks", word, "--all"]);
        assert_eq!(output.status.code(), Some(64), "{word}");
        assert!(text(&output.stderr).contains(right), "{word}: {output:?}");
    }
    let kill = place.run(&["kill", "--all"]);
    assert_eq!(kill.status.code(), Some(64));
    assert!(text(&kill.stderr).contains("tip: `interval-queue tasks cancel`"), "{kill:?}");
    let id = place.ok(&["push", "--at", "2100-01-01T00:00:00Z", "2"]);
    assert!(place.ok(&["job", "ls", "--state", "scheduled"]).contains(id.trim()));
    let early = place.run(&["tasks", "rm", id.trim()]);
    assert!(
        text(&early.stderr).contains("can be purged; cancel tasks that have not ended first"),
        "{early:?}"
    );
    place.ok(&["tasks", "revoke", id.trim()]);
    place.ok(&["tasks", "rm", id.trim()]);
    place.ok(&["worker", "-c", "2", "--until-empty", "--", "true"]);
    let state = place.run(&["tasks", "--state", "failed"]);
    assert_eq!(state.status.code(), Some(64));
    assert!(text(&state.stderr).contains("tasks list --state failed"), "{state:?}");
    let delay = place.run(&["add", "--delay", "9999years", "1"]);
    assert!(text(&delay.stderr).contains("9999years is out of range: give at most 10years"), "{delay:?}");
}

#[test]
fn invisible_characters_are_escaped() {
    let place = Backend::sqlite();
    add(&place, &["--kind", "a\u{202e}b", "--key", "k\u{200b}", "1"]);
    for args in [&["tasks", "list"][..], &["tasks", "--over", "0s"], &["list"]] {
        let shown = place.ok(args);
        assert!(!shown.contains(['\u{202e}', '\u{200b}']), "{args:?}: {shown}");
    }
    let listed = place.ok(&["tasks", "list"]);
    assert!(listed.contains("a\\u{202e}b") && listed.contains("k\\u{200b}"), "{listed}");
}

#[test]
fn status_and_pause_include_tasks_without_a_rate() {
    let place = Backend::sqlite();
    add(&place, &["1"]);
    let status = place.ok(&["status"]);
    assert!(status.contains("queue    mail") && status.contains("tasks    1 ready"), "{status}");
    let unpaced = place.status();
    assert_eq!(
        (&unpaced["status"], &unpaced["tasks"]["left"]),
        (&json!("no_worker"), &json!(1)),
        "{unpaced:#}"
    );
    assert!(unpaced.get("interval_us").is_none(), "{unpaced:#}");
    assert_eq!(place.ok(&["pause"]), "mail: no rate, stored tasks paused\n");
    assert_eq!(overview(&place)["paused"], true);
    place.ok(&["run", "--every", "1ms", "--", "true"]);
    let resumed = place.ok(&["resume"]);
    assert!(resumed.ends_with("neither paused nor held, stored tasks not paused\n"), "{resumed}");
    let tasks = &place.status()["tasks"];
    assert_eq!((&tasks["counts"]["ready"], &tasks["longest_run_us"]), (&json!(1), &json!(null)));
    assert!(tasks["oldest_ready_us"].as_u64() > Some(0), "{tasks:#}");
    let _worker = place.spawn(&["work", "--", "sleep", "1000"]);
    wait_until("it runs", || place.ok(&["status"]).contains("the longest run takes"));
    assert!(place.status()["tasks"]["longest_run_us"].is_u64());
    let object = overview(&place);
    assert_eq!(object["longest_run"]["state"], "leased", "{object:#}");
    let shown = place.ok(&["tasks", "--over", "0s"]);
    let longest = format!("longest  {}", object["longest_run"]["id"].as_str().unwrap());
    assert!(shown.contains(&longest), "{shown}");
    assert_eq!(overview(&place)["paused"], false);
}

#[test]
fn a_look_at_tasks_makes_no_database() {
    let place = Backend::sqlite();
    for args in [&["tasks"][..], &["tasks", "list"], &["tasks", "cancel", "--all"], &["status"]] {
        let output = place.run(args);
        assert_eq!(output.status.code(), Some(66), "{args:?}: {output:?}");
        assert!(!place.path("data/queues.db").exists(), "{args:?}");
    }
}

#[test]
fn a_bare_path_is_a_directory_of_files() {
    let place = Backend::file();
    let ok = |args: &[&str]| {
        let output =
            crate::process::Process::spawn(place.command(args).env("INTERVAL_QUEUE_STORE", "./jobs 100%"))
                .finish();
        assert!(output.status.success(), "{args:?}: {output:?}");
        text(&output.stdout)
    };
    let ids = lines(&ok(&["add", "{\"to\": \"ada\"}", "2"]));
    let jobs = place.path("jobs 100%/mail");
    let ready = jobs.join("ready/000000").join(format!("{}.json", ids[1]));
    let written = fs::read_to_string(&ready).unwrap();
    fs::write(&ready, written.replace("\"payload\": 2", "\"payload\": 3")).unwrap();
    fs::write(jobs.join("drop/.new"), "{\"payload\": \"dropped\"}").unwrap();
    fs::rename(jobs.join("drop/.new"), jobs.join("drop/new")).unwrap();
    let seen: Value = serde_json::from_str(&ok(&["tasks", "--json", "--over", "0s"])).unwrap();
    assert_eq!(seen["counts"]["ready"], 3);
    ok(&["work", "--until-empty", "--every", "1ms", "--", "cat"]);
    let listed = ok(&["tasks", "list", "--json", "--payloads", "--state", "done"]);
    let results: Vec<Value> =
        listed.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["result"].clone()).collect();
    assert_eq!(results, [json!({"to": "ada"}), json!(3), json!("dropped")]);
    // The pace is beside them.
    assert!(ok(&["status"]).contains("every 1ms"));
    assert!(place.path("jobs 100%/pace.json").exists());
}

#[test]
fn a_unique_name_keeps_replaces_or_refuses() {
    let place = Backend::sqlite();
    let listed = || {
        let lines = place.ok(&["tasks", "list", "--json", "--payloads"]);
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>()
    };
    let first = add(&place, &["--unique", "r", "--delay", "1h", "1"]);
    assert_eq!(add(&place, &["--unique", "r", "2"]), first);
    assert_eq!(listed()[0]["payload"], 1, "it is kept");
    assert_eq!(add(&place, &["--unique", "r", "--on-conflict", "replace", "--delay", "2h", "3"]), first);
    let replaced = &listed()[0];
    assert_eq!(replaced["payload"], 3);
    let delay = replaced["not_before_us"].as_u64().unwrap() - replaced["added_us"].as_u64().unwrap();
    assert!(delay >= 7_200_000_000, "the delay counts from the last one: {replaced:#}");
    let refused = place.run(&["add", "--unique", "r", "--on-conflict", "refuse", "4"]);
    assert_eq!(refused.status.code(), Some(75), "{refused:?}");
    let error = text(&refused.stderr);
    let says =
        format!("task {} has the unique name \"r\" and is in state added: nothing was added", first[0]);
    assert!(error.contains(&says) && error.lines().count() == 1, "{error}");
    let flow = r#"[{"name": "a", "payload": 1, "unique": "r", "on_conflict": "refuse"}]"#;
    fs::write(place.path("flow"), flow).unwrap();
    let refused = place.run(&["add", "--flow", "flow"]);
    assert_eq!(refused.status.code(), Some(75), "{refused:?}");
    assert!(text(&refused.stderr).contains(&says), "{refused:?}");
    assert_eq!(listed().len(), 1);
    for args in [&["add", "--on-conflict", "keep", "1"][..], &["add", "--unique-until-leased", "1"]] {
        assert!(text(&place.run(args).stderr).contains("--unique <NAME>"), "{args:?}");
    }
    // A name that ends with the start of its task.
    add(&place, &["--unique", "s", "--unique-until-leased", "--kind", "k", "1"]);
    let worker = place.spawn(&["work", "--kind", "k", "--", "sleep", "1000"]);
    wait_until("it runs", || overview(&place)["counts"]["leased"] == 1);
    add(&place, &["--unique", "s", "--unique-until-leased", "--kind", "k", "2"]);
    assert_eq!(listed().len(), 3);
    drop(worker);
}

#[test]
fn a_task_starts_and_ends_at_given_times() {
    let place = Backend::sqlite();
    add(&place, &["--not-before", "2100-01-01T00:00:00Z", "--deadline-at", "2100-01-02T01:00:00+01:00", "1"]);
    let task: Value = serde_json::from_str(place.ok(&["tasks", "list", "--json"]).trim()).unwrap();
    let day = 86_400_000_000_u64;
    assert_eq!(task["not_before_us"], 47_482 * day);
    assert_eq!(task["deadline_us"], 47_483 * day);
    for (args, says) in [
        (
            &["add", "--not-before", "tomorrow", "1"][..],
            "\"tomorrow\" is no time with an offset: write for example",
        ),
        (&["add", "--not-before", "2100-01-01T00:00:00Z", "--delay", "1s", "1"], "cannot be used with"),
        (&["add", "--deadline-at", "2100-01-01T00:00:00Z", "--deadline", "1s", "1"], "cannot be used with"),
        (&["add", "--flow", "-", "--not-before", "2100-01-01T00:00:00Z"], "cannot be used with"),
    ] {
        let refused = place.run(args);
        assert_eq!(refused.status.code(), Some(64), "{args:?}: {refused:?}");
        assert!(text(&refused.stderr).contains(says), "{args:?}: {refused:?}");
    }
}
