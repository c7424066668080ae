//! Operations on a PostgreSQL server: connect, run transactions in few round trips, migrate tables,
//! watch. Components give the tables their meaning.

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

pub use self::builder::{Builder, Durability};
use self::{builder::LONGEST_NAME, migrate::Server, prepared::Sessions, watch::Listener};
pub(crate) use self::{
    connection::PooledConnection,
    error::{Failure, RetryAction},
    sql::{Query, Statement, begin_at, literal, quoted},
    tables::{MAX_ATTEMPTS, Tables},
};

/// Connections to a PostgreSQL server, and the schema in use. Clones share the connections.
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
    /// Includes time-outs for locks and for a silent client.
    begin: String,
    durability: Durability,
    /// `None` over a pool of the application.
    watching: Option<Listener>,
    /// `None` over a pool of the application.
    watching_tasks: Option<Listener>,
}

impl PostgresStore {
    /// Connects with the settings of the URL. See the [crate](crate) for the URLs.
    ///
    /// # Errors
    ///
    /// As [`Builder::connect`].
    pub async fn connect(url: &str) -> Result<Self, StateError> {
        Self::builder(url).connect().await
    }

    /// Returns a builder with the settings of the URL. An invalid URL is reported by
    /// [`Builder::connect`].
    pub fn builder(url: &str) -> Builder {
        Builder::new(url)
    }

    /// Uses a pool that the application also uses for other things. A command takes one of its
    /// connections for two round trips. [`changes`] is not supported, since a shared connection
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

    /// The schema of the tables.
    pub fn schema(&self) -> &str {
        &self.0.schema
    }

    /// Listens on the channel of the [schema](Self::schema).
    pub(crate) async fn watch(&self, name: &str) -> Result<Changes, StateError> {
        self.0.watching.as_ref().ok_or_else(cannot_listen)?.watch(name).await
    }

    pub(crate) async fn watch_tasks(&self, name: &str) -> Result<Changes, StateError> {
        self.0.watching_tasks.as_ref().ok_or_else(cannot_listen)?.watch(name).await
    }

    pub(crate) async fn notify_tasks(&self, names: &[String]) -> Result<(), StateError> {
        let on = self.0.acquire().await.map_err(|failure| failure.error)?;
        let notified = on.round_trip(on.batch_execute(&self.notification_sql(names))).await;
        on.finish(notified).map_err(|failure| failure.error)
    }

    /// For a transaction of its own, whose commit does not wait for the disk.
    pub(crate) fn notification_sql(&self, names: &[String]) -> String {
        let channel = quoted(&channel_of_tasks(self.schema()));
        let notify = |name: &String| format!("; NOTIFY {channel}, {}", literal(name));
        "SET LOCAL synchronous_commit = off".to_owned() + &names.iter().map(notify).collect::<String>()
    }

    /// Also the time for which the server waits for a silent client.
    pub(crate) fn lock_timeout(&self) -> Duration {
        self.0.timeout / 2
    }

    /// Returns one statement.
    pub(crate) fn settings(&self, lock_timeout: Duration, settings: &[(&str, &str)]) -> String {
        sql::settings(lock_timeout, self.0.durability, settings)
    }
}

fn cannot_listen() -> StateError {
    let text = "a pool that is shared cannot listen: connect by an address, or leave wake-ups off";
    StateError::new(StateErrorKind::Unsupported, text)
}

/// Cut to the maximum length of a name.
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
