//! What a worker holds: tasks in hand, runs, results that the store has not heard of, and runs that must not go on.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fmt,
};

use interval_queue_task_contract::{Completion, Leased, Outcome, Progress, Rank, Stop, Task, TaskId, Token};

/// Names one run of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId {
    /// The task.
    pub id: TaskId,
    /// The token of the run.
    pub token: Token,
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.id, self.token)
    }
}

/// A run that has begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    /// Its token.
    pub token: Token,
    /// How much of the capacity it takes.
    pub weight: u32,
    /// Whether it was told to end.
    pub asked: bool,
    /// Whether it was told so since the lease of the worker had ended.
    pub over: bool,
    /// How far it says that it is.
    pub progress: Option<Progress>,
    /// Whether the store is still to hear of that.
    pub news: bool,
}

/// A run that has to end. The driver says when it [has ended](crate::Worker::ended).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Order {
    /// Which one.
    pub run: RunId,
    /// Why.
    pub because: Because,
}

/// Why a run has to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Because {
    /// The store says that its token is not in force. Its result is not wanted.
    Lost,
    /// The lease of the worker has ended without an answer: somebody else may have the task. It ends at once; how is
    /// still told, and counts if the store has waited.
    LeaseEnded,
    /// The store asks for it. The run is given back, unless it was done before it noticed.
    Asked(Stop),
    /// The worker stops, and the grace is over. The run is given back, unless it was done before it noticed.
    Stopping,
}

/// All that a worker holds. A task is in one place at most, but for runs that are void.
#[derive(Clone, Debug, Default)]
pub struct Held {
    /// Leased and not begun, the most urgent first.
    pub hand: BTreeMap<Rank, Leased>,
    /// Where each of them stands there, and its mark: only a look at the rate with a higher number covers it.
    ranks: BTreeMap<TaskId, (Rank, u64)>,
    /// How many of them have a key.
    pub(crate) keyed: usize,
    /// Begun.
    pub running: BTreeMap<TaskId, Running>,
    /// Ended, and the store has not answered that it knows.
    pub ended: BTreeMap<TaskId, Completion>,
    /// Runs that are still to end and whose tokens are not in force, with their weights. They take up places.
    pub void: BTreeMap<RunId, u32>,
    /// How heavy those in hand and all runs are together.
    pub(crate) weight: u64,
    /// Tasks whose results are not told any more, since the store did not take them.
    pub(crate) unstored: Vec<TaskId>,
    /// Runs that have to end and of which the driver was not told yet.
    pub(crate) orders: VecDeque<Order>,
}

impl Held {
    /// Whether there is no token in force.
    pub fn is_free(&self) -> bool {
        self.hand.is_empty() && self.running.is_empty() && self.ended.is_empty()
    }

    /// Whether nothing is held, and nothing runs.
    pub fn is_empty(&self) -> bool {
        self.is_free() && self.void.is_empty()
    }

    /// How many places are taken.
    pub(crate) fn busy(&self) -> usize {
        self.running.len() + self.void.len()
    }

    /// Every token that counts as in force, but for those of these completed ones.
    pub(crate) fn tokens(&self, completed: &BTreeSet<RunId>) -> Vec<(TaskId, Token)> {
        let hand = self.hand.values().map(|leased| (leased.task.id, leased.task.token));
        let running = self.running.iter().map(|(id, run)| (*id, run.token));
        let ended =
            self.ended.values().map(|completion| RunId { id: completion.id, token: completion.token });
        let ended = ended.filter(|run| !completed.contains(run)).map(|run| (run.id, run.token));
        hand.chain(running).chain(ended).collect()
    }

    /// Gives back what is in hand and has not begun.
    pub(crate) fn give_back(&mut self, order: Rank) {
        if let Some(leased) = self.take(order) {
            let (id, token) = (leased.task.id, leased.task.token);
            self.ended.insert(id, Completion { id, token, outcome: Outcome::Exchanged });
        }
    }

    /// Where a task in hand stands.
    pub(crate) fn in_hand(&self, id: TaskId) -> Option<Rank> {
        self.ranks.get(&id).map(|&(rank, _)| rank)
    }

    /// The mark of a task in hand.
    pub(crate) fn mark(&self, id: TaskId) -> Option<u64> {
        self.ranks.get(&id).map(|&(_, mark)| mark)
    }

    /// Takes a task in hand, with its mark.
    pub(crate) fn put(&mut self, leased: Leased, mark: u64) {
        let order = leased.task.order();
        self.ranks.insert(order.id, (order, mark));
        self.keyed += usize::from(leased.task.key.is_some());
        self.weight += u64::from(leased.task.weight);
        self.hand.insert(order, leased);
    }

    /// Takes one out of it.
    pub(crate) fn take(&mut self, order: Rank) -> Option<Leased> {
        let leased = self.hand.remove(&order)?;
        self.ranks.remove(&order.id);
        self.keyed -= usize::from(leased.task.key.is_some());
        self.weight -= u64::from(leased.task.weight);
        Some(leased)
    }

    /// A run of this task has begun.
    pub(crate) fn begin(&mut self, task: &Task) {
        let (token, weight) = (task.token, task.weight);
        let running = Running { token, weight, asked: false, over: false, progress: None, news: false };
        self.running.insert(task.id, running);
        self.weight += u64::from(weight);
    }

    /// Takes out a run that has ended with its token in force. False: there is none.
    pub(crate) fn finish(&mut self, run: RunId) -> bool {
        let Some(running) = self.running.get(&run.id).filter(|running| running.token == run.token) else {
            return false;
        };
        self.weight -= u64::from(running.weight);
        self.running.remove(&run.id);
        true
    }

    /// Takes out a run that has ended and whose token was not in force. False: there is none.
    pub(crate) fn finish_void(&mut self, run: RunId) -> bool {
        let Some(weight) = self.void.remove(&run) else { return false };
        self.weight -= u64::from(weight);
        true
    }

    /// The token of this task is not in force any more. Which run that was, if any.
    pub(crate) fn lose(&mut self, id: TaskId) -> Option<RunId> {
        if let Some(running) = self.running.remove(&id) {
            let run = RunId { id, token: running.token };
            self.void.insert(run, running.weight);
            self.orders.retain(|order| order.run != run);
            self.orders.push_back(Order { run, because: Because::Lost });
            return Some(run);
        }
        if let Some(completion) = self.ended.remove(&id) {
            return Some(RunId { id, token: completion.token });
        }
        let order = self.in_hand(id)?;
        let leased = self.take(order)?;
        Some(RunId { id, token: leased.task.token })
    }

    /// Has a run end whose token is in force, once.
    pub(crate) fn end(&mut self, id: TaskId, because: Because) {
        if let Some(running) = self.running.get_mut(&id).filter(|running| !running.asked) {
            running.asked = true;
            self.orders.push_back(Order { run: RunId { id, token: running.token }, because });
        }
    }

    /// Has all runs end, whatever they were told before: the lease is over. The store is still told of them, since it
    /// may not know yet that they have begun, and would take them for leases that were lost on the way.
    pub(crate) fn end_all(&mut self) {
        for (&id, running) in self.running.iter_mut().filter(|(_, running)| !running.over) {
            (running.asked, running.over) = (true, true);
            let run = RunId { id, token: running.token };
            self.orders.push_back(Order { run, because: Because::LeaseEnded });
        }
    }
}
