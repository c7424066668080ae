//! Shared state of the interval queue in PostgreSQL, for shards in any number of processes and hosts.
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
//! between. A watcher hears nothing through it then: shards notice a change by their tick, or pool
//! sessions.
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
//! # What survives what
//!
//! A killed process loses nothing. With [`Durability::Full`] a crash of the server loses nothing either; with
//! [`Durability::Relaxed`], and in a failover to a standby that lags, the last commands may be lost, and shards lift the record
//! again by what they remember. After a restart or failover the next slot is at least an interval away. A server that only ends its
//! sessions and starts over, since one of its processes crashed, is not known to have done so: with `Relaxed` one start may come
//! early then.
//!
//! An application's transaction that stays open keeps every version of a row that came after it, and a command has to pass them:
//! 40,000 commands later one took ten times as long. It is over with the transaction.
//!
//! [`Read`]: interval_queue_contract::Command::Read
//! [`rules::apply`]: interval_queue_contract::rules::apply
// docs.rs says which feature brings what.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod pace;
mod store;

pub use deadpool_postgres;

pub use self::{
    pace::PostgresState,
    store::{Builder, Durability, PostgresStore},
};
