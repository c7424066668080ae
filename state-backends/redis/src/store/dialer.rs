//! Connection attempts, for each kind of endpoint.

use std::{io, sync::Arc, time::Duration};

use interval_queue_contract::StateError;
use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionAddr, ConnectionInfo, IntoConnectionInfo,
    RedisConnectionInfo, RedisError, RedisResult, Value,
    aio::{MultiplexedConnection, PubSub},
    io::tcp::TcpSettings,
};
use tokio::time;

use super::{
    address::{Address, Credentials, Endpoint, Host},
    error,
};

pub(super) struct Dialer {
    pub(super) address: Address,
    pub(super) timeout: Duration,
    /// Replace the system's.
    #[cfg(feature = "tls")]
    certificates: Option<redis::TlsCertificates>,
}

/// Clones share the connection, with the commands in flight.
#[derive(Clone)]
pub(super) enum Connection {
    /// A server and its name.
    Server(MultiplexedConnection, Arc<str>),
    #[cfg(feature = "cluster")]
    Cluster(redis::cluster_async::ClusterConnection),
}

impl Dialer {
    /// Does not connect yet.
    pub(super) fn new(address: Address, timeout: Duration) -> Result<Self, StateError> {
        #[cfg(feature = "tls")]
        let certificates = tls::certificates(&address).map_err(|error| {
            let text = format!("redis at {address} cannot be addressed so");
            StateError::new(interval_queue_contract::StateErrorKind::Invalid, text).with_source(error)
        })?;
        Ok(Self {
            address,
            timeout,
            #[cfg(feature = "tls")]
            certificates,
        })
    }

    pub(super) async fn dial(&self) -> RedisResult<Connection> {
        self.in_time(async {
            // The sender of a command applies the timeout.
            let config = AsyncConnectionConfig::new()
                .set_connection_timeout(Some(self.timeout))
                .set_response_timeout(None);
            match &self.address.endpoint {
                #[cfg(feature = "sentinel")]
                Endpoint::Sentinels { .. } => {
                    greet(self.sentinels()?.get_async_connection_with_config(&config).await?).await
                }
                #[cfg(feature = "cluster")]
                Endpoint::Cluster(hosts) => {
                    let config = redis::cluster::ClusterConfig::new()
                        .set_connection_timeout(self.timeout)
                        .set_response_timeout(self.timeout);
                    let cluster = self.cluster(hosts)?.get_async_connection_with_config(config).await?;
                    Ok(Connection::Cluster(cluster))
                }
                endpoint => {
                    let client = self.client(self.server(endpoint)?)?;
                    greet(client.get_multiplexed_async_connection_with_config(&config).await?).await
                }
            }
        })
        .await
    }

    /// A message published on any node of a cluster arrives on all connections.
    pub(super) async fn dial_to_watch(&self) -> RedisResult<PubSub> {
        self.in_time(async {
            match &self.address.endpoint {
                #[cfg(feature = "sentinel")]
                Endpoint::Sentinels { .. } => {
                    self.sentinels()?.async_get_client().await?.get_async_pubsub().await
                }
                #[cfg(feature = "cluster")]
                Endpoint::Cluster(hosts) => {
                    let mut outcome = Err((redis::ErrorKind::InvalidClientConfig, "no nodes").into());
                    for host in hosts {
                        outcome = self.client(self.host(host))?.get_async_pubsub().await;
                        if outcome.is_ok() {
                            break;
                        }
                    }
                    outcome
                }
                place => self.client(self.server(place)?)?.get_async_pubsub().await,
            }
        })
        .await
    }

    pub(super) async fn in_time<T>(&self, dialing: impl Future<Output = RedisResult<T>>) -> RedisResult<T> {
        let timed_out = |_| Err(RedisError::from(io::Error::from(io::ErrorKind::TimedOut)));
        time::timeout(self.timeout, dialing).await.unwrap_or_else(timed_out)
    }

    fn server(&self, endpoint: &Endpoint) -> RedisResult<ConnectionAddr> {
        match endpoint {
            Endpoint::Socket(path) => Ok(ConnectionAddr::Unix(path.clone())),
            Endpoint::Host(host) => Ok(self.host(host)),
            _ => Err((redis::ErrorKind::InvalidClientConfig, "a feature is missing").into()),
        }
    }

    fn host(&self, (host, port): &Host) -> ConnectionAddr {
        let (host, port) = (host.clone(), *port);
        if self.address.tls {
            ConnectionAddr::TcpTls { host, port, insecure: false, tls_params: None }
        } else {
            ConnectionAddr::Tcp(host, port)
        }
    }

    fn client(&self, place: ConnectionAddr) -> RedisResult<Client> {
        let info = info(place, &self.address.credentials, self.address.database)?;
        #[cfg(feature = "tls")]
        if let Some(certificates) = &self.certificates {
            return Client::build_with_tls(info, certificates.clone());
        }
        Client::open(info)
    }

    #[cfg(feature = "cluster")]
    fn cluster(&self, hosts: &[Host]) -> RedisResult<redis::cluster::ClusterClient> {
        let nodes = hosts.iter().map(|host| info(self.host(host), &self.address.credentials, 0));
        let nodes = nodes.collect::<RedisResult<Vec<_>>>()?;
        // A command whose connection broke may have been carried out: it is never sent twice.
        let builder = redis::cluster::ClusterClient::builder(nodes).retries(0).tcp_settings(tcp());
        #[cfg(feature = "tls")]
        if let Some(certificates) = &self.certificates {
            return builder.certs(certificates.clone()).build();
        }
        builder.build()
    }

    #[cfg(feature = "sentinel")]
    fn sentinels(&self) -> RedisResult<redis::sentinel::SentinelClient> {
        use redis::sentinel::{SentinelClientBuilder, SentinelServerType};

        let Endpoint::Sentinels { hosts, master, credentials } = &self.address.endpoint else {
            return Err((redis::ErrorKind::EmptySentinelList, "no sentinels").into());
        };
        let hosts = hosts.iter().map(|host| self.host(host));
        let mut builder = SentinelClientBuilder::new(hosts, master, SentinelServerType::Master)?
            .set_client_to_redis_db(self.address.database)
            .set_client_to_redis_tcp_settings(tcp());
        if let Some(user) = &self.address.credentials.user {
            builder = builder.set_client_to_redis_username(user);
        }
        if let Some(password) = &self.address.credentials.password {
            builder = builder.set_client_to_redis_password(password);
        }
        if let Some(user) = &credentials.user {
            builder = builder.set_client_to_sentinel_username(user);
        }
        if let Some(password) = &credentials.password {
            builder = builder.set_client_to_sentinel_password(password);
        }
        if self.address.tls {
            builder = builder.set_client_to_redis_tls_mode(redis::TlsMode::Secure);
        }
        #[cfg(feature = "tls")]
        if let Some(certificates) = &self.certificates {
            builder = builder
                .set_client_to_redis_certificates(certificates.clone())
                .set_client_to_sentinel_certificates(certificates.clone());
        }
        builder.build()
    }
}

impl Connection {
    /// `node` is for clusters. Dropping the future drops the answer.
    pub(super) async fn send(&mut self, command: &Cmd, node: Option<&Host>) -> RedisResult<Value> {
        #[cfg(not(feature = "cluster"))]
        let _ = node;
        match self {
            Self::Server(connection, _) => command.query_async(connection).await,
            #[cfg(feature = "cluster")]
            Self::Cluster(connection) => {
                use redis::cluster_routing::{RoutingInfo, SingleNodeRoutingInfo};
                let Some((host, port)) = node.cloned() else {
                    return command.query_async(connection).await;
                };
                let node = RoutingInfo::SingleNode(SingleNodeRoutingInfo::ByAddress { host, port });
                connection.route_command(command.clone(), node).await?.extract_error()
            }
        }
    }

    /// The server process, constant for a connection. Empty: the user may not know. `?` in a
    /// cluster, where it depends on the key.
    pub(super) fn server(&self) -> &str {
        match self {
            Self::Server(_, name) => name,
            #[cfg(feature = "cluster")]
            Self::Cluster(_) => "?",
        }
    }
}

/// A server that requires a password answers only a short command with that error, not a long one.
async fn greet(mut connection: MultiplexedConnection) -> RedisResult<Connection> {
    let name = match redis::cmd("INFO").arg("server").query_async::<String>(&mut connection).await {
        // A server process takes this random name when it starts.
        Ok(info) => info.lines().find_map(|line| line.strip_prefix("run_id:")).unwrap_or_default().into(),
        Err(error) if error::is_refused_command(&error) => "".into(),
        Err(error) => return Err(error),
    };
    Ok(Connection::Server(connection, name))
}

fn info(place: ConnectionAddr, credentials: &Credentials, database: i64) -> RedisResult<ConnectionInfo> {
    let mut settings = RedisConnectionInfo::default().set_db(database);
    if let Some(user) = &credentials.user {
        settings = settings.set_username(user);
    }
    if let Some(password) = &credentials.password {
        settings = settings.set_password(password);
    }
    Ok(place.into_connection_info()?.set_redis_settings(settings).set_tcp_settings(tcp()))
}

fn tcp() -> TcpSettings {
    TcpSettings::default().set_nodelay(true)
}

#[cfg(feature = "tls")]
mod tls {
    use std::{fs, io};

    use redis::TlsCertificates;
    use rustls::crypto::{CryptoProvider, ring};

    use super::Address;

    pub(super) fn certificates(address: &Address) -> io::Result<Option<TlsCertificates>> {
        // `rustls` panics without a provider, or with several. The process may have installed one.
        if address.tls && CryptoProvider::get_default().is_none() {
            // An error means that another thread was faster.
            let _ = ring::default_provider().install_default();
        }
        let Some(ca) = &address.ca else {
            return Ok(None);
        };
        let root_cert = fs::read(ca)
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", ca.display())))?;
        Ok(Some(TlsCertificates { client_tls: None, root_cert: Some(root_cert) }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_does_not_wait_for_an_acknowledgement() {
        let info = info(ConnectionAddr::Tcp("localhost".into(), 1), &Credentials::default(), 0).unwrap();
        assert!(info.tcp_settings().nodelay());
    }
}
