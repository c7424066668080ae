//! The state backend.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use deadpool_postgres::Pool;
use futures::future::{try_join3, try_join5};
use interval_queue_contract::{
    Changes, Command, Micros, QueueName, Reading, Record, Reply, SharedState, StateError, StateErrorKind,
    rules,
};
use tokio_postgres::{Row, types::ToSql};

use crate::{
    builder::Builder,
    connection::{Connections, Lent},
    error::{Then, Trouble},
    migration,
    statements::{BEGIN, Statements},
    watch::Watching,
};

/// How often a command is tried that was certainly not carried out.
const ATTEMPTS: u32 = 3;

/// State in PostgreSQL. Cloning gives another handle to the same connections.
#[derive(Clone)]
pub struct PostgresState {
    connections: Connections,
    schema: Arc<str>,
    statements: Arc<Statements>,
    watching: Arc<Watching>,
}

impl PostgresState {
    /// Connects with default settings. The [crate] says which addresses there are.
    ///
    /// # Errors
    ///
    /// Those of [`Builder::connect`].
    pub async fn connect(url: impl Into<String>) -> Result<Self, StateError> {
        Self::builder(url).connect().await
    }

    /// Settings to change before it connects.
    pub fn builder(url: impl Into<String>) -> Builder {
        Builder::new(url.into())
    }

    /// The same over a pool that the application uses for other things, too. A command takes one of its connections for two
    /// round trips. [`changes`](SharedState::changes) is [`Unsupported`](StateErrorKind::Unsupported) then, since a lent connection
    /// cannot listen.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// use interval_queue_postgres::{PostgresState, deadpool_postgres::{Config, Runtime}};
    /// use tokio_postgres::NoTls;
    ///
    /// let mut config = Config::new();
    /// config.url = Some("postgres://pacer:secret@127.0.0.1/app".into());
    /// let pool = config.create_pool(Some(Runtime::Tokio1), NoTls)?;
    /// let state = PostgresState::over(pool.clone()).schema("pace").connect().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn over(pool: Pool) -> Builder {
        Builder::over(pool)
    }

    pub(crate) fn new(
        connections: Connections,
        schema: String,
        statements: Statements,
        watching: Watching,
    ) -> Self {
        Self {
            connections,
            schema: schema.into(),
            statements: Arc::new(statements),
            watching: Arc::new(watching),
        }
    }

    /// Whether to try again what certainly was not carried out. An error says not to.
    async fn again(&self, trouble: Trouble, left: &mut u32) -> Result<(), StateError> {
        let Trouble { error, then } = trouble;
        *left -= 1;
        match then {
            Then::TryAgain if *left > 0 => Ok(()),
            Then::MakeTables if *left > 0 => migration::prepare(&self.connections, &self.schema).await,
            _ => Err(error),
        }
    }

    async fn attempt(&self, queue: &QueueName, command: &Command) -> Result<Answer, Trouble> {
        let lent = self.connections.lend().await?;
        let answer = match command {
            Command::Read => Ok(self.read(&lent, queue).await?),
            _ => self.transact(&lent, queue, command).await?,
        };
        lent.give_back();
        Ok(answer)
    }

    async fn read(&self, on: &Lent, queue: &QueueName) -> Result<Reply, Trouble> {
        let name = queue.as_str();
        let read = self.connections.ask(on.prepare_cached(&self.statements.read)).await?;
        let row = self.connections.ask(on.query_one(&read, &[&name])).await?;
        let (mut record, reading) = found(&row, queue)?;
        Ok(rules::apply(&mut record, &reading, &Command::Read)?)
    }

    /// A transaction of two round trips, each of which sends all it has to say at once.
    async fn transact(&self, on: &Lent, queue: &QueueName, command: &Command) -> Result<Answer, Trouble> {
        let (name, sql) = (queue.as_str(), &*self.statements);
        // What is prepared already takes no time.
        let (limits, lock, update, insert, notify) = &self
            .connections
            .ask(try_join5(
                on.prepare_cached(&sql.limits),
                on.prepare_cached(&sql.lock),
                on.prepare_cached(&sql.update),
                on.prepare_cached(&sql.insert),
                on.prepare_cached(&sql.notify),
            ))
            .await?;
        let named: [&(dyn ToSql + Sync); 1] = [&name];
        loop {
            let locked =
                try_join3(on.batch_execute(BEGIN), on.query_one(limits, &[]), on.query_one(lock, &named));
            let (.., row) = self.connections.ask(locked).await?;
            let (mut record, reading) = found(&row, queue)?;
            let store = if record.is_some() { update } else { insert };
            let answer = rules::apply(&mut record, &reading, command);
            let text = match (&answer, &record) {
                (Ok(_), Some(record)) => record.to_json()?,
                _ => {
                    self.connections.ask(on.batch_execute("ROLLBACK")).await?;
                    return Ok(answer);
                }
            };
            let told = async {
                match command {
                    Command::Change(..) => on.query_one(notify, &named).await.map(drop),
                    _ => Ok(()),
                }
            };
            let both: [&(dyn ToSql + Sync); 2] = [&name, &text];
            let stored = try_join3(on.execute(store, &both), told, on.batch_execute("COMMIT"));
            let (rows, ..) = self.connections.commit(stored).await?;
            if rows == 1 {
                return Ok(answer);
            }
            // Somebody else created the row since.
        }
    }

    async fn names(&self) -> Result<Vec<QueueName>, Trouble> {
        let lent = self.connections.lend().await?;
        let rows = self.connections.ask(lent.query(&self.statements.names, &[])).await?;
        lent.give_back();
        // A name that is none was put there by hand.
        Ok(rows.iter().filter_map(|row| QueueName::new(row.try_get::<_, String>(0).ok()?).ok()).collect())
    }
}

/// What the rules say, once it is stored.
type Answer = Result<Reply, StateError>;

/// The record in a row, and what the server's clock and name were.
fn found(row: &Row, queue: &QueueName) -> Result<(Option<Record>, Reading), StateError> {
    let unreadable = |error: tokio_postgres::Error| {
        StateError::new(StateErrorKind::Unsupported, "postgres answers with something else")
            .with_source(error)
    };
    let text: Option<&str> = row.try_get(0).map_err(unreadable)?;
    let now: i64 = row.try_get(1).map_err(unreadable)?;
    let incarnation: String = row.try_get(2).map_err(unreadable)?;
    let record = text.map(Record::from_json).transpose().map_err(|error| {
        let what = match error.kind() {
            StateErrorKind::NewerVersion => "was written by a newer version: upgrade the program",
            _ => "cannot be used: put a good copy in its place, or delete its row to begin anew",
        };
        let text = format!("the record of queue {:?} in postgres {what}", queue.as_str());
        StateError::new(error.kind(), text).with_source(error)
    })?;
    Ok((record, Reading { now: Micros::new(u64::try_from(now).unwrap_or(0)), incarnation }))
}

/// # Cancel safety
///
/// A dropped future closes its connection, and with it a transaction that had not ended: the command has happened or has not.
#[async_trait]
impl SharedState for PostgresState {
    async fn apply(&self, queue: &QueueName, command: Command) -> Result<Reply, StateError> {
        let mut left = ATTEMPTS;
        loop {
            match self.attempt(queue, &command).await {
                Ok(answer) => return answer,
                Err(trouble) => self.again(trouble, &mut left).await?,
            }
        }
    }

    async fn queues(&self) -> Result<Vec<QueueName>, StateError> {
        let mut left = ATTEMPTS;
        loop {
            match self.names().await {
                Ok(names) => return Ok(names),
                Err(trouble) => self.again(trouble, &mut left).await?,
            }
        }
    }

    /// All queues of a state are watched over one connection, which is there only meanwhile.
    async fn changes(&self, queue: &QueueName) -> Result<Changes, StateError> {
        self.watching.watch(queue).await
    }
}

impl fmt::Debug for PostgresState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresState").field("schema", &self.schema).finish_non_exhaustive()
    }
}
