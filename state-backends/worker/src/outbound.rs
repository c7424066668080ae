//! When a worker sends a step, and its contents.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use interval_queue_task_contract::{Completion, FreeCapacity, MAX_REPLY, MIN_LEASE, Outcome, Step};

use crate::{
    connection::{POLL_INTERVAL, UnderWay},
    run_id::RunId,
    worker::Worker,
};

/// The next action of the driver.
#[derive(Debug)]
pub enum Next {
    /// Send this step.
    Send(Box<Step>),
    /// Wait for this instant or to be woken.
    Sleep(Option<Instant>),
    /// End: the worker has stopped.
    Done,
}

/// When a worker would request tasks if it had a permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asks {
    /// Not before something happens: the store fails or is empty, or the worker stops or has
    /// enough.
    Not,
    /// Once its step is answered.
    Soon,
    /// At this instant.
    At(Instant),
}

/// Applies while the worker holds something: four may get lost.
const STEPS_PER_LEASE: u32 = 5;

/// For a notification alone, if the worker wants no tasks.
const MIN_NOTIFY_GAP: Duration = Duration::from_secs(1);

/// First and longest time, if the worker wants tasks; doubles with each notification in vain.
const NOTIFY_BACKOFF: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(20));

/// Approximate bytes per step.
const MAX_RESULTS: usize = MAX_REPLY;

impl Worker {
    /// Decides what the driver does next, after it started what could start.
    pub fn next(&mut self, now: Instant) -> Next {
        self.expire(now);
        self.hurry(now);
        if !self.held.orders.is_empty() {
            return Next::Sleep(Some(now));
        }
        if self.is_over(now) {
            return Next::Done;
        }
        let waited = self.waited_at();
        if waited.is_some_and(|at| at <= now) {
            self.give_back_ahead();
        }
        let due = self.step_due(now);
        if due.is_some_and(|due| due <= now) {
            return Next::Send(Box::new(self.step(now)));
        }
        let ends = self.connection.lease_ends.filter(|_| !self.held.is_free());
        let hurry =
            self.stopping.as_ref().filter(|stopping| !stopping.runs_asked).map(|stopping| stopping.by);
        Next::Sleep([due, ends, hurry, waited, self.gives_up_at()].into_iter().flatten().min())
    }

    /// `None`: when something happens.
    fn step_due(&self, now: Instant) -> Option<Instant> {
        if self.connection.under_way.is_some() {
            return None;
        }
        let due = self.due(self.want(), now)?;
        Some(self.connection.failing.as_ref().map_or(due, |failing| due.max(failing.retry_at)))
    }

    /// If none is under way and the store does not fail.
    fn due(&self, want: u32, now: Instant) -> Option<Instant> {
        let connection = &self.connection;
        let Some(sent) = connection.sent else { return Some(now) };
        let asked =
            connection.exchange.0 > connection.exchange.1 || want > 0 && (connection.more || !connection.dry);
        let parting =
            self.stopping.as_ref().is_some_and(|stopping| !stopping.is_reported) && self.held.is_empty();
        if connection.again
            || connection.unsure
            || !self.held.ended.is_empty()
            || self.held.logs.has_ended()
            || asked
            || parting
        {
            return Some(now);
        }
        let gap = match (want, connection.in_vain) {
            (0, _) => MIN_NOTIFY_GAP,
            (_, 0) => Duration::ZERO,
            (_, times) => NOTIFY_BACKOFF.0.saturating_mul(1 << (times - 1).min(10)).min(NOTIFY_BACKOFF.1),
        };
        let notified = connection.notified.then(|| sent + gap);
        let next_at = connection.next_at.filter(|_| want > 0);
        [Some(sent + self.rest(want)), notified, next_at].into_iter().flatten().min()
    }

    /// When the worker would request tasks if it had a permit, since it shares permits.
    pub fn asks(&self, now: Instant) -> Asks {
        let connection = &self.connection;
        let has_enough = self.pace.ahead.is_some_and(|ahead| self.held.leased.len() >= ahead.max(1) as usize)
            || self.free_capacity().is_some_and(|free| free.weight == 0);
        if self.stopping.is_some() || connection.failing.is_some() || has_enough {
            return Asks::Not;
        }
        let is_under_way = connection.under_way.is_some();
        if connection.acknowledged == 0 || is_under_way && (!connection.dry || connection.notified) {
            return Asks::Soon;
        }
        if is_under_way { Asks::Not } else { self.due(1, now).map_or(Asks::Not, Asks::At) }
    }

    /// Maximum time between two steps. A worker that holds nothing only keeps its presence.
    fn rest(&self, want: u32) -> Duration {
        let lease = self.identity.lease();
        match (self.held.is_free(), want > 0) {
            (false, true) => self.connection.poll.min(lease / STEPS_PER_LEASE),
            (false, false) => lease / STEPS_PER_LEASE,
            // The lease clock counts at most a quarter of a lease for a silence of all workers.
            (true, true) => self.connection.poll.min(lease / 4),
            (true, false) => POLL_INTERVAL.1.min(lease / 2),
        }
    }

    /// Tasks that fit once ended runs are completed.
    pub(crate) fn want(&self) -> u32 {
        if self.stopping.is_some() || self.connection.acknowledged == 0 {
            return 0;
        }
        let hand = u32::try_from(self.held.leased.len()).unwrap_or(u32::MAX);
        let room = match self.pace.ahead {
            Some(ahead) => ahead.max(1).min(self.free()),
            None => self.free(),
        };
        let most = self.free_capacity().map_or(u32::MAX, |free| free.weight);
        room.saturating_sub(hand).min(most)
    }

    fn step(&mut self, now: Instant) -> Step {
        let asked = self.connection.exchange;
        (asked.1..asked.0).for_each(|_| self.held.give_back_last());
        let complete = self.to_complete();
        let completed: BTreeSet<_> =
            complete.iter().map(|completion| RunId { id: completion.id, token: completion.token }).collect();
        let all = completed.len() == self.held.ended.len();
        let log = self.held.logs.take_step(now);
        let last = self.stopping.is_some()
            && self.held.leased.is_empty()
            && self.held.busy() == 0
            && all
            && self.held.logs.are_all_sent();
        let left = u32::try_from(self.held.ended.len() - completed.len()).unwrap_or(u32::MAX);
        let want = self.want().saturating_sub(left);
        let ahead = if left == 0 { self.ahead(now) } else { 0 };
        let free_capacity = self
            .free_capacity()
            .map(|free| if left == 0 { free } else { FreeCapacity { weight: 0, empty: false } });
        let listed = self.connection.listed.map(|listed| listed + self.identity.lease());
        let unsure = std::mem::take(&mut self.connection.unsure) || listed.is_none_or(|again| again <= now);
        let held = unsure.then(|| self.held.tokens(&completed));
        if unsure {
            self.connection.listed = Some(now);
        }
        let mut progress = Vec::new();
        for (id, running) in &mut self.held.running {
            if std::mem::take(&mut running.is_unreported) {
                progress.extend(running.progress.clone().map(|progress| (*id, running.token, progress)));
            }
        }
        let connection = &mut self.connection;
        connection.sequence += 1;
        let notified = std::mem::take(&mut connection.notified);
        (connection.sent, connection.again, connection.more) = (Some(now), false, false);
        let (sequence, exchange) = (connection.sequence, connection.exchange.0);
        connection.under_way = Some(UnderWay {
            sequence,
            sent: now,
            want,
            ahead,
            completed,
            exchange,
            notified,
            last,
            restricted: false,
        });
        Step {
            worker: self.identity.worker,
            label: self.identity.label.clone(),
            sequence: connection.sequence,
            acknowledged: connection.acknowledged,
            lease: if last { MIN_LEASE } else { self.identity.lease },
            kinds: self.identity.kinds.clone(),
            complete,
            held,
            progress,
            log,
            want,
            ahead,
            at_least: None,
            free_capacity,
        }
    }

    /// Restricts the step about to be sent to tasks of at least this priority. `None`: all. Lower
    /// tasks in hand are given back.
    pub fn restrict(&mut self, step: &mut Step, at_least: Option<i32>) {
        step.at_least = at_least;
        if at_least.is_some() {
            step.ahead = 0;
        }
        if let Some(under_way) = &mut self.connection.under_way {
            under_way.ahead = step.ahead;
            under_way.restricted = at_least.is_some();
        }
        let least = at_least.unwrap_or(i32::MIN);
        let lower = self.held.leased.iter().filter(|(_, leased)| leased.task.priority < least);
        let lower: Vec<_> = lower.map(|(order, _)| *order).collect();
        lower.into_iter().for_each(|order| self.held.give_back(order));
    }

    /// At least one, and as many as fit `MAX_RESULTS`.
    fn to_complete(&self) -> Vec<Completion> {
        let mut bytes = 0;
        let fits = |completion: &&Completion| {
            let before = bytes;
            bytes += size(&completion.outcome);
            before == 0 || bytes <= MAX_RESULTS
        };
        self.held.ended.values().take_while(fits).cloned().collect()
    }
}

fn size(outcome: &Outcome) -> usize {
    match outcome {
        Outcome::Done(result) => result.as_str().len(),
        Outcome::Error(text) | Outcome::Retry(_, text) | Outcome::Failed(text) | Outcome::Unable(text) => {
            text.len()
        }
        _ => 0,
    }
}
