//! Reading a queue and its tasks, and waiting for a task to end.

use std::{collections::BTreeMap, time::Duration};

use interval_queue::Micros;
use interval_queue_task_contract::{
    Command, Cursor, Day, Inputs, Json, Key, Kind, MAX_PAGE, Order, Overview, Page, Read, Reply, Selector,
    State, Stored, Task, TaskId, Times, Worker,
};
use serde::de::DeserializeOwned;

use crate::{
    TaskQueue,
    error::{Error, ErrorKind},
    host,
    queue::unexpected,
};

/// First and maximum delay.
pub(crate) const WAIT_DELAYS: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));

impl TaskQueue {
    async fn read(&self, read: Read) -> Result<Reply, Error> {
        self.shared.command_with_retries("the read", Command::Read(read)).await
    }

    fn decoded(&self, stored: Stored) -> Stored {
        self.shared.codec.decode_stored(stored)
    }

    /// The limit set for a key. 0: paused. `None`: the queue's limit.
    ///
    /// # Errors
    ///
    /// As [`task`](Self::task), and [`Invalid`](ErrorKind::Invalid) for an invalid key.
    pub async fn key_limit(&self, key: impl Into<String>) -> Result<Option<u32>, Error> {
        match self.read(Read::KeyLimit(Key::new(key.into())?)).await? {
            Reply::KeyLimit(limit) => Ok(limit),
            other => Err(unexpected(&other)),
        }
    }

    /// A task with payload, result and edges. `None`: no such task.
    ///
    /// # Errors
    ///
    /// [`Store`](ErrorKind::Store) and [`Unanswered`](ErrorKind::Unanswered).
    pub async fn task(&self, id: TaskId) -> Result<Option<Stored>, Error> {
        match self.read(Read::Tasks(vec![id])).await? {
            Reply::Tasks(tasks) => Ok(tasks.into_iter().next().flatten().map(|stored| self.decoded(stored))),
            other => Err(unexpected(&other)),
        }
    }

    /// The stored tasks among these, with payloads, results and edges, by id.
    ///
    /// # Errors
    ///
    /// As [`task`](Self::task).
    pub async fn tasks(&self, ids: impl IntoIterator<Item = TaskId>) -> Result<Vec<Stored>, Error> {
        let mut ids: Vec<_> = ids.into_iter().collect();
        ids.sort();
        ids.dedup();
        let (mut stored, mut rest) = (Vec::new(), &ids[..]);
        while !rest.is_empty() {
            let some = rest[..rest.len().min(MAX_PAGE as usize)].to_vec();
            match self.read(Read::Tasks(some)).await? {
                // A reply with large payloads ends early.
                Reply::Tasks(tasks) if !tasks.is_empty() => {
                    rest = &rest[tasks.len()..];
                    stored.extend(tasks.into_iter().flatten().map(|stored| self.decoded(stored)));
                }
                other => return Err(unexpected(&other)),
            }
        }
        Ok(stored)
    }

    /// The tasks that these workers run, those that began first first; of each worker at most a
    /// hundred.
    ///
    /// # Errors
    ///
    /// As [`task`](Self::task).
    pub async fn runs(&self, workers: &[Worker]) -> Result<Vec<Task>, Error> {
        let held: BTreeMap<TaskId, _> =
            workers.iter().flat_map(|worker| worker.holds.iter().copied()).collect();
        let ids: Vec<_> = held.keys().copied().collect();
        let mut runs = Vec::new();
        for ids in ids.chunks(MAX_PAGE as usize) {
            let page = self.page(&Selector::ids(ids.to_vec()), Order::Oldest, MAX_PAGE, false).await?;
            runs.extend(page.tasks.into_iter().map(|stored| stored.task));
        }
        runs.retain(|task| {
            task.leased.is_some() && held.get(&task.id) == Some(&task.token) && !task.state.is_ended()
        });
        runs.sort_by_key(|task| (task.leased, task.id));
        Ok(runs)
    }

    /// Waits for a task to end and returns its result. Notices completions by workers of this
    /// handle and its clones at once, others within two seconds.
    ///
    /// # Errors
    ///
    /// [`Failed`](ErrorKind::Failed) or [`Cancelled`](ErrorKind::Cancelled), with the reason;
    /// [`Mismatch`](ErrorKind::Mismatch) if the result has another type; [`Codec`](ErrorKind::Codec)
    /// if it is [not decoded](Stored::undecoded); else as [`wait_end`](Self::wait_end).
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn wait<T: DeserializeOwned>(&self, id: TaskId) -> Result<T, Error> {
        result_of(self.ended(id).await?)
    }

    /// Waits for a task to end, however it ends, and returns all that is stored of it.
    ///
    /// # Errors
    ///
    /// As [`task`](Self::task), and [`Missing`](ErrorKind::Missing) if there is no such task.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn wait_end(&self, id: TaskId) -> Result<Stored, Error> {
        let mut delay = WAIT_DELAYS.0;
        loop {
            let mut completed = std::pin::pin!(self.shared.completed.notified());
            completed.as_mut().enable();
            let stored = self.task(id).await?.filter(|stored| stored.task.state != State::Purged);
            let stored = stored.ok_or_else(|| Error::missing(id))?;
            if stored.task.state.is_ended() {
                return Ok(stored);
            }
            tokio::select! {
                () = completed => {}
                () = host::sleep(&*self.shared.host, delay) => delay = (delay * 2).min(WAIT_DELAYS.1),
            }
        }
    }

    /// An error unless the task is done.
    pub(crate) async fn ended(&self, id: TaskId) -> Result<Stored, Error> {
        let stored = self.wait_end(id).await?;
        let why = stored.task.error.as_deref().unwrap_or("no reason was given");
        match stored.task.state {
            State::Failed => Err(Error::new(ErrorKind::Failed, format!("task {id} failed: {why}"))),
            State::Cancelled => {
                Err(Error::new(ErrorKind::Cancelled, format!("task {id} was cancelled: {why}")))
            }
            _ => Ok(stored),
        }
    }

    /// A page of selected tasks: at most `limit`, up to 1,000. `bodies` adds payloads and results.
    ///
    /// The first page begins at an order, the next one at [`Page::next`]. A page can have fewer tasks
    /// than its limit, even none, although others follow: each read examines at most
    /// [`MAX_SCANNED`](crate::MAX_SCANNED) tasks, so that it takes the same time in a long queue as in a short one.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), interval_queue_tasks::Error> {
    /// # use interval_queue_tasks::{Task, TaskQueue};
    /// use interval_queue_tasks::{Order, Selector};
    ///
    /// # let queue = TaskQueue::builder("pages").connect("memory:").await?;
    /// # queue.add(Task::new("fetch", &7)).await?;
    /// let seven = Selector { payload: Some("7".into()), ..Selector::default() };
    /// let page = queue.page(&seven, Order::Newest, 25, true).await?;
    /// assert_eq!(page.tasks.len(), 1);
    /// if let Some(next) = page.next {
    ///     queue.page(&seven, next, 25, true).await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`task`](Self::task), and [`Invalid`](ErrorKind::Invalid) for an invalid selector or
    /// limit.
    pub async fn page(
        &self,
        selector: &Selector,
        after: impl Into<Cursor>,
        limit: u32,
        bodies: bool,
    ) -> Result<Page, Error> {
        let read = Read::Page { selector: selector.clone(), after: after.into(), limit, bodies };
        match self.read(read).await? {
            Reply::Page(page) => {
                let tasks = page.tasks.into_iter().map(|stored| self.decoded(stored)).collect();
                Ok(Page { tasks, ..page })
            }
            other => Err(unexpected(&other)),
        }
    }

    /// In the order of adding, without payloads and results. A task that is added or moved in
    /// between may be missed.
    ///
    /// # Errors
    ///
    /// As [`page`](Self::page).
    pub(crate) async fn each(&self, selector: &Selector, mut see: impl FnMut(Task)) -> Result<(), Error> {
        let mut after = Some(Order::Oldest.start());
        while let Some(from) = after {
            let page = self.page(selector, from, MAX_PAGE, false).await?;
            page.tasks.into_iter().for_each(|stored| see(stored.task));
            after = page.next;
        }
        Ok(())
    }

    /// The first `most` selected tasks in the order of adding, without payloads and results, and
    /// whether these are all.
    ///
    /// # Errors
    ///
    /// As [`page`](Self::page).
    pub async fn first(&self, selector: &Selector, most: u32) -> Result<(Vec<Task>, bool), Error> {
        let (mut tasks, mut after, mut left) = (Vec::new(), Some(Order::Oldest.start()), most);
        while let Some(from) = after.filter(|_| left > 0) {
            let page = self.page(selector, from, left.min(MAX_PAGE), false).await?;
            left -= page.tasks.len() as u32;
            tasks.extend(page.tasks.into_iter().map(|stored| stored.task));
            after = page.next;
        }
        Ok((tasks, after.is_none()))
    }

    /// The number of selected tasks, counted up to `most`. Exact and immediate for a selector of
    /// kinds and states alone; otherwise it examines the tasks,
    /// [`MAX_SCANNED`](crate::MAX_SCANNED) in a command.
    ///
    /// # Errors
    ///
    /// As [`page`](Self::page).
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn count(&self, selector: &Selector, most: u64) -> Result<u64, Error> {
        let (mut number, mut after) = (0, None);
        loop {
            let tally = match self.read(Read::Count { selector: selector.clone(), after }).await? {
                Reply::Count(tally) => tally,
                other => return Err(unexpected(&other)),
            };
            number += tally.number;
            after = tally.next;
            if after.is_none() || number >= most {
                return Ok(number.min(most));
            }
        }
    }

    /// The id of the stored task whose id ends with these characters, at least
    /// [`MIN_SUFFIX`](crate::MIN_SUFFIX) of them.
    ///
    /// # Errors
    ///
    /// As [`page`](Self::page); [`Invalid`](ErrorKind::Invalid) for a shorter suffix or one of
    /// several tasks, and [`Missing`](ErrorKind::Missing) for one of none.
    pub async fn find_by_suffix(&self, suffix: &str) -> Result<TaskId, Error> {
        let selector = Selector { id_suffix: Some(suffix.to_lowercase()), ..Selector::states(State::ALL) };
        let mut found = Vec::new();
        self.each(&selector, |task| found.push(task.id)).await?;
        match found[..] {
            [id] => Ok(id),
            [] => {
                Err(Error::new(ErrorKind::Missing, format!("there is no task whose id ends with {suffix:?}")))
            }
            [one, other, ..] => {
                let text = format!(
                    "{suffix:?} is the end of {} ids, as of {one} and {other}: give more of it",
                    found.len()
                );
                Err(Error::new(ErrorKind::Invalid, text))
            }
        }
    }

    /// Settings, counts by kind and state, workers, pauses and the next due time.
    /// [`QueueStatus`](crate::QueueStatus) derives from them whether tasks start.
    ///
    /// # Errors
    ///
    /// As [`task`](Self::task).
    pub async fn overview(&self) -> Result<Overview, Error> {
        match self.read(Read::Overview).await? {
            Reply::Overview(overview) => Ok(*overview),
            other => Err(unexpected(&other)),
        }
    }

    /// The store's clock.
    ///
    /// # Errors
    ///
    /// As [`task`](Self::task), and [`Missing`](ErrorKind::Missing) if there is no such queue.
    pub async fn now(&self) -> Result<Micros, Error> {
        match self.read(Read::Clock).await? {
            Reply::Clock(now) => Ok(now),
            other => Err(unexpected(&other)),
        }
    }

    /// The ready tasks that start next, in this order: at most `limit`, up to 1,000. Each worker
    /// takes those of its kinds.
    ///
    /// # Errors
    ///
    /// As [`task`](Self::task), [`Invalid`](ErrorKind::Invalid) for an invalid limit, and
    /// [`Missing`](ErrorKind::Missing) if there is no such queue.
    pub async fn upcoming(&self, limit: u32) -> Result<Vec<Task>, Error> {
        match self.read(Read::Upcoming(limit)).await? {
            Reply::Upcoming(tasks) => Ok(tasks),
            other => Err(unexpected(&other)),
        }
    }

    /// Workers that are alive or died within the last hour.
    ///
    /// # Errors
    ///
    /// As [`task`](Self::task).
    pub async fn workers(&self) -> Result<Vec<Worker>, Error> {
        match self.read(Read::Workers).await? {
            Reply::Workers(workers) => Ok(workers),
            other => Err(unexpected(&other)),
        }
    }

    /// Waiting and running times of a kind by hour, and what happened to its tasks, starting `since`
    /// ago: kept for [a week](crate::KEEP_TIMES). Omits hours in which nothing happened. Add hours up
    /// with `+=`.
    ///
    /// # Errors
    ///
    /// As [`task`](Self::task), and [`Missing`](ErrorKind::Missing) if there is no such queue.
    pub async fn times(&self, kind: &Kind, since: Duration) -> Result<Vec<Times>, Error> {
        let from = self.now().await? - Micros::from_duration(since);
        match self.read(Read::Times { kind: kind.clone(), from }).await? {
            Reply::Times(times) => Ok(times),
            other => Err(unexpected(&other)),
        }
    }

    /// Numbers of added and ended tasks of a kind by day in UTC, starting with the day `since` ago:
    /// kept for [400 days](crate::KEEP_DAYS). Omits days on which nothing happened.
    ///
    /// # Errors
    ///
    /// As [`times`](Self::times).
    pub async fn days(&self, kind: &Kind, since: Duration) -> Result<Vec<Day>, Error> {
        let from = self.now().await? - Micros::from_duration(since);
        match self.read(Read::Days { kind: kind.clone(), from }).await? {
            Reply::Days(days) => Ok(days),
            other => Err(unexpected(&other)),
        }
    }

    pub(crate) async fn inputs(&self, down: TaskId, after: Option<TaskId>) -> Result<Inputs, Error> {
        match self.read(Read::Inputs { down, after }).await? {
            Reply::Inputs(inputs) => Ok(inputs),
            other => Err(unexpected(&other)),
        }
    }
}

pub(crate) fn result_of<T: DeserializeOwned>(stored: Stored) -> Result<T, Error> {
    if let Some(undecoded) = stored.undecoded {
        return Err(Error::new(ErrorKind::Codec, undecoded));
    }
    let what = || format!("the result of task {} is of another type", stored.task.id);
    parse(&stored.result.unwrap_or_default()).map_err(|error| Error::mismatch(what(), error))
}

pub(crate) fn parse<T: DeserializeOwned>(json: &Json) -> Result<T, serde_json::Error> {
    serde_json::from_str(json.as_str())
}
