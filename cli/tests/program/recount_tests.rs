//! `tasks recount`: rows that were removed by hand.

use serde_json::{Value, json};

use crate::{place_tests::Backend, process::text, tasks_schema};

fn overview(place: &Backend) -> Value {
    serde_json::from_str(&place.ok(&["tasks", "--json", "--over", "0s"])).unwrap()
}

fn reason_of_miscounted(place: &Backend) -> Option<Value> {
    let look = overview(place);
    let also = look["also"].as_array().unwrap();
    also.iter().find(|one| one["status"] == "miscounted").map(|one| one["reason"].clone())
}

#[test]
fn wrong_counts_are_reported_and_counted_again() {
    let place = Backend::sqlite();
    for kind in ["default", "mail"] {
        let ids = place.ok(&["add", "--kind", kind, "1", "2", "3"]);
        assert_eq!(ids.lines().count(), 3);
    }
    let nothing = place.run(&["tasks", "recount"]);
    assert_eq!((text(&nothing.stdout), nothing.status.code()), (String::new(), Some(0)));
    assert!(text(&nothing.stderr).contains("all counts are right"), "{nothing:?}");
    assert_eq!(reason_of_miscounted(&place), None);

    let database = rusqlite::Connection::open(place.path("data/queues.db")).unwrap();
    let some = "DELETE FROM interval_queue_task WHERE id IN (SELECT id FROM interval_queue_task ORDER BY id LIMIT 4)";
    assert_eq!(database.execute(some, ()), Ok(4));
    let reason = "the counts are wrong, since rows were removed or added manually: `interval-queue tasks recount` counts again";
    assert_eq!(reason_of_miscounted(&place), Some(json!(reason)));
    assert!(place.ok(&["tasks"]).contains(reason));
    let list = place.run(&["tasks", "list"]);
    assert!(text(&list.stderr).contains("interval-queue tasks recount --store=sqlite:"), "{list:?}");
    assert_eq!(
        place.ok(&["tasks", "recount"]),
        "ready: 0 counted, 3 before\nmail ready: 2 counted, 3 before\n"
    );
    assert_eq!(overview(&place)["counts"]["ready"], 2);
    assert_eq!(text(&place.run(&["tasks", "list"]).stderr), "");

    database.execute("UPDATE interval_queue_task_count SET number = -3 WHERE counted = 'ready'", ()).unwrap();
    let object: Value = serde_json::from_str(&place.ok(&["tasks", "recount", "--json"])).unwrap();
    tasks_schema::check(&tasks_schema::closed(&place), &object);
    let corrected =
        |kind, counted| json!({ "kind": kind, "state": "ready", "before": -3, "counted": counted });
    assert_eq!(object, json!({ "corrected": [corrected("default", 0), corrected("mail", 2)], "dropped": 0 }));
    let unknown = place.run(&["tasks", "recount", "--queue", "there"]);
    assert_eq!(unknown.status.code(), Some(66), "{unknown:?}");
}
