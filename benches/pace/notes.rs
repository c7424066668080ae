//! What a worker writes down while it works, and how that is read again.
//!
//! One line for each event, as [`Note`] shows; times are nanoseconds on the monotonic clock unless said otherwise.

use std::{
    fmt::{self, Display, Write as _},
    fs::{self, File},
    io::{self, Write as _},
    path::Path,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

/// Something that happened in a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Note {
    Start(Start),
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
            "G" => Some(Self::Grant(Grant { ticket: number()?, slot: number()?, sent: number()? })),
            "C" => number().map(Self::Cpu),
            "O" => number().map(Self::Operations),
            _ => None,
        }
    }
}

/// Where a worker writes its notes.
#[derive(Debug)]
pub(crate) struct Notebook {
    file: File,
    kept: Option<Kept>,
}

/// Notes that are written at the end.
#[derive(Debug)]
struct Kept {
    /// One for each job, so that jobs on several threads do not wait for each other.
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
    /// Appends each note to the file at `path` at once and unbuffered, so that a killed worker loses none.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { file: File::options().create(true).append(true).open(path)?, kept: None })
    }

    /// Keeps the notes of jobs 0 to `jobs` - 1 in memory, and appends all of them at the end.
    pub(crate) fn open_later(path: &Path, jobs: u64) -> io::Result<Self> {
        let starts = (0..jobs).map(|_| KeptStart::default()).collect();
        Ok(Self { kept: Some(Kept { starts, others: Mutex::default() }), ..Self::open(path)? })
    }

    pub(crate) fn start(&self, start: Start) {
        let place = self.kept.as_ref().and_then(|kept| kept.starts.get(usize::try_from(start.job).ok()?));
        match place {
            Some(place) if place.begin(start.started) => {
                place.called.store(start.called, Ordering::Relaxed);
                place.accepted.store(start.accepted.unwrap_or(0), Ordering::Relaxed);
            }
            // One that starts again gets a note of its own.
            _ => self.note([Note::Start(start)]),
        }
    }

    /// Panics if the file cannot be written: there is nobody else to tell.
    pub(crate) fn note(&self, notes: impl IntoIterator<Item = Note>) {
        match &self.kept {
            Some(kept) => kept.others.lock().unwrap_or_else(PoisonError::into_inner).extend(notes),
            None => self.write(notes),
        }
    }

    /// Writes what was kept.
    pub(crate) fn finish(&self) {
        let Some(kept) = &self.kept else { return };
        let starts = (0..).zip(&kept.starts).filter_map(|(job, start)| {
            let [called, accepted, started] =
                [&start.called, &start.accepted, &start.started].map(|time| time.load(Ordering::Relaxed));
            let accepted = Some(accepted).filter(|accepted| *accepted > 0);
            (started > 0).then_some(Note::Start(Start { job, called, accepted, started }))
        });
        let others = std::mem::take(&mut *kept.others.lock().unwrap_or_else(PoisonError::into_inner));
        self.write(starts.chain(others));
    }

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
    /// Reads what a worker wrote. The last line of a killed one may be torn; any other that says nothing is an error.
    pub(crate) fn read(path: &Path) -> io::Result<Self> {
        Self::parse(&fs::read_to_string(path)?)
    }

    fn parse(text: &str) -> io::Result<Self> {
        let mut log = Self::default();
        for line in text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
            match Note::parse(line) {
                Some(Note::Start(start)) => log.starts.push(start),
                Some(Note::Grant(grant)) => log.grants.push(grant),
                Some(Note::Cpu(cpu)) => log.cpu = Some(cpu),
                Some(Note::Operations(count)) => log.operations = Some(count),
                None => return Err(io::Error::other(format!("a worker wrote {line:?}"))),
            }
        }
        Ok(log)
    }
}
