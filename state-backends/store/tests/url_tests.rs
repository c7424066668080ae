//! What a URL says, and what is said of one that says nothing. Parameters and passwords are tested through
//! the façade, in its `tests/connect.rs`.
#![allow(clippy::unwrap_used)]

use interval_queue_store::Url;

#[test]
fn two_slashes_before_a_path_mean_nothing() {
    let path = |place: &str| Url::parse(&format!("file:{place}"), "").unwrap().path("file:PATH");
    for (place, is) in [
        ("pace.db", "pace.db"),
        ("//pace.db", "pace.db"),
        ("./a/pace.db", "./a/pace.db"),
        ("/var/pace.db", "/var/pace.db"),
        ("///var/pace.db", "/var/pace.db"),
        ("///a%20b%3F%26%40%25", "/a b?&@%"),
    ] {
        assert_eq!(path(place).unwrap(), is, "{place}");
    }
    assert_eq!(path("//").unwrap_err().to_string(), "file: without a path: use file:PATH");
    assert!(path("//%ff").is_err());
    for place in ["%zz", "a%", "a%2", "%25%2g", "100%.json"] {
        let error = path(place).unwrap_err().to_string();
        assert!(error.contains(place) && error.contains("write %25 for a %"), "{error}");
    }
    let mut url = Url::parse("redis://h?pass=1%hunter2", "").unwrap();
    let error = url.text("pass").unwrap_err().to_string();
    assert!(error.contains("\"pass\"") && error.contains("%25") && !error.contains("hunter2"), "{error}");
}
