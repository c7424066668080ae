//! The state backend.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::SystemTime,
};

use async_trait::async_trait;
use deadpool_postgres::Pool;
use futures::future::{try_join, try_join3};
use interval_queue_contract::{
    Changes, Command, Micros, QueueName, Reading, Record, Reply, SharedState, StateError, StateErrorKind,
    rules,
};
use tokio_postgres::{
    Row,
    types::{ToSql, Type},
};

use crate::{
    builder::Builder,
    connection::{Connections, Lent},
    error::{Then, Trouble},
    migration,
    statements::Statements,
    watch::Watching,
};

/// How often a command is tried that was certainly not carried out.
const ATTEMPTS: u32 = 3;

/// State in PostgreSQL. Cloning gives another handle to the same connections.
#[derive(Clone)]
pub struct PostgresState {
    connections: Connections,
    schema: Arc<str>,
    /// Whether the tables are there, as far as is known.
    is_made: Arc<AtomicBool>,
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

    /// The same over a pool that the application uses for other things, too. A command takes one of its
    /// connections for two round trips. [`changes`](SharedState::changes) is
    /// [`Unsupported`](StateErrorKind::Unsupported) then, since a lent connection cannot listen.
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
        is_made: bool,
        statements: Statements,
        watching: Watching,
    ) -> Self {
        Self {
            connections,
            schema: schema.into(),
            is_made: Arc::new(is_made.into()),
            statements: Arc::new(statements),
            watching: Arc::new(watching),
        }
    }

    /// Whether to try again what certainly was not carried out. An error says not to.
    fn again(&self, trouble: Trouble, left: &mut u32) -> Result<(), StateError> {
        *left -= 1;
        match trouble.then {
            Then::GiveUp => Err(trouble.error),
            _ if *left == 0 => Err(trouble.error),
            Then::TryAgain => Ok(()),
            Then::MakeTables => {
                self.is_made.store(false, Ordering::Relaxed);
                Ok(())
            }
        }
    }

    async fn attempt(&self, queue: &QueueName, command: &Command) -> Result<Answer, Trouble> {
        if *command != Command::Read && !self.is_made.load(Ordering::Relaxed) {
            migration::prepare(&self.connections, &self.schema).await?;
            self.is_made.store(true, Ordering::Relaxed);
        }
        let lent = self.connections.lend().await?;
        let outcome = match command {
            Command::Read => self.read(&lent, queue).await.map(Ok),
            _ => self.transact(&lent, queue, command).await,
        };
        lent.after(outcome)
    }

    async fn read(&self, on: &Lent, queue: &QueueName) -> Result<Reply, Trouble> {
        let name = queue.as_str();
        let named: [Parameter<'_>; 1] = [(&name, Type::TEXT)];
        let row = self.look(on, on.query_typed_one(&self.statements.read, &named)).await?;
        let (mut record, reading) = found(&row, queue)?;
        Ok(rules::apply(&mut record, &reading, &Command::Read)?)
    }

    /// One round trip: a transaction, so that the server does not wait longer for a lock on the table than
    /// this does for the server.
    async fn look<T>(
        &self,
        on: &Lent,
        at: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, Trouble> {
        let looked = try_join3(on.batch_execute(&self.statements.begin), at, on.batch_execute("COMMIT"));
        let ((), seen, ()) = self.connections.ask(looked).await?;
        Ok(seen)
    }

    /// A transaction of two round trips, each of which sends all it has to say at once.
    async fn transact(&self, on: &Lent, queue: &QueueName, command: &Command) -> Result<Answer, Trouble> {
        let (name, sql) = (queue.as_str(), &*self.statements);
        let named: [Parameter<'_>; 1] = [(&name, Type::TEXT)];
        for _ in 0..ATTEMPTS {
            let locked = try_join(on.batch_execute(&sql.begin), on.query_typed_one(&sql.lock, &named));
            let ((), row) = self.connections.ask(locked).await?;
            let (mut record, reading) = found(&row, queue)?;
            let store = if record.is_some() { &sql.update } else { &sql.insert };
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
                    Command::Change(..) => on.query_typed(&sql.notify, &named).await.map(drop),
                    _ => Ok(()),
                }
            };
            let both: [Parameter<'_>; 2] = [(&name, Type::TEXT), (&text, Type::TEXT)];
            let stored = try_join3(on.execute_typed(store, &both), told, on.batch_execute("COMMIT"));
            let (rows, ..) = self.connections.commit(stored).await?;
            if rows == 1 {
                return Ok(answer);
            }
            // Somebody else created the row since.
        }
        let text = "postgres does not keep the row of the queue: see which trigger or policy of the table forbids it";
        Err(StateError::new(StateErrorKind::Denied, text).into())
    }

    async fn names(&self) -> Result<Vec<QueueName>, Trouble> {
        let lent = self.connections.lend().await?;
        let looked = self.look(&lent, lent.query_typed(&self.statements.names, &[])).await;
        let rows = lent.after(looked)?;
        // A name that is none was put there by hand.
        Ok(rows.iter().filter_map(|row| QueueName::new(row.try_get::<_, String>(0).ok()?).ok()).collect())
    }
}

/// A value and its type, so that the server need not be asked for that first.
type Parameter<'a> = (&'a (dyn ToSql + Sync), Type);

/// What the rules say, once it is stored.
type Answer = Result<Reply, StateError>;

/// The record in a row, and what the server's clock and name were.
fn found(row: &Row, queue: &QueueName) -> Result<(Option<Record>, Reading), StateError> {
    let unreadable = |error: tokio_postgres::Error| {
        StateError::new(StateErrorKind::Unsupported, "postgres answers with something else")
            .with_source(error)
    };
    let text: Option<&str> = row.try_get(0).map_err(unreadable)?;
    let now: SystemTime = row.try_get(1).map_err(unreadable)?;
    let began: SystemTime = row.try_get(2).map_err(unreadable)?;
    let record = text.map(Record::from_json).transpose().map_err(|error| {
        let what = match error.kind() {
            StateErrorKind::NewerVersion => "was written by a newer version: upgrade the program",
            _ => "cannot be used: put a good copy in its place, or delete its row to begin anew",
        };
        let text = format!("the record of queue {:?} in postgres {what}", queue.as_str());
        StateError::new(error.kind(), text).with_source(error)
    })?;
    Ok((record, Reading { now: micros(now), incarnation: micros(began).get().to_string() }))
}

/// Since 1970.
fn micros(instant: SystemTime) -> Micros {
    let since = instant.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Micros::from_duration(since)
}

/// # Cancel safety
///
/// A dropped future leaves a command that has happened, or has not and is rolled back. Its connection can be
/// used again after that.
#[async_trait]
impl SharedState for PostgresState {
    async fn apply(&self, queue: &QueueName, command: Command) -> Result<Reply, StateError> {
        let mut left = ATTEMPTS;
        loop {
            match self.attempt(queue, &command).await {
                Ok(answer) => return answer,
                // A look makes no tables.
                Err(Trouble { then: Then::MakeTables, .. }) if command == Command::Read => {
                    return Ok(Reply::Read(None));
                }
                Err(trouble) => self.again(trouble, &mut left)?,
            }
        }
    }

    async fn queues(&self) -> Result<Vec<QueueName>, StateError> {
        let mut left = ATTEMPTS;
        loop {
            match self.names().await {
                Ok(names) => return Ok(names),
                Err(Trouble { then: Then::MakeTables, .. }) => return Ok(Vec::new()),
                Err(trouble) => self.again(trouble, &mut left)?,
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
