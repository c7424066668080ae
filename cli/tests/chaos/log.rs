//! The log of a scene: each process appends what it did, a line with one write, so that it is whole also if the
//! process is killed next.

use std::{
    collections::BTreeSet,
    env,
    fmt::{self, Display},
    fs::{self, File},
    io::Write,
    path::PathBuf,
};

use interval_queue::contract::Micros;
use interval_queue_tasks::{TaskId, Token};

use crate::process::now;

/// Tells a copy where the log is, and the number under which it writes.
pub(crate) const LOG: &str = "INTERVAL_QUEUE_TEST_LOG";
pub(crate) const NUMBER: &str = "INTERVAL_QUEUE_TEST_NUMBER";

/// One run of a task.
pub(crate) type Run = (TaskId, Token);

/// What a process writes with.
#[derive(Debug)]
pub(crate) struct Pen {
    file: File,
    number: String,
}

impl Pen {
    /// As the environment says.
    pub(crate) fn open() -> Self {
        let file = File::options().append(true).open(env::var_os(LOG).unwrap()).unwrap();
        Self { file, number: env::var(NUMBER).unwrap() }
    }

    pub(crate) fn write(&self, said: impl Display) {
        let line = format!("{} {} {said}\n", now(), self.number);
        (&self.file).write_all(line.as_bytes()).unwrap();
    }
}

/// A run that logs its end, whatever that is.
#[derive(Debug)]
pub(crate) struct Logged<'a> {
    pen: &'a Pen,
    run: String,
    ended: bool,
}

impl<'a> Logged<'a> {
    pub(crate) fn begin(pen: &'a Pen, id: impl Display, token: impl Display) -> Self {
        let run = format!("{id} {token}");
        pen.write(format_args!("begun {run}"));
        Self { pen, run, ended: false }
    }

    /// It has not ended yet.
    pub(crate) fn lives(&self) {
        self.pen.write(format_args!("lives {}", self.run));
    }

    /// It has heard that it is to end.
    pub(crate) fn hears(&self) {
        self.pen.write(format_args!("heard {}", self.run));
    }

    /// It ends so: `done`, `failed`, `retry` or `released`.
    pub(crate) fn end(mut self, how: &str) {
        self.pen.write(format_args!("ended {} {how}", self.run));
        self.ended = true;
    }
}

impl Drop for Logged<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.pen.write(format_args!("dropped {}", self.run));
        }
    }
}

/// A task as its producer tells of it before it adds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Made {
    pub(crate) id: TaskId,
    pub(crate) key: Option<String>,
    /// The task that is to be done before.
    pub(crate) up: Option<TaskId>,
    /// Whether it may run at most once.
    pub(crate) once: bool,
}

impl Display for Made {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let up = self.up.map(|up| up.to_string());
        let key = self.key.as_deref().unwrap_or_default();
        write!(f, "{}/{key}/{}/{}", self.id, up.unwrap_or_default(), u8::from(self.once))
    }
}

impl Made {
    fn read(text: &str) -> Self {
        let parts: Vec<_> = text.split('/').collect();
        let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        Self {
            id: parts[0].parse().unwrap(),
            key: some(parts[1]),
            up: some(parts[2]).map(|up| up.parse().unwrap()),
            once: parts[3] == "1",
        }
    }
}

/// What was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// It is ready to work.
    Ready,
    /// It adds nothing any more.
    Stopped,
    Begun(Run),
    Ended(Run, String),
    /// The run was given up before its end.
    Dropped(Run),
    /// The run has not ended yet.
    Lives(Run),
    /// The run has heard that it is to end.
    Heard(Run),
    /// The worker was told that this token is not in force.
    Lost(Run),
    /// The worker was told that a result of this task is not stored.
    Refused(TaskId),
    /// The store failed.
    Trouble(String),
    /// The store answers the worker again, or a worker begins that was never kept waiting.
    Answered,
    /// A batch is about to be added.
    Adding(Vec<Made>),
    /// It was: how many of it were there already.
    Added(Vec<TaskId>, usize),
    /// This task is about to be cancelled.
    Cancelling(TaskId),
    Panic(String),
}

impl Said {
    fn read(text: &str) -> Self {
        let (verb, rest) = text.split_once(' ').unwrap_or((text, ""));
        let words: Vec<_> = rest.split(' ').collect();
        let run = || (words[0].parse().unwrap(), token(words[1]));
        match verb {
            "ready" => Self::Ready,
            "stopped" => Self::Stopped,
            "begun" => Self::Begun(run()),
            "ended" => Self::Ended(run(), words[2].to_owned()),
            "dropped" => Self::Dropped(run()),
            "lives" => Self::Lives(run()),
            "heard" => Self::Heard(run()),
            "lost" => Self::Lost(run()),
            "refused" => Self::Refused(words[0].parse().unwrap()),
            "trouble" => Self::Trouble(rest.to_owned()),
            "answered" => Self::Answered,
            "adding" => Self::Adding(words.into_iter().map(Made::read).collect()),
            "added" => {
                let ids = words[1..].iter().map(|id| id.parse().unwrap()).collect();
                Self::Added(ids, words[0].parse().unwrap())
            }
            "cancelling" => Self::Cancelling(words[0].parse().unwrap()),
            "panic" => Self::Panic(rest.to_owned()),
            _ => panic!("the log says {text:?}"),
        }
    }
}

fn token(text: &str) -> Token {
    let (incarnation, attempt) = text.split_once('.').unwrap();
    Token { incarnation: Micros::new(incarnation.parse().unwrap()), attempt: attempt.parse().unwrap() }
}

/// A line of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) at: u64,
    pub(crate) who: usize,
    pub(crate) said: Said,
}

/// The whole, as far as it was read.
#[derive(Debug)]
pub(crate) struct Log {
    path: PathBuf,
    read: usize,
    pub(crate) lines: Vec<Line>,
    /// How many runs were done.
    pub(crate) done: usize,
    /// The processes that are ready.
    pub(crate) ready: BTreeSet<usize>,
    pub(crate) stopped: BTreeSet<usize>,
    /// Those that told of a failure of the store, and of no answer since.
    pub(crate) unanswered: BTreeSet<usize>,
}

impl Log {
    /// The one that is there.
    pub(crate) fn at(path: PathBuf) -> Self {
        let (ready, stopped, unanswered) = Default::default();
        Self { path, read: 0, lines: Vec::new(), done: 0, ready, stopped, unanswered }
    }

    /// Reads what was written since.
    pub(crate) fn refresh(&mut self) {
        let text = fs::read(&self.path).unwrap();
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        for line in String::from_utf8_lossy(&text[self.read..whole.max(self.read)]).lines() {
            let mut words = line.splitn(3, ' ');
            let mut number = || words.next().unwrap().parse::<u64>().unwrap();
            let (at, who) = (number(), usize::try_from(number()).unwrap());
            let said = Said::read(words.next().unwrap());
            match &said {
                Said::Ready => drop(self.ready.insert(who)),
                Said::Stopped => drop(self.stopped.insert(who)),
                Said::Trouble(_) => drop(self.unanswered.insert(who)),
                Said::Answered => drop(self.unanswered.remove(&who)),
                Said::Ended(_, how) => self.done += usize::from(how == "done"),
                Said::Panic(text) => panic!("process {who} panicked: {text}"),
                _ => {}
            }
            self.lines.push(Line { at, who, said });
        }
        self.read = whole;
    }

    /// How often a process told of a failure of the store with this text.
    pub(crate) fn troubles(&self, with: &str) -> usize {
        let is_one = |line: &&Line| matches!(&line.said, Said::Trouble(text) if text.contains(with));
        self.lines.iter().filter(is_one).count()
    }
}
