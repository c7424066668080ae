//! Whatever is wrong with the place or with what is stored: a clear error of its own, and every byte as it
//! was.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::fs;

use interval_queue_contract::{SharedState, StateErrorKind};
use interval_queue_json_file::JsonFileState;
use support::{all_files, assert_error, look, open_queue, queue, state_in};

const RECORD: &str = r#"{"version": 2, "incarnation": "", "meters": [{"interval": 1000, "burst": 1, "tat": 0}], "paused": false, "revision": 1, "ticket": 3,
    "current": 2, "last_slot": 0, "held_until": 0, "line_from": 0, "gaps_until": 0, "longest_lead": 0, "lifted_at": 0, "seen_at": 0,
    "shards": {}}"#;

fn unusable_files() -> Vec<(Vec<u8>, StateErrorKind, &'static str)> {
    use StateErrorKind::{Damaged, Foreign, NewerVersion};
    let whole = format!(r#"{{"interval_queue": 1, "queues": {{"mail": {RECORD}}}}}"#);
    let twice = format!(r#"{{"interval_queue": 1, "queues": {{"mail": {RECORD}, "mail": {RECORD}}}}}"#);
    let not_ours = "is not a state file";
    let mut files: Vec<_> = [
        ("", Damaged, "is empty"),
        ("  \n", Damaged, "cut off or not JSON"),
        ("{]", Damaged, "cut off or not JSON"),
        (&format!("{whole}}}"), Damaged, "cut off or not JSON"),
        (&twice, Damaged, "two records of queue \"mail\""),
        (&whole.replace("queues", "lanes"), Foreign, not_ours),
        (r#"{"name": "left-pad", "version": "1.0.0"}"#, Foreign, not_ours),
        ("[1, 2, 3]", Foreign, not_ours),
        ("{}", Foreign, not_ours),
        ("7", Foreign, not_ours),
        (r#"{"version": 1, "queues": {}}"#, Foreign, not_ours),
        (r#"{"interval_queue": 0, "queues": {}}"#, Foreign, not_ours),
        (r#"{"interval_queue": 1, "queues": []}"#, Foreign, not_ours),
        (r#"{"interval_queue": 1, "queues": {}, "colour": "red"}"#, Foreign, not_ours),
        (r#"{"interval_queue": 1, "queues": {" mail": {}}}"#, Foreign, not_ours),
        (r#"{"interval_queue": 2, "queues": {}}"#, NewerVersion, "has version 2"),
        (r#"{"interval_queue": 2, "lanes": []}"#, NewerVersion, "has version 2"),
    ]
    .map(|(text, kind, says)| (text.as_bytes().to_vec(), kind, says))
    .into();
    files.push((b"\xff\xfe{}".to_vec(), Damaged, "is not text"));
    files.extend((1..whole.len()).map(|length| (whole.as_bytes()[..length].to_vec(), Damaged, "cut off")));
    files
}

#[tokio::test]
async fn an_unusable_file_stays_as_it_is_and_a_good_copy_heals() {
    let directory = tempfile::tempdir().unwrap();
    let (state, path) = state_in(directory.path()).await;
    let good = fs::read(&path).unwrap();
    for (bytes, kind, says) in unusable_files() {
        fs::write(&path, &bytes).unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let unopened = elsewhere.path().join("state.json");
        fs::write(&unopened, &bytes).unwrap();
        let before = (all_files(directory.path()), all_files(elsewhere.path()));
        for error in [
            open_queue(&state).await.unwrap_err(),
            look(&state).await.unwrap_err(),
            state.queues().await.unwrap_err(),
        ] {
            assert_error(&error, kind, &path, says);
        }
        assert_error(&JsonFileState::open(&unopened).await.unwrap_err(), kind, &unopened, says);
        assert_eq!((all_files(directory.path()), all_files(elsewhere.path())), before, "nor is any created");
    }
    fs::write(&path, &good).unwrap();
    assert_eq!(state.queues().await.unwrap(), [queue("mail")]);
    open_queue(&state).await.unwrap();
}

#[tokio::test]
async fn a_lock_file_of_somebody_else_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let lock = directory.path().canonicalize().unwrap().join("Cargo.lock");
    fs::write(&lock, "# not ours").unwrap();
    let before = all_files(directory.path());
    let error = JsonFileState::open(directory.path().join("Cargo")).await.unwrap_err();
    assert_error(&error, StateErrorKind::Foreign, &lock, "choose another name");
    assert_eq!(all_files(directory.path()), before);

    let directory = tempfile::tempdir().unwrap();
    let lock = directory.path().canonicalize().unwrap().join("state.json.lock");
    fs::create_dir(&lock).unwrap();
    let error = JsonFileState::open(directory.path().join("state.json")).await.unwrap_err();
    assert_error(&error, StateErrorKind::Invalid, &lock, "lock file");
}
