//! The guard of one run: a process between the worker and CMD. It outlives a killed worker, and
//! ends CMD before another worker may run the task.
//!
//! The guard is this program with a first argument that the command line parser never sees. It
//! reads `orders` from a socket on stdin and writes reports. If the socket closes, or the lease
//! ends by the clock of the host, the process group of CMD gets SIGTERM and then SIGKILL. It ends
//! when all processes that CMD has started have ended.
//!
//! `PR_SET_PDEATHSIG` would need code between fork and exec, and does not end grandchildren. If the
//! guard is killed, the worker ends the group. On Linux the guard is a subreaper, so it waits for
//! orphans of the group, and ends daemons, too.

mod group;
mod guard_clock;
mod orders;
mod orphans;

use std::{ffi::OsString, io, path::Path, process::Stdio, time::Duration};

use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::UnixStream,
    process::Command,
    sync::mpsc::{UnboundedSender, channel, unbounded_channel},
    time::sleep,
};

pub(crate) use self::{
    group::Group,
    guard_clock::now,
    orders::{GuardReport, INPUTS_VARIABLE, Lease, Order, REPLY_VARIABLE},
};
use self::{group::Signal, guard_clock::Instant, orders::read_order, orphans::Orphans};
use super::{end::End, running::expect_children};
use crate::{
    exit::{Failure, SOFTWARE, USAGE},
    program::{Program, cannot_execute},
    signals,
};

pub(crate) const GUARD_ARGUMENT: &str = "guard";
/// In `ps` and for `pkill`. It differs from the worker's, which may be killed by name.
pub(crate) const PROCESS_NAME: &str = "task-guard";
/// From SIGTERM to SIGKILL if the worker is gone, and for processes that CMD leaves behind.
const GRACE: Duration = Duration::from_secs(2);
/// The clock of leases advances while the host sleeps, but timers do not.
const MAX_SLEEP: Duration = Duration::from_secs(1);

/// `args`: without the name of the program.
pub(crate) fn is_guard(args: &[OsString]) -> bool {
    args.first().is_some_and(|word| word == GUARD_ARGUMENT)
}

/// Waits until all processes that CMD started have ended.
pub(crate) async fn run(words: &[OsString]) -> Result<(), Failure> {
    let Ok(stream) = worker() else {
        let text = "`task-guard` is not for direct use: `interval-queue work` runs one with each CMD";
        return Err(Failure::new(USAGE, text));
    };
    // Ctrl-C in the terminal is for the worker. It finds the processes of a guard by its session.
    let _ = rustix::process::setsid();
    expect_children()?;
    // A signal to all processes of a service ends CMD; the guard waits for it.
    signals::outlive().map_err(|error| Failure::os("cannot listen to signals", &error))?;
    let (read, mut write) = stream.into_split();
    let mut orders = BufReader::new(read);
    let end = match start(&mut orders, words).await {
        Ok(Some(mut run)) => {
            let _ = write.write_all(GuardReport::Started(run.group.id()).line().as_bytes()).await;
            run.watch(orders).await
        }
        Ok(None) => return Ok(()),
        Err(failure) => End::Unable(failure),
    };
    if let Some(path) = std::env::var_os(INPUTS_VARIABLE) {
        let _ = std::fs::remove_file(Path::new(&path));
    }
    if write.write_all(GuardReport::Ended(end).line().as_bytes()).await.is_err()
        && let Some(path) = std::env::var_os(REPLY_VARIABLE)
    {
        // The worker is gone. The last guard removes its directory.
        let _ = std::fs::remove_file(Path::new(&path));
        let _ = Path::new(&path).parent().map(std::fs::remove_dir);
    }
    Ok(())
}

/// CMD was not started. False: stdin is no socket. Opens no file: the limit of open files may be
/// the cause.
pub(crate) fn report(failure: &Failure) -> bool {
    let stat = rustix::fs::fstat(io::stdin());
    let is_socket = stat
        .is_ok_and(|stat| rustix::fs::FileType::from_raw_mode(stat.st_mode) == rustix::fs::FileType::Socket);
    is_socket
        && rustix::io::write(io::stdin(), GuardReport::Ended(End::Unable(failure.clone())).line().as_bytes())
            .is_ok()
}

fn worker() -> io::Result<UnixStream> {
    use std::os::fd::AsFd;
    let stream = std::os::unix::net::UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    stream.peer_addr()?;
    stream.set_nonblocking(true)?;
    UnixStream::from_std(stream)
}

struct Run {
    child: tokio::process::Child,
    group: Group,
    /// The input of CMD, while it is open.
    input: Option<UnboundedSender<Vec<u8>>>,
    /// When SIGTERM and SIGKILL are due. Each is sent once.
    end: Deadlines,
}

/// When CMD is ended, and which signals were sent.
#[derive(Clone, Copy, Debug)]
struct Deadlines {
    term: Instant,
    kill: Instant,
    termed: bool,
    killed: bool,
    /// Whether the end of the lease was the cause.
    by_lease: bool,
    /// Whether CMD was ordered to stop, or the worker is gone. A new lease has no effect then.
    stops: bool,
    /// Whether the worker is gone.
    alone: bool,
}

/// `None`: the worker is gone.
async fn start(
    orders: &mut (impl AsyncBufReadExt + Unpin),
    words: &[OsString],
) -> Result<Option<Run>, Failure> {
    let mut lease = None;
    loop {
        match read_order(orders).await {
            Some(Order::Lease { term, kill }) => lease = Some((term, kill)),
            Some(Order::Start) => break,
            _ => return Ok(None),
        }
    }
    let (term, kill) = lease.ok_or_else(|| Failure::new(SOFTWARE, "the guard was given no lease"))?;
    if now() >= term {
        return Err(Failure {
            passes: true,
            ..Failure::new(SOFTWARE, "the lease was over before the start")
        });
    }
    Group::adopt_orphans();
    let program = Program::find(words)?;
    let command = program.into_command();
    let name = command.get_program().to_owned();
    let mut command = Command::from(command);
    command.stdin(Stdio::piped()).process_group(0);
    let mut child = command.spawn().map_err(|error| cannot_execute(&name, &error))?;
    let group = Group::led_by(&child).ok_or_else(|| Failure::new(SOFTWARE, "CMD has no process id"))?;
    // Not bounded: orders are read also while CMD does not read. The worker sends little at once.
    let (input, mut pending) = unbounded_channel::<Vec<u8>>();
    if let Some(mut stdin) = child.stdin.take() {
        tokio::spawn(async move {
            while let Some(input) = pending.recv().await {
                // CMD may close its input without reading it.
                let _ = stdin.write_all(&input).await;
            }
        });
    }
    let end =
        Deadlines { term, kill, termed: false, killed: false, by_lease: false, stops: false, alone: false };
    Ok(Some(Run { child, group, input: Some(input), end }))
}

impl Run {
    /// Waits until all processes that CMD started have ended, and ends them when that is due.
    async fn watch(&mut self, mut orders: impl AsyncBufReadExt + Unpin + Send + 'static) -> End {
        let (sender, mut receiver) = channel(1);
        tokio::spawn(async move {
            while let Some(order) = read_order(&mut orders).await {
                if sender.send(order).await.is_err() {
                    return;
                }
            }
        });
        let status = loop {
            tokio::select! {
                biased;
                order = receiver.recv(), if !self.end.alone => self.apply(order),
                status = self.child.wait() => break status,
                () = sleep(self.end.next()) => {}
            }
            self.act();
        };
        // Processes left behind would run concurrently with the next attempt.
        self.end.stop(GRACE);
        let mut orphans = Orphans::default();
        // Not short-circuited: both calls reap processes.
        while !(self.group.is_gone() & orphans.are_gone(self.group, self.end.killed)) {
            self.act();
            sleep(Duration::from_millis(10)).await;
        }
        match End::of(status) {
            End::Code(_) | End::Signal(_) if self.end.by_lease => End::LeaseOver,
            end => end,
        }
    }

    fn apply(&mut self, order: Option<Order>) {
        match order {
            Some(Order::Input(input)) => drop(self.input.as_ref().map(|to| to.send(input))),
            Some(Order::CloseInput) => self.input = None,
            order => self.end.apply(order),
        }
    }

    /// Sends the signals that are due.
    fn act(&mut self) {
        let now = now();
        let end = &mut self.end;
        if now >= end.term && !end.termed {
            end.termed = true;
            end.by_lease = !end.stops;
            end.stops = true;
            self.group.signal(Signal::TERM);
            // A stopped process handles SIGTERM only after SIGCONT.
            self.group.signal(Signal::CONT);
        }
        if now >= end.kill && !end.killed {
            end.killed = true;
            self.group.signal(Signal::KILL);
        }
    }
}

impl Deadlines {
    fn apply(&mut self, order: Option<Order>) {
        match order {
            Some(Order::Lease { term, kill }) if !self.stops => (self.term, self.kill) = (term, kill),
            Some(Order::Stop(grace)) => self.stop(grace),
            Some(_) => {}
            None => {
                self.alone = true;
                self.stop(GRACE);
            }
        }
    }

    /// Ends CMD now, with SIGKILL after `grace` or when the lease requires it.
    fn stop(&mut self, grace: Duration) {
        let now = now();
        self.stops = true;
        self.term = self.term.min(now);
        self.kill = self.kill.min(now + grace);
    }

    /// How long to sleep, at most [`MAX_SLEEP`].
    fn next(&self) -> Duration {
        let next = match (self.termed, self.killed) {
            (false, _) => self.term,
            (true, false) => self.kill,
            (true, true) => return MAX_SLEEP,
        };
        (next - now()).min(MAX_SLEEP)
    }
}
