//! What acts on the queue for all, and on tasks that are selected.

use interval_queue_task_contract::{
    Change, ChangeTasks, Command, Key, Kind, MAX_PAGE, Recounted, Reply, Selector, Settings, SettingsChange,
    TaskId, Verb,
};

use crate::{TaskQueue, error::Error, queue::unexpected};

/// What was done with selected tasks, or would be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Touched {
    /// What was touched, in the order of ids.
    pub ids: Vec<TaskId>,
    /// Selected tasks that could not be touched: an ended task that another one needs that has not ended, one with as many
    /// tags or upstreams as can be, or one that would wait for itself, or for which too many wait to be sure.
    pub kept: Vec<TaskId>,
    /// Touched tasks that run: their workers are asked to stop the runs, and the tasks are cancelled once these have
    /// ended. Only for [`Verb::Cancel`].
    pub asked: Vec<TaskId>,
    /// Tasks that were not retried since another task has their unique name: with that task.
    pub taken: Vec<(TaskId, TaskId)>,
}

impl TaskQueue {
    /// Does something with all selected tasks that were added before this call. With `dry_run` nothing is done, only
    /// told what would be; its ids can be selected to do just that.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), interval_queue_tasks::Error> {
    /// # use interval_queue_tasks::{Task, TaskQueue};
    /// use interval_queue_tasks::{Selector, State, Verb};
    ///
    /// # let queue = TaskQueue::builder("pages").connect("memory:").await?;
    /// # queue.add(Task::new("fetch", &7)).await?;
    /// let all = Selector::states([State::Failed, State::Added]);
    /// let would = queue.change(&all, Verb::Cancel, true).await?;
    /// let done = queue.change(&Selector::ids(would.ids), Verb::Cancel, false).await?;
    /// assert_eq!(done.ids.len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Invalid`](crate::ErrorKind::Invalid) for a selector that cannot be; [`Conflict`](crate::ErrorKind::Conflict)
    /// for a retry of one task by its id whose unique name another task has. After
    /// [`Unanswered`](crate::ErrorKind::Unanswered) and [`Store`](crate::ErrorKind::Store) a part may have been done;
    /// to do it again is safe.
    pub async fn change(&self, selector: &Selector, verb: Verb, dry_run: bool) -> Result<Touched, Error> {
        let touched = self.change_at_most(usize::MAX, selector, verb, dry_run).await?;
        match (&selector.ids[..], &touched.taken[..]) {
            ([_], [(id, holder)]) => Err(Error::name_is_taken(*id, *holder)),
            _ => Ok(touched),
        }
    }

    /// The same with so many of them at most, in the order of their ids: a part is tried before the rest. It may be
    /// said again for the next ones if the verb does nothing to those that it was done to, as a retry does.
    ///
    /// # Errors
    ///
    /// As [`change`](Self::change).
    pub async fn change_at_most(
        &self,
        most: usize,
        selector: &Selector,
        verb: Verb,
        dry_run: bool,
    ) -> Result<Touched, Error> {
        let mut all = Touched::default();
        let (mut after, mut watermark) = (None, None);
        while all.ids.len() < most {
            let (selector, verb) = (selector.clone(), verb.clone());
            let limit = u32::try_from(most - all.ids.len()).map_or(MAX_PAGE, |left| left.min(MAX_PAGE));
            let change = ChangeTasks { selector, verb, after, watermark, limit, dry_run };
            let command = Command::Change(Change::Tasks(change));
            let touched = match self.shared.insist("the change", command).await? {
                Reply::Touched(touched) => touched,
                other => return Err(unexpected(&other)),
            };
            all.ids.extend(touched.ids);
            all.kept.extend(touched.kept);
            all.asked.extend(touched.asked);
            all.taken.extend(touched.taken);
            watermark = Some(touched.watermark);
            after = touched.next;
            if after.is_none() {
                break;
            }
        }
        Ok(all)
    }

    /// Counts the stored tasks again, after rows were removed or added by hand: see
    /// [`Condition::Miscounted`](crate::Condition::Miscounted). It goes through all tasks of the queue in one command;
    /// commands of others wait for it, or add what they change.
    ///
    /// In Redis it also removes removed tasks from the indexes, so that none of them blocks those that are ready. A key that
    /// a removed task held is given to the next task by the next steps of workers. A task that waits for a removed one
    /// goes on waiting: [unlink](Verb::Unlink) it.
    ///
    /// # Errors
    ///
    /// As [`pause`](Self::pause). What was corrected before is not returned again by a second call.
    pub async fn recount(&self) -> Result<Recounted, Error> {
        let mut all = Recounted::default();
        loop {
            let recounted = match self.shared.insist("the recount", Command::Change(Change::Recount)).await? {
                Reply::Recounted(recounted) => recounted,
                other => return Err(unexpected(&other)),
            };
            all.corrected.extend(recounted.corrected);
            all.dropped += recounted.dropped;
            if !recounted.more {
                return Ok(all);
            }
        }
    }

    /// No worker leases a task any more; what runs goes on.
    ///
    /// # Errors
    ///
    /// [`Store`](crate::ErrorKind::Store) and [`Unanswered`](crate::ErrorKind::Unanswered) if the store fails.
    pub async fn pause(&self) -> Result<(), Error> {
        self.changed(Change::Pause).await.map(drop)
    }

    /// Ends a pause.
    ///
    /// # Errors
    ///
    /// As [`pause`](Self::pause).
    pub async fn resume(&self) -> Result<(), Error> {
        self.changed(Change::Resume).await.map(drop)
    }

    /// Pauses one kind, or ends that.
    ///
    /// # Errors
    ///
    /// As [`pause`](Self::pause), and [`Invalid`](crate::ErrorKind::Invalid) for a kind that cannot be.
    pub async fn pause_kind(&self, kind: impl Into<String>, paused: bool) -> Result<(), Error> {
        self.changed(Change::Kind(Kind::new(kind.into())?, paused)).await.map(drop)
    }

    /// Gives one key a limit of its own; 0 pauses it, none gives it that of the queue.
    ///
    /// # Errors
    ///
    /// As [`pause`](Self::pause), and [`Invalid`](crate::ErrorKind::Invalid) for a key that cannot be.
    pub async fn set_key_limit(&self, key: impl Into<String>, limit: Option<u32>) -> Result<(), Error> {
        self.changed(Change::Key(Key::new(key.into())?, limit)).await.map(drop)
    }

    /// Changes settings for all; those that are none stay. The settings that hold now.
    ///
    /// # Errors
    ///
    /// As [`pause`](Self::pause), and [`Invalid`](crate::ErrorKind::Invalid) for a setting out of its bounds.
    pub async fn set(&self, settings: SettingsChange) -> Result<Settings, Error> {
        let settings = self.changed(Change::Set(settings)).await?;
        self.shared.learn(&settings);
        Ok(settings)
    }
}
