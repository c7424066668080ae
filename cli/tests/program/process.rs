//! Processes that a test starts: signalled, waited for with a deadline, never left behind.

use std::{
    io::Read,
    process::{Child, Command, ExitStatus, Output, Stdio},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

pub(crate) use interval_queue_test_support::wait_until;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

/// How much time passes for the test.
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    #[allow(clippy::disallowed_methods, reason = "the clock module of these tests")]
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

/// A process that is killed if the test forgets it.
pub(crate) struct Process(Option<Child>);

impl Process {
    /// Starts it with pipes; what it writes must fit into them until it is waited for.
    pub(crate) fn spawn(command: &mut Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Self(Some(command.spawn().unwrap()))
    }

    /// One that was started in another way.
    pub(crate) fn adopt(child: Child) -> Self {
        Self(Some(child))
    }

    pub(crate) fn id(&self) -> u32 {
        self.0.as_ref().unwrap().id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(pid(self.id()), signal).unwrap();
    }

    /// How it ended; none while it runs.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.0.as_mut().unwrap().try_wait().unwrap()
    }

    /// Waits for its end.
    pub(crate) fn finish(mut self) -> Output {
        let child = self.0.as_mut().unwrap();
        let (stdout, stderr) = (read(child.stdout.take()), read(child.stderr.take()));
        wait_until("the process ends", || self.ended().is_some());
        let status = self.0.take().unwrap().wait().unwrap();
        Output { status, stdout: stdout.join().unwrap(), stderr: stderr.join().unwrap() }
    }
}

/// Reads all of a pipe, beside the test.
fn read(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        pipe.map(|mut pipe| pipe.read_to_end(&mut bytes).unwrap());
        bytes
    })
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Whether there is such a process.
pub(crate) fn is_alive(id: u32) -> bool {
    test_kill_process(pid(id)).is_ok()
}

pub(crate) fn pid(id: u32) -> Pid {
    Pid::from_raw(id.try_into().unwrap()).unwrap()
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
