//! The backend of the rate limit.

use std::sync::LazyLock;

use async_trait::async_trait;
use interval_queue_contract::{Changes, Command, QueueName, Reply, SharedState, StateError};

use super::{answer, keys::Keys, request};
use crate::store::{RedisStore, Script};

static RULES: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("rules.lua")));

/// State in Redis or Valkey.
#[derive(Clone, Debug)]
pub struct RedisState {
    store: RedisStore,
    keys: Keys,
}

impl RedisState {
    /// Connects with the settings in the URL. The [crate] lists the addresses.
    ///
    /// # Errors
    ///
    /// The URL cannot be used, or the errors of [`Builder::connect`](crate::Builder::connect).
    pub async fn connect(url: impl AsRef<str>) -> Result<Self, StateError> {
        Ok(Self::on(&RedisStore::builder(url.as_ref())?.connect().await?))
    }

    /// The state on a store.
    pub fn on(store: &RedisStore) -> Self {
        Self { store: store.clone(), keys: Keys::new(&store.prefix) }
    }
}

#[async_trait]
impl SharedState for RedisState {
    async fn apply(&self, queue: &QueueName, command: Command) -> Result<Reply, StateError> {
        let arguments = request::arguments(&command, self.store.idle_expiry)?;
        let value = self.store.run(&RULES, &self.keys.of(queue), &arguments).await?;
        answer::decode(&command, value)
    }

    async fn queues(&self) -> Result<Vec<QueueName>, StateError> {
        let keys = self.store.keys(&self.keys.pattern()).await?;
        let mut queues: Vec<_> = keys.iter().filter_map(|key| self.keys.queue(key)).collect();
        queues.sort();
        Ok(queues)
    }

    async fn changes(&self, queue: &QueueName) -> Result<Changes, StateError> {
        self.store.watch(self.keys.channel(queue)).await
    }
}
