//! Operator commands on the queue and on selected tasks.

use interval_queue_task_contract::{
    Change, ChangeTasks, Command, Key, Kind, MAX_PAGE, Recounted, Reply, Selector, Settings, SettingsChange,
    TaskId, Verb, WorkerId,
};

use crate::{TaskQueue, error::Error, queue::unexpected};

/// Result of a command on selected tasks, or of its dry run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Touched {
    /// Changed tasks, in the order of adding; for over 1,000 tasks of a flow, within each command.
    pub ids: Vec<TaskId>,
    /// Tasks that could not be changed: ended, but needed by a live task; at the maximum of tags or
    /// upstreams; in a cycle by the new edge, or with too many dependents to exclude one; or, in a
    /// move, of a key with a running task.
    pub kept: Vec<TaskId>,
    /// Changed tasks that run: their workers are asked to stop, and they are cancelled once their
    /// runs have ended. Only for [`Verb::Cancel`].
    pub asked: Vec<TaskId>,
    /// Tasks not retried as another task holds their unique name: pairs of task and holder.
    pub taken: Vec<(TaskId, TaskId)>,
}

impl TaskQueue {
    /// Applies `verb` to all selected tasks added before this call. With `dry_run` nothing changes;
    /// select the returned ids to change exactly these.
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
    /// [`Invalid`](crate::ErrorKind::Invalid) for an invalid selector;
    /// [`Conflict`](crate::ErrorKind::Conflict) if one task is retried by its id and another holds
    /// its unique name. After [`Unanswered`](crate::ErrorKind::Unanswered) and
    /// [`Store`](crate::ErrorKind::Store) a part may have been changed; repeating the call is safe.
    pub async fn change(&self, selector: &Selector, verb: Verb, dry_run: bool) -> Result<Touched, Error> {
        let touched = self.change_at_most(usize::MAX, selector, verb, dry_run).await?;
        match (&selector.ids[..], &touched.taken[..]) {
            ([_], [(id, holder)]) => Err(Error::name_is_taken(*id, *holder)),
            _ => Ok(touched),
        }
    }

    /// As [`change`](Self::change), for the first `most` tasks in the order of adding, to try a part
    /// first. Repeat it for the next ones if the verb skips tasks already changed, as a retry does.
    ///
    /// # Errors
    ///
    /// As [`change`](Self::change), but taken names are only in [`Touched::taken`].
    pub async fn change_at_most(
        &self,
        most: usize,
        selector: &Selector,
        verb: Verb,
        dry_run: bool,
    ) -> Result<Touched, Error> {
        let mut all = Touched::default();
        let add = |touched: &Touched| {
            all.ids.extend(&touched.ids);
            all.kept.extend(&touched.kept);
            all.asked.extend(&touched.asked);
            all.taken.extend(&touched.taken);
        };
        self.change_in_pages(most, selector, verb, dry_run, add).await?;
        Ok(all)
    }

    /// As [`change_at_most`](Self::change_at_most), and passes the tasks of each command, at most
    /// 1,000, to `report`. After an error, the reported tasks have been changed.
    ///
    /// # Errors
    ///
    /// As [`change_at_most`](Self::change_at_most).
    pub async fn change_in_pages(
        &self,
        most: usize,
        selector: &Selector,
        verb: Verb,
        dry_run: bool,
        mut report: impl FnMut(&Touched),
    ) -> Result<(), Error> {
        let (mut after, mut watermark, mut changed) = (None, None, 0);
        while changed < most {
            let (selector, verb) = (selector.clone(), verb.clone());
            let limit = u32::try_from(most - changed).map_or(MAX_PAGE, |left| left.min(MAX_PAGE));
            let change = ChangeTasks { selector, verb, after, watermark, limit, dry_run };
            let command = Command::Change(Change::Tasks(change));
            let touched = match self.shared.command_with_retries("the change", command).await? {
                Reply::Touched(touched) => touched,
                other => return Err(unexpected(&other)),
            };
            changed += touched.ids.len();
            (after, watermark) = (touched.next, Some(touched.watermark));
            let interval_queue_task_contract::Touched { ids, kept, asked, taken, .. } = touched;
            report(&Touched { ids, kept, asked, taken });
            if after.is_none() {
                break;
            }
        }
        Ok(())
    }

    /// Corrects the counts after rows were removed or added by hand: see
    /// [`Condition::Miscounted`](crate::Condition::Miscounted). One command reads all tasks of the
    /// queue; concurrent commands wait for it, or add their changes.
    ///
    /// In Redis it also drops index entries of removed tasks, which block ready ones. Later polls
    /// pass on the key of a removed task. A task that waits for a removed one keeps waiting:
    /// [unlink](Verb::Unlink) it.
    ///
    /// # Errors
    ///
    /// As [`pause`](Self::pause). A second call does not return earlier corrections.
    pub async fn recount(&self) -> Result<Recounted, Error> {
        let mut all = Recounted::default();
        loop {
            let recounted = match self
                .shared
                .command_with_retries("the recount", Command::Change(Change::Recount))
                .await?
            {
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

    /// Stops workers from leasing tasks; runs go on.
    ///
    /// # Errors
    ///
    /// [`Store`](crate::ErrorKind::Store) and [`Unanswered`](crate::ErrorKind::Unanswered).
    pub async fn pause(&self) -> Result<(), Error> {
        self.changed(Change::Pause).await.map(drop)
    }

    /// Ends a [`pause`](Self::pause).
    ///
    /// # Errors
    ///
    /// As [`pause`](Self::pause).
    pub async fn resume(&self) -> Result<(), Error> {
        self.changed(Change::Resume).await.map(drop)
    }

    /// Pauses or resumes a kind.
    ///
    /// # Errors
    ///
    /// As [`pause`](Self::pause), and [`Invalid`](crate::ErrorKind::Invalid) for an invalid kind.
    pub async fn pause_kind(&self, kind: impl Into<String>, paused: bool) -> Result<(), Error> {
        self.changed(Change::Kind(Kind::new(kind.into())?, paused)).await.map(drop)
    }

    /// Sets the limit of a key. 0: paused. `None`: the queue's limit.
    ///
    /// # Errors
    ///
    /// As [`pause`](Self::pause), and [`Invalid`](crate::ErrorKind::Invalid) for an invalid key.
    pub async fn set_key_limit(&self, key: impl Into<String>, limit: Option<u32>) -> Result<(), Error> {
        self.changed(Change::Key(Key::new(key.into())?, limit)).await.map(drop)
    }

    /// Declares a worker lost, for example after its host has died: its runs fail at once, as if its
    /// lease had ended, and its tasks are retried by their policy. If it lives, its next poll returns
    /// that its runs are lost, and the store refuses their results.
    ///
    /// # Errors
    ///
    /// As [`pause`](Self::pause), and [`Missing`](crate::ErrorKind::Missing) for a worker that is
    /// not stored, or whose tasks were taken back already.
    pub async fn declare_lost(&self, worker: WorkerId) -> Result<(), Error> {
        self.changed(Change::DeclareLost(worker)).await.map(drop)
    }

    /// Adds a note to the log of a task, in any state: why it was retried, or whom to ask. One line of
    /// at most 500 characters; the last 16 are kept. [`Stored::log`](crate::Stored::log) has them.
    ///
    /// # Errors
    ///
    /// As [`pause`](Self::pause); [`Invalid`](crate::ErrorKind::Invalid) for a longer text or several
    /// lines; [`Missing`](crate::ErrorKind::Missing) if the task is not stored.
    pub async fn note(&self, id: TaskId, text: impl Into<String>) -> Result<(), Error> {
        self.changed(Change::Note(id, text.into())).await.map(drop)
    }

    /// Changes settings for every process and returns all settings. Fields that are not set stay.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), interval_queue_tasks::Error> {
    /// use interval_queue_tasks::{Kind, MINUTE, PolicyOverride, SettingsChange, TaskQueue};
    ///
    /// # let queue = TaskQueue::builder("jobs").connect("memory:").await?;
    /// let mail = PolicyOverride::default().max_attempts(3).timeout(MINUTE);
    /// let kinds = [(Kind::new("mail")?, mail)].into();
    /// let settings = queue.set(SettingsChange { kinds, ..SettingsChange::default() }).await?;
    /// assert_eq!(settings.policy_of_kind(&Kind::new("mail")?).max_attempts, 3);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`pause`](Self::pause), and [`Invalid`](crate::ErrorKind::Invalid) for an invalid
    /// setting.
    pub async fn set(&self, settings: SettingsChange) -> Result<Settings, Error> {
        let settings = self.changed(Change::Set(settings)).await?;
        self.shared.learn(&settings);
        Ok(settings)
    }

    pub(crate) async fn changed(&self, change: Change) -> Result<Settings, Error> {
        match self.shared.command_with_retries("the change", Command::Change(change)).await? {
            Reply::Changed(settings) => Ok(settings),
            other => Err(unexpected(&other)),
        }
    }
}
