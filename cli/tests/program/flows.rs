//! Tasks that wait for each other, from outside.

use std::{fs, process::Output};

use serde_json::{Value, json};

use crate::{
    place_tests::Backend,
    process::{text, wait_until},
    pty::Terminal,
};

/// Of `fetch`, two behind it, one that joins them, and one that runs whatever happens.
fn pipeline() -> Value {
    json!({
        "tell": {"kind": "tell", "payload": "ada", "after": {"name": "join", "as": "sum", "on_failure": "run"}},
        "join": {"kind": "join", "after": ["left", "right"], "tags": ["sums"]},
        "left": {"kind": "count", "payload": 1, "after": "fetch"},
        "right": {"kind": "count", "payload": 2, "after": "fetch", "max_attempts": 1},
        "fetch": {"kind": "fetch", "payload": {"url": "https://example.com"}, "priority": 3},
    })
}

/// Adds what is in a file, with these options.
fn add(place: &Backend, flow: &Value, options: &[&str]) -> Output {
    let file = place.path("flow.json");
    fs::write(&file, flow.to_string()).unwrap();
    place.run(&[&["add", "--flow", file.to_str().unwrap()], options].concat())
}

fn ids(output: &Output) -> Value {
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice::<Value>(&output.stdout).unwrap()
}

fn task(place: &Backend, id: &Value) -> Value {
    serde_json::from_str(&place.ok(&["tasks", "show", id.as_str().unwrap(), "--json"])).unwrap()
}

/// Runs all kinds: tasks of the kind `count` give their payload or fail if it is this one.
fn work(place: &Backend, fails: &str) {
    let script = format!("read n; test \"$n\" = {fails} && exit 65; echo \"$n\"");
    let kinds = ["fetch", "count", "join", "tell"].map(|kind| ["--kind", kind]).concat();
    place.run(&[&["work", "--until-empty"], &kinds[..], &["--", "sh", "-c", &script]].concat());
}

#[test]
fn done_tasks_run_again() {
    let place = Backend::sqlite();
    let tasks = ids(&add(&place, &pipeline(), &["--json", "--flow-id", "night"]))["tasks"].clone();
    work(&place, "none");
    let nothing = place.run(&["tasks", "retry", "--flow", "night"]);
    assert_eq!(nothing.status.code(), Some(66), "all is done: {nothing:?}");
    let of_join = ["tasks", "retry", "--downstream", "--done", tasks["join"].as_str().unwrap()];
    assert_eq!(place.ok(&of_join).lines().count(), 2);
    assert_eq!(place.ok(&["tasks", "retry", "--flow", "night", "--done"]).lines().count(), 3, "two wait");
    work(&place, "none");
    assert!(place.run(&["tasks", "wait", "--flow", "night"]).status.success());
    assert_eq!(task(&place, &tasks["join"])["attempts"].as_array().unwrap().len(), 1);
    let wrong = place.run(&["tasks", "retry", "--done", "--all"]);
    assert_eq!(wrong.status.code(), Some(64), "{wrong:?}");
    assert!(text(&wrong.stderr).contains("--done is for graphs"), "{wrong:?}");
}

#[test]
fn edges_are_made_and_removed_while_tasks_wait() {
    let place = Backend::sqlite();
    let [one, other] = ["1", "2"].map(|n| place.ok(&["add", n]).trim().to_owned());
    place.ok(&["add", "--tag", "late", "3"]);
    place.ok(&["add", "--tag", "late", "4"]);
    let link = ["tasks", "link", "--after", &one, "--as", "sum", "--on-failure", "wait"];
    let dry = place.run(&[&link[..], &["--tag", "late", "--dry-run"]].concat());
    assert!(text(&dry.stderr).contains("dry run: 2 tasks would wait for one more task"), "{dry:?}");
    let linked = place.run(&[&link[..], &["--tag", "late", "--json"]].concat());
    let linked: Value = serde_json::from_slice(&linked.stdout).unwrap();
    assert_eq!((&linked["verb"], &linked["count"]), (&json!("link"), &json!(2)));
    let edge = json!({"id": one, "name": "sum", "on_failure": "wait", "state": "new"});
    assert_eq!(task(&place, &linked["ids"][0])["upstreams"], json!([edge]));
    let nothing = place.run(&[&link[..], &["--tag", "late"]].concat());
    assert_eq!(nothing.status.code(), Some(66), "they are linked: {nothing:?}");
    let itself = place.run(&["tasks", "link", "--after", &one, &one]);
    assert_eq!(itself.status.code(), Some(75), "{itself:?}");
    assert!(text(&itself.stderr).contains("they would wait for themselves"), "{itself:?}");
    let strange = linked["ids"][1].as_str().unwrap();
    let unlinked = place.run(&["tasks", "unlink", "--after", &one, strange]);
    assert!(text(&unlinked.stderr).contains("1 task waits for one task less"), "{unlinked:?}");
    assert_eq!(task(&place, &linked["ids"][1])["upstreams"], json!([]));
    place.ok(&["tasks", "cancel", &other]);
    let missing = place.run(&["tasks", "link", "--after", "01957b6e-5e1a-7c3e-9a53-0c6e3a1f2b4d", strange]);
    assert_eq!(missing.status.code(), Some(66), "{missing:?}");
    assert!(text(&missing.stderr).contains("01957b6e-5e1a-7c3e-9a53-0c6e3a1f2b4d is not stored here"));
    let wrong = place.run(&["tasks", "link", "--after", &one, "--on-failure", "die", strange]);
    assert_eq!(wrong.status.code(), Some(64), "{wrong:?}");
    assert!(text(&wrong.stderr).contains("take cancel, run or wait"), "{wrong:?}");
}

#[test]
fn a_document_becomes_tasks_that_wait_for_each_other() {
    let place = Backend::sqlite();
    let added = ids(&add(&place, &pipeline(), &["--json"]));
    let (flow, tasks) = (added["flow"].as_str().unwrap(), &added["tasks"]);
    assert_eq!(tasks.as_object().unwrap().len(), 5);
    let tell = task(&place, &tasks["tell"]);
    let edge = json!({"id": tasks["join"], "name": "sum", "on_failure": "run", "state": "new"});
    assert_eq!(tell["upstreams"], json!([edge]));
    assert_eq!((&tell["payload"], &tell["kind"]), (&json!("ada"), &json!("tell")));
    let right = task(&place, &tasks["right"]);
    assert_eq!(
        (&right["own_policy"], &right["upstreams"][0]["name"]),
        (&json!({"max_attempts": 1}), &json!("fetch"))
    );
    assert_eq!(task(&place, &tasks["fetch"])["priority"], 3);
    let tags = task(&place, &tasks["join"])["tags"].clone();
    assert_eq!(tags, json!(["sums", format!("flow:{flow}"), "name:join"]));
    work(&place, "none");
    let waited = place.run(&["tasks", "wait", "--flow", flow, "--json"]);
    assert!(waited.status.success(), "{waited:?}");
    let standing: Value = serde_json::from_slice(&waited.stdout).unwrap();
    let wanted = json!({"flow": flow, "tasks": 5, "done": 5, "failed": 0, "cancelled": 0, "wrong": null});
    assert_eq!(standing, wanted);
    // As a list from the standard input; ids and names are printed in the order in which they can run.
    let list = json!([{"name": "b", "after": [tasks["tell"], "a"]}, {"name": "a"}]);
    let output = place.shell(&format!("echo '{list}' | \"$IQ\" add --flow - --flow-id more")).finish();
    let lines: Vec<String> = text(&output.stdout).lines().map(str::to_owned).collect();
    assert!(lines[0].ends_with(" a") && lines[1].ends_with(" b"), "{output:?}");
    assert!(text(&output.stderr).contains("flow more: 2 tasks"), "{output:?}");
    assert_eq!(place.ok(&["tasks", "list", "--flow", "more", "--json"]).lines().count(), 2);
}

#[test]
fn a_flow_with_an_id_is_added_once() {
    let place = Backend::sqlite();
    let first = ids(&add(&place, &pipeline(), &["--json", "--flow-id", "night"]));
    assert_eq!(ids(&add(&place, &pipeline(), &["--json", "--flow-id", "night"])), first);
    assert_eq!(first["flow"], "night");
    assert_eq!(place.ok(&["tasks", "list", "--json"]).lines().count(), 5);
    assert_eq!(text(&add(&place, &pipeline(), &["-q"]).stdout), "");
    assert_eq!(place.ok(&["tasks", "list", "--json"]).lines().count(), 10);
}

#[test]
fn invalid_flows_are_reported_and_not_stored() {
    let place = Backend::sqlite();
    let many: Vec<_> = (0..100_000).map(|n| json!({"name": n.to_string()})).collect();
    let wide: Vec<String> = (0..10_001).map(|n| n.to_string()).collect();
    let wide: Vec<_> = (wide.iter().map(|name| json!({"name": name})))
        .chain([json!({"name": "join", "after": wide})])
        .collect();
    let stranger = "01957b6e-5e1a-7c3e-9a53-0c6e3a1f2b4d";
    for (document, code, says) in [
        (
            json!({"a": {"after": "c"}, "b": {"after": "a"}, "c": {"after": ["b"]}, "d": {"after": "c"}})
                .to_string(),
            65,
            "\"a\" waits for \"c\" waits for \"b\" waits for \"a\": a task cannot wait for itself",
        ),
        (
            json!({"a": {"after": "b"}}).to_string(),
            65,
            "waits for \"b\", and the flow has no task of that name",
        ),
        (json!({"a": {"after": "a"}}).to_string(), 65, "task \"a\" of the flow waits for itself"),
        (json!([{"name": "a"}, {"name": "a"}]).to_string(), 65, "two tasks of the flow are named \"a\""),
        ("{\"a\": {}, \"a\": {}}".into(), 65, "two tasks of the flow are named \"a\""),
        (json!([{"kind": "a"}]).to_string(), 65, "task 1 of the list has no name: give it one"),
        (json!({"a": {"name": "b"}}).to_string(), 65, "task \"a\" has the name \"b\", too"),
        (json!(many).to_string(), 65, "100000 tasks in one flow: give it at most 20000"),
        (json!(wide).to_string(), 65, "task \"join\" of the flow: 10001 upstreams: name at most 10000"),
        ("hello".into(), 65, "flow.json: expected value at line 1 column 1"),
        ("7".into(), 65, "a list of tasks, or an object of tasks by name"),
        (json!(["a"]).to_string(), 65, "invalid type: string \"a\", expected a task: an object with"),
        (json!({"a": {"knd": "x"}}).to_string(), 65, "unknown field `knd`, expected one of `name`, `kind`"),
        (json!({"a": {"kind": ""}}).to_string(), 65, "kind \"\" is empty"),
        (json!({"a": {"after": 7}}).to_string(), 65, "the name of a task, an object with \"name\""),
        (
            json!({"a": {"after": {"name": "b", "on_failure": "stop"}}}).to_string(),
            65,
            "expected one of `cancel`, `run`, `wait`",
        ),
        (json!({"a": {"delay": "5"}}).to_string(), 65, "5 has no unit"),
        (
            json!({"a": {"priority": 101}}).to_string(),
            65,
            "task \"a\" of the flow: priority 101: give -100 to 100",
        ),
        (json!({"a": {"after": stranger}}).to_string(), 66, "which is not stored here"),
    ] {
        fs::write(place.path("flow.json"), &document).unwrap();
        let output = place.run(&["add", "--flow", place.path("flow.json").to_str().unwrap()]);
        let shown: String = document.chars().take(200).collect();
        assert!(text(&output.stderr).contains(says), "{shown}: {output:?}");
        assert_eq!(output.status.code(), Some(code), "{shown}: {output:?}");
        assert!(output.stdout.is_empty());
    }
    for (args, code, says) in [
        (&["add", "--flow", "/nowhere.json"][..], 66, "cannot read /nowhere.json"),
        (&["add", "--flow", "-", "1"], 64, "cannot be used with"),
        (&["add", "--flow", "-", "--kind", "x"], 64, "cannot be used with"),
        (&["add", "--flow-id", "x", "1"], 64, "cannot be used with"),
        (&["add", "--json"], 64, "--flow"),
        (&["add", "--flow", "-", "--flow-id", ""], 64, "flow \"\" is empty"),
        (&["tasks", "wait"], 64, "--flow"),
        (&["tasks", "cancel", "--downstream", "--tag", "x"], 64, "cannot be used with"),
    ] {
        let output = place.run(args);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {output:?}");
        assert!(text(&output.stderr).contains(says), "{args:?}: {output:?}");
    }
    let list = place.run(&["tasks", "list"]);
    assert_eq!(list.status.code(), Some(66), "{list:?}");
}

#[test]
fn waiting_ends_as_the_tasks_do() {
    let place = Backend::sqlite();
    let wait = |args: &[&str]| {
        let output = place.run(&[&["tasks", "wait"], args].concat());
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    assert_eq!(wait(&["--flow", "night"]).0, Some(66), "there is no queue, and none is made");
    assert_eq!(place.run(&["tasks"]).status.code(), Some(66));
    let added = ids(&add(&place, &pipeline(), &["--json", "--flow-id", "night"]));
    let tasks = &added["tasks"];
    let (code, _, said) = wait(&["--flow", "night", "--timeout", "200ms"]);
    assert_eq!(code, Some(124), "{said}");
    assert!(said.contains("not ended within 200ms: 0 of 5 tasks done"), "{said}");
    let (code, _, said) = wait(&["--flow", "other"]);
    assert_eq!(code, Some(66), "{said}");
    assert!(said.contains("no task of flow \"other\" is stored"), "{said}");
    work(&place, "2");
    let (code, _, said) = wait(&["--flow", "night"]);
    assert_eq!(code, Some(123), "{said}");
    let right = tasks["right"].as_str().unwrap();
    let says = format!("task \"right\" ({right}) of flow \"night\" failed: ");
    assert!(said.contains(&says) && said.contains("; 3 of 5 tasks done, 1 failed, 1 cancelled"), "{said}");
    // Single ones give their results.
    let [left, join] = ["left", "join"].map(|name| tasks[name].as_str().unwrap());
    assert_eq!(wait(&[left]), (Some(0), "1\n".into(), String::new()));
    let (code, results, said) = wait(&[left, right, join]);
    assert_eq!((code, results.as_str()), (Some(123), "1\n"), "{said}");
    assert!(
        said.contains(&format!("task {right} failed: "))
            && said.contains(&format!("task {join} was cancelled: "))
    );
    assert!(said.contains("2 of 3 tasks failed or were cancelled"), "{said}");
    let (code, objects, _) = wait(&["--json", left]);
    assert_eq!(code, Some(0));
    assert_eq!(serde_json::from_str::<Value>(&objects).unwrap()["result"], 1);
    assert_eq!(wait(&["01957b6e-5e1a-7c3e-9a53-0c6e3a1f2b4d"]).0, Some(66));
    // What runs elsewhere is waited for.
    let late = place.ok(&["add", "--kind", "late", "7"]);
    let waiting = place.spawn(&["tasks", "wait", late.trim()]);
    place.ok(&["work", "--until-empty", "--kind", "late", "--", "cat"]);
    assert_eq!(text(&waiting.finish().stdout), "7\n");
}

#[test]
fn a_terminal_sees_how_far_a_flow_is() {
    let place = Backend::sqlite();
    ids(&add(&place, &pipeline(), &["--json", "--flow-id", "night"]));
    let mut terminal = Terminal::start(100, 24, &mut place.command(&["tasks", "wait", "--flow", "night"]));
    terminal.shows("0 of 5 tasks done");
    place.ok(&["work", "--until-empty", "--kind", "fetch", "--", "true"]);
    terminal.shows("1 of 5 tasks done");
    work(&place, "none");
    assert!(terminal.end().success());
}

#[test]
fn flows_are_cancelled_and_retried_whole_or_from_one_task_on() {
    let place = Backend::sqlite();
    let added = ids(&add(&place, &pipeline(), &["--json", "--flow-id", "night"]));
    let id = |name: &str| added["tasks"][name].as_str().unwrap().to_owned();
    let other = place.ok(&["add", "--kind", "tell", "7"]).trim().to_owned();
    let verb = |args: &[&str]| {
        let output = place.run(&[&["tasks"], args].concat());
        let mut touched: Vec<String> = text(&output.stdout).lines().map(str::to_owned).collect();
        touched.sort();
        (output.status.code(), touched, text(&output.stderr))
    };
    let sorted = |names: &[&str]| {
        let mut ids: Vec<String> = names.iter().map(|name| id(name)).collect();
        ids.sort();
        ids
    };
    let state = |id: &str| task(&place, &json!(id))["state"].as_str().unwrap().to_owned();
    let from_left = ["cancel", "--downstream", &id("left"), "--dry-run"];
    assert_eq!(verb(&from_left).1, sorted(&["left", "join", "tell"]));
    let both = verb(&["cancel", "--downstream", &id("left"), &id("right"), "--dry-run"]);
    assert_eq!(both.1, sorted(&["left", "right", "join", "tell"]), "each is told once");
    work(&place, "1");
    let states = ["fetch", "left", "right", "join", "tell"].map(|name| state(&id(name)));
    assert_eq!(states, ["done", "failed", "done", "cancelled", "done"]);
    let would = verb(&["retry", "--flow", "night", "--dry-run"]);
    assert_eq!(would.1, sorted(&["left", "join"]), "what is done stays done");
    assert!(would.2.contains("dry run: 2 tasks would be retried"), "{}", would.2);
    assert_eq!(verb(&["retry", "--downstream", &id("left")]).1, would.1);
    work(&place, "none");
    assert!(place.run(&["tasks", "wait", "--flow", "night"]).status.success());
    assert_eq!(verb(&["retry", "--flow", "night"]).0, Some(66), "nothing is left to retry");
    // With another selector it is one like any other.
    assert_eq!(verb(&["retry", "--flow", "night", "--state", "done", "--dry-run"]).1.len(), 5);
    let night = ids(&add(&place, &pipeline(), &["--json", "--flow-id", "next"]));
    let (code, touched, said) = verb(&["cancel", "--flow", "next"]);
    assert_eq!((code, touched.len()), (Some(0), 5), "{said}");
    assert_eq!(state(night["tasks"]["tell"].as_str().unwrap()), "cancelled");
    assert_eq!(state(&other), "done", "it is in no flow");
}

#[test]
fn the_graph_around_a_task_is_drawn_as_far_as_fits() {
    let place = Backend::sqlite();
    let added = ids(&add(&place, &pipeline(), &["--json"]));
    let id = |name: &str| added["tasks"][name].as_str().unwrap().to_owned();
    work(&place, "2");
    wait_until("all has ended", || {
        place.run(&["tasks", "list", "--state", "waiting"]).status.code() == Some(66)
    });
    let shown = place.ok(&["tasks", "show", &id("join")]);
    let (fetch, left, right, tell) = (id("fetch"), id("left"), id("right"), id("tell"));
    let up = if left < right {
        format!(
            "├─ left  done  {left}\n│  └─ fetch  done  {fetch}\n└─ right  failed  {right}\n   └─ fetch  done  {fetch}\n"
        )
    } else {
        format!(
            "├─ right  failed  {right}\n│  └─ fetch  done  {fetch}\n└─ left  done  {left}\n   └─ fetch  done  {fetch}\n"
        )
    };
    assert!(shown.contains(&format!("\nwaits for\n{up}")), "{shown}");
    let down = format!("\nwaited for by\n└─ tell  done  {tell}, input \"sum\", if it fails: run\n");
    assert!(shown.ends_with(&down), "{shown}");
    let alone = place.ok(&["add", "7"]);
    assert!(!place.ok(&["tasks", "show", alone.trim()]).contains("wait"), "it has no graph");

    let parts = (0..150).map(|n| (format!("part {n:03}"), json!({"after": "list"})));
    let mut wide: serde_json::Map<String, Value> = parts.collect();
    wide.insert("list".into(), json!({"after": "0"}));
    for n in 0..7 {
        let after = if n < 6 { json!({"after": (n + 1).to_string()}) } else { json!({}) };
        wide.insert(n.to_string(), after);
    }
    let added = ids(&add(&place, &Value::Object(wide), &["--json"]));
    let shown = place.ok(&["tasks", "show", added["tasks"]["list"].as_str().unwrap()]);
    let drawn = shown.lines().filter(|line| line.contains("─ part ")).count();
    assert_eq!(drawn, 10, "{shown}");
    assert!(shown.contains("└─ and at least 90 more"), "{shown}");
    assert!(
        shown.contains("         └─ 3  ")
            && shown.contains(" …\n\nwaited for by\n")
            && !shown.contains("─ 4  "),
        "{shown}"
    );
}

#[test]
fn a_flow_of_names_runs_in_its_order() {
    let place = Backend::sqlite();
    let tasks: Vec<_> = (0..12)
        .map(|n| json!({"name": format!("t{n}"), "payload": n, "key": "k", "ordered": true}))
        .collect();
    ids(&add(&place, &json!(tasks), &["--json", "--flow-id", "f"]));
    let script = format!("cat >>{0}; echo >>{0}", place.path("order").display());
    place.ok(&["work", "--until-empty", "--", "sh", "-c", &script]);
    let order = fs::read_to_string(place.path("order")).unwrap();
    let wanted: Vec<String> = (0..12).map(|n| n.to_string()).collect();
    assert_eq!(order.lines().collect::<Vec<_>>(), wanted);
}

#[test]
fn a_cancelled_flow_is_purged_and_says_what_was_kept_out() {
    let place = Backend::sqlite();
    let flow = json!({"a": {"unique": "u", "tags": ["x", "x"]}, "b": {}, "join": {"after": ["a", "b"]}});
    let first = ids(&add(&place, &flow, &["--json", "--flow-id", "f"]))["tasks"].clone();
    let tags: Vec<Value> = task(&place, &first["a"])["tags"].as_array().unwrap().clone();
    assert_eq!(tags.iter().filter(|tag| **tag == "x").count(), 1, "{tags:?}");
    let again = add(&place, &flow, &["--flow-id", "g"]);
    assert!(
        text(&again.stderr).contains("flow g: 2 of 3 tasks added, 1 not added, since another task holds"),
        "{again:?}"
    );
    place.ok(&["tasks", "cancel", "--all"]);
    place.ok(&["work", "--until-empty", "--", "true"]);
    assert_eq!(place.ok(&["tasks", "purge", "--all"]).lines().count(), 5);
}

#[test]
fn a_task_whose_name_is_taken_is_not_retried() {
    let place = Backend::sqlite();
    let add = |payload: &str| place.ok(&["add", "--unique", "x", payload]).trim().to_owned();
    let first = add("1");
    place.ok(&["tasks", "cancel", &first]);
    let second = add("2");
    for options in [&[&first[..]][..], &["--all"], &["--all", "--dry-run"]] {
        let output = place.run(&[&["tasks", "retry"], options].concat());
        assert_eq!(output.status.code(), Some(75), "{options:?}: {output:?}");
        let said = format!("task {first} is not retried: task {second} holds its unique name");
        assert!(text(&output.stderr).contains(&said), "{output:?}");
    }
    let json = place.run(&["tasks", "retry", "--all", "--json"]);
    let object: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(object["taken"], json!([{ "id": first, "holder": second }]));
}
