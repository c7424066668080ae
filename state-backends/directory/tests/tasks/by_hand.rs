//! What people and other programs do with the files of tasks.
#![cfg(unix)]

use std::{fs, path::Path, process::Command as Program};

use interval_queue_contract::StateErrorKind;
use interval_queue_directory::{DirectoryStore, DirectoryTasks};
use interval_queue_task_contract::{Json, NewTask, Outcome, PolicyOverride, State, TaskStore, Verb};

use super::support::{
    Hand, add, agree, all, count, done, ended, file, files, id, mail, open, overview, task,
};

async fn opened() -> (tempfile::TempDir, DirectoryTasks) {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory.path().join("jobs")).await;
    (directory, store)
}

fn reasons(store: &DirectoryTasks) -> Vec<String> {
    let reasons = files(store.path(), "set-aside")
        .into_iter()
        .filter(|path| path.extension().is_some_and(|ending| ending == "reason"));
    reasons.map(|path| fs::read_to_string(path).unwrap()).collect()
}

fn shell(script: &str, at: &Path) {
    assert!(Program::new("sh").args(["-ec", script]).current_dir(at).status().unwrap().success(), "{script}");
}

async fn state_of(store: &DirectoryTasks, n: u64) -> Option<State> {
    all(store, &mail()).await.iter().find(|stored| stored.task.id == id(n)).map(|stored| stored.task.state)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn payloads_are_changed_by_sed() {
    let (_directory, store) = opened().await;
    let old = |n| NewTask { payload: Json::new(format!("\"old {n}\"")).unwrap(), ..task(n) };
    store.apply(&mail(), add((0..1_000).map(old))).await.unwrap();
    shell(
        "sed -i 's/old/new/; s/\"kind\": \"default\"/\"kind\": \"default\", \"note\": [1.50]/' ready/*/*.json",
        &store.path().join("mail"),
    );
    let mut hand = Hand::new(&store, 1);
    for _ in 0..10 {
        let leased = hand.step(Vec::new(), 100).await.leased;
        assert_eq!(leased.len(), 100);
        for leased in &leased {
            assert!(leased.payload.as_str().starts_with("\"new "), "{}", leased.payload);
        }
        hand.step(done(&leased), 0).await;
    }
    assert_eq!(count(&overview(&store).await, State::Done), 1_000);
    agree(&store).await;
    let text = fs::read_to_string(file(store.path(), "done", id(7))).unwrap();
    assert!(text.contains("\"note\": [1.50]"), "what is not known is kept: {text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_payload_that_is_written_over_in_place_is_the_one_that_runs() {
    let (_directory, store) = opened().await;
    store.apply(&mail(), add([task(1)])).await.unwrap();
    overview(&store).await;
    let path = file(store.path(), "ready", id(1));
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("\"payload\": 1", "\"payload\": 2")).unwrap();
    let mut hand = Hand::new(&store, 1);
    let leased = hand.step(Vec::new(), 1).await.leased;
    assert_eq!(leased[0].payload.as_str(), "2");
    // Also one that says nothing but its payload.
    store.apply(&mail(), add([task(2)])).await.unwrap();
    fs::write(file(store.path(), "ready", id(2)), "{\"payload\": 3}").unwrap();
    let leased = hand.step(Vec::new(), 1).await.leased;
    assert_eq!((leased[0].task.id, leased[0].payload.as_str()), (id(2), "3"));
    agree(&store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn edits_of_a_running_task_are_kept_at_its_end() {
    let (_directory, store) = opened().await;
    store.apply(&mail(), add([task(1), task(2)])).await.unwrap();
    let mut hand = Hand::new(&store, 1);
    let leased = hand.step(Vec::new(), 2).await.leased;
    // One is written over in place, with a text of the same length, the other one replaced.
    let path = file(store.path(), "leased", id(1));
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("\"payload\": 1", "\"payload\": 7")).unwrap();
    shell("sed -i 's/\"kind\":/\"note\": [1.50], \"kind\":/' leased/*/*2.json", &store.path().join("mail"));
    hand.step(done(&leased), 0).await;
    let [one, other] = [1, 2].map(|n| fs::read_to_string(file(store.path(), "done", id(n))).unwrap());
    assert!(one.contains("\"payload\": 7") && one.contains("\"ended_us\""), "{one}");
    assert!(other.contains("\"note\": [1.50]") && other.contains("\"ended_us\""), "{other}");
    agree(&store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kind_priority_and_key_are_taken_over() {
    let (_directory, store) = opened().await;
    store.apply(&mail(), add([task(1), task(2), task(3)])).await.unwrap();
    let path = file(store.path(), "ready", id(3));
    let text = fs::read_to_string(&path).unwrap();
    fs::write(
        &path,
        text.replace("\"payload\"", "\"priority\": 9, \"key\": \"k\", \"tags\": [\"red\"], \"payload\""),
    )
    .unwrap();
    let path = file(store.path(), "ready", id(2));
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("\"default\"", "\"other\"")).unwrap();
    overview(&store).await;
    agree(&store).await;
    let stored = all(&store, &mail()).await;
    assert_eq!(stored[1].task.kind.as_str(), "other");
    assert_eq!((stored[2].task.priority, stored[2].task.tags.len()), (9, 1));
    let mut hand = Hand::new(&store, 1);
    let leased = hand.step(Vec::new(), 5).await.leased;
    let ids: Vec<_> = leased.iter().map(|leased| leased.task.id).collect();
    assert_eq!(ids, [id(3), id(1)], "the one of another kind waits");
    // What is written over in place changes no directory: it is noticed when it is to be leased.
    store.apply(&mail(), add([task(4)])).await.unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    overview(&store).await;
    let path = file(store.path(), "ready", id(4));
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("\"default\"", "\"other\"")).unwrap();
    assert!(hand.step(Vec::new(), 5).await.leased.is_empty());
    // A step that sweeps admits it, also for another kind.
    for _ in 0..500 {
        if state_of(&store, 4).await != Some(State::Added) {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        assert!(hand.step(Vec::new(), 5).await.leased.is_empty());
    }
    assert_eq!(state_of(&store, 4).await, Some(State::Ready));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_is_moved_changes_its_state() {
    let (_directory, store) = opened().await;
    store.apply(&mail(), add((1..=6).map(task))).await.unwrap();
    let mut hand = Hand::new(&store, 1);
    let leased = hand.step(Vec::new(), 2).await.leased;
    hand.step(ended(&leased, |_| Outcome::Failed("no".into())), 0).await;
    overview(&store).await;
    let queue = store.path().join("mail");
    for (from, to, n) in
        [("failed", "ready", 1), ("ready", "cancelled", 3), ("ready", "leased", 4), ("ready", "done", 5)]
    {
        fs::rename(file(store.path(), from, id(n)), queue.join(to).join(format!("{}.json", id(n))))
            .or_else(|_| {
                fs::create_dir_all(queue.join(to)).unwrap();
                fs::rename(file(store.path(), from, id(n)), queue.join(to).join(format!("{}.json", id(n))))
            })
            .unwrap();
    }
    let seen = overview(&store).await;
    assert_eq!(
        (count(&seen, State::Ready), count(&seen, State::Cancelled), count(&seen, State::Failed)),
        (4, 1, 1)
    );
    assert_eq!(state_of(&store, 1).await, Some(State::Ready), "failed to ready is a retry");
    assert_eq!(state_of(&store, 3).await, Some(State::Cancelled));
    assert_eq!(state_of(&store, 4).await, Some(State::Ready), "nobody leases by hand");
    assert_eq!(state_of(&store, 5).await, Some(State::Ready));
    agree(&store).await;
    let reasons = reasons(&store);
    assert!(reasons.len() == 2 && reasons.iter().all(|reason| reason.contains("put back")), "{reasons:?}");
    // The retried one has all its attempts again, and its history.
    let retried = all(&store, &mail()).await.swap_remove(0).task;
    assert_eq!((retried.failures, retried.generation, retried.history.len()), (0, 1, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_removed_file_is_a_removed_task() {
    let (_directory, store) = opened().await;
    store.apply(&mail(), add((1..=5).map(task))).await.unwrap();
    let mut hand = Hand::new(&store, 1);
    let leased = hand.step(Vec::new(), 2).await.leased;
    hand.step(done(&leased[..1]), 0).await;
    for (state, n) in [("done", 1), ("leased", 2), ("ready", 3)] {
        fs::remove_file(file(store.path(), state, id(n))).unwrap();
    }
    let seen = overview(&store).await;
    assert_eq!((count(&seen, State::Ready), count(&seen, State::Done)), (2, 0));
    assert_eq!(state_of(&store, 3).await, Some(State::Purged));
    // One that is removed just before it is leased is not leased.
    fs::remove_file(file(store.path(), "ready", id(4))).unwrap();
    let stepped = hand.step(Vec::new(), 5).await;
    assert_eq!(
        stepped.stop.iter().map(|(id, _)| *id).collect::<Vec<_>>(),
        [id(2)],
        "the one that runs is stopped"
    );
    assert_eq!(stepped.leased.iter().map(|leased| leased.task.id).collect::<Vec<_>>(), [id(5)]);
    // A whole directory.
    hand.step(done(&stepped.leased), 0).await;
    overview(&store).await;
    std::thread::sleep(std::time::Duration::from_millis(50));
    overview(&store).await;
    fs::remove_dir_all(store.path().join("mail/done/000000")).unwrap();
    assert_eq!(count(&overview(&store).await, State::Done), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_editor_that_writes_a_leased_file_again_doubles_nothing() {
    let (_directory, store) = opened().await;
    store.apply(&mail(), add([task(1), task(2)])).await.unwrap();
    let paths = [file(store.path(), "ready", id(1)), file(store.path(), "ready", id(2))];
    let texts = paths.clone().map(|path| fs::read(path).unwrap());
    let mut hand = Hand::new(&store, 1);
    let leased = hand.step(Vec::new(), 2).await.leased;
    assert_eq!(leased.len(), 2);
    fs::write(&paths[0], &texts[0]).unwrap();
    let mut other = Hand::new(&store, 2);
    assert!(other.step(Vec::new(), 5).await.leased.is_empty());
    assert_eq!(count(&overview(&store).await, State::Ready), 0);
    assert!(reasons(&store)[0].contains("is leased"), "{:?}", reasons(&store));
    // Also one that comes in the moment in which the task goes back to that place.
    let late = String::from_utf8_lossy(&texts[1]).replace("\"payload\": 2", "\"payload\": \"late\"");
    fs::write(&paths[1], late).unwrap();
    hand.step(ended(&leased, |_| Outcome::Exchanged), 0).await;
    agree(&store).await;
    assert_eq!(files(store.path(), "set-aside").len(), 4);
    let again = other.step(Vec::new(), 5).await.leased;
    let payloads: Vec<_> = again.iter().map(|leased| leased.payload.as_str()).collect();
    assert_eq!(payloads, ["1", "2"], "what was leased counts");
    hand.step(Vec::new(), 0).await;
    other.step(done(&again), 0).await;
    // And of one that has ended.
    fs::create_dir_all(paths[0].parent().unwrap()).unwrap();
    fs::write(&paths[0], &texts[0]).unwrap();
    let seen = overview(&store).await;
    assert_eq!((count(&seen, State::Ready), count(&seen, State::Done)), (0, 2));
    agree(&store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dropped_files_become_tasks() {
    let (_directory, store) = opened().await;
    // The first worker makes the queue, and with it the box.
    let mut hand = Hand::new(&store, 1);
    hand.step(Vec::new(), 1).await;
    let drop_box = store.path().join("mail/drop");
    let script = r#"
        echo '{"payload": {"to": "ada"}, "color": "red"}' > .new && mv .new plain
        printf '{"payload": 1, "priority": 5, "id": "00000000-0000-0007-0000-000000000063"}' > .b && mv .b b.json
        echo '{"payload": 3, "not_before": "2125-01-02T03:04:05Z", "max_attempts": 1}' > later.json
        echo '{"payl' > .half; echo '{' > half.tmp
    "#;
    shell(script, &drop_box);
    let leased = hand.step(Vec::new(), 5).await.leased;
    let payloads: Vec<_> = leased.iter().map(|leased| leased.payload.as_str()).collect();
    assert_eq!(payloads, ["1", "{\"to\": \"ada\"}"]);
    assert_eq!(leased[0].task.id, id(99));
    hand.step(done(&leased), 0).await;
    let text = fs::read_to_string(file(store.path(), "done", leased[1].task.id)).unwrap();
    assert!(text.contains("\"color\": \"red\"") && text.contains("\"result\""), "{text}");
    let seen = overview(&store).await;
    assert_eq!((count(&seen, State::Scheduled), count(&seen, State::Done)), (1, 2));
    let later =
        all(&store, &mail()).await.into_iter().find(|stored| stored.task.state == State::Scheduled).unwrap();
    assert_eq!(
        (later.task.not_before.get(), later.task.policy),
        (4_891_460_645_000_000, PolicyOverride { max_attempts: Some(1), ..PolicyOverride::default() })
    );
    let left: Vec<_> = fs::read_dir(&drop_box).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "what is being written is left alone: {left:?}");
    // The same again is no other task.
    shell(r#"echo '{"payload": 1, "id": "00000000-0000-0007-0000-000000000063"}' > again"#, &drop_box);
    assert_eq!(count(&overview(&store).await, State::Ready), 0);
    assert!(reasons(&store)[0].contains("is done"), "{:?}", reasons(&store));
    agree(&store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unusable_files_are_quarantined_and_block_nothing() {
    let (_directory, store) = opened().await;
    store.apply(&mail(), add((0..9).map(task))).await.unwrap();
    overview(&store).await;
    let at = |n| file(store.path(), "ready", id(n));
    fs::write(at(0), "").unwrap();
    fs::write(at(1), "{\"id\": ").unwrap();
    fs::File::create(at(2)).unwrap().set_len(100 << 20).unwrap();
    fs::copy(at(4), at(3)).unwrap();
    let secret = store.path().parent().unwrap().join("secret");
    fs::write(&secret, "{\"payload\": \"secret\"}").unwrap();
    fs::remove_file(at(5)).unwrap();
    let place = at(4).parent().unwrap().join(format!("{}.json", id(5)));
    std::os::unix::fs::symlink(&secret, place).unwrap();
    fs::write(at(6), [0xff, 0xfe]).unwrap();
    let drop_box = store.path().join("mail/drop");
    fs::write(drop_box.join("no payload"), "{\"kind\": \"x\"}").unwrap();
    fs::write(drop_box.join("wrong"), "{\"payload\": 1, \"priority\": 1000}").unwrap();
    fs::write(drop_box.join("line\nbreak"), "{\"payload\": 1}").unwrap();
    fs::create_dir(drop_box.join("folder")).unwrap();
    std::os::unix::fs::symlink(&secret, drop_box.join("link")).unwrap();
    assert!(Program::new("mkfifo").arg(drop_box.join("pipe")).status().unwrap().success());
    let leased = Hand::new(&store, 1).step(Vec::new(), 20).await.leased;
    let ids: Vec<_> = leased.iter().map(|leased| leased.task.id).collect();
    assert_eq!(ids, [4, 7, 8].map(id));
    let reasons = reasons(&store);
    for what in [
        "is empty",
        "no JSON",
        "104857600 bytes",
        "its \"id\"",
        "symbolic link",
        "UTF-8",
        "no \"payload\"",
        "priority 1000",
        "its name is no text",
        "no regular file",
    ] {
        assert!(reasons.iter().any(|reason| reason.contains(what)), "{what}: {reasons:#?}");
    }
    assert_eq!(reasons.len(), 12, "{reasons:#?}");
    assert_eq!(fs::read_dir(&drop_box).unwrap().count(), 0);
    assert_eq!(fs::read_to_string(&secret).unwrap(), "{\"payload\": \"secret\"}");
    agree(&store).await;
    // What was put right is a task again.
    let aside = store.path().join("mail/set-aside").join(format!("{}.json", id(1)));
    fs::write(&aside, format!("{{\"id\": \"{}\", \"payload\": \"mended\"}}", id(1))).unwrap();
    fs::rename(&aside, drop_box.join("mended")).unwrap();
    let leased = Hand::new(&store, 2).step(Vec::new(), 20).await.leased;
    assert_eq!(leased[0].payload.as_str(), "\"mended\"");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_moves_to_another_directory() {
    let (_one, from) = opened().await;
    let (_other, to) = opened().await;
    from.apply(&mail(), add([task(1), task(2)])).await.unwrap();
    Hand::new(&to, 1).step(Vec::new(), 0).await;
    fs::rename(file(from.path(), "ready", id(1)), to.path().join("mail/drop/one.json")).unwrap();
    fs::create_dir_all(to.path().join("mail/ready")).unwrap();
    fs::rename(
        file(from.path(), "ready", id(2)),
        to.path().join("mail/ready").join(format!("{}.json", id(2))),
    )
    .unwrap();
    assert_eq!(count(&overview(&from).await, State::Ready), 0);
    assert_eq!(count(&overview(&to).await, State::Ready), 2);
    let leased = Hand::new(&to, 2).step(Vec::new(), 5).await.leased;
    assert_eq!(leased.iter().map(|leased| leased.task.id).collect::<Vec<_>>(), [id(1), id(2)]);
    agree(&to).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_index_is_made_again() {
    let (directory, store) = opened().await;
    let waits = |n, up| {
        let mut new = task(n);
        new.edges = vec![interval_queue_task_contract::NewEdge {
            up: id(up),
            name: None,
            on_failure: Default::default(),
        }];
        new
    };
    store.apply(&mail(), add((1..=4).map(task).chain([waits(5, 4), waits(6, 5)]))).await.unwrap();
    let pause = interval_queue_task_contract::Change::Key(
        interval_queue_task_contract::Key::new("k").unwrap(),
        Some(3),
    );
    store.apply(&mail(), interval_queue_task_contract::Command::Change(pause)).await.unwrap();
    let mut hand = Hand::new(&store, 1);
    let leased = hand.step(Vec::new(), 3).await.leased;
    hand.step(done(&leased[..1]), 0).await;
    hand.step(ended(&leased[1..2], |_| Outcome::Failed("no".into())), 0).await;
    let before = all(&store, &mail()).await;
    fs::remove_file(store.path().join("index.db")).unwrap();
    // The worker that runs one says so, and has it still; nobody else gets it.
    let mut other = Hand::new(&store, 2);
    let seen = overview(&store).await;
    assert_eq!(
        [State::Done, State::Failed, State::Leased, State::Ready].map(|state| count(&seen, state)),
        [1, 1, 1, 1]
    );
    let taken = other.step(Vec::new(), 5).await.leased;
    assert_eq!(taken.iter().map(|leased| leased.task.id).collect::<Vec<_>>(), [id(4)]);
    let completed = hand.step(done(&leased[2..]), 0).await;
    assert!(completed.lost.is_empty(), "{completed:?}");
    assert!(taken[0].task.token > leased[0].task.token);
    other.step(done(&taken), 0).await;
    // Those downstream run one after the other.
    for n in [5, 6] {
        let mut next = other.step(Vec::new(), 5).await.leased;
        if next.is_empty() {
            next = other.step(Vec::new(), 5).await.leased;
        }
        assert_eq!(next.iter().map(|leased| leased.task.id).collect::<Vec<_>>(), [id(n)]);
        other.step(done(&next), 0).await;
    }
    agree(&store).await;
    let after = all(&store, &mail()).await;
    assert_eq!(after.len(), before.len());
    assert_eq!(
        (&after[0].payload, &after[0].result, &after[1].task.error, &after[1].task.history),
        (&before[0].payload, &before[0].result, &before[1].task.error, &before[1].task.history)
    );
    // Damage is a loss, too.
    drop(store);
    fs::write(directory.path().join("jobs/index.db"), "damaged".repeat(1_000)).unwrap();
    let store = open(&directory.path().join("jobs")).await;
    assert_eq!(count(&overview(&store).await, State::Done), 5);
    agree(&store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_torn_by_a_host_crash_is_rebuilt() {
    let (_directory, store) = opened().await;
    store.apply(&mail(), add((0..500).map(task))).await.unwrap();
    let path = store.path().to_owned();
    drop(store);
    let index = rusqlite::Connection::open(path.join("index.db")).unwrap();
    index.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    let root = "SELECT rootpage FROM sqlite_schema WHERE name = 'interval_queue_task_ready'";
    let page = index.query_row(root, [], |row| row.get::<_, i64>(0)).unwrap();
    drop(index);
    let file = fs::OpenOptions::new().write(true).open(path.join("index.db")).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &[0; 4_096], (page as u64 - 1) * 4_096).unwrap();
    let done = fs::read_to_string(path.join("done")).unwrap();
    fs::write(path.join("done"), format!("{} another-start", done.split(' ').next().unwrap())).unwrap();
    let store = open(&path).await;
    assert_eq!(Hand::new(&store, 1).step(Vec::new(), 500).await.leased.len(), 500);
    agree(&store).await;
}

#[tokio::test]
async fn a_directory_of_something_else_stays_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let refused = async |path: &Path, kind, expected: &str| {
        let error = DirectoryStore::builder(path).open().await.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(expected), "{error}");
    };
    let other = directory.path().join("photos");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("cat.jpg"), "").unwrap();
    refused(&other, StateErrorKind::Foreign, "cat.jpg").await;
    assert_eq!(fs::read_dir(&other).unwrap().count(), 1);
    refused(&other.join("cat.jpg"), StateErrorKind::Invalid, "is a file").await;
    refused(&directory.path().join("a/b"), StateErrorKind::NotFound, "does not exist").await;
    let newer = directory.path().join("newer");
    fs::create_dir(&newer).unwrap();
    for (layout, kind, expected) in [
        (3, StateErrorKind::NewerVersion, "upgrade the program"),
        (
            1,
            StateErrorKind::Unsupported,
            "has the layout 1, and this program reads 2: finish the work with the program",
        ),
    ] {
        fs::write(newer.join("layout.json"), format!("{{\"interval_queue_directory\": {layout}}}")).unwrap();
        refused(&newer, kind, expected).await;
    }
    fs::write(newer.join("layout.json"), "{}").unwrap();
    refused(&newer, StateErrorKind::Damaged, "layout.json").await;
    let lost = directory.path().join("lost");
    open(&lost).await.apply(&mail(), add([task(1)])).await.unwrap();
    fs::remove_file(lost.join("layout.json")).unwrap();
    let expected = "has lost its layout.json: put {\"interval_queue_directory\": 2} there";
    refused(&lost, StateErrorKind::Damaged, expected).await;
    fs::write(lost.join("layout.json"), "{\"interval_queue_directory\": 2}").unwrap();
    assert_eq!(open(&lost).await.queues().await.unwrap(), [mail()]);
    // A look leaves nothing behind, and an empty directory will do.
    let missing = directory.path().join("missing");
    let store = open(&missing).await;
    assert_eq!(store.queues().await.unwrap(), []);
    let read = interval_queue_task_contract::Command::Read(interval_queue_task_contract::Read::Overview);
    assert_eq!(store.apply(&mail(), read).await.unwrap_err().kind(), StateErrorKind::NotFound);
    assert!(!missing.exists());
    fs::create_dir(&missing).unwrap();
    store.apply(&mail(), add([task(1)])).await.unwrap();
    assert_eq!(store.queues().await.unwrap(), [mail()]);
    assert!(missing.join("README").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn odd_names_of_queues_have_directories_of_their_own() {
    let (_directory, store) = opened().await;
    let long = "/".repeat(200);
    let mut names = ["a/b", "..", ".hidden", "tmp", "lock", "README", "a%2Fb", "ключ 🦀", &*long]
        .map(|name| interval_queue_contract::QueueName::new(name).unwrap());
    names.sort();
    for (name, n) in names.iter().zip(0..) {
        store.apply(name, add([task(n)])).await.unwrap();
    }
    assert_eq!(store.queues().await.unwrap(), names);
    fs::remove_file(store.path().join("index.db")).unwrap();
    for (name, n) in names.iter().zip(0..) {
        let found = all(&store, name).await;
        assert_eq!(found.iter().map(|stored| stored.task.id).collect::<Vec<_>>(), [id(n)], "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_verb_on_what_a_person_has_moved_acts_where_it_is() {
    let (_directory, store) = opened().await;
    store.apply(&mail(), add([task(1)])).await.unwrap();
    let path = file(store.path(), "ready", id(1));
    fs::rename(&path, store.path().join("mail/ready").join(path.file_name().unwrap())).unwrap();
    overview(&store).await;
    agree(&store).await;
    assert_eq!(file(store.path(), "ready", id(1)), path, "it lies in the right part again");
    let change = interval_queue_task_contract::ChangeTasks {
        selector: interval_queue_task_contract::Selector::ids([id(1)]),
        verb: Verb::Cancel,
        after: None,
        watermark: None,
        limit: 10,
        dry_run: false,
    };
    let cancel =
        interval_queue_task_contract::Command::Change(interval_queue_task_contract::Change::Tasks(change));
    store.apply(&mail(), cancel).await.unwrap();
    agree(&store).await;
    assert_eq!(files(store.path(), "cancelled").len(), 1);
}
