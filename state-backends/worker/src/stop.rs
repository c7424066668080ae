//! Stop of a worker: it leases nothing more, gives back tasks, and waits for its runs.

use std::time::Instant;

use crate::{
    held::Because,
    run_id::RunId,
    worker::{Stopping, Worker},
};

/// Tries to report that nothing is left.
const MAX_FINAL_TRIES: u32 = 5;

impl Worker {
    /// Stops the worker; runs may take until `by`. Of several calls, the earliest instant counts.
    pub fn stop(&mut self, by: Instant) {
        match &mut self.stopping {
            Some(stopping) => stopping.by = stopping.by.min(by),
            None => self.stopping = Some(Stopping { by, runs_asked: false, is_reported: false }),
        }
        let hand: Vec<_> = self.held.leased.keys().copied().collect();
        hand.into_iter().for_each(|order| self.held.give_back(order));
    }

    pub(crate) fn hurry(&mut self, now: Instant) {
        if let Some(stopping) =
            self.stopping.as_mut().filter(|stopping| !stopping.runs_asked && stopping.by <= now)
        {
            stopping.runs_asked = true;
            let running: Vec<_> = self.held.running.keys().copied().collect();
            running.into_iter().for_each(|id| self.held.end(id, Because::Stopping));
        }
    }

    /// Even if runs continue or the store fails: its leases have ended by then.
    pub(crate) fn gives_up_at(&self) -> Option<Instant> {
        self.stopping.as_ref().map(|stopping| stopping.by + self.identity.lease())
    }

    pub(crate) fn is_over(&self, now: Instant) -> bool {
        let Some(stopping) = &self.stopping else { return false };
        let connection = &self.connection;
        let is_quiet = self.held.is_empty() && connection.under_way.is_none();
        let in_vain = connection.failing.as_ref().is_some_and(|failing| failing.tries >= MAX_FINAL_TRIES);
        let is_reported = stopping.is_reported || connection.sequence == 0 || in_vain;
        is_quiet && is_reported || self.gives_up_at().is_some_and(|at| at <= now)
    }

    /// Drops all that is held when the worker [is done](crate::Next::Done); nothing more is
    /// reported to the store. Returns runs that had ended. Runs that continue do not count when
    /// they [end](Self::ended).
    pub fn give_up(&mut self) -> Vec<RunId> {
        let running: Vec<_> = self.held.running.keys().copied().collect();
        for id in running {
            self.held.lose(id);
        }
        let ended: Vec<_> = self.held.ended.keys().copied().collect();
        ended.into_iter().filter_map(|id| self.held.lose(id)).collect()
    }
}
