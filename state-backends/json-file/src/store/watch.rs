//! Watching the file: the operating system says that something was done to it, a look under the lock says
//! whether that changed what is watched.
//!
//! The directory is watched, since the file may be missing yet, and is overwritten or replaced. One watcher
//! serves all who watch an open file, as long as somebody watches.

use std::{
    ffi::OsStr,
    path::Path,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use futures::{
    StreamExt,
    channel::mpsc::{Receiver, Sender, channel},
    stream::{self, BoxStream},
};
use interval_queue_contract::{StateError, StateErrorKind};
use interval_queue_store::files::{blocking, directory};
use notify::{
    ErrorKind, Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _, event::ModifyKind,
};
use tokio::time::sleep;

use super::place::Place;

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

/// The watchers, told of everything that is done to the file. None once it cannot be watched any more.
type Listeners = Arc<Mutex<Option<Vec<Sender<()>>>>>;

/// The watcher of a file, if anybody watches.
#[derive(Debug, Default)]
pub(crate) struct Watching(Mutex<Weak<Watcher>>);

#[derive(Debug)]
struct Watcher {
    listeners: Listeners,
    /// Ends with this.
    _directory: RecommendedWatcher,
}

impl Watching {
    /// Begins to watch. May block.
    pub(crate) fn watch<L: Look>(
        &self,
        place: &Arc<Place>,
        look: L,
    ) -> Result<BoxStream<'static, ()>, StateError> {
        let (watcher, told) = self.listen(place)?;
        // What is changed from here on is told, and differs from this.
        let revision = place.look(look.clone())?;
        let watched = Watched { place: place.clone(), look, revision, told, watcher };
        Ok(stream::unfold(watched, Watched::next).boxed())
    }

    fn listen(&self, place: &Place) -> Result<(Arc<Watcher>, Receiver<()>), StateError> {
        let mut shared = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(watcher) = shared.upgrade()
            && let Some(told) = join(&watcher.listeners)
        {
            return Ok((watcher, told));
        }
        let watcher =
            Arc::new(Watcher::new(place.path()).map_err(|error| cannot_watch(place.path(), error))?);
        *shared = Arc::downgrade(&watcher);
        let told = join(&watcher.listeners).ok_or_else(|| lost(place.path()))?;
        Ok((watcher, told))
    }
}

fn join(listeners: &Listeners) -> Option<Receiver<()>> {
    let mut listeners = listeners.lock().unwrap_or_else(PoisonError::into_inner);
    let listeners = listeners.as_mut()?;
    listeners.retain(|listener| !listener.is_closed());
    // A watcher with an item that it has not taken yet needs no second one.
    let (sender, receiver) = channel(0);
    listeners.push(sender);
    Some(receiver)
}

impl Watcher {
    fn new(path: &Path) -> notify::Result<Self> {
        let listeners = Listeners::new(Mutex::new(Some(Vec::new())));
        let (told, name) = (listeners.clone(), path.file_name().map(OsStr::to_owned));
        let directory = directory(path);
        let watched = directory.to_owned();
        let mut watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            let mut listeners = told.lock().unwrap_or_else(PoisonError::into_inner);
            match event {
                Ok(event) if is_end(&event, &watched) => *listeners = None,
                Ok(event) if !concerns(&event, name.as_deref()) => {}
                // After an error something may have been missed.
                _ => listeners.iter_mut().flatten().for_each(|listener| {
                    let _ = listener.try_send(());
                }),
            }
        })?;
        watcher.watch(directory, RecursiveMode::NonRecursive)?;
        Ok(Self { listeners, _directory: watcher })
    }

    /// Nobody is told any more, and who watches next gets another one.
    fn end(&self) {
        *self.listeners.lock().unwrap_or_else(PoisonError::into_inner) = None;
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
    place: Arc<Place>,
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
            self.told.next().await?;
            let (place, look) = (self.place.clone(), self.look.clone());
            match blocking(move || place.look(look)).await {
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
