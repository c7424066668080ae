//! Observations that need whole processes: two runs of one task at a time, when runs learn of a
//! cancellation, and how often idle workers poll.

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use interval_queue_task_contract::{
    Change, Command, Reply, State, Stop, TaskId, Token, Verb, WorkerId, judge::Dump,
};

/// Two runs of a task may seem to overlap by this: timers have a grain of a millisecond, and clocks
/// drift.
const TIMER_GRAIN: Duration = Duration::from_millis(5);

/// The longest of ordinary messages.
const ROUND_TRIP: Duration = Duration::from_millis(150);

/// After a fault: commands time out, and are retried after a while.
const RECOVERY: Duration = Duration::from_secs(8);

#[derive(Default)]
pub(crate) struct RunMonitor {
    runs: BTreeMap<TaskId, Vec<MonitoredRun>>,
    given: HashMap<(TaskId, Token), (Duration, WorkerId)>,
    declared_lost: HashMap<WorkerId, Duration>,
    /// Lease and number of steps of a process's worker.
    steps: HashMap<usize, (Duration, u64)>,
    /// Runs that must learn that they are cancelled or their worker was declared lost, and by when.
    to_notify: Vec<(TaskId, Token, Duration)>,
    lost: Option<Duration>,
    stepped_forward: Option<Duration>,
    undisturbed_from: Duration,
}

struct MonitoredRun {
    token: Token,
    began: Duration,
    ended: Option<Duration>,
    /// Ignores requests to stop.
    is_stray: bool,
    /// Whether it checks for a cancellation.
    listens: bool,
    is_notified: bool,
}

impl RunMonitor {
    pub(super) fn lost(&mut self, at: Duration) {
        self.lost = Some(at);
    }

    pub(super) fn clock_stepped(&mut self, micros: i64, at: Duration) {
        if micros > 0 {
            self.stepped_forward = Some(at);
        }
    }

    pub(super) fn disturbed(&mut self, until: Duration) {
        self.undisturbed_from = self.undisturbed_from.max(until);
    }

    pub(super) fn applied(
        &mut self,
        process: usize,
        command: &Command,
        reply: &Reply,
        after: &Dump,
        at: Duration,
    ) {
        match (command, reply) {
            (Command::Step(step), Reply::Stepped(stepped)) => {
                let (lease, steps) = self.steps.entry(process).or_default();
                *lease = (*lease).max(step.lease.to_duration());
                *steps += 1;
                for leased in &stepped.leased {
                    self.given.insert((leased.task.id, leased.task.token), (at, step.worker));
                }
            }
            (Command::Change(Change::Tasks(change)), Reply::Touched(touched))
                if change.verb == Verb::Cancel && at > self.undisturbed_from + RECOVERY =>
            {
                let by = self.notified_by(at);
                let ids = touched.ids.iter().filter_map(|id| after.task(*id));
                let asked = ids.filter(|x| x.state == State::Leased && x.stop == Some(Stop::Cancel));
                self.to_notify.extend(asked.map(|x| (x.id, x.token, by)));
            }
            (Command::Change(Change::DeclareLost(worker)), _) => {
                self.declared_lost.insert(*worker, at);
                if at > self.undisturbed_from + RECOVERY {
                    let by = self.notified_by(at);
                    let held = self.given.iter().filter(|(_, (_, of))| of == worker);
                    self.to_notify.extend(held.map(|(&(id, token), _)| (id, token, by)));
                }
            }
            _ => {}
        }
    }

    fn notified_by(&self, at: Duration) -> Duration {
        let lease = self.steps.values().map(|(lease, _)| *lease).max().unwrap_or_default();
        at + lease / 2 + ROUND_TRIP
    }

    /// T9: whether all runs have learned in time.
    pub(crate) fn all_notified(&mut self, now: Duration) -> Result<(), String> {
        if self.to_notify.is_empty() {
            return Ok(());
        }
        let due = |(_, _, by): &(TaskId, Token, Duration)| now > *by;
        let late: Vec<_> = self.to_notify.iter().copied().filter(due).collect();
        self.to_notify.retain(|asked| !due(asked));
        for (id, token, by) in late {
            let runs = self.runs.get(&id).into_iter().flatten();
            let deaf = runs.filter(|run| run.token == token && run.ended.is_none_or(|ended| ended > by));
            // A fault meanwhile excuses a run.
            let deaf =
                deaf.filter(|run| run.listens && !run.is_notified && self.undisturbed_from + RECOVERY < by);
            if deaf.count() > 0 {
                return Err(format!(
                    "T9: task {id} at {token} was cancelled or lost, and was not notified by {by:?}"
                ));
            }
        }
        Ok(())
    }

    pub(crate) fn began(
        &mut self,
        id: TaskId,
        token: Token,
        (is_stray, listens): (bool, bool),
        at: Duration,
    ) {
        let run = MonitoredRun { token, began: at, ended: None, is_stray, listens, is_notified: false };
        self.runs.entry(id).or_default().push(run);
    }

    pub(crate) fn leased_at(&self, id: TaskId, token: Token) -> Duration {
        self.given.get(&(id, token)).map_or(Duration::ZERO, |&(at, _)| at)
    }

    pub(crate) fn notified(&mut self, id: TaskId, token: Token) {
        let runs = self.runs.get_mut(&id).into_iter().flatten();
        runs.filter(|run| run.token == token).for_each(|run| run.is_notified = true);
    }

    /// T2: a run has ended, in a process that was last stopped until `stopped`.
    pub(crate) fn ended(
        &mut self,
        id: TaskId,
        token: Token,
        at: Duration,
        stopped: Option<Duration>,
    ) -> Result<(), String> {
        let given = self.leased_at(id, token);
        let is_declared_lost = self
            .given
            .get(&(id, token))
            .is_some_and(|(_, worker)| self.declared_lost.get(worker).is_some_and(|at| *at >= given));
        let Some(runs) = self.runs.get_mut(&id) else { return Ok(()) };
        let Some(run) = runs.iter_mut().find(|run| run.token == token && run.ended.is_none()) else {
            return Ok(());
        };
        run.ended = Some(at);
        let began = run.began;
        // Stated limits: a run overlaps its successor if it is stopped for longer than a lease,
        // ignores the end of its lease, or the store forgot the lease or its clock was stepped
        // forward. A worker declared lost ends its runs when it polls.
        let is_excused = run.is_stray
            || is_declared_lost
            || stopped.is_some_and(|until| until > given)
            || self.stepped_forward.is_some_and(|stepped| stepped >= given);
        if is_excused {
            return Ok(());
        }
        // The store had forgotten a lease when it issued a lower token. It believes that token's
        // worker, and the other worker learns so with its next step.
        let is_overruled = |token: Token, given: Duration| {
            let others = self.given.iter().filter(|((of, _), _)| *of == id);
            others.into_iter().any(|((_, other), (at, _))| *other > token && *at < given)
        };
        let is_lost = |token: Token| {
            let given = self.given.get(&(id, token)).map_or(Duration::ZERO, |&(at, _)| at);
            self.lost.is_some_and(|lost| lost >= given) || is_overruled(token, given)
        };
        let overlaps = |other: &&MonitoredRun| {
            other.token > token
                && !is_lost(token)
                && !is_lost(other.token)
                && other.ended.is_none_or(|ended| ended > began)
                && other.began.max(began) + TIMER_GRAIN < other.ended.map_or(at, |ended| ended.min(at))
        };
        match runs.iter().find(overlaps) {
            Some(other) => Err(format!(
                "T2: task {id} ran at {token} from {began:?} to {at:?}, and at {} from {:?} on",
                other.token, other.began
            )),
            None => Ok(()),
        }
    }

    pub(crate) fn running(&self) -> usize {
        self.runs.values().flatten().filter(|run| run.ended.is_none()).count()
    }

    pub(crate) fn leases(&self) -> usize {
        self.given.len()
    }

    /// Lease and number of steps.
    pub(crate) fn steps(&self, process: usize) -> (Duration, u64) {
        self.steps.get(&process).copied().unwrap_or_default()
    }

    pub(crate) fn all_steps(&self) -> u64 {
        self.steps.values().map(|(_, steps)| steps).sum()
    }
}
