//! Stored tasks in Redis: rows in a few keys, and functions of the server that carry out every
//! command.

use std::{
    fmt,
    sync::{Arc, LazyLock},
    time::Duration,
};

use async_trait::async_trait;
use interval_queue_contract::{Changes, Micros, QueueName, StateError};
use interval_queue_task_contract::{Change, Command, RECOUNT_TIMEOUT, Reply, TaskStore};

use self::task_keys::TaskKeys;
use crate::store::{Library, RedisStore};

mod fault;
mod pack;
mod row;
pub(crate) mod task_answer;
mod task_keys;
mod task_request;

/// A Lua function has at most 200 locals, so parts whose locals no other part uses are blocks.
const SOURCE: &str = concat!(
    include_str!("lua/limits.lua"),
    include_str!("lua/text.lua"),
    include_str!("lua/entry.lua"),
    include_str!("lua/forms.lua"),
    include_str!("lua/tables.lua"),
    include_str!("lua/index.lua"),
    include_str!("lua/pages.lua"),
    include_str!("lua/flush.lua"),
    include_str!("lua/rows.lua"),
    include_str!("lua/others.lua"),
    include_str!("lua/policy.lua"),
    include_str!("lua/work.lua"),
    include_str!("lua/selection.lua"),
    include_str!("lua/follow.lua"),
    include_str!("lua/log.lua"),
    include_str!("lua/clock.lua"),
    include_str!("lua/gates.lua"),
    include_str!("lua/kinds.lua"),
    include_str!("lua/edges.lua"),
    include_str!("lua/ending.lua"),
    include_str!("lua/plain.lua"),
    include_str!("lua/fire.lua"),
    include_str!("lua/add.lua"),
    include_str!("lua/import.lua"),
    include_str!("lua/change.lua"),
    include_str!("lua/links.lua"),
    "do ",
    include_str!("lua/verbs.lua"),
    "end\n",
    "do ",
    include_str!("lua/recount.lua"),
    "end\n",
    include_str!("lua/maintenance.lua"),
    include_str!("lua/admission.lua"),
    include_str!("lua/step.lua"),
    "do ",
    include_str!("lua/read.lua"),
    "end\n",
    include_str!("lua/main.lua"),
);

static RULES: LazyLock<Library> = LazyLock::new(|| Library::new("interval_queue_tasks", SOURCE));

type Clock = Arc<dyn Fn() -> Micros + Send + Sync>;

/// Stored tasks in Redis or Valkey. See the [crate's documentation](crate).
#[derive(Clone)]
pub struct RedisTasks {
    store: RedisStore,
    keys: TaskKeys,
    /// Replaces the server's clock.
    clock: Option<Clock>,
}

impl RedisTasks {
    /// Connects with the settings in the URL. The [crate] lists the addresses.
    ///
    /// # Errors
    ///
    /// The URL cannot be used, or the errors of [`Builder::connect`](crate::Builder::connect).
    pub async fn connect(url: impl AsRef<str>) -> Result<Self, StateError> {
        Ok(Self::on(&RedisStore::builder(url.as_ref())?.connect().await?))
    }

    /// The tasks on a store.
    pub fn on(store: &RedisStore) -> Self {
        Self { store: store.clone(), keys: TaskKeys::new(&store.prefix), clock: None }
    }

    /// As [`on`](Self::on) with another clock than the server's, for tests.
    #[doc(hidden)]
    #[must_use]
    pub fn with_clock(store: &RedisStore, clock: impl Fn() -> Micros + Send + Sync + 'static) -> Self {
        Self { clock: Some(Arc::new(clock)), ..Self::on(store) }
    }
}

/// # Cancel safety
///
/// A command that was sent is carried out completely, even if its future is dropped.
#[async_trait]
impl TaskStore for RedisTasks {
    async fn apply(&self, queue: &QueueName, command: Command) -> Result<Reply, StateError> {
        let mut arguments = vec![task_request::packed(&command)?];
        arguments.extend(self.clock.as_ref().map(|clock| clock().get().to_string().into_bytes()));
        let function = match &command {
            Command::Add(_) | Command::Fire(_) | Command::Import(_) => "add",
            Command::Read(_) => "look",
            _ => "change",
        };
        let at_least = match &command {
            Command::Change(Change::Recount) => RECOUNT_TIMEOUT,
            _ => Duration::ZERO,
        };
        let keys = self.keys.of(queue);
        let value = self.store.call(&RULES, function, &keys, &arguments, at_least).await?;
        task_answer::reply(&command, value)
    }

    async fn queues(&self) -> Result<Vec<QueueName>, StateError> {
        let rows = self.store.keys(&self.keys.pattern()).await?;
        let mut queues: Vec<_> = rows.iter().filter_map(|rows| self.keys.queue(rows)).collect();
        queues.sort();
        Ok(queues)
    }

    async fn changes(&self, queue: &QueueName) -> Result<Changes, StateError> {
        self.store.watch(self.keys.channel(queue)).await
    }
}

impl fmt::Debug for RedisTasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisTasks").field("store", &self.store).finish_non_exhaustive()
    }
}
