//! Shared state of the interval queue in one JSON file that a person can read.
//!
//! [`JsonFileState`] is a state backend (see [`SharedState`](interval_queue_contract::SharedState)) for processes of
//! one host, or of several that mount one directory. One file may hold many queues:
//!
//! ```json
//! {
//!   "interval_queue": 1,
//!   "queues": {
//!     "mail": { "version": 1, "interval": 250000, "ticket": 7, "current": 5 }
//!   }
//! }
//! ```
//!
//! # How a command is carried out
//!
//! Lock `<file>.lock`, read the file, apply the rules, write `<file>.tmp`, rename it over the file, unlock. So the
//! file is whole at every instant, whoever is killed. A [`Read`](interval_queue_contract::Command::Read) takes no lock,
//! because a rename is atomic, and creates nothing. All of it runs on tokio's threads for blocking work.
//!
//! Each noun has a file: `builder` and `state` (the public type), `path` (where the file really is), `lock` (the only
//! module that locks), `probe` (whether the lock excludes), `clock`, `file` (read and replace), `document` (many
//! queues in one text), `error`.
//!
//! # Why there is no fsync by default
//!
//! A killed process loses nothing: what it wrote is in the operating system's cache, which every process of the host
//! sees. Only a crash of the whole host loses it. Then all shards of that host have lost their jobs too, and
//! an older file after the restart can bring at most one start early; its tickets are taken by nobody any more. File systems
//! that delay the writing of data (ext4, XFS, btrfs) flush a file that is renamed over another, or may
//! leave an empty one: that is a clear error ([`Damaged`](interval_queue_contract::StateErrorKind::Damaged)), and
//! deleting the file begins anew. [`Fsync::Always`] rules out both, for two flushes a command: some
//! hundred microseconds on a good disk, ten milliseconds and more on a poor one.
//!
//! # Network mounts
//!
//! The mount must lock across hosts. NFS does from version 4, or from version 3 with a lock service, unless it is
//! mounted with `nolock` or `local_lock`. Opening probes that the lock excludes a second opener on the same host and
//! refuses a mount where it does not; what another host sees no probe on one host can tell. Mount NFS with
//! `lookupcache=none`, so that no host takes a name for missing or old that another has just made.
//!
//! With [`Clock::Host`] the clocks of the hosts must agree, see there; [`Clock::FileServer`] asks the server instead.
//! A network client may report a full disk only when it flushes: choose [`Fsync::Always`] there, it costs little
//! more than the closing of the file does anyway. `FileServer` implies the flush of the contents.
//!
//! # Permissions
//!
//! Files are created with the rights that the umask leaves. A file that is there keeps its mode, and its owner and
//! group as far as this process may set them. Every user of a queue must be able to create files in
//! the directory and to write `<file>.lock`: give them a common group, a `setgid` directory and umask 002.

mod builder;
mod clock;
mod document;
mod error;
mod file;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod lock;
mod path;
mod probe;
mod state;

pub use builder::{Builder, Fsync};
pub use clock::Clock;
pub use state::JsonFileState;
