//! On which thread a command runs, and what that means for the others of its runtime.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    time::{Duration, Instant},
};

use interval_queue_json_file::{Fsync, JsonFileStore};
use support::{Taker, open_queue, opened, state_in};
use tokio::runtime::{Builder, Runtime};

/// A runtime of one thread, with another one for work that blocks.
fn runtime() -> Runtime {
    Builder::new_current_thread().enable_time().max_blocking_threads(1).build().unwrap()
}

/// Whether one command in so many ends while the thread for work that blocks is busy, and how long commands take, in
/// the middle.
#[allow(clippy::disallowed_methods, reason = "measures what the host does")]
async fn needs_no_other_thread(directory: &Path, fsync: Fsync, tries: u32) -> (bool, Duration) {
    let state = opened(JsonFileStore::builder(directory.join("state.json")).fsync(fsync)).await.unwrap();
    open_queue(&state).await.unwrap();
    let (mut taker, mut took) = (Taker::new(&state, "shard"), Vec::new());
    let mut needs_none = false;
    for _ in 0..tries {
        for _ in 0..15 {
            let begun = Instant::now();
            taker.take().await.unwrap();
            took.push(begun.elapsed());
        }
        let (free, busy) = mpsc::channel::<()>();
        let blocking = tokio::task::spawn_blocking(move || busy.recv().is_err());
        let one_more = tokio::time::timeout(Duration::from_millis(20), taker.take()).await;
        drop(free);
        blocking.await.unwrap();
        if let Ok(taken) = one_more {
            taken.unwrap();
            needs_none = true;
            break;
        }
    }
    took.sort_unstable();
    (needs_none, took[took.len() / 2])
}

#[test]
fn a_quick_command_keeps_its_thread_and_a_slow_one_does_not() {
    // Where memory is the disk a flush is quick, too, and nobody knows for how long.
    let memory = Path::new("/dev/shm");
    let place = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    // A busy machine makes commands slow for a while.
    for (fsync, expected, tries) in [(Fsync::Never, true, 500), (Fsync::Always, false, 10)] {
        let directory = tempfile::tempdir_in(&place).unwrap();
        let (needs_none, took) = runtime().block_on(needs_no_other_thread(directory.path(), fsync, tries));
        // What is slower than a tenth of a millisecond is not quick, whatever is to blame.
        let is_slow_host = fsync == Fsync::Never && took >= Duration::from_micros(100);
        assert!(needs_none == expected || is_slow_host, "{fsync:?}: {took:?}");
    }
}

#[test]
fn a_command_dropped_before_its_thread_leaves_the_store_usable() {
    runtime().block_on(async {
        let directory = tempfile::tempdir().unwrap();
        let (state, _) = state_in(directory.path()).await;
        let (free, busy) = mpsc::channel::<()>();
        let blocking = tokio::task::spawn_blocking(move || busy.recv().is_err());
        // Begun: it is carried through, although nobody waits for it any more.
        let mut given_up = Taker::new(&state, "given up");
        assert!(tokio::time::timeout(Duration::from_millis(5), given_up.take()).await.is_err());
        // Not begun: it waits for the one before.
        let mut not_begun = Taker::new(&state, "not begun");
        assert!(tokio::time::timeout(Duration::from_millis(5), not_begun.take()).await.is_err());
        drop(free);
        blocking.await.unwrap();
        assert_eq!(Taker::new(&state, "last").take().await.unwrap(), 2);
    });
}

#[test]
fn a_loop_of_quick_commands_lets_other_tasks_run() {
    runtime().block_on(async {
        let directory = tempfile::tempdir().unwrap();
        let (state, _) = state_in(directory.path()).await;
        let mut taker = Taker::new(&state, "shard");
        for _ in 0..50 {
            taker.take().await.unwrap();
        }
        let has_run = Arc::new(AtomicBool::new(false));
        let other = has_run.clone();
        tokio::spawn(async move { other.store(true, Ordering::Relaxed) });
        let mut commands = 0;
        while !has_run.load(Ordering::Relaxed) {
            taker.take().await.unwrap();
            commands += 1;
            assert!(commands < 10_000, "it never does");
        }
    });
}
