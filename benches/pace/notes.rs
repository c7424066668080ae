//! What a worker writes down while it works, and how that is read again.
//!
//! One line for each event, as [`Note`] shows; times are nanoseconds on the monotonic clock unless said otherwise.

use std::{
    fmt::{self, Display, Write as _},
    fs::{self, File},
    io::{self, Write as _},
    path::Path,
    sync::{Mutex, PoisonError},
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
    /// Notes that are written at the end.
    kept: Option<Mutex<Vec<Note>>>,
}

impl Notebook {
    /// Appends to the file at `path`: each note at once and unbuffered, so that a killed worker loses none, or, if they are
    /// to be kept, all at the end.
    pub(crate) fn open(path: &Path, keep: bool) -> io::Result<Self> {
        let file = File::options().create(true).append(true).open(path)?;
        Ok(Self { file, kept: keep.then(Mutex::default) })
    }

    /// Panics if the file cannot be written: there is nobody else to tell.
    pub(crate) fn note(&self, notes: impl IntoIterator<Item = Note>) {
        match &self.kept {
            Some(kept) => kept.lock().unwrap_or_else(PoisonError::into_inner).extend(notes),
            None => self.write(notes),
        }
    }

    /// Writes what was kept.
    pub(crate) fn finish(&self) {
        if let Some(kept) = &self.kept {
            self.write(std::mem::take(&mut *kept.lock().unwrap_or_else(PoisonError::into_inner)));
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_noted_is_read_again_and_a_torn_line_is_left_out() {
        let directory = tempfile::tempdir().unwrap();
        for keep in [false, true] {
            let path = directory.path().join(format!("{keep}"));
            let book = Notebook::open(&path, keep).unwrap();
            let started = Start { job: 3, called: 10, accepted: None, started: 30 };
            let accepted = Start { job: 4, called: 11, accepted: Some(12), started: 40 };
            let grant = Grant { ticket: 7, slot: 5, sent: 4 };
            book.note([Note::Start(started), Note::Grant(grant)]);
            book.note([Note::Start(accepted)]);
            book.note([Note::Cpu(9), Note::Operations(2)]);
            book.finish();
            let mut file = File::options().append(true).open(&path).unwrap();
            file.write_all(b"S 5 1").unwrap();
            let log = Log::read(&path).unwrap();
            assert_eq!(log.starts, [started, accepted]);
            assert_eq!((log.grants, log.cpu, log.operations), (vec![grant], Some(9), Some(2)));
        }
    }

    #[test]
    fn what_says_nothing_is_an_error() {
        for line in ["S 1 2 3", "S 1 x 3 4", "hello", "C", ""] {
            assert!(Log::parse(&format!("{line}\n")).is_err(), "{line:?}");
        }
        assert_eq!(Log::parse("S 1 2 3 4 what others add\n").unwrap().starts.len(), 1);
    }
}
