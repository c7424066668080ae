//! The work under the lock: opens the index, finishes the redo list of a killed process, and
//! carries out commands in batches.

use std::{
    any::Any,
    collections::HashMap,
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use interval_queue_contract::{Micros, QueueName, StateError};
use interval_queue_json_file::parts::Held;
use interval_queue_task_contract::{Command, Read, Reply};

use super::{
    TransactionError, edit_scan, edit_scan::ScanState, index::Index, names, rebuild, transaction,
    transaction::DirectoryTransaction,
};
use crate::store::Location;

/// A reply, or the payload of a panic.
pub(super) type Answer = Result<Result<Reply, StateError>, Box<dyn Any + Send>>;

/// Attempts before a command uses files that differ from the index as they are.
const MAX_STRICT_ATTEMPTS: u32 = 3;

pub(super) type TaskClock = Arc<dyn Fn() -> Micros + Send + Sync>;

/// Lasts from one command to the next.
pub(super) struct Session {
    location: Arc<Location>,
    clock: Option<TaskClock>,
    index: Option<Index>,
    scan_states: HashMap<QueueName, ScanState>,
    /// Temporary files of killed processes have been removed.
    is_clean: bool,
}

impl Session {
    pub(super) fn new(location: Arc<Location>, clock: Option<TaskClock>) -> Self {
        Self { location, clock, index: None, scan_states: HashMap::new(), is_clean: false }
    }

    pub(super) fn serve(&mut self, held: &Held<'_>, batch: &[(&QueueName, &Command)]) -> Vec<Answer> {
        let ready = catch_unwind(AssertUnwindSafe(|| self.prepare(held, batch)));
        let served = match ready {
            Ok(Ok(now)) => self.carry_out(now, batch),
            Ok(Err(error)) => batch.iter().map(|_| Ok(Err(error.clone()))).collect(),
            Err(panic) => {
                self.index = None;
                // Only the clock of a test panics. One caller gets the panic, the others an error.
                let again = StateError::new(
                    interval_queue_contract::StateErrorKind::Unreachable,
                    "the store was interrupted: nothing was stored",
                );
                let mut answers: Vec<Answer> = batch.iter().skip(1).map(|_| Ok(Err(again.clone()))).collect();
                answers.insert(0, Err(panic));
                answers
            }
        };
        if self.location.is_remote() || self.location.files().faults.is_dead() {
            // An open index may not show the writes of another host.
            self.index = None;
        }
        served
    }

    /// Opens the index and reconciles edits by hand. Returns the time.
    fn prepare(&mut self, held: &Held<'_>, batch: &[(&QueueName, &Command)]) -> Result<Micros, StateError> {
        let location = self.location.clone();
        let now = match &self.clock {
            Some(clock) => clock(),
            None => Micros::new(location.clock().read(held)?),
        };
        let ready = self.open(now).and_then(|()| {
            let mut queues: Vec<_> = batch.iter().map(|(queue, _)| *queue).collect();
            queues.sort_unstable();
            queues.dedup();
            for queue in queues {
                let counts = batch
                    .iter()
                    .any(|(of, command)| *of == queue && matches!(command, Command::Read(Read::Overview)));
                let index = self.index()?;
                let scan_state = self.scan_states.get(queue).copied().unwrap_or_default();
                let scan_state = edit_scan::scan(&location, index, now, queue, scan_state, counts)?;
                self.scan_states.insert(queue.clone(), scan_state);
            }
            Ok(())
        });
        match ready {
            Ok(()) => Ok(now),
            Err(error) => {
                self.index = None;
                Err(error.into_state_error(&location))
            }
        }
    }

    fn index(&self) -> Result<&Index, TransactionError> {
        self.index.as_ref().ok_or(TransactionError::Index(rusqlite::Error::InvalidQuery))
    }

    /// Rebuilds a corrupt index.
    fn open(&mut self, now: Micros) -> Result<(), TransactionError> {
        if self.index.as_ref().is_some_and(|index| !index.is_current()) {
            self.index = None;
        }
        match self.try_open(now) {
            Err(error) if error.is_corruption() => {
                self.index = None;
                Index::remove(&self.location)?;
                self.try_open(now)
            }
            other => other,
        }
    }

    fn try_open(&mut self, now: Micros) -> Result<(), TransactionError> {
        if self.index.is_none() {
            self.index = Some(Index::open(&self.location)?);
        }
        let index = self.index()?;
        if !transaction::finish(&self.location, index)? {
            self.index = None;
            self.scan_states.clear();
            Index::remove(&self.location)?;
            let index = Index::open(&self.location)?;
            rebuild::rebuild(&self.location, &index, now)?;
            self.index = Some(index);
        }
        if !self.is_clean {
            // Under the lock no other process writes, and the redo list has been carried out.
            for entry in
                fs::read_dir(self.location.files().at(names::TEMPORARY_DIR)).into_iter().flatten().flatten()
            {
                let _ = fs::remove_file(entry.path());
            }
            self.is_clean = true;
        }
        Ok(())
    }

    fn carry_out(&mut self, now: Micros, batch: &[(&QueueName, &Command)]) -> Vec<Answer> {
        let refuse = |error: TransactionError| Ok(Err(error.into_state_error(&self.location)));
        match catch_unwind(AssertUnwindSafe(|| self.apply_batch(now, batch))) {
            Ok(Ok(answers)) => answers,
            Ok(Err(error)) if batch.len() == 1 => {
                let answer = refuse(error);
                self.index = None;
                vec![answer]
            }
            Ok(Err(error @ (TransactionError::Commit(_) | TransactionError::Files(_)))) => {
                let error = error.into_state_error(&self.location);
                self.index = None;
                batch.iter().map(|_| Ok(Err(error.clone()))).collect()
            }
            Err(panic) if batch.len() == 1 => {
                self.index = None;
                vec![Err(panic)]
            }
            // A command failed in the index or panicked: each is carried out alone, so the others
            // succeed.
            Ok(Err(_)) | Err(_) => {
                self.index = None;
                let carry_out_one = |one: &(&QueueName, &Command)| match self.open(now) {
                    Ok(()) => self.carry_out(now, &[*one]).pop(),
                    Err(error) => Some(Ok(Err(error.into_state_error(&self.location)))),
                };
                batch.iter().filter_map(carry_out_one).collect()
            }
        }
    }

    /// A refused command is undone alone.
    fn apply_batch(
        &self,
        now: Micros,
        batch: &[(&QueueName, &Command)],
    ) -> Result<Vec<Answer>, TransactionError> {
        let index = self.index()?;
        let is_only_command = batch.len() == 1;
        let mut attempts = 0;
        'again: loop {
            attempts += 1;
            let mut transaction = DirectoryTransaction::begin(&self.location, index, now)?;
            let mut answers = Vec::with_capacity(batch.len());
            for &(queue, command) in batch {
                let is_strict = attempts <= MAX_STRICT_ATTEMPTS && matches!(command, Command::Step(_));
                let applied = if is_only_command {
                    transaction.apply_only(queue, command, is_strict)
                } else {
                    transaction.apply(queue, command, is_strict)
                };
                match applied {
                    Ok(reply) => answers.push(Ok(Ok(reply))),
                    Err(TransactionError::Refused(error)) if is_only_command => {
                        return Ok(vec![Ok(Err(error))]);
                    }
                    Err(TransactionError::Refused(error)) => answers.push(Ok(Err(error))),
                    Err(TransactionError::Recheck(suspects)) => {
                        drop(transaction);
                        edit_scan::scan_tasks(&self.location, index, now, queue, &suspects)?;
                        continue 'again;
                    }
                    Err(error) => return Err(error),
                }
            }
            // A redo list that failed is carried out before the next command.
            let _ = transaction.commit()?;
            return Ok(answers);
        }
    }
}
