//! Finds the server among the hosts of an address. Each host gets a share of the time-out, so that
//! a host that accepts connections and sends nothing, such as a stopped primary, does not block the
//! others.

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

/// The future drives the connection.
type Dialed = (Client, Connection<Socket, <Connector as MakeTlsConnect<Socket>>::Stream>);

#[derive(Clone)]
pub(super) struct Dialer {
    pub(super) config: Config,
    /// Hosts and ports, for errors.
    pub(super) server_name: String,
    /// The last host gets the remaining time.
    pub(super) host_timeout: Duration,
    /// Limits all hosts together.
    pub(super) limit: Duration,
    pub(super) tls: Connector,
}

impl Dialer {
    #[cfg_attr(not(feature = "tls"), allow(clippy::clone_on_copy, reason = "with TLS it is no copy"))]
    fn connector(&self) -> Connector {
        self.tls.clone()
    }

    /// Takes the first host that accepts.
    pub(super) async fn dial(&self) -> Result<Dialed, Error> {
        let mut hosts = hosts(&self.config);
        if self.config.get_load_balance_hosts() == LoadBalanceHosts::Random {
            let first = RandomState::new().hash_one(()) as usize % hosts.len().max(1);
            hosts.rotate_left(first);
        }
        // The last host gets the remaining time, and its error is returned.
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

/// One configuration for each host. Empty if the numbers of names, addresses and ports differ;
/// connecting then returns the error.
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

/// Hosts cannot be removed from a [`Config`].
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
