//! What the tests of this crate share: a queue to work on, and copies of the test program in other
//! circumstances.
#![allow(dead_code, reason = "each test program uses a part")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    env,
    ffi::OsStr,
    io::{self, Write},
    path::{Path, PathBuf},
    process::{Command as Program, Stdio},
};

use interval_queue_contract::{
    Change, Command, Label, Late, MaxRunning, Memory, Micros, OnExisting, QueueName, ShardId, SharedState,
    Snapshot, StateError, Step, Stepped, Take, Ticket,
};
use interval_queue_json_file::JsonFileState;

/// Tells a copy of a test program what it is to work on.
const ARGUMENT: &str = "JSON_FILE_TEST_ARGUMENT";

pub(crate) fn queue(name: &str) -> QueueName {
    QueueName::new(name).unwrap()
}

/// Opens the queue `mail` with an interval of a quarter of a second.
pub(crate) async fn open_queue(state: &JsonFileState) -> Result<(), StateError> {
    let change = Change::Open {
        interval: Some(Micros::from_millis(250)),
        max_running: MaxRunning::Keep,
        on_existing: OnExisting::Join,
    };
    state.apply(&queue("mail"), Command::Change(change, Memory::default())).await.map(drop)
}

/// An open state file in `directory` with the queue `mail`.
pub(crate) async fn state_in(directory: &Path) -> (JsonFileState, PathBuf) {
    let path = directory.join("state.json");
    let state = JsonFileState::open(&path).await.unwrap();
    open_queue(&state).await.unwrap();
    (state, path)
}

pub(crate) async fn look(state: &JsonFileState) -> Result<Option<Snapshot>, StateError> {
    state.apply(&queue("mail"), Command::Read).await?.read()
}

/// The last ticket taken from the queue `mail`.
pub(crate) async fn last_ticket(state: &JsonFileState) -> u64 {
    look(state).await.unwrap().unwrap().record.ticket.get()
}

/// A shard of the queue `mail` that only takes tickets.
#[derive(Debug)]
pub(crate) struct Taker {
    state: JsonFileState,
    shard: ShardId,
    step: u64,
}

impl Taker {
    pub(crate) fn new(state: &JsonFileState, shard: &str) -> Self {
        Self { state: state.clone(), shard: ShardId::new(shard).unwrap(), step: 0 }
    }

    /// Takes one ticket.
    pub(crate) async fn take(&mut self) -> Result<u64, StateError> {
        let request = self.step + 1;
        let Stepped { taken, .. } = self.step(Some(Take { request, count: 1, weights: Vec::new() })).await?;
        Ok(taken.map_or(Ticket::NONE, |taken| taken.first).get())
    }

    /// Has nothing to do any more.
    pub(crate) async fn leave(&mut self) -> Result<(), StateError> {
        self.step(None).await.map(drop)
    }

    async fn step(&mut self, take: Option<Take>) -> Result<Stepped, StateError> {
        self.step += 1;
        let step = Step {
            shard: self.shard.clone(),
            label: Label::default(),
            sequence: self.step,
            memory: Memory::default(),
            lease: Micros::from_millis(60_000),
            lead: Micros::ZERO,
            take,
            ask: Vec::new(),
            then: None,
            late: Late::NextSlot,
            running: 0,
            given_up: None,
        };
        self.state.apply(&queue("mail"), Command::Step(step)).await?.stepped()
    }
}

/// Every file below `directory` with its contents, to compare before and after.
pub(crate) fn all_files(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files: Vec<_> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.clone(), std::fs::read(path).unwrap_or_default()))
        .collect();
    files.sort();
    files
}

/// What this copy of the test program is to work on, if it is a copy.
pub(crate) fn argument() -> Option<String> {
    env::var(ARGUMENT).ok()
}

/// A copy of this test program that runs the test `name` alone, started by `wrapper`, for example
/// `unshare --mount`.
pub(crate) fn copy_of(name: &str, argument: impl AsRef<OsStr>, wrapper: &[&str]) -> Program {
    let this = env::current_exe().unwrap();
    let mut copy = match wrapper.split_first() {
        Some((program, arguments)) => {
            let mut copy = Program::new(program);
            copy.args(arguments).arg(this);
            copy
        }
        None => Program::new(this),
    };
    copy.args(["--exact", name, "--nocapture", "--include-ignored"])
        .env(ARGUMENT, argument)
        .stdin(Stdio::null());
    copy
}

/// Runs the rest of a test in a copy started by `wrapper`, or says aloud that this host does not let it.
pub(crate) fn run_under(name: &str, argument: impl AsRef<OsStr>, wrapper: &[&str]) {
    let (program, arguments) = wrapper.split_first().unwrap();
    let can = Program::new(program).args(arguments).arg("true").stderr(Stdio::null()).status();
    if !can.is_ok_and(|status| status.success()) {
        // Not `eprintln!`, which a passing test swallows.
        let _ = writeln!(io::stderr(), "SKIPPED {name}: needs `{}`", wrapper.join(" "));
        return;
    }
    let output = copy_of(name, argument, wrapper).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
