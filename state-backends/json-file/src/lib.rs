//! Shared state of the interval queue in one JSON file that a person can read.
//!
//! [`JsonFileState`] is a state backend (see [`SharedState`](interval_queue_contract::SharedState)) for
//! processes of one host, or of several that mount one directory. One file may hold many queues:
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
//! # How a command is carried out
//!
//! Lock `<file>.lock`, read the file, apply the rules, put the new text in the place of the old one, unlock.
//! Both files are kept open. A [`Read`](interval_queue_contract::Command::Read) takes the lock, too, and
//! looks without it if somebody has held it for a tenth of a second; it creates nothing, but a lock file that
//! was deleted.
//!
//! With files on a local disk that is a matter of ten microseconds, less than it takes to wake another
//! thread. So a command is carried out on the thread that gives it, if nobody has the lock, nothing is
//! flushed, and the last commands took less than 100 µs in the mean. In every other case, all waiting
//! included, it runs on tokio's threads for blocking work. Either way a command that was begun is carried
//! through, whether or not somebody still waits for its reply.
//!
//! Two rooms: [`JsonFileStore`] (`store/`) is the file, whatever it says: where it is, its lock, its clock,
//! how a text takes the place of another, and how it is watched. [`JsonFileState`] (`pace/`) is the record of
//! each queue in the document that the file has.
//!
//! # How a state is replaced
//!
//! Where it is safe, by one write over the old text ([`Replacement::InPlace`]); otherwise a text is written
//! to `<file>.tmp`, which is renamed over the file.
//!
//! | | overwritten in place | renamed |
//! |---|---|---|
//! | when | see below | always possible |
//! | a command, on ext4 | 6 µs | 120 µs, of which the flush is 100 |
//! | a process is killed at any instant | the old text or the new one | the old or the new |
//! | somebody reads without the lock (`cat`) | may see a part of each for a fraction of a microsecond | the old or the new |
//! | the host crashes or loses power | an old text, up to half a minute older than with renames; a part of two, if the disk or the file system has blocks of less than 4 KiB | ext4, btrfs: the old or the new, but perhaps nothing of a file that is seconds old; XFS: perhaps nothing for half a minute |
//!
//! It is overwritten on Linux, on ext4, XFS, btrfs, tmpfs or an overlay of these, with [`Fsync::Never`] and
//! [`Clock::Host`], while the text has up to 4,096 bytes (a dozen shards with work) and is no longer than the
//! one before, and the file has one name and is not mounted by itself. These file systems copy up to a page
//! in one go, and look for a kill before that or after. (Of two pages the first one alone can be new: on
//! tmpfs that takes some thirty kills of a busy writer.)
//!
//! To overwrite keeps the length of the file, since a new length could reach the disk without its text. A
//! shorter text is filled up with blanks, and a longer one comes by rename. So once it has had room for the
//! most shards that ever worked at once the file is not renamed any more, and it may end with a line of
//! blanks.
//!
//! Edit the file with a program that replaces it, as most editors do, or under its lock:
//! `flock queues.json.lock vi queues.json`.
//!
//! # Why there is no fsync by default
//!
//! A killed process loses nothing: what it wrote is in the operating system's cache, which every process of
//! the host sees. Only a crash of the whole host loses it. Then all shards of that host have lost their jobs
//! too, and an older file after the restart can bring at most one start early; its tickets are taken by
//! nobody any more. A file that is spoilt or empty after such a crash, see above, is as a rule a clear error
//! ([`Damaged`](interval_queue_contract::StateErrorKind::Damaged)), and deleting it starts a new one.
//! [`Fsync::Always`] rules out all of that, for two flushes a command: some hundred microseconds on a good
//! disk, ten milliseconds and more on a poor one.
//!
//! # Network mounts
//!
//! The mount must lock across hosts. NFS does from version 4, or from version 3 with a lock service, unless
//! it is mounted with `nolock` or `local_lock`. Opening probes that the lock excludes a second opener on the
//! same host and refuses a mount where it does not; what another host sees no probe on one host can tell.
//! Mount NFS with `lookupcache=none`, so that no host takes a name for missing or old that another has just
//! made.
//!
//! Files on such mounts are replaced by rename, since a file kept open may not show what another host wrote.
//!
//! With [`Clock::Host`] the clocks of the hosts must agree, see there; [`Clock::FileServer`] asks the server
//! instead. A network client may report a full disk only when it flushes: choose [`Fsync::Always`] there, it
//! costs little more than the closing of the file does anyway. `FileServer` implies the flush of the
//! contents.
//!
//! # Watching
//!
//! With the feature `watch`, [`changes`](interval_queue_contract::SharedState::changes) lets the operating
//! system watch the directory, and looks at the file when something was done to it. That takes a thread and,
//! on Linux, one of the user's `fs.inotify.max_user_instances` for each open [`JsonFileStore`], while
//! somebody watches. What another host does to a file on a network mount is not told.
//!
//! # Permissions
//!
//! Files are created with the rights that the umask leaves. A file that is there keeps its mode, and its
//! owner and group as far as this process may set them. Every user of a queue must be able to create files in
//! the directory and to write `<file>.lock`: give them a common group, a `setgid` directory and umask 002.
// docs.rs says which feature brings what.
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod pace;
mod store;

/// The lock and the clock of files, for a store that keeps more than one. Not for anybody else.
#[doc(hidden)]
pub mod parts {
    pub use crate::store::{Held, LockFile, TryLock, patience};
}

pub use pace::JsonFileState;
pub use store::{Builder, Clock, Fsync, JsonFileStore, Replacement};
