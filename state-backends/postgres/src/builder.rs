//! How a [`PostgresState`] is set up.

use std::time::Duration;

use interval_queue_contract::{StateError, StateErrorKind};

use crate::PostgresState;

/// Settings for a [`PostgresState`], checked by [`connect`](Builder::connect).
#[derive(Clone)]
#[must_use = "call connect"]
pub struct Builder {
    pub(crate) url: String,
    schema: String,
    connections: usize,
    timeout: Duration,
    durability: Durability,
}

/// What a crash of the server may cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Durability {
    /// A command is answered once it is on the disk, as far as `synchronous_commit` of the server says so. The default.
    #[default]
    Full,
    /// The server writes a moment later (`synchronous_commit = off`). A crash may take the last commands back.
    Relaxed,
}

impl Builder {
    pub(crate) fn new(url: String) -> Self {
        Self {
            url,
            schema: "interval_queue".to_owned(),
            connections: 4,
            timeout: Duration::from_secs(2),
            durability: Durability::default(),
        }
    }

    /// The schema that has the tables. Default: `interval_queue`.
    pub fn schema(mut self, schema: impl Into<String>) -> Self {
        self.schema = schema.into();
        self
    }

    /// How many connections there are at most. Default: 4.
    pub fn connections(mut self, connections: usize) -> Self {
        self.connections = connections;
        self
    }

    /// How long a command may take. Default: 2 s.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// What a crash of the server may cost. Default: [`Durability::Full`].
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Connects, and creates the tables unless they are there.
    ///
    /// # Errors
    ///
    /// The address or a setting cannot be used.
    pub async fn connect(self) -> Result<PostgresState, StateError> {
        let _ = (self.schema, self.connections, self.timeout, self.durability);
        Err(StateError::new(StateErrorKind::Unsupported, "not yet"))
    }
}
