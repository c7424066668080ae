//! Rate limits and stored tasks of the interval queue in an SQLite database.
//!
//! [`SqliteState`] is a backend of rate limits (see
//! [`SharedState`](interval_queue_contract::SharedState)). Use it for the processes of one host
//! that already have an SQLite database, or to read queues with SQL. One database may hold many
//! queues, next to the tables of the application. [`SqliteTasks`] stores tasks that outlive their
//! processes (see [`TaskStore`](interval_queue_task_contract::TaskStore)), in the same database or
//! another one.
//!
//! # How a command is carried out
//!
//! `BEGIN IMMEDIATE`, read the record, read the host's clock, apply the rules, store the record,
//! `COMMIT`. A [`Read`](interval_queue_contract::Command::Read) is one `SELECT` on a new
//! connection: it creates nothing and waits for no writer. Commands run on tokio's threads for
//! blocking work. A command that has begun is completed, even if its future is dropped.
//!
//! A process that finds the database locked retries after 50 µs, then after longer pauses, of up to
//! an eighth of the wait so far but at most 10 ms, until the
//! [`lock_timeout`](Builder::lock_timeout) has passed. The error then states that nothing was
//! stored.
//!
//! The crate has three modules. [`SqliteStore`] (`store/`) is the database, independent of its
//! contents: its files, connections and migrations. [`SqliteState`] (`pace/`) keeps the record of
//! each queue in a table. [`SqliteTasks`] (`tasks/`) keeps tasks in tables, one row each.
//!
//! ## Stored tasks
//!
//! One thread of a handle runs all waiting commands in one transaction. Each command has a
//! savepoint, so a rejected command is undone alone, and replies are sent after the `COMMIT`. The
//! more commands, the less each costs. A [`Read`](interval_queue_task_contract::Command::Read) uses
//! pooled connections.
//!
//! Processes take turns at a gate: they lock the file `queues.db-gate` from before `BEGIN
//! IMMEDIATE` until after `COMMIT`. SQLite by itself has no fair order: of processes that store all
//! the time, some get far more turns than others. The gate only makes waiting fair. If the file
//! cannot be created, commands run without it. Rate limits do not use it.
//!
//! [Watchers](interval_queue_task_contract::TaskStore::changes) of a queue are notified by their
//! own process immediately. The operating system reports when another process writes to the log;
//! the watcher then reads one number of the queue to find out whether the queue has changed.
//!
//! # Tables
//!
//! ```sql
//! CREATE TABLE interval_queue (name TEXT PRIMARY KEY, record TEXT NOT NULL) STRICT, WITHOUT ROWID;
//! CREATE TABLE interval_queue_schema (only_row INTEGER PRIMARY KEY CHECK (only_row = 1), version INTEGER NOT NULL) STRICT;
//! ```
//!
//! A record is readable JSON; `sqlite3` prints it:
//!
//! ```text
//! $ sqlite3 queues.db "SELECT name, record ->> 'ticket' AS ticket, record ->> 'current' AS current FROM interval_queue"
//! mail|7|5
//! ```
//!
//! Stored tasks have tables of their own. To print the meaning of their columns, run `.schema
//! interval_queue_task%`. States and ids are plain text, instants are microseconds since 1970,
//! structured values are JSON.
//!
//! | table | a row for each |
//! |---|---|
//! | `interval_queue_task` | task, with a short payload and result; a partial index for each lookup |
//! | `interval_queue_task_body` | task with a payload or result of more than 500 bytes |
//! | `interval_queue_task_edge` | edge from an upstream to a downstream |
//! | `interval_queue_task_queue` | queue: its settings and clocks |
//! | `interval_queue_task_worker` | worker that is alive, or died within the hour |
//! | `interval_queue_task_kind`, `_key`, `_schedule` | kind, key with settings, and schedule |
//! | `interval_queue_task_count` | kind and state: the number of tasks, stored together with them; no kind: notifications |
//! | `interval_queue_task_schema` | (one row: the version of these tables) |
//!
//! Use the view `interval_queue_tasks` to read tasks by hand:
//!
//! ```text
//! $ sqlite3 queues.db "SELECT id, kind, state, added, error FROM interval_queue_tasks WHERE queue = 'mail'"
//! 01957b6e-5e1a-7c3e-9a53-0c6e3a1f2b4d|send|failed|2025-03-11 09:12:44|550 no such user
//! ```
//!
//! Reading is always safe. Change tasks only by commands, which also update the counts. After
//! removing rows by hand, run `interval-queue tasks recount`. SQLite rejects unknown states and
//! invalid JSON. A row that still cannot be read is kept unchanged and reported as an error that
//! names the row and the column.
//!
//! Nothing else is changed, neither `user_version` nor `application_id`. The journal is switched to
//! a write-ahead log permanently: in this mode readers and the writer do not wait for each other.
//!
//! # Durability
//!
//! | | [`Durability::Full`] | [`Durability::Relaxed`] |
//! |---|---|---|
//! | a process is killed at any instant | every acknowledged command | every acknowledged command |
//! | the host crashes or loses power | every acknowledged command, on a disk that keeps what it has flushed | the database as it was some commands ago |
//! | a command costs | a write and a flush | a write; a flush every 1,000 pages |
//!
//! If a crash of the host loses commands of a rate limit, little harm is done: all shards of that
//! host have lost their jobs, too, and at most one start comes early. So `Relaxed` is right for
//! most rate limits. `Full` is the default, since databases with an application's own data usually
//! use it, and since lost commands of stored tasks lose tasks or run them again.
//!
//! If the commit of a command fails in the file system, the error is
//! [`TimedOut`](interval_queue_contract::StateErrorKind::TimedOut): the command may be recovered
//! from the log later. All other errors mean that nothing was stored.
//!
//! # The files
//!
//! [`SqliteStore::close`] closes the connections. The last connection of all processes writes the
//! log into the database when it closes, which then is one file. The program closes its connections
//! when it ends. A killed process leaves the log, and the next process that opens the database
//! reads it.
//!
//! The gate of stored tasks, `queues.db-gate`, is empty and is kept. It may be deleted while no
//! process runs. While a process has the database open, and after a crash until a process opens it,
//! there are also `queues.db-wal`, the log, and `queues.db-shm`, its index. They are part of the
//! database: copy the three together, or better, run `sqlite3 queues.db ".backup copy.db"`, and
//! restore the copy with `.restore`. SQLite writes the log into the database every 1,000 pages,
//! some 4 MiB. It cannot do so while an earlier transaction is open, for example in a program that
//! reads for hours; the log then grows, and shrinks afterwards.
//!
//! Before each command the file names are compared with the open files. So a deleted database is
//! created again, and all processes switch to the new one; the queue recovers as from a lost
//! record. A deleted log is detected, too. Its contents are lost, unless only one process had it
//! open, and commands may fail until all processes have detected the loss. If an open database is
//! replaced while the old log still exists, commands fail until the log is removed, since SQLite
//! would mix the two.
//!
//! Open a database by one name. A hard link would have a log of its own, so a file with hard links
//! is rejected. In a container mount the directory, not the file.
//!
//! # Sharing a database with the application
//!
//! Commands and transactions of the application wait for each other. Keep transactions that write
//! shorter than the interval, and set a `busy_timeout` in the application. Jobs are not part of its
//! transactions; stored tasks can be, see [`add_within`](SqliteTasks::add_within) and
//! [`complete_within`](SqliteTasks::complete_within).
//!
//! **One copy of SQLite per process.** When a process closes any descriptor of a file, POSIX
//! releases all locks of the process on that file. One copy of SQLite handles this, but two copies
//! in a process do not know of each other, and the database gets damaged. Crates that link
//! `libsqlite3-sys` share one copy; a plug-in in C or Python with its own copy does not. For the
//! same reason, never read the database file with ordinary file functions in a process that has it
//! open, and open it only after a `fork`.
//!
//! # Network mounts
//!
//! The index of the log is memory that all processes of a database share, which processes on
//! several hosts cannot. On Linux, opening rejects NFS, SMB, AFS, CephFS, Lustre, 9p, GlusterFS and
//! all of FUSE (local file systems cannot be distinguished there). On other systems this is not
//! checked. For several hosts use Redis, PostgreSQL, or a JSON file on a mount with locks.
//! Containers of one host may share a directory, unless each has a kernel of its own.
//!
//! # Permissions
//!
//! The database is created with the rights that the umask leaves; SQLite gives the log and its
//! index the same mode. Every user must be able to write to the three files and to create files in
//! their directory: give the users a common group, a `setgid` directory and umask 002. A database
//! that only its owner may write to is [`Denied`](interval_queue_contract::StateErrorKind::Denied)
//! to other users, and stays unchanged.

mod all_tables;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod pace;
mod store;
mod tasks;

/// The tables of stored tasks, for a store that keeps an index in them. Not part of the public API.
#[doc(hidden)]
pub mod index {
    pub use crate::{
        store::{Fault, Gate},
        tasks::{TASKS, Tables, Writes},
    };
}

pub use pace::SqliteState;
pub use store::{Builder, Durability, SqliteStore};
pub use tasks::SqliteTasks;
