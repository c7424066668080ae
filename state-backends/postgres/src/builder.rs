//! How a [`PostgresState`] is set up.

use std::{fmt, time::Duration};

use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod, Runtime};
use interval_queue_contract::{InvalidInput, StateError};

use crate::{
    PostgresState,
    address::Address,
    connection::Connections,
    migration,
    statements::{Statements, quoted},
    watch::Watching,
};

/// The longest name that PostgreSQL tells from others, in bytes.
const LONGEST_NAME: usize = 63;
const DAY: Duration = Duration::from_secs(24 * 3600);

/// Settings for a [`PostgresState`], checked by [`connect`](Builder::connect).
#[derive(Clone)]
#[must_use = "call connect"]
pub struct Builder {
    source: Source,
    schema: String,
    connections: usize,
    timeout: Duration,
    durability: Durability,
}

/// Where connections come from.
#[derive(Clone)]
enum Source {
    Url(String),
    Pool(Pool),
}

/// What a crash of the server may cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Durability {
    /// A command is answered once it is as safe as `synchronous_commit` of the server, the database or the
    /// user says; that is on the server's disk, unless somebody changed it. The default.
    #[default]
    Full,
    /// The server writes a moment later (`synchronous_commit = off`). A command is quicker by a flush, and
    /// the row is locked for less; a crash of the server may take the last commands back, about half a second
    /// of them, and damages nothing.
    Relaxed,
}

impl Builder {
    pub(crate) fn new(url: String) -> Self {
        Self::from(Source::Url(url))
    }

    pub(crate) fn over(pool: Pool) -> Self {
        Self::from(Source::Pool(pool))
    }

    fn from(source: Source) -> Self {
        Self {
            source,
            schema: "interval_queue".to_owned(),
            connections: 4,
            timeout: Duration::from_secs(2),
            durability: Durability::default(),
        }
    }

    /// The schema that has the tables: a name of 1 to 63 bytes, taken as it is, capitals and spaces too.
    /// Default: `interval_queue`.
    ///
    /// Queues in different schemas have nothing to do with each other.
    pub fn schema(mut self, schema: impl Into<String>) -> Self {
        self.schema = schema.into();
        self
    }

    /// How many connections there are at most, one for each command under way, from 1 to 1,000. Default: 4.
    ///
    /// They are made when they are needed, and kept. Watching takes one more, while a shard watches. A pool
    /// that the application shares has its own size.
    pub fn connections(mut self, connections: usize) -> Self {
        self.connections = connections;
        self
    }

    /// How long to wait for a connection, and for the answer in each of the two round trips of a command; 100
    /// ms at least. Default: 2 s.
    ///
    /// Half as long is waited for others who hold the row of the queue, and for a client that stopped while
    /// it holds the row. Commands that find all connections busy wait for three times as long.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// What a crash of the server may cost. Default: [`Durability::Full`].
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Connects, and checks that the database can be used. If the schema and its tables are not there, the
    /// first command that stores makes them, so that who only looks leaves nothing behind.
    ///
    /// # Errors
    ///
    /// | kind | why |
    /// |---|---|
    /// | `Invalid` | the address or a setting cannot be used |
    /// | `Unreachable` | no server answers there |
    /// | `NotFound` | there is no such database |
    /// | `Denied` | the server refuses user or password, is a read-only replica, or keeps the schema from the user |
    /// | `Foreign` | the tables were made by something else |
    /// | `NewerVersion` | they were made by a newer version of this software |
    /// | `Unsupported` | the server is older than version 13, or the database has another encoding than UTF8 |
    ///
    /// # Cancel safety
    ///
    /// It changes nothing.
    pub async fn connect(self) -> Result<PostgresState, StateError> {
        self.check()?;
        let (pool, place, watching) = match self.source {
            Source::Pool(pool) => (pool, "the place of the pool".to_owned(), Watching::impossible()),
            Source::Url(url) => {
                let address = Address::parse(&url, self.timeout)?;
                let manager = Manager::from_connect(
                    address.config.clone(),
                    address.clone(),
                    ManagerConfig { recycling_method: RecyclingMethod::Fast },
                );
                let pool = Pool::builder(manager)
                    .max_size(self.connections)
                    .runtime(Runtime::Tokio1)
                    .wait_timeout(Some(self.timeout * 3))
                    .create_timeout(Some(self.timeout))
                    .build()
                    .map_err(|error| InvalidInput::new(error.to_string()))?;
                (pool, address.place.clone(), Watching::new(address, self.schema.clone(), self.timeout))
            }
        };
        let connections = Connections::new(pool, &place, self.timeout);
        let is_made = migration::check(&connections, &self.schema).await?;
        let statements = Statements::new(&self.schema, self.timeout, self.durability);
        Ok(PostgresState::new(connections, self.schema, is_made, statements, watching))
    }

    /// The address, taken apart.
    #[cfg(feature = "fuzzing")]
    pub(crate) fn address(&self) -> Result<Option<Address>, StateError> {
        match &self.source {
            Source::Url(url) => Address::parse(url, self.timeout).map(Some),
            Source::Pool(_) => Ok(None),
        }
    }

    fn check(&self) -> Result<(), InvalidInput> {
        let schema = &self.schema;
        if schema.is_empty() || schema.len() > LONGEST_NAME || schema.chars().any(char::is_control) {
            let schema = quoted(&schema.escape_debug().to_string());
            let text =
                format!("schema {schema} cannot be a name: give 1 to {LONGEST_NAME} bytes of printable text");
            return Err(InvalidInput::new(text));
        }
        if schema.starts_with("pg_") {
            let text =
                format!("schema {schema:?} begins with \"pg_\", which belongs to the server: choose another");
            return Err(InvalidInput::new(text));
        }
        if !(1..=1_000).contains(&self.connections) {
            let text = format!("connections {} is out of range: give 1 to 1000", self.connections);
            return Err(InvalidInput::new(text));
        }
        let least = Duration::from_millis(100);
        if self.timeout < least || self.timeout > DAY {
            let text = format!("timeout {:?} is out of range: give {least:?} to {DAY:?}", self.timeout);
            return Err(InvalidInput::new(text));
        }
        Ok(())
    }
}

/// Without the address, which may hold a password.
impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("schema", &self.schema)
            .field("connections", &self.connections)
            .field("timeout", &self.timeout)
            .field("durability", &self.durability)
            .finish_non_exhaustive()
    }
}
