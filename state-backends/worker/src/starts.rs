//! Starts of tasks in hand, and lookups of the rate for them.

use std::time::Instant;

use interval_queue_task_contract::{Leased, Rank};

use crate::{
    connection::{RETRY, retries},
    pace::LOOKUP_INTERVAL,
    worker::Worker,
};

impl Worker {
    /// Takes the most urgent task in hand, to begin its run now. `None`: no free permit, no task,
    /// starts wait for slots, or no lookup covers the task.
    pub fn start(&mut self, now: Instant) -> Option<Leased> {
        let first = self.first(now)?;
        let mark = self.held.mark(first.id)?;
        if self.pace.ahead.is_some() || !self.pace.covers(mark, now) {
            return None;
        }
        self.begin(first)
    }

    /// Takes the most urgent task in hand for a granted slot. `None` also if the rate was removed.
    pub fn start_in_slot(&mut self, now: Instant) -> Option<Leased> {
        self.pace.ahead?;
        let first = self.first(now)?;
        self.begin(first)
    }

    fn first(&self, now: Instant) -> Option<Rank> {
        let is_over = self.connection.lease_ends.is_none_or(|ends| ends <= now);
        if is_over || self.stopping.is_some() || self.free() == 0 {
            return None;
        }
        self.held.leased.first_key_value().map(|(order, _)| *order)
    }

    fn begin(&mut self, order: Rank) -> Option<Leased> {
        let leased = self.held.take(order)?;
        self.held.begin(&leased.task);
        self.prefetch.begun = self.prefetch.begun.saturating_add(1);
        Some(leased)
    }

    /// When to look up the rate. `None`: a lookup is under way, or nothing depends on one.
    pub fn lookup_due(&self, now: Instant) -> Option<Instant> {
        let pace = &self.pace;
        if pace.is_under_way || self.stopping.is_some() {
            return None;
        }
        let holds = !self.held.leased.is_empty();
        let due = if pace.ahead.is_some() {
            let waits = holds || !self.held.running.is_empty();
            waits.then(|| pace.sent_at.map_or(now, |sent| sent + LOOKUP_INTERVAL))?
        } else {
            // Before permits are free, so that no task waits for a lookup.
            let is_new = pace.free.is_none_or(|(number, _)| number <= pace.leased_at);
            let waits = self.free() > 0 && !pace.covers(pace.leased_at, now);
            (holds && (is_new || waits)).then_some(now)?
        };
        Some(pace.retry_at.map_or(due, |retry| due.max(retry)))
    }

    /// Begins a lookup of the rate and returns its number.
    pub fn begin_lookup(&mut self, now: Instant) -> u64 {
        let pace = &mut self.pace;
        pace.sent += 1;
        (pace.sent_at, pace.is_under_way) = (Some(now), true);
        pace.sent
    }

    /// Takes in whether lookup `number` found a rate. Returns whether that is a change.
    pub fn finish_lookup(&mut self, number: u64, has_rate: bool, now: Instant) -> bool {
        let pace = &mut self.pace;
        if number != pace.sent || !std::mem::take(&mut pace.is_under_way) {
            return false;
        }
        (pace.failures, pace.retry_at) = (0, None);
        pace.free = (!has_rate).then_some((number, now));
        if has_rate == pace.ahead.is_some() {
            return false;
        }
        pace.ahead = has_rate.then_some(1);
        if has_rate {
            // Held tasks are bound: no other worker can start them, and no more urgent task
            // replaces them. Keep one.
            let hand: Vec<_> = self.held.leased.keys().skip(1).copied().collect();
            hand.into_iter().for_each(|order| self.held.give_back(order));
        }
        true
    }

    /// Takes in that lookup `number` failed: nothing starts at once until one succeeds. Returns
    /// whether it is the first failure in a row.
    pub fn fail_lookup(&mut self, number: u64, now: Instant, seed: u64) -> bool {
        let pace = &mut self.pace;
        if number != pace.sent || !std::mem::take(&mut pace.is_under_way) {
            return false;
        }
        pace.free = None;
        let delay = retries(LOOKUP_INTERVAL, seed).nth(pace.failures as usize);
        pace.retry_at = Some(now + delay.unwrap_or(RETRY.1));
        pace.failures = pace.failures.saturating_add(1);
        pace.failures == 1
    }
}
