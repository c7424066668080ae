//! Stored tasks of the interval queue in a directory, a readable JSON file per task.
//!
//! [`DirectoryTasks`] is a store of tasks (see
//! [`TaskStore`](interval_queue_task_contract::TaskStore)) for the processes of one host, or of
//! several hosts that mount one directory with locks.
//!
//! ```text
//! jobs/README          the layout, explained for people
//! jobs/pace.json       the rate limits of the queues
//! jobs/mail/ready/000012/01957b6e-5e1a-7c3e-9a53-0c6e3a1f2b4d.json
//! jobs/mail/leased/…  added/…  waiting/…  scheduled/…  blocked/…  done/…  failed/…  cancelled/…
//! jobs/mail/drop/      a file that is renamed into it becomes a task
//! jobs/mail/set-aside/ NAME and NAME.reason: a file that is no task, and why
//! jobs/mail/queue.json settings, pauses, limits of keys, schedules
//! jobs/index.db        finds tasks fast; rebuilt from the files if it is lost
//! ```
//!
//! # The files are the truth
//!
//! The directory of a file is the state of its task. People may read files with `cat` and `grep`,
//! change them with `sed -i`, remove them, and move them from one state to another. Any program may
//! add a task by writing a file. A file that cannot be understood is set aside with its reason and
//! blocks nothing.
//!
//! The rules ask some fifty ordered questions: which task is the most urgent of some kinds, which
//! task is next for a key, which deadline is next. A directory listing answers none of them, and
//! over a network mount it is cached for seconds, while a locked file is coherent. So `index.db`
//! has a row for each task, in the tables of the SQLite store. Payloads and results are in the
//! files alone.
//!
//! # How a command is carried out
//!
//! The directory has one lock. Under it, the transaction of the index commits together with a redo
//! list: the files to write, rename and remove. The redo list is carried out after the commit, and
//! the file `done` records the last command for which that happened. The next process finishes the
//! redo list of a killed one first, so a kill at any instant leaves nothing half done.
//!
//! A text of more than 4 kB is not in the redo list: it is written before the commit, under a
//! temporary name. A file that has a second name, or that this user may not write to, is replaced;
//! other files are overwritten. Concurrent commands of one handle share a transaction. A lease is a
//! rename.
//!
//! # Edits by hand
//!
//! A file that the store has written bears a mark: the nanoseconds of its modification time follow
//! from the id of its task. An editor removes the mark. Directories have at most about a thousand
//! files. Directories that have changed since the last scan are scanned by `Overview`, and by polls
//! now and then. Each lease reads its file and checks the mark. Edits go through the rules, as
//! commands do.
//!
//! # Durability
//!
//! A killed process loses nothing. With [`Fsync::Always`] a crash of the host loses nothing either.
//! With [`Fsync::Never`], the default, a crash of the host can undo the last commands and leave
//! files of the last seconds empty: empty files are set aside. The first command after a start of
//! the host then checks the whole index, which takes longer the more tasks there are.
//!
//! # Permissions
//!
//! Files and directories are created with the rights that the umask leaves. To share a directory,
//! give the users a common group, a `setgid` directory and umask 002. A file of another user is
//! replaced where only its owner could mark it. If this user may not read a task's file, the
//! command fails with an error that names the file, and the file stays where it is.

mod store;
mod tasks;

pub use interval_queue_json_file::{Clock, Fsync};

pub use self::{
    store::{Builder, DirectoryStore},
    tasks::DirectoryTasks,
};
