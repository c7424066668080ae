//! Maps errors of the server and of the connection to errors of a command.

use std::{error::Error as _, io};

use interval_queue_contract::{StateError, StateErrorKind};
use tokio_postgres::{Error, error::SqlState};

/// Only a command that stored nothing is retried.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) error: StateError,
    pub(crate) action: RetryAction,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RetryAction {
    GiveUp,
    /// The connection was lost, or the server rolled the transaction back.
    Retry,
    MakeTables,
}

impl Failure {
    /// The round trip stores nothing.
    pub(crate) fn of_query(error: Error) -> Self {
        of_query(error)
    }

    /// Another process has migrated the tables.
    pub(crate) fn moved() -> Self {
        let text = "the tables have another version by now: try again";
        let error = StateError::new(StateErrorKind::Unreachable, text).without_effect();
        Self { error, action: RetryAction::MakeTables }
    }

    /// A pooler has moved the connection to a server process without its prepared statements.
    pub(super) fn mixed() -> Self {
        let text = "a pooler moves the connection to postgres: nothing was stored";
        let error = StateError::new(StateErrorKind::Unreachable, text).without_effect();
        Self { error, action: RetryAction::Retry }
    }
}

impl From<StateError> for Failure {
    fn from(error: StateError) -> Self {
        Self { error, action: RetryAction::GiveUp }
    }
}

pub(super) fn of_connect(error: Error, server_name: &str) -> Failure {
    // The client's own checks have a text as their source, network failures an I/O error.
    if let (None, Some(what)) = (error.code(), error.source().filter(|cause| !cause.is::<io::Error>())) {
        let text = format!("the address of postgres at {server_name} does not fit the server: {what}");
        return StateError::new(StateErrorKind::Invalid, text).with_source(error).into();
    }
    let kind = match error.code() {
        Some(code) => kind_of(code),
        None => StateErrorKind::Unreachable,
    };
    let text = match (kind, answer_of(&error)) {
        (StateErrorKind::Denied, _) => {
            format!("postgres at {server_name} refuses the user, the password or the connection")
        }
        (StateErrorKind::NotFound, _) => {
            format!("postgres at {server_name} has no such database: create it, or name another")
        }
        (_, Answer::Foreign) => {
            format!("what answers at {server_name} is no postgres server: check host and port")
        }
        (_, Answer::Ended) => format!(
            "what answers at {server_name} ended the connection at once: postgres starts or stops, or check host and port"
        ),
        (_, Answer::None) => format!("postgres at {server_name} cannot be reached"),
    };
    StateError::new(kind, text).with_source(error).without_effect().into()
}

enum Answer {
    None,
    /// Bytes that no PostgreSQL server sends.
    Foreign,
    Ended,
}

fn answer_of(error: &Error) -> Answer {
    let Some(error) = error.source().and_then(|cause| cause.downcast_ref::<io::Error>()) else {
        return Answer::None;
    };
    #[cfg(feature = "tls")]
    if let Some(error) = error.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>()) {
        // In practice, all other TLS errors concern certificates.
        return if matches!(error, rustls::Error::InvalidMessage(_)) {
            Answer::Foreign
        } else {
            Answer::None
        };
    }
    use io::ErrorKind as Os;
    match error.kind() {
        // `Other`: the connection was closed in the middle of an invalid message.
        Os::InvalidData | Os::InvalidInput | Os::Other => Answer::Foreign,
        Os::UnexpectedEof | Os::ConnectionReset | Os::ConnectionAborted | Os::BrokenPipe => Answer::Ended,
        _ => Answer::None,
    }
}

pub(super) fn no_connection(server_name: &str, why: &str) -> Failure {
    let text = format!("no connection to postgres at {server_name} in time: {why}; the command was not sent");
    StateError::new(StateErrorKind::Unreachable, text).without_effect().into()
}

/// The round trip stores nothing.
pub(super) fn no_answer() -> Failure {
    let text = "postgres did not answer in time: nothing was stored";
    StateError::new(StateErrorKind::Unreachable, text).without_effect().into()
}

/// The round trip stores nothing.
pub(super) fn of_query(error: Error) -> Failure {
    let action = match error.code() {
        None => RetryAction::Retry,
        Some(code) if *code == SqlState::UNDEFINED_TABLE || *code == SqlState::INVALID_SCHEMA_NAME => {
            RetryAction::MakeTables
        }
        Some(code) if is_passing(code) => RetryAction::Retry,
        Some(_) => RetryAction::GiveUp,
    };
    Failure { error: of_statement(error), action }
}

/// The round trip ends with a commit.
pub(super) fn of_commit(error: Error) -> Failure {
    match error.code() {
        // The server rolled the transaction back.
        Some(code) if is_refused(code) => of_query(error),
        // The commit may have happened before the connection or the server ended.
        _ => indeterminate(Some(error)).into(),
    }
}

pub(super) fn indeterminate(cause: Option<Error>) -> StateError {
    let text = "postgres did not report whether it committed: the command may have happened";
    let error = StateError::new(StateErrorKind::TimedOut, text);
    match cause {
        Some(cause) => error.with_source(cause),
        None => error,
    }
}

fn of_statement(error: Error) -> StateError {
    let kind = error.code().map_or(StateErrorKind::Unreachable, kind_of);
    let locked = error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE);
    let message = match kind {
        StateErrorKind::Unreachable if locked => {
            "another process has locked the row of the queue for too long: nothing was stored"
        }
        StateErrorKind::Unreachable => "postgres did not serve the command: nothing was stored",
        StateErrorKind::Denied => {
            "postgres does not permit the command: grant the user the rights that the documentation of interval-queue-postgres lists"
        }
        StateErrorKind::Full => "postgres has no room left on its disk",
        StateErrorKind::Damaged => "postgres finds its data damaged",
        StateErrorKind::Foreign => "the tables are not as this software makes them: choose another schema",
        StateErrorKind::Invalid => "the database cannot hold such a text: use one with the encoding UTF8",
        _ => "postgres cannot carry out the command",
    };
    StateError::new(kind, message).with_source(error).without_effect()
}

/// Whether nothing of the transaction is stored.
fn is_refused(code: &SqlState) -> bool {
    // 57 and 58 concern the server, 08 the connection; 40003: the outcome is unknown.
    let class = code.code().get(..2).unwrap_or_default();
    !matches!(class, "08" | "57" | "58" | "XX" | "F0") && *code != SqlState::T_R_STATEMENT_COMPLETION_UNKNOWN
}

/// A retry on another connection, or a moment later, may succeed.
fn is_passing(code: &SqlState) -> bool {
    [
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::ADMIN_SHUTDOWN,
        SqlState::CRASH_SHUTDOWN,
        SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
        SqlState::IDLE_SESSION_TIMEOUT,
        SqlState::READ_ONLY_SQL_TRANSACTION,
        // Another transaction inserted the same row first.
        SqlState::UNIQUE_VIOLATION,
        // Tasks were changed by hand in between.
        SqlState::DIVISION_BY_ZERO,
        // A pooler has mixed up prepared statements.
        SqlState::INVALID_SQL_STATEMENT_NAME,
        SqlState::DUPLICATE_PSTATEMENT,
    ]
    .contains(code)
}

/// By class and code, never by the message:
/// <https://www.postgresql.org/docs/current/errcodes-appendix.html>.
fn kind_of(code: &SqlState) -> StateErrorKind {
    match code.code() {
        "3D000" => StateErrorKind::NotFound,
        "42501" => StateErrorKind::Denied,
        "53100" => StateErrorKind::Full,
        "XX001" | "XX002" => StateErrorKind::Damaged,
        "22021" | "22P05" => StateErrorKind::Invalid,
        // A replica, a full disk, rows that somebody changes by hand.
        "22012" | "25006" | "25P03" | "25P04" | "55P03" => StateErrorKind::Unreachable,
        code => match code.get(..2).unwrap_or_default() {
            "28" => StateErrorKind::Denied,
            "42" => StateErrorKind::Foreign,
            "08" | "40" | "53" | "57" | "58" | "3F" => StateErrorKind::Unreachable,
            _ => StateErrorKind::Unsupported,
        },
    }
}
