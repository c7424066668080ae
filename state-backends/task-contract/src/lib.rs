//! The contract between stored tasks and the places where they can be stored.
//!
//! A **task** is a unit of work that outlives its process. Producers add tasks to a queue; workers in any number of
//! processes lease them, run them and complete them. This crate holds the rows, the commands, and every rule, as pure
//! functions over the rows that a store finds: [`rules::apply`]. A store implements [`Rows`] and [`TaskStore`], and
//! adds no rule of its own.
//!
//! Application code uses the crate `interval-queue-tasks`; only the author of a store needs this one.
//!
//! # Words
//!
//! | word | meaning |
//! |---|---|
//! | task | one unit of stored work: id, kind, payload (JSON), options, state, result |
//! | kind | names the handler; a worker says which kinds it serves and is offered no other |
//! | worker | one process that runs tasks: random id, its own rising sequence number, one lease for all it holds |
//! | attempt | rises with every lease of the task; with the store's incarnation it is the fencing [`Token`] of that run |
//! | failures | runs that count against `max_attempts`: failed ones and those whose worker died |
//! | gate | what a task waits for, in this order: edges (upstream tasks), time (not before), key |
//! | key | at most `key_limit` tasks of one key are ready or leased at a time |
//! | due | `max(added, not_before) − priority × ageing`, at most 2^53 − 1, fixed at adding; lower is more urgent |
//! | edge | upstream → downstream, with what becomes of the downstream when the upstream fails |
//! | schedule | a template and a rule that adds one task per nominal instant |
//! | clock of leases | never goes back, and silence of all counts for a quarter of a lease at most |
//! | selector, verb | which tasks, and what is done with them |
//! | event, mark | a task that is in another state, told to those who follow; how far one of them has come |
//!
//! # What this crate must not know
//!
//! It does no I/O, reads no clock, spawns nothing and draws no random number. Time enters as `now`.

mod command;
mod counts;
mod edge;
mod entry;
mod event;
mod id;
mod import;
mod json;
pub mod judge;
mod limits;
mod policy;
mod queue;
mod read;
mod reply;
mod room;
mod rows;
pub mod rules;
mod selector;
mod settings;
mod store;
mod task;
mod times;

pub use command::*;
pub use counts::{Corrected, Counted};
pub use edge::{Edge, EdgeState, OnFailure};
#[doc(hidden)]
pub use entry::Entry;
pub use event::{Event, FOLLOWED, Follow, Followed, Following, KEEP_EVENTS, Mark};
pub use id::{Key, Kind, Tag, TaskId, Token, WorkerId};
pub use import::Imported;
pub use json::Json;
pub use limits::*;
pub use policy::{Policy, PolicyOverride};
pub use queue::{KeyRow, KindRow, Level, Overlap, Presence, Queue, RULES_VERSION, Schedule};
pub use read::Read;
pub use reply::*;
pub use room::Room;
pub use rows::Rows;
pub use selector::{MOVED, MOVING, Selector, Verb};
pub use settings::{Keep, Settings, SettingsChange};
pub use store::TaskStore;
pub use task::{Attempt, AttemptEnd, Nominal, Progress, Rank, State, Stop, Task, Unique, Until};
pub use times::{Histogram, KEEP_TIMES, LENGTHS, Span, Times, Took};
