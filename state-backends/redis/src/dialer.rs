//! How a connection is made, for each kind of place.

use std::{sync::Arc, time::Duration};

use interval_queue_contract::{StateError, StateErrorKind};
use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionAddr, ConnectionInfo, IntoConnectionInfo,
    RedisConnectionInfo, RedisResult, Value,
    aio::{MultiplexedConnection, PubSub},
    io::tcp::TcpSettings,
};

#[cfg(feature = "cluster")]
use crate::cluster;
use crate::{
    address::{Address, Credentials, Host, Place},
    error,
};

/// Makes connections.
#[derive(Clone)]
pub(crate) enum Dialer {
    /// To one server.
    Server(Arc<Client>),
    /// To the server that the sentinels name.
    #[cfg(feature = "sentinel")]
    Sentinels(Arc<Address>),
    /// To all servers of a cluster, and to one of those that are known.
    #[cfg(feature = "cluster")]
    Cluster(Arc<redis::cluster::ClusterClient>, Arc<[Client]>),
}

/// A connection. Clones share it, and so do the commands that are under way.
#[derive(Clone)]
pub(crate) enum Connection {
    /// To one server, and its name.
    Server(MultiplexedConnection, Arc<str>),
    /// To all servers of a cluster.
    #[cfg(feature = "cluster")]
    Cluster(redis::cluster_async::ClusterConnection),
}

impl Dialer {
    /// Gets ready. Connects to nothing.
    ///
    /// # Errors
    ///
    /// [`Invalid`](StateErrorKind::Invalid): the address cannot be used, or its certificates cannot be read.
    pub(crate) fn new(address: &Address) -> Result<Self, StateError> {
        #[cfg(feature = "tls")]
        if address.tls.is_some() {
            tls::provide();
        }
        let invalid = |error| {
            StateError::new(StateErrorKind::Invalid, format!("redis at {address} cannot be addressed so"))
                .with_source(error)
        };
        match &address.place {
            Place::Host(_) | Place::Socket(_) => server(address).map(|client| Self::Server(client.into())),
            #[cfg(feature = "sentinel")]
            Place::Sentinels { .. } => sentinels(address).map(|_| Self::Sentinels(address.clone().into())),
            #[cfg(feature = "cluster")]
            Place::Cluster(hosts) => {
                let nodes = hosts.iter().map(|host| node(host, address)).collect::<RedisResult<_>>();
                nodes.and_then(|nodes| Ok(Self::Cluster(cluster::client(address, hosts)?.into(), nodes)))
            }
            #[cfg(not(all(feature = "sentinel", feature = "cluster")))]
            _ => Err((redis::ErrorKind::InvalidClientConfig, "a feature is missing").into()),
        }
        .map_err(invalid)
    }

    /// Connects.
    pub(crate) async fn dial(self, timeout: Duration) -> RedisResult<Connection> {
        // Commands are timed by their sender.
        let config =
            AsyncConnectionConfig::new().set_connection_timeout(Some(timeout)).set_response_timeout(None);
        match self {
            Self::Server(client) => {
                greet(client.get_multiplexed_async_connection_with_config(&config).await?).await
            }
            #[cfg(feature = "sentinel")]
            Self::Sentinels(address) => {
                let mut sentinels = sentinels(&address)?;
                greet(sentinels.get_async_connection_with_config(&config).await?).await
            }
            #[cfg(feature = "cluster")]
            Self::Cluster(client, _) => cluster::connect(&client, timeout).await.map(Connection::Cluster),
        }
    }
}

impl Dialer {
    /// Connects to listen to channels. What is said on any node of a cluster is heard on all.
    pub(crate) async fn dial_to_watch(self) -> RedisResult<PubSub> {
        match self {
            Self::Server(client) => client.get_async_pubsub().await,
            #[cfg(feature = "sentinel")]
            Self::Sentinels(address) => {
                let master = sentinels(&address)?.async_get_client().await?;
                master.get_async_pubsub().await
            }
            #[cfg(feature = "cluster")]
            Self::Cluster(_, nodes) => {
                let mut outcome = Err((redis::ErrorKind::InvalidClientConfig, "no nodes").into());
                for node in nodes.iter() {
                    outcome = node.get_async_pubsub().await;
                    if outcome.is_ok() {
                        break;
                    }
                }
                outcome
            }
        }
    }
}

impl Connection {
    /// Sends one command. Dropping the future forgets its answer.
    pub(crate) async fn send(&mut self, command: &Cmd) -> RedisResult<Value> {
        match self {
            Self::Server(connection, _) => command.query_async(connection).await,
            #[cfg(feature = "cluster")]
            Self::Cluster(connection) => command.query_async(connection).await,
        }
    }

    /// Which server process is at the other end, for as long as the connection lasts; empty if the user may
    /// not know. `?` in a cluster, where that depends on the key.
    pub(crate) fn server(&self) -> &str {
        match self {
            Self::Server(_, name) => name,
            #[cfg(feature = "cluster")]
            Self::Cluster(_) => "?",
        }
    }
}

/// Asks the server for its name. This is also the short command without which one that wants a password does
/// not say so: it hears no long one.
async fn greet(mut connection: MultiplexedConnection) -> RedisResult<Connection> {
    let name = match redis::cmd("INFO").arg("server").query_async::<String>(&mut connection).await {
        Ok(info) => run_id_in(&info).into(),
        Err(error) if error::is_refused_command(&error) => "".into(),
        Err(error) => return Err(error),
    };
    Ok(Connection::Server(connection, name))
}

/// The random name that a server process takes when it starts.
fn run_id_in(info: &str) -> &str {
    info.lines().find_map(|line| line.strip_prefix("run_id:")).unwrap_or_default().trim()
}

fn server(address: &Address) -> RedisResult<Client> {
    let place = match &address.place {
        Place::Socket(path) => ConnectionAddr::Unix(path.clone()),
        Place::Host(host) => connection_addr(host, address),
        _ => return Err((redis::ErrorKind::InvalidClientConfig, "not one server").into()),
    };
    client(place, address)
}

#[cfg(feature = "cluster")]
fn node(host: &Host, address: &Address) -> RedisResult<Client> {
    client(connection_addr(host, address), address)
}

/// A client of one server.
fn client(place: ConnectionAddr, address: &Address) -> RedisResult<Client> {
    let info = info(place, &address.credentials)?;
    let settings = info.redis_settings().clone().set_db(address.database);
    let info = info.set_redis_settings(settings);
    #[cfg(feature = "tls")]
    if let Some(certificates) = tls::certificates(address)? {
        return Client::build_with_tls(info, certificates);
    }
    Client::open(info)
}

#[cfg(feature = "sentinel")]
fn sentinels(address: &Address) -> RedisResult<redis::sentinel::SentinelClient> {
    use redis::sentinel::{SentinelClientBuilder, SentinelServerType};

    let Place::Sentinels { hosts, master, credentials } = &address.place else {
        return Err((redis::ErrorKind::EmptySentinelList, "no sentinels").into());
    };
    let hosts = hosts.iter().map(|host| connection_addr(host, address));
    let mut builder = SentinelClientBuilder::new(hosts, master, SentinelServerType::Master)?
        .set_client_to_redis_db(address.database)
        .set_client_to_redis_tcp_settings(tcp());
    if let Some(user) = &address.credentials.user {
        builder = builder.set_client_to_redis_username(user);
    }
    if let Some(password) = &address.credentials.password {
        builder = builder.set_client_to_redis_password(password);
    }
    if let Some(user) = &credentials.user {
        builder = builder.set_client_to_sentinel_username(user);
    }
    if let Some(password) = &credentials.password {
        builder = builder.set_client_to_sentinel_password(password);
    }
    if address.tls.is_some() {
        builder = builder.set_client_to_redis_tls_mode(redis::TlsMode::Secure);
    }
    #[cfg(feature = "tls")]
    if let Some(certificates) = tls::certificates(address)? {
        builder = builder
            .set_client_to_redis_certificates(certificates.clone())
            .set_client_to_sentinel_certificates(certificates);
    }
    builder.build()
}

/// A host, with TLS if the address says so.
pub(crate) fn connection_addr((host, port): &Host, address: &Address) -> ConnectionAddr {
    let (host, port) = (host.clone(), *port);
    match address.tls {
        None => ConnectionAddr::Tcp(host, port),
        Some(_) => ConnectionAddr::TcpTls { host, port, insecure: false, tls_params: None },
    }
}

/// A place and who comes.
pub(crate) fn info(place: ConnectionAddr, credentials: &Credentials) -> RedisResult<ConnectionInfo> {
    let mut settings = RedisConnectionInfo::default();
    if let Some(user) = &credentials.user {
        settings = settings.set_username(user);
    }
    if let Some(password) = &credentials.password {
        settings = settings.set_password(password);
    }
    Ok(place.into_connection_info()?.set_redis_settings(settings).set_tcp_settings(tcp()))
}

/// No command waits until the server has acknowledged the one before.
pub(crate) fn tcp() -> TcpSettings {
    TcpSettings::default().set_nodelay(true)
}

#[cfg(feature = "tls")]
pub(crate) mod tls {
    use std::{fs, io};

    use redis::{RedisResult, TlsCertificates};
    use rustls::crypto::{CryptoProvider, ring};

    use crate::address::Address;

    /// `rustls` panics without a provider, or with a choice of several. One that the process installed stays.
    pub(crate) fn provide() {
        if CryptoProvider::get_default().is_none() {
            // An error says that somebody was faster.
            let _ = ring::default_provider().install_default();
        }
    }

    /// The certificates to trust instead of those of the system.
    pub(crate) fn certificates(address: &Address) -> RedisResult<Option<TlsCertificates>> {
        let Some(ca) = address.tls.as_ref().and_then(|tls| tls.ca.as_ref()) else {
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
    fn a_command_is_not_held_back_until_the_one_before_is_acknowledged() {
        let client = server(&Address::parse("redis://localhost").unwrap()).unwrap();
        assert!(client.get_connection_info().tcp_settings().nodelay());
    }

    #[test]
    fn the_name_of_the_server_is_found() {
        let info = "# Server\r\nredis_version:7.0.15\r\nrun_id:0d1f1d02\r\ntcp_port:6379\r\n";
        assert_eq!(run_id_in(info), "0d1f1d02");
        assert_eq!(run_id_in("# Server\r\n"), "");
    }
}
