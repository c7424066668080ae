//! The state backend.

use std::{collections::BTreeSet, time::Duration};

use async_trait::async_trait;
use interval_queue_contract::{Changes, Command, QueueName, Reply, SharedState, StateError};
use redis::{Cmd, RedisResult, Value};

use crate::{
    answer, builder::Builder, dialer::Connection, error, keys::Keys, link::Link, request::Request,
    watch::Watching,
};

/// State in Redis or Valkey. All its commands share one connection, which is made again after any trouble.
#[derive(Debug)]
pub struct RedisState {
    link: Link,
    watching: Watching,
    keys: Keys,
    idle_expiry: Duration,
}

impl RedisState {
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

    pub(crate) fn new(link: Link, watching: Watching, keys: Keys, idle_expiry: Duration) -> Self {
        Self { link, watching, keys, idle_expiry }
    }

    /// One page of a scan for queues, and where the next page begins.
    async fn page(
        &self,
        from: u64,
        on: Option<&crate::address::Host>,
    ) -> Result<(u64, Vec<String>), StateError> {
        let mut scan = redis::cmd("SCAN");
        scan.arg(from).arg("MATCH").arg(self.keys.pattern()).arg("COUNT").arg(1000);
        let page = self.link.talk(|connection| query(connection, scan, on.cloned())).await?;
        page.map_err(error::of_command)
    }
}

#[async_trait]
impl SharedState for RedisState {
    async fn apply(&self, queue: &QueueName, command: Command) -> Result<Reply, StateError> {
        let request = Request::new(&command, self.idle_expiry)?;
        let value = self.link.run(&request, &self.keys.of(queue)).await?;
        answer::decode(&command, value)
    }

    async fn queues(&self) -> Result<Vec<QueueName>, StateError> {
        // A scan may show a key twice.
        let mut found = BTreeSet::new();
        for node in self.link.talk(nodes).await?.map_err(error::of_command)? {
            let mut cursor = 0;
            loop {
                let (next, keys) = self.page(cursor, node.as_ref()).await?;
                found.extend(keys.iter().filter_map(|key| self.keys.queue(key)));
                cursor = next;
                if cursor == 0 {
                    break;
                }
            }
        }
        Ok(found.into_iter().collect())
    }

    /// All queues of a state are watched over one connection, which is there only meanwhile.
    async fn changes(&self, queue: &QueueName) -> Result<Changes, StateError> {
        self.watching.watch(self.keys.channel(queue)).await
    }
}

/// Which nodes to scan: the one there is, or all masters of a cluster.
async fn nodes(connection: Connection) -> RedisResult<Vec<Option<crate::address::Host>>> {
    match connection {
        Connection::Server(..) => Ok(vec![None]),
        #[cfg(feature = "cluster")]
        Connection::Cluster(mut cluster) => {
            let masters = crate::cluster::masters(&mut cluster).await?;
            Ok(masters.into_iter().map(Some).collect())
        }
    }
}

async fn query(
    connection: Connection,
    command: Cmd,
    on: Option<crate::address::Host>,
) -> RedisResult<(u64, Vec<String>)> {
    let value = match (connection, on) {
        #[cfg(feature = "cluster")]
        (Connection::Cluster(mut cluster), Some(node)) => {
            crate::cluster::send_to(&mut cluster, node, command).await?
        }
        (mut connection, _) => connection.send(&command).await?,
    };
    page_in(value)
}

/// Where the scan goes on, and the keys that it found.
pub(crate) fn page_in(answer: Value) -> RedisResult<(u64, Vec<String>)> {
    let (next, keys): (u64, Vec<Vec<u8>>) = redis::from_redis_value(answer)?;
    // A key that is no text is somebody else's.
    Ok((next, keys.into_iter().filter_map(|key| String::from_utf8(key).ok()).collect()))
}
