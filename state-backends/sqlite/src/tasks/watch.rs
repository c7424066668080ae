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
const GAP: Duration = Duration::from_micros(500);

/// Those who watch queues of a database.
pub(super) struct Watchers {
    store: SqliteStore,
    queues: Mutex<HashMap<QueueName, Watched>>,
    /// That of the log, as long as somebody watches.
    log: Mutex<Weak<RecommendedWatcher>>,
}

struct Watched {
    /// The last that was seen. `None`: nobody has looked yet.
    news: Option<i64>,
    notified: Sender<()>,
}

impl Watched {
    /// Notifies unless these news are known.
    fn saw(&mut self, news: i64) {
        if self.news.replace(news).is_some_and(|before| before != news) {
            self.notified.send_replace(());
        }
    }
}

/// Queues, each with the news that were seen last.
type Known = Vec<(QueueName, Option<i64>)>;

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
            let notified = {
                let mut queues = locked(&watchers.queues);
                // Otherwise queues that nobody watches any more would gather.
                queues.retain(|_, watched| !watched.notified.is_closed());
                let new = || Watched { news: None, notified: Sender::new(()) };
                queues.entry(queue.clone()).or_insert_with(new).notified.subscribe()
            };
            // What is stored from here on differs from this.
            let known = watchers.known();
            let all = watchers.store.look_here(&TASKS, news_of(&known))?;
            watchers.compare(&known, all);
            let next =
                async |(mut notified, log): (tokio::sync::watch::Receiver<()>, Arc<RecommendedWatcher>)| {
                    notified.changed().await.ok().map(|()| ((), (notified, log)))
                };
            Ok(Box::pin(stream::unfold((notified, log), next)) as Changes)
        })
        .await
    }

    /// A transaction of this process has stored these news of a queue.
    pub(super) fn saw(&self, queue: &QueueName, news: i64) {
        if let Some(watched) = locked(&self.queues).get_mut(queue) {
            watched.saw(news);
        }
    }

    /// The watched queues, with the news that were seen last.
    fn known(&self) -> Known {
        locked(&self.queues).iter().map(|(queue, watched)| (queue.clone(), watched.news)).collect()
    }

    /// Looks at all queues that are watched, unless the store is closed.
    fn look(&self) -> Result<(), StateError> {
        let known = self.known();
        if let Some(all) = self.store.look_unless_closed(&TASKS, news_of(&known))? {
            self.compare(&known, all);
        }
        Ok(())
    }

    /// Takes in what a look has read that began when these news were `known`. `None`: there are no tables.
    ///
    /// If this process has stored something meanwhile, what the look has read may be older, and is dropped: that
    /// write causes another look.
    fn compare(&self, known: &Known, all: Option<Vec<Option<i64>>>) {
        let all = all.unwrap_or_else(|| vec![None; known.len()]);
        let mut queues = locked(&self.queues);
        for ((queue, before), news) in known.iter().zip(all) {
            if let Some(watched) = queues.get_mut(queue).filter(|watched| watched.news == *before) {
                watched.saw(news.unwrap_or(0));
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
        let (tell, notified) = sync_channel(1);
        let path = self.store.path();
        let watcher = Arc::new(watcher(path, tell).map_err(|error| cannot_watch(path, error))?);
        let watchers = Arc::downgrade(self);
        let started = thread::Builder::new()
            .name("interval-queue-watch".into())
            .spawn(move || listen(&watchers, &notified));
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

fn news_of(queues: &Known) -> impl Fn(&Connection) -> Result<Vec<Option<i64>>, Fault> {
    |on| {
        check_version(on)?;
        let mut news = on.prepare_cached("SELECT news FROM interval_queue_task_queue WHERE name = ?1")?;
        let of = |(queue, _): &(QueueName, Option<i64>)| {
            Ok(news.query_row([queue.as_str()], |row| row.get(0)).optional()?)
        };
        queues.iter().map(of).collect()
    }
}

/// What was told by the operating system.
enum Told {
    /// Something may have been written.
    Written,
    /// The directory is gone.
    Gone,
}

/// When it is looked again after something was told, in microseconds. The log is written before the commit, which is
/// seen only when it was flushed, and nothing tells of that.
const AGAIN: [u64; 7] = [250, 1_000, 4_000, 16_000, 64_000, 256_000, 1_024_000];

/// Looks whenever something was told, and some times after it, until the watcher is dropped.
fn listen(watchers: &Weak<Watchers>, notified: &Receiver<Told>) {
    let mut looks = AGAIN.len();
    loop {
        let heard = match AGAIN.get(looks) {
            Some(micros) => notified.recv_timeout(Duration::from_micros(*micros)),
            None => notified.recv().map_err(RecvTimeoutError::from),
        };
        let Some(watchers) = watchers.upgrade() else { return };
        let is_gone = match heard {
            Ok(Told::Gone) => true,
            Err(RecvTimeoutError::Disconnected) => return,
            // A directory whose files are open is gone, and nothing else tells.
            Ok(Told::Written) | Err(RecvTimeoutError::Timeout) => {
                looks = if heard.is_ok() { 0 } else { looks + 1 };
                watchers.look().is_err_and(|error| error.kind() == StateErrorKind::NotFound)
            }
        };
        if is_gone {
            return watchers.end();
        }
    }
}

/// Watches the directory, since the log may be missing yet, and comes and goes.
fn watcher(database: &Path, tell: SyncSender<Told>) -> notify::Result<RecommendedWatcher> {
    // The system tells of the end of a directory once nobody has a file of it open, as all have the gate: that it is
    // removed is told at once.
    let names = [database.to_owned(), beside(database, "-wal"), beside(database, "-gate")];
    let names = names.map(|path| path.file_name().map(OsStr::to_owned));
    let watched = directory(database).to_owned();
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<Event>| match event {
        Ok(event) if is_end(&event, &watched) => _ = tell.send(Told::Gone),
        Ok(event) if !concerns(&event, &names) => {}
        // After an error something may have been missed.
        _ => {
            let _ = tell.try_send(Told::Written);
            // A commit writes many times. The system makes one event of what is written meanwhile, and this thread is
            // not woken for each.
            thread::sleep(GAP);
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
