//! Stored tasks in PostgreSQL.

mod application_transaction;
mod columns;
mod find;
mod low_marks;
mod notifier;
mod read_ahead;
mod row_reader;
mod transaction;
mod view;
mod within;
mod write;

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use futures::future::{try_join, try_join3};
use interval_queue_contract::{Changes, Micros, QueueName, StateError, StateErrorKind};
use interval_queue_store::Component;
use interval_queue_task_contract::{
    Change, Command, RECOUNT_TIMEOUT, Read, Reply, TaskStore,
    field::RowReader as _,
    index::{self, Declared},
    rules,
};
use tokio_postgres::Row;

pub use self::application_transaction::ApplicationTransaction;
use self::{
    notifier::Notifier,
    read_ahead::QueueHeaders,
    row_reader::Reader,
    transaction::{Attempt, Mode},
    view::{Lookup, LookupResult, Outcome, ReadSet, Target},
};
use crate::{
    PostgresStore,
    store::{Failure, MAX_ATTEMPTS, RetryAction, Tables, quoted},
};

/// Requires that the command stored nothing. If many processes add a task with the same unique
/// name, one succeeds; a retry of the others may fail a second time.
const MAX_TRIES: u32 = 6;

/// Created last: while all indexes are small they have the same costs, and the server prefers the
/// newest.
const PRIMARY_KEY: &str = "DO $$ BEGIN ALTER TABLE interval_queue_task ADD PRIMARY KEY (queue, id); \
                           EXCEPTION WHEN invalid_table_definition THEN NULL; END $$;\n";

pub(crate) const TASKS: Component = Component {
    name: "interval_queue_task",
    first: 5,
    migrations: &[include_str!("migrations/1.sql")],
    declared: || index::declared().iter().map(Declared::creation).collect::<String>() + PRIMARY_KEY,
    grants: "USAGE on the schema, SELECT on interval_queue_task_schema, and SELECT, INSERT, UPDATE, DELETE on all other tables \
             interval_queue_task…",
};

type Clock = Arc<dyn Fn() -> Micros + Send + Sync>;

/// Stored tasks in PostgreSQL. Clones share the connections. See the [crate's
/// documentation](crate).
#[derive(Clone)]
pub struct PostgresTasks {
    store: PostgresStore,
    tables: Tables,
    clock: Option<Clock>,
    headers: QueueHeaders,
    notifier: Notifier,
}

impl PostgresTasks {
    /// Opens the tasks of a store. If the schema and its tables are missing, the first command that
    /// stores something creates them; reads create nothing.
    ///
    /// # Errors
    ///
    /// | kind | why |
    /// |---|---|
    /// | `Unreachable` | the server does not answer any more |
    /// | `Denied` | the server keeps the schema from the user |
    /// | `Foreign` | something else made the tables |
    /// | `Damaged` | a table is missing |
    /// | `NewerVersion` | a newer version of this software made them |
    ///
    /// # Cancel safety
    ///
    /// It changes nothing.
    pub async fn on(store: &PostgresStore) -> Result<Self, StateError> {
        let tables = store.tables(TASKS).await?;
        Ok(Self {
            store: store.clone(),
            tables,
            clock: None,
            headers: QueueHeaders::default(),
            notifier: Notifier::new(store),
        })
    }

    /// Connects with the settings of the URL. See the [crate](crate) for the URLs.
    ///
    /// # Errors
    ///
    /// As [`Builder::connect`](crate::Builder::connect) and [`on`](Self::on).
    pub async fn connect(url: &str) -> Result<Self, StateError> {
        Self::on(&PostgresStore::connect(url).await?).await
    }

    /// As [`on`](Self::on), with another clock than the server's, for tests.
    ///
    /// # Errors
    ///
    /// As [`on`](Self::on).
    #[doc(hidden)]
    pub async fn with_clock(
        store: &PostgresStore,
        clock: impl Fn() -> Micros + Send + Sync + 'static,
    ) -> Result<Self, StateError> {
        Ok(Self { clock: Some(Arc::new(clock)), ..Self::on(store).await? })
    }

    fn schema(&self) -> &str {
        self.store.schema()
    }

    /// `None`: use the server's clock.
    fn clock(&self) -> Option<Micros> {
        self.clock.as_ref().map(|clock| clock())
    }

    /// Disables plans that scan a whole table, which the server would choose now and then, and JIT
    /// compilation, which takes longer than the query.
    fn settings(&self, command: &Command) -> String {
        let lock_timeout = match command {
            // A poll that waits for a lock must not cost its worker the lease.
            Command::Step(step) => self.store.lock_timeout().min(step.lease.to_duration() / 8),
            _ => self.store.lock_timeout(),
        };
        let path = format!("pg_catalog, {}, pg_temp", quoted(self.schema()));
        let mut settings = vec![
            ("search_path", &*path),
            ("jit", "off"),
            ("enable_seqscan", "off"),
            ("enable_bitmapscan", "off"),
            ("enable_hashjoin", "off"),
            ("enable_mergejoin", "off"),
        ];
        if is_usual(command) {
            settings.push(("plan_cache_mode", "force_generic_plan"));
        }
        self.store.settings(lock_timeout.max(Duration::from_millis(1)), &settings)
    }

    async fn read(&self, queue: &QueueName, command: &Command) -> Result<Reply, StateError> {
        let mut left = MAX_ATTEMPTS;
        loop {
            match self.attempt_once(Mode::Read, queue, command).await {
                Ok(Attempt::Done(reply, _)) => return reply,
                Ok(Attempt::NeedsExclusive | Attempt::Retry) => {}
                Err(Failure { action: RetryAction::MakeTables, .. })
                    if !self.tables.are_current().await? =>
                {
                    return self.read_nothing(command);
                }
                Err(failure) => self.tables.check_retry(failure, &mut left)?,
            }
        }
    }

    async fn store(&self, mut mode: Mode, queue: &QueueName, command: &Command) -> Result<Reply, StateError> {
        let mut left = MAX_TRIES;
        loop {
            let made = self.tables.make().await;
            let attempt = match made {
                Ok(()) => self.attempt_once(mode, queue, command).await,
                Err(failure) => Err(failure),
            };
            match attempt {
                Ok(Attempt::Done(reply, is_notification_pending)) => {
                    if is_notification_pending {
                        self.notifier.notify_later(queue);
                    }
                    return reply;
                }
                Ok(Attempt::NeedsExclusive) => {
                    if mode == Mode::Shared {
                        self.headers.prefer_exclusive(queue, self.clock());
                    }
                    mode = Mode::Exclusive;
                }
                // Another process has created the queue, which happens only once.
                Ok(Attempt::Retry) => {}
                Err(failure) => self.tables.check_retry(failure, &mut left)?,
            }
        }
    }

    async fn attempt_once(
        &self,
        mode: Mode,
        queue: &QueueName,
        command: &Command,
    ) -> Result<Attempt, Failure> {
        let mut on = match is_usual(command) {
            true => self.tables.acquire_preparing().await?,
            false => self.tables.acquire().await?,
        };
        if matches!(command, Command::Change(Change::Recount)) {
            on.extend_timeout(RECOUNT_TIMEOUT);
        }
        let outcome = self.attempt(&on, mode, queue, command).await;
        on.finish(outcome)
    }

    async fn names(&self) -> Result<Vec<Row>, Failure> {
        let on = self.tables.acquire().await?;
        let (begin, settings) = (Mode::Read.beginning(), self.settings(&Command::Read(Read::Overview)));
        let sql = "SELECT name FROM interval_queue_task_queue ORDER BY name";
        let begun = try_join(on.batch_execute(&begin), on.batch_execute(&settings));
        let trip = try_join3(begun, on.query_typed(sql, &[]), on.batch_execute("COMMIT"));
        let names = on.round_trip(trip).await.map(|(_, rows, ())| rows);
        on.finish(names)
    }

    /// There are no tables.
    fn read_nothing(&self, command: &Command) -> Result<Reply, StateError> {
        let mut read_set = ReadSet::default();
        read_set.insert(Lookup::one(Target::Queue), LookupResult::Queue(None));
        match view::decide(&read_set, Micros::ZERO, command) {
            Outcome::Decided(reply, _) => reply,
            // The rules read nothing else if there is no queue.
            Outcome::Missing(_) => Err(rules::no_queue()),
        }
    }
}

/// The command repeats its statements, whose conditions allow only one plan.
fn is_usual(command: &Command) -> bool {
    matches!(command, Command::Step(_) | Command::Add(_))
}

/// # Cancel safety
///
/// If the future is dropped, the command has happened as a whole, or is rolled back. Its connection
/// returns to the pool afterwards.
#[async_trait]
impl TaskStore for PostgresTasks {
    async fn apply(&self, queue: &QueueName, command: Command) -> Result<Reply, StateError> {
        command.check()?;
        match self.mode_of(queue, &command) {
            Mode::Read => self.read(queue, &command).await,
            mode => self.store(mode, queue, &command).await,
        }
    }

    async fn queues(&self) -> Result<Vec<QueueName>, StateError> {
        let mut left = MAX_ATTEMPTS;
        let rows = loop {
            match self.names().await {
                Ok(rows) => break rows,
                Err(Failure { action: RetryAction::MakeTables, .. })
                    if !self.tables.are_current().await? =>
                {
                    break Vec::new();
                }
                Err(failure) => self.tables.check_retry(failure, &mut left)?,
            }
        };
        let named = |row: &Row| {
            let name: String = Reader::of(row).read()?;
            QueueName::new(name).map_err(|error| {
                let text =
                    "postgres has a queue in table interval_queue_task_queue whose name is none: remove that row";
                StateError::new(StateErrorKind::Foreign, text).with_source(error)
            })
        };
        rows.iter().map(named).collect()
    }

    async fn changes(&self, queue: &QueueName) -> Result<Changes, StateError> {
        self.store.watch_tasks(queue.as_str()).await
    }
}

impl fmt::Debug for PostgresTasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresTasks").field("schema", &self.store.schema()).finish_non_exhaustive()
    }
}
