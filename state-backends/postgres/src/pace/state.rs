//! The backend of rate limits.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use interval_queue_contract::{Changes, Command, QueueName, Reply, SharedState, StateError, rules};

use super::{
    row::read_record,
    statements::{PACE, Statements},
};
use crate::store::{PostgresStore, Statement, Tables};

/// Rate limits in PostgreSQL. Clones share the connections.
#[derive(Clone)]
pub struct PostgresState {
    store: PostgresStore,
    tables: Tables,
    statements: Arc<Statements>,
}

impl PostgresState {
    /// Opens the queues of a store. If the schema and its tables are missing, the first command
    /// that stores something creates them; reads create nothing.
    ///
    /// # Errors
    ///
    /// | kind | why |
    /// |---|---|
    /// | `Unreachable` | the server does not answer any more |
    /// | `Denied` | the server keeps the schema from the user |
    /// | `Foreign` | something else made the tables |
    /// | `Damaged` | one of the two tables is missing |
    /// | `NewerVersion` | a newer version of this software made them |
    ///
    /// # Cancel safety
    ///
    /// It changes nothing.
    pub async fn on(store: &PostgresStore) -> Result<Self, StateError> {
        let tables = store.tables(PACE).await?;
        let statements = Arc::new(Statements::new(store.schema()));
        Ok(Self { store: store.clone(), tables, statements })
    }

    /// Connects with the settings of the URL. See the [crate](crate) for the URLs.
    ///
    /// # Errors
    ///
    /// As [`Builder::connect`](crate::Builder::connect) and [`on`](Self::on).
    pub async fn connect(url: &str) -> Result<Self, StateError> {
        Self::on(&PostgresStore::connect(url).await?).await
    }
}

/// # Cancel safety
///
/// If the future is dropped, the command has happened as a whole, or is rolled back. Its connection
/// returns to the pool afterwards.
#[async_trait]
impl SharedState for PostgresState {
    async fn apply(&self, queue: &QueueName, command: Command) -> Result<Reply, StateError> {
        let (name, sql) = (queue.as_str(), &*self.statements);
        if command == Command::Read {
            let rows = self.tables.read(&Statement::new(&sql.read).with(name)).await?.unwrap_or_default();
            let Some(row) = rows.first() else { return Ok(Reply::Read(None)) };
            let (mut record, reading) = read_record(row, queue)?;
            return rules::apply(&mut record, &reading, &command);
        }
        let lock = Statement::new(&sql.lock).with(name);
        let decide = |row: &_| {
            let (mut record, reading) = read_record(row, queue)?;
            let store = if record.is_some() { &sql.update } else { &sql.insert };
            let reply = rules::apply(&mut record, &reading, &command)?;
            let mut statements = vec![match record {
                Some(record) => Statement::new(store).with(name).with(record.to_json()?),
                None => Statement::new(&sql.delete).with(name),
            }];
            if matches!(command, Command::Change(..)) {
                statements.push(Statement::new(&sql.notify).with(name));
            }
            Ok((reply, statements))
        };
        self.tables.transact(&lock, decide).await
    }

    async fn queues(&self) -> Result<Vec<QueueName>, StateError> {
        let rows = self.tables.read(&Statement::new(&self.statements.names)).await?.unwrap_or_default();
        // Skips invalid names, which only manual changes can add.
        Ok(rows.iter().filter_map(|row| QueueName::new(row.try_get::<_, String>(0).ok()?).ok()).collect())
    }

    async fn changes(&self, queue: &QueueName) -> Result<Changes, StateError> {
        self.store.watch(queue.as_str()).await
    }
}

impl fmt::Debug for PostgresState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresState").field("schema", &self.store.schema()).finish_non_exhaustive()
    }
}
