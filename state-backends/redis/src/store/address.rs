//! The address of the server: a URL parsed into hosts and credentials. Neither errors nor `Debug`
//! show a password.

use std::{fmt, net::Ipv6Addr, path::PathBuf};

use interval_queue_contract::InvalidInput;
use interval_queue_store::{Url, decoded};

pub(super) const KNOWN_SCHEMES: &str = "redis://, rediss://, redis+unix://, redis+sentinel://, rediss+sentinel://, redis+cluster://, \
                                rediss+cluster://";

/// A parsed address.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    /// The kind of endpoint and its hosts.
    pub endpoint: Endpoint,
    /// User and password.
    pub credentials: Credentials,
    /// The number of the database.
    pub database: i64,
    /// Whether to use TLS.
    pub tls: bool,
    /// A file of certificates to trust instead of the system's.
    pub ca: Option<PathBuf>,
}

/// The endpoint of an address.
#[derive(Clone, PartialEq, Eq)]
#[allow(missing_debug_implementations, missing_docs, reason = "no part of the public API")]
pub enum Endpoint {
    Host(Host),
    Socket(PathBuf),
    Sentinels { hosts: Vec<Host>, master: String, credentials: Credentials },
    Cluster(Vec<Host>),
}

/// A host and a port.
pub type Host = (String, u16);

/// A user and its password.
#[derive(Clone, Default, PartialEq, Eq)]
#[allow(missing_debug_implementations, missing_docs, reason = "no part of the public API")]
pub struct Credentials {
    pub user: Option<String>,
    pub password: Option<String>,
}

impl Address {
    /// Takes the address and its parameters out of a URL.
    pub(super) fn take(url: &mut Url) -> Result<Self, InvalidInput> {
        let scheme = url.scheme().to_owned();
        let (tls, kind) = match scheme.split_once('+').unwrap_or((&scheme, "")) {
            ("redis", kind @ ("" | "unix" | "sentinel" | "cluster")) => (false, kind),
            ("rediss", kind @ ("" | "sentinel" | "cluster")) => (true, kind),
            _ => return Err(url.unknown_scheme(KNOWN_SCHEMES)),
        };
        needs("tls", tls, cfg!(feature = "tls"), &scheme)?;
        needs("sentinel", kind == "sentinel", cfg!(feature = "sentinel"), &scheme)?;
        needs("cluster", kind == "cluster", cfg!(feature = "cluster"), &scheme)?;
        if !url.place().starts_with("//") {
            let place = if kind == "unix" { "/path/to/socket" } else { "…" };
            return Err(InvalidInput::new(format!("{scheme}: without //: use {scheme}://{place}")));
        }
        let ca = if tls { url.text("ca")?.map(PathBuf::from) } else { None };
        if kind == "unix" {
            let path = url.path("redis+unix:///path/to/socket")?;
            if path.ends_with('/') {
                let text = format!("{path:?} names a directory: use redis+unix:///path/to/socket");
                return Err(InvalidInput::new(text));
            }
            let endpoint = Endpoint::Socket(path.into());
            let credentials = Credentials { user: url.text("user")?, password: url.text("pass")? };
            let database = database(&url.text("db")?.unwrap_or_default())?;
            return Ok(Self { endpoint, credentials, database, tls, ca });
        }
        // The last @ ends the credentials: a forgotten escape shows no part of a password in an
        // error.
        let rest = url.place()[2..].to_owned();
        let (credentials, rest) = match rest.rsplit_once('@') {
            Some((credentials, rest)) => (Credentials::parse(credentials)?, rest),
            None => (Credentials::default(), &*rest),
        };
        let (hosts, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (endpoint, path) = match kind {
            "sentinel" => {
                let (master, path) = path.split_once('/').unwrap_or((path, ""));
                if master.is_empty() {
                    let text = "the redis address names no master: redis+sentinel://host:port/master";
                    return Err(InvalidInput::new(text));
                }
                let master = decoded(master, &format!("the master {master:?}"))?.into_owned();
                let credentials = Credentials {
                    user: url.text("sentinel-user")?,
                    password: url.text("sentinel-password")?,
                };
                (Endpoint::Sentinels { hosts: parse_hosts(hosts, 26379)?, master, credentials }, path)
            }
            "cluster" if path.is_empty() => (Endpoint::Cluster(parse_hosts(hosts, 6379)?), ""),
            "cluster" => {
                let text = format!("a redis cluster has no databases: leave out {:?}", format!("/{path}"));
                return Err(InvalidInput::new(text));
            }
            _ if hosts.contains(',') => {
                let text = "the redis address names several hosts: use redis+sentinel:// or redis+cluster://";
                return Err(InvalidInput::new(text));
            }
            _ => (Endpoint::Host(parse_host(hosts, 6379)?), path),
        };
        Ok(Self { endpoint, credentials, database: database(path)?, tls, ca })
    }
}

/// Omits the credentials.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |hosts: &[Host]| {
            let hosts: Vec<_> = hosts.iter().map(|(host, port)| format!("{host}:{port}")).collect();
            hosts.join(",")
        };
        match &self.endpoint {
            Endpoint::Host((host, port)) => write!(f, "{host}:{port}"),
            Endpoint::Socket(path) => path.display().fmt(f),
            Endpoint::Cluster(hosts) => f.write_str(&list(hosts)),
            Endpoint::Sentinels { hosts, master, .. } => write!(f, "{master} of sentinels {}", list(hosts)),
        }
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({:?})", self.to_string())
    }
}

impl Credentials {
    fn parse(text: &str) -> Result<Self, InvalidInput> {
        let decode = |part| decoded(part, "the user or the password").map(|part| part.into_owned());
        let (user, password) = text.split_once(':').map_or((text, None), |(user, pass)| (user, Some(pass)));
        Ok(Self {
            user: Some(decode(user)?).filter(|user| !user.is_empty()),
            password: password.map(decode).transpose()?,
        })
    }
}

fn needs(feature: &str, asked: bool, has: bool, scheme: &str) -> Result<(), InvalidInput> {
    if asked && !has {
        return Err(InvalidInput::new(format!(
            "{scheme}:// needs the feature \"{feature}\" of interval-queue-redis, which was left out of this program"
        )));
    }
    Ok(())
}

fn parse_hosts(text: &str, port: u16) -> Result<Vec<Host>, InvalidInput> {
    text.split(',').map(|host| parse_host(host, port)).collect()
}

/// Parses `host`, `host:port`, `[ipv6]` or `[ipv6]:port`.
fn parse_host(text: &str, default: u16) -> Result<Host, InvalidInput> {
    let wrong = || InvalidInput::new(format!("{text:?} is no host of redis: give host or host:port"));
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => rest.split_once(']').ok_or_else(wrong)?,
        None => text.find(':').map_or((text, ""), |colon| text.split_at(colon)),
    };
    let port = match port.strip_prefix(':') {
        Some(port) => port.parse().map_err(|_| wrong())?,
        None if port.is_empty() => default,
        None => return Err(wrong()),
    };
    let can_be = if text.starts_with('[') {
        // After % comes the interface of a link-local address.
        host.split('%').next().is_some_and(|host| host.parse::<Ipv6Addr>().is_ok())
    } else {
        !host.is_empty()
    };
    let odd = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '[' | ']');
    if !can_be || host.contains(odd) || port == 0 {
        return Err(wrong());
    }
    Ok((host.to_owned(), port))
}

fn database(text: &str) -> Result<i64, InvalidInput> {
    if text.is_empty() {
        return Ok(0);
    }
    let number = text.parse().ok().filter(|&number: &i64| number >= 0);
    number.ok_or_else(|| InvalidInput::new(format!("{text:?} is no database of redis: give a number")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Result<Address, InvalidInput> {
        let mut url = Url::parse(url, KNOWN_SCHEMES)?;
        let address = Address::take(&mut url)?;
        url.finish().map(|()| address)
    }

    fn host(name: &str, port: u16) -> Endpoint {
        Endpoint::Host((name.into(), port))
    }

    #[test]
    fn an_address_is_taken_apart() {
        let no_socket = "/run/a@b.sock";
        for (url, place, user, password, database) in [
            ("redis://ann:p%40ss@db.example:7000/3", host("db.example", 7000), Some("ann"), Some("p@ss"), 3),
            ("redis://[::1]", host("::1", 6379), None, None, 0),
            ("redis://[fe80::1%eth0]:7", host("fe80::1%eth0", 7), None, None, 0),
            (
                "redis+unix:///run/a@b.sock?db=2&pass=x",
                Endpoint::Socket(no_socket.into()),
                None,
                Some("x"),
                2,
            ),
        ] {
            let address = parse(url).unwrap();
            assert!(address.endpoint == place, "{url}: {address}");
            let Credentials { user: its_user, password: its_password } = &address.credentials;
            assert_eq!((its_user.as_deref(), its_password.as_deref()), (user, password), "{url}");
            assert_eq!(address.database, database, "{url}");
        }
    }

    #[test]
    #[cfg(all(feature = "sentinel", feature = "tls"))]
    fn sentinels_have_credentials_of_their_own() {
        let url = "rediss+sentinel://:a@one,two:7/the%20master/1?sentinel-password=b&ca=/etc/ca.pem";
        let address = parse(url).unwrap();
        let credentials = Credentials { user: None, password: Some("b".into()) };
        let hosts = vec![("one".into(), 26379), ("two".into(), 7)];
        assert!(address.endpoint == Endpoint::Sentinels { hosts, master: "the master".into(), credentials });
        assert_eq!(address.credentials.password.as_deref(), Some("a"));
        assert_eq!((address.tls, address.ca), (true, Some("/etc/ca.pem".into())));
    }

    #[test]
    fn unusable_addresses_are_named() {
        for (url, says) in [
            ("localhost", "has no scheme: use one of redis://"),
            ("localhost:6379", "unknown scheme \"localhost:\": use one of redis://"),
            ("http://x", "unknown scheme \"http:\": use one of redis://"),
            ("rediss+unix:///x", "unknown scheme"),
            ("redis:h", "redis: without //"),
            ("redis+unix:", "redis+unix: without //: use redis+unix:///path/to/socket"),
            ("redis+unix://", "redis+unix: without a path: use redis+unix:///path/to/socket"),
            ("redis+unix:///", "\"/\" names a directory: use redis+unix:///path/to/socket"),
            ("redis+unix:///?db=2", "\"/\" names a directory"),
            ("redis+unix:///run/redis/", "\"/run/redis/\" names a directory"),
            ("redis://u:100%@h", "the user or the password has a % without two"),
            ("redis://", "is no host"),
            ("redis://h:0", "\"h:0\" is no host"),
            ("redis://[[)1]:7", "\"[[)1]:7\" is no host"),
            ("redis://[localhost]", "is no host"),
            ("redis://a b", "\"a b\" is no host"),
            ("redis://h:x", "\"h:x\" is no host"),
            ("redis://a,b", "redis+cluster://"),
            ("redis://h/x", "\"x\" is no database"),
            ("redis://h?x=me@home", "%40 for an @ in a parameter"),
            ("redis\n://h", "unknown scheme \"redis\\n:\""),
            ("redis://h/-1", "\"-1\" is no database"),
            ("redis://h?colour=red", "parameter \"colour\""),
            ("redis://h?ca=/x", "parameter \"ca\""),
        ] {
            let error = parse(url).unwrap_err().to_string();
            assert!(error.contains(says), "{url}: {error}");
        }
    }

    #[test]
    fn a_missing_feature_is_named() {
        for (url, feature, has) in [
            ("rediss://h", "tls", cfg!(feature = "tls")),
            ("redis+sentinel://h/m", "sentinel", cfg!(feature = "sentinel")),
            ("redis+cluster://h", "cluster", cfg!(feature = "cluster")),
        ] {
            match parse(url) {
                Ok(_) => assert!(has, "{url}"),
                Err(error) => assert!(!has && error.to_string().contains(feature), "{url}: {error}"),
            }
        }
    }

    #[test]
    fn no_password_is_shown() {
        for url in [
            "redis://u:hunter2@h",
            "redis://u:hunter2@h:x",
            "redis://u:hun/hunter2@h:x",
            "redis://u:hun?hunter2@h/x",
            "redis://u:hunter2%ff@h",
            "redis://u:%hunter2@h",
            "redis+unix:///s?pass=hunter2",
            "redis+unix:///s?pass=hunter2&x=hunter2",
        ] {
            let shown = match parse(url) {
                Ok(address) => format!("{address} {address:?}"),
                Err(error) => format!("{error} {error:?}"),
            };
            assert!(!shown.contains("hunter2"), "{url}: {shown}");
        }
    }
}
