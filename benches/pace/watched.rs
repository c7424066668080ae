//! The state of a worker, watched: how many commands it gets, and which slots it grants.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use async_trait::async_trait;
use interval_queue::{
    SharedState, StateError,
    contract::{Command, Micros, QueueName, Reading, Reply},
};
use interval_queue_json_file::JsonFileState;
use interval_queue_memory::MemoryState;
use interval_queue_postgres::PostgresState;
use interval_queue_redis::RedisState;
use interval_queue_sqlite::SqliteState;

use crate::{
    Failure, clock,
    notes::{Grant, Notebook},
};

/// Opens the state at `url`. The benchmark needs no features of the library: it takes the backends
/// themselves.
pub(crate) async fn connect(url: &str) -> Result<Arc<dyn SharedState>, Failure> {
    Ok(match url.split_once(':') {
        Some(("redis", _)) => Arc::new(RedisState::connect(url).await?),
        Some(("postgres", _)) => Arc::new(PostgresState::connect(url).await?),
        Some(("sqlite", path)) => Arc::new(SqliteState::open(path).await?),
        Some(("file", path)) => Arc::new(JsonFileState::open(path).await?),
        // The wall clock, so that slots can be held against starts.
        Some(("memory", _)) => {
            let clock = || Reading::of_clock(Micros::new(clock::wall() / 1000));
            Arc::new(MemoryState::with_clock(clock))
        }
        _ => {
            return Err(format!(
                "the state {url:?}: use redis://…, postgres://…, sqlite:PATH, file:PATH or memory:"
            )
            .into());
        }
    })
}

/// A state that counts commands and notes grants.
#[derive(Clone, Debug)]
pub(crate) struct Watched {
    state: Arc<dyn SharedState>,
    /// None: grants are not noted.
    notes: Option<Arc<Notebook>>,
    commands: Arc<AtomicU64>,
}

impl Watched {
    pub(crate) fn new(state: Arc<dyn SharedState>, notes: Option<Arc<Notebook>>) -> Self {
        Self { state, notes, commands: Arc::default() }
    }

    /// How many commands were given so far.
    pub(crate) fn commands(&self) -> u64 {
        self.commands.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl SharedState for Watched {
    async fn apply(&self, queue: &QueueName, command: Command) -> Result<Reply, StateError> {
        self.commands.fetch_add(1, Ordering::Relaxed);
        let sent = clock::wall() / 1000;
        let reply = self.state.apply(queue, command).await?;
        if let (Some(notes), Reply::Stepped(stepped)) = (&self.notes, &reply)
            && !stepped.grants.is_empty()
        {
            notes.grants(stepped.grants.iter().map(|grant| Grant {
                ticket: grant.ticket.get(),
                slot: grant.slot.get(),
                sent,
            }));
        }
        Ok(reply)
    }

    async fn queues(&self) -> Result<Vec<QueueName>, StateError> {
        self.state.queues().await
    }
}
