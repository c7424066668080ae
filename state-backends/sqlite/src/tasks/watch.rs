//! Watching queues for news: within the process as they are stored; of other processes the operating system says that
//! the log was written to, and a look says whether a queue has news.
//!
//! The alternative is to ask SQLite's `data_version` every millisecond, which costs each watcher of a quiet database a
//! thousand looks a second. This way it costs none. `cargo bench --bench tasks -- --only pickup` measures how soon an
//! `add` is noticed.

use std::{
    collections::HashMap,
    ffi::OsStr,
    fmt,
    path::Path,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    },
    thread,
    time::Duration,
};

use futures::stream;
use interval_queue_contract::{Changes, QueueName, StateError, StateErrorKind};
use interval_queue_store::files::{beside, blocking, directory};
use notify::{
    ErrorKind, Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _, event::ModifyKind,
};
use rusqlite::{Connection, OptionalExtension};
use tokio::sync::watch::Sender;

use super::{TASKS, check_version};
use crate::{SqliteStore, store::Fault};

/// The least time between two looks: other queues of the database may be busy.
const MIN_CHECK_INTERVAL: Duration = Duration::from_micros(500);

/// Those who watch queues of a database.
pub(super) struct Watchers {
    store: SqliteStore,
    queues: Mutex<HashMap<QueueName, Watched>>,
    /// That of the log, as long as somebody watches.
    log: Mutex<Weak<RecommendedWatcher>>,
}

struct Watched {
    /// The last that was seen. `None`: nobody has looked yet.
    last_seen: Option<i64>,
    sender: Sender<()>,
}

impl Watched {
    /// Notifies unless these news are known.
    fn notify_if_new(&mut self, number: i64) {
        if self.last_seen.replace(number).is_some_and(|before| before != number) {
            self.sender.send_replace(());
        }
    }
}

/// Queues, each with the news that were seen last.
type Snapshot = Vec<(QueueName, Option<i64>)>;

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Watchers {
    pub(super) fn new(store: &SqliteStore) -> Self {
        Self { store: store.clone(), queues: Mutex::default(), log: Mutex::default() }
    }

    /// Begins to watch a queue.
    pub(super) async fn watch(self: &Arc<Self>, queue: &QueueName) -> Result<Changes, StateError> {
        let (watchers, queue) = (self.clone(), queue.clone());
        blocking(move || {
            let log = watchers.listen()?;
            let receiver = {
                let mut queues = locked(&watchers.queues);
                // Otherwise queues that nobody watches any more would gather.
                queues.retain(|_, watched| !watched.sender.is_closed());
                let new = || Watched { last_seen: None, sender: Sender::new(()) };
                queues.entry(queue.clone()).or_insert_with(new).sender.subscribe()
            };
            // What is stored from here on differs from this.
            let snapshot = watchers.snapshot();
            let all = watchers.store.read_here(&TASKS, notification_numbers(&snapshot))?;
            watchers.compare(&snapshot, all);
            let next =
                async |(mut receiver, log): (tokio::sync::watch::Receiver<()>, Arc<RecommendedWatcher>)| {
                    receiver.changed().await.ok().map(|()| ((), (receiver, log)))
                };
            Ok(Box::pin(stream::unfold((receiver, log), next)) as Changes)
        })
        .await
    }

    /// A transaction of this process has stored these news of a queue.
    pub(super) fn notify_if_new(&self, queue: &QueueName, number: i64) {
        if let Some(watched) = locked(&self.queues).get_mut(queue) {
            watched.notify_if_new(number);
        }
    }

    /// The watched queues, with the news that were seen last.
    fn snapshot(&self) -> Snapshot {
        locked(&self.queues).iter().map(|(queue, watched)| (queue.clone(), watched.last_seen)).collect()
    }

    /// Looks at all queues that are watched, unless the store is closed.
    fn check(&self) -> Result<(), StateError> {
        let snapshot = self.snapshot();
        if let Some(all) = self.store.read_unless_closed(&TASKS, notification_numbers(&snapshot))? {
            self.compare(&snapshot, all);
        }
        Ok(())
    }

    /// Takes in what a look has read that began when these news were `known`. `None`: there are no tables.
    ///
    /// If this process has stored something meanwhile, what the look has read may be older, and is dropped: that
    /// write causes another look.
    fn compare(&self, snapshot: &Snapshot, all: Option<Vec<Option<i64>>>) {
        let all = all.unwrap_or_else(|| vec![None; snapshot.len()]);
        let mut queues = locked(&self.queues);
        for ((queue, before), number) in snapshot.iter().zip(all) {
            if let Some(watched) = queues.get_mut(queue).filter(|watched| watched.last_seen == *before) {
                watched.notify_if_new(number.unwrap_or(0));
            }
        }
    }

    /// The watcher of the log.
    fn listen(self: &Arc<Self>) -> Result<Arc<RecommendedWatcher>, StateError> {
        let mut shared = locked(&self.log);
        if let Some(watcher) = shared.upgrade() {
            return Ok(watcher);
        }
        // One place: however much is written during a look, there is one more look.
        let (sender, receiver) = sync_channel(1);
        let path = self.store.path();
        let watcher = Arc::new(watcher(path, sender).map_err(|error| cannot_watch(path, error))?);
        let watchers = Arc::downgrade(self);
        let started = thread::Builder::new()
            .name("interval-queue-watch".into())
            .spawn(move || listen(&watchers, &receiver));
        started.map_err(|error| {
            let text = format!("cannot watch {}: no thread can be started", path.display());
            StateError::new(StateErrorKind::Unreachable, text).with_source(error)
        })?;
        *shared = Arc::downgrade(&watcher);
        Ok(watcher)
    }

    /// Nobody is told any more; the next watcher starts over.
    fn end(&self) {
        *locked(&self.log) = Weak::new();
        locked(&self.queues).clear();
    }
}

fn notification_numbers(queues: &Snapshot) -> impl Fn(&Connection) -> Result<Vec<Option<i64>>, Fault> {
    |on| {
        check_version(on)?;
        let mut select = on.prepare_cached("SELECT news FROM interval_queue_task_queue WHERE name = ?1")?;
        let of = |(queue, _): &(QueueName, Option<i64>)| {
            Ok(select.query_row([queue.as_str()], |row| row.get(0)).optional()?)
        };
        queues.iter().map(of).collect()
    }
}

/// What was told by the operating system.
enum LogEvent {
    /// Something may have been written.
    Written,
    /// The directory is gone.
    Gone,
}

/// When it is looked again after something was told, in microseconds. The log is written before the commit, which is
/// seen only when it was flushed, and nothing tells of that.
const RECHECK_MICROS: [u64; 7] = [250, 1_000, 4_000, 16_000, 64_000, 256_000, 1_024_000];

/// Looks whenever something was told, and some times after it, until the watcher is dropped.
fn listen(watchers: &Weak<Watchers>, receiver: &Receiver<LogEvent>) {
    let mut checks = RECHECK_MICROS.len();
    loop {
        let event = match RECHECK_MICROS.get(checks) {
            Some(micros) => receiver.recv_timeout(Duration::from_micros(*micros)),
            None => receiver.recv().map_err(RecvTimeoutError::from),
        };
        let Some(watchers) = watchers.upgrade() else { return };
        let is_gone = match event {
            Ok(LogEvent::Gone) => true,
            Err(RecvTimeoutError::Disconnected) => return,
            // A directory whose files are open is gone, and nothing else tells.
            Ok(LogEvent::Written) | Err(RecvTimeoutError::Timeout) => {
                checks = if event.is_ok() { 0 } else { checks + 1 };
                watchers.check().is_err_and(|error| error.kind() == StateErrorKind::NotFound)
            }
        };
        if is_gone {
            return watchers.end();
        }
    }
}

/// Watches the directory, since the log may be missing yet, and comes and goes.
fn watcher(database: &Path, sender: SyncSender<LogEvent>) -> notify::Result<RecommendedWatcher> {
    // The system tells of the end of a directory once nobody has a file of it open, as all have the gate: that it is
    // removed is told at once.
    let names = [database.to_owned(), beside(database, "-wal"), beside(database, "-gate")];
    let names = names.map(|path| path.file_name().map(OsStr::to_owned));
    let watched = directory(database).to_owned();
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<Event>| match event {
        Ok(event) if is_end(&event, &watched) => _ = sender.send(LogEvent::Gone),
        Ok(event) if !concerns(&event, &names) => {}
        // After an error something may have been missed.
        _ => {
            let _ = sender.try_send(LogEvent::Written);
            // A commit writes many times. The system makes one event of what is written meanwhile, and this thread is
            // not woken for each.
            thread::sleep(MIN_CHECK_INTERVAL);
        }
    })?;
    watcher.watch(directory(database), RecursiveMode::NonRecursive)?;
    Ok(watcher)
}

/// Whether the directory was removed or has another name, so that no more will come.
fn is_end(event: &Event, directory: &Path) -> bool {
    let gone = matches!(event.kind, EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_)));
    gone && event.paths.iter().any(|path| path == directory)
}

/// Whether something may have been written to a file of one of these names, or put in its place.
fn concerns(event: &Event, names: &[Option<std::ffi::OsString>]) -> bool {
    let is_one = event.paths.iter().any(|path| names.iter().any(|name| path.file_name() == name.as_deref()));
    event.need_rescan() || (is_one && !matches!(event.kind, EventKind::Access(_)))
}

fn cannot_watch(path: &Path, error: notify::Error) -> StateError {
    let is_limit = match &error.kind {
        ErrorKind::MaxFilesWatch => true,
        // EMFILE: so many watchers of this user, or open files of this process.
        ErrorKind::Io(error) => error.raw_os_error() == Some(24),
        _ => false,
    };
    let (kind, way_out) = match (&error.kind, is_limit) {
        (_, true) => (
            StateErrorKind::Full,
            "too many files are watched: raise fs.inotify.max_user_instances and fs.inotify.max_user_watches",
        ),
        (ErrorKind::PathNotFound, _) => (StateErrorKind::NotFound, "its directory does not exist: create it"),
        _ => (StateErrorKind::Unsupported, "its directory cannot be watched: leave wake-ups off"),
    };
    StateError::new(kind, format!("cannot watch {}: {way_out}", path.display())).with_source(error)
}

impl fmt::Debug for Watchers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watchers").finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "../../tests/unit/watch_unit.rs"]
mod tests;
