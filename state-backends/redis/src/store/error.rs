//! Maps errors of the server and of the connection to errors of the contract.

#[cfg(feature = "tls")]
use std::{error::Error, io, sync::Arc};

use interval_queue_contract::{StateError, StateErrorKind};
use redis::{ErrorKind, RedisError, ServerErrorKind};

use super::address::Address;

/// The error of a command that was sent.
pub fn of_command(error: RedisError) -> StateError {
    let kind = kind_of(&error);
    let message = match kind {
        StateErrorKind::Unreachable => "redis did not serve the command",
        StateErrorKind::TimedOut => "redis did not answer in time: the command may have happened",
        StateErrorKind::Denied => "redis does not permit the command: check user, password and ACL",
        StateErrorKind::Full => "redis has no memory left: raise maxmemory",
        StateErrorKind::Foreign => "a key holds something else: choose another prefix or name",
        _ => "redis cannot carry out the command",
    };
    StateError::new(kind, message).with_source(error)
}

/// Nothing was sent.
pub(super) fn of_dialing(error: RedisError, place: &Address) -> StateError {
    let kind = match (kind_of(&error), error.kind()) {
        (StateErrorKind::Denied, _) => StateErrorKind::Denied,
        (_, ErrorKind::InvalidClientConfig) => StateErrorKind::Invalid,
        _ => StateErrorKind::Unreachable,
    };
    let message = match kind {
        StateErrorKind::Denied => format!("redis at {place} refuses user or password"),
        StateErrorKind::Invalid => format!("redis at {place} cannot be addressed so"),
        _ if is_no_redis(&error) => {
            format!("what answers at {place} does not speak as redis does: check host and port")
        }
        _ => format!("redis at {place} cannot be reached"),
    };
    StateError::new(kind, message).with_source(error).without_effect()
}

/// Bytes arrived that no Redis sends.
fn is_no_redis(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Parse || is_no_tls(error)
}

#[cfg(feature = "tls")]
fn is_no_tls(error: &RedisError) -> bool {
    let cause = error.source().and_then(|cause| cause.downcast_ref::<Arc<dyn Error + Send + Sync>>());
    let of_tls = cause.and_then(|cause| cause.downcast_ref::<io::Error>()?.get_ref()?.downcast_ref());
    matches!(of_tls, Some(rustls::Error::InvalidMessage(_)))
}

#[cfg(not(feature = "tls"))]
fn is_no_tls(_: &RedisError) -> bool {
    false
}

pub(super) fn of_watching(error: RedisError, channel: &str) -> StateError {
    if kind_of(&error) != StateErrorKind::Denied {
        return of_command(error);
    }
    let text = format!(
        "the redis user may not subscribe to {channel:?}: give it the channels of the queues and +subscribe, or leave wake-ups off"
    );
    StateError::new(StateErrorKind::Denied, text).with_source(error)
}

pub(super) fn is_no_script(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::NoScript)
}

pub(super) fn is_no_function(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::ResponseError)
        && error.detail().is_some_and(|detail| detail.starts_with("Function not found"))
}

/// The server may accept other commands.
pub(super) fn is_refused_command(error: &RedisError) -> bool {
    let answered = matches!(error.kind(), ErrorKind::Server(_) | ErrorKind::Extension);
    let not_permitted = error.kind() == ErrorKind::Server(ServerErrorKind::NoPerm);
    not_permitted || answered && kind_of(error) == StateErrorKind::Unsupported
}

/// The connection is broken, or another one may lead to a server that serves.
pub(super) fn ends_connection(error: &RedisError) -> bool {
    match error.kind() {
        ErrorKind::Server(_) | ErrorKind::Extension => {
            matches!(code_of(error), Some("READONLY" | "LOADING" | "MASTERDOWN"))
        }
        ErrorKind::UnexpectedReturnType | ErrorKind::Client => false,
        _ => true,
    }
}

fn kind_of(error: &RedisError) -> StateErrorKind {
    match error.kind() {
        ErrorKind::Io if error.is_timeout() => StateErrorKind::TimedOut,
        ErrorKind::AuthenticationFailed => StateErrorKind::Denied,
        ErrorKind::Server(_) | ErrorKind::Extension => {
            code_of(error).map_or(StateErrorKind::Unsupported, kind_of_code)
        }
        ErrorKind::UnexpectedReturnType | ErrorKind::InvalidClientConfig | ErrorKind::RESP3NotSupported => {
            StateErrorKind::Unsupported
        }
        _ => StateErrorKind::Unreachable,
    }
}

fn kind_of_code(code: &str) -> StateErrorKind {
    match code {
        "NOAUTH" | "WRONGPASS" | "NOPERM" => StateErrorKind::Denied,
        "OOM" => StateErrorKind::Full,
        "WRONGTYPE" => StateErrorKind::Foreign,
        "READONLY" | "LOADING" | "MASTERDOWN" | "CLUSTERDOWN" | "TRYAGAIN" | "MOVED" | "ASK" | "BUSY"
        | "MISCONF" | "NOREPLICAS" | "NOSCRIPT" => StateErrorKind::Unreachable,
        _ => StateErrorKind::Unsupported,
    }
}

/// Redis before 7 hides the code of a command in a script after `ERR`, the script's name and the
/// line.
fn code_of(error: &RedisError) -> Option<&str> {
    if error.kind() != ErrorKind::Server(ServerErrorKind::ResponseError) {
        return error.code();
    }
    let words = error.detail()?.split_ascii_whitespace();
    words
        .map(|word| word.trim_start_matches('-'))
        .find(|word| kind_of_code(word) != StateErrorKind::Unsupported)
}

#[cfg(test)]
mod tests {
    #[cfg(not(feature = "tls"))]
    use std::io;

    use StateErrorKind::{Denied, Full, TimedOut, Unreachable, Unsupported};

    use super::*;

    #[test]
    fn the_code_decides_and_a_time_out_is_no_lost_connection() {
        let answer = |reply: &str| {
            let value = redis::parse_redis_value(format!("-{reply}\r\n").as_bytes()).unwrap();
            value.extract_error().unwrap_err()
        };
        let of_connection = |kind: io::ErrorKind| RedisError::from(io::Error::from(kind));
        for (error, expected) in [
            (answer("READONLY You can't write against a read only replica."), Unreachable),
            (answer("LOADING Redis is loading the dataset in memory"), Unreachable),
            (answer("MISCONF Errors writing to the AOF file"), Unreachable),
            (answer("NOAUTH Authentication required."), Denied),
            (answer("NOPERM this user has no permissions"), Denied),
            (answer("OOM command not allowed"), Full),
            (answer("ERR unknown command 'EVALSHA'"), Unsupported),
            (
                answer("ERR Error running script (call to f_0a): @user_script:9: -OOM command not allowed"),
                Full,
            ),
            (of_connection(io::ErrorKind::TimedOut), TimedOut),
            (of_connection(io::ErrorKind::BrokenPipe), Unreachable),
        ] {
            assert_eq!(of_command(error.clone()).kind(), expected, "{error}");
        }
    }
}
