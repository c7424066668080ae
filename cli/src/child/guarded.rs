//! A command under its guard, as the worker handles it.

use std::{
    ffi::OsString,
    io,
    os::{fd::OwnedFd, unix::net::UnixStream as Socket},
    path::PathBuf,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use rustix::process::Signal;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    process::{Child, ChildStdout, Command},
    sync::{mpsc, watch},
    time::{sleep, timeout},
};

use super::{
    end::{End, Finished},
    guard::{self, Group, GuardReport, Lease, Order},
    output_tail::OutputTail,
    pipe::{self, PipeReader},
    stderr_writer::StderrHandle,
};
use crate::{
    clock::expired,
    exit::{Failure, OSERR},
};

/// From SIGTERM to SIGKILL if a run is stopped or exceeds its timeout. A stopped handler has five
/// seconds.
const GRACE: Duration = Duration::from_secs(3);
/// After that the guard must answer, or it counts as broken.
const GUARD_GRACE: Duration = Duration::from_millis(500);
/// Time limit for a killed group to end, without its guard.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);
/// Kept of stdout's beginning, and of its end.
const OUTPUT_BYTES: usize = 64 * 1024;
/// Kept of stderr's end. A store keeps 4 KiB of an error.
const ERROR_BYTES: usize = 3 * 1024;

#[derive(Debug)]
pub(crate) struct RunRequest {
    pub(crate) words: Vec<OsString>,
    pub(crate) environment: Vec<(&'static str, OsString)>,
    pub(crate) timeout: Option<Duration>,
}

/// Runs CMD to its end.
///
/// # Cancel safety
///
/// Dropping it leaves the end to the guard.
pub(crate) async fn run(
    request: RunRequest,
    payload: Vec<u8>,
    lease: watch::Receiver<Lease>,
    stop: impl Future<Output = ()>,
    writer: StderrHandle,
) -> Finished<OutputTail> {
    let mut guarded = match Guarded::start(&request, lease, writer) {
        Ok(guarded) => guarded,
        Err(failure) => return End::Unable(failure).into(),
    };
    let keep = OutputTail::of(OUTPUT_BYTES, OUTPUT_BYTES);
    let output = guarded.stdout().map(|pipe| PipeReader::start(pipe, keep, None));
    let (sender, input) = mpsc::unbounded_channel();
    let _ = sender.send(payload);
    drop(sender);
    let (end, errors) = guarded.follow(input, request.timeout, stop).await;
    if matches!(end, End::Stopped) {
        // The output of a stopped run is not needed.
        return end.into();
    }
    let (stdout, stderr) = pipe::finish(output, errors).await;
    Finished { end, stdout, stderr }
}

pub(super) struct Guarded {
    guard: Child,
    link: Link,
    errors: Option<PipeReader<OutputTail>>,
}

impl Guarded {
    pub(super) fn start(
        request: &RunRequest,
        lease: watch::Receiver<Lease>,
        writer: StderrHandle,
    ) -> Result<Self, Failure> {
        let (mut guard, socket) = start(request).map_err(|error| {
            let failure = Failure::os("cannot start a guard", &error);
            Failure { passes: true, ..failure }
        })?;
        let keep = OutputTail::of(0, ERROR_BYTES);
        let errors = guard.stderr.take().map(|pipe| PipeReader::start(pipe, keep, Some(writer)));
        let (read, write) = socket.into_split();
        let link = Link { reports: BufReader::new(read).lines(), write, lease, group: None, stopped: None };
        Ok(Self { guard, link, errors })
    }

    /// Once.
    pub(super) fn stdout(&mut self) -> Option<ChildStdout> {
        self.guard.stdout.take()
    }

    /// Gives CMD all `input`. Returns its end with the end of stderr.
    pub(super) async fn follow(
        mut self,
        input: mpsc::UnboundedReceiver<Vec<u8>>,
        limit: Option<Duration>,
        stop: impl Future<Output = ()>,
    ) -> (End, Option<PipeReader<OutputTail>>) {
        let session = self.guard.id();
        self.link.begin().await;
        let end = match self.link.follow(input, limit, stop).await {
            Some(end) => end,
            None => self.link.give_up(&mut self.guard, session).await,
        };
        // The guard ends as soon as it has reported the end.
        let _ = self.guard.wait().await;
        (end, self.errors)
    }
}

/// Finds the executable also after it was replaced.
fn this_program() -> io::Result<PathBuf> {
    let own = PathBuf::from("/proc/self/exe");
    if own.exists() { Ok(own) } else { std::env::current_exe() }
}

fn start(request: &RunRequest) -> io::Result<(Child, UnixStream)> {
    let (ours, theirs) = Socket::pair()?;
    ours.set_nonblocking(true)?;
    let mut command = Command::new(this_program()?);
    command
        .arg0(guard::PROCESS_NAME)
        .arg(guard::GUARD_ARGUMENT)
        .args(&request.words)
        // The trace context of this process belongs to no task.
        .env_remove("TRACEPARENT")
        .envs(request.environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    Ok((command.spawn()?, UnixStream::from_std(ours)?))
}

struct Link {
    reports: Lines<BufReader<OwnedReadHalf>>,
    write: OwnedWriteHalf,
    lease: watch::Receiver<Lease>,
    group: Option<Group>,
    /// Why the run was stopped.
    stopped: Option<Stopped>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stopped {
    Asked,
    TooLong,
}

impl Link {
    async fn begin(&mut self) {
        let lease = self.lease.borrow_and_update().order();
        let _ = self.write.write_all((lease.line() + &Order::Start.line()).as_bytes()).await;
    }

    /// Gives CMD all `input`, and waits until the guard reports the end. Returns `None` if it does
    /// not answer.
    async fn follow(
        &mut self,
        mut input: mpsc::UnboundedReceiver<Vec<u8>>,
        limit: Option<Duration>,
        stop: impl Future<Output = ()>,
    ) -> Option<End> {
        let mut is_open = true;
        let mut stop = std::pin::pin!(stop);
        let mut too_long = std::pin::pin!(expired(limit));
        let mut guard_timeout = std::pin::pin!(expired(None));
        loop {
            tokio::select! {
                biased;
                line = self.reports.next_line() => {
                    let guard_report = line.ok().flatten().as_deref().and_then(GuardReport::of_line)?;
                    if let Some(how) = self.apply(guard_report) {
                        return Some(how);
                    }
                }
                () = stop.as_mut(), if self.stopped.is_none() => {
                    self.stop(Stopped::Asked);
                    guard_timeout.set(expired(Some(GRACE + GUARD_GRACE)));
                }
                _ = too_long.as_mut(), if self.stopped.is_none() => {
                    self.stop(Stopped::TooLong);
                    guard_timeout.set(expired(Some(GRACE + GUARD_GRACE)));
                }
                _ = guard_timeout.as_mut() => return None,
                more = input.recv(), if is_open => {
                    is_open = more.is_some();
                    self.pass_on(more).await;
                }
                Ok(()) = self.lease.changed() => {
                    let order = self.lease.borrow_and_update().order();
                    self.send(&order);
                }
            }
        }
    }

    /// Sends input to CMD, or its end.
    async fn pass_on(&mut self, input: Option<Vec<u8>>) {
        let Some(input) = input else { return self.send(&Order::CloseInput) };
        let order = Order::Input(input);
        let _ = self.write.write_all(order.line().as_bytes()).await;
        if let Order::Input(input) = order {
            let _ = self.write.write_all(&input).await;
        }
    }

    fn stop(&mut self, why: Stopped) {
        self.stopped = Some(why);
        self.send(&Order::Stop(GRACE));
    }

    /// Sends an order. A guard that does not read is not waited for.
    fn send(&self, order: &Order) {
        let _ = self.write.try_write(order.line().as_bytes());
    }

    fn apply(&mut self, guard_report: GuardReport) -> Option<End> {
        let end = match guard_report {
            GuardReport::Started(group) => {
                self.group = Group::of(group);
                return None;
            }
            GuardReport::Ended(end) => end,
        };
        Some(match (end, self.stopped) {
            // CMD may have succeeded before the stop.
            (End::Code(0), Some(Stopped::Asked)) => End::Code(0),
            (End::Code(_) | End::Signal(_), Some(Stopped::Asked)) => End::Stopped,
            (End::Code(_) | End::Signal(_), Some(Stopped::TooLong)) => End::TimedOut,
            (end, _) => end,
        })
    }

    /// Kills the group in place of a guard that does not.
    async fn give_up(&mut self, guard: &mut Child, session: Option<u32>) -> End {
        let (why, is_started) = match timeout(GUARD_GRACE, guard.wait()).await {
            // A guard that ended by itself has reported before that CMD was started.
            Ok(Ok(status)) => (gone(status), self.group.is_some() || status.code().is_none()),
            _ => ("its guard did not answer".into(), true),
        };
        let _ = guard.start_kill();
        // The guard may have been killed before it could report the start of CMD.
        let groups: Vec<_> = match self.group {
            Some(group) => vec![group],
            None => session.map(Group::of_session).unwrap_or_default(),
        };
        for group in &groups {
            group.signal(Signal::KILL);
        }
        // Without a process that reaps orphans, dead ones stay forever.
        let gone = async {
            while !groups.iter().all(|group| group.is_gone()) {
                sleep(Duration::from_millis(10)).await;
            }
        };
        let _ = timeout(KILL_TIMEOUT, gone).await;
        match self.stopped {
            Some(Stopped::Asked) => End::Stopped,
            Some(Stopped::TooLong) => End::TimedOut,
            None if is_started => End::GuardGone(why),
            None => End::Unable(Failure { passes: true, ..Failure::new(OSERR, why) }),
        }
    }
}

fn gone(status: ExitStatus) -> String {
    format!("its guard ended ({status})")
}
