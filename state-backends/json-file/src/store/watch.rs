//! Watching the file: the operating system says that something was done to it, a look under the lock says
//! whether that changed what is watched.
//!
//! The directory is watched, since the file may be missing yet, and is overwritten or replaced. One watcher
//! serves all who watch an open file, as long as somebody watches.

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

/// Finds a number in the text that is another one whenever what is watched was changed.
pub(crate) trait Look:
    FnOnce(&Path, Option<&[u8]>) -> Result<Option<u64>, StateError> + Clone + Send + 'static
{
}

impl<L> Look for L where
    L: FnOnce(&Path, Option<&[u8]>) -> Result<Option<u64>, StateError> + Clone + Send + 'static
{
}

/// The least time between two looks: other parts of the file may be busy.
const GAP: Duration = Duration::from_millis(10);

/// Tells of everything that is done to the file. None once it cannot be watched any more.
type Teller = Arc<Mutex<Option<Sender<()>>>>;

/// The watcher of a file, if anybody watches.
#[derive(Debug, Default)]
pub(crate) struct Watchers(Mutex<Weak<Watcher>>);

#[derive(Debug)]
struct Watcher {
    teller: Teller,
    /// Ends with this.
    _directory: RecommendedWatcher,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Watchers {
    /// Begins to watch. May block.
    pub(crate) fn watch<L: Look>(
        &self,
        location: &Arc<Location>,
        look: L,
    ) -> Result<BoxStream<'static, ()>, StateError> {
        let (watcher, told) = self.listen(location)?;
        // What is changed from here on is told, and differs from this.
        let revision = location.look(look.clone())?;
        let watched = Watched { location: location.clone(), look, revision, told, watcher };
        Ok(stream::unfold(watched, Watched::next).boxed())
    }

    fn listen(&self, location: &Location) -> Result<(Arc<Watcher>, Receiver<()>), StateError> {
        let mut shared = locked(&self.0);
        if let Some(watcher) = shared.upgrade()
            && let Some(told) = watcher.join()
        {
            return Ok((watcher, told));
        }
        let watcher =
            Arc::new(Watcher::new(location.path()).map_err(|error| cannot_watch(location.path(), error))?);
        *shared = Arc::downgrade(&watcher);
        let told = watcher.join().ok_or_else(|| lost(location.path()))?;
        Ok((watcher, told))
    }
}

impl Watcher {
    fn new(path: &Path) -> notify::Result<Self> {
        let teller = Teller::new(Mutex::new(Some(Sender::new(()))));
        let (tells, name) = (teller.clone(), path.file_name().map(OsStr::to_owned));
        let directory = directory(path);
        let watched = directory.to_owned();
        let mut watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            let mut teller = locked(&tells);
            match event {
                Ok(event) if is_end(&event, &watched) => *teller = None,
                Ok(event) if !concerns(&event, name.as_deref()) => {}
                // After an error something may have been missed.
                _ => teller.iter().for_each(|teller| teller.send_replace(())),
            }
        })?;
        watcher.watch(directory, RecursiveMode::NonRecursive)?;
        Ok(Self { teller, _directory: watcher })
    }

    fn join(&self) -> Option<Receiver<()>> {
        locked(&self.teller).as_ref().map(Sender::subscribe)
    }

    /// Nobody is told any more, and whoever watches next gets another one.
    fn end(&self) {
        *locked(&self.teller) = None;
    }
}

/// Whether the directory was removed or has another name, so that no more will come.
fn is_end(event: &Event, directory: &Path) -> bool {
    let gone = matches!(event.kind, EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_)));
    gone && event.paths.iter().any(|path| path == directory)
}

/// Whether something may have been written to the file of that name, or put in its place.
fn concerns(event: &Event, name: Option<&OsStr>) -> bool {
    let is_of_file = event.paths.iter().any(|path| path.file_name() == name);
    event.need_rescan() || (is_of_file && !matches!(event.kind, EventKind::Access(_)))
}

/// One who watches.
struct Watched<L> {
    location: Arc<Location>,
    look: L,
    /// The last one that is known.
    revision: Option<u64>,
    told: Receiver<()>,
    watcher: Arc<Watcher>,
}

impl<L: Look> Watched<L> {
    /// Waits for a change. None: the file cannot be watched any more.
    async fn next(mut self) -> Option<((), Self)> {
        loop {
            self.told.changed().await.ok()?;
            let (location, look) = (self.location.clone(), self.look.clone());
            match blocking(move || location.look(look)).await {
                Ok(revision) if revision != self.revision => {
                    self.revision = revision;
                    return Some(((), self));
                }
                // The directory is gone, which is told by nothing else as long as its files are open.
                Err(error) if error.kind() == StateErrorKind::NotFound => {
                    self.watcher.end();
                    return None;
                }
                // A file that is spoilt or locked is looked at again when something is done to it.
                _ => {}
            }
            sleep(GAP).await;
        }
    }
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

fn lost(path: &Path) -> StateError {
    let text = format!("cannot watch {}: its directory was removed", path.display());
    StateError::new(StateErrorKind::NotFound, text)
}
