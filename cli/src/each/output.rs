//! Printing in a thread of its own, so that neither a slow reader nor a terminal delays a start.

use std::{
    io::{self, IsTerminal, Read, Write},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::Duration,
};

use futures::{FutureExt, future::Fuse};
use tokio::sync::{mpsc as channel, oneshot};

use super::{
    each_progress::{Board, Progress},
    spool::Spool,
};
use crate::{
    child::Captured,
    exit::{Failure, Stdout, report},
};

const REDRAW_INTERVAL: Duration = Duration::from_millis(150);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grouping {
    /// Each output is printed as a whole when its command has ended.
    AsTheyEnd,
    /// Each output is printed as a whole, after the output of the item before it.
    InOrderOfItems,
    /// Commands write directly to stdout and stderr.
    None,
}

#[derive(Debug)]
pub(crate) struct Printout {
    /// Counted from 0. `None`: the item will print more, so this part is printed at once.
    pub(crate) item: Option<u64>,
    pub(crate) stdout: Captured,
    pub(crate) stderr: Captured,
}

#[derive(Debug)]
pub(crate) struct Fate {
    pub(crate) item: u64,
    pub(crate) written: io::Result<()>,
}

#[derive(Debug)]
pub(crate) enum OutputEvent {
    Fate(Fate),
    /// Stdout cannot be written any more. Reported once.
    Broken(io::Error),
}

enum Message {
    Print(Printout, oneshot::Sender<()>),
    Line(String),
    Show(Board),
    End,
}

#[derive(Debug)]
pub(crate) struct Output {
    messages: mpsc::Sender<Message>,
    broken: Fuse<oneshot::Receiver<io::Error>>,
    fates: channel::UnboundedReceiver<Fate>,
    ended: oneshot::Receiver<()>,
    held: Arc<AtomicUsize>,
}

impl Output {
    pub(crate) fn start(grouping: Grouping) -> Result<Self, Failure> {
        let (messages, received) = mpsc::channel();
        let (notify_broken, broken) = oneshot::channel();
        let (tell_end, ended) = oneshot::channel();
        let (tell_fate, fates) = channel::unbounded_channel();
        let held = Arc::new(AtomicUsize::new(0));
        let screen = Screen { notify_broken: Some(notify_broken), failure: None, progress: None };
        let spool = Spool::default();
        let mut printer = Printer { grouping, spool, held: held.clone(), fates: tell_fate, screen };
        let thread = thread::Builder::new().name("output".into()).spawn(move || {
            printer.print_all(&received);
            let _ = tell_end.send(());
        });
        thread.map_err(|error| Failure::os("cannot start a thread", &error))?;
        Ok(Self { messages, broken: broken.fuse(), fates, ended, held })
    }

    /// The receiver resolves when the output takes no more memory.
    pub(crate) fn print(&self, printout: Printout) -> oneshot::Receiver<()> {
        let (done, printed) = oneshot::channel();
        // If the thread has ended, the dropped sender resolves the receiver.
        let _ = self.messages.send(Message::Print(printout, done));
        printed
    }

    /// Does not break the progress or other output.
    pub(crate) fn line_writer(&self) -> impl Fn(&str) + Send + Sync + 'static {
        let messages = self.messages.clone();
        move |line| {
            if messages.send(Message::Line(line.to_owned())).is_err() {
                report(line);
            }
        }
    }

    /// Outputs that wait for earlier ones.
    pub(crate) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// # Cancel safety
    ///
    /// Cancel safe: no report is lost.
    pub(crate) async fn next_event(&mut self) -> OutputEvent {
        let Self { broken, fates, .. } = self;
        tokio::select! {
            biased;
            Ok(error) = broken => OutputEvent::Broken(error),
            Some(fate) = fates.recv() => OutputEvent::Fate(fate),
            else => std::future::pending().await,
        }
    }

    pub(crate) fn fate(&mut self) -> Option<Fate> {
        self.fates.try_recv().ok()
    }

    /// Removes the progress.
    pub(crate) async fn end(&mut self) {
        let _ = self.messages.send(Message::End);
        let _ = (&mut self.ended).await;
    }

    pub(crate) fn show(&self, board: Board) {
        let _ = self.messages.send(Message::Show(board));
    }
}

struct Printer {
    grouping: Grouping,
    spool: Spool,
    held: Arc<AtomicUsize>,
    fates: channel::UnboundedSender<Fate>,
    screen: Screen,
}

impl Printer {
    fn print_all(&mut self, messages: &mpsc::Receiver<Message>) {
        loop {
            let received = match &self.screen.progress {
                Some(_) => messages.recv_timeout(REDRAW_INTERVAL),
                None => messages.recv().map_err(RecvTimeoutError::from),
            };
            match received {
                Ok(Message::Print(printout, done)) => {
                    self.take_in(printout);
                    // The receiver is gone if the process ends.
                    let _ = done.send(());
                }
                Ok(Message::Line(line)) => self.screen.aside(|| report(&line)),
                Ok(Message::Show(board)) => self.screen.progress = Some(Progress::new(board)),
                Err(RecvTimeoutError::Timeout) => {}
                Ok(Message::End) | Err(RecvTimeoutError::Disconnected) => break,
            }
            if let Some(progress) = &mut self.screen.progress {
                progress.refresh();
            }
        }
        while let Some((item, stdout, stderr)) = self.spool.first() {
            self.print(Some(item), stdout, stderr);
        }
        if let Some(progress) = self.screen.progress.take() {
            progress.clear();
        }
    }

    fn take_in(&mut self, Printout { item, stdout, stderr }: Printout) {
        let place = item.filter(|_| self.grouping == Grouping::InOrderOfItems);
        match place {
            Some(number) if !self.spool.is_next(number) => {
                if let Err(error) = self.spool.put(number, stdout, stderr) {
                    self.send_fate(number, Err(again(&error)));
                    self.screen.fail(error);
                }
            }
            _ => {
                self.print(item, stdout.into_reader(), stderr.into_reader());
                if place.is_some() {
                    self.spool.advance();
                }
            }
        }
        while let Some((item, stdout, stderr)) = self.spool.next() {
            self.print(Some(item), stdout, stderr);
        }
        self.held.store(self.spool.len(), Ordering::Relaxed);
    }

    fn print(&mut self, item: Option<u64>, stdout: impl Read, stderr: impl Read) {
        let written = self.screen.print(stdout, stderr);
        if let Some(item) = item {
            self.send_fate(item, written);
        }
    }

    fn send_fate(&self, item: u64, written: io::Result<()>) {
        // The receiver is gone if the process ends.
        let _ = self.fates.send(Fate { item, written });
    }
}

struct Screen {
    /// Notified once, at the first error.
    notify_broken: Option<oneshot::Sender<io::Error>>,
    /// The reason why nothing more goes to stdout.
    failure: Option<io::Error>,
    progress: Option<Progress>,
}

impl Screen {
    /// Prints an output. Returns whether all of stdout was written.
    fn print(&mut self, mut stdout: impl Read, mut stderr: impl Read) -> io::Result<()> {
        let (mut first, follows) = ([0], self.progress.is_some());
        let written = match &self.failure {
            Some(error) if matches!(stdout.read(&mut first), Ok(1)) => Err(again(error)),
            Some(_) => Ok(()),
            None => {
                let mut write = || copy(&mut stdout, &mut Stdout, follows && io::stdout().is_terminal());
                // A stdout that is no terminal may be slow, and does not disturb the progress.
                if io::stdout().is_terminal() { self.aside(write) } else { write() }
            }
        };
        if let (None, Err(error)) = (&self.failure, &written) {
            self.fail(again(error));
        }
        if let Ok(1) = stderr.read(&mut first) {
            let mut stderr = first.chain(stderr);
            // A closed stderr cannot be reported.
            let _ = self
                .aside(|| copy(&mut stderr, &mut io::stderr().lock(), follows && io::stderr().is_terminal()));
        }
        written
    }

    /// Runs `act` while the progress is hidden.
    fn aside<T>(&self, act: impl FnOnce() -> T) -> T {
        match &self.progress {
            Some(progress) => progress.aside(act),
            None => act(),
        }
    }

    fn fail(&mut self, error: io::Error) {
        if let Some(broken) = self.notify_broken.take() {
            let _ = broken.send(again(&error));
        }
        self.failure.get_or_insert(error);
    }
}

fn again(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(code) => io::Error::from_raw_os_error(code),
        None => io::Error::new(error.kind(), error.to_string()),
    }
}

/// With `ends_lines`, an unterminated last line gets a newline, or the progress bar would overwrite
/// it.
fn copy(source: &mut impl Read, target: &mut impl Write, ends_lines: bool) -> io::Result<()> {
    let mut target = LineEnd { ends_lines, target, last: b'\n' };
    io::copy(source, &mut target)?;
    if target.ends_lines && target.last != b'\n' {
        target.write_all(b"\n")?;
    }
    target.flush()
}

struct LineEnd<'a, W> {
    target: &'a mut W,
    last: u8,
    ends_lines: bool,
}

impl<W: Write> Write for LineEnd<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.target.write(bytes)?;
        self.last = bytes[..count].last().copied().unwrap_or(self.last);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.target.flush()
    }
}
