//! A PostgreSQL and what is done on any: connect, transact in few round trips, make tables, and watch. It
//! does not know what the tables are for.

mod address;
mod builder;
mod connection;
mod dialing;
mod error;
mod migrate;
mod prepared;
mod sql;
mod tables;
mod tls;
mod watch;

use std::{fmt, sync::Arc, time::Duration};

use deadpool_postgres::Pool;
use interval_queue_contract::{Changes, StateError, StateErrorKind};
use tokio_postgres::types::Type;

pub use self::builder::{Builder, Durability};
use self::{builder::LONGEST_NAME, migrate::Server, prepared::Sessions, watch::Listener};
pub(crate) use self::{
    connection::PooledConnection,
    error::{Failure, RetryAction},
    sql::{Query, Statement, begin_at, literal, quoted},
    tables::{MAX_ATTEMPTS, Tables},
};

/// Connections to a PostgreSQL, and the schema in it that is used. Cloning gives another handle to the same
/// connections.
#[derive(Clone)]
pub struct PostgresStore(Arc<Inner>);

struct Inner {
    pool: Pool,
    sessions: Arc<Sessions>,
    /// Hosts and ports, for errors.
    server_name: String,
    server: Server,
    schema: String,
    timeout: Duration,
    /// Begins a transaction that waits for a row, or for its client, only so long.
    begin: String,
    durability: Durability,
    /// None where connections are lent.
    watching: Option<Listener>,
    /// The same for stored tasks.
    watching_tasks: Option<Listener>,
}

impl PostgresStore {
    /// Connects with the settings of the URL. The [crate] says which URLs there are.
    ///
    /// # Errors
    ///
    /// Those of [`Builder::connect`].
    pub async fn connect(url: &str) -> Result<Self, StateError> {
        Self::builder(url).connect().await
    }

    /// The settings of the URL, to change some before it connects, which is also when a URL that cannot be
    /// used is an error.
    pub fn builder(url: &str) -> Builder {
        Builder::new(url)
    }

    /// The same over a pool that the application uses for other things, too. A command takes one of its
    /// connections for two round trips. Nobody can be woken by [`changes`] then, since a lent connection
    /// cannot listen.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// use interval_queue_postgres::{PostgresState, PostgresStore, deadpool_postgres::{Config, Runtime}};
    /// use tokio_postgres::NoTls;
    ///
    /// let mut config = Config::new();
    /// config.url = Some("postgres://pacer:secret@127.0.0.1/app".into());
    /// let pool = config.create_pool(Some(Runtime::Tokio1), NoTls)?;
    /// let store = PostgresStore::over(pool.clone()).schema("pace").connect().await?;
    /// let state = PostgresState::on(&store).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// [`changes`]: interval_queue_contract::SharedState::changes
    pub fn over(pool: Pool) -> Builder {
        Builder::over(pool)
    }

    /// The schema that has the tables.
    pub fn schema(&self) -> &str {
        &self.0.schema
    }

    /// Hears of each name that is told on the channel of the [schema](Self::schema). All who watch share one
    /// connection, which is there only meanwhile.
    pub(crate) async fn watch(&self, name: &str) -> Result<Changes, StateError> {
        self.0.watching.as_ref().ok_or_else(cannot_listen)?.watch(name).await
    }

    /// Hears of each name that is told on the channel of stored tasks.
    pub(crate) async fn watch_tasks(&self, name: &str) -> Result<Changes, StateError> {
        self.0.watching_tasks.as_ref().ok_or_else(cannot_listen)?.watch(name).await
    }

    /// Tells these names on that channel.
    pub(crate) async fn notify_tasks(&self, names: &[String]) -> Result<(), StateError> {
        let on = self.0.acquire().await.map_err(|failure| failure.error)?;
        let notified = on.round_trip(on.batch_execute(&self.notification_sql(names))).await;
        on.finish(notified).map_err(|failure| failure.error)
    }

    /// The same in SQL, as a transaction of its own. That it is flushed nobody has to wait for.
    pub(crate) fn notification_sql(&self, names: &[String]) -> String {
        let channel = quoted(&channel_of_tasks(self.schema()));
        let notify = |name: &String| format!("; NOTIFY {channel}, {}", literal(name));
        "SET LOCAL synchronous_commit = off".to_owned() + &names.iter().map(notify).collect::<String>()
    }

    /// What tells a name on that channel within a transaction.
    pub(crate) fn notification_query(&self, name: String) -> Query {
        Query::new("SELECT pg_notify($1, $2)")
            .with(channel_of_tasks(self.schema()), Type::TEXT)
            .with(name, Type::TEXT)
    }

    /// How long a transaction waits for what others hold, and for its client.
    pub(crate) fn lock_timeout(&self) -> Duration {
        self.0.timeout / 2
    }

    /// The settings of a transaction with this patience, and these, in one statement.
    pub(crate) fn settings(&self, lock_timeout: Duration, settings: &[(&str, &str)]) -> String {
        sql::settings(lock_timeout, self.0.durability, settings)
    }
}

fn cannot_listen() -> StateError {
    let text = "a pool that is shared cannot listen: connect by an address, or leave wake-ups off";
    StateError::new(StateErrorKind::Unsupported, text)
}

/// The channel on which nudges of the tasks in a schema are told, as long as a name may be.
fn channel_of_tasks(schema: &str) -> String {
    let mut channel = format!("tasks {schema}");
    while channel.len() > LONGEST_NAME {
        channel.pop();
    }
    channel
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore").field("schema", &self.0.schema).finish_non_exhaustive()
    }
}
