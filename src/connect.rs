//! Shared state by its URL.

use std::sync::Arc;

use interval_queue_contract::{InvalidInput, SharedState};
use interval_queue_memory::MemoryState;

use crate::{Error, parameters::Parameters};

const KNOWN: &str = "memory:, file:PATH, redis://HOST, rediss://HOST, redis+unix://PATH, redis+sentinel://…, redis+cluster://…";

/// Parameters that belong to the address of a Redis; which of them depends on its scheme.
#[cfg(feature = "redis")]
const OF_ADDRESS: [&str; 6] = ["ca", "sentinel-user", "sentinel-password", "db", "user", "pass"];

/// Opens the shared state at `url`.
///
/// | URL | state | feature |
/// |---|---|---|
/// | `memory:` | the memory of this process, a new one with each call | |
/// | `file:PATH` | a JSON file; a relative path is taken from the working directory | `json-file` (default) |
/// | `redis://[user:password@]host[:port][/database]` | Redis or Valkey | `redis` |
/// | `rediss://…` | the same over TLS | `redis-tls` |
/// | `redis+unix:///path/to.sock` | the same over a socket file | `redis` |
/// | `redis+sentinel://host[:port],…/master[/database]` | the master that the sentinels name | `redis-sentinel` |
/// | `redis+cluster://host[:port],…` | a Redis cluster | `redis-cluster` |
///
/// Parameters follow a `?`, joined by `&`; durations have a unit, as in `5s` or `250ms`:
///
/// | parameter | of | meaning | default |
/// |---|---|---|---|
/// | `fsync=always` or `never` | file | whether every change is flushed to the disk | `never` |
/// | `replacement=rename` or `in-place` | file | whether a small file may be overwritten where it stands | `in-place` |
/// | `clock=server` or `host` | file | whose clock decides on a network mount | `host` |
/// | `lock_timeout=D` | file | how long to wait for the lock | `5s` |
/// | `prefix=TEXT` | Redis | how the names of all keys begin | `interval-queue` |
/// | `timeout=D` | Redis | how long one command may take | `2s` |
/// | `idle_expiry=D` | Redis | how long an idle queue is remembered | `7days` |
/// | `ca=PATH` | `rediss` | certificates to trust instead of the system's | |
/// | `db=N`, `user=TEXT`, `pass=TEXT` | `redis+unix` | database and credentials | 0, nobody |
/// | `sentinel-user=TEXT`, `sentinel-password=TEXT` | sentinels | who asks the sentinels | nobody |
///
/// In a path or a value `%3F` stands for `?`, `%26` for `&`, `%40` for `@`, `%25` for `%`.
///
/// # Errors
///
/// [`Invalid`](crate::ErrorKind::Invalid) for a scheme or parameter that is not known, listing the known ones, and for
/// a scheme whose feature is off. [`State`](crate::ErrorKind::State) if what the URL names cannot be used.
pub async fn connect(url: &str) -> Result<Arc<dyn SharedState>, Error> {
    Ok(match Place::parse(url)? {
        Place::Memory => Arc::new(MemoryState::new()),
        #[cfg(feature = "json-file")]
        Place::File(builder) => Arc::new(builder.open().await?),
        #[cfg(feature = "redis")]
        Place::Redis(builder) => Arc::new(builder.connect().await?),
    })
}

/// What a URL names, with its parameters. Nothing is opened yet.
pub(crate) enum Place {
    Memory,
    #[cfg(feature = "json-file")]
    File(interval_queue_json_file::Builder),
    #[cfg(feature = "redis")]
    Redis(interval_queue_redis::Builder),
}

impl Place {
    /// Takes a URL apart.
    pub(crate) fn parse(url: &str) -> Result<Self, InvalidInput> {
        let Some((scheme, rest)) = url.split_once(':') else {
            return Err(InvalidInput::new(format!("the state {url:?} has no scheme: use one of {KNOWN}")));
        };
        match scheme {
            "memory" => {
                let (place, parameters) = Parameters::split(rest)?;
                parameters.finish("memory:", &[])?;
                if place.is_empty() {
                    return Ok(Self::Memory);
                }
                Err(InvalidInput::new(format!(
                    "memory:{}: memory has no name, it belongs to one process; use \"memory:\"",
                    place.escape_debug()
                )))
            }
            "file" => file(rest),
            "redis" | "rediss" | "redis+unix" | "redis+sentinel" | "rediss+sentinel" | "redis+cluster"
            | "rediss+cluster" => redis(scheme, rest),
            _ => {
                let scheme = scheme.escape_debug();
                Err(InvalidInput::new(format!("unknown scheme \"{scheme}:\": use one of {KNOWN}")))
            }
        }
    }
}

#[cfg(feature = "json-file")]
fn file(rest: &str) -> Result<Place, InvalidInput> {
    use interval_queue_json_file::{Clock, Fsync, JsonFileState, Replacement};

    let (place, mut parameters) = Parameters::split(rest)?;
    // `file:///a` is the usual way to write `file:/a`.
    let path = place.strip_prefix("//").unwrap_or(place);
    let path = crate::parameters::values::decoded(path)?.into_owned();
    if path.is_empty() {
        return Err(InvalidInput::new("file: without a path: use file:PATH, as in file:pace.json"));
    }
    let mut builder = JsonFileState::builder(path);
    if let Some(fsync) = parameters.choice("fsync", &[("never", Fsync::Never), ("always", Fsync::Always)])? {
        builder = builder.fsync(fsync);
    }
    let ways = [("in-place", Replacement::InPlace), ("rename", Replacement::Rename)];
    if let Some(replacement) = parameters.choice("replacement", &ways)? {
        builder = builder.replacement(replacement);
    }
    if let Some(clock) =
        parameters.choice("clock", &[("host", Clock::Host), ("server", Clock::FileServer)])?
    {
        builder = builder.clock(clock);
    }
    if let Some(timeout) = parameters.duration("lock_timeout")? {
        builder = builder.lock_timeout(timeout);
    }
    parameters.finish("file:", &["fsync", "replacement", "clock", "lock_timeout"])?;
    Ok(Place::File(builder))
}

#[cfg(not(feature = "json-file"))]
fn file(_: &str) -> Result<Place, InvalidInput> {
    Err(InvalidInput::new("file: needs the feature \"json-file\" of the crate interval-queue"))
}

#[cfg(feature = "redis")]
fn redis(scheme: &str, rest: &str) -> Result<Place, InvalidInput> {
    use interval_queue_redis::RedisState;

    // Whoever guesses shows a piece of a password, or talks to another host.
    if scheme != "redis+unix" && rest.split_once('?').is_some_and(|(_, query)| query.contains('@')) {
        let text = "the redis address has an @ behind a ?: write %3F for a ? in a password and %40 for an @ in a parameter";
        return Err(InvalidInput::new(text));
    }
    let (place, mut parameters) = Parameters::split(rest)?;
    let of_address: Vec<_> = OF_ADDRESS
        .into_iter()
        .filter_map(|name| parameters.raw(name).map(|value| format!("{name}={value}")))
        .collect();
    let question = if of_address.is_empty() { "" } else { "?" };
    let mut builder = RedisState::builder(format!("{scheme}:{place}{question}{}", of_address.join("&")));
    if let Some(prefix) = parameters.text("prefix")? {
        builder = builder.prefix(prefix);
    }
    if let Some(timeout) = parameters.duration("timeout")? {
        builder = builder.timeout(timeout);
    }
    if let Some(expiry) = parameters.duration("idle_expiry")? {
        builder = builder.idle_expiry(expiry);
    }
    let known: Vec<_> = ["prefix", "timeout", "idle_expiry"].into_iter().chain(OF_ADDRESS).collect();
    parameters.finish("redis:", &known)?;
    Ok(Place::Redis(builder))
}

#[cfg(not(feature = "redis"))]
fn redis(_: &str, _: &str) -> Result<Place, InvalidInput> {
    Err(InvalidInput::new("redis: needs the feature \"redis\" of the crate interval-queue"))
}
