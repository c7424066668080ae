//! What CMD has started and what has left its process group, as daemons do. When the parent of such a process ends, the
//! guard becomes its parent, where the system has subreapers: on Linux.

use std::{collections::BTreeSet, fs};

use rustix::{
    io::Errno,
    process::{Pid, Signal, WaitOptions, getpgid, kill_process, wait},
};

use super::group::Group;

/// The children of the guard that are not in the group of CMD. Nobody else waits for them, so that none of their ids
/// can mean another process.
#[derive(Debug, Default)]
pub(super) struct Orphans {
    told: BTreeSet<i32>,
    /// They belong to another user, and cannot be ended.
    refused: BTreeSet<i32>,
}

impl Orphans {
    /// Ends those that there are, and reaps those that have ended: each gets SIGTERM once, and SIGKILL when
    /// that is due. CMD must have been waited for. Whether none is left.
    pub(super) fn are_gone(&mut self, group: Group, is_kill_due: bool) -> bool {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(_) => return true,
            }
        }
        // Where the system does not tell its children, they are out of reach.
        let Some(children) = children() else { return true };
        // A list that is read while children end may lack some. They are in the next one.
        let mut are_gone = !children.is_empty();
        for child in children {
            let id = child.as_raw_nonzero().get();
            if self.refused.contains(&id) || getpgid(Some(child)).is_ok_and(|of| group.has_id(of)) {
                continue;
            }
            are_gone = false;
            let is_new = self.told.insert(id);
            let signal = if is_kill_due { Signal::KILL } else { Signal::TERM };
            if !is_new && !is_kill_due {
                continue;
            }
            if kill_process(child, signal) == Err(Errno::PERM) {
                self.refused.insert(id);
            }
            // A stopped process dies of SIGTERM only once it continues.
            let _ = kill_process(child, Signal::CONT);
        }
        are_gone
    }
}

/// The children of all threads of this process.
fn children() -> Option<Vec<Pid>> {
    let mut all = Vec::new();
    for thread in fs::read_dir("/proc/self/task").ok()? {
        let children = fs::read_to_string(thread.ok()?.path().join("children")).ok()?;
        all.extend(children.split_whitespace().filter_map(|id| Pid::from_raw(id.parse().ok()?)));
    }
    Some(all)
}
