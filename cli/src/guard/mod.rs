//! The guard of one run: a process between a worker and CMD that outlives a worker which is killed, and ends CMD before
//! somebody else may run the task.
//!
//! It is this program under a word that the parser of the command line never sees. Its standard input is a socket to
//! the worker: `orders` come in, `news` go out. The end of that socket, or the end of the lease by the clock of the
//! host, means SIGTERM to the process group of CMD, and then SIGKILL. It has no threads of its own, keeps nothing but
//! the payload, and ends when all that CMD has started is gone.
//!
//! CMD is not bound to the guard by `PR_SET_PDEATHSIG`: that needs code between fork and exec, and ends no
//! grandchildren. A worker whose guard was killed ends the group itself. The guard is a subreaper, where the system has
//! such: orphans of the group are waited for, and daemons are ended, too.

mod group;
mod guard_clock;
mod orders;
mod orphans;

use std::{ffi::OsString, io, os::unix::process::ExitStatusExt, path::Path, process::Stdio, time::Duration};

use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::UnixStream,
    process::Command,
    time::sleep,
};

pub(crate) use self::{
    group::Group,
    guard_clock::{Instant, now},
    orders::{INPUTS, News, Order},
};
use self::{group::Signal, orders::read_order, orphans::Orphans};
use crate::{
    child::expect_children,
    exit::{Failure, SOFTWARE, USAGE},
    program::{Program, cannot_execute},
    signals,
};

/// The first argument of a guard.
pub(crate) const WORD: &str = "guard";
/// What `ps` and `pkill` call it: not as the worker, which may be killed by its name.
pub(crate) const NAME: &str = "task-guard";
/// From SIGTERM to SIGKILL, when the worker is gone, and for what CMD leaves behind.
const GRACE: Duration = Duration::from_secs(2);
/// The clock of leases goes on while the host sleeps, and timers do not.
const LOOK: Duration = Duration::from_secs(1);

/// Whether these arguments, without the name of the program, start a guard.
pub(crate) fn is_meant(args: &[OsString]) -> bool {
    args.first().is_some_and(|word| word == WORD)
}

/// Starts CMD when the worker says so, and stays until all that it has started has ended.
pub(crate) async fn guard(words: &[OsString]) -> Result<(), Failure> {
    let Ok(stream) = worker() else {
        let text = "`task-guard` is not for direct use: `interval-queue work` runs one with each CMD";
        return Err(Failure::new(USAGE, text));
    };
    // A Ctrl-C of the terminal is for the worker, which finds what belongs to a guard by its session.
    let _ = rustix::process::setsid();
    expect_children()?;
    // What ends all processes of a service at once ends CMD; the guard stays to wait for it.
    signals::outlive().map_err(|error| Failure::os("cannot listen to signals", &error))?;
    let (read, mut write) = stream.into_split();
    let mut orders = BufReader::new(read);
    let news = match start(&mut orders, words).await {
        Ok(Some(mut run)) => {
            let _ = write.write_all(News::Started(run.group.id()).line().as_bytes()).await;
            run.watch(orders).await
        }
        // The worker was gone before anything was started.
        Ok(None) => return Ok(()),
        Err(failure) => News::Unable(failure),
    };
    if let Some(path) = std::env::var_os(INPUTS) {
        // The worker removes it as well.
        let _ = std::fs::remove_file(Path::new(&path));
    }
    // A worker that is gone does not hear it.
    let _ = write.write_all(news.line().as_bytes()).await;
    Ok(())
}

/// Reports to the worker that nothing was started. False: the standard input is no socket. It needs no further file.
pub(crate) fn report(failure: &Failure) -> bool {
    let stat = rustix::fs::fstat(io::stdin());
    let is_socket = stat
        .is_ok_and(|stat| rustix::fs::FileType::from_raw_mode(stat.st_mode) == rustix::fs::FileType::Socket);
    is_socket && rustix::io::write(io::stdin(), News::Unable(failure.clone()).line().as_bytes()).is_ok()
}

/// The socket that is the standard input.
fn worker() -> io::Result<UnixStream> {
    use std::os::fd::AsFd;
    let stream = std::os::unix::net::UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    stream.peer_addr()?;
    stream.set_nonblocking(true)?;
    UnixStream::from_std(stream)
}

/// A CMD that was started.
struct Run {
    child: tokio::process::Child,
    group: Group,
    /// When SIGTERM and SIGKILL are due; each is sent once.
    end: End,
}

/// When CMD is ended, and how far that has come.
#[derive(Clone, Copy, Debug)]
struct End {
    term: Instant,
    kill: Instant,
    termed: bool,
    killed: bool,
    /// Whether the lease did it.
    by_lease: bool,
    /// Whether somebody said so, or nobody is there any more: a new lease changes nothing then.
    stops: bool,
    /// Whether nobody is there who could say anything.
    alone: bool,
}

/// Reads the lease and the payload, and starts CMD. None: the worker is gone.
async fn start(
    orders: &mut (impl AsyncBufReadExt + Unpin),
    words: &[OsString],
) -> Result<Option<Run>, Failure> {
    let mut lease = None;
    let payload = loop {
        match read_order(orders).await {
            Some(Order::Lease { term, kill }) => lease = Some((term, kill)),
            Some(Order::Payload(payload)) => break payload,
            Some(Order::Stop(_)) | None => return Ok(None),
        }
    };
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
    if let Some(mut stdin) = child.stdin.take() {
        tokio::spawn(async move {
            // A CMD that does not want its payload closes its input.
            let _ = stdin.write_all(&payload).await;
        });
    }
    let end = End { term, kill, termed: false, killed: false, by_lease: false, stops: false, alone: false };
    Ok(Some(Run { child, group, end }))
}

impl Run {
    /// Waits for the end of all that CMD has started, and brings it about when it is due.
    async fn watch(&mut self, mut orders: impl AsyncBufReadExt + Unpin + Send + 'static) -> News {
        let (tell, mut told) = tokio::sync::mpsc::channel(1);
        tokio::spawn(async move {
            while let Some(order) = read_order(&mut orders).await {
                if tell.send(order).await.is_err() {
                    return;
                }
            }
        });
        let status = loop {
            tokio::select! {
                biased;
                order = told.recv(), if !self.end.alone => self.end.hear(order),
                status = self.child.wait() => break status,
                () = sleep(self.end.next()) => {}
            }
            self.act();
        };
        // What CMD left behind would run beside the next attempt.
        self.end.stop(GRACE);
        let mut orphans = Orphans::default();
        // Both are asked each time.
        while !(self.group.is_gone() & orphans.are_gone(self.group, self.end.killed)) {
            self.act();
            sleep(Duration::from_millis(10)).await;
        }
        let by_lease = self.end.by_lease;
        match status {
            Ok(_) if by_lease => News::LeaseOver,
            Ok(status) => match status.signal() {
                Some(signal) => News::Signal(signal),
                None => News::Code(status.code().unwrap_or(-1)),
            },
            Err(error) => News::Unable(Failure::os("cannot wait for the command", &error)),
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
            // A stopped process dies of SIGTERM only once it continues.
            self.group.signal(Signal::CONT);
        }
        if now >= end.kill && !end.killed {
            end.killed = true;
            self.group.signal(Signal::KILL);
        }
    }
}

impl End {
    fn hear(&mut self, order: Option<Order>) {
        match order {
            Some(Order::Lease { term, kill }) if !self.stops => (self.term, self.kill) = (term, kill),
            Some(Order::Stop(grace)) => self.stop(grace),
            Some(Order::Lease { .. } | Order::Payload(_)) => {}
            None => {
                self.alone = true;
                self.stop(GRACE);
            }
        }
    }

    /// CMD has to end now, and no later than the lease says.
    fn stop(&mut self, grace: Duration) {
        let now = now();
        self.stops = true;
        self.term = self.term.min(now);
        self.kill = self.kill.min(now + grace);
    }

    /// Until when to sleep.
    fn next(&self) -> Duration {
        let next = match (self.termed, self.killed) {
            (false, _) => self.term,
            (true, false) => self.kill,
            (true, true) => return LOOK,
        };
        (next - now()).min(LOOK)
    }
}
