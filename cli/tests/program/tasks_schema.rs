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
