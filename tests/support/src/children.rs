//! The processes that a server has started itself, each for a connection or a task of its own.

use std::{fs, path::Path, process::Command, thread, time::Duration};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};

/// How long it may take until killed ones are gone: about two seconds.
const ATTEMPTS: u32 = 200;
const PAUSE: Duration = Duration::from_millis(10);

/// The children of a process.
pub(crate) fn of(parent: Pid) -> Vec<Pid> {
    let parent = parent.as_raw_nonzero().get();
    let all = pairs();
    all.into_iter().filter(|pair| pair.1 == parent).filter_map(|pair| Pid::from_raw(pair.0)).collect()
}

/// Sends a signal to those that are still there.
pub(crate) fn signal(children: &[Pid], signal: Signal) {
    for child in children {
        let _ = kill_process(*child, signal);
    }
}

/// Waits until all of them are gone.
pub(crate) fn wait(children: &[Pid]) {
    for _ in 0..ATTEMPTS {
        if children.iter().all(|child| is_gone(*child)) {
            return;
        }
        thread::sleep(PAUSE);
    }
}

/// Whether it is gone, or nothing but its name is left, which the host may be slow to forget.
pub(crate) fn is_gone(process: Pid) -> bool {
    let is_dead = || {
        let stat = fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero()));
        stat.is_ok_and(|stat| stat.contains(") Z "))
    };
    test_kill_process(process).is_err() || is_dead()
}

/// All processes of the host with their parents.
fn pairs() -> Vec<(i32, i32)> {
    if let Ok(entries) = fs::read_dir("/proc") {
        return entries.map_while(Result::ok).filter_map(|entry| stat(&entry.path())).collect();
    }
    let output = Command::new("ps").args(["-A", "-o", "pid=,ppid="]).output().expect("run ps");
    let pair = |line: &str| {
        let mut numbers = line.split_whitespace().map(str::parse);
        Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
    };
    String::from_utf8_lossy(&output.stdout).lines().filter_map(pair).collect()
}

/// The numbers in `/proc/PID/stat`: the process, its name in parentheses, its state, its parent.
fn stat(process: &Path) -> Option<(i32, i32)> {
    let text = fs::read_to_string(process.join("stat")).ok()?;
    let (pid, rest) = text.split_once(' ')?;
    let parent = rest.rsplit_once(')')?.1.split_whitespace().nth(1)?;
    Some((pid.parse().ok()?, parent.parse().ok()?))
}
