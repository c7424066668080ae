//! How a flow stands, and waiting for its end.

use std::{collections::HashSet, fmt};

use interval_queue_task_contract::{EdgeState, MAX_PAGE, Page, Selector, State, Task, TaskId};

use super::{FlowId, below::LISTED, name_in_flow};
use crate::{
    TaskQueue,
    error::{Error, ErrorKind},
    host,
    looking::LOOK,
};

/// How a flow stands. `Display` is a line such as `57 of 103 tasks done, 1 failed, 2 cancelled`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FlowStanding {
    /// How many tasks of it are stored.
    pub tasks: u64,
    /// How many are done.
    pub done: u64,
    /// How many failed.
    pub failed: u64,
    /// How many were cancelled.
    pub cancelled: u64,
    /// The one that failed first; if none failed, the one that was cancelled first.
    pub wrong: Option<Box<Task>>,
}

impl FlowStanding {
    /// How many have not ended.
    pub fn left(&self) -> u64 {
        self.tasks - self.done - self.failed - self.cancelled
    }

    fn count(&mut self, ended: &Task) {
        match ended.state {
            State::Failed => self.failed += 1,
            State::Cancelled => self.cancelled += 1,
            _ => self.done += 1,
        }
        let rank = |task: &Task| (task.state, task.ended, task.id);
        if ended.state != State::Done && self.wrong.as_ref().is_none_or(|wrong| rank(ended) < rank(wrong)) {
            self.wrong = Some(Box::new(ended.clone()));
        }
    }

    /// It, if all is done; else which task went wrong, and why.
    fn outcome(self, flow: &FlowId) -> Result<Self, Error> {
        let Some(wrong) = &self.wrong else {
            let left = self.left();
            if left == 0 {
                return Ok(self);
            }
            let text = format!(
                "{left} tasks of flow {:?} wait until another task, which is not of it and failed, is retried; {self}",
                flow.as_str()
            );
            return Err(Error::new(ErrorKind::Failed, text));
        };
        let kind = if wrong.state == State::Failed { ErrorKind::Failed } else { ErrorKind::Cancelled };
        let what = if wrong.state == State::Failed { "failed" } else { "was cancelled" };
        let why = wrong.error.as_deref().unwrap_or("it does not say why");
        let left = match self.left() {
            0 => String::new(),
            left => format!(", {left} wait until that is retried"),
        };
        let text = format!("{} of flow {:?} {what}: {why}; {self}{left}", called(wrong), flow.as_str());
        Err(Error::new(kind, text))
    }
}

/// A task of a flow by its name.
fn called(task: &Task) -> String {
    let name = name_in_flow(task).map(|name| format!(" {name:?}")).unwrap_or_default();
    format!("task{name} ({})", task.id)
}

impl fmt::Display for FlowStanding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} tasks done", self.done, self.tasks)?;
        for (count, what) in [(self.failed, "failed"), (self.cancelled, "cancelled")] {
            if count > 0 {
                write!(f, ", {count} {what}")?;
            }
        }
        Ok(())
    }
}

/// A flow that is looked at again and again.
#[derive(Default)]
struct Seen {
    standing: FlowStanding,
    /// What had not ended.
    left: Vec<TaskId>,
    /// Whether all of that waits for others.
    waits: bool,
}

impl Seen {
    fn see(&mut self, task: &Task) {
        if task.state.is_ended() {
            return self.standing.count(task);
        }
        self.left.push(task.id);
        self.waits &= task.state == State::Waiting;
    }
}

impl TaskQueue {
    /// How a flow stands. It looks at all that is stored of the queue, so not too often.
    ///
    /// # Errors
    ///
    /// [`Missing`](ErrorKind::Missing) if no task of it is stored; else as [`task`](Self::task).
    pub async fn flow(&self, flow: &FlowId) -> Result<FlowStanding, Error> {
        Ok(self.see(flow).await?.standing)
    }

    /// Waits until a flow has ended, with all that is added to it meanwhile, and tells how it stands whenever that has
    /// changed. It hears soon of what a worker of this process has done, and looks every two seconds else: at all that
    /// is stored in its first and its last look, at what is left of the flow in between.
    ///
    /// If all that is left waits until a task that failed is retried, the flow has failed. That is seen in the first
    /// hundred upstreams of each; behind one that is further down the list, it waits on.
    ///
    /// # Errors
    ///
    /// Once all that can go on has ended, [`Failed`](ErrorKind::Failed) and [`Cancelled`](ErrorKind::Cancelled) if a
    /// task did not end well: the text names the first one, says why, and how the flow stands, as
    /// [`flow`](Self::flow) tells it. [`Missing`](ErrorKind::Missing) if no task of it is stored; else as
    /// [`task`](Self::task).
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn wait_flow(
        &self,
        flow: &FlowId,
        mut progress: impl FnMut(&FlowStanding),
    ) -> Result<FlowStanding, Error> {
        let mut look = LOOK.0;
        let mut seen = Seen::default();
        let mut last = None;
        loop {
            let mut completed = std::pin::pin!(self.shared.completed.notified());
            completed.as_mut().enable();
            self.see_again(flow, &mut seen).await?;
            if last.as_ref() != Some(&seen.standing) {
                progress(&seen.standing);
                last = Some(seen.standing.clone());
            }
            if seen.left.is_empty() || seen.waits && self.is_stuck(&seen.left).await? {
                return seen.standing.outcome(flow);
            }
            // Of a worker that completes all the time not every word is worth a look, the less the more there is to see.
            let pages = u32::try_from(seen.left.len()).unwrap_or(u32::MAX).div_ceil(MAX_PAGE);
            let pause = LOOK.0.saturating_mul(pages).min(LOOK.1);
            tokio::select! {
                () = completed => host::sleep(&*self.shared.host, pause).await,
                () = host::sleep(&*self.shared.host, look) => look = (look * 2).min(LOOK.1),
            }
        }
    }

    /// All that is stored of it.
    async fn see(&self, flow: &FlowId) -> Result<Seen, Error> {
        let mut seen = Seen { waits: true, ..Seen::default() };
        let (selector, mut after) = (flow.selector(), None);
        loop {
            let page = self.page(&selector, after, MAX_PAGE, false).await?;
            seen.standing.tasks += page.tasks.len() as u64;
            page.tasks.iter().for_each(|stored| seen.see(&stored.task));
            after = page.next;
            if after.is_none() && seen.standing.tasks > 0 {
                return Ok(seen);
            }
            if after.is_none() {
                let text = format!(
                    "no task of flow {:?} is stored in this queue: it was not added, or has ended and was purged",
                    flow.as_str()
                );
                return Err(Error::new(ErrorKind::Missing, text));
            }
        }
    }

    /// What was left of it; all of it, if that has ended or something of it is gone.
    async fn see_again(&self, flow: &FlowId, seen: &mut Seen) -> Result<(), Error> {
        seen.waits = true;
        let mut is_whole = true;
        for ids in std::mem::take(&mut seen.left).chunks(MAX_PAGE as usize) {
            let Page { tasks, .. } =
                self.page(&Selector::ids(ids.iter().copied()), None, MAX_PAGE, false).await?;
            is_whole &= tasks.len() == ids.len();
            tasks.iter().for_each(|stored| seen.see(&stored.task));
        }
        if seen.left.is_empty() || !is_whole {
            *seen = self.see(flow).await?;
        }
        Ok(())
    }

    /// Whether none of these, which all wait, goes on before somebody retries a task that failed: each waits for such a
    /// one, or for another one of these.
    async fn is_stuck(&self, left: &[TaskId]) -> Result<bool, Error> {
        let all: HashSet<TaskId> = left.iter().copied().collect();
        for ids in left.chunks(LISTED) {
            for stored in self.whole(ids).await? {
                let holds =
                    |state, up| state == EdgeState::Held || EdgeState::is_pending(state) && all.contains(&up);
                if stored.task.state != State::Waiting
                    || !stored.upstreams.iter().any(|edge| holds(edge.state, edge.up))
                {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}
