//! What holds the thread of a store before each of its statements.

use std::{
    cell::RefCell,
    sync::{Arc, Mutex, mpsc},
};

use rusqlite::{
    Connection,
    trace::{TraceEvent, TraceEventCodes},
};
use tokio::sync::mpsc::UnboundedSender;

thread_local! {
    static HELD: RefCell<Option<Arc<Hold>>> = RefCell::default();
}

/// What a client is held by.
#[derive(Debug, Default)]
pub(super) struct Hold(Mutex<Option<Line>>);

/// Between a thread that is held and the session that lets it go on.
#[derive(Debug)]
pub(super) struct Line {
    /// What it has come to.
    pub(super) comes: UnboundedSender<String>,
    /// One for each statement. Once nobody is there who could say so, it goes on for good.
    pub(super) go: mpsc::Receiver<()>,
}

impl Hold {
    /// From now on it is held.
    pub(super) fn by(&self, line: Line) {
        *self.0.lock().unwrap() = Some(line);
    }

    /// What this thread runs is held by it.
    pub(super) fn holds_this_thread(self: &Arc<Self>) {
        HELD.with_borrow_mut(|held| *held = Some(self.clone()));
    }

    fn before(&self, sql: &str) {
        let mut line = self.0.lock().unwrap();
        if let Some(held) = &*line
            && (held.comes.send(sql.to_owned()).is_err() || held.go.recv().is_err())
        {
            *line = None;
        }
    }
}

/// A connection whose statements can be held.
pub(crate) fn watched(mut connection: Connection) -> Connection {
    let before = |event: TraceEvent<'_>| {
        if let TraceEvent::Stmt(_, sql) = event {
            HELD.with_borrow(|held| held.iter().for_each(|hold| hold.before(sql)));
        }
    };
    connection.trace_v2(TraceEventCodes::SQLITE_TRACE_STMT, Some(before)).unwrap();
    connection
}
