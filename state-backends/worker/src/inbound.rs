//! Takes in the reply to a step, or its failure.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use interval_queue_contract::StateError;
use interval_queue_task_contract::{DueSchedule, Outcome, Stepped, TaskId};

use crate::{
    connection::{LOAD_POLL_INTERVAL, POLL_INTERVAL, UnderWay},
    held::Because,
    run_id::RunId,
    worker::Worker,
};

/// Effects of a reply besides tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Absorbed {
    /// Number of tasks leased.
    pub leased: usize,
    /// Runs whose tokens were not in force: nothing of them was stored.
    pub lost: Vec<RunId>,
    /// Tasks whose results were too large or could not be stored: their runs failed.
    pub refused: Vec<TaskId>,
    /// Schedules that are due.
    pub schedules: Vec<DueSchedule>,
    /// Length of the outage that this reply ended.
    pub outage: Option<Duration>,
}

impl Worker {
    /// Takes in the reply to step `sequence`. `None`: it is not under way.
    pub fn absorb(&mut self, sequence: u64, stepped: Stepped, received: Instant) -> Option<Absorbed> {
        let under_way = self.connection.under_way.take_if(|step| step.sequence == sequence)?;
        let outage =
            self.connection.failing.take().map(|failing| received.saturating_duration_since(failing.since));
        let mut absorbed = Absorbed { outage, ..Absorbed::default() };
        self.connection.acknowledged = sequence;
        self.held.logs.confirm();
        absorbed.refused = stepped.refused;
        absorbed.refused.append(&mut self.held.unstored);
        let is_completed = |id: &TaskId, token| under_way.completed.contains(&RunId { id: *id, token });
        if stepped.resync {
            // The store may have forgotten the time of a completion that was not applied: sent
            // again with all held leases, it counts.
            let lost: BTreeSet<_> = stepped.lost.into_iter().collect();
            self.held.ended.retain(|id, completion| lost.contains(id) || !is_completed(id, completion.token));
            self.unknown();
            self.connection.again = true;
            return Some(absorbed);
        }
        self.connection.exchange.1 = under_way.exchange;
        absorbed.schedules = stepped.schedules;
        absorbed.lost = stepped.lost.iter().filter_map(|id| self.held.lose(*id)).collect();
        self.held.ended.retain(|id, completion| {
            !under_way.completed.contains(&RunId { id: *id, token: completion.token })
        });
        if let Some(stopping) = &mut self.stopping {
            stopping.is_reported |= under_way.last;
        }
        let ends = under_way.sent + self.identity.lease();
        if ends <= received {
            // Other workers may have these tasks.
            self.unknown();
            self.connection.again = true;
            self.expire(received);
            return Some(absorbed);
        }
        self.connection.lease_ends = Some(ends);
        for (id, stop) in stepped.stop {
            match self.held.rank_in_hand(id) {
                Some(order) => self.held.give_back(order),
                None => self.held.end(id, Because::Asked(stop)),
            }
        }
        absorbed.leased = stepped.leased.len();
        let mark = if stepped.leased.is_empty() { 0 } else { self.pace.mark() };
        for leased in stepped.leased {
            absorbed.lost.extend(self.held.lose(leased.task.id));
            self.held.put(leased, mark, received);
        }
        let (limit, round_trip) =
            (under_way.want + under_way.ahead, received.saturating_duration_since(under_way.sent));
        self.learn(limit, absorbed.leased, stepped.may_prefetch, round_trip);
        if let Some(stopping) = &self.stopping {
            self.stop(stopping.by);
        }
        self.plan_poll(
            &under_way,
            absorbed.leased,
            stepped.more,
            stepped.next.map(|next| next.to_duration()),
            received,
        );
        Some(absorbed)
    }

    /// When to poll if nothing happens.
    fn plan_poll(
        &mut self,
        step: &UnderWay,
        leased: usize,
        more: bool,
        next: Option<Duration>,
        now: Instant,
    ) {
        let connection = &mut self.connection;
        connection.more = more;
        connection.dry = step.want as usize > leased;
        connection.in_vain = match leased {
            0 => connection.in_vain.saturating_add(u32::from(step.notified && step.want > 0)),
            _ => 0,
        };
        connection.poll = match leased {
            0 if step.restricted => LOAD_POLL_INTERVAL,
            0 if connection.dry && !more => (connection.poll * 2).min(POLL_INTERVAL.1),
            0 => connection.poll,
            _ => POLL_INTERVAL.0,
        };
        connection.next_at = next.and_then(|next| now.checked_add(next));
    }

    /// Takes in that step `sequence` got no reply.
    pub fn fail(&mut self, sequence: u64, error: &StateError, now: Instant, seed: u64) {
        if self.connection.under_way.take_if(|step| step.sequence == sequence).is_some() {
            self.unknown();
            self.held.logs.keep();
            self.connection.fail(error, now, seed);
        }
    }

    /// The store may have missed anything: the next step lists everything.
    fn unknown(&mut self) {
        self.connection.unsure = true;
        for running in self.held.running.values_mut() {
            running.is_unreported |= running.progress.is_some();
        }
    }

    /// By the worker's own clock. Runs and results are still reported: their tokens do no harm, and
    /// normally the store has waited. If the store fails with a lasting error, a result may be its
    /// cause: such runs count as failed.
    pub(crate) fn expire(&mut self, now: Instant) {
        if self.connection.lease_ends.is_none_or(|ends| now < ends) {
            return;
        }
        self.connection.lease_ends = None;
        self.connection.unsure = true;
        while let Some((order, _)) = self.held.leased.first_key_value() {
            self.held.take(*order);
        }
        self.held.end_all();
        if let Some(failing) = self.connection.failing.as_ref().filter(|failing| !failing.passes) {
            let results = self.held.ended.values_mut();
            for completion in results.filter(|completion| matches!(completion.outcome, Outcome::Done(_))) {
                completion.outcome =
                    Outcome::Error(format!("its result could not be stored: {}", failing.error));
                self.held.unstored.push(completion.id);
            }
        }
    }
}
