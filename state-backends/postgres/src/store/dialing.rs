//! How a server is found among the hosts of an address. Each has its share of the time, so that one that
//! accepts and says nothing, as a stopped primary does, does not keep the others from being asked.

use std::{
    hash::{BuildHasher, RandomState},
    time::Duration,
};

use deadpool_postgres::Connect;
use futures::future::BoxFuture;
use tokio::{task::JoinHandle, time::timeout};
use tokio_postgres::{
    Client, Config, Connection, Error, Socket,
    config::{Host, LoadBalanceHosts},
    tls::MakeTlsConnect,
};

use super::tls::Connector;

/// A connection, and what has to run so that it works.
type Dialed = (Client, Connection<Socket, <Connector as MakeTlsConnect<Socket>>::Stream>);

/// How to connect.
#[derive(Clone)]
pub(super) struct Dialer {
    pub(super) config: Config,
    /// Hosts and ports, for errors.
    pub(super) server_name: String,
    /// For each host until the next one is tried.
    pub(super) host_timeout: Duration,
    /// For all of them.
    pub(super) limit: Duration,
    pub(super) tls: Connector,
}

impl Dialer {
    #[cfg_attr(not(feature = "tls"), allow(clippy::clone_on_copy, reason = "with TLS it is no copy"))]
    fn connector(&self) -> Connector {
        self.tls.clone()
    }

    /// Connects to the first host that will do.
    pub(super) async fn dial(&self) -> Result<Dialed, Error> {
        let mut hosts = hosts(&self.config);
        if self.config.get_load_balance_hosts() == LoadBalanceHosts::Random {
            let first = RandomState::new().hash_one(()) as usize % hosts.len().max(1);
            hosts.rotate_left(first);
        }
        // The last one has what is left of the time, and tells what is wrong.
        let last = hosts.pop();
        for host in hosts {
            if let Ok(Ok(dialed)) = timeout(self.host_timeout, host.connect(self.connector())).await {
                return Ok(dialed);
            }
        }
        last.as_ref().unwrap_or(&self.config).connect(self.connector()).await
    }
}

impl Connect for Dialer {
    fn connect(&self, _: &Config) -> BoxFuture<'_, Result<(Client, JoinHandle<()>), Error>> {
        Box::pin(async move {
            let (client, connection) = self.dial().await?;
            let task = tokio::spawn(async move {
                if let Err(error) = connection.await {
                    tracing::warn!(error = tracing::field::display(error), "lost a connection to postgres");
                }
            });
            Ok((client, task))
        })
    }
}

/// The same settings for each host by itself; none if there are not as many of one thing as of the other,
/// which connecting tells.
fn hosts(config: &Config) -> Vec<Config> {
    let (names, addresses, ports) = (config.get_hosts(), config.get_hostaddrs(), config.get_ports());
    let count = names.len().max(addresses.len());
    let is_right = |length, least| length == count || length <= least;
    if !(is_right(names.len(), 0) && is_right(addresses.len(), 0) && is_right(ports.len(), 1)) {
        return Vec::new();
    }
    let of_host = |n| {
        let mut one = settings(config);
        match names.get(n) {
            Some(Host::Tcp(name)) => _ = one.host(name),
            #[cfg(unix)]
            Some(Host::Unix(path)) => _ = one.host_path(path),
            None => {}
        }
        if let Some(address) = addresses.get(n) {
            one.hostaddr(*address);
        }
        if let Some(port) = ports.get(n).or(ports.first()) {
            one.port(*port);
        }
        one
    };
    (0..count).map(of_host).collect()
}

/// All but the hosts, which a [`Config`] does not give up.
fn settings(of: &Config) -> Config {
    let mut settings = Config::new();
    settings
        .ssl_mode(of.get_ssl_mode())
        .ssl_negotiation(of.get_ssl_negotiation())
        .keepalives(of.get_keepalives())
        .keepalives_idle(of.get_keepalives_idle())
        .target_session_attrs(of.get_target_session_attrs())
        .channel_binding(of.get_channel_binding())
        .load_balance_hosts(of.get_load_balance_hosts());
    let _ = of.get_user().map(|user| settings.user(user));
    let _ = of.get_password().map(|password| settings.password(password));
    let _ = of.get_dbname().map(|database| settings.dbname(database));
    let _ = of.get_options().map(|options| settings.options(options));
    let _ = of.get_application_name().map(|name| settings.application_name(name));
    let _ = of.get_connect_timeout().map(|timeout| settings.connect_timeout(*timeout));
    let _ = of.get_tcp_user_timeout().map(|timeout| settings.tcp_user_timeout(*timeout));
    let _ = of.get_keepalives_interval().map(|interval| settings.keepalives_interval(interval));
    let _ = of.get_keepalives_retries().map(|retries| settings.keepalives_retries(retries));
    settings
}

#[cfg(test)]
#[path = "../../tests/unit/dialing_unit.rs"]
mod tests;
