//! What the system knows of this process.

use std::{
    collections::HashMap,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use rustix::time::{ClockId, clock_gettime};

use crate::keyed_case::Doing;

/// Bytes of memory.
pub(crate) fn memory() -> f64 {
    field("/proc/self/status", "VmRSS:").unwrap_or(0) as f64 * 1024.0
}

/// Open files and sockets.
pub(crate) fn descriptors() -> usize {
    // Without the one that reads the directory.
    fs::read_dir("/proc/self/fd").map_or(0, |open| open.count() - 1)
}

/// What it has used of the processor, in seconds.
pub(crate) fn cpu() -> f64 {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    used.tv_sec as f64 + used.tv_nsec as f64 / 1e9
}

/// Looks on for a while, on a thread of its own so that the runtime waits as it would in an application.
pub(crate) async fn watch(time: Duration) -> Doing {
    tokio::task::yield_now().await;
    let (told, heard) = tokio::sync::oneshot::channel();
    thread::spawn(move || {
        // What went on before is to come to an end.
        thread::sleep(time / 10);
        let (began, cpu_before, wakes_before) = (Instant::now(), cpu(), wakes());
        thread::sleep(time);
        // A thread may have ended meanwhile.
        let wakes = wakes()
            .into_iter()
            .map(|(thread, wakes)| wakes.saturating_sub(wakes_before.get(&thread).copied().unwrap_or(0)));
        let (wakes, cpu) = (wakes.sum(), cpu() - cpu_before);
        told.send(Doing { seconds: began.elapsed().as_secs_f64(), wakes, cpu }).unwrap();
    });
    heard.await.unwrap()
}

/// How often each of its other threads went to sleep by itself, so far.
fn wakes() -> HashMap<OsString, u64> {
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let me = fs::read_link("/proc/thread-self").unwrap_or_default();
    let others = threads.map(|thread| thread.path()).filter(|thread| thread.file_name() != me.file_name());
    let of = |thread: PathBuf| {
        let wakes = field(thread.join("status"), "voluntary_ctxt_switches:")?;
        Some((thread.file_name()?.to_owned(), wakes))
    };
    others.filter_map(of).collect()
}

fn field(file: impl AsRef<Path>, name: &str) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    text.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
}
