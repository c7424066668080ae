//! The public type: where a command runs, and on which thread.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use async_trait::async_trait;
use interval_queue_contract::{
    Changes, Command, QueueName, Reply, SharedState, StateError, StateErrorKind, rules,
};
use tokio::{
    sync::{Mutex, Semaphore},
    task::spawn_blocking,
};

use crate::{
    Builder, clock,
    database::Database,
    error::Fault,
    patience::Patience,
    place::Place,
    store::{self, Store},
};

/// So many look at the same time: each has a connection, of three open files.
const LOOKS: usize = 16;

/// Queues in one SQLite database that processes share. See the [crate's documentation](crate).
///
/// Cloning gives another handle to the same connection. One per process and database is enough; several are
/// as safe.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use interval_queue_contract::{Change, Command, MaxRunning, Memory, Micros, OnExisting, QueueName, SharedState};
/// use interval_queue_sqlite::SqliteState;
///
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("queues.db");
/// let state = SqliteState::open(&path).await?;
/// let open = Change::Open {
///     interval: Some(Micros::from_millis(250)),
///     max_running: MaxRunning::Keep,
///     on_existing: OnExisting::Replace,
/// };
/// state.apply(&QueueName::new("mail")?, Command::Change(open, Memory::default())).await?;
/// assert_eq!(state.queues().await?, [QueueName::new("mail")?]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct SqliteState {
    place: Arc<Place>,
    /// Keeps the threads of this process apart. An async one, so that commands that wait for each other
    /// occupy no thread.
    store: Arc<Mutex<Store>>,
    looks: Arc<Semaphore>,
}

impl SqliteState {
    /// Begins to open the database at `path`, which need not be there, in a directory that must be.
    pub fn builder(path: impl Into<PathBuf>) -> Builder {
        Builder::new(path.into())
    }

    /// Opens the database at `path` with the defaults of the [`Builder`].
    ///
    /// # Errors
    ///
    /// As [`Builder::open`].
    ///
    /// # Cancel safety
    ///
    /// As [`Builder::open`].
    pub async fn open(path: impl Into<PathBuf>) -> Result<Self, StateError> {
        Self::builder(path).open().await
    }

    /// Where the database really is: absolute and without symbolic links.
    pub fn path(&self) -> &Path {
        self.place.path()
    }

    pub(crate) async fn open_with(options: Builder) -> Result<Self, StateError> {
        blocking(move || {
            let place = Arc::new(Place::find(&options)?);
            let store = Store::prepare(place.clone(), &place.patience())?;
            Ok(Self { place, store: Arc::new(Mutex::new(store)), looks: Arc::new(Semaphore::new(LOOKS)) })
        })
        .await
    }

    /// Looks at the database, once not too many others of this process do.
    async fn look<T: Send + 'static>(
        &self,
        look: impl Fn(&Database, &Place, &Patience) -> Result<T, Fault> + Send + 'static,
    ) -> Result<Option<T>, StateError> {
        let (place, patience) = (self.place.clone(), self.place.patience());
        let turn = self.looks.clone().acquire_owned().await;
        blocking(move || {
            let _turn = turn;
            store::look(&place, &patience, |database| look(database, &place, &patience))
        })
        .await
    }
}

/// # Cancel safety
///
/// A command that was begun is carried through, whether or not somebody still waits for its reply; one that
/// waits for others of this process is not begun.
#[async_trait]
impl SharedState for SqliteState {
    async fn apply(&self, queue: &QueueName, command: Command) -> Result<Reply, StateError> {
        let queue = queue.clone();
        if matches!(command, Command::Read) {
            let record = self.look(move |database, place, patience| database.record(place, patience, &queue));
            return rules::apply(&mut record.await?.flatten(), &clock::host(), &command);
        }
        // The wait for commands of this process counts too, so that a queue of them does not wait one
        // time-out each.
        let patience = self.place.patience();
        let mut store = self.store.clone().lock_owned().await;
        blocking(move || store.change(&patience, &queue, &command)).await
    }

    async fn queues(&self) -> Result<Vec<QueueName>, StateError> {
        Ok(self.look(Database::queues).await?.unwrap_or_default())
    }

    async fn changes(&self, _: &QueueName) -> Result<Changes, StateError> {
        let text = format!(
            "{} cannot be watched: leave wake-ups off, or use Redis, PostgreSQL or a JSON file with the feature \
             \"json-file-watch\"",
            self.place.path().display()
        );
        Err(StateError::new(StateErrorKind::Unsupported, text))
    }
}

impl fmt::Debug for SqliteState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteState").field("place", &self.place).finish_non_exhaustive()
    }
}

/// Runs what may block where it may. Once begun it is carried through, also if nobody waits for it any more.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StateError> + Send + 'static,
) -> Result<T, StateError> {
    match spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(error) => Err(StateError::new(
                StateErrorKind::Unreachable,
                "the runtime is shutting down: the command was not begun",
            )
            .with_source(error)),
        },
    }
}
