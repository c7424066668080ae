//! Shared state and stored tasks of the interval queue in an SQLite database.
//!
//! [`SqliteState`] is a state backend (see [`SharedState`](interval_queue_contract::SharedState)) for the
//! processes of one host that have an SQLite database already, or want to look at their queues with SQL. One
//! database may hold many queues, beside the tables of the application. [`SqliteTasks`] stores tasks that outlive
//! their processes (see [`TaskStore`](interval_queue_task_contract::TaskStore)), in the same database or another one.
//!
//! # How a command is carried out
//!
//! `BEGIN IMMEDIATE`, read the record, read the host's clock, apply the rules, store the record, `COMMIT`. A
//! [`Read`](interval_queue_contract::Command::Read) is one `SELECT` on a new connection: it creates nothing
//! and waits for nobody who writes. All of it runs on tokio's threads for blocking work, and a command that
//! was begun is carried through, whether or not somebody still waits for its reply.
//!
//! A process that finds the database taken looks again after 50 µs, then after longer pauses, of up to an eighth of the
//! wait so far but no more than 10 ms, until the [`lock_timeout`](Builder::lock_timeout) is over. The error
//! says then that nothing was stored.
//!
//! Three rooms: [`SqliteStore`] (`store/`) is the database, whatever is kept in it: which files there are and
//! who may make them, the connection that is kept, how tables are made. [`SqliteState`] (`pace/`) is the
//! record of each queue in a table. [`SqliteTasks`] (`tasks/`) is tasks in tables, one row each.
//!
//! ## Stored tasks
//!
//! One thread of a handle carries out all commands that wait, in one transaction: each under a savepoint, so that one
//! that is refused is undone alone, and each answered after the `COMMIT`. The more there are, the less each costs. A
//! [`Read`](interval_queue_task_contract::Command::Read) goes by connections that are kept for looks.
//!
//! Processes pass a gate one at a time: they lock the file `queues.db-gate` from before `BEGIN IMMEDIATE` until after
//! `COMMIT`. SQLite by itself has no line: of processes that store all the time some get far more than others. The gate
//! only makes waiting fair. Where that file cannot be made, commands do without; a pace alone does not need it.
//!
//! Those who [watch](interval_queue_task_contract::TaskStore::changes) a queue are told by their own process at once;
//! of other processes the operating system tells that the log was written to, and a look at one number of the queue
//! tells whether that concerns them.
//!
//! # What is stored
//!
//! ```sql
//! CREATE TABLE interval_queue (name TEXT PRIMARY KEY, record TEXT NOT NULL) STRICT, WITHOUT ROWID;
//! CREATE TABLE interval_queue_schema (only_row INTEGER PRIMARY KEY CHECK (only_row = 1), version INTEGER NOT NULL) STRICT;
//! ```
//!
//! A record is JSON that explains itself; `sqlite3` shows it:
//!
//! ```text
//! $ sqlite3 queues.db "SELECT name, record ->> 'ticket' AS ticket, record ->> 'current' AS current FROM interval_queue"
//! mail|7|5
//! ```
//!
//! Tasks have tables of their own, which tell what their columns mean in `.schema interval_queue_task%`: states and ids
//! are plain text, instants are microseconds since 1970, what is structured is JSON.
//!
//! | table | a row for each |
//! |---|---|
//! | `interval_queue_task` | task, with a short payload and result; a partial index for each look of the rules |
//! | `interval_queue_task_body` | task whose payload or result is longer than 500 bytes: those |
//! | `interval_queue_task_edge` | upstream of a task |
//! | `interval_queue_task_queue` | queue: its settings and clocks |
//! | `interval_queue_task_worker` | worker that lives, or died within the hour |
//! | `interval_queue_task_kind`, `_key`, `_schedule` | kind, key of which something is said, and schedule |
//! | `interval_queue_task_count` | kind and state: how many there are, written with what it counts |
//! | `interval_queue_task_schema` | (one row: the version of these tables) |
//!
//! The view `interval_queue_tasks` is for people:
//!
//! ```text
//! $ sqlite3 queues.db "SELECT id, kind, state, added, error FROM interval_queue_tasks WHERE queue = 'mail'"
//! 01957b6e-5e1a-7c3e-9a53-0c6e3a1f2b4d|send|failed|2025-03-11 09:12:44|550 no such user
//! ```
//!
//! Look as much as you like, and change tasks by commands: counts are kept with them. After rows were removed by
//! hand, `interval-queue tasks recount` counts again. SQLite refuses a state that there is not, and what is no
//! JSON. A row that cannot be read all the same is an error that names it and its column, and is left as it is.
//!
//! Nothing else is touched, neither `user_version` nor `application_id`. The journal becomes a write-ahead
//! log, for good: that is how those who look and the one who writes do not wait for each other.
//!
//! # What survives what
//!
//! | | [`Durability::Full`] | [`Durability::Relaxed`] |
//! |---|---|---|
//! | a process is killed at any instant | every acknowledged command | every acknowledged command |
//! | the host crashes or loses power | every acknowledged command, on a disk that keeps what it has flushed | the database as it was some commands ago |
//! | a command costs | a write and a flush | a write; a flush every 1,000 pages |
//!
//! Commands of a pace that a crash of the host takes back cost little: all shards of that host have lost their jobs,
//! too, and at most one start comes early. So `Relaxed` is right for most queues; `Full` is the default since
//! a database of one's own data is usually kept that way, and since tasks that were taken back are lost, or run again.
//!
//! A command whose commit fails in the file system is
//! [`TimedOut`](interval_queue_contract::StateErrorKind::TimedOut): it may be found in the log later. Every
//! other error means that nothing was stored.
//!
//! # The files
//!
//! [`SqliteStore::close`] closes the connections. The last one that is closed, of all processes, writes the log into the
//! database, which then is one file. The program closes them when it ends. A process that is killed leaves the log, and
//! the next one that opens the database reads it.
//!
//! The gate of stored tasks, `queues.db-gate`, is empty and stays; it may be deleted while nobody runs. Beside
//! `queues.db` are `queues.db-wal`, the log, and `queues.db-shm`, its index, while somebody has the database open, and
//! after a crash until somebody opens it. They belong to it: copy the three together, or better
//! `sqlite3 queues.db ".backup copy.db"`, and bring a copy back with `.restore`. SQLite writes the log into the
//! database every 1,000 pages, some 4 MiB. It cannot while a transaction that began before is open, in a program that
//! looks for hours, say; the log grows meanwhile and shrinks afterwards.
//!
//! Before each command the names are compared with the files that are open. So a database that was deleted is
//! made again, and all go over to the new one; the queue heals as if its record had been lost. A log that was
//! deleted is noticed, too: what it held is lost, unless only one process had it open, and commands may fail
//! until all of them have noticed. If another database is put in the place of an open one while the old log
//! still lies beside it, that is an error until the log is removed, since SQLite would mix the two.
//!
//! Open a database by one name: a hard link would have a log of its own, so a file that has one is refused. In
//! a container mount the directory, not the file.
//!
//! # Sharing a database with the application
//!
//! Commands wait for the application's transactions and it waits for theirs, so keep transactions that write
//! shorter than the interval, and set a `busy_timeout` in the application. Jobs are not part of its
//! transactions; tasks can be, see [`add_within`](SqliteTasks::add_within) and
//! [`complete_within`](SqliteTasks::complete_within).
//!
//! **One copy of SQLite a process.** POSIX takes the locks of a whole process away when it closes any
//! descriptor of the file. SQLite knows how to live with that, two copies of it in one process do not know of
//! each other, and the database gets damaged. Crates that link `libsqlite3-sys` share the one copy; a plug-in
//! in C or Python with its own does not. For the same reason never read the database's file with ordinary
//! file functions in a process that has it open, and open it after a `fork`.
//!
//! # Network mounts
//!
//! The index of the log is memory that all processes of a database share, which those of several hosts
//! cannot. Opening refuses NFS, SMB, AFS, CephFS, Lustre, 9p, GlusterFS and everything else behind FUSE
//! (nothing tells the local ones apart), on Linux. On other systems it is up to you. For several hosts take
//! Redis or PostgreSQL, or a JSON file on a mount with locks. Containers of one host may share a directory,
//! unless each has a kernel of its own.
//!
//! # Permissions
//!
//! The database is created with the rights that the umask leaves; SQLite gives the log and its index the same mode.
//! Every user must be able to write to the three and to create files in their directory: give the users a common group,
//! a `setgid` directory and umask 002. A database that only its owner may write to is
//! [`Denied`](interval_queue_contract::StateErrorKind::Denied) to other users, and stays as it is.

mod all_tables;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod pace;
mod store;
mod tasks;

/// The tables of tasks and what belongs to them, for a store that keeps an index in them. Not for anybody else.
#[doc(hidden)]
pub mod index {
    pub use crate::{
        store::{Fault, Gate},
        tasks::{TASKS, Tables, Updates},
    };
}

pub use pace::SqliteState;
pub use store::{Builder, Durability, SqliteStore};
pub use tasks::SqliteTasks;
