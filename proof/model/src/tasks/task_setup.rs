//! What is checked: how many workers with which tasks, and what may happen or go wrong how often.

use std::time::Duration;

use interval_queue_contract::Micros;
use interval_queue_task_contract::{
    Change, Json, Key, NewTask, Outcome, Policy, SettingsChange, TaskId, Verb, WorkerId,
};
use uuid::Uuid;

use super::Flaw;

/// The step in which time passes: the longest silence of all that counts, a quarter of a lease.
pub(crate) const TICK: Micros = Micros::from_millis(1_000);
/// The lease of every worker.
pub(crate) const LEASE: Micros = Micros::from_millis(4_000);

/// Workers that share a queue of stored tasks, and their circumstances.
#[derive(Clone, Debug)]
pub struct Setup {
    /// How many workers there are. Each makes its first step whenever it likes.
    pub workers: usize,
    /// How many runs each has at once, and how many tasks it takes ahead.
    pub permits: (u32, u32),
    /// What is added first, in one batch.
    pub tasks: Vec<NewTask>,
    /// The settings of the queue.
    pub settings: SettingsChange,
    /// What may happen once each, whenever it likes.
    pub once: Vec<Once>,
    /// How long a step takes to the store.
    pub requests: Requests,
    /// When workers begin what they hold.
    pub starts: Starts,
    /// How late workers may be.
    pub lateness: Lateness,
    /// How much of the housekeeping a step does, if not as much as usual.
    pub share: Option<u32>,
    /// What may go wrong, and how often.
    pub trouble: Trouble,
    /// What is wrong with the rules or the workers.
    pub flaw: Option<Flaw>,
}

/// What may happen once.
#[derive(Clone, Debug)]
pub enum Once {
    /// A producer adds a task.
    Add(NewTask),
    /// An operator does something with the task of this number.
    Verb(Verb, u32),
    /// An operator changes something for all.
    Change(Change),
    /// A run ends so.
    End(Outcome),
    /// A run ends so within a transaction of the application, or is to be tried again if that is refused.
    Within(Outcome),
    /// The same, and its handler does not hear of the commit: it says that the run has failed.
    Unheard(Outcome),
}

impl Once {
    /// Whether it is a run that ends.
    pub(crate) fn is_end(&self) -> bool {
        matches!(self, Self::End(_) | Self::Within(_) | Self::Unheard(_))
    }
}

/// How long a step takes from a worker to the store. The answer takes as long as it likes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requests {
    /// No time.
    Quick,
    /// As long as it likes, also when its worker does not wait for it any more.
    Slow,
}

/// How late a worker may be. Its runs take as long as they like in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lateness {
    /// By any time, so that its lease may end.
    Any,
    /// By less than a tick: in each it makes a step and hears of the answer, as long as it lives.
    ATick,
}

/// When a worker begins a run that it could begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Starts {
    /// As soon as it can.
    AtOnce,
    /// Whenever it likes.
    Late,
}

/// How often something may go wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Trouble {
    /// A step gets no answer: the request or the reply is lost, or the request arrives later.
    pub timeouts: u8,
    /// A request arrives twice, the second time whenever it likes.
    pub doubles: u8,
    /// A worker dies.
    pub crashes: u8,
    /// A worker is told to stop; its runs may take a tick.
    pub stops: u8,
}

impl Setup {
    /// So many workers with one place each and these tasks, quick requests, and no trouble.
    pub fn new(workers: usize, tasks: impl IntoIterator<Item = NewTask>) -> Self {
        Self {
            workers,
            permits: (1, 0),
            tasks: tasks.into_iter().collect(),
            settings: SettingsChange { policy: Some(attempts(2)), ..SettingsChange::default() },
            once: Vec::new(),
            requests: Requests::Quick,
            starts: Starts::AtOnce,
            lateness: Lateness::Any,
            share: None,
            trouble: Trouble::default(),
            flaw: None,
        }
    }

    /// What may go wrong.
    #[must_use]
    pub fn trouble(self, trouble: Trouble) -> Self {
        Self { trouble, ..self }
    }

    /// What may happen once, each.
    #[must_use]
    pub fn once(self, once: impl IntoIterator<Item = Once>) -> Self {
        Self { once: once.into_iter().collect(), ..self }
    }

    /// Workers that are late by less than a tick.
    #[must_use]
    pub fn punctual(self) -> Self {
        Self { lateness: Lateness::ATick, ..self }
    }

    /// The longest backoff of any task.
    fn max_backoff(&self) -> Micros {
        let later = self.once.iter().filter_map(|once| match once {
            Once::Add(task) => task.policy.max_backoff,
            _ => None,
        });
        let own = self.tasks.iter().filter_map(|task| task.policy.max_backoff);
        own.chain(self.settings.policy.map(|policy| policy.max_backoff))
            .chain(later)
            .max()
            .unwrap_or_default()
    }

    /// Within how many ticks every task ends once there is no more trouble: the dead keep theirs for a lease, of
    /// which each tick takes two at worst, and each failure waits for its backoff.
    pub(crate) fn bound(&self) -> u64 {
        let lease = LEASE.get() / TICK.get();
        let waits = self.max_backoff().get() / TICK.get();
        3 * lease + waits * 2
    }
}

/// So many attempts, with a backoff of a tick.
pub fn attempts(most: u32) -> Policy {
    let tick = Duration::from_micros(TICK.get());
    Policy::default().max_attempts(most).backoff(tick, tick)
}

/// A task with this number, and nothing else that is not the default.
pub fn task(number: u32) -> NewTask {
    NewTask::new(id(number), Json::default())
}

/// The id of the task with this number.
pub fn id(number: u32) -> TaskId {
    TaskId::new(Uuid::from_u128(number.into()))
}

/// The number of a task.
pub(crate) fn number(id: TaskId) -> u32 {
    id.uuid().as_u128() as u32
}

pub(crate) fn worker(n: usize) -> WorkerId {
    WorkerId::new(Uuid::from_u128(n as u128 + 1))
}

/// A key of this name.
///
/// # Panics
///
/// It is no name.
pub fn key(name: &str) -> Key {
    Key::new(name).unwrap_or_else(|error| unreachable!("{error}"))
}
