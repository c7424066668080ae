//! The workers of one run, whosever they are.
//!
//! # What a worker does
//!
//! Its arguments are those of an [`Assignment`](crate::assignment::Assignment), after what its contender puts
//! before them.
//!
//! 1. It opens its queue, warms what its user would warm, and prints `ready` and a newline.
//! 2. It reads the line `go T`: the instant on the monotonic clock, in nanoseconds, at which offering begins.
//! 3. It offers each of its jobs at its instant, without waiting for earlier ones; one that is behind offers
//!    at once.
//! 4. Each job reads the monotonic clock first of all and then appends a line to the file `--out`,
//!    unbuffered: `S job called accepted started`; see [`notes`](crate::notes).
//! 5. When all its jobs have run, or none has for much too long, it appends `C cpu`, prints `done` and waits
//!    until its standard input ends.

use std::{
    collections::VecDeque,
    io::{BufRead, BufReader, Read, Write},
    process::{Child, ChildStdin, Command, Stdio},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread,
    time::Duration,
};

use crate::{Failure, clock};

/// How many of the last lines of its errors a failed worker is quoted with.
const QUOTED: usize = 6;
/// How long workers that are done may take to end: two seconds.
const ENDING: u64 = 2_000_000_000;

/// What a worker says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    Ready,
    Done,
    /// Its output has ended.
    Ended,
}

/// Running workers; they are killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Crew {
    workers: Vec<Worker>,
    heard: Receiver<(usize, Word)>,
}

#[derive(Debug)]
struct Worker {
    child: Child,
    orders: Option<ChildStdin>,
    killed: bool,
    last: Option<Word>,
    errors: Arc<Mutex<VecDeque<String>>>,
}

impl Crew {
    /// Starts a worker for each command.
    pub(crate) fn start(commands: impl IntoIterator<Item = Command>) -> Result<Self, Failure> {
        let (say, heard) = channel();
        let mut crew = Self { workers: Vec::new(), heard };
        for (number, mut command) in commands.into_iter().enumerate() {
            let mut child = command
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .map_err(|error| format!("cannot start {:?}: {error}", command.get_program()))?;
            if let Some(output) = child.stdout.take() {
                let say = say.clone();
                thread::spawn(move || listen(number, output, &say));
            }
            let errors = Arc::default();
            if let Some(output) = child.stderr.take() {
                let last = Arc::clone(&errors);
                thread::spawn(move || quote(output, &last));
            }
            let orders = child.stdin.take();
            crew.workers.push(Worker { child, orders, killed: false, last: None, errors });
        }
        Ok(crew)
    }

    /// Waits until every worker that was not killed has said `word`.
    pub(crate) fn wait_for(&mut self, word: Word, within: Duration) -> Result<(), Failure> {
        let deadline = clock::monotonic() + within.as_nanos() as u64;
        while let Some(number) =
            self.workers.iter().position(|worker| !worker.killed && worker.last != Some(word))
        {
            match self.heard.recv_timeout(clock::remaining(deadline)) {
                Ok((number, word)) => {
                    let worker = &mut self.workers[number];
                    worker.last = Some(word);
                    if word == Word::Ended && !worker.killed {
                        return Err(format!("worker {number} ended early{}", worker.quoted()).into());
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    let quoted = self.workers[number].quoted();
                    return Err(format!("worker {number} is not {word:?} after {within:?}{quoted}").into());
                }
                Err(RecvTimeoutError::Disconnected) => return Err("all workers have ended".into()),
            }
        }
        Ok(())
    }

    /// Tells every worker to begin at `instant` on the monotonic clock.
    pub(crate) fn go(&mut self, instant: u64) -> Result<(), Failure> {
        for orders in self.workers.iter_mut().filter_map(|worker| worker.orders.as_mut()) {
            orders.write_all(format!("go {instant}\n").as_bytes())?;
        }
        Ok(())
    }

    /// Ends a worker with SIGKILL.
    pub(crate) fn kill(&mut self, number: usize) -> Result<(), Failure> {
        let worker = &mut self.workers[number];
        worker.killed = true;
        worker.child.kill()?;
        worker.child.wait()?;
        Ok(())
    }

    /// The process id of a worker.
    pub(crate) fn pid(&self, number: usize) -> u32 {
        self.workers[number].child.id()
    }

    /// Lets the workers end by themselves; those that do not are killed.
    pub(crate) fn finish(mut self) {
        for worker in &mut self.workers {
            worker.orders = None;
        }
        let deadline = clock::monotonic() + ENDING;
        while clock::monotonic() < deadline {
            let left = self.workers.iter_mut().any(|worker| matches!(worker.child.try_wait(), Ok(None)));
            if !left {
                return;
            }
            thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        for worker in &mut self.workers {
            // Those that have ended cannot be killed, and need not.
            let _ = worker.child.kill();
            let _ = worker.child.wait();
        }
    }
}

impl Worker {
    fn quoted(&self) -> String {
        let errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        errors.iter().map(|line| format!("\n    {line}")).collect()
    }
}

fn listen(number: usize, output: impl Read, say: &Sender<(usize, Word)>) {
    let words = BufReader::new(output).lines().map_while(Result::ok).filter_map(|line| match &*line {
        "ready" => Some(Word::Ready),
        "done" => Some(Word::Done),
        _ => None,
    });
    for word in words.chain([Word::Ended]) {
        // Nobody may be left who listens.
        let _ = say.send((number, word));
    }
}

fn quote(output: impl Read, last: &Mutex<VecDeque<String>>) {
    for line in BufReader::new(output).lines().map_while(Result::ok) {
        let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.len() == QUOTED {
            last.pop_front();
        }
        last.push_back(line);
    }
}
