//! Shared state and stored tasks of the interval queue in PostgreSQL, for any number of processes and hosts.
//!
//! ```no_run
//! # async fn example() -> Result<(), interval_queue_contract::StateError> {
//! use interval_queue_postgres::PostgresState;
//!
//! let state = PostgresState::connect("postgres://pacer:secret@127.0.0.1/app").await?;
//! # Ok(())
//! # }
//! ```
//!
//! # How it works
//!
//! A queue is a row of one table: its name, and its record as JSON. A command is a transaction of two round
//! trips: the first one begins it, locks the row, and reads record and clock; the second stores what
//! [`rules::apply`] made of it, and commits. A [`Read`] takes one, locks nothing and waits for nobody. The
//! server's clock (`clock_timestamp()`, read once the row is locked) is the only one that counts. A row is
//! created when nothing of its queue is locked.
//!
//! The row is locked for one round trip and the flush of the commit, so a queue gets on by one command in
//! that time. A process that is stopped or cut off in between loses its transaction after half the
//! [time-out](Builder::timeout); then the others go on.
//!
//! Statements have no names and settings are local to a transaction, so PgBouncer may pool transactions in
//! between. (Stored tasks prepare statements until they find that a pooler moves a connection.) A watcher
//! hears nothing through it then: shards notice a change by their tick, or pool sessions.
//!
//! # Where the server is
//!
//! `postgres://[user[:password]@]host[:5432][,host…][/database][?parameter=value&…]`, also `postgresql://`.
//! Characters with a meaning in addresses are percent-encoded; a host that is a path, as
//! `%2Fvar%2Frun%2Fpostgresql` or `?host=/var/run/postgresql`, is a socket. The parameters are those of
//! the [`Builder`] (`schema=`, `connections=`, `timeout=`, `durability=`), those of `libpq` that
//! [`tokio_postgres::Config`] knows, and
//!
//! | parameter | meaning | default |
//! |---|---|---|
//! | `sslmode=` | `disable`; `prefer`, `require`: encrypt, trust any certificate; `verify-ca`, `verify-full`: check it, and the name | `prefer`, without the feature `tls` `disable` |
//! | `sslrootcert=PATH` | certificates in PEM form to trust instead of those of the system; `require` then is `verify-ca` | |
//!
//! Several hosts, listed before the `/`, and `target_session_attrs=read-write` find the server that was
//! promoted in a failover. Each host is given its share of the [time-out](Builder::timeout) before the next
//! one is tried.
//!
//! # What is stored
//!
//! Two tables in the schema `interval_queue`, or [another](Builder::schema): `interval_queue` (`name`,
//! `record`) and `interval_queue_schema` (their version). They are created, in one transaction, by the first
//! command that stores:
//!
//! ```sql
//! CREATE SCHEMA interval_queue;
//! SET LOCAL search_path TO interval_queue;
#![doc = include_str!("pace/migrations/1.sql")]
//! ```
//!
//! A user without that right needs these, once somebody else has made the tables:
//!
//! ```sql
//! GRANT USAGE ON SCHEMA interval_queue TO pacer;
//! GRANT SELECT ON interval_queue.interval_queue_schema TO pacer;
//! GRANT SELECT, INSERT, UPDATE, DELETE ON interval_queue.interval_queue TO pacer;
//! ```
//!
//! # Stored tasks
//!
//! [`PostgresTasks`] keeps tasks in tables `interval_queue_task…` of the same schema, one row each, made by the first
//! task. The view `interval_queue_tasks` is for people:
//!
//! ```sql
//! SELECT id, kind, state, added, error FROM interval_queue.interval_queue_tasks WHERE queue = 'mail';
//! ```
//!
//! Look as much as you like, and change tasks by commands: counts are kept with them. After rows were removed by
//! hand, `interval-queue tasks recount` counts again. A row that cannot be read is an error that names it and its
//! column, and is left as it is. A zero byte in an error text becomes `\u{fffd}`, since the server's texts have
//! none.
//!
//! A usual step of a worker is a transaction of two round trips, and steps go beside one another: each locks what it
//! completes and leases, and skips what others have locked. What concerns others (keys, limits, upstreams, verbs, and a
//! sweep every 100 ms) is done by one transaction of a queue at a time, under an advisory lock. An `add` takes no lock,
//! so an open transaction of the application with tasks in it holds nobody up, once its queue is there.
//!
//! # Within your transactions
//!
//! [`PostgresTasks::add_within`] adds tasks in a transaction of the application: they are there once it commits, and
//! never were if it does not. From any language, call the SQL function `add_task(queue, kind, payload, options)`. It
//! returns the id of the task, or of the task that has its unique name:
//!
//! ```sql
//! BEGIN;
//! INSERT INTO orders (number) VALUES (7);
//! SELECT interval_queue.add_task('mail', 'send', '{"order": 7}', '{"delay": "5 min", "key": "customer-7"}');
//! COMMIT;
//! ```
//!
//! - `queue` is made if it does not exist; workers wait for the transaction that makes it.
//! - `kind` is `'default'` and `payload` is `null` unless they are given.
//! - `payload` is JSON as `json`, `jsonb` or text. `json` and text keep their text byte for byte. **A `jsonb` payload does
//!   not**: PostgreSQL sorts its keys, drops repeated ones and changes the white space before the function gets it.
//! - `options` is an object as `json`, `jsonb` or text. Its names are those of the fields of `interval-queue add --flow`:
//!
//! | option | JSON | meaning | default |
//! |---|---|---|---|
//! | `id` | UUID | a call with an id that exists adds nothing | one of version 7 |
//! | `priority`, `weight` | number | as in [`NewTask`](interval_queue_task_contract::NewTask) | 0, 1 |
//! | `key`, `ordered` | text, boolean | what must not run at once, or runs in the order of adding | none, `false` |
//! | `delay` | duration | do not start before it has passed | none |
//! | `not_before` | instant | do not start before; not with `delay` | none |
//! | `deadline` | duration or instant | started by then, or it has failed | none |
//! | `unique`, `unique_until` | text | a name of one live task, until it has `"ended"` or is `"leased"` | none, `"ended"` |
//! | `on_conflict` | text | if another task has the name: `"keep"` that one, or `"refuse"` | `"keep"` |
//! | `tags` | list of texts | words to find it by | none |
//! | `after` | id, object, or a list | upstreams; an object has `name` (the id), `as` and `on_failure` | none |
//! | `max_attempts`, `max_retries` | number | what becomes of failures | as the queue says |
//! | `backoff`, `max_backoff`, `timeout` | duration | the same | as the queue says |
//! | `notify` | boolean | wake watchers by the commit; a notification makes commits wait for one another | `true` |
//!
//! A duration is a text that PostgreSQL reads as an `interval`, such as `"5 min"` or `"1h30m"`; an instant is one that it
//! reads as a `timestamptz`. `null` is an option that is not given. An unknown option, one of another type or out of
//! bounds is an error (22023) that names it and what would be right. To replace the task that has a unique name, add by a
//! program.
//!
//! `complete_task(queue, id, token, result)` ends a run with its result, given like a payload, and
//! `fail_task(queue, id, token, error)` ends it for good. `token` is that of the run; a command that
//! `interval-queue work` runs has it in `INTERVAL_QUEUE_TASK_TOKEN`. **The commit fails if the token is not in force.**
//!
//! The schema is made by the first command that stores something. To make it before, run
//! `interval-queue migrate --store postgres://…`, or let `migrate --print` print the SQL; in Rust, call
//! [`PostgresStore::make_tables`].
//!
//! A user who may not make tables needs, for tasks, these once somebody else has made them:
//!
//! ```sql
//! GRANT USAGE ON SCHEMA interval_queue TO pacer;
//! GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA interval_queue TO pacer;
//! ```
//!
//! # What survives what
//!
//! A killed process loses nothing. With [`Durability::Full`] a crash of the server loses nothing either; with
//! [`Durability::Relaxed`], and in a failover to a standby that lags, the last commands may be lost, and shards lift
//! the record again by what they remember. After a restart or failover the next slot is at least an interval away. A
//! server that only ends its sessions and starts over, since one of its processes crashed, is not known to have done
//! so: with `Relaxed` one start may come early then.
//!
//! An application's transaction that stays open keeps every version of a row that came after it, and a command has to
//! pass them: 40,000 commands later one took ten times as long. It is over with the transaction.
//!
//! [`Read`]: interval_queue_contract::Command::Read
//! [`rules::apply`]: interval_queue_contract::rules::apply
// docs.rs says which feature brings what.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod all_tables;
mod pace;
mod store;
mod tasks;

pub use deadpool_postgres;

pub use self::{
    pace::PostgresState,
    store::{Builder, Durability, PostgresStore},
    tasks::PostgresTasks,
};
