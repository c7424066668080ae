//! Prepared statements, and the check that the server still has them.
//!
//! A pooler may give each transaction another server process, in which a name stands for another
//! statement or for none. So a connection marks its process with a setting of the session, and each
//! transaction checks the mark before it writes. Once a mark is missing, the store stops preparing
//! statements.

use std::{
    collections::HashMap,
    hash::{BuildHasher, RandomState},
    process,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

use deadpool_postgres::{ClientWrapper, StatementCache};
use tokio_postgres::{Error, Statement, error::SqlState, types::Type};

use super::sql::Query;

/// A statement is prepared after this number of uses on a connection.
const MIN_USES: u32 = 2;
/// Per connection: the server keeps a plan of each statement.
const MAX_STATEMENTS: usize = 200;

/// The server process, and the mark of its session. Never prepared itself.
pub(super) const SESSION_QUERY: &str = "SELECT pg_catalog.pg_backend_pid(), \
    coalesce(pg_catalog.current_setting('interval_queue.session', true), '')";

#[derive(Default)]
pub(super) struct Sessions {
    are_mixed: AtomicBool,
    by_cache: Mutex<HashMap<usize, Arc<Session>>>,
}

impl Sessions {
    /// `None`: statements are not prepared.
    pub(super) fn of(&self, client: &ClientWrapper) -> Option<Arc<Session>> {
        if self.are_mixed() {
            return None;
        }
        let mut by_cache = self.by_cache.lock().unwrap_or_else(PoisonError::into_inner);
        let address = Arc::as_ptr(&client.statement_cache) as usize;
        if let Some(session) = by_cache.get(&address).filter(|session| session.client.strong_count() > 0) {
            return Some(session.clone());
        }
        by_cache.retain(|_, session| session.client.strong_count() > 0);
        let session = Arc::new(Session::new(&client.statement_cache));
        drop(by_cache.insert(address, session.clone()));
        Some(session)
    }

    pub(super) fn are_mixed(&self) -> bool {
        self.are_mixed.load(Ordering::Relaxed)
    }

    pub(super) fn mix(&self) {
        if !self.are_mixed.swap(true, Ordering::Relaxed) {
            tracing::info!("a pooler moves connections to postgres: statements are not prepared from now on");
        }
    }
}

/// A prepared statement is missing, or its name taken.
pub(super) fn is_mixed(error: &Error) -> bool {
    [SqlState::INVALID_SQL_STATEMENT_NAME, SqlState::DUPLICATE_PSTATEMENT]
        .iter()
        .any(|code| error.code() == Some(code))
}

/// Outlives the connection: dropping a statement earlier would close it by its name, in whichever
/// process the pooler sends that to.
pub(super) struct Session {
    client: Weak<StatementCache>,
    mark: String,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The process that has the mark.
    process: Option<i32>,
    statements: HashMap<String, Use>,
}

enum Use {
    Counted(u32, Vec<Type>),
    Prepared(Statement),
}

impl Session {
    fn new(client: &Arc<StatementCache>) -> Self {
        let random = RandomState::new();
        let mark = format!("{:016x}{:016x}", random.hash_one(process::id()), random.hash_one("session"));
        Self { client: Arc::downgrade(client), mark, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_marked(&self) -> bool {
        self.state().process.is_some()
    }

    /// Always true before the first mark.
    pub(super) fn is_at(&self, process: i32, mark: &str) -> bool {
        self.state().process.is_none_or(|marked| marked == process && self.mark == mark)
    }

    /// The mark is valid after the commit.
    pub(super) fn marking(&self) -> Query {
        Query::new("SELECT set_config('interval_queue.session', $1, false)")
            .with(self.mark.clone(), Type::TEXT)
    }

    pub(super) fn mark(&self, process: i32) {
        self.state().process = Some(process);
    }

    /// Counts the use if there is no prepared statement.
    pub(super) fn statement(&self, query: &Query) -> Option<Statement> {
        let statements = &mut self.state().statements;
        let count = statements.len();
        match statements.get_mut(query.sql.as_ref()) {
            Some(Use::Prepared(statement)) => return Some(statement.clone()),
            Some(Use::Counted(times, _)) => *times = times.saturating_add(1),
            None if count < MAX_STATEMENTS => {
                drop(statements.insert(query.sql.to_string(), Use::Counted(1, query.kinds())));
            }
            None => {}
        }
        None
    }

    /// Empty until the process is marked. If preparing fails, uses are counted again.
    pub(super) fn due(&self) -> Vec<(String, Vec<Type>)> {
        let mut state = self.state();
        if state.process.is_none() {
            return Vec::new();
        }
        let mut due = Vec::new();
        for (sql, statement) in &mut state.statements {
            if let Use::Counted(times, kinds) = statement
                && *times >= MIN_USES
            {
                *times = 0;
                due.push((sql.clone(), kinds.clone()));
            }
        }
        due
    }

    pub(super) fn keep(&self, sql: String, statement: Statement) {
        drop(self.state().statements.insert(sql, Use::Prepared(statement)));
    }
}
