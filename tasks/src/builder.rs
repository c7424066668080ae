//! Opening a queue.

use std::{sync::Arc, time::Duration};

use interval_queue::{
    Counted, Host, MaxRunning, Micros, OnExisting, QueueName, RateLimit, SharedState, Store,
};
use interval_queue_task_contract::{
    Change, Keep, Kind, Policy, PolicyOverride, Settings, SettingsChange, TaskStore,
};

use crate::{
    codec::{Codec, QueueCodec},
    error::Error,
    queue::TaskQueue,
};

/// Default of [`Builder::timeout`].
pub(crate) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// Settings for opening a queue, made by [`TaskQueue::builder`] and checked by
/// [`connect`](Builder::connect) or [`open`](Builder::open). The queue's settings are stored and
/// apply to every process. A setting that is not given keeps its stored value; the defaults below
/// are those of a new queue.
#[derive(Clone, Debug)]
#[must_use]
pub struct Builder {
    name: String,
    pace: Option<RateLimit>,
    settings: SettingsChange,
    kinds: Vec<(String, PolicyOverride)>,
    keep: [Option<Duration>; 3],
    keep_most: [Option<Option<u32>>; 3],
    on_existing: OnExisting,
    timeout: Duration,
    host: Option<Arc<dyn Host>>,
    codec: QueueCodec,
}

impl TaskQueue {
    /// Settings for opening the queue `name`: 1 to 200 bytes of printable text.
    pub fn builder(name: impl Into<String>) -> Builder {
        Builder {
            name: name.into(),
            pace: None,
            settings: SettingsChange::default(),
            kinds: Vec::new(),
            keep: [None; 3],
            keep_most: [None; 3],
            on_existing: OnExisting::Keep,
            timeout: DEFAULT_TIMEOUT,
            host: None,
            codec: QueueCodec::default(),
        }
    }
}

impl Builder {
    /// Time between two starts over all processes: 1 µs to 366 days. It is the rate of the
    /// [interval queue](interval_queue::IntervalQueue) of the same name and store. Default: tasks
    /// start as soon as a worker has capacity. [`TaskQueue::set_rate_limit`] changes it live.
    pub fn interval(self, interval: Duration) -> Self {
        self.rate_limit(RateLimit::every(interval))
    }

    /// At most `count` starts over all processes in the time given with `per`:
    /// `.rate(5).per(SECOND).burst(20)`. See [`RateLimit`].
    pub fn rate(mut self, count: u64) -> Counted<Self> {
        self.pace = None;
        self.and(count)
    }

    /// Starts of the last rate that may come at once; see [`RateLimit::burst`].
    pub fn burst(mut self, burst: u32) -> Self {
        self.pace = Some(self.pace.unwrap_or_default().burst(burst));
        self
    }

    /// Adds a rate to the limit: `.and(10_000).per(DAY)`.
    pub fn and(self, count: u64) -> Counted<Self> {
        Counted::new(self, count, |mut builder, count, per| {
            builder.pace = Some(builder.pace.unwrap_or_default().and(count).per(per));
            builder
        })
    }

    /// Sets the whole rate limit: `.rate_limit(RateLimit::rate(5).per(SECOND).burst(20))`.
    pub fn rate_limit(mut self, limit: impl Into<RateLimit>) -> Self {
        self.pace = Some(limit.into());
        self
    }

    /// Maximum number of running tasks over all processes, at least 1. Default: unlimited.
    pub fn max_running(mut self, limit: u32) -> Self {
        self.settings.max_running = MaxRunning::AtMost(limit);
        self
    }

    /// Removes the limit on running tasks, even if one is stored.
    pub fn unlimited_running(mut self) -> Self {
        self.settings.max_running = MaxRunning::Unlimited;
        self
    }

    /// Maximum number of running tasks per [key](crate::Task::key), at least 1. Default: 1.
    pub fn key_limit(mut self, limit: u32) -> Self {
        self.settings.key_limit = Some(limit);
        self
    }

    /// Waiting time worth one step of [priority](crate::Task::priority), at most 366 days. Default:
    /// a day.
    pub fn ageing(mut self, ageing: Duration) -> Self {
        self.settings.ageing = Some(Micros::from_duration(ageing));
        self
    }

    /// How long done tasks are kept: at least 20 minutes, and as long as tasks that wait for them.
    /// Default: a day.
    pub fn keep_done(mut self, keep: Duration) -> Self {
        self.keep[0] = Some(keep);
        self
    }

    /// As [`keep_done`](Self::keep_done), for failed tasks. Default: 14 days.
    pub fn keep_failed(mut self, keep: Duration) -> Self {
        self.keep[1] = Some(keep);
        self
    }

    /// As [`keep_done`](Self::keep_done), for cancelled tasks. Default: a day.
    pub fn keep_cancelled(mut self, keep: Duration) -> Self {
        self.keep[2] = Some(keep);
        self
    }

    /// Maximum number of done tasks kept, the latest. `None`: unlimited, the default. Tasks that
    /// ended within 20 minutes or that a downstream needs stay beyond it, and count.
    pub fn keep_most_done(mut self, most: impl Into<Option<u32>>) -> Self {
        self.keep_most[0] = Some(most.into());
        self
    }

    /// As [`keep_most_done`](Self::keep_most_done), for failed tasks.
    pub fn keep_most_failed(mut self, most: impl Into<Option<u32>>) -> Self {
        self.keep_most[1] = Some(most.into());
        self
    }

    /// As [`keep_most_done`](Self::keep_most_done), for cancelled tasks.
    pub fn keep_most_cancelled(mut self, most: impl Into<Option<u32>>) -> Self {
        self.keep_most[2] = Some(most.into());
        self
    }

    /// Maximum bytes of a payload or result, up to 4 MiB. Default: 1 MiB.
    pub fn max_payload(mut self, bytes: u32) -> Self {
        self.settings.max_payload = Some(bytes);
        self
    }

    /// Policy for failures, unless a kind or a task sets its own. Default: [`Policy::default`].
    pub fn policy(mut self, policy: Policy) -> Self {
        self.settings.policy = Some(policy);
        self
    }

    /// Parts of the policy for all tasks of `kind`, for at most 100 kinds. A task may override them;
    /// the queue's policy sets the rest. An empty override removes what is stored for the kind. Other
    /// kinds keep their stored parts.
    pub fn kind_policy(mut self, kind: impl Into<String>, policy: PolicyOverride) -> Self {
        self.kinds.push((kind.into(), policy));
        self
    }

    /// All settings, such as those of another queue. Policies of other kinds stay.
    pub fn settings(mut self, settings: &Settings) -> Self {
        self.settings = SettingsChange {
            max_running: settings.max_running.map_or(MaxRunning::Unlimited, MaxRunning::AtMost),
            key_limit: Some(settings.key_limit),
            ageing: Some(settings.ageing),
            keep: None,
            max_payload: Some(settings.max_payload),
            policy: Some(settings.policy),
            kinds: settings.kinds.clone(),
        };
        let Keep { done, failed, cancelled, most_done, most_failed, most_cancelled } = settings.keep;
        self.keep = [done, failed, cancelled].map(|keep| Some(keep.to_duration()));
        self.keep_most = [most_done, most_failed, most_cancelled].map(Some);
        self
    }

    /// Action if the queue has other settings. Default: [`OnExisting::Keep`]: the stored ones
    /// apply, a warning is logged and [`overruled`](TaskQueue::overruled) returns the requested
    /// ones. [`OnExisting::Replace`]: the requested ones apply to every process.
    pub fn on_existing(mut self, on_existing: OnExisting) -> Self {
        self.on_existing = on_existing;
        self
    }

    /// How long a call retries if the store does not answer, at most nine minutes. Default: 30 s.
    /// Workers retry forever.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Runtime of calls and workers, for simulations. Default: the caller's tokio runtime.
    pub fn host(mut self, host: impl Host) -> Self {
        self.host = Some(Arc::new(host));
        self
    }

    /// Encodes payloads and results in the store, for example to encrypt them. Handlers,
    /// [inputs](crate::Context::inputs) and reads get them decoded. Default: they are stored as they
    /// are. Open the queue with the same [`Codec`] in every process that uses them. See
    /// [encoded payloads](crate::_guide::tasks#encoded-payloads).
    pub fn codec(mut self, codec: impl Codec) -> Self {
        self.codec = QueueCodec::new(codec);
        self
    }

    /// Opens the queue in the store at `url`; see [`interval_queue::connect`].
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open), and for an unusable URL.
    pub async fn connect(self, url: &str) -> Result<TaskQueue, Error> {
        self.open(&interval_queue::connect(url).await?).await
    }

    /// Opens or creates the queue in a [`Store`], which other queues may share, or in a backend's
    /// store, such as one over the application's connection pool:
    /// `.open(PostgresStore::over(pool).connect().await?)`.
    ///
    /// # Errors
    ///
    /// [`Invalid`](crate::ErrorKind::Invalid) for an invalid setting;
    /// [`Conflict`](crate::ErrorKind::Conflict) if settings differ under [`OnExisting::Fail`];
    /// [`Store`](crate::ErrorKind::Store) and [`Unanswered`](crate::ErrorKind::Unanswered).
    pub async fn open(self, store: impl Into<Store>) -> Result<TaskQueue, Error> {
        let store = store.into();
        self.open_parts(store.tasks().await?, store.rates().await?).await
    }

    /// As [`open`](Self::open), with your own task store and the store of the rate.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub async fn open_parts(
        mut self,
        tasks: Arc<dyn TaskStore>,
        pace: Arc<dyn SharedState>,
    ) -> Result<TaskQueue, Error> {
        self.pace.as_ref().map_or(Ok(()), RateLimit::check)?;
        let name = QueueName::new(self.name.clone())?;
        for (kind, own) in std::mem::take(&mut self.kinds) {
            self.settings.kinds.insert(Kind::new(kind)?, own);
        }
        let host = self.host.take();
        let codec = std::mem::take(&mut self.codec);
        let mut queue = TaskQueue::handle(name, tasks, pace, self.timeout, host, codec)?;
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

    /// Retention is one setting: unset parts are read from the store.
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
