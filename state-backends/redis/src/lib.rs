//! Shared state and stored tasks of the interval queue in Redis or Valkey, for any number of processes and hosts.
//!
//! ```no_run
//! # async fn example() -> Result<(), interval_queue_contract::StateError> {
//! use interval_queue_redis::{RedisState, RedisStore, RedisTasks};
//!
//! let store = RedisStore::builder("redis://127.0.0.1")?.connect().await?;
//! let state = RedisState::on(&store);
//! let tasks = RedisTasks::on(&store);
//! // With default settings:
//! let state = RedisState::connect("redis://127.0.0.1").await?;
//! # Ok(())
//! # }
//! ```
//!
//! # How it works
//!
//! Each command is one Lua script, so the server makes it atomic, and its clock is the only one that counts.
//! The script (`src/pace/rules.lua`) says the same as
//! [`rules::apply`](interval_queue_contract::rules::apply); a test compares both on random sequences of
//! commands.
//!
//! A queue is two keys in one hash slot: a hash of the record and of the shards that have work, and a sorted
//! set that indexes those shards. A command's work grows with the logarithm of the number of shards.
//!
//! The server's time goes into the interpreter, so the script is made for it: numbers travel and are stored
//! packed as doubles, its parts are plain code that shares its locals, and each step is five or six commands
//! of the server.
//!
//! # Stored tasks
//!
//! A command on [tasks](RedisTasks) is one call of a function of the server, which repeats the rules of
//! `interval-queue-task-contract` file by file (`src/tasks/lua`). A script would have to make all its
//! closures with each command, which would cost more than most commands do. It collects what it writes and
//! writes it at the end, so that a command that is refused has written nothing. The README has the keys, and
//! what memory, persistence and failover cost.
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
//! own credentials are the parameters `sentinel-user` and `sentinel-password`. `prefix`, `timeout` and
//! `idle_expiry` are those of the [`Builder`], durations with a unit, as in `5s`.
//!
//! TLS uses the `rustls` provider that the process installed, or `ring` if it installed none.
#![cfg_attr(not(feature = "fuzzing"), allow(unreachable_pub, reason = "what tests reach into"))]
// docs.rs says which feature brings what.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod pace;
mod store;
mod tasks;

pub use self::{
    pace::RedisState,
    store::{Builder, RedisStore},
    tasks::RedisTasks,
};

/// What the fuzz targets and the differential test reach into. No part of the public API.
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod internals {
    pub use crate::{
        pace::{answer::decode, keys::Keys, request::arguments},
        store::{
            address::{Address, Credentials, Endpoint, Host},
            error::of_command,
            scan::{masters_in, page_in},
        },
        tasks::task_answer::reply as task_reply,
    };
}
