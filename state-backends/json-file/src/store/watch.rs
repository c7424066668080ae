//! Watching the file: after each event, a read under the lock shows whether the watched part
//! changed.
//!
//! The directory is watched, because the file may be missing or replaced. All streams of an open
//! file share a watcher, which ends with the last stream.

use std::{
    ffi::OsStr,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use futures::{
    StreamExt,
    stream::{self, BoxStream},
};
use interval_queue_contract::{StateError, StateErrorKind};
use interval_queue_store::files::{blocking, directory};
use notify::{
    ErrorKind, Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _, event::ModifyKind,
};
use tokio::{
    sync::watch::{Receiver, Sender},
    time::sleep,
};

use super::location::Location;

/// A number that differs after each watched change.
pub(crate) trait RevisionReader:
    FnOnce(&Path, Option<&[u8]>) -> Result<Option<u64>, StateError> + Clone + Send + 'static
{
}

impl<L> RevisionReader for L where
    L: FnOnce(&Path, Option<&[u8]>) -> Result<Option<u64>, StateError> + Clone + Send + 'static
{
}

/// Other parts of the file may change often.
const MIN_READ_INTERVAL: Duration = Duration::from_millis(10);

/// `None`: the file cannot be watched any more.
type Notifier = Arc<Mutex<Option<Sender<()>>>>;

/// Exists while a stream uses it.
#[derive(Debug, Default)]
pub(crate) struct Watchers(Mutex<Weak<Watcher>>);

#[derive(Debug)]
struct Watcher {
    notifier: Notifier,
    _directory: RecommendedWatcher,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Watchers {
    /// May block.
    pub(crate) fn watch<L: RevisionReader>(
        &self,
        location: &Arc<Location>,
        read: L,
    ) -> Result<BoxStream<'static, ()>, StateError> {
        let (watcher, receiver) = self.listen(location)?;
        // Subscribed before this read, so no change is missed.
        let revision = location.query(read.clone())?;
        let watched = Watched { location: location.clone(), read, revision, receiver, watcher };
        Ok(stream::unfold(watched, Watched::next).boxed())
    }

    fn listen(&self, location: &Location) -> Result<(Arc<Watcher>, Receiver<()>), StateError> {
        let mut shared = locked(&self.0);
        if let Some(watcher) = shared.upgrade()
            && let Some(receiver) = watcher.join()
        {
            return Ok((watcher, receiver));
        }
        let watcher =
            Arc::new(Watcher::new(location.path()).map_err(|error| cannot_watch(location.path(), error))?);
        *shared = Arc::downgrade(&watcher);
        let receiver = watcher.join().ok_or_else(|| lost(location.path()))?;
        Ok((watcher, receiver))
    }
}

impl Watcher {
    fn new(path: &Path) -> notify::Result<Self> {
        let notifier = Notifier::new(Mutex::new(Some(Sender::new(()))));
        let (sender, name) = (notifier.clone(), path.file_name().map(OsStr::to_owned));
        let directory = directory(path);
        let watched = directory.to_owned();
        let mut watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            let mut notifier = locked(&sender);
            match event {
                Ok(event) if is_end(&event, &watched) => *notifier = None,
                Ok(event) if !concerns(&event, name.as_deref()) => {}
                _ => notifier.iter().for_each(|notifier| notifier.send_replace(())),
            }
        })?;
        watcher.watch(directory, RecursiveMode::NonRecursive)?;
        Ok(Self { notifier, _directory: watcher })
    }

    fn join(&self) -> Option<Receiver<()>> {
        locked(&self.notifier).as_ref().map(Sender::subscribe)
    }

    /// The next `watch` creates a new watcher.
    fn end(&self) {
        *locked(&self.notifier) = None;
    }
}

/// The directory was removed or renamed.
fn is_end(event: &Event, directory: &Path) -> bool {
    let gone = matches!(event.kind, EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_)));
    gone && event.paths.iter().any(|path| path == directory)
}

fn concerns(event: &Event, name: Option<&OsStr>) -> bool {
    let is_of_file = event.paths.iter().any(|path| path.file_name() == name);
    event.need_rescan() || (is_of_file && !matches!(event.kind, EventKind::Access(_)))
}

struct Watched<L> {
    location: Arc<Location>,
    read: L,
    revision: Option<u64>,
    receiver: Receiver<()>,
    watcher: Arc<Watcher>,
}

impl<L: RevisionReader> Watched<L> {
    /// `None`: the file cannot be watched any more.
    async fn next(mut self) -> Option<((), Self)> {
        loop {
            self.receiver.changed().await.ok()?;
            let (location, read) = (self.location.clone(), self.read.clone());
            match blocking(move || location.query(read)).await {
                Ok(revision) if revision != self.revision => {
                    self.revision = revision;
                    return Some(((), self));
                }
                // No event reports a removed directory while its files are open.
                Err(error) if error.kind() == StateErrorKind::NotFound => {
                    self.watcher.end();
                    return None;
                }
                // A damaged or locked file is read after the next event.
                _ => {}
            }
            sleep(MIN_READ_INTERVAL).await;
        }
    }
}

fn cannot_watch(path: &Path, error: notify::Error) -> StateError {
    let is_limit = match &error.kind {
        ErrorKind::MaxFilesWatch => true,
        // EMFILE: too many watchers of this user, or open files of this process.
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

fn lost(path: &Path) -> StateError {
    let text = format!("cannot watch {}: its directory was removed", path.display());
    StateError::new(StateErrorKind::NotFound, text)
}
