//! What is decided of the tables that a component has on a store.

use interval_queue_store::{Component, Found};

const COLOURS: Component = Component {
    name: "colours",
    first: 1,
    migrations: &["A;", "B;"],
    declared: String::new,
    grants: "SELECT",
};

#[test]
fn found_tables_have_a_version_or_an_error() {
    for (table, versions, expected) in [
        (false, None, Ok(0)),
        (true, Some(&[1][..]), Ok(1)),
        (true, Some(&[2]), Ok(2)),
        (true, Some(&[3]), Err(("NewerVersion", "colours of version 3, this program works on up to 2"))),
        (true, Some(&[i64::MAX]), Err(("NewerVersion", "upgrade the program"))),
        (true, Some(&[0]), Err(("Foreign", "version from 1 in one row: move"))),
        (true, Some(&[-1]), Err(("Foreign", "version from 1 in one row: move"))),
        (true, Some(&[]), Err(("Foreign", "one row"))),
        (true, Some(&[1, 1]), Err(("Foreign", "one row"))),
        (true, None, Err(("Foreign", "here has a table colours that is not of this software: move"))),
        (false, Some(&[1]), Err(("Damaged", "no table colours any more: drop colours_schema"))),
    ] {
        let versions = versions.map(<[i64]>::to_vec);
        let found = Found { place: "here", advice: "move", table, versions };
        match (COLOURS.version(&found), expected) {
            (Ok(version), expected) => assert_eq!(Ok(version), expected),
            (Err(error), Ok(_)) => panic!("{found:?}: {error}"),
            (Err(error), Err((kind, text))) => {
                assert_eq!(format!("{:?}", error.kind()), kind);
                assert!(error.to_string().contains(text), "{error}");
            }
        }
    }
}

#[test]
fn only_what_is_missing_is_made() {
    let all = "A;\nB;\nUPDATE colours_schema SET version = 2;\n";
    assert_eq!(COLOURS.steps(0).as_deref(), Some(all));
    assert_eq!(COLOURS.steps(1).as_deref(), Some(&all[3..]));
    assert_eq!(COLOURS.steps(2), None);
}

#[test]
fn tables_from_before_the_first_release_are_refused() {
    let third = Component { first: 3, ..COLOURS };
    let version = |version| {
        third.version(&Found { place: "here", advice: "move", table: true, versions: Some(vec![version]) })
    };
    let error = version(2).unwrap_err();
    assert_eq!(format!("{:?}", error.kind()), "Unsupported");
    let words = "here has tables colours of version 2, this program works on 4: finish the work with the program that";
    assert!(error.to_string().contains(words), "{error}");
    assert_eq!([version(3).unwrap(), version(4).unwrap()], [3, 4]);
    assert_eq!(third.steps(0).as_deref(), Some("A;\nB;\nUPDATE colours_schema SET version = 4;\n"));
    assert_eq!(third.steps(3).as_deref(), Some("B;\nUPDATE colours_schema SET version = 4;\n"));
    assert_eq!(third.steps(4), None);
}
