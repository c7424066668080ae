//! The store of queues in one JSON file that a person can read.
//!
//! [`JsonFileState`] implements [`SharedState`](interval_queue_contract::SharedState) for processes
//! of one host, or of several hosts that mount one directory. One file can hold many queues:
//!
//! ```json
//! {
//!   "interval_queue": 1,
//!   "queues": {
//!     "mail": { "version": 2, "meters": [{ "interval": 250000, "burst": 1 }], "ticket": 7, "current": 5 }
//!   }
//! }
//! ```
//!
//! # How a command runs
//!
//! Lock `<file>.lock`, read the file, apply the rules, replace the text, unlock. Both files stay
//! open. A [`Read`](interval_queue_contract::Command::Read) waits at most 0.1 s for the lock, then
//! reads without it. It creates nothing, but recreates a deleted lock file.
//!
//! A command on a local disk takes about 10 µs, less than waking a thread. So it runs on the
//! calling thread if the lock is free, nothing is flushed and recent commands averaged under 100
//! µs. Otherwise it runs on tokio's blocking threads. Once begun, it completes even if its future
//! is dropped.
//!
//! [`JsonFileStore`] (`store/`) handles the file: path, lock, clock, replacement, watching.
//! [`JsonFileState`] (`pace/`) handles the records in its text.
//!
//! # How a state is replaced
//!
//! The text is overwritten where that is safe ([`Replacement::InPlace`]). Otherwise it is written
//! to `<file>.tmp`, which is renamed over the file.
//!
//! | | overwritten | renamed |
//! |---|---|---|
//! | a command, on ext4 | 6 µs | 120 µs, of which the flush is 100 |
//! | a process is killed | old text or new | old or new |
//! | `cat` without the lock | for under 1 µs possibly a part of each | old or new |
//!
//! After a crash or power loss of the host, the file is:
//!
//! - **overwritten**: an old text, up to half a minute older than with renames. On blocks under 4
//!   KiB possibly a part of two texts.
//! - **renamed**: on ext4 and btrfs the old text or the new, but possibly empty if it is seconds
//!   old; on XFS possibly empty for half a minute.
//!
//! The file is overwritten if all of this holds:
//!
//! - It is on Linux, on ext4, XFS, btrfs, tmpfs or an overlay of these.
//! - The options are [`Fsync::Never`] and [`Clock::Host`].
//! - The old text has at most 4,096 bytes (a dozen shards with work); the new one is no longer.
//! - The file has one name and is not a mount of its own.
//!
//! These file systems copy a page at once and check for a kill only before or after. (Of two pages,
//! the first alone can be new: on tmpfs after some thirty kills of a busy writer.)
//!
//! Overwriting keeps the length, because a new length could reach the disk without its text. A
//! shorter text is padded with blanks; a longer one is renamed. So renames stop once the file has
//! held the most shards that ever work at once.
//!
//! Edit the file with a program that replaces it, as most editors do, or under its lock:
//! `flock queues.json.lock vi queues.json`.
//!
//! # Why there is no fsync by default
//!
//! A killed process loses nothing: the operating system has its writes. Only a crash of the host
//! loses them, and its shards' jobs with them. An older file can bring at most one start early,
//! because no process uses its tickets any more. A damaged or empty file is normally a clear error
//! ([`Damaged`](interval_queue_contract::StateErrorKind::Damaged)); delete it to start over.
//! [`Fsync::Always`] prevents all of this for two flushes per command: some hundred microseconds on
//! a good disk, 10 ms and more on a poor one.
//!
//! # Network mounts
//!
//! The mount must lock across hosts. NFS does from version 4, or from version 3 with a lock
//! service, unless mounted with `nolock` or `local_lock`. Opening rejects a mount where the lock
//! does not exclude a second opener on the same host; it cannot probe other hosts. Mount NFS with
//! `lookupcache=none`, so that a host does not cache a name that another host has changed.
//!
//! Files there are renamed, because an open file may not show the writes of other hosts.
//!
//! With [`Clock::Host`] the hosts' clocks must agree; [`Clock::FileServer`] uses the server's and
//! flushes the contents. A network client may report a full disk only at a flush, so choose
//! [`Fsync::Always`] there: it costs little more than closing the file.
//!
//! # Watching
//!
//! With the feature `watch`, [`changes`](interval_queue_contract::SharedState::changes) watches the
//! directory and reads the file after each event. While watched, each open [`JsonFileStore`] takes
//! a thread and, on Linux, one of the user's `fs.inotify.max_user_instances`. Changes by another
//! host on a network mount are not reported.
//!
//! # Permissions
//!
//! New files have the rights that the umask leaves. An existing file keeps its mode, and its owner
//! and group as far as this process may set them. Every user of a queue must be able to create
//! files in the directory and to write `<file>.lock`: use a common group, a `setgid` directory and
//! umask 002.
// docs.rs shows the feature of each item.
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod pace;
mod store;

/// The lock and clock of files, for a store that keeps several. Private to this workspace.
#[doc(hidden)]
pub mod parts {
    pub use crate::store::{Held, LockFile, TryLock, lock_wait};
}

pub use pace::JsonFileState;
pub use store::{Builder, Clock, Fsync, JsonFileStore, Replacement};
