//! Copying and moving tasks to another queue, in the same or another store.

mod importer;
mod leaving;

use std::time::Duration;

use interval_queue::contract::{Label, MAX_LABEL};
use interval_queue_task_contract::{MAX_PAGE, MOVED, MOVING, Selector, State, Tag, TaskId, Verb};

use self::{importer::Importer, leaving::Leaving};
use crate::{TaskQueue, error::Error, host};

const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Longest name of the destination of a move, in bytes.
pub const MAX_MOVED_TO: usize = MAX_LABEL;

/// Progress of a copy or move.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Transferred {
    /// Tasks new at the destination, including ended upstreams.
    pub new: u64,
    /// Tasks that were there before.
    pub again: u64,
    /// Of a copy: tasks that run now and follow when their runs end. Of a move: selected tasks that
    /// have not left, counted up to 1,000.
    pub running: u64,
    /// Tasks that stay, as they wait for one that was not selected and has not ended.
    pub kept: Vec<TaskId>,
    /// Tasks that stay, as their unique names are taken at the destination: pairs of task and
    /// holder.
    pub taken: Vec<(TaskId, TaskId)>,
}

impl TaskQueue {
    /// Copies selected tasks to another queue in any store, with ids, payloads, results, order,
    /// times, history and edges. A selector without states selects all but purged tasks. Running
    /// tasks follow when their runs end, in their state then. `progress` is called meanwhile.
    ///
    /// Tasks whose ids exist there stay unchanged: repeat an interrupted copy to continue it. A
    /// task whose unique name is taken there is not copied; its downstreams wait there for the
    /// holder. Settings, key limits, schedules and the rate are not copied. Values that a
    /// [codec](crate::Codec) has encoded stay encoded.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), interval_queue_tasks::Error> {
    /// # use interval_queue_tasks::{Selector, Task, TaskQueue};
    /// let old = TaskQueue::builder("mail").connect("memory:").await?;
    /// let new = TaskQueue::builder("mail").connect("memory:").await?;
    /// old.add(Task::new("welcome", &"Ada")).await?;
    /// let copied = old.copy_to(&new, &Selector::default(), |_| {}).await?;
    /// assert_eq!((copied.new, copied.again), (1, 0));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Invalid`](crate::ErrorKind::Invalid) for an invalid selector, or if both are the same
    /// queue; [`Unanswered`](crate::ErrorKind::Unanswered) and [`Store`](crate::ErrorKind::Store):
    /// copied tasks stay.
    ///
    /// # Cancel safety
    ///
    /// If dropped, a part has been copied; repeating the call is safe.
    pub async fn copy_to(
        &self,
        to: &Self,
        selector: &Selector,
        progress: impl FnMut(&Transferred) + Send,
    ) -> Result<Transferred, Error> {
        self.must_differ(to, selector).await?;
        let mut importer = Importer::new(self, to, None, progress);
        let mut left = importer.round(selector).await?;
        while !left.is_empty() {
            let (before, has_running) = (left.len(), importer.done.running > 0);
            host::sleep(&*self.shared.host, POLL_INTERVAL).await;
            left = importer.transfer(&left).await?;
            if !has_running && left.len() == before {
                break;
            }
        }
        importer.done.kept = left;
        importer.done.taken = importer.taken.into_iter().collect();
        Ok(importer.done)
    }

    /// Moves selected live tasks to another queue in any store, as [`copy_to`](Self::copy_to)
    /// copies them, while workers run. No task can start at both places. Running tasks follow when
    /// their runs end, if they are to run again; so do tasks added meanwhile. The move ends when no
    /// selected task is left.
    ///
    /// Tasks of a key move together, in order, when none of the key runs here. Until then, a key
    /// with a running task is paused here. A task added here to a moved key may run concurrently
    /// with tasks of the key there: add new tasks to the destination first.
    ///
    /// Moved tasks are cancelled here with the error "it was moved to" `name`. Repeat an
    /// interrupted move under the same name to continue it. Tasks that have left and not arrived
    /// have the tag [`moving`](crate::contract::MOVING). A retry takes these back, and skips tasks
    /// that have arrived. A task here that waits for a moved one waits until it is moved, too. A
    /// task whose unique name is taken there continues here at the end.
    ///
    /// # Errors
    ///
    /// As [`copy_to`](Self::copy_to), and [`Invalid`](crate::ErrorKind::Invalid) for a name that is
    /// no label or a selector of ended states only.
    ///
    /// # Cancel safety
    ///
    /// If dropped, a part has been moved, tasks may be under way, and keys may stay paused here:
    /// [`set_key_limit`](Self::set_key_limit) resumes them. Repeat the move within the
    /// destination's retention: later, a task that arrived, ran and was deleted could arrive again.
    pub async fn move_to(
        &self,
        to: &Self,
        selector: &Selector,
        name: &str,
        progress: impl FnMut(&Transferred) + Send,
    ) -> Result<Transferred, Error> {
        let name = Label::new(name)?;
        let mut live = selector.clone();
        live.states.retain(|state| !state.is_ended());
        if live.states.is_empty() {
            if !selector.states.is_empty() {
                return Err(Error::invalid("a move takes tasks that have not ended: copy ended tasks"));
            }
            live.states = State::ALL.into_iter().filter(|state| !state.is_ended()).collect();
        }
        self.must_differ(to, &live).await?;
        let error = format!("{MOVED}{name}");
        let states = vec![State::Cancelled];
        let under_way = Selector {
            states,
            tags: vec![Tag::new(MOVING)?],
            error: Some(error.clone()),
            ..Selector::default()
        };
        let mut importer = Importer::new(self, to, Some(error), progress);
        let mut leaving = Leaving::new(self, live, name);
        let moved = self.move_all(&mut importer, &mut leaving, &under_way).await;
        leaving.open().await?;
        moved?;
        Ok(importer.done)
    }

    async fn move_all<F: FnMut(&Transferred) + Send>(
        &self,
        importer: &mut Importer<'_, F>,
        leaving: &mut Leaving<'_>,
        under_way: &Selector,
    ) -> Result<(), Error> {
        loop {
            leaving.round().await?;
            let left = importer.round(under_way).await?;
            // The counts can be wrong: only a read of the tasks ends the move.
            let (running, _) = self.first(leaving.live(), MAX_PAGE).await?;
            importer.done.running = running.len() as u64;
            importer.report();
            if running.is_empty() {
                importer.done.kept = left;
                importer.done.taken = std::mem::take(&mut importer.taken).into_iter().collect();
                let ids: Vec<TaskId> = importer.done.taken.iter().map(|(id, _)| *id).collect();
                for ids in ids.chunks(MAX_PAGE as usize) {
                    let back = Selector::ids(ids.iter().copied());
                    self.change_at_most(usize::MAX, &back, Verb::Retry, false).await?;
                }
                return Ok(());
            }
            host::sleep(&*self.shared.host, POLL_INTERVAL).await;
        }
    }

    /// A tag that appears at both shows that they are the same queue.
    async fn must_differ(&self, to: &Self, selector: &Selector) -> Result<(), Error> {
        let Some(here) = self.first(selector, 1).await?.0.pop() else { return Ok(()) };
        let id = here.id;
        if to.whole(&[id]).await?.is_empty() {
            return Ok(());
        }
        let tag = Tag::new(format!("probe-{:x}", self.shared.host.random()))?;
        let one = Selector::ids([id]);
        let is_tagged = !self.change(&one, Verb::Tag(tag.clone()), false).await?.ids.is_empty();
        let there = to.whole(&[id]).await?.pop();
        if is_tagged {
            self.change(&one, Verb::Untag(tag.clone()), false).await?;
        }
        let is_same = there.is_some_and(|there| match is_tagged {
            true => there.task.tags.contains(&tag),
            false => there.task == here,
        });
        if is_same {
            let name = to.name().as_str();
            return Err(Error::invalid(format!(
                "the destination is the queue {name:?} itself: name another one"
            )));
        }
        Ok(())
    }
}
