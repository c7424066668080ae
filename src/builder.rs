//! Opens a queue: settings, their defaults and bounds.

mod rates;

use std::{sync::Arc, time::Duration};

use interval_queue_contract::{
    Change, Command, InvalidInput, Label, Late, MaxRunning, Micros, OnExisting, QueueName, Settings, ShardId,
    SharedState, check_lease,
};
use tokio::sync::Semaphore;

use crate::{
    IntervalQueue, driver,
    error::Error,
    host::{Host, Tokio},
    line::{DrivenLine, Identity, Line, SpaceBy, WhenStateIsLost},
    pace::RateLimit,
    shard::{Capacity, ErrorHook, Shard},
    store::{StateSource, connect},
    telemetry::{MetricsLabel, Telemetry},
    wake_ups::WakeUps,
};

/// The default lease is three intervals, within these bounds.
const DEFAULT_LEASE: (Micros, Micros) = (Micros::from_millis(5_000), Micros::from_millis(300_000));

const MAX_LINGER: Duration = Duration::from_secs(3600);
const DEFAULT_LINGER: Duration = Duration::from_millis(100);

/// Settings for opening a queue; made by [`IntervalQueue::builder`]. The last call,
/// [`open`](Builder::open) or [`connect`](Builder::connect), checks them.
#[derive(Debug)]
#[must_use]
pub struct Builder {
    name: String,
    pace: RateLimit,
    max_running: MaxRunning,
    lease: Option<Duration>,
    linger: Duration,
    max_waiting: Option<usize>,
    tickets_ahead: Option<usize>,
    late: Late,
    space_by: SpaceBy,
    when_lost: WhenStateIsLost,
    label: Option<String>,
    metrics_label: MetricsLabel,
    on_existing: OnExisting,
    wake_ups: WakeUps,
    brings_back: bool,
    on_error: Option<ErrorHook>,
    host: Option<Arc<dyn Host>>,
}

impl IntervalQueue {
    /// Settings for opening the queue with this name: 1 to 200 bytes of printable text.
    pub fn builder(name: impl Into<String>) -> Builder {
        Builder {
            name: name.into(),
            pace: RateLimit::default(),
            max_running: MaxRunning::Keep,
            lease: None,
            linger: DEFAULT_LINGER,
            max_waiting: None,
            tickets_ahead: None,
            late: Late::NextSlot,
            space_by: SpaceBy::Slots,
            when_lost: WhenStateIsLost::Wait,
            label: None,
            metrics_label: MetricsLabel::default(),
            on_existing: OnExisting::Keep,
            wake_ups: WakeUps::On,
            brings_back: true,
            on_error: None,
            host: None,
        }
    }
}

impl Builder {
    /// Maximum running jobs of all processes, at least 1. Default: the stored limit; unlimited on a
    /// new queue.
    pub fn max_running(mut self, limit: u32) -> Self {
        self.max_running = MaxRunning::AtMost(limit);
        self
    }

    /// Requests unlimited running jobs. [`on_existing`](Builder::on_existing) decides if a stored
    /// limit stays.
    pub fn unlimited_running(mut self) -> Self {
        self.max_running = MaxRunning::Unlimited;
        self
    }

    /// How long this shard counts as alive after a poll: 100 ms to one hour. Default: three
    /// intervals, but 5 s to 5 min. A killed process wastes slots for at most this long. A live
    /// shard with waiting jobs polls at least twice per lease.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = Some(lease);
        self
    }

    /// How long a job may wait for its ticket, to share a command that its shard sends anyway: 0 to
    /// one hour. Default: 100 ms, which nearly halves the commands of a busy queue. A job does not
    /// wait if the interval is longer, if its shard has no job ahead of it, or if it has a priority
    /// above 0 or a latest start.
    pub fn linger(mut self, linger: Duration) -> Self {
        self.linger = linger;
        self
    }

    /// Maximum waiting jobs of this shard, at least 1. Default: unlimited. At the limit,
    /// [`add`](IntervalQueue::add) and similar calls wait, in call order, until a job has started
    /// or was cancelled; [`try_add`](crate::JobBuilder::try_add) fails. Retries need no capacity.
    pub fn max_waiting(mut self, most: usize) -> Self {
        self.max_waiting = Some(most);
        self
    }

    /// Maximum tickets that this shard holds ahead of their slots, at least 1. Default: unlimited.
    /// Further jobs wait without a ticket, so another shard's urgent job waits for at most this
    /// many jobs of this shard. A job with a higher priority than a ticket holder takes an extra
    /// ticket. For its full rate, a fast queue needs a ticket per interval of a round trip, plus
    /// two.
    pub fn tickets_ahead(mut self, most: usize) -> Self {
        self.tickets_ahead = Some(most);
        self
    }

    /// The handling of a ticket whose slot this shard missed. Default: [`Late::NextSlot`].
    pub fn late(mut self, late: Late) -> Self {
        self.late = late;
        self
    }

    /// Whether slots or actual starts keep the interval. Default: [`SpaceBy::Slots`]. Use one value
    /// for all shards of a queue.
    pub fn space_by(mut self, space_by: SpaceBy) -> Self {
        self.space_by = space_by;
        self
    }

    /// The behaviour of this shard while the store is unreachable. Default:
    /// [`WhenStateIsLost::Wait`], nothing starts.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use interval_queue::{IntervalQueue, WhenStateIsLost};
    ///
    /// // At most four processes: each runs at a quarter of the rate after 30 s without the store.
    /// let alone = WhenStateIsLost::RunAlone { after: Duration::from_secs(30), shards: 4 };
    /// let queue = IntervalQueue::builder("mail")
    ///     .interval(Duration::from_millis(100))
    ///     .when_state_is_lost(alone)
    ///     .connect("memory:")
    ///     .await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn when_state_is_lost(mut self, choice: WhenStateIsLost) -> Self {
        self.when_lost = choice;
        self
    }

    /// This shard's name in `status`, for people. Default: the process id.
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// The label `queue` of this queue's [metrics](crate::telemetry). Default: its name.
    #[cfg(feature = "metrics")]
    pub fn metrics_label(mut self, label: MetricsLabel) -> Self {
        self.metrics_label = label;
        self
    }

    /// Which settings hold if the queue exists with another interval or running limit. Default:
    /// [`OnExisting::Keep`]: the stored ones, with a warning in the log;
    /// [`overruled_settings`](IntervalQueue::overruled_settings) and
    /// [`Status::overruled`](crate::Status) return this builder's. [`OnExisting::Replace`] stores
    /// this builder's for all shards, and logs it.
    pub fn on_existing(mut self, on_existing: OnExisting) -> Self {
        self.on_existing = on_existing;
        self
    }

    /// Whether changes by other processes wake this shard in a pause or before a distant slot.
    /// Default: [`WakeUps::On`]. If a Redis ACL denies the queues' channels, the shard reads the
    /// record about every two seconds.
    pub fn wake_ups(mut self, wake_ups: WakeUps) -> Self {
        self.wake_ups = wake_ups;
        self
    }

    /// Whether this shard restores a lost record from its memory. Default: true; a loss costs one
    /// interval. With false, a missing record counts as deleted: jobs wait until the queue is
    /// opened again, or are cancelled. Workers of stored tasks use false.
    pub fn brings_back(mut self, brings_back: bool) -> Self {
        self.brings_back = brings_back;
        self
    }

    /// A hook for background failures of the store, and for jobs rejected with
    /// [`TooLate`](crate::ErrorKind::TooLate) after `add` has returned. It may block. Default: both
    /// are only logged. No reaction is needed: jobs keep waiting, and the queue resumes.
    pub fn on_error(mut self, hook: impl Fn(&Error) + Send + Sync + 'static) -> Self {
        self.on_error = Some(ErrorHook(Arc::new(hook)));
        self
    }

    /// The runtime of the shard, for simulations. Default: the tokio runtime that opens the queue.
    pub fn host(mut self, host: impl Host) -> Self {
        self.host = Some(Arc::new(host));
        self
    }

    /// Opens the queue on the store at `url`; see [`connect`](crate::connect) for URLs.
    ///
    /// # Errors
    ///
    /// As [`open`](Builder::open), and for a URL that cannot be used.
    pub async fn connect(self, url: &str) -> Result<IntervalQueue, Error> {
        self.open_on(connect(url).await?.rates().await?).await
    }

    /// Opens the queue on a [`Store`](crate::Store) or a backend with one command, which creates
    /// the queue or reads the existing one.
    ///
    /// # Errors
    ///
    /// - [`Invalid`](crate::ErrorKind::Invalid): a setting is out of bounds. Nothing is stored.
    /// - [`State`](crate::ErrorKind::State): the store is unreachable after two seconds of
    ///   [retries](IntervalQueue::pause); the queue has other settings and [`OnExisting::Fail`] is
    ///   set; or it does not exist and no interval is set.
    ///
    /// # Panics
    ///
    /// Without a [host](Builder::host): outside a tokio runtime, or in one without its drivers
    /// (`enable_all`). The shard runs in that runtime. After the runtime ends, the shard moves to
    /// the next one that uses the queue.
    ///
    /// # Cancel safety
    ///
    /// If dropped, the queue may have been opened; retrying is safe.
    pub async fn open(self, on: impl StateSource) -> Result<IntervalQueue, Error> {
        self.open_on(on.into_state().await?).await
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn replacing(&self) -> Result<Change, InvalidInput> {
        let rates = if self.pace.is_empty() { None } else { Some(self.pace.rates()?) };
        Ok(Change::Open { rates, max_running: self.max_running, on_existing: OnExisting::Replace })
    }

    /// As [`open`](Self::open), on a shared backend.
    pub(crate) async fn open_on(self, state: Arc<dyn SharedState>) -> Result<IntervalQueue, Error> {
        let queue = QueueName::new(self.name)?;
        let lease = self.lease.map(Micros::from_duration);
        lease.map_or(Ok(()), check_lease)?;
        if self.linger > MAX_LINGER {
            let text = format!("linger {:?} is out of range: give 0 to {MAX_LINGER:?}", self.linger);
            return Err(InvalidInput::new(text).into());
        }
        self.when_lost.check()?;
        if self.tickets_ahead == Some(0) {
            let text = "tickets_ahead 0 is out of range: give at least 1, or leave it out";
            return Err(InvalidInput::new(text).into());
        }
        let capacity = self.max_waiting.map(|most| match most {
            1..=Semaphore::MAX_PERMITS => Ok(Capacity::new(most)),
            _ => Err(InvalidInput::new(format!(
                "max_waiting {most} is out of range: give 1 to {}, or leave it out",
                Semaphore::MAX_PERMITS
            ))),
        });
        let capacity = capacity.transpose()?;
        let label = self.label.unwrap_or_else(|| format!("pid {}", std::process::id()));
        let host = self.host.unwrap_or_else(|| Arc::new(Tokio::current()));
        let identity = Identity {
            shard: ShardId::new(format!("{:016x}", host.random()))?,
            label: Label::new(label)?,
            lease: lease.unwrap_or(DEFAULT_LEASE.0),
            linger: self.linger,
            late: self.late,
            space_by: self.space_by,
            when_lost: self.when_lost,
        };
        let pace = if self.pace.is_empty() { None } else { Some(self.pace.resolve()?) };
        let mut line = Line::new(identity, host.now());
        line.backlog.most_ahead = self.tickets_ahead.unwrap_or(usize::MAX);
        line.connection.brings_back = self.brings_back;
        let telemetry = Telemetry::new(queue, line.identity.shard.clone(), self.metrics_label);
        let mut shard = Shard::new(telemetry, state, host, driver::of, DrivenLine::new(line));
        (shard.on_error, shard.capacity, shard.wake_ups) = (self.on_error, capacity, self.wake_ups);

        let rates = pace.map(|(rates, implied)| {
            implied.into_iter().for_each(|(rate, by)| shard.telemetry.implied(rate, by));
            rates
        });
        let open = Change::Open { rates, max_running: self.max_running, on_existing: self.on_existing };
        let (reply, sent) = shard.command_with_retries(Command::Change(open, Default::default())).await?;
        let changed = reply.changed()?;
        let received = shard.host.now();
        let settings = changed.memory.settings();
        if let Some(before) = changed.before.filter(|before| *before != settings) {
            shard.telemetry.replaced(before, settings);
        }
        let max_running = self.max_running.over(settings.max_running);
        let asked = Settings { rates: rates.unwrap_or(settings.rates), max_running };
        if asked != settings {
            shard.telemetry.kept(asked, settings);
            shard.overruled = Some(asked);
        }

        shard.lead().observe_round_trip(received - sent);
        {
            let mut line = shard.line();
            line.learn(&changed, received);
            line.clock.observe(changed.memory.at, sent, received);
            let three = changed.memory.meters.longest() * 3;
            line.identity.lease = lease.unwrap_or(three.clamp(DEFAULT_LEASE.0, DEFAULT_LEASE.1));
        }
        Ok(IntervalQueue { shard: Arc::new(shard) })
    }
}
