//! How a worker ends: it leases nothing more, gives back what has not begun, and waits for its runs as long as it may.

use std::time::Instant;

use crate::{
    held::{Because, RunId},
    worker::{Stopping, Worker},
};

/// How often a worker with nothing left to do tries to say so.
const GOODBYES: u32 = 5;

impl Worker {
    /// Ends the worker; its runs may take until `by`. Said again, the earlier instant holds.
    pub fn stop(&mut self, by: Instant) {
        match &mut self.stopping {
            Some(stopping) => stopping.by = stopping.by.min(by),
            None => self.stopping = Some(Stopping { by, notified: false, parted: false }),
        }
        let hand: Vec<_> = self.held.hand.keys().copied().collect();
        hand.into_iter().for_each(|order| self.held.give_back(order));
    }

    /// Tells runs that the grace is over.
    pub(crate) fn hurry(&mut self, now: Instant) {
        if let Some(stopping) =
            self.stopping.as_mut().filter(|stopping| !stopping.notified && stopping.by <= now)
        {
            stopping.notified = true;
            let running: Vec<_> = self.held.running.keys().copied().collect();
            running.into_iter().for_each(|id| self.held.end(id, Because::Stopping));
        }
    }

    /// When it ends though runs go on or the store does not answer: what it holds is not its own any more by then.
    pub(crate) fn gives_up_at(&self) -> Option<Instant> {
        self.stopping.as_ref().map(|stopping| stopping.by + self.identity.lease())
    }

    /// Whether there is nothing left to do.
    pub(crate) fn is_over(&self, now: Instant) -> bool {
        let Some(stopping) = &self.stopping else { return false };
        let contact = &self.contact;
        let is_quiet = self.held.is_empty() && contact.under_way.is_none();
        let in_vain = contact.failing.as_ref().is_some_and(|failing| failing.tries >= GOODBYES);
        let is_notified = stopping.parted || contact.sequence == 0 || in_vain;
        is_quiet && is_notified || self.gives_up_at().is_some_and(|at| at <= now)
    }

    /// Lets go of all that is held when the worker [is done](crate::Next::Done): nobody tells the store of it any more.
    /// Which runs had ended; those that go on are told that they do not count when they [end](Self::ended).
    pub fn give_up(&mut self) -> Vec<RunId> {
        let running: Vec<_> = self.held.running.keys().copied().collect();
        for id in running {
            self.held.lose(id);
        }
        let ended: Vec<_> = self.held.ended.keys().copied().collect();
        ended.into_iter().filter_map(|id| self.held.lose(id)).collect()
    }
}
