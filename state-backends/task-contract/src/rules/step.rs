//! One step of a worker: completes runs, renews the lease, does maintenance within a budget, leases
//! tasks.

use std::collections::HashMap;

use interval_queue_contract::Micros;

use super::{Work, clock::MAINTENANCE_INTERVAL, ending::Completed, refused};
use crate::{
    AttemptEnd, Counted, DueSchedule, FreeCapacity, Kind, Leased, MAX_HELD, MAX_REPLY, Presence,
    RULES_VERSION, Refusal, Reply, Rows, Span, State, Step, Stepped, Task, TaskId, Token, Until,
};

/// After it, a worker that was given a due schedule checks whether its task was made.
const SCHEDULE_RECHECK: Micros = Micros::from_millis(1_000);

impl<R: Rows> Work<'_, R> {
    pub(super) fn step(&mut self, step: &Step) -> Result<Reply, R::Error> {
        let was = self.rows.presence(step.worker)?;
        if was.as_ref().is_some_and(|was| was.sequence >= step.sequence) {
            return Err(refused(Refusal::Superseded(step.sequence, step.worker)));
        }
        self.read_lease_clock()?;
        self.write_time(step);
        let has_forgotten = was.as_ref().map_or(0, |was| was.sequence) < step.acknowledged;
        if has_forgotten {
            // The store was rolled back or lost: it may issue forgotten tokens again.
            self.begin_incarnation(step);
        }
        let mut reply = Stepped::default();
        let is_alive = was.as_ref().is_some_and(|was| was.ends > self.lease_clock);
        let is_known = step.held.is_some() || is_alive && !has_forgotten;
        if step.held.is_some() || has_forgotten {
            self.adopt(step)?;
        }
        if let Some(held) = &step.held {
            self.resync(step, held, is_alive, &mut reply)?;
        }
        for log in &step.log {
            self.write_log(step.worker, log)?;
        }
        for completion in &step.complete {
            match self.complete(step.worker, completion)? {
                Completed::Obeyed => {}
                Completed::Refused => reply.refused.push(completion.id),
                Completed::Lost => reply.lost.push(completion.id),
            }
        }
        for (id, token, progress) in &step.progress {
            if let Some(x) = self.rows.task(*id)?.filter(|x| x.is_leased_to(step.worker, *token)) {
                let progress = Some(progress.clone());
                self.save(&x, &Task { progress, prefetched: false, ..x.clone() })?;
            }
        }
        if !is_known {
            // Stored so that a late request leases nothing to a dead worker. A store that has
            // forgotten something must not store it: if this reply is lost, the next step must
            // reveal the loss.
            if let Some(was) = was.filter(|_| !has_forgotten) {
                self.rows.put_presence(&Presence { sequence: step.sequence, ..was })?;
            }
            reply.resync = true;
            return Ok(Reply::Stepped(reply));
        }
        let served = self.serve(step)?;
        reply.more = self.maintain(step.worker)?;
        reply.may_prefetch = !self.queue.paused
            && self.queue.settings.max_running.is_none()
            && served.len() == step.kinds.len();
        let want = self.may_lease(step, &served)?;
        let ahead = if reply.may_prefetch { step.ahead } else { 0 };
        let mut ready = self.ready(step, &served, want + ahead)?;
        let found = u32::try_from(ready.len()).unwrap_or(u32::MAX);
        let admission = self.admit_some(step, &served, (want + ahead).saturating_sub(found))?;
        if admission.some {
            ready = self.ready(step, &served, want + ahead)?;
        }
        let free = self.lease(step, ready, want, &mut reply)?;
        reply.more |= self.polls_again(&admission, &reply);
        // Admission may have ended tasks since maintenance.
        reply.more |= self.unnotified;
        for x in self.rows.to_stop(step.worker, MAX_HELD)? {
            reply.stop.extend(x.stop.map(|stop| (x.id, stop)));
        }
        let busy = !reply.leased.is_empty() || !self.rows.held_by(step.worker, 1)?.is_empty();
        if busy && !was.as_ref().is_some_and(|was| was.busy) {
            // An idle worker with a longer lease would see the end of this one too late.
            self.notifies |=
                self.rows.longest_lease(self.lease_clock)?.is_some_and(|longest| longest > step.lease);
        }
        self.rows.put_presence(&Presence {
            worker: step.worker,
            label: step.label.clone(),
            sequence: step.sequence,
            lease: step.lease,
            ends: self.lease_clock + step.lease,
            kinds: step.kinds.clone(),
            version: RULES_VERSION,
            since: was.as_ref().map_or(self.now, |was| was.since),
            seen: self.now,
            busy,
            cleared: false,
            at_least: step.at_least,
            room: free.filter(|free| !free.empty).map(|free| free.weight),
        })?;
        if self.maintains {
            reply.schedules = self.due_schedules()?;
        }
        if reply.leased.len() < step.want as usize {
            let next = self.next_poll(&admission)?;
            reply.next = next.into_iter().chain(self.next_event()?).min();
        }
        Ok(Reply::Stepped(reply))
    }

    /// Restores reported leases that a rolled-back store has forgotten.
    fn adopt(&mut self, step: &Step) -> Result<(), R::Error> {
        for (id, token) in reported(step) {
            let Some(x) = self.rows.task(id)?.filter(|x| !x.state.is_ended() && x.token < token) else {
                continue;
            };
            let adopted = Task {
                state: State::Leased,
                worker: Some(step.worker),
                token,
                leased: Some(self.now),
                prefetched: false,
                holds_key: x.key.is_some(),
                holds_name: x.keeps_name(),
                unserved: false,
                not_before: x.not_before.min(self.now),
                ..x.clone()
            };
            self.save(&x, &adopted)?;
            self.rows.count(&x.kind, Counted::EverLeased, 1)?;
            // Tokens rise even if the clock was stepped back.
            if token.incarnation >= self.queue.incarnation {
                self.queue().incarnation = token.incarnation;
                self.begin_incarnation(step);
            }
        }
        Ok(())
    }

    /// The worker's list is the truth. Any other task leased to it never arrived and goes back:
    /// uncounted, unless the lease had ended, since it may have run then.
    fn resync(
        &mut self,
        step: &Step,
        held: &[(TaskId, Token)],
        is_alive: bool,
        reply: &mut Stepped,
    ) -> Result<(), R::Error> {
        let reported: HashMap<TaskId, Token> = reported(step).collect();
        for x in self.rows.held_by(step.worker, MAX_HELD)? {
            if reported.get(&x.id) == Some(&x.token) {
                continue;
            }
            if is_alive {
                self.give_back(x, AttemptEnd::Lost, None)?;
            } else {
                self.worker_lost(x, "its worker was silent for longer than its lease")?;
            }
        }
        for (id, token) in held {
            if !self.rows.task(*id)?.is_some_and(|x| x.is_leased_to(step.worker, *token)) {
                reply.lost.push(*id);
            }
        }
        Ok(())
    }

    fn may_lease(&mut self, step: &Step, served: &[Kind]) -> Result<u32, R::Error> {
        let want = if self.queue.paused || served.is_empty() { 0 } else { step.want };
        match self.queue.settings.max_running {
            Some(limit) if want > 0 => {
                let left = u64::from(limit).saturating_sub(self.rows.leased()?);
                Ok(want.min(u32::try_from(left).unwrap_or(u32::MAX)))
            }
            _ => Ok(want),
        }
    }

    fn ready(&mut self, step: &Step, served: &[Kind], want: u32) -> Result<Vec<Task>, R::Error> {
        if want == 0 { Ok(Vec::new()) } else { self.rows.ready(served, step.at_least, want) }
    }

    /// Tasks beyond `want` are ahead of free permits. Returns the capacity left.
    fn lease(
        &mut self,
        step: &Step,
        ready: Vec<Task>,
        want: u32,
        reply: &mut Stepped,
    ) -> Result<Option<FreeCapacity>, R::Error> {
        let mut free = step.free_capacity;
        let mut size = 0;
        for x in ready {
            if x.deadline.is_some_and(|deadline| deadline <= self.now) {
                self.end(&x, State::Failed, Some("its deadline passed before it was started"))?;
                // This end may have made another task ready.
                reply.more = true;
                break;
            }
            let prefetched = reply.leased.len() >= want as usize;
            // Less urgent tasks do not overtake one that must wait for a permit.
            if prefetched && !self.can_wait_in_hand(&x) {
                break;
            }
            // The limit may just have been lowered.
            if let Some(key) = &x.key
                && self.rows.leased_of_key(key)? >= self.key_limit(key)?
            {
                continue;
            }
            // Lighter tasks do not overtake a heavy one, else it might wait for ever.
            if free.is_some_and(|free| !free.fits(x.weight)) {
                break;
            }
            let Some(payload) = self.rows.payload(x.id)? else {
                self.end(&x, State::Failed, Some("its payload is not stored any more"))?;
                reply.more = true;
                break;
            };
            size += payload.as_str().len();
            if size > MAX_REPLY && !reply.leased.is_empty() {
                reply.more = true;
                break;
            }
            let incarnation = self.incarnation_after(x.token.incarnation, step);
            let token = Token { incarnation, attempt: x.token.attempt.saturating_add(1) };
            let leased = Task {
                state: State::Leased,
                worker: Some(step.worker),
                token,
                holds_name: x.keeps_name(),
                leased: Some(self.now),
                prefetched,
                progress: None,
                ..x.clone()
            };
            self.save(&x, &leased)?;
            self.rows.count(&leased.kind, Counted::EverLeased, 1)?;
            self.took(&x, Span::Wait, x.added.max(x.not_before))?;
            free = free.map(|free| free.after(leased.weight));
            reply.leased.push(Leased {
                policy: self.policy(&leased),
                deadline: leased.deadline.map(|deadline| deadline - self.now),
                task: leased,
                payload,
            });
        }
        Ok(free)
    }

    /// No task waits for it as for the holder of a key; if it kills its worker, the next run is
    /// counted.
    fn can_wait_in_hand(&self, x: &Task) -> bool {
        x.key.is_none() && x.failures == 0 && x.returns == 0 && self.policy(x).max_attempts > 1
    }

    fn next_event(&mut self) -> Result<Option<Micros>, R::Error> {
        let now = self.now;
        // A due task was not admitted yet.
        let soon = self.soon();
        let mut next = self.rows.next_scheduled()?.map(|at| if at > now { at - now } else { soon });
        let mut sooner = |other: Option<Micros>| next = next.into_iter().chain(other).min();
        sooner(self.rows.next_deadline()?.map(|at| at - now));
        // A lease that ended later is handled by the next maintenance.
        let last_maintenance = self.queue.lease_clock;
        if let Some(end) = self.rows.next_busy_end(last_maintenance)? {
            // Silences count for at most a quarter of a lease, so a worker must poll that often.
            let quarter =
                self.rows.shortest_busy_lease(last_maintenance)?.map(|lease| Micros::new(lease.get() / 4));
            let left = if end > self.lease_clock { end - self.lease_clock } else { MAINTENANCE_INTERVAL };
            sooner(Some(left.min(quarter.unwrap_or(Micros::MAX))));
        }
        // The worker that was given a due schedule may die, so others check again.
        let soon = if self.maintains { SCHEDULE_RECHECK } else { MAINTENANCE_INTERVAL };
        for schedule in self.rows.schedules()?.into_iter().filter(|schedule| !schedule.paused) {
            let follows = schedule.kept.is_some() && schedule.may_follow;
            sooner(schedule.next.map(|at| if at > now { at - now } else { soon }));
            sooner(follows.then_some(soon));
        }
        Ok(next)
    }

    pub(super) fn due_schedules(&mut self) -> Result<Vec<DueSchedule>, R::Error> {
        let now = self.now;
        let mut due = Vec::new();
        for schedule in self.rows.schedules()? {
            // `last` may be a task outside the schedule that holds the unique name: its end does
            // not set `may_follow`.
            let may_follow =
                schedule.kept.is_some() && (schedule.may_follow || !self.last_runs(&schedule)?);
            let kept = schedule.kept.filter(|_| may_follow);
            let at = kept.or(schedule.next).filter(|&at| at <= now && !schedule.paused);
            due.extend(at.map(|at| DueSchedule { schedule, at, now }));
        }
        Ok(due)
    }
}

fn reported(step: &Step) -> impl Iterator<Item = (TaskId, Token)> {
    let completed = step.complete.iter().map(|completion| (completion.id, completion.token));
    step.held.iter().flatten().copied().chain(completed)
}

impl Task {
    fn keeps_name(&self) -> bool {
        self.holds_name && self.unique.as_ref().is_some_and(|unique| unique.until == Until::Ended)
    }
}
