//! Tasks that are copied or moved to another queue, in the same store or in another one.

mod carrier;
mod leaving;

use std::time::Duration;

use interval_queue::contract::Label;
use interval_queue_task_contract::{MAX_PAGE, MOVED, MOVING, Selector, State, Stored, Tag, TaskId, Verb};

use self::{carrier::Carrier, leaving::Leaving};
use crate::{TaskQueue, error::Error, host};

/// So often a copy or a move looks whether what runs has ended.
const LOOK: Duration = Duration::from_secs(1);

/// How far a copy or a move is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Transferred {
    /// How many tasks are new at their destination, with ended ones that others have waited for.
    pub new: u64,
    /// How many were there before.
    pub again: u64,
    /// How many run now, and follow when their runs have ended; of a move a thousand at most are counted.
    pub running: u64,
    /// Those that stay, since they wait for a task that was not selected and has not ended.
    pub kept: Vec<TaskId>,
    /// Tasks that stay, since another task at the destination has their unique name: with that task.
    pub taken: Vec<(TaskId, TaskId)>,
}

impl TaskQueue {
    /// Copies selected tasks to another queue, which may be in another store: with their ids, payloads, results, order,
    /// times, runs so far and what they wait for. Without states in the selector that is all but purged ones. Those
    /// that run follow when their runs have ended: their state of then. `progress` hears how far it is.
    ///
    /// A task whose id is there stays as it is, so a copy that was interrupted is done again, and goes on. A task whose
    /// unique name another one has there is not copied, and what waits for it waits there for the other one. Settings,
    /// limits of keys, schedules and the pace are not copied.
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
    /// [`Invalid`](crate::ErrorKind::Invalid) if both are the same queue, or for a selector that cannot be;
    /// [`Unanswered`](crate::ErrorKind::Unanswered) and [`Store`](crate::ErrorKind::Store) if a store fails: what was
    /// copied stays.
    ///
    /// # Cancel safety
    ///
    /// Dropped, a part was copied; to do it again is safe.
    pub async fn copy_to(
        &self,
        to: &Self,
        selector: &Selector,
        progress: impl FnMut(&Transferred) + Send,
    ) -> Result<Transferred, Error> {
        self.must_differ(to, selector).await?;
        let mut carrier = Carrier::new(self, to, None, progress);
        let mut left = carrier.round(selector).await?;
        while !left.is_empty() {
            let (before, has_running) = (left.len(), carrier.done.running > 0);
            host::sleep(&*self.shared.host, LOOK).await;
            left = carrier.carry(&left).await?;
            if !has_running && left.len() == before {
                break;
            }
        }
        carrier.done.kept = left;
        carrier.done.taken = carrier.taken.into_iter().collect();
        Ok(carrier.done)
    }

    /// Moves selected tasks to another queue, which may be in another store, while workers run: those that have not
    /// ended, as [`copy_to`](Self::copy_to) copies them, and no task can start at both. Those that run follow when
    /// their runs have ended, if they are to run again; so do those that are added meanwhile. It ends when nothing is
    /// left that is selected.
    ///
    /// Tasks of a key follow together, in their order, when no task of the key runs here. Until then a key of which one
    /// runs is paused here, so that none of them starts. What is added here to a key that has moved may run beside its
    /// tasks there: add to the destination first, and then move.
    ///
    /// Here they are cancelled, with "it was moved to" this name of the destination as their error. An interrupted move
    /// is done again under the same name, and goes on: tasks that have left and not arrived have the tag
    /// [`moving`](crate::contract::MOVING). To have those back, retry them. A retry leaves out tasks that have arrived.
    /// A task here that waits for one that was moved goes on waiting until it is moved, too. A task whose unique name
    /// another one has there goes on here in the end, as it was.
    ///
    /// # Errors
    ///
    /// As [`copy_to`](Self::copy_to), and [`Invalid`](crate::ErrorKind::Invalid) for a name that is no label, or a
    /// selector of states that have ended.
    ///
    /// # Cancel safety
    ///
    /// Dropped, a part was moved, a part may be under way, and a key of which a task ran may be paused here:
    /// [`set_key_limit`](Self::set_key_limit) ends that. Do it again within as long as the destination keeps what
    /// has ended: later a task that has arrived, run and been forgotten in between might come again.
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
                return Err(Error::invalid("a move takes tasks that have not ended: copy those that have"));
            }
            live.states = State::ALL.into_iter().filter(|state| !state.is_ended()).collect();
        }
        self.must_differ(to, &live).await?;
        let error = format!("{MOVED}{name}");
        let states = vec![State::Cancelled];
        let under_way = Selector {
            states,
            tag: Some(Tag::new(MOVING)?),
            error: Some(error.clone()),
            ..Selector::default()
        };
        let mut carrier = Carrier::new(self, to, Some(error), progress);
        let mut leaving = Leaving::new(self, live, name);
        let moved = self.move_all(&mut carrier, &mut leaving, &under_way).await;
        leaving.open().await?;
        moved?;
        Ok(carrier.done)
    }

    async fn move_all<F: FnMut(&Transferred) + Send>(
        &self,
        carrier: &mut Carrier<'_, F>,
        leaving: &mut Leaving<'_>,
        under_way: &Selector,
    ) -> Result<(), Error> {
        loop {
            leaving.round().await?;
            let left = carrier.round(under_way).await?;
            let running = self.page(leaving.live(), None, MAX_PAGE, false).await?.tasks.len();
            carrier.done.running = running as u64;
            carrier.tell();
            if running == 0 {
                carrier.done.kept = left;
                carrier.done.taken = std::mem::take(&mut carrier.taken).into_iter().collect();
                // They go on here, with their runs and times.
                let ids: Vec<TaskId> = carrier.done.taken.iter().map(|(id, _)| *id).collect();
                for ids in ids.chunks(MAX_PAGE as usize) {
                    let back = Selector::ids(ids.iter().copied());
                    self.change_at_most(usize::MAX, &back, Verb::Retry, false).await?;
                }
                return Ok(());
            }
            host::sleep(&*self.shared.host, LOOK).await;
        }
    }

    /// A task that both have is tagged for a moment: if it has the tag there, too, they are one.
    async fn must_differ(&self, to: &Self, selector: &Selector) -> Result<(), Error> {
        let first = self.page(selector, None, 1, false).await?.tasks.pop();
        let Some(Stored { task: here, .. }) = first else { return Ok(()) };
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
