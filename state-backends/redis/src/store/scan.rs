//! Scans for keys. In a cluster every master is visited.

use std::collections::BTreeSet;

use interval_queue_contract::StateError;
use redis::{ErrorKind, RedisResult, Value};

use super::{
    RedisStore,
    address::{Endpoint, Host},
    error::of_command,
};

impl RedisStore {
    /// Skips keys that are not text.
    pub(crate) async fn keys(&self, pattern: &str) -> Result<BTreeSet<String>, StateError> {
        let nodes = match self.link.dialer.address.endpoint {
            Endpoint::Cluster(_) => {
                let slots = self.link.request(redis::cmd("CLUSTER").arg("SLOTS"), None).await?;
                masters_in(slots).map_err(of_command)?.into_iter().map(Some).collect()
            }
            _ => vec![None],
        };
        // A scan may return a key twice.
        let mut found = BTreeSet::new();
        for node in nodes {
            let mut next = 0;
            loop {
                let mut scan = redis::cmd("SCAN");
                scan.arg(next).arg("MATCH").arg(pattern).arg("COUNT").arg(1000);
                let page = self.link.request(&scan, node.as_ref()).await?;
                let keys;
                (next, keys) = page_in(page).map_err(of_command)?;
                found.extend(keys);
                if next == 0 {
                    break;
                }
            }
        }
        Ok(found)
    }
}

/// The masters in the answer to `CLUSTER SLOTS`.
///
/// # Errors
///
/// The answer is of another form.
pub fn masters_in(answer: Value) -> RedisResult<BTreeSet<Host>> {
    let slots: Vec<Vec<Value>> = redis::from_redis_value(answer)?;
    let master = |range: Vec<Value>| {
        let node: Vec<Value> = redis::from_redis_value(range.into_iter().nth(2).unwrap_or(Value::Nil))?;
        let mut parts = node.into_iter();
        match (parts.next(), parts.next()) {
            (Some(host), Some(port)) => Ok((redis::from_redis_value(host)?, redis::from_redis_value(port)?)),
            _ => Err((ErrorKind::UnexpectedReturnType, "a node without an address").into()),
        }
    };
    slots.into_iter().map(master).collect()
}

/// The cursor of a scan, and the keys found.
///
/// # Errors
///
/// The answer is of another form.
pub fn page_in(answer: Value) -> RedisResult<(u64, Vec<String>)> {
    let (next, keys): (u64, Vec<Vec<u8>>) = redis::from_redis_value(answer)?;
    // A key that is no text belongs to other software.
    Ok((next, keys.into_iter().filter_map(|key| String::from_utf8(key).ok()).collect()))
}
