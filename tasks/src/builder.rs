//! How a queue of tasks is opened.

use std::{sync::Arc, time::Duration};

use interval_queue::{Counted, Host, MaxRunning, Micros, OnExisting, Pace, QueueName, SharedState, Store};
use interval_queue_task_contract::{
    Change, Command, Keep, Policy, Reply, Settings, SettingsChange, TaskStore,
};

use crate::{
    error::Error,
    host::Tokio,
    queue::{Shared, TaskQueue},
    rate::Rate,
    telemetry::Telemetry,
};

/// How long a call waits for a store that does not answer, unless told otherwise.
const PATIENCE: Duration = Duration::from_secs(30);
/// The longest of that: ids that were sent longer ago are refused.
const MAX_PATIENCE: Duration = Duration::from_secs(9 * 60);

/// Settings for opening a queue of tasks; made by [`TaskQueue::builder`]. What is said of the queue is stored with it
/// and holds for all who use it. Everything is checked by the last step, [`connect`](Builder::connect) or
/// [`open`](Builder::open).
#[derive(Clone, Debug)]
#[must_use]
pub struct Builder {
    name: String,
    pace: Option<Pace>,
    settings: SettingsChange,
    keep: [Option<Duration>; 3],
    keep_most: [Option<Option<u32>>; 3],
    on_existing: OnExisting,
    patience: Duration,
    host: Option<Arc<dyn Host>>,
}

impl TaskQueue {
    /// Settings for opening the queue of that name: 1 to 200 bytes of printable text.
    pub fn builder(name: impl Into<String>) -> Builder {
        Builder {
            name: name.into(),
            pace: None,
            settings: SettingsChange::default(),
            keep: [None; 3],
            keep_most: [None; 3],
            on_existing: OnExisting::Keep,
            patience: PATIENCE,
            host: None,
        }
    }
}

impl Builder {
    /// The time between the starts of two tasks, over all processes: 1 µs to 366 days. The pace is that of the
    /// [interval queue](interval_queue::IntervalQueue) of the same name in the same store. Default: what is stored; if
    /// nothing is, tasks start as soon as a worker has room. [`TaskQueue::set_pace`] changes it live.
    pub fn interval(self, interval: Duration) -> Self {
        self.pace(Pace::every(interval))
    }

    /// At most `count` starts, over all processes, in the time that follows with `per`:
    /// `.rate(5).per(SECOND).burst(20)`. [`Pace`] describes what rates mean.
    pub fn rate(mut self, count: u64) -> Counted<Self> {
        self.pace = None;
        self.and(count)
    }

    /// How many starts of the rate that was named last may come at once; see [`Pace::burst`].
    pub fn burst(mut self, burst: u32) -> Self {
        self.pace = Some(self.pace.unwrap_or_default().burst(burst));
        self
    }

    /// And at most `count` starts in the time that follows with `per`: `.and(10_000).per(DAY)`.
    pub fn and(self, count: u64) -> Counted<Self> {
        Counted::new(self, count, |mut builder, count, per| {
            builder.pace = Some(builder.pace.unwrap_or_default().and(count).per(per));
            builder
        })
    }

    /// How fast tasks start, instead of what was said before: `.pace(Pace::rate(5).per(SECOND).burst(20))`.
    pub fn pace(mut self, pace: impl Into<Pace>) -> Self {
        self.pace = Some(pace.into());
        self
    }

    /// How many tasks run at once, over all processes, at least 1. Default: what is stored; on a new queue any number.
    pub fn max_running(mut self, limit: u32) -> Self {
        self.settings.max_running = MaxRunning::AtMost(limit);
        self
    }

    /// Any number of tasks may run at once, whatever is stored.
    pub fn unlimited_running(mut self) -> Self {
        self.settings.max_running = MaxRunning::Unlimited;
        self
    }

    /// How many tasks of one [key](crate::Task::key) run at once, at least 1. Default: what is stored; on a new queue
    /// 1.
    pub fn key_limit(mut self, limit: u32) -> Self {
        self.settings.key_limit = Some(limit);
        self
    }

    /// How long a task waits until it is as urgent as one with a [priority](crate::Task::priority) higher by 1 that
    /// comes then; at most 366 days. Default: what is stored; on a new queue a day.
    pub fn ageing(mut self, ageing: Duration) -> Self {
        self.settings.ageing = Some(Micros::from_duration(ageing));
        self
    }

    /// How long tasks are kept that are done: 20 minutes at least, and as long as one that waits for them is kept.
    /// Default: what is stored; on a new queue a day.
    pub fn keep_done(mut self, keep: Duration) -> Self {
        self.keep[0] = Some(keep);
        self
    }

    /// The same for those that failed. On a new queue 14 days.
    pub fn keep_failed(mut self, keep: Duration) -> Self {
        self.keep[1] = Some(keep);
        self
    }

    /// The same for those that were cancelled. On a new queue a day.
    pub fn keep_cancelled(mut self, keep: Duration) -> Self {
        self.keep[2] = Some(keep);
        self
    }

    /// How many tasks are kept that are done, the latest; `None`: any number. Those that ended within 20 minutes and
    /// those that one waits for are kept beyond it, and count. Default: what is stored; on a new queue any number.
    pub fn keep_most_done(mut self, most: impl Into<Option<u32>>) -> Self {
        self.keep_most[0] = Some(most.into());
        self
    }

    /// The same for those that failed.
    pub fn keep_most_failed(mut self, most: impl Into<Option<u32>>) -> Self {
        self.keep_most[1] = Some(most.into());
        self
    }

    /// The same for those that were cancelled.
    pub fn keep_most_cancelled(mut self, most: impl Into<Option<u32>>) -> Self {
        self.keep_most[2] = Some(most.into());
        self
    }

    /// The largest payload and result, in bytes, at most 4 MiB. Default: what is stored; on a new queue 1 MiB.
    pub fn max_payload(mut self, bytes: u32) -> Self {
        self.settings.max_payload = Some(bytes);
        self
    }

    /// What becomes of failures of tasks that do not say so themselves. Default: what is stored; on a new queue that of
    /// [`Policy::default`].
    pub fn policy(mut self, policy: Policy) -> Self {
        self.settings.policy = Some(policy);
        self
    }

    /// What happens if the queue is there with other settings. Default: [`OnExisting::Keep`]: what is stored holds,
    /// which is logged as a warning, and told by [`overruled`](TaskQueue::overruled). With [`OnExisting::Replace`]
    /// the settings of this builder are the new truth for all.
    pub fn on_existing(mut self, on_existing: OnExisting) -> Self {
        self.on_existing = on_existing;
        self
    }

    /// How long a call waits for a store that does not answer, at most nine minutes; it tries again meanwhile. Default:
    /// 30 s. Workers wait as long as it takes.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Where its calls and workers run. Default: the tokio runtime of the caller. For simulations.
    pub fn host(mut self, host: impl Host) -> Self {
        self.host = Some(Arc::new(host));
        self
    }

    /// Opens the queue in the store at `url`; see [`interval_queue::connect`] for what it can be.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open), and for a URL that cannot be used.
    pub async fn connect(self, url: &str) -> Result<TaskQueue, Error> {
        self.open(&interval_queue::connect(url).await?).await
    }

    /// Opens the queue in a store that others use, too: creates it, or meets what is there. Give it the [`Store`], or
    /// that of a backend, such as one over a connection pool of the application:
    /// `.open(PostgresStore::over(pool).connect().await?)`.
    ///
    /// # Errors
    ///
    /// [`Invalid`](crate::ErrorKind::Invalid) for a setting out of its bounds,
    /// [`Conflict`](crate::ErrorKind::Conflict) if the queue has other settings and [`OnExisting::Fail`] was asked
    /// for. [`Store`](crate::ErrorKind::Store) and [`Unanswered`](crate::ErrorKind::Unanswered) if the store fails.
    pub async fn open(self, store: impl Into<Store>) -> Result<TaskQueue, Error> {
        let store = store.into();
        self.open_parts(store.tasks().await?, store.pace().await?).await
    }

    /// The same in a store of tasks of one's own, with the state that keeps the pace.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub async fn open_parts(
        mut self,
        tasks: Arc<dyn TaskStore>,
        pace: Arc<dyn SharedState>,
    ) -> Result<TaskQueue, Error> {
        let name = QueueName::new(self.name.clone())?;
        if self.patience > MAX_PATIENCE {
            let text = format!("patience {:?} is out of range: give at most {MAX_PATIENCE:?}", self.patience);
            return Err(Error::invalid(text));
        }
        self.pace.as_ref().map_or(Ok(()), Pace::check)?;
        let telemetry = Telemetry::new(name.clone());
        let host = self.host.clone().unwrap_or_else(|| Arc::new(Tokio));
        let rate = Rate::new(name.clone(), pace, self.host.take());
        let shared = Shared::new(name, tasks, rate, host, telemetry, self.patience);
        let mut queue = TaskQueue { shared: Arc::new(shared), overruled: None };
        self.settings.keep = self.keep(&queue).await?;
        let open = Change::Open(self.settings.clone(), self.on_existing);
        let settings = queue.changed(open).await?;
        let asked = self.settings.on(&settings);
        if asked != settings {
            queue.shared.telemetry.kept(&asked, &settings);
            queue.overruled = Some(asked);
        }
        queue.shared.learn(&settings);
        queue.shared.rate.open(self.pace.take(), self.on_existing).await?;
        Ok(queue)
    }

    /// All of it is one setting: what was not said is as it is stored.
    async fn keep(&self, queue: &TaskQueue) -> Result<Option<Keep>, Error> {
        if self.keep.iter().all(Option::is_none) && self.keep_most.iter().all(Option::is_none) {
            return Ok(None);
        }
        let stored = match queue.overview().await {
            Ok(overview) => overview.settings.keep,
            Err(error) if error.kind() == crate::ErrorKind::Missing => Settings::default().keep,
            Err(error) => return Err(error),
        };
        let [most_done, most_failed, most_cancelled] = self.keep_most;
        let [done, failed, cancelled] = self.keep.map(|keep| keep.map(Micros::from_duration));
        Ok(Some(Keep {
            done: done.unwrap_or(stored.done),
            failed: failed.unwrap_or(stored.failed),
            cancelled: cancelled.unwrap_or(stored.cancelled),
            most_done: most_done.unwrap_or(stored.most_done),
            most_failed: most_failed.unwrap_or(stored.most_failed),
            most_cancelled: most_cancelled.unwrap_or(stored.most_cancelled),
        }))
    }
}

impl TaskQueue {
    pub(crate) async fn changed(&self, change: Change) -> Result<Settings, Error> {
        match self.shared.insist("the change", Command::Change(change)).await? {
            Reply::Changed(settings) => Ok(settings),
            other => Err(crate::queue::unexpected(&other)),
        }
    }
}
