//! Tasks that this worker cannot run for now: kinds with unusable programs, and all kinds while the
//! host lacks a resource.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fs,
    os::unix::fs::MetadataExt,
    path::Path,
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use interval_queue::Outages;
use interval_queue_tasks::{Counter, Kind, TaskQueue, WorkerHandle};
use tokio::time::sleep;

use crate::{
    clock::now,
    exit::{Failure, report},
    program::Program,
};

const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// After the host could run nothing: first and maximum time.
const REST_TIMES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(30));

#[derive(Debug, Default)]
pub(super) struct Aside {
    workers: OnceLock<Vec<WorkerHandle>>,
    kinds: Mutex<BTreeMap<Kind, Unusable>>,
    host: Mutex<Host>,
}

#[derive(Debug)]
struct Unusable {
    words: Vec<OsString>,
    file: Option<File>,
    failure: Failure,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Lack {
    /// A file with the inputs of a task.
    Inputs,
    /// A process.
    Process,
}

#[derive(Debug, Default)]
struct Host {
    /// Number of failures in a row.
    failures: u32,
    outages: BTreeMap<Lack, Outages>,
}

/// Changes when a file is replaced, written or made executable.
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
    /// The workers lease no tasks of kinds that are set aside.
    pub(super) fn watch(&self, workers: Vec<WorkerHandle>) {
        for kind in locked(&self.kinds).keys() {
            workers.iter().for_each(|worker| worker.set_aside(kind));
        }
        let _ = self.workers.set(workers);
    }

    fn workers(&self) -> impl Iterator<Item = &WorkerHandle> {
        self.workers.get().into_iter().flatten()
    }

    /// No tasks of the kind are leased until the program's file changes.
    pub(super) fn set_aside(&self, kind: &Kind, words: &[OsString], failure: &Failure) {
        let program = words.first().map_or(OsStr::new(""), OsString::as_os_str);
        let unusable = Unusable { words: words.to_vec(), file: file(program), failure: failure.clone() };
        if locked(&self.kinds).insert(kind.clone(), unusable).is_none() {
            let (kind, path) = (kind.as_str(), Path::new(program).display());
            report(&format!(
                "kind {kind:?} is set aside: {}; its tasks are taken again when {path} changes",
                failure.message
            ));
        }
        self.workers().for_each(|worker| worker.set_aside(kind));
    }

    /// No task is leased for some time, which doubles with each failure.
    pub(super) fn host_lacks(&self, what: Lack, failure: &Failure) {
        let mut host = locked(&self.host);
        let failures = host.failures;
        host.failures = failures.saturating_add(1);
        let now = now().into_std();
        if host.outages.entry(what).or_default().failed(false, now, now) {
            report(&format!(
                "this host cannot run tasks: {}; they are given back, trying again",
                failure.message
            ));
        }
        drop(host);
        self.rest(failures);
    }

    /// Leases no task for the returned time, which doubles with each failure.
    pub(super) fn rest(&self, failures: u32) -> Duration {
        let rest = REST_TIMES.0.saturating_mul(1 << failures.min(16)).min(REST_TIMES.1);
        self.workers().for_each(|worker| worker.rest(rest));
        rest
    }

    pub(super) fn host_has(&self, what: Lack) {
        let mut host = locked(&self.host);
        host.failures = 0;
        let over = host.outages.get_mut(&what).and_then(|outages| outages.answered(now().into_std()));
        if over.is_some() {
            report("this host runs tasks again");
        }
    }

    /// Their programs have changed and are usable.
    pub(super) async fn take_up<T>(&self) -> T {
        loop {
            sleep(CHECK_INTERVAL).await;
            for kind in self.usable() {
                report(&format!("kind {:?} is taken up again: its program has changed", kind.as_str()));
                self.workers().for_each(|worker| worker.take_up(&kind));
            }
        }
    }

    /// Removes and returns the kinds whose programs are usable now.
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

    /// Tasks of kinds that are set aside are left.
    pub(super) async fn left(&self, queues: &[TaskQueue]) -> Option<Failure> {
        if locked(&self.kinds).is_empty() {
            return None;
        }
        for queue in queues {
            let Ok(overview) = queue.overview().await else { continue };
            let kinds = locked(&self.kinds);
            let mut counts = overview.counts.iter();
            let left = counts.find_map(|(kind, counted, count)| {
                let is_left = matches!(counted, Counter::Now(state) if !state.is_ended());
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
