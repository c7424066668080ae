//! A PostgreSQL and what is done on any: connect, transact in few round trips, make tables, and watch. It
//! does not know what the tables are for.

mod address;
mod builder;
mod connection;
mod dialing;
mod error;
mod migrate;
mod sql;
mod tables;
mod tls;
mod watch;

use std::{fmt, sync::Arc, time::Duration};

use deadpool_postgres::Pool;
use interval_queue_contract::{Changes, StateError, StateErrorKind};

pub use self::builder::{Builder, Durability};
use self::{migrate::Server, watch::Listener};
pub(crate) use self::{
    sql::{Statement, literal, quoted},
    tables::Tables,
};

/// Connections to a PostgreSQL, and the schema in it that is used. Cloning gives another handle to the same
/// connections.
#[derive(Clone)]
pub struct PostgresStore(Arc<Inner>);

struct Inner {
    pool: Pool,
    /// Hosts and ports, for errors.
    place: String,
    server: Server,
    schema: String,
    timeout: Duration,
    /// Begins a transaction that waits for a row, or for its client, only so long.
    begin: String,
    /// None where connections are lent.
    watching: Option<Listener>,
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
        let Some(watching) = &self.0.watching else {
            let text = "a pool that is shared cannot listen: connect by an address, or leave wake-ups off";
            return Err(StateError::new(StateErrorKind::Unsupported, text));
        };
        watching.watch(name).await
    }
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore").field("schema", &self.0.schema).finish_non_exhaustive()
    }
}
