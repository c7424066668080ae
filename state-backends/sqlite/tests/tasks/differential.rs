//! The tables of a database give the rules what those of the memory give: the same commands, the same replies, the same
//! tasks.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use interval_queue_contract::{Micros, StateError};
use interval_queue_memory::MemoryTasks;
use interval_queue_sqlite::{Durability, SqliteStore, SqliteTasks};
use interval_queue_task_contract::{Command, Read, Reply, TaskStore};

use super::{
    random::Crowd,
    support::{all, mail},
};

const SEEDS: u64 = 16;
const COMMANDS: usize = 600;

/// What can be compared of an answer.
fn told(answer: &Result<Reply, StateError>) -> String {
    match answer {
        Ok(reply) => format!("{reply:?}"),
        Err(error) => format!("{:?}: {error}", error.kind()),
    }
}

async fn same(seed: u64) -> usize {
    let directory = tempfile::tempdir().unwrap();
    let time = Arc::new(AtomicU64::new(1_000_000_000_000));
    let clock = || {
        let time = time.clone();
        move || Micros::new(time.load(Ordering::Relaxed))
    };
    let memory = MemoryTasks::with_clock(clock());
    let builder = SqliteStore::builder(directory.path().join("tasks.db")).durability(Durability::Relaxed);
    let sqlite = SqliteTasks::with_clock(&builder.open().await.unwrap(), clock()).await.unwrap();
    let mut crowd = Crowd::new(seed);
    let queue = mail();
    let mut leased = 0;
    for n in 0..COMMANDS {
        time.fetch_add(crowd.pause() as u64, Ordering::Relaxed);
        let command = crowd.command();
        let expected = memory.apply(&queue, command.clone()).await;
        let found = sqlite.apply(&queue, command.clone()).await;
        assert_eq!(told(&found), told(&expected), "seed {seed}, command {n}: {command:?}");
        crowd.hear(found.as_ref().ok());
        if let Ok(Reply::Stepped(stepped)) = &found {
            leased += stepped.leased.len();
        }
        if n % 16 != 15 {
            continue;
        }
        assert_eq!(
            all(&sqlite, &queue).await,
            all(&memory, &queue).await,
            "seed {seed}, after {n}: {command:?}"
        );
        for read in [Read::Overview, Read::Workers, Read::Schedules] {
            let read = Command::Read(read);
            let (found, expected) =
                (sqlite.apply(&queue, read.clone()).await, memory.apply(&queue, read).await);
            assert_eq!(told(&found), told(&expected), "seed {seed}, after {n}: {command:?}");
        }
    }
    leased
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_commands_do_the_same_as_in_the_memory() {
    let mut leased = 0;
    for seed in 0..SEEDS {
        leased += same(seed).await;
    }
    assert!(leased > 1_000, "{leased} tasks were leased");
}
