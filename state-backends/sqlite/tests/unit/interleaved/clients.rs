//! The clients of one database: each with a connection and a thread of its own, as another process would have them.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use interval_queue_contract::{Micros, QueueName};
use interval_queue_task_conformance::interleaved::{Member, Session, Sessions};
use interval_queue_task_contract::{Add, Command, TaskStore};
use tempfile::TempDir;

use super::{
    application::{Sitting, make_table},
    client::Client,
    flawed::Flawed,
    hold::Hold,
    interleaved_within::Saying,
};
use crate::{Durability, SqliteStore, SqliteTasks};

/// As many clients as a meeting has at most.
const CLIENTS: usize = 3;
pub(super) type Clock = Arc<AtomicU64>;

/// How a database is shared.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Setting {
    /// Whether commands pass the gate. Without, they meet at the database itself.
    pub(super) has_gate: bool,
    /// Whether a command that finds the database taken gives up at once.
    pub(super) is_impatient: bool,
    /// Whether a command reads before its transaction begins.
    pub(super) is_flawed: bool,
}

pub(super) struct Clients {
    setting: Setting,
    path: PathBuf,
    clock: Clock,
    store: SqliteTasks,
    clients: Vec<Client>,
    _directory: TempDir,
}

impl Clients {
    pub(super) async fn new(setting: Setting) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().canonicalize().unwrap().join("tasks.db");
        if !setting.has_gate {
            // No file can be made behind this name.
            std::os::unix::fs::symlink("/no/such/directory/gate", path.with_file_name("tasks.db-gate"))
                .unwrap();
        }
        let clock = Clock::default();
        let patience = Duration::from_secs(if setting.is_impatient { 0 } else { 3_600 });
        let store = opened(&path, &clock, None, Duration::from_secs(60)).await;
        let mut clients = Vec::new();
        for _ in 0..CLIENTS {
            let hold = Arc::new(Hold::default());
            let store: Arc<dyn TaskStore> = if setting.is_flawed {
                Arc::new(Flawed::new(&path, clock.clone(), hold.clone()))
            } else {
                Arc::new(opened(&path, &clock, Some(&hold), patience).await)
            };
            clients.push(Client { store, hold });
        }
        make_table(&path);
        Self { setting, path, clock, store, clients, _directory: directory }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

/// A handle that has its connection already, and whose thread is held.
pub(super) async fn opened(
    path: &Path,
    clock: &Clock,
    hold: Option<&Arc<Hold>>,
    patience: Duration,
) -> SqliteTasks {
    let builder = SqliteStore::builder(path).durability(Durability::Relaxed).lock_timeout(patience);
    let (clock, hold) = (clock.clone(), hold.cloned());
    let now = move || {
        // The thread that stores reads the clock.
        hold.iter().for_each(Hold::holds_this_thread);
        Micros::new(clock.load(Ordering::Relaxed))
    };
    let tasks = SqliteTasks::with_clock(&builder.open().await.unwrap(), now).await.unwrap();
    let (queue, nothing) = nothing();
    tasks.apply(&queue, nothing).await.unwrap();
    tasks
}

/// A command that does nothing, on a queue where nobody meets.
pub(super) fn nothing() -> (QueueName, Command) {
    (QueueName::new("elsewhere").unwrap(), Command::Add(Add::default()))
}

#[async_trait]
impl Sessions for Clients {
    fn store(&self) -> &dyn TaskStore {
        &self.store
    }

    fn set_clock(&self, to: Micros) {
        self.clock.store(to.get(), Ordering::Relaxed);
    }

    async fn begin(&self, client: usize, queue: &QueueName, member: &Member) -> Box<dyn Session> {
        match member {
            Member::Application(what) => Box::new(Sitting::begin(&self.path, queue, *what)),
            Member::Within(within) => Box::new(Saying::begin(&self.path, &self.store, queue, within.clone())),
            Member::Commands(commands) => {
                let client = &self.clients[client];
                Box::new(client.begin(self.setting.has_gate, queue, commands).await)
            }
        }
    }
}
