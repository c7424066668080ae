//! CMD as a child process: needed if this process must stay to renew the lease or to end CMD in
//! time.

use std::{
    future::pending,
    io,
    os::unix::process::ExitStatusExt,
    pin::pin,
    process::ExitStatus,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use rustix::process::{Pid, Resource, Rlimit, Signal as Kill, kill_process, setrlimit};
use signal_hook::{consts::SIGCHLD, flag};
use tokio::{process::Child, time::sleep};

use crate::{
    exit::{BY_SIGNAL, Ending, Failure, TIMED_OUT},
    program::{Program, cannot_execute},
    signals::{Signal, Signals},
};

/// Time from SIGTERM to SIGKILL if CMD exceeds its timeout.
const GRACE: Duration = Duration::from_secs(5);

/// The end of CMD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    ByItself(ExitStatus),
    TimedOut,
}

/// Runs CMD to its end, forwards signals to it, and ends it after `timeout`.
pub(crate) async fn run(
    program: Program,
    timeout: Option<Duration>,
    signals: &mut Signals,
) -> Result<Ending, Failure> {
    expect_children()?;
    let command = program.into_command();
    let name = command.get_program().to_owned();
    let spawned = tokio::process::Command::from(command).spawn();
    let mut child = spawned.map_err(|error| cannot_execute(&name, &error))?;
    let ended = wait(&mut child, timeout, async || signals.next().await).await;
    match ended.map_err(|error| Failure::os("cannot wait for the command", &error))? {
        Ended::ByItself(status) => Ok(ending_of(status)),
        Ended::TimedOut => Ok(Ending::Code(TIMED_OUT)),
    }
}

/// Registers a handler for SIGCHLD: if SIGCHLD is ignored, the system discards exit codes.
pub(crate) fn expect_children() -> Result<(), Failure> {
    let listening = flag::register(SIGCHLD, Arc::new(AtomicBool::new(false)));
    listening.map(drop).map_err(|error| Failure::os("cannot listen to SIGCHLD", &error))
}

/// Waits for the end of a child, forwards signals to it, and ends it after `timeout`.
pub(crate) async fn wait(
    child: &mut Child,
    timeout: Option<Duration>,
    mut next_signal: impl AsyncFnMut() -> Signal,
) -> io::Result<Ended> {
    let mut timed_out = false;
    let mut deadline = pin!(sleep_or_never(timeout));
    let status = loop {
        let signal = tokio::select! {
            status = child.wait() => break status?,
            signal = next_signal() => Some(signal),
            () = deadline.as_mut() => None,
        };
        match signal {
            Some(signal) => hand_on(child, signal),
            None if timed_out => {
                kill(child, Kill::KILL);
                deadline.set(sleep_or_never(None));
            }
            None => {
                timed_out = true;
                kill(child, Kill::TERM);
                // A stopped process handles SIGTERM only after SIGCONT.
                kill(child, Kill::CONT);
                deadline.set(sleep_or_never(Some(GRACE)));
            }
        }
    };
    Ok(if timed_out { Ended::TimedOut } else { Ended::ByItself(status) })
}

async fn sleep_or_never(duration: Option<Duration>) {
    match duration {
        Some(duration) => sleep(duration).await,
        None => pending().await,
    }
}

/// Forwards a signal that a process sent to this one only. CMD is in this process's group, so it
/// already has the signals of the terminal (Ctrl-C, Ctrl-\, hang-up). A second one looks like an
/// impatient user.
fn hand_on(child: &Child, signal: Signal) {
    if signal.sent
        && let Some(signal) = Kill::from_named_raw(signal.number)
    {
        kill(child, signal);
    }
}

fn kill(child: &Child, signal: Kill) {
    let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    if let Some(pid) = pid {
        // Fails if CMD has just ended, or runs as another user now.
        let _ = kill_process(pid, signal);
    }
}

fn ending_of(status: ExitStatus) -> Ending {
    let Some(signal) = status.signal() else {
        return Ending::Code(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(BY_SIGNAL));
    };
    // This process dies by the same signal, but must not overwrite the core file of CMD.
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    Ending::Signal(signal)
}
