//! What is done under the lock: the index is opened, what others have left is finished, and commands are carried out,
//! many a transaction.

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

use super::{Trouble, index::Index, names, rebuild, round, round::Round, sweep, sweep::Sweeps};
use crate::store::Place;

/// A reply, or what a panic has left.
pub(super) type Answer = Result<Result<Reply, StateError>, Box<dyn Any + Send>>;

/// So often files that are not as the index has them are looked at before a command takes them as they are.
const STRICT: u32 = 3;

pub(super) type TaskClock = Arc<dyn Fn() -> Micros + Send + Sync>;

/// What a process keeps from one command to the next.
pub(super) struct Session {
    place: Arc<Place>,
    clock: Option<TaskClock>,
    index: Option<Index>,
    sweeps: HashMap<QueueName, Sweeps>,
    /// Whether what killed processes have left was removed.
    is_clean: bool,
}

impl Session {
    pub(super) fn new(place: Arc<Place>, clock: Option<TaskClock>) -> Self {
        Self { place, clock, index: None, sweeps: HashMap::new(), is_clean: false }
    }

    /// Carries out commands under the lock.
    pub(super) fn serve(&mut self, held: &Held<'_>, batch: &[(&QueueName, &Command)]) -> Vec<Answer> {
        let ready = catch_unwind(AssertUnwindSafe(|| self.prepare(held, batch)));
        let served = match ready {
            Ok(Ok(now)) => self.carry_out(now, batch),
            Ok(Err(error)) => batch.iter().map(|_| Ok(Err(error.clone()))).collect(),
            Err(panic) => {
                self.index = None;
                // It is the clock of a test that panics, and one of them hears of it.
                let again = StateError::new(
                    interval_queue_contract::StateErrorKind::Unreachable,
                    "the store was interrupted: nothing was stored",
                );
                let mut answers: Vec<Answer> = batch.iter().skip(1).map(|_| Ok(Err(again.clone()))).collect();
                answers.insert(0, Err(panic));
                answers
            }
        };
        if self.place.is_remote() || self.place.files().faults.is_dead() {
            // What is open may not show what another host has written.
            self.index = None;
        }
        served
    }

    /// The index as it is to be, with what was edited by hand in it.
    fn prepare(&mut self, held: &Held<'_>, batch: &[(&QueueName, &Command)]) -> Result<Micros, StateError> {
        let place = self.place.clone();
        let now = match &self.clock {
            Some(clock) => clock(),
            None => Micros::new(place.clock().read(held)?),
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
                let sweeps = self.sweeps.get(queue).copied().unwrap_or_default();
                let sweeps = sweep::sweep(&place, index, now, queue, sweeps, counts)?;
                self.sweeps.insert(queue.clone(), sweeps);
            }
            Ok(())
        });
        match ready {
            Ok(()) => Ok(now),
            Err(trouble) => {
                self.index = None;
                Err(trouble.tell(&place))
            }
        }
    }

    fn index(&self) -> Result<&Index, Trouble> {
        self.index.as_ref().ok_or(Trouble::Index(rusqlite::Error::InvalidQuery))
    }

    /// Opens the index, or makes it again if it is not to be used.
    fn open(&mut self, now: Micros) -> Result<(), Trouble> {
        if self.index.as_ref().is_some_and(|index| !index.is_current()) {
            self.index = None;
        }
        match self.try_open(now) {
            Err(trouble) if trouble.is_damage() => {
                self.index = None;
                Index::remove(&self.place)?;
                self.try_open(now)
            }
            other => other,
        }
    }

    fn try_open(&mut self, now: Micros) -> Result<(), Trouble> {
        if self.index.is_none() {
            self.index = Some(Index::open(&self.place)?);
        }
        let index = self.index()?;
        if !round::finish(&self.place, index)? {
            self.index = None;
            self.sweeps.clear();
            Index::remove(&self.place)?;
            let index = Index::open(&self.place)?;
            rebuild::rebuild(&self.place, &index, now)?;
            self.index = Some(index);
        }
        if !self.is_clean {
            // Nobody else writes while the lock is held, and what is to be put in its place was.
            for entry in fs::read_dir(self.place.files().at(names::TEMPORARY)).into_iter().flatten().flatten()
            {
                let _ = fs::remove_file(entry.path());
            }
            self.is_clean = true;
        }
        Ok(())
    }

    fn carry_out(&mut self, now: Micros, batch: &[(&QueueName, &Command)]) -> Vec<Answer> {
        let tell = |trouble: Trouble| Ok(Err(trouble.tell(&self.place)));
        match catch_unwind(AssertUnwindSafe(|| self.together(now, batch))) {
            Ok(Ok(answers)) => answers,
            Ok(Err(trouble)) if batch.len() == 1 => {
                let answer = tell(trouble);
                self.index = None;
                vec![answer]
            }
            Ok(Err(trouble @ (Trouble::Commit(_) | Trouble::Files(_)))) => {
                let error = trouble.tell(&self.place);
                self.index = None;
                batch.iter().map(|_| Ok(Err(error.clone()))).collect()
            }
            Err(panic) if batch.len() == 1 => {
                self.index = None;
                vec![Err(panic)]
            }
            // One of them fails in the index itself, or panics: it is not to take the others with it.
            Ok(Err(_)) | Err(_) => {
                self.index = None;
                let alone = |one: &(&QueueName, &Command)| match self.open(now) {
                    Ok(()) => self.carry_out(now, &[*one]).pop(),
                    Err(trouble) => Some(Ok(Err(trouble.tell(&self.place)))),
                };
                batch.iter().filter_map(alone).collect()
            }
        }
    }

    /// One after the other, each of which can be undone alone.
    fn together(&self, now: Micros, batch: &[(&QueueName, &Command)]) -> Result<Vec<Answer>, Trouble> {
        let index = self.index()?;
        let is_alone = batch.len() == 1;
        let mut tries = 0;
        'again: loop {
            tries += 1;
            let mut round = Round::begin(&self.place, index, now)?;
            let mut answers = Vec::with_capacity(batch.len());
            for &(queue, command) in batch {
                let is_strict = tries <= STRICT && matches!(command, Command::Step(_));
                let applied = if is_alone {
                    round.apply_alone(queue, command, is_strict)
                } else {
                    round.apply(queue, command, is_strict)
                };
                match applied {
                    Ok(reply) => answers.push(Ok(Ok(reply))),
                    Err(Trouble::Refused(error)) if is_alone => return Ok(vec![Ok(Err(error))]),
                    Err(Trouble::Refused(error)) => answers.push(Ok(Err(error))),
                    Err(Trouble::Look(suspects)) => {
                        drop(round);
                        sweep::look_at(&self.place, index, now, queue, &suspects)?;
                        continue 'again;
                    }
                    Err(trouble) => return Err(trouble),
                }
            }
            // What was not carried out the next command has to.
            let _ = round.commit()?;
            return Ok(answers);
        }
    }
}
