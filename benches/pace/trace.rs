//! What a process does while it is looked at.

use std::{
    fs, io,
    path::Path,
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};

use crate::clock;

/// How long it may take until all threads are watched.
const ATTACHING: Duration = Duration::from_secs(5);

/// The system calls that a process finishes meanwhile, but for the waits in which it is met; none: `strace`
/// is not here or may not look.
pub(crate) fn system_calls(pid: u32, meanwhile: Duration, directory: &Path) -> io::Result<Option<u64>> {
    let trace = directory.join("trace");
    let started = Command::new("strace")
        .args(["-f", "-p", &pid.to_string(), "-o"])
        .arg(&trace)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut strace) = started else { return Ok(None) };
    let deadline = clock::monotonic() + ATTACHING.as_nanos() as u64;
    while !is_traced(pid) {
        if clock::monotonic() > deadline || strace.try_wait()?.is_some() {
            let _ = strace.kill();
            strace.wait()?;
            return Ok(None);
        }
        thread::sleep(Duration::from_millis(10));
    }
    thread::sleep(meanwhile);
    // On this signal it lets go of the process and writes down all that it has seen.
    kill_process(Pid::from_child(&strace), Signal::INT)?;
    strace.wait()?;
    Ok(Some(finished_calls(&fs::read_to_string(&trace)?)))
}

/// Whether all threads of a process are watched.
fn is_traced(pid: u32) -> bool {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return false };
    threads.flatten().all(|thread| {
        let status = fs::read_to_string(thread.path().join("status")).unwrap_or_default();
        status.lines().any(|line| line.strip_prefix("TracerPid:").is_some_and(|tracer| tracer.trim() != "0"))
    })
}

/// Counts the calls in what `strace -f -o` wrote. Calls that were pending at its end are `detached`. Those
/// that were pending when it came are interrupted by it: they end with EINTR, or are `resuming`.
pub(crate) fn finished_calls(trace: &str) -> u64 {
    let finished = |line: &&str| {
        line.contains(" = ") && !line.contains("EINTR") && !line.contains("resuming") && !line.contains("+++")
    };
    trace.lines().filter(finished).count() as u64
}
