//! What a worker writes down while it works, and how that is read again.
//!
//! One line for each event, as [`Note`] shows; times are nanoseconds on the monotonic clock unless said
//! otherwise.

use std::{
    collections::BTreeMap,
    fmt::{self, Display, Write as _},
    fs::{self, File},
    io::{self, Write as _},
    path::Path,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use clap::ValueEnum;

/// Something that happened in a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Note {
    Start(Start),
    /// `A job accepted`: a job was in the queue, which may start it in a process that cannot know that.
    Accepted {
        job: u64,
        at: u64,
    },
    Grant(Grant),
    /// `C cpu`: what the worker used of the processor for all its jobs, in nanoseconds.
    Cpu(u64),
    /// `O count`: how many commands it gave to the state for them.
    Operations(u64),
}

/// `S job called accepted started`: a job began to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Start {
    pub(crate) job: u64,
    /// Just before the call that added it.
    pub(crate) called: u64,
    /// When the library said that it was in the queue; `-`: not before it started.
    pub(crate) accepted: Option<u64>,
    pub(crate) started: u64,
}

/// `G ticket slot sent`: the state granted a slot. Both times are microseconds on the wall clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grant {
    pub(crate) ticket: u64,
    pub(crate) slot: u64,
    /// When the command was sent that brought it.
    pub(crate) sent: u64,
}

impl Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start(Start { job, called, accepted: Some(accepted), started }) => {
                write!(f, "S {job} {called} {accepted} {started}")
            }
            Self::Start(Start { job, called, accepted: None, started }) => {
                write!(f, "S {job} {called} - {started}")
            }
            Self::Accepted { job, at } => write!(f, "A {job} {at}"),
            Self::Grant(Grant { ticket, slot, sent }) => write!(f, "G {ticket} {slot} {sent}"),
            Self::Cpu(cpu) => write!(f, "C {cpu}"),
            Self::Operations(count) => write!(f, "O {count}"),
        }
    }
}

impl Note {
    /// Reads a line. What follows the known fields is for others.
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_ascii_whitespace();
        let kind = words.next()?;
        let mut number = || words.next()?.parse::<u64>().ok();
        match kind {
            "S" => {
                let (job, called) = (number()?, number()?);
                let accepted = match words.next()? {
                    "-" => None,
                    time => Some(time.parse().ok()?),
                };
                Some(Self::Start(Start { job, called, accepted, started: words.next()?.parse().ok()? }))
            }
            "A" => Some(Self::Accepted { job: number()?, at: number()? }),
            "G" => Some(Self::Grant(Grant { ticket: number()?, slot: number()?, sent: number()? })),
            "C" => number().map(Self::Cpu),
            "O" => number().map(Self::Operations),
            _ => None,
        }
    }
}

/// What is written down only at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Keep {
    /// Everything is written at once, so that a killed worker loses none of it.
    Nothing,
    /// What nobody but this library writes down.
    Grants,
    /// Everything: a line for each start costs too much of a short interval.
    All,
}

/// Where a worker writes its notes.
#[derive(Debug)]
pub(crate) struct Notebook {
    file: File,
    keep: Keep,
    /// One for each job if all is kept, so that jobs on several threads do not wait for each other.
    starts: Box<[KeptStart]>,
    others: Mutex<Vec<Note>>,
}

/// As [`Start`], zero for what is not known.
#[derive(Debug, Default)]
struct KeptStart {
    called: AtomicU64,
    accepted: AtomicU64,
    started: AtomicU64,
}

impl KeptStart {
    /// False: it has begun already.
    fn begin(&self, now: u64) -> bool {
        self.started.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

impl Notebook {
    /// Appends to the file at `path` what happens to jobs 0 to `jobs` - 1.
    pub(crate) fn open(path: &Path, keep: Keep, jobs: u64) -> io::Result<Self> {
        let file = File::options().create(true).append(true).open(path)?;
        let kept = if keep == Keep::All { jobs } else { 0 };
        let starts = (0..kept).map(|_| KeptStart::default()).collect();
        Ok(Self { file, keep, starts, others: Mutex::default() })
    }

    pub(crate) fn start(&self, start: Start) {
        let place = usize::try_from(start.job).ok().and_then(|job| self.starts.get(job));
        match place {
            Some(place) if place.begin(start.started) => {
                place.called.store(start.called, Ordering::Relaxed);
                place.accepted.store(start.accepted.unwrap_or(0), Ordering::Relaxed);
            }
            // One that starts again gets a note of its own.
            Some(_) => self.others().push(Note::Start(start)),
            None => self.write([Note::Start(start)]),
        }
    }

    pub(crate) fn grants(&self, grants: impl IntoIterator<Item = Grant>) {
        let grants = grants.into_iter().map(Note::Grant);
        match self.keep {
            Keep::Nothing => self.write(grants),
            Keep::Grants | Keep::All => self.others().extend(grants),
        }
    }

    /// Writes what was kept, and what the jobs have cost, as far as that is counted.
    pub(crate) fn finish(&self, cpu: u64, operations: Option<u64>) {
        let starts = (0..).zip(&self.starts).filter_map(|(job, start)| {
            let [called, accepted, started] =
                [&start.called, &start.accepted, &start.started].map(|time| time.load(Ordering::Relaxed));
            let accepted = Some(accepted).filter(|accepted| *accepted > 0);
            (started > 0).then_some(Note::Start(Start { job, called, accepted, started }))
        });
        let others = std::mem::take(&mut *self.others());
        self.write(starts.chain(others).chain([Note::Cpu(cpu)]).chain(operations.map(Note::Operations)));
    }

    /// Panics if the file cannot be written: there is nobody else to tell.
    fn write(&self, notes: impl IntoIterator<Item = Note>) {
        let mut text = String::new();
        for note in notes {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{note}");
        }
        if let Err(error) = (&self.file).write_all(text.as_bytes()) {
            panic!("cannot write down what happens: {error}");
        }
    }

    fn others(&self) -> MutexGuard<'_, Vec<Note>> {
        self.others.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The notes of one worker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Log {
    pub(crate) starts: Vec<Start>,
    pub(crate) grants: Vec<Grant>,
    pub(crate) cpu: Option<u64>,
    pub(crate) operations: Option<u64>,
}

impl Log {
    /// Reads what a worker wrote. The last line of a killed one may be torn; any other that says nothing is
    /// an error.
    pub(crate) fn read(path: &Path) -> io::Result<Self> {
        Self::parse(&fs::read_to_string(path)?)
    }

    fn parse(text: &str) -> io::Result<Self> {
        let mut log = Self::default();
        let mut accepted = BTreeMap::new();
        for line in text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
            match Note::parse(line) {
                Some(Note::Start(start)) => log.starts.push(start),
                Some(Note::Accepted { job, at }) => drop(accepted.insert(job, at)),
                Some(Note::Grant(grant)) => log.grants.push(grant),
                Some(Note::Cpu(cpu)) => log.cpu = Some(cpu),
                Some(Note::Operations(count)) => log.operations = Some(count),
                None => return Err(io::Error::other(format!("a worker wrote {line:?}"))),
            }
        }
        for start in &mut log.starts {
            let apart = accepted.get(&start.job).copied().filter(|at| *at <= start.started);
            start.accepted = start.accepted.or(apart);
        }
        Ok(log)
    }
}
