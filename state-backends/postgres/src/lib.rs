//! Rate limits and stored tasks of the interval queue in PostgreSQL, for any number of processes
//! and hosts.
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
//! A queue is a row of one table: its name, and its record as JSON. A command is a transaction of
//! two round trips. The first begins the transaction, locks the row, and reads the record and the
//! clock. The second stores the result of [`rules::apply`] and commits. A [`Read`] takes one round
//! trip and no lock. The only clock is the server's (`clock_timestamp()`, read after the row is
//! locked). The row of a new queue is inserted; of concurrent inserts one succeeds and the others
//! retry.
//!
//! The row is locked for one round trip and the flush of the commit, so a queue runs one command in
//! that time. If a process stops or loses its connection in between, the server ends its
//! transaction after half the [time-out](Builder::timeout), and the other processes continue.
//!
//! Statements have no names and settings are local to a transaction, so PgBouncer may pool
//! transactions. (Stored tasks prepare statements until they detect that a pooler moves a
//! connection.) Notifications do not pass such a pooler: shards then notice changes when they poll.
//! To receive notifications, pool sessions.
//!
//! # URLs
//!
//! `postgres://[user[:password]@]host[:5432][,host…][/database][?parameter=value&…]`, also
//! `postgresql://`. Percent-encode characters with a meaning in URLs. A host that is a path, as
//! `%2Fvar%2Frun%2Fpostgresql` or `?host=/var/run/postgresql`, is a socket. The parameters are the
//! options of the [`Builder`] (`schema=`, `connections=`, `timeout=`, `durability=`), the `libpq`
//! parameters that [`tokio_postgres::Config`] supports, and:
//!
//! | parameter | meaning | default |
//! |---|---|---|
//! | `sslmode=` | `disable`; `prefer`, `require`: encrypt, trust any certificate; `verify-ca`, `verify-full`: check it, and the name | `prefer`, without the feature `tls` `disable` |
//! | `sslrootcert=PATH` | file with trusted certificates in PEM form, instead of the certificates of the system; turns `require` into `verify-ca` | |
//!
//! To find the promoted server after a failover, list several hosts before the `/` and set
//! `target_session_attrs=read-write`. Each host gets a share of the [time-out](Builder::timeout).
//!
//! # Tables
//!
//! Two tables in the schema `interval_queue`, or [another](Builder::schema): `interval_queue`
//! (`name`, `record`) and `interval_queue_schema` (their version). The first command that stores
//! something creates them in one transaction:
//!
//! ```sql
//! CREATE SCHEMA interval_queue;
//! SET LOCAL search_path TO interval_queue;
#![doc = include_str!("pace/migrations/1.sql")]
//! ```
//!
//! If another user has created the tables, a user without that right needs these rights:
//!
//! ```sql
//! GRANT USAGE ON SCHEMA interval_queue TO pacer;
//! GRANT SELECT ON interval_queue.interval_queue_schema TO pacer;
//! GRANT SELECT, INSERT, UPDATE, DELETE ON interval_queue.interval_queue TO pacer;
//! ```
//!
//! # Stored tasks
//!
//! [`PostgresTasks`] keeps tasks in tables `interval_queue_task…` of the same schema, one row each.
//! The first task creates them. Use the view `interval_queue_tasks` to read tasks by hand:
//!
//! ```sql
//! SELECT id, kind, state, added, error FROM interval_queue.interval_queue_tasks WHERE queue = 'mail';
//! ```
//!
//! Reading is always safe. Change tasks only by commands, which also update the counts. After
//! removing rows by hand, run `interval-queue tasks recount`. A row that cannot be read is kept
//! unchanged and reported as an error that names the row and the column. A zero byte in an error
//! text becomes `\u{fffd}`, since PostgreSQL texts cannot contain it.
//!
//! A usual poll of a worker is a transaction of two round trips. Polls run concurrently: each locks
//! the tasks that it completes and leases, and skips tasks that are locked by others. Work on
//! shared rows (keys, limits, upstreams, commands of an operator, and maintenance every 100 ms)
//! runs in one transaction of the queue at a time, under an exclusive advisory lock. An `add` takes
//! no lock, so an open transaction of the application that adds tasks blocks no worker, provided
//! that the queue exists.
//!
//! # Within your transactions
//!
//! [`PostgresTasks::add_within`] adds tasks in a transaction of the application, on tokio_postgres,
//! deadpool_postgres or, with the feature `sqlx`, sqlx. They are stored if it commits, and only then.
//! From any language, call the SQL function `add_task(queue, kind,
//! payload, options)`. It returns the id of the task, or of the task that has its unique name:
//!
//! ```sql
//! BEGIN;
//! INSERT INTO orders (number) VALUES (7);
//! SELECT interval_queue.add_task('mail', 'send', '{"order": 7}', '{"delay": "5 min", "key": "customer-7"}');
//! COMMIT;
//! ```
//!
//! - `queue` is created if it does not exist. Workers wait for the transaction that creates it.
//! - `kind` defaults to `'default'` and `payload` to `null`.
//! - `payload` is JSON as `json`, `jsonb` or text. `json` and text are stored byte for byte. **A
//!   `jsonb` payload is not**: PostgreSQL sorts its keys, drops repeated ones and changes the white
//!   space before it calls the function.
//! - `options` is an object as `json`, `jsonb` or text. Its names are the fields of `interval-queue
//!   add --flow`:
//!
//! | option | JSON | meaning | default |
//! |---|---|---|---|
//! | `id` | UUID | id of the task; a repeated call with the same id adds nothing | a new UUID of version 7 |
//! | `priority`, `weight` | number | as in [`NewTask`](interval_queue_task_contract::NewTask) | 0, 1 |
//! | `key`, `ordered` | text, boolean | tasks of a key run one at a time; if ordered, in the order of adding | none, `false` |
//! | `delay` | duration | earliest start, from now | none |
//! | `not_before` | instant | earliest start; not with `delay` | none |
//! | `deadline` | duration or instant | latest start; later the task fails | none |
//! | `unique`, `unique_until` | text | name of at most one live task, until it has `"ended"` or is `"leased"` | none, `"ended"` |
//! | `on_conflict` | text | if another task has the name: `"keep"` that task, or `"refuse"` | `"keep"` |
//! | `tags` | list of texts | labels for filters | none |
//! | `after` | id, object, or a list | upstreams; an object has `name` (the id), `as` and `on_failure` | none |
//! | `max_attempts`, `max_retries` | number | limits of the retries | of the queue |
//! | `backoff`, `max_backoff`, `timeout` | duration | pauses before retries, time-out of a run | of the queue |
//! | `notify` | boolean | notify workers with the commit; notifications make commits wait for one another | `true` |
//!
//! A duration is a text that PostgreSQL reads as an `interval`, such as `"5 min"` or `"1h30m"`. An
//! instant is a text that it reads as a `timestamptz`. `null` means that the option is not set. An
//! unknown option, or a value of the wrong type or out of range, raises an error (22023) that names
//! the option and the expected value. `add_task` cannot replace the task that has a unique name;
//! use the Rust API or the program.
//!
//! `complete_task(queue, id, token, result)` completes a run with its result, in the form of a
//! payload. `fail_task(queue, id, token, error)` fails it for good. `token` is the token of the
//! run. A command that `interval-queue work` runs finds it in `INTERVAL_QUEUE_TASK_TOKEN`. **The
//! commit fails if the token is no longer valid.**
//!
//! The first command that stores something creates the schema. To create it earlier, run
//! `interval-queue migrate --store postgres://…`, or print the SQL with `migrate --print`. In Rust,
//! call [`PostgresStore::make_tables`]. With psql alone, run `src/schema.sql`.
//!
//! If another user has created the tables, a user of stored tasks needs these rights:
//!
//! ```sql
//! GRANT USAGE ON SCHEMA interval_queue TO pacer;
//! GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA interval_queue TO pacer;
//! ```
//!
//! A user who only calls `add_task`, `complete_task` and `fail_task` needs no right on a
//! table. The functions have the rights of their owner:
//!
//! ```sql
//! GRANT USAGE ON SCHEMA interval_queue TO app;
//! GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA interval_queue TO app;
//! ```
//!
//! # Durability
//!
//! A killed process loses nothing. With [`Durability::Full`] a crash of the server loses nothing
//! either. With [`Durability::Relaxed`], or in a failover to a standby that lags, the last commands
//! may be lost; shards then restore the record from what they remember. After a restart or failover
//! the next slot is at least an interval away. If a process of the server crashes, the server ends
//! all sessions without a visible restart: with `Relaxed` one start may come early then.
//!
//! An open transaction of the application keeps every later version of a row, and commands must
//! skip these versions: after 40,000 commands, a command took ten times as long. The end of the
//! transaction ends the delay.
//!
//! [`Read`]: interval_queue_contract::Command::Read
//! [`rules::apply`]: interval_queue_contract::rules::apply
// Shows on docs.rs which feature an item needs.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod all_tables;
mod pace;
mod store;
mod tasks;

pub use deadpool_postgres;

pub use self::{
    pace::PostgresState,
    store::{Builder, Durability, PostgresStore},
    tasks::{ApplicationTransaction, PostgresTasks},
};
