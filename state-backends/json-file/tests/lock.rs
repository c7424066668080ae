//! The lock file: who waits for it, for how long, and what happens if somebody meddles with it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::{
    fs::{self, File, OpenOptions},
    io::{BufRead, BufReader},
    path::Path,
    process::Stdio,
    time::Duration,
};

use fs4::FileExt;
use interval_queue_contract::{SharedState, StateError, StateErrorKind};
use interval_queue_json_file::{Clock, JsonFileState};
use support::{Taker, argument, copy_of, last_ticket, look, open_queue, state_in};

/// Takes the lock as another process would: with a descriptor of its own.
fn locked(lock: &Path) -> File {
    let file = OpenOptions::new().read(true).write(true).open(lock).unwrap();
    FileExt::try_lock(&file).unwrap();
    file
}

async fn impatient(path: &Path) -> Result<JsonFileState, StateError> {
    JsonFileState::builder(path).lock_timeout(Duration::from_millis(100)).open().await
}

#[tokio::test]
async fn a_lock_held_elsewhere_ends_in_a_clear_error_and_heals() {
    let directory = tempfile::tempdir().unwrap();
    let (_, path) = state_in(directory.path()).await;
    let lock = directory.path().canonicalize().unwrap().join("state.json.lock");
    let state = impatient(&path).await.unwrap();
    let other = locked(&lock);
    let before = fs::read(&path).unwrap();

    let error = Taker::new(&state, "shard").take().await.unwrap_err();
    assert_eq!(error.kind(), StateErrorKind::Unreachable);
    assert!(error.is_retryable());
    let text = error.to_string();
    assert!(text.contains(&format!("another process has held {} for 100ms", lock.display())), "{text}");
    assert_eq!(fs::read(&path).unwrap(), before);
    let builder = JsonFileState::builder(&path).lock_timeout(Duration::from_millis(100));
    assert_eq!(builder.open().await.unwrap_err().kind(), StateErrorKind::Unreachable);

    // A look needs no lock, but for the clock of a file server.
    assert!(look(&state).await.unwrap().is_some());
    FileExt::unlock(&other).unwrap();
    let stamping =
        JsonFileState::builder(&path).lock_timeout(Duration::from_millis(100)).clock(Clock::FileServer);
    let stamping = stamping.open().await.unwrap();
    FileExt::try_lock(&other).unwrap();
    assert_eq!(look(&stamping).await.unwrap_err().kind(), StateErrorKind::Unreachable);

    drop(other);
    assert_eq!(Taker::new(&state, "shard").take().await.unwrap(), 1);
    assert!(look(&stamping).await.unwrap().is_some());
}

#[tokio::test]
async fn a_command_waits_for_the_lock_while_the_runtime_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let (_, path) = state_in(directory.path()).await;
    let state = JsonFileState::builder(path).lock_timeout(Duration::from_millis(500)).open().await.unwrap();
    let mut taker = Taker::new(&state, "shard");
    // Until commands are carried out on the thread that gives them, the only one of this runtime.
    for _ in 0..50 {
        taker.take().await.unwrap();
    }
    let other = locked(&directory.path().join("state.json.lock"));
    let taking = tokio::spawn(async move { (taker.take().await.unwrap_err().kind(), taker) });
    let mut naps = 0;
    while !taking.is_finished() {
        tokio::time::sleep(Duration::from_millis(5)).await;
        naps += 1;
    }
    assert!(naps > 5, "{naps}");
    let (error, mut taker) = taking.await.unwrap();
    assert_eq!(error, StateErrorKind::Unreachable);

    let taking = tokio::spawn(async move { taker.take().await });
    tokio::time::sleep(Duration::from_millis(50)).await;
    FileExt::unlock(&other).unwrap();
    assert_eq!(taking.await.unwrap().unwrap(), 51);
}

#[tokio::test]
async fn who_looks_or_opens_waits_for_a_command_that_overwrites_the_file_and_not_for_one_that_is_stuck() {
    let directory = tempfile::tempdir().unwrap();
    let (state, path) = state_in(directory.path()).await;
    let whole = fs::read(&path).unwrap();
    let (mut looks, mut opens) = (0, 0);
    for _ in 0..10 {
        let other = locked(&directory.path().join("state.json.lock"));
        fs::write(&path, &whole[..whole.len() / 2]).unwrap();
        let (looking, opened) = (state.clone(), path.clone());
        let looking = tokio::spawn(async move { look(&looking).await });
        let opening = tokio::spawn(async move { impatient(&opened).await });
        tokio::time::sleep(Duration::from_millis(10)).await;
        fs::write(&path, &whole).unwrap();
        drop(other);
        let stuck = |error: &StateError| {
            // This test itself was stopped for so long.
            assert_eq!(error.kind(), StateErrorKind::Unreachable, "{error}");
        };
        looks += u32::from(looking.await.unwrap().inspect_err(stuck).is_ok());
        opens += u32::from(opening.await.unwrap().inspect_err(stuck).is_ok());
    }
    assert!(looks > 0 && opens > 0, "{looks} {opens}");

    let _other = locked(&directory.path().join("state.json.lock"));
    assert!(look(&state).await.unwrap().is_some());
    assert_eq!(state.queues().await.unwrap().len(), 1);
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    let error = look(&state).await.unwrap_err();
    assert_eq!(error.kind(), StateErrorKind::Unreachable, "it may be whole again a moment later: {error}");
}

#[tokio::test]
async fn commands_that_wait_for_each_other_do_not_wait_one_time_out_each() {
    let directory = tempfile::tempdir().unwrap();
    let (_, path) = state_in(directory.path()).await;
    let timeout = Duration::from_millis(300);
    let state = JsonFileState::builder(&path).lock_timeout(timeout).open().await.unwrap();
    let _other = locked(&directory.path().join("state.json.lock"));
    let commands: Vec<_> = (0..200)
        .map(|n| {
            let mut taker = Taker::new(&state, &format!("shard {n}"));
            tokio::spawn(async move { taker.take().await.unwrap_err().kind() })
        })
        .collect();
    // One time-out each would be a minute.
    let all = async {
        for command in commands {
            assert_eq!(command.await.unwrap(), StateErrorKind::Unreachable);
        }
    };
    tokio::time::timeout(timeout * 100, all).await.unwrap();
}

#[tokio::test]
async fn a_command_nobody_waits_for_any_more_leaves_the_lock_free() {
    let directory = tempfile::tempdir().unwrap();
    let (state, _) = state_in(directory.path()).await;
    for n in 0..100_u32 {
        let mut taker = Taker::new(&state, &format!("shard {n}"));
        let take = taker.take();
        let _ = tokio::time::timeout(Duration::from_micros(u64::from(n % 10) * 20), take).await;
    }
    let before = last_ticket(&state).await;
    assert!(Taker::new(&state, "last").take().await.unwrap() > before);
}

#[tokio::test]
async fn the_lock_of_a_killed_process_is_free() {
    const NAME: &str = "the_lock_of_a_killed_process_is_free";
    if let Some(lock) = argument() {
        let _held = locked(Path::new(&lock));
        println!("held");
        std::thread::sleep(Duration::from_secs(600));
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let (_, path) = state_in(directory.path()).await;
    let state = impatient(&path).await.unwrap();
    let mut holder =
        copy_of(NAME, directory.path().join("state.json.lock"), &[]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(holder.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().ends_with("held")));
    assert_eq!(Taker::new(&state, "shard").take().await.unwrap_err().kind(), StateErrorKind::Unreachable);
    holder.kill().unwrap();
    holder.wait().unwrap();
    assert_eq!(Taker::new(&state, "shard").take().await.unwrap(), 1);
}

#[cfg(unix)]
mod meddling {
    use std::os::unix::fs::symlink;

    use super::*;

    /// What two shards get that take a hundred tickets each at the same time, counted from the last ticket
    /// before.
    async fn tickets(one: &JsonFileState, other: &JsonFileState) -> Vec<u64> {
        async fn taken(state: JsonFileState, shard: &str) -> Vec<u64> {
            let mut taker = Taker::new(&state, shard);
            let mut tickets = Vec::new();
            for _ in 0..100 {
                tickets.push(taker.take().await.unwrap());
            }
            tickets
        }
        let last = last_ticket(one).await;
        let (one, other) = (one.clone(), other.clone());
        let (one, other) = tokio::join!(
            tokio::spawn(async move { taken(one, "one").await }),
            tokio::spawn(async move { taken(other, "other").await })
        );
        let mut tickets: Vec<_> =
            one.unwrap().into_iter().chain(other.unwrap()).map(|ticket| ticket - last).collect();
        tickets.sort_unstable();
        tickets
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_lock_file_that_was_deleted_or_replaced_does_not_part_those_who_hold_the_old_one() {
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
            let mut taker = Taker::new(&old, "old");
            let taking = tokio::spawn(async move { taker.take().await });
            tokio::time::sleep(Duration::from_millis(100)).await;
            assert!(!taking.is_finished());
            drop(holds);
            assert_eq!(taking.await.unwrap().unwrap(), 1);
            assert_eq!(tickets(&old, &new).await, (1..=200).collect::<Vec<_>>());
        }
    }

    #[tokio::test]
    async fn a_lock_file_that_was_deleted_is_there_again_when_a_command_holds_it() {
        let directory = tempfile::tempdir().unwrap();
        let (state, _) = state_in(directory.path()).await;
        let lock = directory.path().join("state.json.lock");
        fs::remove_file(&lock).unwrap();
        Taker::new(&state, "shard").take().await.unwrap();
        assert!(lock.exists());
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn those_who_name_the_file_differently_share_one_lock() {
        let directory = tempfile::tempdir().unwrap();
        let real = directory.path().join("real");
        fs::create_dir(&real).unwrap();
        symlink("real/state.json", directory.path().join("link.json")).unwrap();
        symlink("real", directory.path().join("to_directory")).unwrap();
        // Two open before the file is there.
        let by_link = JsonFileState::open(directory.path().join("link.json")).await.unwrap();
        let by_name = JsonFileState::open(real.join("../real/./state.json")).await.unwrap();
        open_queue(&by_link).await.unwrap();
        let by_directory =
            JsonFileState::open(directory.path().join("to_directory/state.json")).await.unwrap();
        assert_eq!(by_link.path(), by_name.path());
        assert_eq!(by_link.path(), by_directory.path());
        assert_eq!(tickets(&by_link, &by_name).await, (1..=200).collect::<Vec<_>>());
        assert_eq!(by_directory.queues().await.unwrap().len(), 1);
    }
}
