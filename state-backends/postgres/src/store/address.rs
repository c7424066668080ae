//! Where the server is, read off its URL.

use std::time::Duration;

use interval_queue_contract::{InvalidInput, StateError};
use interval_queue_store::Url;
use tokio_postgres::{
    Config,
    config::{Host, SslMode},
};

use super::{
    dialing::Dialer,
    tls::{self, Trust},
};

/// Parameters of libpq that the client of the server reads.
const OF_LIBPQ: [&str; 18] = [
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

/// What a URL says of the server.
#[derive(Clone)]
pub(super) struct Address {
    config: Config,
    trust: Trust,
    root: Option<String>,
}

impl Address {
    /// Takes it out of a URL. No part of it is repeated in an error: it may be a password.
    pub(super) fn take(url: &mut Url) -> Result<Self, InvalidInput> {
        let (scheme, place) = (url.scheme().to_owned(), url.place().to_owned());
        if !["postgres", "postgresql"].contains(&&*scheme) || !place.starts_with("//") {
            let scheme = if scheme == "postgresql" { "postgresql" } else { "postgres" };
            let text = format!("that is no postgres address: use {scheme}://HOST/DATABASE");
            return Err(InvalidInput::new(text));
        }
        // Clients end the credentials at the first @, and would show the rest of a password as a host.
        let behind_slash = place.trim_start_matches('/').split_once('/');
        if place.matches('@').count() > 1 || behind_slash.is_some_and(|(_, behind)| behind.contains('@')) {
            let text = "the postgres address has an @ too many, or a / before it: in user and password write %40 for an @, %2F for a /";
            return Err(InvalidInput::new(text));
        }
        let root = url.text("sslrootcert")?;
        let (mode, trust) = of_mode(url.text("sslmode")?.as_deref(), root.is_some())?;
        let mut rest = Vec::new();
        for name in OF_LIBPQ {
            rest.extend(url.raw(name)?.map(|value| format!("{name}={value}")));
        }
        let parsed = format!("{scheme}:{place}?{}", rest.join("&")).parse::<Config>();
        let mut config = parsed.map_err(|error| {
            // What the parser says names the parameter, not its value.
            let why = std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
            InvalidInput::new(format!(
                "the postgres address cannot be used: {why}; it is postgres://user:password@host:port/database?parameter=value with \
                 %-encoding for what has a meaning in it"
            ))
        })?;
        if hosts(&config) == 0 {
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
        Ok(Self { config, trust, root })
    }

    /// What connects to it in this time.
    pub(super) fn dialer(self, timeout: Duration) -> Result<Dialer, StateError> {
        let Self { mut config, trust, root } = self;
        // So that there is time left for the others if the first one is a black hole.
        let patience = timeout / u32::try_from(hosts(&config)).unwrap_or(u32::MAX);
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(patience);
        }
        let tls = tls::connector(trust, root.as_deref())?;
        Ok(Dialer { place: place_of(&config), config, patience, tls })
    }
}

fn hosts(config: &Config) -> usize {
    config.get_hosts().len().max(config.get_hostaddrs().len())
}

fn place_of(config: &Config) -> String {
    let ports = config.get_ports();
    let addresses = config.get_hostaddrs().iter().map(ToString::to_string);
    let names = config.get_hosts().iter().map(|host| match host {
        Host::Tcp(name) => name.clone(),
        #[cfg(unix)]
        Host::Unix(path) => path.display().to_string(),
    });
    let hosts: Vec<_> = if config.get_hosts().is_empty() { addresses.collect() } else { names.collect() };
    let at = |(n, host)| match ports.get(n).or(ports.first()) {
        Some(port) => format!("{host}:{port}"),
        None => host,
    };
    hosts.into_iter().enumerate().map(at).collect::<Vec<_>>().join(",")
}

/// What a mode of `libpq` means.
fn of_mode(mode: Option<&str>, has_root: bool) -> Result<(SslMode, Trust), InvalidInput> {
    let wanted = match mode {
        None | Some("prefer") if !tls::IS_THERE => return Ok((SslMode::Disable, Trust::Anybody)),
        Some("disable") => return Ok((SslMode::Disable, Trust::Anybody)),
        None | Some("prefer") => (SslMode::Prefer, Trust::Anybody),
        Some("require") if !has_root => (SslMode::Require, Trust::Anybody),
        Some("require" | "verify-ca") => (SslMode::Require, Trust::Chain),
        Some("verify-full") => (SslMode::Require, Trust::ChainAndName),
        Some(mode) => {
            let mode = mode.escape_debug();
            let text = format!("sslmode={mode}: give disable, prefer, require, verify-ca or verify-full");
            return Err(InvalidInput::new(text));
        }
    };
    if !tls::IS_THERE {
        let mode = mode.unwrap_or_default();
        let text = format!(
            "sslmode={mode} needs the feature \"postgres-tls\" of interval-queue, \"tls\" of interval-queue-postgres"
        );
        return Err(InvalidInput::new(text));
    }
    Ok(wanted)
}
