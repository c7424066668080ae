//! Parses the address of the server from a URL.

use std::time::Duration;

use interval_queue_contract::{InvalidInput, StateError};
use interval_queue_store::{Url, decoded};
use tokio_postgres::{
    Config,
    config::{Host, SslMode},
};

use super::{
    dialing::Dialer,
    tls::{self, Trust},
};

/// `tokio-postgres` reads them.
const LIBPQ_PARAMETERS: [&str; 18] = [
    "application_name",
    "channel_binding",
    "connect_timeout",
    "dbname",
    "host",
    "hostaddr",
    "keepalives",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_retries",
    "load_balance_hosts",
    "options",
    "password",
    "port",
    "sslnegotiation",
    "target_session_attrs",
    "tcp_user_timeout",
    "user",
];

#[derive(Clone)]
pub(super) struct Address {
    config: Config,
    /// Hosts and ports, for errors.
    hosts: String,
    trust: Trust,
    root: Option<String>,
}

impl Address {
    /// Errors repeat no part of the address: it may be a password.
    pub(super) fn take(url: &mut Url) -> Result<Self, InvalidInput> {
        let (scheme, location) = (url.scheme().to_owned(), url.place().to_owned());
        if !["postgres", "postgresql"].contains(&&*scheme) || !location.starts_with("//") {
            let scheme = if scheme == "postgresql" { "postgresql" } else { "postgres" };
            let text = format!("that is no postgres address: use {scheme}://HOST/DATABASE");
            return Err(InvalidInput::new(text));
        }
        // Clients end the credentials at the first @, and would show the rest of a password as a
        // host.
        let after_slash = location.trim_start_matches('/').split_once('/');
        if location.matches('@').count() > 1 || after_slash.is_some_and(|(_, after)| after.contains('@')) {
            let text = "the postgres address has an @ too many, or a / before it: in user and password write %40 for an @, %2F for a /";
            return Err(InvalidInput::new(text));
        }
        // Checks the percent-encoding: the client passes invalid escapes on unchanged.
        decoded(&location, "the postgres address")?;
        let root = url.text("sslrootcert")?;
        let (mode, trust) = take_mode(url, root.is_some())?;
        let (mut rest, mut hosts) = (Vec::new(), Vec::new());
        for name in LIBPQ_PARAMETERS {
            let Some(value) = url.raw(name)? else { continue };
            decoded(&value, &format!("parameter {name:?}"))?;
            rest.push(format!("{name}={value}"));
            hosts.extend(Some(value).filter(|_| name.starts_with("host")));
        }
        let parsed = format!("{scheme}:{location}?{}", rest.join("&")).parse::<Config>();
        let mut config = parsed.map_err(|error| {
            // The parser names the parameter, not its value.
            let why = std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
            InvalidInput::new(format!(
                "the postgres address cannot be used: {why}; it is postgres://user:password@host:port/database?parameter=value with \
                 %-encoding for what has a meaning in it"
            ))
        })?;
        if count(&config) == 0 {
            let text = "the postgres address has no host: use postgres://user@host/database, or ?host=/var/run/postgresql for a socket";
            return Err(InvalidInput::new(text));
        }
        if config.get_application_name().is_none() {
            config.application_name("interval-queue");
        }
        // As with libpq: a socket needs no encryption, and the server offers none there.
        let only_sockets = config.get_hostaddrs().is_empty()
            && !config.get_hosts().iter().any(|host| matches!(host, Host::Tcp(_)));
        config.ssl_mode(if only_sockets { SslMode::Disable } else { mode });
        // Without the credentials in front and the database at the end.
        let named = location[2..].split('/').next().and_then(|named| named.rsplit('@').next());
        let named = named.filter(|named| !named.is_empty()).map(str::to_owned);
        let hosts = named.or_else(|| hosts.into_iter().next()).unwrap_or_default();
        Ok(Self { config, hosts: decoded(&hosts, "the host")?.into_owned(), trust, root })
    }

    pub(super) fn dialer(self, timeout: Duration) -> Result<Dialer, StateError> {
        let Self { mut config, hosts: server_name, trust, root } = self;
        // Leaves time for the other hosts if the first one never answers.
        let hosts = u32::try_from(count(&config)).unwrap_or(u32::MAX);
        let share = timeout / hosts;
        // The client's own limit ends with the TCP handshake. A server that sends nothing
        // afterwards would be waited for without limit.
        let host_timeout = config.get_connect_timeout().map_or(share, |limit| share.min(*limit));
        config.connect_timeout(host_timeout);
        let tls = tls::connector(trust, root.as_deref())?;
        Ok(Dialer {
            config,
            server_name,
            host_timeout,
            limit: timeout.min(host_timeout.saturating_mul(hosts)),
            tls,
        })
    }
}

fn count(config: &Config) -> usize {
    config.get_hosts().len().max(config.get_hostaddrs().len())
}

fn take_mode(url: &mut Url, has_root: bool) -> Result<(SslMode, Trust), InvalidInput> {
    let modes = [
        ("disable", (SslMode::Disable, Trust::Anybody)),
        ("prefer", (SslMode::Prefer, Trust::Anybody)),
        ("require", (SslMode::Require, if has_root { Trust::Chain } else { Trust::Anybody })),
        ("verify-ca", (SslMode::Require, Trust::Chain)),
        ("verify-full", (SslMode::Require, Trust::ChainAndName)),
    ];
    match url.choice("sslmode", &modes)?.unwrap_or((SslMode::Prefer, Trust::Anybody)) {
        (SslMode::Require, _) if !tls::IS_ENABLED => Err(InvalidInput::new(
            "sslmode=require, verify-ca and verify-full need the feature \"postgres-tls\" of interval-queue, \"tls\" of \
             interval-queue-postgres",
        )),
        (SslMode::Prefer, trust) if !tls::IS_ENABLED => Ok((SslMode::Disable, trust)),
        mode => Ok(mode),
    }
}
