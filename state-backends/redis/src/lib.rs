//! Shared state and stored tasks of the interval queue in Redis or Valkey, for any number of
//! processes and hosts.
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
//! Each command is one Lua script. The server makes it atomic, and only the server's clock counts.
//! The script (`src/pace/rules.lua`) implements
//! [`rules::apply`](interval_queue_contract::rules::apply); a test compares both on random
//! sequences of commands.
//!
//! A queue is two keys in one hash slot: a hash of the record and of the shards that have work, and
//! a sorted set that indexes those shards. The work of a command grows with the logarithm of the
//! number of shards.
//!
//! The server spends its time in the interpreter, so the script is written for speed: numbers are
//! sent and stored packed as doubles, its parts are plain code that shares its locals, and each
//! step is five or six commands of the server.
//!
//! # Stored tasks
//!
//! A command on [tasks](RedisTasks) is one call of a function of the server, which implements the
//! rules of `interval-queue-task-contract` file by file (`src/tasks/lua`). A script would create
//! all its closures with each command, which costs more than most commands. The function collects
//! its writes and sends them at the end, so a refused command has written nothing. The README has
//! the keys, and the cost of memory, persistence and failover.
//!
//! # Addresses
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
//! Percent-encode characters with a meaning in addresses in names and passwords. With TLS, the
//! parameter `ca=PATH` names a file of certificates in PEM form to trust instead of the system's.
//! The parameters `sentinel-user` and `sentinel-password` are a sentinel's own credentials.
//! `prefix`, `timeout` and `idle_expiry` are options of the [`Builder`]; durations have a unit, as
//! in `5s`.
//!
//! TLS uses the `rustls` provider that the process installed, or `ring` if it installed none.
#![cfg_attr(not(feature = "fuzzing"), allow(unreachable_pub, reason = "what tests reach into"))]
// docs.rs shows the feature of each item.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod pace;
mod store;
mod tasks;

pub use self::{
    pace::RedisState,
    store::{Builder, RedisStore},
    tasks::RedisTasks,
};

/// Internals for the fuzz targets and the differential test. Not public API.
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
