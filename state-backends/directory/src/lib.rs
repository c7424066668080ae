//! Stored tasks of the interval queue in a directory, a readable JSON file per task.
//!
//! [`DirectoryTasks`] is a store of tasks (see [`TaskStore`](interval_queue_task_contract::TaskStore)) for
//! the processes of one host, or of several that mount one directory with locks.
//!
//! ```text
//! jobs/README          what a person has to know
//! jobs/pace.json       the pace of the queues
//! jobs/mail/ready/000012/01957b6e-5e1a-7c3e-9a53-0c6e3a1f2b4d.json
//! jobs/mail/leased/…  added/…  waiting/…  scheduled/…  blocked/…  done/…  failed/…  cancelled/…
//! jobs/mail/drop/      a file that is renamed into it becomes a task
//! jobs/mail/set-aside/ NAME and NAME.reason: what is no task, and why
//! jobs/mail/queue.json settings, pauses, limits of keys, schedules
//! jobs/index.db        finds tasks fast; made again from the files if it is lost
//! ```
//!
//! # The files are the truth
//!
//! The place of a file is the state of its task. People may look at files with `cat` and `grep`, change them with
//! `sed -i`, remove them, and move them from one state to another; any program may add a task by a file. What is not
//! understood is set aside with its reason, and in nobody's way.
//!
//! The rules ask some fifty ordered questions: which task is the most urgent of some kinds, who is first in
//! the line of a key, which deadline is next. A listing answers none of them, and over a network mount it is
//! cached for seconds, while a locked file is coherent. So `index.db` has a row for each task, in the tables
//! of the SQLite store; payloads and results are in the files alone.
//!
//! # How a command is carried out
//!
//! One lock for the directory. Under it: the transaction of the index commits together with the list of what
//! is to be written, renamed and removed; that is carried out; the file `done` says up to which command. A
//! process that finds it was not carried out finishes it first, so that a kill at any instant leaves nothing
//! half done. A text of more than 4 kB is not in the list but written before, under another name. A file that
//! has a second name, or that this user may not write to, is replaced; others are written over. Commands of a
//! handle that wait share all of that. A lease is a rename.
//!
//! # Edits by hand
//!
//! A file that the store has written bears a mark: the nanoseconds of its time of modification follow from
//! the id of its task. An editor takes it off. Directories have at most about a thousand files; those that
//! have changed since they were looked at are looked at again by `Overview`, and by steps now and then. Each
//! lease reads its file and looks at the mark. What was edited goes through the rules, as commands do.
//!
//! # What survives what
//!
//! A killed process loses nothing. With [`Fsync::Always`] a crash of the host does not either. With
//! [`Fsync::Never`], the default, it can take the last commands back, and leave files of the last seconds
//! empty: those are set aside. The first command after a start of the host looks through the whole index
//! then, and waits the longer the more tasks there are.
//!
//! # Permissions
//!
//! Files and directories are created with the rights that the umask leaves. To share a directory, give the users a
//! common group, a `setgid` directory and umask 002. A file of another user is replaced where only its owner could mark
//! it. A task's file that this user may not read is an error that names it, and stays where it is.

mod store;
mod tasks;

pub use interval_queue_json_file::{Clock, Fsync};

pub use self::{
    store::{Builder, DirectoryStore},
    tasks::DirectoryTasks,
};
