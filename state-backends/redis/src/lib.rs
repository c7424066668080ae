//! Shared state of the interval queue in Redis or Valkey, for shards in any number of processes and hosts.
//!
//! ```no_run
//! # async fn example() -> Result<(), interval_queue_contract::StateError> {
//! use interval_queue_redis::RedisState;
//!
//! let state = RedisState::connect("redis://127.0.0.1").await?;
//! # Ok(())
//! # }
//! ```
//!
//! # How it works
//!
//! Each command is one Lua script, so the server makes it atomic, and its clock is the only one that counts.
//! The scripts (`src/lua/`, one file for each file of [`rules`](interval_queue_contract::rules)) say the same
//! as [`rules::apply`](interval_queue_contract::rules::apply); a test compares both on random sequences of
//! commands.
//!
//! A queue is two keys in one hash slot: a hash of the record and of the shards that have work, and a sorted
//! set that indexes those shards. A command's work grows with the logarithm of the number of shards.
//!
//! The server's time goes into the interpreter, so the scripts are made for it: numbers travel and are stored
//! packed as doubles, the parts of a script are plain code that shares its locals, and each step is five or
//! six commands of the server.
//!
//! # Where the server is
//!
//! | address | feature |
//! |---|---|
//! | `redis://[user:password@]host[:6379][/db]` | |
//! | `rediss://…`, with TLS | `tls` |
//! | `redis+unix:///path/to/socket[?db=N&user=U&pass=P]` | |
//! | `redis+sentinel://[user:password@]host[:26379],host…/master[/db]` | `sentinel` |
//! | `redis+cluster://[user:password@]host[:6379],host…` | `cluster` |
//! | `rediss+sentinel://…`, `rediss+cluster://…` | and `tls` |
//!
//! Characters with a meaning in addresses are percent-encoded in names and passwords. With TLS, the parameter
//! `ca=PATH` names a file of certificates in PEM form to trust instead of those of the system. A sentinel's
//! own credentials are the parameters `sentinel-user` and `sentinel-password`.
//!
//! TLS uses the `rustls` provider that the process installed, or `ring` if it installed none.

mod address;
mod answer;
mod builder;
#[cfg(feature = "cluster")]
mod cluster;
mod dialer;
#[cfg(test)]
mod differential;
mod error;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod keeper;
mod keys;
mod link;
mod numbers;
mod refusal;
mod request;
mod script;
mod state;
mod watch;

pub use builder::Builder;
pub use state::RedisState;
