//! The end of a run, and the release of what its task held.

use interval_queue_contract::Micros;

use super::Work;
use crate::{
    Attempt, AttemptEnd, Completion, MAX_ERROR, MAX_HISTORY, MAX_RETURNS, Occurrence, Outcome, Policy, Rows,
    State, Stop, Task, WorkerId,
};

const CANCELLED: &str = "it was cancelled";
const CANCELLED_LATE: &str = "it was cancelled; its run finished after it was asked to stop";
pub(super) const OVERDUE: &str = "its deadline has passed";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Completed {
    Obeyed,
    Refused,
    Lost,
}

impl<R: Rows> Work<'_, R> {
    pub(super) fn policy(&self, x: &Task) -> Policy {
        self.queue.settings.policy_of(x)
    }

    pub(super) fn complete(
        &mut self,
        worker: WorkerId,
        completion: &Completion,
    ) -> Result<Completed, R::Error> {
        let Some(x) = self.rows.task(completion.id)? else { return Ok(Completed::Lost) };
        if !x.is_leased_to(worker, completion.token) {
            return Ok(Completed::Lost);
        }
        if !matches!(completion.outcome, Outcome::Released | Outcome::Unable(_) | Outcome::Exchanged) {
            self.has_run(&x)?;
        }
        if let Outcome::Done(result) = &completion.outcome {
            let (size, most) = (result.as_str().len(), self.queue.settings.max_payload);
            if size > most as usize {
                let text = format!("the result has {size} bytes: this queue stores at most {most}");
                self.run_failed(x, &text, AttemptEnd::Error)?;
                return Ok(Completed::Refused);
            }
            if result.as_str() != "null" {
                self.rows.put_result(x.id, Some(result))?;
            }
            // A deadline limits the start: a late result counts.
            match x.stop {
                Some(Stop::Cancel) => self.end_cancelled(&x, Some(AttemptEnd::Done), "")?,
                _ => self.end(&x, State::Done, None)?,
            }
            return Ok(Completed::Obeyed);
        }
        match (x.stop, &completion.outcome) {
            (Some(Stop::Cancel), outcome) => {
                let (end, why) = match outcome {
                    Outcome::Error(why) | Outcome::Failed(why) => (Some(AttemptEnd::Error), why.as_str()),
                    Outcome::Retry(_, why) => (Some(AttemptEnd::Retry), why.as_str()),
                    Outcome::Released => (Some(AttemptEnd::Stopped), ""),
                    Outcome::Unable(_) => (Some(AttemptEnd::Released), ""),
                    // The run never began.
                    Outcome::Exchanged | Outcome::Done(_) => (None, ""),
                };
                self.end_cancelled(&x, end, why)?;
            }
            (Some(Stop::Deadline), _) => self.end(&x, State::Failed, Some(OVERDUE))?,
            (_, Outcome::Failed(why)) => {
                let failures = x.failures.saturating_add(1);
                self.end_as(&x, Task { failures, error: Some(cut(why)), ..x.clone() }, State::Failed)?;
            }
            (_, Outcome::Error(why)) => self.run_failed(x, why, AttemptEnd::Error)?,
            (_, Outcome::Retry(after, why)) => self.retry_later(x, *after, why)?,
            (_, Outcome::Exchanged) => self.again(&x, x.clone())?,
            (Some(Stop::Release), Outcome::Released | Outcome::Unable(_)) => {
                self.again(&x, Task { returns: 0, ..x.clone() })?;
            }
            (None, Outcome::Released) => self.give_back(x, AttemptEnd::Released, None)?,
            (None, Outcome::Unable(why)) => self.give_back(x, AttemptEnd::Released, Some(why))?,
            (_, Outcome::Done(_)) => {}
        }
        Ok(Completed::Obeyed)
    }

    pub(super) fn run_failed(&mut self, x: Task, why: &str, end: AttemptEnd) -> Result<(), R::Error> {
        let policy = self.policy(&x);
        let failures = x.failures.saturating_add(1);
        let wait = policy.wait(failures, x.id, x.token.attempt);
        let mut after = Task { failures, returns: 0, error: Some(cut(why)), ..x.clone() };
        match x.stop {
            Some(Stop::Cancel) => return self.end_cancelled(&x, Some(end), why),
            Some(Stop::Deadline) => return self.end(&x, State::Failed, Some(OVERDUE)),
            _ if failures >= policy.max_attempts => return self.end_as(&x, after, State::Failed),
            _ => {}
        }
        // It has waited for a lease already.
        after.not_before =
            if end == AttemptEnd::Died { after.not_before.min(self.now) } else { self.now + wait };
        after.remember(end, self.now);
        self.count_occurrence(&x.kind, Occurrence::Retried)?;
        self.again(&x, after)
    }

    /// A failure, unless the run may not have begun.
    pub(super) fn worker_lost(&mut self, x: Task, why: &str) -> Result<(), R::Error> {
        if x.prefetched {
            self.give_back(x, AttemptEnd::Lost, None)
        } else {
            self.run_failed(x, why, AttemptEnd::Died)
        }
    }

    fn retry_later(&mut self, x: Task, wait: Micros, why: &str) -> Result<(), R::Error> {
        let retries = x.retries.saturating_add(1);
        let error = if why.is_empty() { x.error.clone() } else { Some(cut(why)) };
        let mut after = Task { retries, returns: 0, error, not_before: self.now + wait, ..x.clone() };
        if retries > self.policy(&x).max_retries {
            after.error = Some(format!("it asked {retries} times to be run again: {}", cut(why)));
            return self.end_as(&x, after, State::Failed);
        }
        after.remember(AttemptEnd::Retry, self.now);
        self.count_occurrence(&x.kind, Occurrence::Retried)?;
        self.again(&x, after)
    }

    /// The task keeps its `due`. From `MAX_RETURNS` in a row on it backs off with an error.
    pub(super) fn give_back(&mut self, x: Task, end: AttemptEnd, why: Option<&str>) -> Result<(), R::Error> {
        match x.stop {
            Some(Stop::Cancel) => return self.end_cancelled(&x, Some(end), ""),
            Some(Stop::Deadline) => return self.end(&x, State::Failed, Some(OVERDUE)),
            _ => {}
        }
        let error = why.map(cut).or_else(|| x.error.clone());
        let mut after = Task { returns: x.returns.saturating_add(1), error, ..x.clone() };
        if after.returns >= MAX_RETURNS {
            let over = after.returns - MAX_RETURNS + 1;
            after.not_before = self.now + self.policy(&x).wait(over, x.id, x.token.attempt);
            let times = format!("it was given back {} times in a row", after.returns);
            after.error = Some(why.map_or(times.clone(), |why| cut(&format!("{times}: {why}"))));
        }
        after.remember(end, self.now);
        if let (Some(why), Some(attempt)) = (why, after.history.last_mut()) {
            attempt.error = Some(cut(why));
        }
        self.again(&x, after)
    }

    fn again(&mut self, before: &Task, mut x: Task) -> Result<(), R::Error> {
        x.stop = None;
        x.progress = None;
        x.holds_key &= x.ordered;
        // A passed time gate stays passed when the clock steps back.
        if x.not_before == before.not_before {
            x.not_before = x.not_before.min(self.now);
        }
        self.admit(before, x)
    }

    /// However the run ended: the history keeps how, and a result stays stored.
    fn end_cancelled(&mut self, x: &Task, end: Option<AttemptEnd>, why: &str) -> Result<(), R::Error> {
        let mut after = Task { error: (!why.is_empty()).then(|| cut(why)), ..x.clone() };
        if let Some(end) = end {
            after.remember(end, self.now);
        }
        let error = if end == Some(AttemptEnd::Done) { CANCELLED_LATE } else { CANCELLED };
        after.error = Some(error.into());
        self.end_as(x, after, State::Cancelled)
    }

    pub(super) fn end(&mut self, x: &Task, state: State, error: Option<&str>) -> Result<(), R::Error> {
        let mut after = x.clone();
        if let Some(error) = error {
            after.error = Some(cut(error));
        } else if state == State::Done {
            after.error = None;
        }
        self.end_as(x, after, state)
    }

    fn end_as(&mut self, before: &Task, x: Task, state: State) -> Result<(), R::Error> {
        let notified = self.rows.unnotified_from(x.id, x.generation, 1)?.is_empty();
        self.unnotified |= !notified;
        let x = Task { holds_key: false, notified, ..x };
        let x = self.save_end(before, x, state)?;
        self.release_kept_instant(&x)?;
        self.free(before, &x)
    }

    /// Writes no other row but counts.
    pub(super) fn save_end(&mut self, before: &Task, mut x: Task, state: State) -> Result<Task, R::Error> {
        x.state = state;
        (x.ended, x.ended_lease_clock) = (Some(self.now), Some(self.lease_clock));
        (x.holds_name, x.unserved, x.stop) = (false, false, None);
        self.count_end(&x.kind, state)?;
        self.save(before, &x)?;
        Ok(x)
    }
}

impl Task {
    pub(super) fn is_leased_to(&self, worker: WorkerId, token: crate::Token) -> bool {
        self.state == State::Leased && self.worker == Some(worker) && self.token == token
    }

    pub(super) fn remember(&mut self, end: AttemptEnd, now: Micros) {
        let error = matches!(end, AttemptEnd::Error | AttemptEnd::Retry | AttemptEnd::Died)
            .then(|| self.error.clone());
        let attempt = Attempt {
            token: self.token,
            worker: self.worker,
            leased: self.leased,
            ended: now,
            end,
            error: error.flatten(),
        };
        if self.history.len() >= MAX_HISTORY {
            self.history.remove(0);
        }
        self.history.push(attempt);
    }
}

/// The beginning of an error, cut between characters.
pub(super) fn cut(text: &str) -> String {
    if text.len() <= MAX_ERROR {
        return text.into();
    }
    let fits = text.char_indices().map(|(at, _)| at).take_while(|&at| at <= MAX_ERROR).last();
    format!("{}…", &text[..fits.unwrap_or(0)])
}
