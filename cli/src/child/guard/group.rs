//! The process group of CMD: CMD and the processes that it started in its group.

pub(crate) use rustix::process::Signal;
use rustix::process::{Pid, WaitOptions, kill_process_group, test_kill_process_group, waitpgid};
use tokio::process::Child;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Group(Pid);

impl Group {
    /// A child that was started as the group's leader.
    pub(crate) fn led_by(child: &Child) -> Option<Self> {
        Self::of(child.id()?)
    }

    pub(crate) fn of(id: u32) -> Option<Self> {
        i32::try_from(id).ok().and_then(Pid::from_raw).map(Self)
    }

    /// Without the group of the leader, which is a guard. Linux only.
    pub(crate) fn of_session(leader: u32) -> Vec<Self> {
        let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let groups = processes.filter_map(|process| {
            let stat = std::fs::read_to_string(process.path().join("stat")).ok()?;
            // The name in parentheses may contain any characters. State, parent, group and session
            // follow.
            let mut numbers = stat.rsplit_once(')')?.1.split_whitespace().skip(2).map(str::parse::<u32>);
            let (group, session) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
            (session == leader && group != leader).then_some(group)
        });
        groups.filter_map(Self::of).collect()
    }

    pub(crate) fn has_id(self, id: Pid) -> bool {
        self.0 == id
    }

    pub(crate) fn id(self) -> u32 {
        self.0.as_raw_nonzero().get().unsigned_abs()
    }

    /// So that this process can wait for orphans among its descendants.
    pub(crate) fn adopt_orphans() {
        #[cfg(target_os = "linux")]
        let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    }

    pub(crate) fn signal(self, signal: Signal) {
        // Fails if all have just ended, or run as another user now.
        let _ = kill_process_group(self.0, signal);
    }

    /// Reaps children of this process. The leader must have been waited for.
    pub(crate) fn is_gone(self) -> bool {
        while let Ok(Some(_)) = waitpgid(self.0, WaitOptions::NOHANG) {}
        test_kill_process_group(self.0).is_err_and(|error| error == rustix::io::Errno::SRCH)
    }
}
