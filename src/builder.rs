//! How a queue is opened.

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
    line::{Identity, Kept, Line, SpaceBy, WhenStateIsLost},
    pace::Pace,
    shard::{ErrorHook, Room, Shard},
    store::{StateSource, connect},
    telemetry::{MetricsLabel, Telemetry},
    wake_ups::WakeUps,
};

/// The default lease is three intervals, within these bounds.
const DEFAULT_LEASE: (Micros, Micros) = (Micros::from_millis(5_000), Micros::from_millis(300_000));

/// The longest of [`Builder::linger`].
const MAX_LINGER: Duration = Duration::from_secs(3600);
/// The default of [`Builder::linger`].
const DEFAULT_LINGER: Duration = Duration::from_millis(100);

/// Settings for opening a queue; made by [`IntervalQueue::builder`]. Everything is checked by the last step,
/// [`open`](Builder::open) or [`connect`](Builder::connect).
#[derive(Debug)]
#[must_use]
pub struct Builder {
    name: String,
    pace: Pace,
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
    /// Settings for opening the queue of that name: 1 to 200 bytes of printable text.
    pub fn builder(name: impl Into<String>) -> Builder {
        Builder {
            name: name.into(),
            pace: Pace::default(),
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
    /// How many jobs of all processes may run at once, at least 1. Default: what is stored; on a new queue
    /// any number.
    pub fn max_running(mut self, limit: u32) -> Self {
        self.max_running = MaxRunning::AtMost(limit);
        self
    }

    /// Any number of jobs may run at once, whatever is stored.
    pub fn unlimited_running(mut self) -> Self {
        self.max_running = MaxRunning::Unlimited;
        self
    }

    /// For how long this shard counts as alive after it last asked: 100 ms to one hour. Default: three
    /// intervals, at least 5 s and at most 5 min. A killed process costs its slots for at most that long; a
    /// living one asks at least twice per lease while jobs wait.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = Some(lease);
        self
    }

    /// How long a job may wait for its ticket, to travel with a command that its shard sends anyway. Default:
    /// 100 ms, which nearly halves the commands of a busy queue. Zero: no job waits. Nor does any where the
    /// interval is longer than this, or with nothing in front of it in its shard. At most one hour.
    pub fn linger(mut self, linger: Duration) -> Self {
        self.linger = linger;
        self
    }

    /// How many jobs of this shard may wait for their start, at least 1. Where there is no room,
    /// [`add`](IntervalQueue::add) and all like it wait until a job has started or was cancelled, in the
    /// order of the calls, and [`try_add`](crate::JobBuilder::try_add) refuses. The next attempt of a job that is
    /// tried again needs no room. Default: any number.
    pub fn max_waiting(mut self, most: usize) -> Self {
        self.max_waiting = Some(most);
        self
    }

    /// How many tickets this shard holds ahead of their slots, at least 1: the jobs behind them wait without
    /// one, so that a job that is urgent to another shard comes behind so many of this one, however many wait
    /// here. A job of a higher priority than one that has a ticket takes another one. A fast queue needs some
    /// for its full rate, at least as many as a round trip has intervals, and two. Default: any number.
    pub fn tickets_ahead(mut self, most: usize) -> Self {
        self.tickets_ahead = Some(most);
        self
    }

    /// What happens to a ticket whose slot this shard missed. Default: [`Late::NextSlot`].
    pub fn late(mut self, late: Late) -> Self {
        self.late = late;
        self
    }

    /// What keeps the interval. Default: [`SpaceBy::Slots`]. All shards of a queue should say the same.
    pub fn space_by(mut self, space_by: SpaceBy) -> Self {
        self.space_by = space_by;
        self
    }

    /// What this shard does while the state cannot be reached. Default: [`WhenStateIsLost::Wait`]: nothing
    /// starts.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use interval_queue::{IntervalQueue, WhenStateIsLost};
    ///
    /// // At most four processes: each goes on at a quarter of the rate once the state is gone for half a minute.
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

    /// What a person sees as the name of this shard in `status`. Default: the process id.
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// What the label `queue` of the [metrics](crate::telemetry) of this queue says. Default: its name.
    #[cfg(feature = "metrics")]
    pub fn metrics_label(mut self, label: MetricsLabel) -> Self {
        self.metrics_label = label;
        self
    }

    /// What happens if the queue is there with another interval or running limit. Default:
    /// [`OnExisting::Keep`]: what is stored holds for this shard, too. That is logged as a warning, and
    /// [`overruled_settings`](IntervalQueue::overruled_settings) and [`Status::overruled`](crate::Status) tell
    /// what was asked for. With [`OnExisting::Replace`] the settings of this builder are the new truth for
    /// all shards, which is logged, too.
    pub fn on_existing(mut self, on_existing: OnExisting) -> Self {
        self.on_existing = on_existing;
        self
    }

    /// Whether this shard, when it waits in a pause or for a far slot, hears by itself that another process
    /// resumed the queue or changed its settings. Default: [`WakeUps::On`].
    ///
    /// The memory, Redis and PostgreSQL tell, a JSON file with the feature `json-file-watch`; elsewhere the
    /// shard looks every two seconds or so. A Redis user with an ACL needs the right to the channels of the
    /// queues; without, the shard looks, too.
    pub fn wake_ups(mut self, wake_ups: WakeUps) -> Self {
        self.wake_ups = wake_ups;
        self
    }

    /// Whether this shard brings the queue back, as it remembers it, if its record is gone. Default: true, so that a
    /// record that was lost costs an interval. With false a record that is gone was deleted: jobs wait until the
    /// queue is opened anew, or are cancelled. Stored tasks wait for their slots so.
    pub fn brings_back(mut self, brings_back: bool) -> Self {
        self.brings_back = brings_back;
        self
    }

    /// Is called with every failure of the shared state, and with [`TooLate`](crate::ErrorKind::TooLate) for
    /// a job that is refused after its `add` has returned, on a thread where it may block. Default: both are
    /// only logged. Nothing has to be done about a failure: jobs keep waiting and the queue resumes by itself.
    pub fn on_error(mut self, hook: impl Fn(&Error) + Send + Sync + 'static) -> Self {
        self.on_error = Some(ErrorHook(Arc::new(hook)));
        self
    }

    /// Where the shard runs. Default: the tokio runtime in which the queue is opened. For simulations.
    pub fn host(mut self, host: impl Host) -> Self {
        self.host = Some(Arc::new(host));
        self
    }

    /// Opens the queue on the state at `url`; see [`connect`](crate::connect) for what it can be.
    ///
    /// # Errors
    ///
    /// As [`open`](Builder::open), and for a URL that cannot be used.
    pub async fn connect(self, url: &str) -> Result<IntervalQueue, Error> {
        self.open_on(connect(url).await?.pace().await?).await
    }

    /// Opens the queue on a [`Store`](crate::Store) or a state: one command, which creates it or meets what is there.
    ///
    /// # Errors
    ///
    /// [`Invalid`](crate::ErrorKind::Invalid) for a setting out of its bounds; then nothing is stored.
    /// [`State`](crate::ErrorKind::State) if the state cannot be reached, which is
    /// [tried again](IntervalQueue::pause) for two seconds; if the queue is there with other settings and
    /// [`OnExisting::Fail`] was asked for, or if it is not there and no interval was given.
    ///
    /// # Panics
    ///
    /// Without a [host](Builder::host) of its own: outside a tokio runtime, or in one without its drivers
    /// (`enable_all`). The queue lives in that runtime; if it ends, the shard goes on in the next one that
    /// uses it.
    ///
    /// # Cancel safety
    ///
    /// Dropped, it has opened the queue or has not; trying again is safe.
    pub async fn open(self, on: impl StateSource) -> Result<IntervalQueue, Error> {
        self.open_on(on.into_state().await?).await
    }

    /// The name as it was given.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// What makes pace and running limit the truth for all shards of a queue that is open.
    pub(crate) fn replacing(&self) -> Result<Change, InvalidInput> {
        let rates = if self.pace.is_empty() { None } else { Some(self.pace.rates()?) };
        Ok(Change::Open { rates, max_running: self.max_running, on_existing: OnExisting::Replace })
    }

    /// The same on a state that others use, too.
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
        let room = self.max_waiting.map(|most| match most {
            1..=Semaphore::MAX_PERMITS => Ok(Room::new(most)),
            _ => Err(InvalidInput::new(format!(
                "max_waiting {most} is out of range: give 1 to {}, or leave it out",
                Semaphore::MAX_PERMITS
            ))),
        });
        let room = room.transpose()?;
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
        line.contact.brings_back = self.brings_back;
        let telemetry = Telemetry::new(queue, line.identity.shard.clone(), self.metrics_label);
        let mut shard = Shard::new(telemetry, state, host, driver::of, Kept::new(line));
        (shard.on_error, shard.room, shard.wake_ups) = (self.on_error, room, self.wake_ups);

        let rates = pace.map(|(rates, implied)| {
            implied.into_iter().for_each(|(rate, by)| shard.telemetry.implied(rate, by));
            rates
        });
        let open = Change::Open { rates, max_running: self.max_running, on_existing: self.on_existing };
        let (reply, sent) = shard.insist(Command::Change(open, Default::default())).await?;
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
