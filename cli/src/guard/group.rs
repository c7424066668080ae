//! The process group of CMD: CMD, and what it has started without leaving the group.

pub(crate) use rustix::process::Signal;
use rustix::process::{Pid, WaitOptions, kill_process_group, test_kill_process_group, waitpgid};
use tokio::process::Child;

/// A process group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Group(Pid);

impl Group {
    /// That of a child which was started as its leader.
    pub(crate) fn led_by(child: &Child) -> Option<Self> {
        Self::of(child.id()?)
    }

    /// That with this id.
    pub(crate) fn of(id: u32) -> Option<Self> {
        i32::try_from(id).ok().and_then(Pid::from_raw).map(Self)
    }

    /// Those of a session but for that of its leader, which is a guard. Only Linux tells of sessions.
    pub(crate) fn of_session(leader: u32) -> Vec<Self> {
        let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let groups = processes.filter_map(|process| {
            let stat = std::fs::read_to_string(process.path().join("stat")).ok()?;
            // The name, in parentheses, may have any signs; behind it are state, parent, group and session.
            let mut numbers = stat.rsplit_once(')')?.1.split_whitespace().skip(2).map(str::parse::<u32>);
            let (group, session) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
            (session == leader && group != leader).then_some(group)
        });
        groups.filter_map(Self::of).collect()
    }

    /// Whether this is its id.
    pub(crate) fn has_id(self, id: Pid) -> bool {
        self.0 == id
    }

    pub(crate) fn id(self) -> u32 {
        self.0.as_raw_nonzero().get().unsigned_abs()
    }

    /// Makes orphans below this process its children, which it can wait for.
    pub(crate) fn adopt_orphans() {
        // Without, whoever adopts them waits for them.
        #[cfg(target_os = "linux")]
        let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    }

    /// Sends a signal to all of it.
    pub(crate) fn signal(self, signal: Signal) {
        // It fails if all have just ended, or have become another user's.
        let _ = kill_process_group(self.0, signal);
    }

    /// Whether all of it has ended. Reaps those that are children of this process; its leader must have been waited
    /// for.
    pub(crate) fn is_gone(self) -> bool {
        while let Ok(Some(_)) = waitpgid(self.0, WaitOptions::NOHANG) {}
        test_kill_process_group(self.0).is_err_and(|error| error == rustix::io::Errno::SRCH)
    }
}
