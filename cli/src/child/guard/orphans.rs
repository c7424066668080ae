//! Processes that CMD started and that have left its process group, as daemons do. On Linux the
//! guard becomes their parent when their own ends.

use std::{collections::BTreeSet, fs};

use rustix::{
    io::Errno,
    process::{Pid, Signal, WaitOptions, getpgid, kill_process, wait},
};

use super::group::Group;

/// Children of the guard outside the group of CMD. Only the guard waits for them, so their ids are
/// not reused.
#[derive(Debug, Default)]
pub(super) struct Orphans {
    signalled: BTreeSet<i32>,
    /// Processes of another user, which cannot be ended.
    refused: BTreeSet<i32>,
}

impl Orphans {
    /// Each orphan gets SIGTERM once, and SIGKILL when that is due; those that have ended are
    /// reaped. CMD must have been waited for. Returns whether no orphan is left.
    pub(super) fn are_gone(&mut self, group: Group, is_kill_due: bool) -> bool {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(_) => return true,
            }
        }
        let Some(children) = children() else { return true };
        // A list read while children end may be incomplete.
        let mut are_gone = !children.is_empty();
        for child in children {
            let id = child.as_raw_nonzero().get();
            if self.refused.contains(&id) || getpgid(Some(child)).is_ok_and(|of| group.has_id(of)) {
                continue;
            }
            are_gone = false;
            let is_new = self.signalled.insert(id);
            let signal = if is_kill_due { Signal::KILL } else { Signal::TERM };
            if !is_new && !is_kill_due {
                continue;
            }
            if kill_process(child, signal) == Err(Errno::PERM) {
                self.refused.insert(id);
            }
            // A stopped process handles SIGTERM only after SIGCONT.
            let _ = kill_process(child, Signal::CONT);
        }
        are_gone
    }
}

/// Of all threads of this process.
fn children() -> Option<Vec<Pid>> {
    let mut all = Vec::new();
    for thread in fs::read_dir("/proc/self/task").ok()? {
        let children = fs::read_to_string(thread.ok()?.path().join("children")).ok()?;
        all.extend(children.split_whitespace().filter_map(|id| Pid::from_raw(id.parse().ok()?)));
    }
    Some(all)
}
