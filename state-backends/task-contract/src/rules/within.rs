//! The end of a run within a transaction of the application, and its follow-up in the next step.

use interval_queue_contract::{InvalidInput, StateError, StateErrorKind};

use super::{
    Work,
    ending::{OVERDUE, cut},
};
use crate::{Completed, Completion, Json, Outcome, Rows, State, Stop, Task, WorkerId};

impl<R: Rows> Work<'_, R> {
    pub(super) fn complete_within(
        &mut self,
        worker: WorkerId,
        completion: &Completion,
    ) -> Result<Completed, R::Error> {
        let end = completion.end().map_err(StateError::from)?;
        let x = self.rows.task(completion.id)?.filter(|x| x.is_leased_to(worker, completion.token));
        let Some(x) = x else { return Err(not_in_force(completion).into()) };
        if x.stop == Some(Stop::Cancel) {
            return Err(asked_to_stop(completion).into());
        }
        let (state, error) = match (end, x.stop) {
            (End::Done(result), _) => {
                let (size, most) = (result.as_str().len(), self.queue.settings.max_payload);
                if size > most as usize {
                    let text = format!(
                        "the result of task {} has {size} bytes: this queue stores at most {most}",
                        x.id
                    );
                    return Err(StateError::from(InvalidInput::new(text)).into());
                }
                if result.as_str() != "null" {
                    self.rows.put_result(x.id, Some(result))?;
                }
                (State::Done, None)
            }
            (End::Failed(_), Some(Stop::Deadline)) => (State::Failed, Some(OVERDUE.into())),
            (End::Failed(why), _) => (State::Failed, Some(why)),
        };
        let has_failed = matches!((state, x.stop), (State::Failed, None | Some(Stop::Release)));
        // Pending even without downstreams: an open transaction may be adding an edge.
        let failures = x.failures.saturating_add(has_failed.into());
        let after = Task { failures, error, notified: false, ..x.clone() };
        self.has_run(&x)?;
        let ended = self.save_end(&x, after, state)?;
        self.notifies |= ended.holds_key
            || ended.schedule.is_some()
            || !self.rows.unnotified_from(x.id, x.generation, 1)?.is_empty();
        Ok(Completed::new(completion, state))
    }

    pub(super) fn let_go(&mut self, x: &Task) -> Result<Task, R::Error> {
        self.release_kept_instant(x)?;
        let after = Task { holds_key: false, ..x.clone() };
        if x.holds_key {
            self.save(x, &after)?;
            self.free(x, &after)?;
        }
        Ok(after)
    }
}

/// How a run can end within a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End<'s> {
    /// Success, with this result.
    Done(&'s Json),
    /// A permanent failure, with this error.
    Failed(String),
}

impl Completion {
    /// For stores that implement the end of a run within a transaction without the rules.
    ///
    /// # Errors
    ///
    /// The outcome does not end the task.
    pub fn end(&self) -> Result<End<'_>, InvalidInput> {
        match &self.outcome {
            Outcome::Done(result) => Ok(End::Done(result)),
            Outcome::Failed(why) => Ok(End::Failed(cut(why))),
            _ => Err(InvalidInput::new(format!(
                "task {} is to go on: roll back, and let the worker report how its run ended",
                self.id
            ))),
        }
    }
}

fn asked_to_stop(completion: &Completion) -> StateError {
    let text = format!("task {} was cancelled while it ran: roll back its effects", completion.id);
    StateError::new(StateErrorKind::Superseded, text)
}

pub(super) fn not_in_force(completion: &Completion) -> StateError {
    let text = format!(
        "task {} is not leased with token {} any more: roll back, it is another run's to do",
        completion.id, completion.token
    );
    StateError::new(StateErrorKind::Superseded, text)
}
