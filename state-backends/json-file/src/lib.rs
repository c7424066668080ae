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
//! reads without it. It creates nothing except a lock file that was deleted.
//!
//! On a local disk a command takes about 10 µs, less than waking another thread. So it runs on the
//! calling thread if the lock is free, nothing is flushed and recent commands took under 100 µs on
//! average. Otherwise it runs on tokio's blocking threads, including all waits. A command that has
//! begun always completes, even if its future is dropped.
//!
//! [`JsonFileStore`] (`store/`) handles the file: path, lock, clock, replacement, watching.
//! [`JsonFileState`] (`pace/`) handles the records in its text.
//!
//! # How a state is replaced
//!
//! Where it is safe, the text is overwritten in place ([`Replacement::InPlace`]). Otherwise it is
//! written to `<file>.tmp`, which is renamed over the file.
//!
//! | | overwritten in place | renamed |
//! |---|---|---|
//! | when | see below | always possible |
//! | a command, on ext4 | 6 µs | 120 µs, of which the flush is 100 |
//! | a process is killed | the old text or the new one | the old or the new |
//! | `cat` without the lock | for under 1 µs, maybe a part of each | the old or the new |
//! | the host crashes | see below | see below |
//!
//! After a crash or power loss of the host:
//!
//! - **overwritten**: an old text, up to half a minute older than with renames. If the disk or the
//!   file system has blocks of less than 4 KiB: possibly a part of two texts.
//! - **renamed**, on ext4 and btrfs: the old text or the new one, but possibly nothing of a file
//!   that is seconds old. On XFS: possibly nothing for half a minute.
//!
//! The file is overwritten on Linux, on ext4, XFS, btrfs, tmpfs or an overlay of these, with
//! [`Fsync::Never`] and [`Clock::Host`], if all of this holds:
//!
//! - The old text has at most 4,096 bytes (a dozen shards with work); the new one is no longer.
//! - The file has one name and is not a mount of its own.
//!
//! These file systems copy up to a page at once and check for a kill only before or after. (Of two
//! pages, the first alone can be new: on tmpfs after some thirty kills of a busy writer.)
//!
//! Overwriting keeps the length, because a new length could reach the disk without its text. A
//! shorter text is padded with blanks; a longer one is renamed. So renames stop once the file has
//! had room for the most shards that ever worked at once.
//!
//! Edit the file with a program that replaces it, as most editors do, or under its lock:
//! `flock queues.json.lock vi queues.json`.
//!
//! # Why there is no fsync by default
//!
//! A killed process loses nothing: its writes are in the operating system's cache, which all
//! processes of the host share. Only a crash of the host loses them. Its shards have then lost
//! their jobs, too. An older file can bring at most one start early; nobody uses its tickets any
//! more. A damaged or empty file is normally a clear error
//! ([`Damaged`](interval_queue_contract::StateErrorKind::Damaged)); delete it to start over.
//! [`Fsync::Always`] prevents all of this for two flushes per command: some hundred microseconds on
//! a good disk, 10 ms and more on a poor one.
//!
//! # Network mounts
//!
//! The mount must lock across hosts. NFS does from version 4, or from version 3 with a lock
//! service, unless mounted with `nolock` or `local_lock`. Opening probes that the lock excludes a
//! second opener on the same host and rejects a mount where it does not. It cannot probe other
//! hosts. Mount NFS with `lookupcache=none`, so that a host does not cache a name that another host
//! has just changed.
//!
//! On such mounts the file is replaced by rename, because an open file may not show the writes of
//! other hosts.
//!
//! With [`Clock::Host`] the hosts' clocks must agree; [`Clock::FileServer`] uses the server's clock
//! and implies a flush of the contents. A network client may report a full disk only at a flush. So
//! choose [`Fsync::Always`] there: it costs little more than closing the file does.
//!
//! # Watching
//!
//! With the feature `watch`, [`changes`](interval_queue_contract::SharedState::changes) makes the
//! operating system watch the directory, and reads the file after each event. While watched, each
//! open [`JsonFileStore`] takes a thread and, on Linux, one of the user's
//! `fs.inotify.max_user_instances`. Changes by another host on a network mount are not reported.
//!
//! # Permissions
//!
//! Files are created with the rights that the umask leaves. An existing file keeps its mode, and
//! its owner and group as far as this process may set them. Every user of a queue must be able to
//! create files in the directory and to write `<file>.lock`: use a common group, a `setgid`
//! directory and umask 002.
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
    pub use crate::store::{Held, LockFile, TryLock, patience};
}

pub use pace::JsonFileState;
pub use store::{Builder, Clock, Fsync, JsonFileStore, Replacement};
