//! The worker: what is fixed of it, what it holds, and what drivers do with it between two steps.

use std::time::{Duration, Instant};

use interval_queue_contract::{InvalidInput, Label, Micros};
use interval_queue_task_contract::{
    Completion, Kind, MAX_HELD, MAX_KINDS, MAX_LEASE, MIN_LEASE, Outcome, Progress, Room, WorkerId,
};

use crate::{
    contact::Contact,
    held::{Held, Order, RunId},
    pace::Pace,
};

/// What is fixed for the life of a worker, or set by its driver.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    /// Its id, a new one for each start of a process.
    pub worker: WorkerId,
    /// What people see of it.
    pub label: Label,
    /// What it can do, sorted; without what is set aside.
    pub kinds: Vec<Kind>,
    /// How long after a step it counts as alive.
    pub lease: Micros,
    /// How many runs there are at once. Of a worker that shares them with others its driver says so each time.
    pub places: u32,
    /// How many tasks are leased beyond the free places, so that none waits for a round trip.
    pub prefetch: u32,
    /// Whether the queue runs a limited number of tasks: then none is prefetched.
    pub limited: bool,
    /// How heavy all that it holds may be together; none: as heavy as it is.
    pub capacity: Option<u32>,
}

impl Identity {
    /// Checks every bound.
    ///
    /// # Errors
    ///
    /// Names the value and what would be right.
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
        let most = self.places.saturating_add(self.prefetch);
        if self.places == 0 || most > MAX_HELD {
            let Self { places, prefetch, .. } = self;
            return wrong(format!(
                "{places} jobs at once and {prefetch} ahead: give 1 to {MAX_HELD} together"
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

/// A worker that is to end.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Stopping {
    /// Until when its runs may take.
    pub by: Instant,
    /// Whether they were told to end.
    pub notified: bool,
    /// Whether the store knows that nothing comes any more.
    pub parted: bool,
}

/// A worker. Its parts are open, so that a proof can take it apart; it is changed by its methods.
#[derive(Clone, Debug)]
pub struct Worker {
    /// What never changes, or seldom.
    pub identity: Identity,
    /// What was said to the store and heard of it.
    pub contact: Contact,
    /// What it holds.
    pub held: Held,
    /// What it knows of the rate of its queue.
    pub pace: Pace,
    /// Nothing is prefetched until then: a task with a key came that could not begin.
    pub no_prefetch: Option<Instant>,
    /// Set when it is to end.
    pub stopping: Option<Stopping>,
}

impl Worker {
    /// A worker that holds nothing and was never heard of.
    pub fn new(identity: Identity) -> Self {
        Self {
            identity,
            contact: Contact::new(),
            held: Held::default(),
            pace: Pace::default(),
            no_prefetch: None,
            stopping: None,
        }
    }

    /// A run that has to end, to be told once.
    pub fn order(&mut self) -> Option<Order> {
        self.held.orders.pop_front()
    }

    /// A run has ended; one that was ended from outside is [`Released`](Outcome::Released). Whether its result
    /// counts: it does not if its token is not in force.
    pub fn ended(&mut self, run: RunId, outcome: Outcome) -> bool {
        self.held.orders.retain(|order| order.run != run);
        if self.held.finish_void(run) {
            // Nothing is completed, and yet there may be room now for what did not fit.
            self.contact.dry &= self.identity.capacity.is_none();
            return false;
        }
        let RunId { id, token } = run;
        if !self.held.finish(run) {
            return false;
        }
        self.held.ended.insert(id, Completion { id, token, outcome });
        true
    }

    /// A run has ended, and the store knows it already: it was completed within a transaction of the
    /// application. Were that not so, the store would hear it when the worker says again what it holds.
    pub fn completed(&mut self, run: RunId) {
        self.held.orders.retain(|order| order.run != run);
        self.held.finish_void(run);
        self.held.finish(run);
        // What waits for the task or its key goes on with the next step.
        self.contact.again = true;
    }

    /// Asks for no tasks of this kind from the next step on, and gives back those in hand.
    pub fn set_aside(&mut self, kind: &Kind) {
        self.identity.kinds.retain(|other| other != kind);
        let hand = self.held.hand.iter().filter(|(_, leased)| leased.task.kind == *kind);
        let hand: Vec<_> = hand.map(|(order, _)| *order).collect();
        hand.into_iter().for_each(|order| self.held.give_back(order));
    }

    /// Asks for tasks of this kind again.
    pub fn take_up(&mut self, kind: Kind) {
        if let Err(at) = self.identity.kinds.binary_search(&kind) {
            self.identity.kinds.insert(at, kind);
            // Some may be ready.
            self.contact.notified = true;
        }
    }

    /// A run says how far it is. The store hears of it with the next step.
    pub fn progress(&mut self, run: RunId, progress: Progress) {
        let running = self.held.running.get_mut(&run.id).filter(|running| running.token == run.token);
        if let Some(running) = running {
            (running.progress, running.news) = (Some(progress), true);
        }
    }

    /// Something may have become ready, or is to be stopped.
    pub fn notify(&mut self) {
        self.contact.notified = true;
    }

    /// Wants the choice of now: the next step gives a task in hand back and asks for the most urgent one. Done when
    /// [`exchanged`](Self::exchanged) has come to the number that it gives.
    pub fn exchange(&mut self) -> u64 {
        self.contact.exchange.0 += 1;
        self.contact.exchange.0
    }

    /// How many exchanges the store has answered.
    pub fn exchanged(&self) -> u64 {
        self.contact.exchange.1
    }

    /// What is free of its capacity when those that have ended are completed; none: it has none.
    pub(crate) fn room(&self) -> Option<Room> {
        let (capacity, held) = (self.identity.capacity?, self.held.weight);
        let held = u32::try_from(held).unwrap_or(u32::MAX);
        Some(Room { weight: capacity.saturating_sub(held), empty: held == 0 })
    }

    /// How many places it takes up, with those of the tasks in hand.
    pub fn taken(&self) -> u32 {
        u32::try_from(self.held.busy() + self.held.hand.len()).unwrap_or(u32::MAX)
    }

    /// How many places are free.
    pub fn free(&self) -> u32 {
        let busy = u32::try_from(self.held.busy()).unwrap_or(u32::MAX);
        self.identity.places.saturating_sub(busy)
    }
}
