//! The options of a [`PostgresStore`].

use std::{fmt, sync::Arc, time::Duration};

use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod, Runtime};
use interval_queue_contract::{InvalidInput, StateError};
use interval_queue_store::Url;

use super::{
    Inner, PostgresStore,
    address::Address,
    channel_of_tasks,
    migrate::Server,
    sql::{begin, quoted},
    watch::Listener,
};

/// In bytes. The server cuts longer names.
pub(super) const LONGEST_NAME: usize = 63;
const DAY: Duration = Duration::from_secs(24 * 3600);

/// Settings for a [`PostgresStore`], checked by [`connect`](Builder::connect).
#[derive(Clone, Debug)]
#[must_use = "call connect"]
pub struct Builder {
    source: Source,
    schema: String,
    connections: usize,
    timeout: Duration,
    durability: Durability,
}

#[derive(Clone)]
enum Source {
    Address(Result<Box<Address>, InvalidInput>),
    Pool(Pool),
}

/// Durability: the commands that a crash of the server may lose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Durability {
    /// A command returns once it is as safe as `synchronous_commit` of the server, the database or
    /// the user demands. By default this is the server's disk. The default.
    #[default]
    Full,
    /// The server flushes a moment later (`synchronous_commit = off`). A command saves one flush
    /// and locks the row for a shorter time. A crash of the server may lose the last commands,
    /// about half a second of them, and damages nothing.
    Relaxed,
}

impl Builder {
    pub(super) fn new(url: &str) -> Self {
        Url::parse(url, "postgres://HOST/DATABASE")
            .and_then(Self::from_url)
            .unwrap_or_else(|error| Self::from(Source::Address(Err(error))))
    }

    /// The settings of a parsed URL.
    ///
    /// # Errors
    ///
    /// The address cannot be used, or a parameter of the URL is unknown.
    pub fn from_url(mut url: Url) -> Result<Self, InvalidInput> {
        let schema = url.text("schema")?;
        let connections = url.count("connections")?;
        let timeout = url.duration("timeout")?;
        let durabilities = [("full", Durability::Full), ("relaxed", Durability::Relaxed)];
        let durability = url.choice("durability", &durabilities)?;
        let ours = Self::from(Source::Address(Ok(Box::new(Address::take(&mut url)?))));
        url.finish()?;
        Ok(Self {
            schema: schema.unwrap_or(ours.schema),
            connections: connections.unwrap_or(ours.connections),
            timeout: timeout.unwrap_or(ours.timeout),
            durability: durability.unwrap_or(ours.durability),
            source: ours.source,
        })
    }

    pub(super) fn over(pool: Pool) -> Self {
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

    /// The schema of the tables: a name of 1 to 63 bytes, case-sensitive, spaces allowed. Default:
    /// `interval_queue`.
    ///
    /// Queues in different schemas are independent.
    pub fn schema(mut self, schema: impl Into<String>) -> Self {
        self.schema = schema.into();
        self
    }

    /// Maximum number of connections, one for each running command, from 1 to 1,000. Default: 4.
    ///
    /// Connections are opened on demand and kept. A watching shard needs one more. A shared pool of
    /// the application has its own size.
    pub fn connections(mut self, connections: usize) -> Self {
        self.connections = connections;
        self
    }

    /// Maximum wait for a connection, and for the answer in each of the two round trips of a
    /// command. At least 100 ms. Default: 2 s.
    ///
    /// A command waits half of this time for a row that another process has locked. The server ends
    /// the transaction of a client that holds the row and stays silent for as long. If all
    /// connections are busy, a command waits for up to three times this time.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Durability: the commands that a crash of the server may lose. Default: [`Durability::Full`].
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Connects, and checks that the server can be used.
    ///
    /// # Errors
    ///
    /// | kind | why |
    /// |---|---|
    /// | `Invalid` | the address or a setting cannot be used |
    /// | `Unreachable` | no server answers there |
    /// | `NotFound` | there is no such database |
    /// | `Denied` | the server refuses user or password, or is a read-only replica |
    /// | `Unsupported` | the server is older than version 13, or the database has another encoding than UTF8 |
    ///
    /// # Cancel safety
    ///
    /// It changes nothing.
    pub async fn connect(self) -> Result<PostgresStore, StateError> {
        self.check()?;
        let Self { source, schema, connections, timeout, durability } = self;
        let (pool, server_name, dialer) = match source {
            Source::Pool(pool) => (pool, "the server of the pool".to_owned(), None),
            Source::Address(address) => {
                let dialer = address?.dialer(timeout)?;
                let manager = Manager::from_connect(
                    dialer.config.clone(),
                    dialer.clone(),
                    ManagerConfig { recycling_method: RecyclingMethod::Fast },
                );
                let pool = Pool::builder(manager)
                    .max_size(connections)
                    .runtime(Runtime::Tokio1)
                    .wait_timeout(Some(timeout * 3))
                    .create_timeout(Some(dialer.limit))
                    .build()
                    .map_err(|error| InvalidInput::new(error.to_string()))?;
                (pool, dialer.server_name.clone(), Some(dialer))
            }
        };
        let listener = |channel: &str| Some(Listener::new(dialer.clone()?, channel, timeout));
        let (watching, watching_tasks) = (listener(&schema), listener(&channel_of_tasks(&schema)));
        let begin = begin(timeout / 2, durability);
        let server = Server::default();
        let sessions = Arc::default();
        let mut inner = Inner {
            pool,
            sessions,
            server_name,
            server,
            schema,
            timeout,
            begin,
            durability,
            watching,
            watching_tasks,
        };
        inner.server = inner.check_server().await.map_err(|failure| failure.error)?;
        Ok(PostgresStore(Arc::new(inner)))
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

/// The address may contain a password.
impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if matches!(self, Self::Pool(_)) { "Pool" } else { "Address" })
    }
}
