//! Everything that a worker holds: tasks not begun, runs, unconfirmed results, and runs that must
//! end.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Instant,
};

use interval_queue_task_contract::{Completion, Leased, Outcome, Progress, Rank, Stop, Task, TaskId, Token};

use crate::{run_id::RunId, unsent_logs::UnsentLogs};

/// A run that has begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    /// Its token.
    pub token: Token,
    /// Its share of the capacity.
    pub weight: u32,
    /// Whether it was asked to end.
    pub asked: bool,
    /// Whether it was asked to end because the lease had ended.
    pub over: bool,
    /// Last reported progress.
    pub progress: Option<Progress>,
    /// Whether the store must learn of the progress.
    pub is_unreported: bool,
}

/// A run that must end. The driver reports its [end](crate::Worker::ended).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Order {
    /// The run.
    pub run: RunId,
    /// The reason.
    pub because: Because,
}

/// Why a run must end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Because {
    /// The token of the run is not in force. Its result does not count.
    Lost,
    /// The lease ended without a reply: another worker may have the task. The run must end at once.
    /// Its outcome is still reported, and counts if the store has waited.
    LeaseEnded,
    /// The store requests it. The run is given back, unless it completes first.
    Asked(Stop),
    /// The worker stops, and the grace period is over. The run is given back, unless it completes
    /// first.
    Stopping,
}

/// Everything that a worker holds. A task is in one collection at most, except for void runs.
#[derive(Clone, Debug, Default)]
pub struct Held {
    /// Tasks in hand, most urgent first.
    pub leased: BTreeMap<Rank, Leased>,
    /// With mark and arrival: only a lookup with a number above the mark covers the task.
    ranks: BTreeMap<TaskId, (Rank, u64, Instant)>,
    arrivals: BTreeSet<(Instant, TaskId)>,
    /// Begun runs.
    pub running: BTreeMap<TaskId, Running>,
    /// Ended runs, until the store confirms them.
    pub ended: BTreeMap<TaskId, Completion>,
    /// Runs still to end with tokens not in force, and their weights. They use permits.
    pub void: BTreeMap<RunId, u32>,
    /// Lines that runs have logged, until the store confirms them.
    pub logs: UnsentLogs,
    /// Weight of tasks not begun and all runs.
    pub(crate) weight: u64,
    /// Rejected by the store; no longer reported.
    pub(crate) unstored: Vec<TaskId>,
    /// Ends of runs, not yet passed to the driver.
    pub(crate) orders: VecDeque<Order>,
}

impl Held {
    /// Whether no token is in force.
    pub fn is_free(&self) -> bool {
        self.leased.is_empty() && self.running.is_empty() && self.ended.is_empty()
    }

    /// Whether nothing is held and nothing runs.
    pub fn is_empty(&self) -> bool {
        self.is_free() && self.void.is_empty()
    }

    pub(crate) fn busy(&self) -> usize {
        self.running.len() + self.void.len()
    }

    /// Tokens that count as in force, without those of `completed`.
    pub(crate) fn tokens(&self, completed: &BTreeSet<RunId>) -> Vec<(TaskId, Token)> {
        let leased = self.leased.values().map(|leased| (leased.task.id, leased.task.token));
        let running = self.running.iter().map(|(id, run)| (*id, run.token));
        let ended =
            self.ended.values().map(|completion| RunId { id: completion.id, token: completion.token });
        let ended = ended.filter(|run| !completed.contains(run)).map(|run| (run.id, run.token));
        leased.chain(running).chain(ended).collect()
    }

    pub(crate) fn give_back(&mut self, order: Rank) {
        if let Some(leased) = self.take(order) {
            let (id, token) = (leased.task.id, leased.task.token);
            self.ended.insert(id, Completion { id, token, outcome: Outcome::Exchanged });
        }
    }

    pub(crate) fn give_back_last(&mut self) {
        if let Some(last) = self.leased.keys().next_back().copied() {
            self.give_back(last);
        }
    }

    pub(crate) fn rank_in_hand(&self, id: TaskId) -> Option<Rank> {
        self.ranks.get(&id).map(|&(rank, ..)| rank)
    }

    pub(crate) fn mark(&self, id: TaskId) -> Option<u64> {
        self.ranks.get(&id).map(|&(_, mark, _)| mark)
    }

    pub(crate) fn oldest_in_hand(&self) -> Option<Instant> {
        self.arrivals.first().map(|(arrived, _)| *arrived)
    }

    pub(crate) fn put(&mut self, leased: Leased, mark: u64, received: Instant) {
        let order = leased.task.order();
        self.ranks.insert(order.id, (order, mark, received));
        self.arrivals.insert((received, order.id));
        self.weight += u64::from(leased.task.weight);
        self.leased.insert(order, leased);
    }

    pub(crate) fn take(&mut self, order: Rank) -> Option<Leased> {
        let leased = self.leased.remove(&order)?;
        if let Some((_, _, received)) = self.ranks.remove(&order.id) {
            self.arrivals.remove(&(received, order.id));
        }
        self.weight -= u64::from(leased.task.weight);
        Some(leased)
    }

    pub(crate) fn begin(&mut self, task: &Task) {
        let (token, weight) = (task.token, task.weight);
        let running =
            Running { token, weight, asked: false, over: false, progress: None, is_unreported: false };
        self.running.insert(task.id, running);
        self.weight += u64::from(weight);
    }

    /// With its token in force. False: no such run.
    pub(crate) fn finish(&mut self, run: RunId) -> bool {
        let Some(running) = self.running.get(&run.id).filter(|running| running.token == run.token) else {
            return false;
        };
        self.weight -= u64::from(running.weight);
        self.running.remove(&run.id);
        self.logs.end(run);
        true
    }

    /// False: no such run.
    pub(crate) fn finish_void(&mut self, run: RunId) -> bool {
        let Some(weight) = self.void.remove(&run) else { return false };
        self.weight -= u64::from(weight);
        true
    }

    /// The task's token is not in force any more. Returns its run.
    pub(crate) fn lose(&mut self, id: TaskId) -> Option<RunId> {
        if let Some(running) = self.running.remove(&id) {
            let run = RunId { id, token: running.token };
            self.void.insert(run, running.weight);
            self.logs.remove(run);
            self.orders.retain(|order| order.run != run);
            self.orders.push_back(Order { run, because: Because::Lost });
            return Some(run);
        }
        if let Some(completion) = self.ended.remove(&id) {
            return Some(RunId { id, token: completion.token });
        }
        let order = self.rank_in_hand(id)?;
        let leased = self.take(order)?;
        Some(RunId { id, token: leased.task.token })
    }

    /// A run with its token in force, once.
    pub(crate) fn end(&mut self, id: TaskId, because: Because) {
        if let Some(running) = self.running.get_mut(&id).filter(|running| !running.asked) {
            running.asked = true;
            self.orders.push_back(Order { run: RunId { id, token: running.token }, because });
        }
    }

    /// All runs, even if asked before: the lease has ended. Their tokens are still reported: the
    /// store may not know that they began, and would count them as leases lost on the way.
    pub(crate) fn end_all(&mut self) {
        for (&id, running) in self.running.iter_mut().filter(|(_, running)| !running.over) {
            (running.asked, running.over) = (true, true);
            let run = RunId { id, token: running.token };
            self.orders.push_back(Order { run, because: Because::LeaseEnded });
        }
    }
}
