//! Watches the notification file and the drop box of queues. The notification file is written under
//! the lock, shortly before the commit.

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use futures::stream;
use interval_queue_contract::{Changes, QueueName, StateError, StateErrorKind};
use interval_queue_store::files::blocking;
use notify::{
    ErrorKind, Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _, event::ModifyKind,
};
use tokio::sync::watch::Sender;

use super::names::{self, DROP_BOX};
use crate::store::Location;

pub(super) struct Watchers {
    location: Arc<Location>,
    queues: Arc<Mutex<Watched>>,
    watcher: Mutex<Option<RecommendedWatcher>>,
}

/// Watched queues by their directories.
type Watched = HashMap<PathBuf, Sender<()>>;

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Watchers {
    pub(super) fn new(location: Arc<Location>) -> Self {
        Self { location, queues: Arc::default(), watcher: Mutex::new(None) }
    }

    /// Creates the directory, since a missing one cannot be watched.
    pub(super) async fn watch(self: &Arc<Self>, queue: &QueueName) -> Result<Changes, StateError> {
        let (watchers, folder) = (self.clone(), names::folder(queue));
        blocking(move || {
            watchers.location.make()?;
            let drop_box = format!("{folder}/{DROP_BOX}");
            let files = watchers.location.files();
            files
                .make_directory(&drop_box)
                .map_err(|error| watchers.location.failed("make", &drop_box, error))?;
            let directory = files.at(&folder);
            let notified = {
                let mut queues = locked(&watchers.queues);
                // Entries without watchers would accumulate.
                queues.retain(|_, notified| !notified.is_closed());
                queues.entry(directory.clone()).or_default().subscribe()
            };
            watchers.listen(&directory)?;
            let next = async |mut notified: tokio::sync::watch::Receiver<()>| {
                notified.changed().await.ok().map(|()| ((), notified))
            };
            let kept = watchers.clone();
            let stream = stream::unfold((notified, kept), move |(notified, kept)| async move {
                let (item, notified) = next(notified).await?;
                Some((item, (notified, kept)))
            });
            Ok(Box::pin(stream) as Changes)
        })
        .await
    }

    fn listen(&self, directory: &Path) -> Result<(), StateError> {
        let mut shared = locked(&self.watcher);
        if shared.is_none() {
            let queues = self.queues.clone();
            let handler = move |event: notify::Result<Event>| match event {
                Ok(event) => on_event(&queues, &event),
                // Events may have been missed.
                Err(_) => notify_all(&queues),
            };
            *shared =
                Some(notify::recommended_watcher(handler).map_err(|error| cannot_watch(directory, error))?);
        }
        let Some(watcher) = shared.as_mut() else { return Ok(()) };
        for watched in [directory.to_owned(), directory.join(DROP_BOX)] {
            watcher
                .watch(&watched, RecursiveMode::NonRecursive)
                .map_err(|error| cannot_watch(directory, error))?;
        }
        Ok(())
    }
}

fn notify_all(queues: &Mutex<Watched>) {
    locked(queues).values().for_each(|notified| notified.send_replace(()));
}

fn on_event(queues: &Mutex<Watched>, event: &Event) {
    if event.need_rescan() {
        return notify_all(queues);
    }
    if matches!(event.kind, EventKind::Access(_)) {
        return;
    }
    let gone = matches!(event.kind, EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_)));
    let mut queues = locked(queues);
    for path in &event.paths {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let Some(directory) = path.parent() else { continue };
        // The directory of the queue itself is gone, and its stream ends.
        if gone && queues.remove(path).is_some() {
            continue;
        }
        let is_dropped = directory.ends_with(DROP_BOX)
            && !name.starts_with('.')
            && !matches!(event.kind, EventKind::Remove(_));
        let of_queue =
            if is_dropped { directory.parent() } else { Some(directory).filter(|_| name == "news") };
        if let Some(notified) = of_queue.and_then(|directory| queues.get(directory)) {
            notified.send_replace(());
        }
    }
}

pub(super) fn queues(location: &Location) -> Result<Vec<QueueName>, StateError> {
    let failed = |error| location.failed("look into", "", error);
    let mut queues = Vec::new();
    for entry in fs::read_dir(location.path()).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let Ok(text) = fs::read(entry.path().join("queue.json")) else { continue };
        let named = serde_json::from_slice::<super::queue_file::QueueFile>(&text).ok().map(|file| file.queue);
        let folder = entry.file_name().into_string().unwrap_or_default();
        queues.extend(named.or_else(|| names::queue_of(&folder)));
    }
    queues.sort_unstable();
    queues.dedup();
    Ok(queues)
}

fn cannot_watch(path: &Path, error: notify::Error) -> StateError {
    let is_limit = match &error.kind {
        ErrorKind::MaxFilesWatch => true,
        // EMFILE: too many watchers of this user, or open files of this process.
        ErrorKind::Io(error) => error.raw_os_error() == Some(24),
        _ => false,
    };
    let (kind, way_out) = if is_limit {
        (
            StateErrorKind::Full,
            "too many files are watched: raise fs.inotify.max_user_instances and fs.inotify.max_user_watches",
        )
    } else {
        (StateErrorKind::Unsupported, "it cannot be watched: leave wake-ups off")
    };
    StateError::new(kind, format!("cannot watch {}: {way_out}", path.display())).with_source(error)
}
