//! Tasks that this worker cannot run for now: kinds whose programs are unusable, and all while the host lacks something.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fs,
    os::unix::fs::MetadataExt,
    path::Path,
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use interval_queue::{
    contract::outage::Outages,
    task_contract::{Counted, Kind},
};
use interval_queue_tasks::{TaskQueue, WorkerHandle};
use tokio::time::sleep;

use crate::{
    clock::now,
    exit::{Failure, say},
    program::Program,
};

/// How often it is looked whether an unusable program has changed.
const LOOK: Duration = Duration::from_secs(1);
/// How long no task is taken once the host could run none: the first time, and at most.
const REST: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(30));

/// What is set aside.
#[derive(Debug, Default)]
pub(super) struct Aside {
    workers: OnceLock<Vec<WorkerHandle>>,
    kinds: Mutex<BTreeMap<Kind, Unusable>>,
    host: Mutex<Host>,
}

/// A program that could not be started.
#[derive(Debug)]
struct Unusable {
    words: Vec<OsString>,
    file: Option<File>,
    failure: Failure,
}

/// What a host lacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Lack {
    /// A file with the inputs of a task.
    Inputs,
    /// A process.
    Process,
}

#[derive(Debug, Default)]
struct Host {
    /// How often in a row nothing could be run.
    failures: u32,
    outages: BTreeMap<Lack, Outages>,
}

/// What changes of a file when it is replaced, written, or made executable.
type File = (u64, u64, u64, u32, [i64; 4]);

fn file(path: &OsStr) -> Option<File> {
    let meta = fs::metadata(path).ok()?;
    let times = [meta.mtime(), meta.mtime_nsec(), meta.ctime(), meta.ctime_nsec()];
    Some((meta.dev(), meta.ino(), meta.size(), meta.mode(), times))
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Aside {
    /// These workers take no tasks of what is set aside.
    pub(super) fn watch(&self, workers: Vec<WorkerHandle>) {
        for kind in locked(&self.kinds).keys() {
            workers.iter().for_each(|worker| worker.set_aside(kind));
        }
        let _ = self.workers.set(workers);
    }

    fn workers(&self) -> impl Iterator<Item = &WorkerHandle> {
        self.workers.get().into_iter().flatten()
    }

    /// The program of a kind is unusable: tasks of the kind are not taken until its file changes.
    pub(super) fn set_aside(&self, kind: &Kind, words: &[OsString], failure: &Failure) {
        let program = words.first().map_or(OsStr::new(""), OsString::as_os_str);
        let unusable = Unusable { words: words.to_vec(), file: file(program), failure: failure.clone() };
        if locked(&self.kinds).insert(kind.clone(), unusable).is_none() {
            let (kind, path) = (kind.as_str(), Path::new(program).display());
            say(&format!(
                "kind {kind:?} is set aside: {}; its tasks are taken again when {path} changes",
                failure.message
            ));
        }
        self.workers().for_each(|worker| worker.set_aside(kind));
    }

    /// The host lacked something: no task is taken for a moment, and longer each time.
    pub(super) fn host_lacks(&self, what: Lack, failure: &Failure) {
        let mut host = locked(&self.host);
        let rest = REST.0.saturating_mul(1 << host.failures.min(16)).min(REST.1);
        host.failures = host.failures.saturating_add(1);
        let now = now().into_std();
        if host.outages.entry(what).or_default().failed(false, now, now) {
            say(&format!(
                "this host cannot run tasks: {}; they are given back, trying again",
                failure.message
            ));
        }
        self.workers().for_each(|worker| worker.rest(rest));
    }

    /// The host had what it lacked.
    pub(super) fn host_has(&self, what: Lack) {
        let mut host = locked(&self.host);
        host.failures = 0;
        let over = host.outages.get_mut(&what).and_then(|outages| outages.answered(now().into_std()));
        if over.is_some() {
            say("this host runs tasks again");
        }
    }

    /// Takes kinds up again whose programs have changed and can be used.
    pub(super) async fn take_up<T>(&self) -> T {
        loop {
            sleep(LOOK).await;
            for kind in self.usable() {
                say(&format!("kind {:?} is taken up again: its program has changed", kind.as_str()));
                self.workers().for_each(|worker| worker.take_up(&kind));
            }
        }
    }

    /// Takes out the kinds whose programs can be used by now.
    fn usable(&self) -> Vec<Kind> {
        let mut usable = Vec::new();
        locked(&self.kinds).retain(|kind, unusable| {
            let now = unusable.words.first().and_then(|program| file(program));
            if now == unusable.file {
                return true;
            }
            unusable.file = now;
            match Program::find(&unusable.words) {
                Ok(_) => usable.push(kind.clone()),
                Err(failure) => unusable.failure = failure,
            }
            usable.last() != Some(kind)
        });
        usable
    }

    /// The failure of a worker that was to end when nothing is left, and tasks that it could not run are.
    pub(super) async fn left(&self, queues: &[TaskQueue]) -> Option<Failure> {
        if locked(&self.kinds).is_empty() {
            return None;
        }
        for queue in queues {
            let Ok(overview) = queue.overview().await else { continue };
            let kinds = locked(&self.kinds);
            let mut counts = overview.counts.iter();
            let left = counts.find_map(|(kind, counted, count)| {
                let is_left = matches!(counted, Counted::Now(state) if !state.is_ended());
                kinds.get_key_value(kind).filter(|_| is_left && *count > 0)
            });
            if let Some((kind, Unusable { failure, .. })) = left {
                let message = format!("tasks of kind {:?} are left: {}", kind.as_str(), failure.message);
                return Some(Failure { message, ..failure.clone() });
            }
        }
        None
    }
}
