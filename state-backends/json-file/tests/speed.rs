//! How long a command takes. No test: `cargo test --release --test speed -- --ignored --nocapture`.
#![allow(clippy::disallowed_methods, reason = "it measures")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::{path::Path, time::Instant};

use interval_queue_json_file::{Clock, Fsync, JsonFileState};
use support::{Taker, argument, copy_of, look, open_queue};

const COMMANDS: u32 = 2_000;

async fn take_many(state: &JsonFileState, shard: &str) {
    let mut taker = Taker::new(state, shard);
    for _ in 0..COMMANDS {
        taker.take().await.unwrap();
    }
}

#[tokio::test]
#[ignore = "a measurement"]
async fn measure() {
    if let Some(argument) = argument() {
        let state = JsonFileState::open(argument).await.unwrap();
        return take_many(&state, &std::process::id().to_string()).await;
    }
    for place in [std::env::temp_dir(), "/dev/shm".into()] {
        let directory = tempfile::tempdir_in(&place).unwrap();
        for (fsync, clock) in
            [(Fsync::Never, Clock::Host), (Fsync::Always, Clock::Host), (Fsync::Never, Clock::FileServer)]
        {
            let path = directory.path().join(format!("{fsync:?} {clock:?}"));
            let state = JsonFileState::builder(path).fsync(fsync).clock(clock).open().await.unwrap();
            open_queue(&state).await.unwrap();
            let began = Instant::now();
            take_many(&state, "alone").await;
            println!("{}: {fsync:?} {clock:?}: {:?} a take", place.display(), began.elapsed() / COMMANDS);
        }
        contended(&place, &directory.path().join("Never Host")).await;
    }
}

async fn contended(place: &Path, path: &Path) {
    let state = JsonFileState::open(path).await.unwrap();
    let began = Instant::now();
    for _ in 0..COMMANDS {
        look(&state).await.unwrap();
    }
    println!("{}: {:?} a look", place.display(), began.elapsed() / COMMANDS);
    let began = Instant::now();
    let processes: Vec<_> = (0..4).map(|_| copy_of("measure", path, &[]).spawn().unwrap()).collect();
    for mut process in processes {
        assert!(process.wait().unwrap().success());
    }
    println!("{}: four processes: {:?} a take", place.display(), began.elapsed() / (4 * COMMANDS));
}
