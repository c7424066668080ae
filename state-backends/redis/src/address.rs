//! Where the server is: addresses in, hosts and credentials out. Neither errors nor `Debug` show a password.

use std::{fmt, net::Ipv6Addr, path::PathBuf};

use interval_queue_contract::InvalidInput;
use percent_encoding::percent_decode_str;

const KNOWN: &str = "redis://, rediss://, redis+unix://, redis+sentinel://, rediss+sentinel://, redis+cluster://, \
                     rediss+cluster://";

/// A guess could show a piece of a password, or talk to another host.
const ESCAPE: &str =
    "the redis address has an @ behind a ?: write %3F for a ? in a password and %40 for an @ in a parameter";

/// A parsed address.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) place: Place,
    pub(crate) credentials: Credentials,
    pub(crate) database: i64,
    pub(crate) tls: Option<Tls>,
}

/// What is at the address.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Place {
    Host(Host),
    Socket(PathBuf),
    Sentinels { hosts: Vec<Host>, master: String, credentials: Credentials },
    Cluster(Vec<Host>),
}

/// A host and a port.
pub(crate) type Host = (String, u16);

#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Credentials {
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
}

/// Whom to trust.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tls {
    /// A file of certificates instead of those of the system.
    pub(crate) ca: Option<PathBuf>,
}

impl Address {
    /// Takes an address apart.
    ///
    /// # Errors
    ///
    /// Names what cannot be used, the schemes or the parameters that are known, or the missing feature.
    pub(crate) fn parse(url: &str) -> Result<Self, InvalidInput> {
        let Some((scheme, rest)) = url.split_once("://") else {
            return Err(InvalidInput::new(format!("the redis address has no scheme: use {KNOWN}")));
        };
        let (base, kind) = scheme.split_once('+').unwrap_or((scheme, ""));
        let tls = match (base, kind) {
            ("redis", "" | "unix" | "sentinel" | "cluster") => false,
            ("rediss", "" | "sentinel" | "cluster") => true,
            _ => {
                return Err(InvalidInput::new(format!(
                    "unknown scheme {:?}: use {KNOWN}",
                    format!("{scheme}://")
                )));
            }
        };
        needs("tls", tls, cfg!(feature = "tls"), scheme)?;
        needs("sentinel", kind == "sentinel", cfg!(feature = "sentinel"), scheme)?;
        needs("cluster", kind == "cluster", cfg!(feature = "cluster"), scheme)?;

        if kind != "unix" && rest.split_once('?').is_some_and(|(_, query)| query.contains('@')) {
            return Err(InvalidInput::new(ESCAPE));
        }
        // The last @ ends the credentials, so that a forgotten escape cannot show a piece of a password in an
        // error.
        let (credentials, rest) = match rest.rsplit_once('@') {
            Some((credentials, rest)) if kind != "unix" => (Credentials::parse(credentials)?, rest),
            _ => (Credentials::default(), rest),
        };
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let mut parameters = Parameters::parse(query)?;
        let tls = tls.then(|| Tls { ca: parameters.take("ca").map(PathBuf::from) });
        let (hosts, path) = rest.split_once('/').unwrap_or((rest, ""));
        let address = match kind {
            "unix" => Self {
                place: Place::Socket(decode(rest)?.into()),
                credentials: Credentials { user: parameters.take("user"), password: parameters.take("pass") },
                database: database(parameters.take("db").as_deref().unwrap_or(""))?,
                tls,
            },
            "sentinel" => {
                let (master, path) = path.split_once('/').unwrap_or((path, ""));
                if master.is_empty() {
                    return Err(InvalidInput::new(
                        "the redis address names no master: redis+sentinel://host:port/master",
                    ));
                }
                Self {
                    place: Place::Sentinels {
                        hosts: parse_hosts(hosts, 26379)?,
                        master: decode(master)?,
                        credentials: Credentials {
                            user: parameters.take("sentinel-user"),
                            password: parameters.take("sentinel-password"),
                        },
                    },
                    credentials,
                    database: database(path)?,
                    tls,
                }
            }
            "cluster" => {
                if !path.is_empty() {
                    return Err(InvalidInput::new(format!(
                        "a redis cluster has no databases: leave out {:?}",
                        format!("/{path}")
                    )));
                }
                Self { place: Place::Cluster(parse_hosts(hosts, 6379)?), credentials, database: 0, tls }
            }
            _ => {
                let mut hosts = parse_hosts(hosts, 6379)?;
                let (Some(host), true) = (hosts.pop(), hosts.is_empty()) else {
                    return Err(InvalidInput::new(
                        "the redis address names several hosts: use redis+sentinel:// or redis+cluster://",
                    ));
                };
                Self { place: Place::Host(host), credentials, database: database(path)?, tls }
            }
        };
        parameters.finish()?;
        Ok(address)
    }
}

/// Hosts, socket and master, without credentials.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |f: &mut fmt::Formatter<'_>, hosts: &[Host]| {
            for (i, (host, port)) in hosts.iter().enumerate() {
                let comma = if i > 0 { "," } else { "" };
                write!(f, "{comma}{host}:{port}")?;
            }
            Ok(())
        };
        match &self.place {
            Place::Host(host) => list(f, std::slice::from_ref(host)),
            Place::Socket(path) => path.display().fmt(f),
            Place::Cluster(hosts) => list(f, hosts),
            Place::Sentinels { hosts, master, .. } => {
                write!(f, "{master} of sentinels ")?;
                list(f, hosts)
            }
        }
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Address").field(&self.to_string()).finish()
    }
}

impl Credentials {
    fn parse(text: &str) -> Result<Self, InvalidInput> {
        let (user, password) = text.split_once(':').map_or((text, None), |(user, pass)| (user, Some(pass)));
        Ok(Self {
            user: Some(decode(user)?).filter(|user| !user.is_empty()),
            password: password.map(decode).transpose()?,
        })
    }
}

/// Parameters that were not asked for yet.
struct Parameters(Vec<(String, String)>);

impl Parameters {
    fn parse(query: &str) -> Result<Self, InvalidInput> {
        let parts = query.split('&').filter(|part| !part.is_empty());
        let pairs = parts.map(|part| {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            Ok((decode(name)?, decode(value)?))
        });
        pairs.collect::<Result<_, _>>().map(Self)
    }

    fn take(&mut self, name: &str) -> Option<String> {
        let place = self.0.iter().position(|(known, _)| known == name)?;
        Some(self.0.remove(place).1)
    }

    fn finish(self) -> Result<(), InvalidInput> {
        match self.0.first() {
            None => Ok(()),
            Some((name, _)) => Err(InvalidInput::new(format!(
                "the redis address has an unknown or repeated parameter {name:?}: known are ca with TLS, db, user and \
                 pass with redis+unix://, sentinel-user and sentinel-password with redis+sentinel://"
            ))),
        }
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

/// `host`, `host:port`, `[ipv6]` or `[ipv6]:port`.
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
        // Behind a % stands the interface of a link-local address.
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

fn decode(text: &str) -> Result<String, InvalidInput> {
    match percent_decode_str(text).decode_utf8() {
        Ok(text) => Ok(text.into_owned()),
        Err(_) => Err(InvalidInput::new("the redis address is not UTF-8 once it is percent-decoded")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(url: &str) -> String {
        Address::parse(url).unwrap_err().to_string()
    }

    #[test]
    fn an_address_is_taken_apart() {
        let address = Address::parse("redis://ann:p%40ss@db.example:7000/3").unwrap();
        assert!(address.place == Place::Host(("db.example".into(), 7000)));
        assert_eq!(address.credentials.user.as_deref(), Some("ann"));
        assert_eq!(address.credentials.password.as_deref(), Some("p@ss"));
        assert_eq!(address.database, 3);
        let short = Address::parse("redis://[::1]").unwrap();
        assert!(short.place == Place::Host(("::1".into(), 6379)));
        assert!(short.credentials == Credentials::default());
        let link = Address::parse("redis://[fe80::1%eth0]:7").unwrap();
        assert!(link.place == Place::Host(("fe80::1%eth0".into(), 7)));
        let socket = Address::parse("redis+unix:///run/a@b.sock?db=2&pass=x").unwrap();
        assert!(socket.place == Place::Socket("/run/a@b.sock".into()));
        assert_eq!((socket.database, socket.credentials.password.as_deref()), (2, Some("x")));
    }

    #[test]
    #[cfg(all(feature = "sentinel", feature = "tls"))]
    fn sentinels_have_credentials_of_their_own() {
        let url = "rediss+sentinel://:a@one,two:7/the%20master/1?sentinel-password=b&ca=/etc/ca.pem";
        let address = Address::parse(url).unwrap();
        let Place::Sentinels { hosts, master, credentials } = address.place else {
            panic!("no sentinels");
        };
        assert_eq!(hosts, [("one".into(), 26379), ("two".into(), 7)]);
        assert_eq!(master, "the master");
        assert_eq!(credentials.password.as_deref(), Some("b"));
        assert_eq!(address.credentials.password.as_deref(), Some("a"));
        assert_eq!(address.tls.unwrap().ca, Some("/etc/ca.pem".into()));
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        for (url, says) in [
            ("localhost:6379", "has no scheme: use redis://"),
            ("http://x", "unknown scheme \"http://\": use redis://"),
            ("rediss+unix:///x", "unknown scheme"),
            ("redis://", "is no host"),
            ("redis://h:0", "\"h:0\" is no host"),
            ("redis://[[)1]:7", "\"[[)1]:7\" is no host"),
            ("redis://[localhost]", "is no host"),
            ("redis://a b", "\"a b\" is no host"),
            ("redis://h:x", "\"h:x\" is no host"),
            ("redis://a,b", "redis+cluster://"),
            ("redis://h/x", "\"x\" is no database"),
            ("redis://h?x=me@home", "%40 for an @ in a parameter"),
            ("redis\n://h", "unknown scheme \"redis\\n://\""),
            ("redis://h/-1", "\"-1\" is no database"),
            ("redis://h?colour=red", "parameter \"colour\""),
            ("redis://h?ca=/x", "parameter \"ca\""),
        ] {
            assert!(error(url).contains(says), "{url}: {}", error(url));
        }
    }

    #[test]
    fn a_missing_feature_is_named() {
        for (url, feature, has) in [
            ("rediss://h", "tls", cfg!(feature = "tls")),
            ("redis+sentinel://h/m", "sentinel", cfg!(feature = "sentinel")),
            ("redis+cluster://h", "cluster", cfg!(feature = "cluster")),
        ] {
            match Address::parse(url) {
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
            "redis+unix:///s?pass=hunter2",
            "redis+unix:///s?pass=hunter2&x=hunter2",
        ] {
            let shown = match Address::parse(url) {
                Ok(address) => format!("{address} {address:?}"),
                Err(error) => format!("{error} {error:?}"),
            };
            assert!(!shown.contains("hunter2"), "{url}: {shown}");
        }
    }
}
