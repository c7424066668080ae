//! The contract between stored tasks and their stores: rows, commands and every rule.
//!
//! The rules are pure functions over the rows that a store finds: [`rules::apply`]. A store
//! implements [`Rows`] and [`TaskStore`] and adds no rule. Applications use the crate
//! `interval-queue-tasks`; this one is for authors of stores.
//!
//! # Words
//!
//! | word | meaning |
//! |---|---|
//! | task | stored work that outlives its process: id, kind, payload, state, result |
//! | worker | one start of a process: random id, rising sequence, one lease for all its tasks |
//! | attempt | rises with every lease; with the incarnation it is the fencing [`Token`] |
//! | gate | a task passes edges (upstreams), time (`not_before`) and key, in this order |
//! | key | at most `key_limit` tasks of one key are ready or leased at a time |
//! | due | `max(added, not_before) − priority × ageing`, up to 2^53 − 1; lower is more urgent |
//! | lease clock | never goes back; limits how much a silence of all workers counts |
//!
//! # Constraints
//!
//! This crate does no I/O, reads no clock, spawns nothing and draws no random number. The store
//! passes the time as `now`.

mod command;
mod counts;
mod cursor;
mod edge;
mod event;
pub mod field;
mod free_capacity;
mod id;
mod import_types;
pub mod index;
mod json;
pub mod judge;
mod limits;
mod log;
mod policy;
mod queue;
mod read_types;
pub mod record;
mod refusal;
mod reply;
mod rows;
pub mod rules;
mod selector;
mod settings;
mod store;
mod task;
mod times;
mod trace;

pub use command::*;
pub use counts::{Corrected, Counted};
pub use cursor::{Cursor, Order};
pub use edge::{Edge, EdgeState, OnFailure};
pub use event::{Event, FOLLOWED, Follow, Followed, Following, KEEP_EVENTS, Mark};
pub use free_capacity::FreeCapacity;
pub use id::{Key, Kind, Tag, TaskId, Token, WorkerId};
pub use import_types::Imported;
pub use json::Json;
pub use limits::*;
pub use log::{LOG_LINE_BYTES, LogLine, MAX_LOG, MAX_LOG_LINES, MAX_LOG_TEXT, MAX_NOTES, NewLogLine, RunLog};
pub use policy::{Policy, PolicyOverride};
pub use queue::{KeyRow, KindRow, Overlap, Presence, Queue, RULES_VERSION, RebalanceCursor, Schedule};
pub use read_types::Read;
#[doc(hidden)]
pub use refusal::{Refusal, late_add};
pub use reply::*;
pub use rows::Rows;
pub use selector::{MOVED, MOVING, Selector, Verb};
pub use settings::{Keep, Settings, SettingsChange};
pub use store::TaskStore;
pub use task::{Attempt, AttemptEnd, Nominal, Progress, Rank, State, Stop, Task, Unique, Until};
pub use times::{Day, Histogram, KEEP_DAYS, KEEP_TIMES, LENGTHS, Occurrence, Span, Throughput, Times, Took};
pub use trace::Traceparent;
