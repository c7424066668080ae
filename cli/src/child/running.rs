//! A command as a direct child of this process, which renews the lease, keeps the output, or ends
//! the command in time.

use std::{
    io,
    pin::pin,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use rustix::process::{Pid, Signal as Kill, kill_process};
use signal_hook::{consts::SIGCHLD, flag};
use tokio::process::{Child, Command};

use super::{
    captured::Captured,
    end::End,
    pipe::{self, PipeReader},
};
use crate::{clock::expired, exit::Failure, signals::Signal};

/// From SIGTERM to SIGKILL if a command exceeds its timeout.
const GRACE: Duration = Duration::from_secs(5);

/// If SIGCHLD is ignored, the system discards exit codes.
pub(crate) fn expect_children() -> Result<(), Failure> {
    let listening = flag::register(SIGCHLD, Arc::new(AtomicBool::new(false)));
    listening.map(drop).map_err(|error| Failure::os("cannot listen to SIGCHLD", &error))
}

#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    stdout: Option<PipeReader<Captured>>,
    stderr: Option<PipeReader<Captured>>,
}

impl Running {
    /// Output to pipes is captured.
    pub(crate) fn start(mut command: Command) -> io::Result<Self> {
        let mut child = command.spawn()?;
        let stdout = child.stdout.take().map(|pipe| PipeReader::start(pipe, Captured::default(), None));
        let stderr = child.stderr.take().map(|pipe| PipeReader::start(pipe, Captured::default(), None));
        Ok(Self { child, stdout, stderr })
    }

    /// Forwards signals to the command.
    pub(crate) async fn wait(
        &mut self,
        timeout: Option<Duration>,
        mut next_signal: impl AsyncFnMut() -> Signal,
    ) -> End {
        let mut timed_out = false;
        let mut deadline = pin!(expired(timeout));
        let status = loop {
            let signal = tokio::select! {
                status = self.child.wait() => break status,
                signal = next_signal() => Some(signal),
                _ = deadline.as_mut() => None,
            };
            match signal {
                Some(signal) => self.hand_on(signal),
                None if timed_out => {
                    self.kill(Kill::KILL);
                    deadline.set(expired(None));
                }
                None => {
                    timed_out = true;
                    self.kill(Kill::TERM);
                    // A stopped process handles SIGTERM only after SIGCONT.
                    self.kill(Kill::CONT);
                    deadline.set(expired(Some(GRACE)));
                }
            }
        };
        match End::of(status) {
            End::Code(_) | End::Signal(_) if timed_out => End::TimedOut,
            end => end,
        }
    }

    pub(crate) async fn output(self) -> (Captured, Captured) {
        pipe::finish(self.stdout, self.stderr).await
    }

    /// Forwards a signal that a process sent to this process only. A command is in the group of
    /// this process, so it already has the signals of the terminal (Ctrl-C, Ctrl-\, hang-up). A
    /// second one looks like an impatient user.
    fn hand_on(&self, signal: Signal) {
        if signal.sent
            && let Some(signal) = Kill::from_named_raw(signal.number)
        {
            self.kill(signal);
        }
    }

    fn kill(&self, signal: Kill) {
        let pid = self.child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let Some(pid) = pid {
            // Fails if the command has just ended, or runs as another user now.
            let _ = kill_process(pid, signal);
        }
    }
}
