//! The parsers for the fuzz targets in `fuzz/`, which have bytes and no server. No part of the public API.

use std::fmt::Write;

use interval_queue_contract::{Command, InvalidInput, QueueName, Reply, StateError};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use redis::{RedisError, Value};

use crate::{
    Builder,
    address::{Address, Credentials, Host, Place},
    answer, error,
    keys::Keys,
};

/// An address that was taken apart.
#[derive(Debug, PartialEq, Eq)]
pub struct Parsed(Address);

impl Parsed {
    /// Takes the address of a builder apart.
    ///
    /// # Errors
    ///
    /// The address cannot be used.
    pub fn of(builder: &Builder) -> Result<Self, InvalidInput> {
        Self::new(&builder.url)
    }

    /// Takes an address apart.
    ///
    /// # Errors
    ///
    /// The address cannot be used.
    pub fn new(url: &str) -> Result<Self, InvalidInput> {
        Address::parse(url).map(Self)
    }

    /// What is shown of it.
    pub fn shown(&self) -> String {
        format!("{} {:?}", self.0, self.0)
    }

    /// The address from which the same is read, all that can be escaped escaped.
    pub fn canonical(&self) -> String {
        let Address { place, credentials, database, tls } = &self.0;
        let mut url = String::from(if tls.is_some() { "rediss" } else { "redis" });
        let mut parameters = Vec::new();
        let login = login(credentials);
        match place {
            Place::Host(host) => url += &format!("://{login}{}/{database}", hosts([host])),
            Place::Cluster(all) => url += &format!("+cluster://{login}{}", hosts(all)),
            Place::Sentinels { hosts: all, master, credentials } => {
                url += &format!("+sentinel://{login}{}/{}/{database}", hosts(all), encoded(master));
                parameters.push(("sentinel-user", credentials.user.clone()));
                parameters.push(("sentinel-password", credentials.password.clone()));
            }
            Place::Socket(path) => {
                url += &format!("+unix://{}", encoded(&path.to_string_lossy()));
                parameters.push(("user", credentials.user.clone()));
                parameters.push(("pass", credentials.password.clone()));
                parameters.push(("db", Some(database.to_string())));
            }
        }
        let ca = tls.as_ref().and_then(|tls| tls.ca.as_ref());
        parameters.push(("ca", ca.map(|ca| ca.to_string_lossy().into_owned())));
        let mut sign = '?';
        for (name, value) in parameters {
            if let Some(value) = value {
                // Writing to a string cannot fail.
                let _ = write!(url, "{sign}{name}={}", encoded(&value));
                sign = '&';
            }
        }
        url
    }
}

fn login(Credentials { user, password }: &Credentials) -> String {
    let user = user.as_deref().map(encoded).unwrap_or_default();
    match password {
        Some(password) => format!("{user}:{}@", encoded(password)),
        None if user.is_empty() => String::new(),
        None => format!("{user}@"),
    }
}

fn hosts<'a>(hosts: impl IntoIterator<Item = &'a Host>) -> String {
    let text = hosts.into_iter().map(|(host, port)| {
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    });
    text.collect::<Vec<_>>().join(",")
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

/// What a client reads from the wire: an answer, or the error that the server sent or that the bytes are.
fn read(wire: &[u8]) -> Result<Value, RedisError> {
    redis::parse_redis_value(wire)?.extract_error()
}

/// What a shard is told when these bytes come back for its command.
///
/// # Errors
///
/// What it is told, too.
pub fn answer(command: &Command, wire: &[u8]) -> Result<Reply, StateError> {
    answer::decode(command, read(wire).map_err(error::of_command)?)
}

/// The masters in an answer to `CLUSTER SLOTS`.
///
/// # Errors
///
/// It is no such answer.
#[cfg(feature = "cluster")]
pub fn masters(wire: &[u8]) -> Result<Vec<(String, u16)>, StateError> {
    let masters = read(wire).and_then(crate::cluster::masters_in).map_err(error::of_command)?;
    Ok(masters.into_iter().collect())
}

/// The queue that a key is the header of, under this prefix.
pub fn queue_of(prefix: &str, key: &str) -> Option<QueueName> {
    Keys::new(prefix).queue(key)
}

/// The keys of a queue, under this prefix.
pub fn keys_of(prefix: &str, queue: &QueueName) -> [String; 2] {
    Keys::new(prefix).of(queue)
}

/// Where a scan goes on, and the queues on this page of it.
///
/// # Errors
///
/// It is no page of a scan.
pub fn page(prefix: &str, wire: &[u8]) -> Result<(u64, Vec<QueueName>), StateError> {
    let page = read(wire).and_then(crate::state::page_in).map_err(error::of_command)?;
    let keys = Keys::new(prefix);
    Ok((page.0, page.1.iter().filter_map(|key| keys.queue(key)).collect()))
}
