//! What is printed: by one thread, so that neither a slow reader nor a terminal holds a start up.

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
    capture::Captured,
    each_progress::{Board, Progress},
    spool::Spool,
};
use crate::exit::{Failure, Stdout, say};

/// How often the progress is drawn.
const REDRAW: Duration = Duration::from_millis(150);

/// How the outputs of commands are kept apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grouping {
    /// Each is printed whole, when its command has ended.
    AsTheyEnd,
    /// The same, and none before that of the item before it.
    InOrderOfItems,
    /// Not at all.
    None,
}

/// The output of a command.
#[derive(Debug)]
pub(crate) struct Printout {
    /// The number of its item, counted from 0. None: there will be more of that item, and it is printed at
    /// once.
    pub(crate) item: Option<u64>,
    pub(crate) stdout: Captured,
    pub(crate) stderr: Captured,
}

/// What became of the stdout of an item.
#[derive(Debug)]
pub(crate) struct Fate {
    pub(crate) item: u64,
    pub(crate) written: io::Result<()>,
}

/// What is heard of the output.
#[derive(Debug)]
pub(crate) enum News {
    Fate(Fate),
    /// Stdout cannot be written any more. Told once.
    Broken(io::Error),
}

enum Message {
    Print(Printout, oneshot::Sender<()>),
    Line(String),
    Show(Board),
    End,
}

/// The thread that prints.
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
        let (tell_broken, broken) = oneshot::channel();
        let (tell_end, ended) = oneshot::channel();
        let (tell_fate, fates) = channel::unbounded_channel();
        let held = Arc::new(AtomicUsize::new(0));
        let screen = Screen { tell_broken: Some(tell_broken), failure: None, progress: None };
        let spool = Spool::default();
        let mut printer = Printer { grouping, spool, held: held.clone(), fates: tell_fate, screen };
        let thread = thread::Builder::new().name("output".into()).spawn(move || {
            printer.print_all(&received);
            let _ = tell_end.send(());
        });
        thread.map_err(|error| Failure::os("cannot start a thread", &error))?;
        Ok(Self { messages, broken: broken.fuse(), fates, ended, held })
    }

    /// Prints the output of a command. The receiver hears when it takes no more memory.
    pub(crate) fn print(&self, printout: Printout) -> oneshot::Receiver<()> {
        let (done, printed) = oneshot::channel();
        // Without the thread the sender is dropped, which is heard as well.
        let _ = self.messages.send(Message::Print(printout, done));
        printed
    }

    /// Something that says lines on stderr without harm to what else is printed.
    pub(crate) fn voice(&self) -> impl Fn(&str) + Send + Sync + 'static {
        let messages = self.messages.clone();
        move |line| {
            if messages.send(Message::Line(line.to_owned())).is_err() {
                say(line);
            }
        }
    }

    /// How many outputs wait for those of earlier items.
    pub(crate) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// Waits for what is heard of it. Cancel safe.
    pub(crate) async fn news(&mut self) -> News {
        let Self { broken, fates, .. } = self;
        tokio::select! {
            biased;
            Ok(error) = broken => News::Broken(error),
            Some(fate) = fates.recv() => News::Fate(fate),
            else => std::future::pending().await,
        }
    }

    /// A fate that is known by now.
    pub(crate) fn fate(&mut self) -> Option<Fate> {
        self.fates.try_recv().ok()
    }

    /// Prints what is left and ends the drawing.
    pub(crate) async fn end(&mut self) {
        let _ = self.messages.send(Message::End);
        let _ = (&mut self.ended).await;
    }

    /// Shows how far it is from now on.
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
                Some(_) => messages.recv_timeout(REDRAW),
                None => messages.recv().map_err(RecvTimeoutError::from),
            };
            match received {
                Ok(Message::Print(printout, done)) => {
                    self.take_in(printout);
                    // A process that ends does not wait for it.
                    let _ = done.send(());
                }
                Ok(Message::Line(line)) => self.screen.aside(|| say(&line)),
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
                    self.tell(number, Err(again(&error)));
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
            self.tell(item, written);
        }
    }

    fn tell(&self, item: u64, written: io::Result<()>) {
        // A process that ends does not wait for it.
        let _ = self.fates.send(Fate { item, written });
    }
}

struct Screen {
    /// Told once, at the first error.
    tell_broken: Option<oneshot::Sender<io::Error>>,
    /// Why nothing more goes to stdout.
    failure: Option<io::Error>,
    progress: Option<Progress>,
}

impl Screen {
    /// Whether all of stdout was taken.
    fn print(&mut self, mut stdout: impl Read, mut stderr: impl Read) -> io::Result<()> {
        let (mut first, follows) = ([0], self.progress.is_some());
        let written = match &self.failure {
            Some(error) if matches!(stdout.read(&mut first), Ok(1)) => Err(again(error)),
            Some(_) => Ok(()),
            None => {
                let mut write = || copy(&mut stdout, &mut Stdout, follows && io::stdout().is_terminal());
                // If it goes elsewhere it may take its time, and the progress is not in its way.
                if io::stdout().is_terminal() { self.aside(write) } else { write() }
            }
        };
        if let (None, Err(error)) = (&self.failure, &written) {
            self.fail(again(error));
        }
        if let Ok(1) = stderr.read(&mut first) {
            let mut stderr = first.chain(stderr);
            // Nobody is left to hear that stderr is closed.
            let _ = self
                .aside(|| copy(&mut stderr, &mut io::stderr().lock(), follows && io::stderr().is_terminal()));
        }
        written
    }

    /// Does something to the terminal with the progress out of its way.
    fn aside<T>(&self, act: impl FnOnce() -> T) -> T {
        match &self.progress {
            Some(progress) => progress.aside(act),
            None => act(),
        }
    }

    fn fail(&mut self, error: io::Error) {
        if let Some(broken) = self.tell_broken.take() {
            let _ = broken.send(again(&error));
        }
        self.failure.get_or_insert(error);
    }
}

/// The same error for somebody else.
fn again(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(code) => io::Error::from_raw_os_error(code),
        None => io::Error::new(error.kind(), error.to_string()),
    }
}

/// Where a progress bar follows on the same terminal, a last line without an end gets one, or it would be
/// drawn over.
fn copy(source: &mut impl Read, target: &mut impl Write, ends_lines: bool) -> io::Result<()> {
    let mut target = LineEnd { ends_lines, target, last: b'\n' };
    io::copy(source, &mut target)?;
    if target.ends_lines && target.last != b'\n' {
        target.write_all(b"\n")?;
    }
    target.flush()
}

/// Knows the last byte that was written.
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
