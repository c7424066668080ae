//! Progress of a flow, and waiting for its end.

use std::{collections::HashSet, fmt};

use interval_queue_task_contract::{EdgeState, MAX_PAGE, Order, Page, Selector, State, Task, TaskId};

use super::{FlowId, below::MAX_LISTED_EDGES, name_in_flow};
use crate::{
    TaskQueue,
    error::{Error, ErrorKind},
    host,
    queries::WAIT_DELAYS,
};

/// Progress of a flow. `Display` is a line such as `57 of 103 tasks done, 1 failed, 2 cancelled`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FlowProgress {
    /// Stored tasks.
    pub tasks: u64,
    /// Done tasks.
    pub done: u64,
    /// Failed tasks.
    pub failed: u64,
    /// Cancelled tasks.
    pub cancelled: u64,
    /// The task that failed first; if none failed, the task cancelled first.
    pub wrong: Option<Box<Task>>,
}

impl FlowProgress {
    /// Number of tasks that have not ended.
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

    /// Or the error with the first failed or cancelled task.
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
        let why = wrong.error.as_deref().unwrap_or("no reason was given");
        let left = match self.left() {
            0 => String::new(),
            left => format!(", {left} wait until that is retried"),
        };
        let text = format!("{} of flow {:?} {what}: {why}; {self}{left}", called(wrong), flow.as_str());
        Err(Error::new(kind, text))
    }
}

fn called(task: &Task) -> String {
    let name = name_in_flow(task).map(|name| format!(" {name:?}")).unwrap_or_default();
    format!("task{name} ({})", task.id)
}

impl fmt::Display for FlowProgress {
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

#[derive(Default)]
struct FlowView {
    progress: FlowProgress,
    left: Vec<TaskId>,
    /// All of `left` wait for upstreams.
    waits: bool,
}

impl FlowView {
    fn add(&mut self, task: &Task) {
        if task.state.is_ended() {
            return self.progress.count(task);
        }
        self.left.push(task.id);
        self.waits &= task.state == State::Waiting;
    }
}

impl TaskQueue {
    /// Progress of a flow. Reads all stored tasks of the queue, so call it rarely.
    ///
    /// # Errors
    ///
    /// As [`task`](Self::task), and [`Missing`](ErrorKind::Missing) if no task of the flow is
    /// stored.
    pub async fn flow(&self, flow: &FlowId) -> Result<FlowProgress, Error> {
        Ok(self.read_flow(flow).await?.progress)
    }

    /// Waits until a flow has ended, including tasks added meanwhile, and calls `progress` after
    /// each change. Notices completions by workers of this handle and its clones soon, others
    /// within two seconds. The first and last reads cover all stored tasks of the queue, others
    /// only unfinished tasks of the flow.
    ///
    /// The flow has failed if all unfinished tasks wait until a failed one is retried. Only the
    /// first 100 upstreams of each task are checked for that; the call keeps waiting for a failed
    /// one beyond.
    ///
    /// # Errors
    ///
    /// As [`flow`](Self::flow). [`Failed`](ErrorKind::Failed) or
    /// [`Cancelled`](ErrorKind::Cancelled) when no task can continue and not all are done: the text
    /// names the first failed or cancelled task, its error and the progress.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn wait_flow(
        &self,
        flow: &FlowId,
        mut progress: impl FnMut(&FlowProgress),
    ) -> Result<FlowProgress, Error> {
        let mut delay = WAIT_DELAYS.0;
        let mut seen = FlowView::default();
        let mut last = None;
        loop {
            let mut completed = std::pin::pin!(self.shared.completed.notified());
            completed.as_mut().enable();
            self.reread_flow(flow, &mut seen).await?;
            if last.as_ref() != Some(&seen.progress) {
                progress(&seen.progress);
                last = Some(seen.progress.clone());
            }
            if seen.left.is_empty() || seen.waits && self.is_stuck(&seen.left).await? {
                return seen.progress.outcome(flow);
            }
            // Frequent completions must not cause a read each: the more pages, the longer the
            // pause.
            let pages = u32::try_from(seen.left.len()).unwrap_or(u32::MAX).div_ceil(MAX_PAGE);
            let pause = WAIT_DELAYS.0.saturating_mul(pages).min(WAIT_DELAYS.1);
            tokio::select! {
                () = completed => host::sleep(&*self.shared.host, pause).await,
                () = host::sleep(&*self.shared.host, delay) => delay = (delay * 2).min(WAIT_DELAYS.1),
            }
        }
    }

    async fn read_flow(&self, flow: &FlowId) -> Result<FlowView, Error> {
        let mut seen = FlowView { waits: true, ..FlowView::default() };
        let see = |task: Task| {
            seen.progress.tasks += 1;
            seen.add(&task);
        };
        self.each(&flow.selector(), see).await?;
        if seen.progress.tasks > 0 {
            return Ok(seen);
        }
        let text = format!(
            "no task of flow {:?} is stored in this queue: it was not added, or has ended and was purged",
            flow.as_str()
        );
        Err(Error::new(ErrorKind::Missing, text))
    }

    /// Reads the whole flow if all of `seen.left` have ended or one is gone.
    async fn reread_flow(&self, flow: &FlowId, seen: &mut FlowView) -> Result<(), Error> {
        seen.waits = true;
        let mut is_whole = true;
        for ids in std::mem::take(&mut seen.left).chunks(MAX_PAGE as usize) {
            let Page { tasks, .. } =
                self.page(&Selector::ids(ids.iter().copied()), Order::Oldest, MAX_PAGE, false).await?;
            is_whole &= tasks.len() == ids.len();
            tasks.iter().for_each(|stored| seen.add(&stored.task));
        }
        if seen.left.is_empty() || !is_whole {
            *seen = self.read_flow(flow).await?;
        }
        Ok(())
    }

    /// Each of these waiting tasks waits for a failed task or for another of these.
    async fn is_stuck(&self, left: &[TaskId]) -> Result<bool, Error> {
        let all: HashSet<TaskId> = left.iter().copied().collect();
        for ids in left.chunks(MAX_LISTED_EDGES) {
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
