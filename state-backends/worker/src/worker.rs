//! The worker: settings, and the driver's calls between two steps.

use std::time::{Duration, Instant};

use interval_queue_contract::{InvalidInput, Label, Micros};
use interval_queue_task_contract::{
    Completion, FreeCapacity, Kind, MAX_HELD, MAX_KINDS, MAX_LEASE, MIN_LEASE, Outcome, Progress, WorkerId,
};

use crate::{
    connection::Connection,
    held::{Held, Order},
    pace::Pace,
    prefetch::Prefetch,
    run_id::RunId,
};

/// Settings, constant or set by the driver.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    /// Its id, new for each start of a process.
    pub worker: WorkerId,
    /// Label for people.
    pub label: Label,
    /// Kinds that it serves, sorted, without those set aside.
    pub kinds: Vec<Kind>,
    /// The worker counts as alive for this long after a step.
    pub lease: Micros,
    /// Maximum number of runs. If workers share permits, the driver sets it each time.
    pub permits: u32,
    /// Maximum number of tasks leased ahead of free permits.
    pub prefetch: u32,
    /// Maximum weight of all that it holds. `None`: unlimited.
    pub capacity: Option<u32>,
}

impl Identity {
    /// Checks every bound.
    ///
    /// # Errors
    ///
    /// Names the value and the permitted range.
    pub fn check(&self) -> Result<(), InvalidInput> {
        let wrong = |text: String| Err(InvalidInput::new(text));
        if !(MIN_LEASE..=MAX_LEASE).contains(&self.lease) {
            return wrong(format!("lease {:?}: give 1 s to a day", self.lease.to_duration()));
        }
        if self.kinds.is_empty() {
            return wrong("a worker without a handler: give it one for each kind that it serves".into());
        }
        if self.kinds.len() > MAX_KINDS {
            return wrong(format!("{} kinds: serve at most {MAX_KINDS}", self.kinds.len()));
        }
        let most = self.permits.saturating_add(self.prefetch);
        if self.permits == 0 || most > MAX_HELD {
            let Self { permits, prefetch, .. } = self;
            return wrong(format!(
                "{permits} jobs at once and {prefetch} ahead: give 1 to {MAX_HELD} together"
            ));
        }
        if self.capacity == Some(0) {
            return wrong("capacity 0: give at least 1".into());
        }
        Ok(())
    }

    pub(crate) fn lease(&self) -> Duration {
        self.lease.to_duration()
    }
}

/// A stop in progress.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Stopping {
    /// Deadline of the runs.
    pub by: Instant,
    /// Whether the runs were asked to end.
    pub runs_asked: bool,
    /// Whether the store has answered the last step.
    pub is_reported: bool,
}

/// A worker. The proofs read its fields; change them through its methods.
#[derive(Clone, Debug)]
pub struct Worker {
    /// Its settings.
    pub identity: Identity,
    /// Connection state.
    pub connection: Connection,
    /// Held tasks and runs.
    pub held: Held,
    /// Knowledge of the rate.
    pub pace: Pace,
    /// Knowledge of its own speed.
    pub prefetch: Prefetch,
    /// Set once it is to stop.
    pub stopping: Option<Stopping>,
}

impl Worker {
    /// A worker before its first step.
    pub fn new(identity: Identity) -> Self {
        Self {
            identity,
            connection: Connection::new(),
            held: Held::default(),
            pace: Pace::default(),
            prefetch: Prefetch::default(),
            stopping: None,
        }
    }

    /// The next run that must end. Each run is returned once.
    pub fn order(&mut self) -> Option<Order> {
        self.held.orders.pop_front()
    }

    /// Takes in the end of a run, [`Released`](Outcome::Released) if ended from outside. Returns
    /// whether the result counts: its token is in force.
    pub fn ended(&mut self, run: RunId, outcome: Outcome) -> bool {
        self.held.orders.retain(|order| order.run != run);
        if self.held.finish_void(run) {
            // A task that did not fit may fit now.
            self.connection.dry &= self.identity.capacity.is_none();
            return false;
        }
        let RunId { id, token } = run;
        if !self.held.finish(run) {
            return false;
        }
        self.held.ended.insert(id, Completion { id, token, outcome });
        true
    }

    /// Takes in the end of a run that a transaction of the application has completed in the store.
    /// If it did not, the next list of held leases corrects that.
    pub fn completed(&mut self, run: RunId) {
        self.held.orders.retain(|order| order.run != run);
        self.held.finish_void(run);
        self.held.finish(run);
        // Tasks that wait for this one or its key continue with the next step.
        self.connection.again = true;
    }

    /// Requests no more tasks of this kind, and gives back those in hand.
    pub fn set_aside(&mut self, kind: &Kind) {
        self.identity.kinds.retain(|other| other != kind);
        let hand = self.held.leased.iter().filter(|(_, leased)| leased.task.kind == *kind);
        let hand: Vec<_> = hand.map(|(order, _)| *order).collect();
        hand.into_iter().for_each(|order| self.held.give_back(order));
    }

    /// Requests tasks of this kind again.
    pub fn take_up(&mut self, kind: Kind) {
        if let Err(at) = self.identity.kinds.binary_search(&kind) {
            self.identity.kinds.insert(at, kind);
            self.connection.notified = true;
        }
    }

    /// Takes in progress for the next step to report.
    pub fn progress(&mut self, run: RunId, progress: Progress) {
        let running = self.held.running.get_mut(&run.id).filter(|running| running.token == run.token);
        if let Some(running) = running {
            (running.progress, running.is_unreported) = (Some(progress), true);
        }
    }

    /// Takes in a line that a run has logged at `at`, for the next step to report. The last
    /// [`MAX_LOG_LINES`](interval_queue_task_contract::MAX_LOG_LINES) wait for it.
    pub fn log(&mut self, run: RunId, at: Instant, text: String) {
        if self.held.running.get(&run.id).is_some_and(|running| running.token == run.token) {
            self.held.logs.write(run, at, text);
        }
    }

    /// Takes in that a task may be ready or must be stopped.
    pub fn notify(&mut self) {
        self.connection.notified = true;
    }

    /// Late binding: the next step gives back a task in hand and requests the most urgent one. Done
    /// when [`exchanged`](Self::exchanged) has reached the returned number.
    pub fn exchange(&mut self) -> u64 {
        self.connection.exchange.0 += 1;
        self.connection.exchange.0
    }

    /// Exchanges answered by the store.
    pub fn exchanged(&self) -> u64 {
        self.connection.exchange.1
    }

    /// Counts ended runs as completed. `None`: unlimited.
    pub(crate) fn free_capacity(&self) -> Option<FreeCapacity> {
        let (capacity, held) = (self.identity.capacity?, self.held.weight);
        let held = u32::try_from(held).unwrap_or(u32::MAX);
        Some(FreeCapacity { weight: capacity.saturating_sub(held), empty: held == 0 })
    }

    /// Permits used by runs and tasks in hand.
    pub fn taken(&self) -> u32 {
        u32::try_from(self.held.busy() + self.held.leased.len()).unwrap_or(u32::MAX)
    }

    /// Permits that no run uses.
    pub fn free(&self) -> u32 {
        let busy = u32::try_from(self.held.busy()).unwrap_or(u32::MAX);
        self.identity.permits.saturating_sub(busy)
    }
}
