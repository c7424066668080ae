//! The lock file: who waits for it, for how long, and what happens if somebody meddles with it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::{
    fs,
    io::{self, BufRead},
    path::Path,
    sync::mpsc,
    time::Duration,
};

use interval_queue_contract::{SharedState, StateError, StateErrorKind};
use interval_queue_json_file::{Clock, JsonFileState, JsonFileStore};
use interval_queue_test_support::Process;
use support::{InFile, JsonFile, Taker, locked, look, open_queue, opened, state_in};

async fn impatient(path: &Path) -> Result<JsonFileState, StateError> {
    JsonFile::open_at(path, Duration::from_millis(100)).await
}

#[tokio::test]
async fn opening_waits_for_the_lock_and_a_read_only_for_its_clock() {
    let directory = tempfile::tempdir().unwrap();
    let (_, path) = state_in(directory.path()).await;
    let stamping = JsonFileStore::builder(&path).lock_timeout(Duration::from_millis(100));
    let stamping = opened(stamping.clock(Clock::FileServer)).await.unwrap();
    let other = locked(&directory.path().join("state.json.lock"));
    assert_eq!(impatient(&path).await.unwrap_err().kind(), StateErrorKind::Unreachable);
    assert_eq!(look(&stamping).await.unwrap_err().kind(), StateErrorKind::Unreachable);
    drop(other);
    assert!(look(&stamping).await.unwrap().is_some());
}

#[tokio::test]
async fn reading_waits_for_an_overwrite_but_not_a_stuck_one() {
    let directory = tempfile::tempdir().unwrap();
    let (state, path) = state_in(directory.path()).await;
    let whole = fs::read(&path).unwrap();
    let (mut reads, mut opens) = (0, 0);
    for _ in 0..10 {
        let other = locked(&directory.path().join("state.json.lock"));
        fs::write(&path, &whole[..whole.len() / 2]).unwrap();
        let (reading, opened) = (state.clone(), path.clone());
        let reading = tokio::spawn(async move { look(&reading).await });
        let opening = tokio::spawn(async move { impatient(&opened).await });
        tokio::time::sleep(Duration::from_millis(10)).await;
        fs::write(&path, &whole).unwrap();
        drop(other);
        let stuck = |error: &StateError| {
            // This test itself was stopped for so long.
            assert_eq!(error.kind(), StateErrorKind::Unreachable, "{error}");
        };
        reads += u32::from(reading.await.unwrap().inspect_err(stuck).is_ok());
        opens += u32::from(opening.await.unwrap().inspect_err(stuck).is_ok());
    }
    assert!(reads > 0 && opens > 0, "{reads} {opens}");

    let _other = locked(&directory.path().join("state.json.lock"));
    assert!(look(&state).await.unwrap().is_some());
    assert_eq!(state.queues().await.unwrap().len(), 1);
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    let error = look(&state).await.unwrap_err();
    assert_eq!(error.kind(), StateErrorKind::Unreachable, "it may be whole again a moment later: {error}");
}

#[cfg(unix)]
#[test]
fn the_lock_of_a_killed_process_is_free() {
    const NAME: &str = "the_lock_of_a_killed_process_is_free";
    if Process::is_copy() {
        let mut orders = io::stdin().lock().lines();
        let _held = locked(Path::new(&orders.next().unwrap().unwrap()));
        println!("\nheld");
        return orders.for_each(drop);
    }
    let directory = tempfile::tempdir().unwrap();
    support::block_on(async {
        let (_, path) = state_in(directory.path()).await;
        let state = impatient(&path).await.unwrap();
        let (sender, held) = mpsc::channel();
        let mut holder = Process::start(NAME, move |line| {
            let _ = sender.send(line == "held");
        });
        holder.tell(&directory.path().join("state.json.lock").display().to_string());
        assert!(held.iter().any(|held| held));
        assert_eq!(Taker::new(&state, "shard").take().await.unwrap_err().kind(), StateErrorKind::Unreachable);
        holder.kill();
        assert_eq!(Taker::new(&state, "shard").take().await.unwrap(), 1);
    });
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_or_replaced_lock_file_still_excludes() {
    for replaced in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let (old, path) = state_in(directory.path()).await;
        let lock = directory.path().join("state.json.lock");
        let was_locked = locked(&lock);
        fs::remove_file(&lock).unwrap();
        if replaced {
            fs::write(directory.path().join("fresh"), "").unwrap();
            fs::rename(directory.path().join("fresh"), &lock).unwrap();
        }
        let new = JsonFileState::open(&path).await.unwrap();
        open_queue(&new).await.unwrap();
        let holds = locked(&lock);
        drop(was_locked);
        // Whoever still locked the old file would get through.
        let mut taker = Taker::new(&old, "shard");
        let taking = tokio::spawn(async move { taker.take().await });
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(!taking.is_finished());
        drop(holds);
        assert_eq!(taking.await.unwrap().unwrap(), 1);

        let takes = [(old, "old"), (new, "new")].map(|(state, shard)| {
            tokio::spawn(async move {
                let (mut taker, mut tickets) = (Taker::new(&state, shard), Vec::new());
                for _ in 0..100 {
                    tickets.push(taker.take().await.unwrap());
                }
                tickets
            })
        });
        let mut tickets = Vec::new();
        for take in takes {
            tickets.extend(take.await.unwrap());
        }
        tickets.sort_unstable();
        assert_eq!(tickets, (2..=201).collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn a_deleted_lock_file_is_created_again_by_a_command() {
    let directory = tempfile::tempdir().unwrap();
    let (state, _) = state_in(directory.path()).await;
    let lock = directory.path().join("state.json.lock");
    fs::remove_file(&lock).unwrap();
    Taker::new(&state, "shard").take().await.unwrap();
    assert!(lock.exists());
}
