//! What `add`, `tasks` and `schedule` print for programs is what the schema says.

use std::fs;

use jsonschema::Validator;
use serde_json::{Value, json};

use crate::{
    place_tests::Backend,
    process::wait_until,
    tasks::{add, overview},
};

fn schema(place: &Backend) -> Value {
    serde_json::from_str(&place.ok(&["schema", "tasks"])).unwrap()
}

pub(crate) fn check(validator: &Validator, value: &Value) {
    let errors: Vec<_> = validator.iter_errors(value).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?} in {value:#}");
}

/// The schema, under which a field that it does not describe is an error.
pub(crate) fn closed(place: &Backend) -> Validator {
    let mut schema = schema(place);
    jsonschema::meta::validate(&schema).unwrap();
    let names: Vec<String> = schema["$defs"].as_object().unwrap().keys().cloned().collect();
    for name in &names {
        if schema["$defs"][name]["type"] == "object" {
            for (field, says) in schema["$defs"][name]["properties"].as_object().unwrap() {
                assert!(says["description"].as_str().is_some_and(|text| text.len() > 5), "{name}.{field}");
                if field.ends_with("_us") {
                    assert!(says["description"].as_str().unwrap().contains("microseconds"), "{name}.{field}");
                }
            }
            schema["$defs"][name]["additionalProperties"] = json!(false);
        }
    }
    jsonschema::draft202012::new(&schema).unwrap()
}

#[test]
fn the_output_of_tasks_follows_the_schema() {
    let place = Backend::sqlite();
    let validator = closed(&place);
    assert!(!validator.is_valid(&json!({})) && !validator.is_valid(&json!([])));
    let parsed = |args: &[&str]| serde_json::from_str::<Value>(&place.ok(args)).unwrap();
    let options = [
        "--key",
        "k",
        "--unique",
        "u",
        "--tag",
        "t",
        "--delay",
        "1h",
        "--deadline",
        "2h",
        "--max-attempts",
        "3",
    ];
    let waiting = add(&place, &[&options[..], &["1"]].concat());
    let failing = add(&place, &["--kind", "bad", "--max-attempts", "1", "2"]);
    check(&validator, &parsed(&["tasks", "--json"]));
    place.ok(&["work", "--until-empty", "--kind", "bad", "--", "false"]);
    check(&validator, &parsed(&["tasks", "failures", "--json"]));
    check(&validator, &parsed(&["tasks", "times", "--json"]));
    place.ok(&["tasks", "retry", &failing[0]]);
    for rule in [&["--every", "1s"][..], &["--cron", "0 3 * * *", "--zone", "UTC"], &["--after-end", "1h"]] {
        place.ok(&[&["schedule", "add", rule[0].trim_matches('-')], rule].concat());
    }
    place.ok(&["schedule", "add", "missed", "--every", "1h", "--missed", "9", "--paused"]);
    let _worker = place.spawn(&["work", "--kind", "bad", "--", "sleep", "1000"]);
    wait_until("it runs", || overview(&place)["status"] == "running");
    check(&validator, &parsed(&["tasks", "--json"]));
    for id in [&waiting[0], &failing[0]] {
        check(&validator, &parsed(&["tasks", "show", id, "--json"]));
    }
    check(&validator, &parsed(&["tasks", "tags", "--json"]));
    check(&validator, &parsed(&["tasks", "set", "--json"]));
    check(&validator, &json!({ "at_us": 1, "missed": true }));
    for line in place.ok(&["tasks", "list", "--json", "--payloads"]).lines() {
        check(&validator, &serde_json::from_str(line).unwrap());
    }
    check(&validator, &parsed(&["tasks", "cancel", "--all", "--json", "--dry-run"]));
    check(&validator, &parsed(&["tasks", "tag", "--add", "t", "--all", "--json", "--dry-run"]));
    let link = ["tasks", "link", "--after", &failing[0], &waiting[0], "--json", "--dry-run"];
    check(&validator, &parsed(&link));
    fs::write(place.path("flow.json"), "{\"a\": {\"kind\": \"c\"}, \"b\": {\"kind\": \"d\"}}").unwrap();
    let added =
        parsed(&["add", "--flow", place.path("flow.json").to_str().unwrap(), "--flow-id", "f", "--json"]);
    check(&validator, &added);
    let schedules = || place.ok(&["schedule", "list", "--json", "--next", "2"]);
    wait_until("schedules have made tasks", || schedules().matches("\"state\"").count() >= 2);
    for line in schedules().lines() {
        check(&validator, &serde_json::from_str(line).unwrap());
    }
    place.ok(&["work", "--until-empty", "--kind", "c", "--", "true"]);
    check(&validator, &parsed(&["tasks", "wait", added["tasks"]["a"].as_str().unwrap(), "--json"]));
    place.ok(&["tasks", "cancel", "--flow", "f"]);
    let wrong = place.run(&["tasks", "wait", "--flow", "f", "--json"]);
    let wrong: Value = serde_json::from_slice(&wrong.stdout).unwrap();
    check(&validator, &wrong);
    assert_eq!((&wrong["wrong"]["name"], &wrong["cancelled"]), (&json!("b"), &json!(1)));
}

/// The schema and the program agree on each flow, wherever the shape alone decides.
#[test]
fn the_schema_of_a_new_flow_accepts_what_add_accepts() {
    let place = Backend::sqlite();
    let schema: Value = serde_json::from_str(&place.ok(&["schema", "flow"])).unwrap();
    jsonschema::meta::validate(&schema).unwrap();
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    let whole = json!({
        "name": "a", "kind": "k", "payload": [1], "after": [], "priority": -3, "key": "k", "ordered": true,
        "delay": "1s", "deadline": "1h 30min", "unique": "u", "on_conflict": "replace", "max_attempts": 2,
        "weight": 2, "tags": ["t"]
    });
    for (flow, is_valid) in [
        (json!([whole]), true),
        (json!({"a": {}, "b": {"after": "a"}}), true),
        (json!({"a": {}, "b": {"after": {"name": "a", "as": "x", "on_failure": "wait"}}}), true),
        (json!({"a": {}, "b": {"after": ["a", {"name": "c", "as": "x"}]}, "c": {}}), true),
        (json!({"a": {"key": null, "delay": null, "max_attempts": null}}), true),
        (json!("a"), false),
        (json!(["a"]), false),
        (json!({"a": {"knd": "x"}}), false),
        (json!({"a": {"payload": 1, "priority": 101}}), false),
        (json!({"a": {"priority": "high"}}), false),
        (json!({"a": {"max_attempts": 0}}), false),
        (json!({"a": {"weight": 0}}), false),
        (json!({"a": {"on_conflict": "stop"}}), false),
        (json!({"a": {}, "b": {"after": {"name": "a", "on_failure": "stop"}}}), false),
        (json!({"a": {}, "b": {"after": {"as": "a"}}}), false),
        (json!({"a": {}, "b": {"after": 7}}), false),
        (json!({"a": {"tags": "t"}}), false),
    ] {
        assert_eq!(validator.is_valid(&flow), is_valid, "{flow}");
        fs::write(place.path("flow.json"), flow.to_string()).unwrap();
        let added = place.run(&["add", "--flow", place.path("flow.json").to_str().unwrap()]);
        assert_eq!(added.status.success(), is_valid, "{flow}: {added:?}");
    }
}

#[test]
fn the_json_page_names_every_field_of_the_schema() {
    let page = include_str!("../../../docs/json.md");
    let schema = schema(&Backend::file());
    for (name, object) in schema["$defs"].as_object().unwrap() {
        for field in object["properties"].as_object().into_iter().flat_map(|fields| fields.keys()) {
            assert!(page.contains(&format!("`{field}`")), "{name}.{field}");
        }
    }
}
