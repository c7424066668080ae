//! What the tests of states in files share: what they say to one, copies of themselves in other
//! circumstances, and what every such state promises.

mod crowd;
mod promises;
mod under;

use std::{
    any::Any,
    fmt, fs,
    path::{Path, PathBuf},
    time::Duration,
};

use interval_queue_contract::{
    Change, Command, MaxRunning, Memory, Micros, OnExisting, QueueName, Rates, SharedState, Snapshot,
    StateError, StateErrorKind, Stepped, Ticket,
};

pub use self::{
    crowd::*,
    promises::*,
    under::{AS_IT_IS, NO_POWERS, OWN_MOUNTS, is_copy_under, mount, skipped, unmount},
};
use crate::Shard;

/// A kind of state in a file.
pub trait InFile: 'static {
    /// The state.
    type State: SharedState + Clone + fmt::Debug + 'static;
    /// What the file is called.
    const FILE: &'static str;
    /// How many processes of a crowd go on while others are killed: with none, those who come after recover
    /// what the killed ones left.
    const SURVIVORS: usize;

    /// Opens it.
    fn open_at(
        path: &Path,
        lock_timeout: Duration,
    ) -> impl Future<Output = Result<Self::State, StateError>> + Send;

    /// Where it says that it is.
    fn path(state: &Self::State) -> &Path;

    /// Holds up every command, as another process would, until this is dropped.
    fn hold(path: &Path) -> Box<dyn Any>;

    /// Whether what is stored is in order.
    fn is_whole(path: &Path) -> bool;

    /// Stores this text as the record of the queue `odd`.
    fn plant(path: &Path, record: &str);

    /// The texts of all records.
    fn records(path: &Path) -> String;
}

/// The name of a queue.
pub fn queue(name: &str) -> QueueName {
    QueueName::new(name).unwrap()
}

/// Opens a queue with an interval of a quarter of a second.
///
/// # Errors
///
/// Those of the state.
pub async fn open_queue_named(state: &dyn SharedState, name: &str) -> Result<(), StateError> {
    let change = Change::Open {
        rates: Some(Rates::every(Micros::from_millis(250))),
        max_running: MaxRunning::Keep,
        on_existing: OnExisting::Keep,
    };
    state.apply(&queue(name), Command::Change(change, Memory::default())).await.map(drop)
}

/// Opens the queue `mail`.
///
/// # Errors
///
/// Those of the state.
pub async fn open_queue(state: &dyn SharedState) -> Result<(), StateError> {
    open_queue_named(state, "mail").await
}

/// One that is open in `directory`, with the queue `mail`.
pub async fn state_in<S: InFile>(directory: &Path) -> (S::State, PathBuf) {
    let path = directory.canonicalize().unwrap().join(S::FILE);
    let state = open::<S>(&path).await.unwrap();
    open_queue(&state).await.unwrap();
    (state, path)
}

/// Opens it with patience.
///
/// # Errors
///
/// Those of the state.
pub async fn open<S: InFile>(path: impl AsRef<Path>) -> Result<S::State, StateError> {
    S::open_at(path.as_ref(), Duration::from_secs(5)).await
}

/// What is stored of the queue `mail`.
///
/// # Errors
///
/// Those of the state.
pub async fn look(state: &dyn SharedState) -> Result<Option<Snapshot>, StateError> {
    state.apply(&queue("mail"), Command::Read).await?.read()
}

/// The last ticket taken from the queue `mail`.
pub async fn last_ticket(state: &dyn SharedState) -> u64 {
    look(state).await.unwrap().unwrap().record.ticket.get()
}

/// A shard of the queue `mail` that takes tickets, asks for nothing and remembers nothing.
#[derive(Debug)]
pub struct Taker<S> {
    state: S,
    shard: Shard,
}

impl<S: SharedState + Clone> Taker<S> {
    /// One that has taken none yet.
    pub fn new(state: &S, shard: &str) -> Self {
        Self { state: state.clone(), shard: Shard { is_eager: false, ..Shard::new(shard) } }
    }

    /// Takes one ticket.
    ///
    /// # Errors
    ///
    /// Those of the state.
    pub async fn take(&mut self) -> Result<u64, StateError> {
        Ok(self.step(1).await?.taken.map_or(Ticket::NONE, |taken| taken.first).get())
    }

    /// Has nothing to do any more.
    ///
    /// # Errors
    ///
    /// Those of the state.
    pub async fn leave(&mut self) -> Result<(), StateError> {
        self.step(0).await.map(drop)
    }

    async fn step(&mut self, count: u32) -> Result<Stepped, StateError> {
        self.shard.waiting.clear();
        self.shard.memory = Memory::default();
        self.shard.step(&self.state, count).await
    }
}

/// Checks the kind of an error, and that its one line names the path and says this.
pub fn assert_error(error: &StateError, kind: StateErrorKind, path: &Path, says: &str) {
    let text = error.to_string();
    assert_eq!(error.kind(), kind, "{text}: {:?}", std::error::Error::source(error));
    assert!(text.contains(says), "{text:?} does not say {says:?}");
    assert!(text.contains(&path.display().to_string()), "{text:?} does not name {}", path.display());
    assert_eq!(text.lines().count(), 1, "{text:?} is one line");
}

/// Every file in `directory` with its contents, to compare before and after. Of the index of a log, in which
/// each look leaves marks, only the name.
pub fn all_files(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let contents = |path: PathBuf| {
        let is_index = path.to_string_lossy().ends_with("-shm");
        let contents = if is_index { Vec::new() } else { fs::read(&path).unwrap_or_default() };
        (path, contents)
    };
    let files = fs::read_dir(directory).unwrap();
    let mut files: Vec<_> = files.map(|entry| contents(entry.unwrap().path())).collect();
    files.sort();
    files
}
