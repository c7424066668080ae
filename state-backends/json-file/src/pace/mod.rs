//! The records of queues in the text of a file. One command makes one change.

use std::path::{Path, PathBuf};

use async_trait::async_trait;
use interval_queue_contract::{
    Changes, Command, Micros, QueueName, Reading, Record, Reply, SharedState, StateError, rules,
};
use interval_queue_store::files::clock;

use self::document::Document;
use crate::{JsonFileStore, store::Change};

pub(crate) mod document;

/// Queues in one JSON file that processes share. See the [crate's documentation](crate).
///
/// A clone is a handle to the same open file. One per process is enough; several are safe.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use interval_queue_contract::{Change, Command, MaxRunning, Memory, Micros, OnExisting, Rates, QueueName, SharedState};
/// use interval_queue_json_file::JsonFileState;
///
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("queues.json");
/// let state = JsonFileState::open(&path).await?;
/// let open = Change::Open {
///     rates: Some(Rates::every(Micros::from_millis(250))),
///     max_running: MaxRunning::Keep,
///     on_existing: OnExisting::Replace,
/// };
/// state.apply(&QueueName::new("mail")?, Command::Change(open, Memory::default())).await?;
/// assert!(std::fs::read_to_string(&path)?.contains(r#""interval": 250000"#));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct JsonFileState {
    store: JsonFileStore,
}

impl JsonFileState {
    /// Opens the state file at `path` with the defaults of the [`Builder`](crate::Builder).
    ///
    /// # Errors
    ///
    /// As [`Builder::open`](crate::Builder::open) and [`on`](Self::on).
    pub async fn open(path: impl Into<PathBuf>) -> Result<Self, StateError> {
        Self::on(&JsonFileStore::builder(path).open().await?).await
    }

    /// The queues in a file. Checks the text, creates the lock file and probes that the lock
    /// excludes. The first command that changes something creates the file.
    ///
    /// # Errors
    ///
    /// Each names the path and a remedy. The file stays unchanged.
    ///
    /// | kind | why |
    /// |---|---|
    /// | `Denied` | no right to read the file or to write to the directory, or it is read-only |
    /// | `Damaged` | the file is empty, truncated, not JSON, or names a queue twice |
    /// | `Foreign` | it is JSON of something else, or the lock file is not one |
    /// | `NewerVersion` | a newer version of this software wrote it |
    /// | `Full` | no room for the lock file |
    /// | `Unsupported` | the lock does not exclude here |
    /// | `Unreachable` | another process held the lock too long, or the file system failed |
    ///
    /// # Cancel safety
    ///
    /// A dropped future may leave an empty lock file, nothing else.
    pub async fn on(store: &JsonFileStore) -> Result<Self, StateError> {
        store.prepare(|path, text| Document::parse(path, text, None).map(drop)).await?;
        Ok(Self { store: store.clone() })
    }

    /// The file's absolute path without symbolic links.
    pub fn path(&self) -> &Path {
        self.store.path()
    }
}

/// # Cancel safety
///
/// A command that has begun completes even if its future is dropped. A command that still waits for
/// others of this process is then never begun.
#[async_trait]
impl SharedState for JsonFileState {
    async fn apply(&self, queue: &QueueName, command: Command) -> Result<Reply, StateError> {
        let queue = queue.clone();
        if matches!(command, Command::Read) && !self.store.stamps() {
            let mut record = self.store.query(move |path, text| record(path, text, &queue)).await?;
            return rules::apply(&mut record, &reading(clock::host()), &command);
        }
        self.store.change(move |change| carry_out(change, queue, &command)).await
    }

    async fn queues(&self) -> Result<Vec<QueueName>, StateError> {
        self.store.query(|path, text| Document::parse(path, text, None).map(Document::names)).await
    }

    #[cfg(feature = "watch")]
    async fn changes(&self, queue: &QueueName) -> Result<Changes, StateError> {
        let queue = queue.clone();
        let revision = move |path: &Path, text: Option<&[u8]>| {
            Ok(record(path, text, &queue)?.map(|record| record.revision))
        };
        self.store.watch(revision).await
    }

    #[cfg(not(feature = "watch"))]
    async fn changes(&self, _: &QueueName) -> Result<Changes, StateError> {
        let text = format!(
            "{} is not watched: use the feature \"json-file-watch\" of interval-queue, \"watch\" of interval-queue-json-file, \
             or leave wake-ups off",
            self.path().display()
        );
        Err(StateError::new(interval_queue_contract::StateErrorKind::Unsupported, text))
    }
}

fn carry_out(change: &mut Change<'_>, queue: QueueName, command: &Command) -> Result<Reply, StateError> {
    let mut document = Document::parse(change.path, change.before, Some(&queue))?;
    let mut record = document.take(change.path, &queue)?;
    let reply = rules::apply(&mut record, &reading(change.now), command)?;
    if !matches!(command, Command::Read) {
        if let Some(record) = record {
            document.put(queue, record);
        }
        document.write_to(change.after)?;
    }
    Ok(reply)
}

fn record(path: &Path, text: Option<&[u8]>, queue: &QueueName) -> Result<Option<Record>, StateError> {
    Document::parse(path, text, Some(queue))?.take(path, queue)
}

fn reading(micros: u64) -> Reading {
    Reading::of_clock(Micros::new(micros))
}
