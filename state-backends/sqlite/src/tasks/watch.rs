//! Watches queues for notifications. Commands of this process notify directly. For other processes,
//! the operating system reports writes to the log, and a read of one number per queue shows which
//! queues were notified. Every commit would cause a read, so a process reads ten times a second
//! while all its watchers are workers that can take no more tasks.
//!
//! Polling `data_version` every millisecond instead would cost each watcher of a quiet database a
//! thousand reads a second. To measure the delay of an `add`, run `cargo bench --bench tasks --
//! --only pickup`.

use std::{
    collections::{HashMap, HashSet},
    ffi::OsStr,
    fmt,
    path::Path,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak,
        mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    },
    thread,
    time::Duration,
};

use futures::stream;
use interval_queue_contract::{Changes, QueueName, StateError, StateErrorKind};
use interval_queue_store::files::{beside, blocking, directory};
use interval_queue_task_contract::{Step, Stepped, WorkerId};
use notify::{
    ErrorKind, Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _, event::ModifyKind,
};
use rusqlite::{Connection, OptionalExtension};
use tokio::sync::watch::{self, Sender};

use super::{TASKS, check_version};
use crate::{SqliteStore, store::Fault};

/// Other queues of the database may be busy.
const MIN_CHECK_INTERVAL: Duration = Duration::from_micros(500);

/// While every watcher is a worker that can take no more tasks: it only has to see that a run must
/// stop.
const LAZY_CHECK_INTERVAL: Duration = Duration::from_millis(100);

pub(super) struct Watchers {
    store: SqliteStore,
    queues: Mutex<HashMap<QueueName, Watched>>,
    /// Streams keep the file watcher.
    log: Mutex<Weak<RecommendedWatcher>>,
    demand: Arc<Demand>,
}

/// Whether some watcher waits for work.
#[derive(Default)]
struct Demand {
    is_there: Mutex<bool>,
    came: Condvar,
}

impl Demand {
    fn set(&self, is_there: bool) {
        if std::mem::replace(&mut *locked(&self.is_there), is_there) != is_there {
            self.came.notify_all();
        }
    }

    fn is_there(&self) -> bool {
        *locked(&self.is_there)
    }

    /// Waits for at most [`LAZY_CHECK_INTERVAL`].
    fn wait(&self) {
        let is_there = locked(&self.is_there);
        let _ = self.came.wait_timeout_while(is_there, LAZY_CHECK_INTERVAL, |is_there| !*is_there);
    }
}

struct Watched {
    /// `None`: not read yet.
    last_seen: Option<i64>,
    sender: Sender<()>,
    /// Workers of this process that got all tasks that they wanted. Each has a stream.
    full: HashSet<WorkerId>,
}

impl Watched {
    fn has_demand(&self) -> bool {
        self.sender.receiver_count() > self.full.len()
    }

    fn notify_if_new(&mut self, number: i64) {
        if self.last_seen.replace(number).is_some_and(|before| before != number) {
            self.sender.send_replace(());
        }
    }
}

/// With the numbers of the last notifications seen.
type Snapshot = Vec<(QueueName, Option<i64>)>;

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Watchers {
    pub(super) fn new(store: &SqliteStore) -> Self {
        Self { store: store.clone(), queues: Mutex::default(), log: Mutex::default(), demand: Arc::default() }
    }

    pub(super) async fn watch(self: &Arc<Self>, queue: &QueueName) -> Result<Changes, StateError> {
        let (watchers, queue) = (self.clone(), queue.clone());
        blocking(move || {
            let log = watchers.listen()?;
            let receiver = {
                let mut queues = locked(&watchers.queues);
                queues.retain(|_, watched| !watched.sender.is_closed());
                let new = || Watched { last_seen: None, sender: Sender::new(()), full: HashSet::new() };
                queues.entry(queue.clone()).or_insert_with(new).sender.subscribe()
            };
            watchers.forget_full(&queue);
            // Later notifications have a higher number.
            let snapshot = watchers.snapshot();
            let all = watchers.store.read_here(&TASKS, notification_numbers(&snapshot))?;
            watchers.compare(&snapshot, all);
            let stream = Watch { receiver, _end: End(Arc::downgrade(&watchers), queue), _log: log };
            let next = async |mut stream: Watch| stream.receiver.changed().await.ok().map(|()| ((), stream));
            Ok(Box::pin(stream::unfold(stream, next)) as Changes)
        })
        .await
    }

    /// A worker of this process may be able to take more tasks than it got. A step that requested
    /// none shows nothing.
    pub(super) fn stepped(&self, queue: &QueueName, step: &Step, stepped: &Stepped) {
        let is_full = stepped.leased.len() >= step.want as usize;
        self.update_full(queue, |full| match (step.want, is_full) {
            (0, _) => false,
            (_, true) => full.insert(step.worker),
            (_, false) => full.remove(&step.worker),
        });
    }

    fn forget_full(&self, queue: &QueueName) {
        self.update_full(queue, |full| {
            full.clear();
            true
        });
    }

    /// `change` returns whether something may have changed.
    fn update_full(&self, queue: &QueueName, change: impl FnOnce(&mut HashSet<WorkerId>) -> bool) {
        let mut queues = locked(&self.queues);
        if queues.get_mut(queue).is_some_and(|watched| change(&mut watched.full)) {
            self.demand.set(queues.values().any(Watched::has_demand));
        }
    }

    /// Reports a notification that this process has stored.
    pub(super) fn notify_if_new(&self, queue: &QueueName, number: i64) {
        if let Some(watched) = locked(&self.queues).get_mut(queue) {
            watched.notify_if_new(number);
        }
    }

    fn snapshot(&self) -> Snapshot {
        locked(&self.queues).iter().map(|(queue, watched)| (queue.clone(), watched.last_seen)).collect()
    }

    /// Does nothing if the store is closed.
    fn check(&self) -> Result<(), StateError> {
        let snapshot = self.snapshot();
        if let Some(all) = self.store.read_unless_closed(&TASKS, notification_numbers(&snapshot))? {
            self.compare(&snapshot, all);
        }
        Ok(())
    }

    /// Notifies the queues whose number has changed since `snapshot`, which must precede the read.
    /// `None`: there are no tables.
    ///
    /// If this process has stored a notification since the snapshot, the read may be older and is
    /// ignored for that queue: the write causes another check.
    fn compare(&self, snapshot: &Snapshot, all: Option<Vec<Option<i64>>>) {
        let all = all.unwrap_or_else(|| vec![None; snapshot.len()]);
        let mut queues = locked(&self.queues);
        for ((queue, before), number) in snapshot.iter().zip(all) {
            if let Some(watched) = queues.get_mut(queue).filter(|watched| watched.last_seen == *before) {
                watched.notify_if_new(number.unwrap_or(0));
            }
        }
    }

    fn listen(self: &Arc<Self>) -> Result<Arc<RecommendedWatcher>, StateError> {
        let mut shared = locked(&self.log);
        if let Some(watcher) = shared.upgrade() {
            return Ok(watcher);
        }
        // Capacity 1: any number of writes during a check causes one more check.
        let (sender, receiver) = sync_channel(1);
        let path = self.store.path();
        let watcher = watcher(path, sender, self.demand.clone());
        let watcher = Arc::new(watcher.map_err(|error| cannot_watch(path, error))?);
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

    /// The next watcher starts over.
    fn end(&self) {
        *locked(&self.log) = Weak::new();
        locked(&self.queues).clear();
    }
}

struct Watch {
    receiver: watch::Receiver<()>,
    /// Must be dropped after the receiver.
    _end: End,
    _log: Arc<RecommendedWatcher>,
}

/// Forgets the full workers of a queue: the ended stream may have been that of a full worker.
struct End(Weak<Watchers>, QueueName);

impl Drop for End {
    fn drop(&mut self) {
        if let Some(watchers) = self.0.upgrade() {
            watchers.forget_full(&self.1);
        }
    }
}

fn notification_numbers(queues: &Snapshot) -> impl Fn(&Connection) -> Result<Vec<Option<i64>>, Fault> {
    |on| {
        check_version(on)?;
        let sql = "SELECT last.number FROM interval_queue_task_queue AS queue JOIN interval_queue_task_count AS last \
                   ON last.queue = queue.number AND last.kind = '' AND last.counted = 'news' WHERE queue.name = ?1";
        let mut select = on.prepare_cached(sql)?;
        let of = |(queue, _): &(QueueName, Option<i64>)| {
            Ok(select.query_row([queue.as_str()], |row| row.get(0)).optional()?)
        };
        queues.iter().map(of).collect()
    }
}

enum LogEvent {
    /// The database or its log may have been written.
    Written,
    /// The directory was removed.
    Gone,
}

/// Microseconds from an event to further checks. The log is written before the commit, which
/// becomes visible only after the flush, without an event.
const RECHECK_MICROS: [u64; 7] = [250, 1_000, 4_000, 16_000, 64_000, 256_000, 1_024_000];

/// The first delay longer than [`LAZY_CHECK_INTERVAL`].
const LAZY_RECHECK: usize = 5;

/// Runs until the watcher is dropped.
fn listen(watchers: &Weak<Watchers>, receiver: &Receiver<LogEvent>) {
    let mut checks = RECHECK_MICROS.len();
    loop {
        let event = match RECHECK_MICROS.get(checks) {
            Some(micros) => receiver.recv_timeout(Duration::from_micros(*micros)),
            None => receiver.recv().map_err(RecvTimeoutError::from),
        };
        let Some(watchers) = watchers.upgrade() else { return };
        let first = if watchers.demand.is_there() { 0 } else { LAZY_RECHECK };
        let is_gone = match event {
            Ok(LogEvent::Gone) => true,
            Err(RecvTimeoutError::Disconnected) => return,
            // The removal of a directory with open files causes no other event.
            Ok(LogEvent::Written) | Err(RecvTimeoutError::Timeout) => {
                checks = if event.is_ok() { first } else { checks + 1 };
                watchers.check().is_err_and(|error| error.kind() == StateErrorKind::NotFound)
            }
        };
        if is_gone {
            return watchers.end();
        }
    }
}

/// Watches the directory, since the log is created and removed.
fn watcher(
    database: &Path,
    sender: SyncSender<LogEvent>,
    demand: Arc<Demand>,
) -> notify::Result<RecommendedWatcher> {
    // The removal of a directory is reported only after all its files are closed, and all processes
    // have the gate open. The removal of the gate is reported immediately.
    let names = [database.to_owned(), beside(database, "-wal"), beside(database, "-gate")];
    let names = names.map(|path| path.file_name().map(OsStr::to_owned));
    let watched = directory(database).to_owned();
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<Event>| match event {
        Ok(event) if is_end(&event, &watched) => _ = sender.send(LogEvent::Gone),
        Ok(event) if !concerns(&event, &names) => {}
        // After an error, events may have been lost.
        _ => {
            demand.wait();
            let _ = sender.try_send(LogEvent::Written);
            // A commit writes many times. During this pause the system merges its events, and the
            // thread does not wake for each.
            thread::sleep(MIN_CHECK_INTERVAL);
        }
    })?;
    watcher.watch(directory(database), RecursiveMode::NonRecursive)?;
    Ok(watcher)
}

/// The directory was removed or renamed, so that no further events will come.
fn is_end(event: &Event, directory: &Path) -> bool {
    let gone = matches!(event.kind, EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_)));
    gone && event.paths.iter().any(|path| path == directory)
}

/// The file may have been written or replaced.
fn concerns(event: &Event, names: &[Option<std::ffi::OsString>]) -> bool {
    let is_one = event.paths.iter().any(|path| names.iter().any(|name| path.file_name() == name.as_deref()));
    event.need_rescan() || (is_one && !matches!(event.kind, EventKind::Access(_)))
}

fn cannot_watch(path: &Path, error: notify::Error) -> StateError {
    let is_limit = match &error.kind {
        ErrorKind::MaxFilesWatch => true,
        // EMFILE: the limit of watchers of this user, or of open files of this process.
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
