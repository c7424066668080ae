//! `tasks tags`: which tags there are.

use serde_json::{Value, json};

use crate::{place_tests::Backend, process::text};

#[test]
fn the_most_used_tags_are_told() {
    let place = Backend::sqlite();
    let none = place.run(&["tasks", "tags"]);
    assert_eq!(none.status.code(), Some(66), "{none:?}");
    place.ok(&["add", "--tag", "red", "--tag", "big", "1"]);
    place.ok(&["add", "--tag", "red", "--kind", "other", "2"]);
    place.ok(&["add", "--tag", "a", "3"]);
    let table = place.ok(&["tasks", "tags"]);
    let table: Vec<_> = table.lines().collect();
    assert_eq!(table.len(), 4, "{table:?}");
    assert!(
        table[1].starts_with("red") && table[1].ends_with('2') && table[2].starts_with("a "),
        "{table:?}"
    );
    assert!(place.ok(&["tasks", "tags", "--top", "1"]).ends_with("and 2 more: --top N shows them\n"));
    let other = place.ok(&["tasks", "tags", "--kind", "other", "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&other).unwrap(), json!({ "tag": "red", "count": 1 }));
    let none = place.run(&["tasks", "tags", "--state", "failed"]);
    assert!(text(&none.stderr).contains("no selected task has a tag"), "{none:?}");
    assert_eq!(place.run(&["tasks", "tags", "--top", "0"]).status.code(), Some(64));
}
