//! Where the server is, read off its URL.

use std::time::Duration;

use interval_queue_contract::{InvalidInput, StateError};
use tokio_postgres::{
    Config,
    config::{Host, SslMode},
};

use crate::tls::{self, Connector, Trust};

/// How to connect.
#[derive(Clone)]
pub(crate) struct Address {
    pub(crate) config: Config,
    /// Hosts and ports, for errors.
    pub(crate) place: String,
    /// For each host until the next one is tried.
    pub(crate) patience: Duration,
    tls: Connector,
}

impl Address {
    #[cfg_attr(not(feature = "tls"), allow(clippy::clone_on_copy, reason = "with TLS it is no copy"))]
    pub(crate) fn connector(&self) -> Connector {
        self.tls.clone()
    }

    /// Takes a URL apart. No part of it is repeated in an error: it may be a password.
    pub(crate) fn parse(url: &str, timeout: Duration) -> Result<Self, StateError> {
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            let text = "a postgres address begins with postgres:// or postgresql://, as in postgres://user@host/database";
            return Err(InvalidInput::new(text).into());
        }
        let (place, query) = url.split_once('?').unwrap_or((url, ""));
        // Part of a password would be taken for a host, or for a parameter and be named.
        let behind_slash = place.split_once("://").and_then(|(_, place)| place.split_once('/'));
        let is_split = behind_slash.is_some_and(|(_, behind)| behind.contains('@'));
        if is_split || query.contains('@') || place.matches('@').count() > 1 {
            let text = "the postgres address has one @ too many, or a ? or / before it: in user, password and parameters write %40, %3F and \
                        %2F";
            return Err(InvalidInput::new(text).into());
        }
        let (mut rest, mut mode, mut root) = (Vec::new(), None, None);
        for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
            match parameter.split_once('=') {
                Some(("sslmode", value)) => mode = Some(value),
                Some(("sslrootcert", value)) => root = Some(value),
                _ => rest.push(parameter),
            }
        }
        let parsed = format!("{place}?{}", rest.join("&")).parse::<Config>();
        let mut config = parsed.map_err(|error| {
            // What the parser says names the parameter, not its value.
            let why = std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
            InvalidInput::new(format!(
                "the postgres address cannot be used: {why}; it is postgres://user:password@host:port/database?parameter=value with \
                 %-encoding for what has a meaning in it"
            ))
        })?;
        let hosts = config.get_hosts().len().max(config.get_hostaddrs().len());
        if hosts == 0 {
            let text = "the postgres address has no host: use postgres://user@host/database, or ?host=/var/run/postgresql for a socket";
            return Err(InvalidInput::new(text).into());
        }
        // So that there is time left for the others if the first one is a black hole.
        let patience = timeout / u32::try_from(hosts).unwrap_or(u32::MAX);
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(patience);
        }
        if config.get_application_name().is_none() {
            config.application_name("interval-queue");
        }
        let root = root.map(decoded).transpose()?;
        let (mode, trust) = of_mode(mode, root.as_deref())?;
        // As with libpq: a socket needs no encryption, and the server offers none there.
        let only_sockets = config.get_hosts().iter().all(|host| !matches!(host, Host::Tcp(_)));
        let only_sockets = only_sockets && config.get_hostaddrs().is_empty();
        config.ssl_mode(if only_sockets { SslMode::Disable } else { mode });
        let tls = tls::connector(trust, root.as_deref())?;
        Ok(Self { place: place_of(&config), config, patience, tls })
    }
}

fn place_of(config: &Config) -> String {
    let ports = config.get_ports();
    let addresses = config.get_hostaddrs().iter().map(ToString::to_string);
    let hosts = config.get_hosts().iter().map(|host| match host {
        Host::Tcp(name) => name.clone(),
        #[cfg(unix)]
        Host::Unix(path) => path.display().to_string(),
    });
    let hosts: Vec<String> =
        if config.get_hosts().is_empty() { addresses.collect() } else { hosts.collect() };
    let at = |(n, host)| match ports.get(n).or(ports.first()) {
        Some(port) => format!("{host}:{port}"),
        None => host,
    };
    hosts.into_iter().enumerate().map(at).collect::<Vec<_>>().join(",")
}

/// What a mode of `libpq` means.
fn of_mode(mode: Option<&str>, root: Option<&str>) -> Result<(SslMode, Trust), InvalidInput> {
    let unnamed = if root.is_some() { Trust::Chain } else { Trust::Anybody };
    let wanted = match mode {
        None | Some("prefer") if !tls::IS_THERE => return Ok((SslMode::Disable, Trust::Anybody)),
        Some("disable") => return Ok((SslMode::Disable, Trust::Anybody)),
        None | Some("prefer") => (SslMode::Prefer, Trust::Anybody),
        Some("require") => (SslMode::Require, unnamed),
        Some("verify-ca") => (SslMode::Require, Trust::Chain),
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

fn decoded(value: &str) -> Result<String, InvalidInput> {
    let decoded = percent_encoding::percent_decode_str(value).decode_utf8();
    decoded
        .map(Into::into)
        .map_err(|_| InvalidInput::new("sslrootcert is not UTF-8 once its %XX are decoded"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_hosts_share_the_time_out_unless_the_address_says_otherwise() {
        let timeout =
            |url| *Address::parse(url, Duration::from_secs(6)).unwrap().config.get_connect_timeout().unwrap();
        assert_eq!(timeout("postgres://a/x"), Duration::from_secs(6));
        assert_eq!(timeout("postgres://a,b,c/x"), Duration::from_secs(2));
        assert_eq!(timeout("postgres://a,b,c/x?connect_timeout=9"), Duration::from_secs(9));
    }
}
