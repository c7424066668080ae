//! What is different with a cluster: how its client is made, and that a scan must visit every master.

use std::{collections::BTreeSet, time::Duration};

use redis::{
    Cmd, ErrorKind, RedisResult, Value,
    cluster::{ClusterClient, ClusterConfig},
    cluster_async::ClusterConnection,
    cluster_routing::{RoutingInfo, SingleNodeRoutingInfo},
};

use crate::{
    address::{Address, Host},
    dialer,
};

/// A client of the cluster that these hosts belong to.
pub(crate) fn client(address: &Address, hosts: &[Host]) -> RedisResult<ClusterClient> {
    let nodes = hosts
        .iter()
        .map(|host| dialer::info(dialer::connection_addr(host, address), &address.credentials))
        .collect::<RedisResult<Vec<_>>>()?;
    // A command whose connection broke may have happened: it is never sent twice.
    let builder = ClusterClient::builder(nodes).retries(0).tcp_settings(dialer::tcp());
    #[cfg(feature = "tls")]
    let builder = match dialer::tls::certificates(address)? {
        Some(certificates) => builder.certs(certificates),
        None => builder,
    };
    builder.build()
}

/// Connects to its nodes.
pub(crate) async fn connect(client: &ClusterClient, timeout: Duration) -> RedisResult<ClusterConnection> {
    let config = ClusterConfig::new().set_connection_timeout(timeout).set_response_timeout(timeout);
    client.get_async_connection_with_config(config).await
}

/// The masters, as `CLUSTER SLOTS` names them.
pub(crate) async fn masters(connection: &mut ClusterConnection) -> RedisResult<BTreeSet<Host>> {
    masters_in(redis::cmd("CLUSTER").arg("SLOTS").query_async(connection).await?)
}

/// The masters in the answer to `CLUSTER SLOTS`.
pub(crate) fn masters_in(answer: Value) -> RedisResult<BTreeSet<Host>> {
    let slots: Vec<Vec<Value>> = redis::from_redis_value(answer)?;
    let master = |range: Vec<Value>| {
        let node = range.into_iter().nth(2).unwrap_or(Value::Nil);
        let mut node: Vec<Value> = redis::from_redis_value(node)?;
        if node.len() < 2 {
            return Err((ErrorKind::UnexpectedReturnType, "a node without an address").into());
        }
        node.truncate(2);
        let port = node.pop().unwrap_or(Value::Nil);
        let host = node.pop().unwrap_or(Value::Nil);
        Ok((redis::from_redis_value(host)?, redis::from_redis_value(port)?))
    };
    slots.into_iter().map(master).collect()
}

/// Sends a command to one node.
pub(crate) async fn send_to(
    connection: &mut ClusterConnection,
    (host, port): Host,
    command: Cmd,
) -> RedisResult<Value> {
    let node = RoutingInfo::SingleNode(SingleNodeRoutingInfo::ByAddress { host, port });
    connection.route_command(command, node).await?.extract_error()
}
