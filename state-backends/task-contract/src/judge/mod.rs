//! Checks every command on stored tasks against the promises: rows before, reply, rows after.
//! Fuzzer and simulation use it; it shares no code with the rules.

mod between;
mod dump;
mod judge_rows;
mod keys;
mod order;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    time::Duration,
};

use interval_queue_contract::{Micros, StateErrorKind};

use crate::{
    Add, Added, Change, Command, Completed, Completion, Counted, Fired, Kind, Outcome as End, Overlap, Reply,
    State, Step, Stepped, Stop, Task, TaskId, Token, WorkerId,
};

pub use dump::Dump;

macro_rules! ensure {
    ($holds:expr, $($text:tt)*) => {
        if !$holds {
            return Err(format!($($text)*));
        }
    };
}
use ensure;

/// Whether a run was asked to stop by a cancellation.
fn is_cancelled(x: &Task) -> bool {
    x.state == State::Leased && x.stop == Some(Stop::Cancel)
}

/// The result of a command, as far as it is judged.
pub type Outcome = Result<Reply, StateErrorKind>;

/// The observed history of a queue. Errors name the broken promise and its cause: `T2: …`.
#[derive(Debug, Default)]
pub struct Judge {
    only_outages: bool,
    overlap: Overlap,
    rolled_back: bool,
    key_limits: BTreeMap<String, u32>,
    needs_rebalancing: bool,
    given: HashSet<(TaskId, Token)>,
    begun: HashSet<(TaskId, Token)>,
    /// Runs that may have had effects, by task and generation.
    runs: HashMap<(TaskId, u32), u32>,
    /// Tasks and generations that were leased.
    started: HashSet<(TaskId, u32)>,
    obeyed: HashSet<(WorkerId, u64)>,
    gone: BTreeSet<TaskId>,
    accepted: BTreeSet<TaskId>,
    /// New tasks that replaced the holder of their unique name.
    absorbed: HashSet<TaskId>,
    /// Measured in true time, since the beginning.
    ended: HashMap<TaskId, Duration>,
    positions: HashMap<TaskId, u32>,
    nominal: BTreeMap<Micros, TaskId>,
    ever: HashMap<(Kind, Counted), u64>,
    tasks: usize,
}

#[allow(clippy::missing_errors_doc, reason = "an error is always the promise that is broken")]
impl Judge {
    /// A judge of a new queue. `only_outages`: the only faults are an unreachable store and clock
    /// steps forward, so no lease may end. `overlap`: of all schedules.
    pub fn new(only_outages: bool, overlap: Overlap) -> Self {
        Self { only_outages, overlap, ..Self::default() }
    }

    /// Number of tasks stored so far.
    pub fn tasks(&self) -> usize {
        self.tasks
    }

    /// Number of runs begun.
    pub fn starts(&self) -> usize {
        self.begun.len()
    }

    /// Nominal instants that made a task, in order.
    pub fn nominal(&self) -> impl Iterator<Item = Micros> {
        self.nominal.keys().copied()
    }

    /// The store was rolled back to `now`: from here on only promises that such a store can keep
    /// are checked. Acknowledged tasks that are still stored stay acknowledged.
    pub fn rolled_back(&mut self, now: &Dump) {
        self.rolled_back = true;
        self.needs_rebalancing = true;
        self.gone.retain(|id| !now.tasks.contains_key(id));
        self.accepted.retain(|id| now.tasks.contains_key(id));
        self.ended.clear();
    }

    /// Whether the store was rolled back.
    pub fn was_rolled_back(&self) -> bool {
        self.rolled_back
    }

    /// A producer has received these replies. A task not stored `now` was added before the store
    /// lost it.
    pub fn accepted(&mut self, added: &[Added], now: &Dump) {
        let added = added.iter().filter(|added| !matches!(added, Added::Again(_))).map(|added| added.id());
        let is_lost = |id: &TaskId| self.rolled_back && !now.tasks.contains_key(id);
        self.accepted.extend(added.filter(|id| !is_lost(id)));
    }

    /// A worker begins a run.
    pub fn begins(&mut self, x: &Task) -> Result<(), String> {
        let is_new = self.begun.insert((x.id, x.token));
        ensure!(is_new, "T2: one token, two starts: task {} at {}", x.id, x.token);
        let runs = self.runs.entry((x.id, x.generation)).or_default();
        *runs += 1;
        let most = x.policy.max_attempts.unwrap_or(u32::MAX);
        ensure!(
            *runs <= most || self.rolled_back,
            "T3: task {} runs {runs} times, and may {most} times",
            x.id
        );
        Ok(())
    }

    /// Checks a queue without further faults: every task has ended; acknowledged ones were stored.
    pub fn ending(&self, last: &Dump) -> Result<(), String> {
        let left = last.rows().find(|x| !x.state.is_ended() || !x.notified);
        ensure!(left.is_none(), "T3: a task is left: {left:?}");
        let lost = self.accepted.iter().find(|id| !last.tasks.contains_key(id) && !self.gone.contains(id));
        ensure!(lost.is_none(), "T1: task {lost:?} was acknowledged, and never there");
        Ok(())
    }

    /// Checks a command, applied at `now` in true time since the beginning.
    pub fn command(
        &mut self,
        now: Duration,
        before: &Dump,
        after: &Dump,
        command: &Command,
        outcome: &Outcome,
    ) -> Result<(), String> {
        self.place(before, command, outcome);
        match (command, outcome) {
            (_, Err(kind)) => {
                ensure!(
                    match kind {
                        StateErrorKind::Superseded | StateErrorKind::NotFound => true,
                        StateErrorKind::Conflict => !matches!(command, Command::Change(Change::Tasks(_))),
                        _ => false,
                    },
                    "T9: a command was refused as {kind:?}"
                );
                self.same(before, after)?;
            }
            (Command::Add(add), Ok(Reply::Added(added))) => self.added(before, after, add, added)?,
            (Command::Step(step), Ok(Reply::Stepped(stepped))) => {
                self.stepped(before, after, step, stepped)?
            }
            (Command::Change(change), Ok(_)) => self.changed(change),
            (Command::Fire(fire), Ok(Reply::Fired(fired))) => {
                let made = after.tasks.keys().filter(|id| !before.tasks.contains_key(id)).count();
                ensure!(*fired == Fired::Made || made == 0, "T8: {fired:?}, and {made} tasks are made");
                let is_right = *fired != Fired::Made || made == fire.made.len() || self.rolled_back;
                ensure!(is_right, "T8: {} instants make {made} tasks", fire.made.len());
            }
            (command, Ok(reply)) => return Err(format!("T1: {command:?} was answered by {reply:?}")),
        }
        self.whole(now, before, after, Some(command))?;
        if let (Command::Step(step), Ok(Reply::Stepped(stepped))) = (command, outcome) {
            self.order(after, step, stepped)?;
        }
        Ok(())
    }

    /// Checks the end of a run within a transaction of the application, stored at `now` or
    /// rejected.
    pub fn completed_within(
        &mut self,
        now: Duration,
        before: &Dump,
        after: &Dump,
        worker: WorkerId,
        completion: &Completion,
        outcome: &Result<Completed, StateErrorKind>,
    ) -> Result<(), String> {
        let id = completion.id;
        let was = before.task(id);
        let is_mine = was.is_some_and(|x| {
            x.state == State::Leased
                && x.worker == Some(worker)
                && x.token == completion.token
                && !is_cancelled(x)
        });
        let is_stored = outcome.is_ok();
        ensure!(
            is_mine == is_stored,
            "T2: task {id} at {} is completed within a transaction: {outcome:?}, and it was {was:?}",
            completion.token
        );
        if !is_stored {
            return self.same(before, after);
        }
        let is = after.task(id);
        let has_ended = is.is_some_and(|x| x.state.is_ended() && !x.notified);
        ensure!(has_ended, "T3: task {id} was completed within a transaction, and is {is:?}");
        let others = |dump: &Dump| -> Vec<Task> { dump.rows().filter(|x| x.id != id).cloned().collect() };
        ensure!(
            others(before) == others(after),
            "T3: the end of task {id} within a transaction changes others"
        );
        self.whole(now, before, after, None)
    }

    fn whole(
        &mut self,
        now: Duration,
        before: &Dump,
        after: &Dump,
        by: Option<&Command>,
    ) -> Result<(), String> {
        self.between(now, before, after, by)?;
        self.rows(before, after)?;
        self.counts(after)?;
        self.keys(before, after)
    }

    fn same(&self, before: &Dump, after: &Dump) -> Result<(), String> {
        let different =
            after.tasks.iter().find(|(id, x)| before.tasks.get(id).is_none_or(|was| was.task != x.task));
        ensure!(different.is_none(), "T1: a refused command has changed {different:?}");
        ensure!(before.tasks.len() == after.tasks.len(), "T1: a refused command has removed a task");
        ensure!(before.counts == after.counts, "T10: a refused command has changed what is counted");
        Ok(())
    }

    fn added(&mut self, before: &Dump, after: &Dump, add: &Add, added: &[Added]) -> Result<(), String> {
        for (new, one) in add.tasks.iter().zip(added) {
            let id = one.id();
            let is_again =
                matches!(one, Added::New(_) | Added::Replaced(_)) && self.absorbed.contains(&new.id);
            ensure!(
                !is_again || self.rolled_back,
                "T1: task {} was put in the place of another one before, and a repeated add returns {one:?}",
                new.id
            );
            if matches!(one, Added::Replaced(_)) {
                self.absorbed.insert(new.id);
                self.runs.retain(|(of, _), _| *of != id);
            }
            let (was, is) = (before.tasks.contains_key(&id), after.tasks.contains_key(&id));
            ensure!(is, "T1: {one:?}, and it is not there");
            let is_new = added.contains(&Added::New(id));
            let is_right = if matches!(one, Added::New(_)) { !was } else { was || is_new };
            ensure!(is_right, "T1: {one:?}, and it was {}", if was { "there" } else { "not there" });
            ensure!(
                !matches!(one, Added::New(_)) || !self.gone.contains(&id) || self.rolled_back,
                "T1: task {id} was run, forgotten, and is added again"
            );
        }
        Ok(())
    }

    fn stepped(&mut self, before: &Dump, after: &Dump, step: &Step, stepped: &Stepped) -> Result<(), String> {
        let is_new = self.obeyed.insert((step.worker, step.sequence));
        ensure!(is_new || self.rolled_back, "T2: step {} of {} was obeyed twice", step.sequence, step.worker);
        for completion in &step.complete {
            let is_mine = |x: &Task| {
                x.state == State::Leased && x.worker == Some(step.worker) && x.token == completion.token
            };
            let was_mine = before.task(completion.id).is_some_and(is_mine);
            let is_lost = stepped.lost.contains(&completion.id);
            ensure!(
                was_mine != is_lost || self.rolled_back,
                "T2: task {} at {} was {}in force, and is {}reported as lost",
                completion.id,
                completion.token,
                if was_mine { "" } else { "not " },
                if is_lost { "" } else { "not " }
            );
            if let (true, Some(was), End::Released | End::Unable(_) | End::Exchanged | End::Retry(..)) =
                (was_mine, before.task(completion.id), &completion.outcome)
                && let Some(runs) = self.runs.get_mut(&(was.id, was.generation))
            {
                *runs = runs.saturating_sub(1);
            }
            let left = after.task(completion.id).filter(|x| is_mine(x));
            ensure!(
                left.is_none(),
                "T2: task {} was completed, and is leased at {}",
                completion.id,
                completion.token
            );
        }
        for leased in &stepped.leased {
            let x = &leased.task;
            ensure!(
                self.given.insert((x.id, x.token)),
                "T2: token {} of task {} is given out twice",
                x.token,
                x.id
            );
            ensure!(after.task(x.id) == Some(x), "T2: task {} is returned otherwise than it is stored", x.id);
            if self.started.insert((x.id, x.generation)) && !self.rolled_back {
                let mut edges = after.tasks.get(&x.id).into_iter().flat_map(|stored| &stored.upstreams);
                let early = edges.find(|edge| after.task(edge.up).is_none_or(|up| !up.state.is_ended()));
                ensure!(early.is_none(), "T7: task {} starts before {early:?} has ended", x.id);
            }
            ensure!(
                step.kinds.contains(&x.kind),
                "T2: task {} of kind {} is leased to a worker of others",
                x.id,
                x.kind
            );
            *self.ever.entry((x.kind.clone(), Counted::EverLeased)).or_default() += 1;
        }
        let held = step.held.iter().flatten().filter(|(id, _)| !stepped.lost.contains(id));
        for (id, token) in held {
            let is_mine = after.task(*id).is_some_and(|x| x.worker == Some(step.worker) && x.token == *token);
            ensure!(
                is_mine,
                "T2: task {id} at {token} is not leased to its worker any more, and is not reported as lost"
            );
        }
        ensure!(!stepped.resync || stepped.leased.is_empty(), "T2: a step that is to resync is given tasks");
        if !stepped.resync {
            self.needs_rebalancing = stepped.more;
        }
        Ok(())
    }

    fn changed(&mut self, change: &Change) {
        match change {
            Change::Key(key, limit) => {
                self.needs_rebalancing = true;
                match limit {
                    Some(limit) => self.key_limits.insert(key.to_string(), *limit),
                    None => self.key_limits.remove(key.as_str()),
                };
            }
            Change::Set(_) | Change::Kind(..) | Change::Open(..) => self.needs_rebalancing = true,
            _ => {}
        }
    }
}
