//! The connection of a waiting process to the store. It sees every reply on the way to the shard,
//! and prints when replies stop.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use interval_queue::{
    Micros, SharedState, StateError,
    contract::{Command, Memory, QueueName, Reply, Ticket, WaitReason},
};
use tokio::{sync::watch, time::Instant};

use crate::{
    clock::now,
    exit::{Failure, report},
    outage::StoreOutages,
};

/// The state of the connection to the store, for the one shard of this process.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionState {
    observation: Arc<Mutex<Observation>>,
    outages: Arc<Mutex<StoreOutages>>,
    paused: watch::Sender<bool>,
    sink: LineSink,
}

/// The destination of printed lines.
#[derive(Clone)]
struct LineSink(Arc<dyn Fn(&str) + Send + Sync>);

impl fmt::Debug for LineSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LineSink")
    }
}

#[derive(Debug, Default)]
struct Observation {
    stage: Stage,
    /// The last error and the start of the outage. `None`: the store answers.
    outage: Option<(String, Instant)>,
    /// The last record from the store, and when it arrived.
    memory: Option<(Memory, Instant)>,
    wait: Option<WaitReason>,
    /// When this process starts something next, if every earlier ticket is used.
    next: Option<Instant>,
}

/// The stage of this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Waiting for a slot.
    #[default]
    Waiting,
    /// CMD runs.
    Running,
    /// Leaving: the state of the store no longer matters.
    Leaving,
}

impl ConnectionState {
    /// Creates the state of the connection to the store at `url`. Lines go to stderr.
    pub(crate) fn new(url: &str) -> Self {
        Self::with_sink(url, report)
    }

    /// As [`new`](Self::new), but lines go to `sink`.
    pub(crate) fn with_sink(url: &str, sink: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self {
            observation: Arc::default(),
            outages: Arc::new(Mutex::new(StoreOutages::of(url))),
            paused: watch::Sender::new(false),
            sink: LineSink(Arc::new(sink)),
        }
    }

    /// Wraps a store to observe its replies.
    pub(crate) fn watch(&self, state: Arc<dyn SharedState>) -> Watched {
        Watched { state, connection: self.clone() }
    }

    pub(crate) fn enter(&self, stage: Stage) {
        self.observation().stage = stage;
    }

    /// Records a failed command. An outage is printed once, see [`StoreOutages`].
    pub(crate) fn failed(&self, failure: &Failure) {
        let mut outages = self.outages();
        let mut observation = self.observation();
        let since = observation.outage.take().map_or_else(now, |(_, since)| since);
        observation.outage = Some((outages.describe(failure), since));
        let consequence = match observation.stage {
            Stage::Waiting => "waiting",
            Stage::Running => "the command continues; its permit is free again when its lease ends",
            Stage::Leaving => return,
        };
        drop(observation);
        if let Some(line) = outages.failed(failure, since) {
            (self.sink.0)(&format!("{line}; {consequence}"));
        }
    }

    /// Waits until the queue is paused.
    pub(crate) async fn paused(&self) {
        // The sender is in `self`.
        let _ = self.paused.subscribe().wait_for(|paused| *paused).await;
    }

    /// Prints when pauses begin and end.
    pub(crate) async fn report_pauses<T>(&self) -> T {
        let mut paused = self.paused.subscribe();
        for (is_paused, text) in
            [(true, "the queue is paused; waiting"), (false, "the queue is resumed")].into_iter().cycle()
        {
            // The sender is in `self`.
            let _ = paused.wait_for(|paused| *paused == is_paused).await;
            (self.sink.0)(text);
        }
        std::future::pending().await
    }

    /// The obstacle to the next start, or the time until its slot. `None`: unknown.
    pub(crate) fn expectation(&self) -> Option<Expectation> {
        let observation = self.observation();
        match (&observation.outage, &observation.wait, observation.next) {
            (Some(_), ..) => Some(Expectation::StateLost),
            (None, Some(WaitReason::Paused), _) => Some(Expectation::Paused),
            (None, Some(WaitReason::AtMaxRunning), _) => Some(Expectation::AtMaxRunning),
            (None, _, next) => next.map(|next| Expectation::In(next.saturating_duration_since(now()))),
        }
    }

    /// The last record, advanced to now. `None` before the first reply.
    pub(crate) fn memory(&self) -> Option<Memory> {
        let (memory, received) = self.observation().memory?;
        let since = Micros::from_duration(now().saturating_duration_since(received));
        Some(Memory { at: memory.at + since, ..memory })
    }

    fn answered(&self, requested: Option<Ticket>, reply: &Reply) {
        let mut observation = self.observation();
        observation.memory = match reply {
            Reply::Stepped(stepped) => Some((stepped.memory, now())),
            Reply::Changed(changed) => Some((changed.memory, now())),
            _ => observation.memory,
        };
        observation.outage = None;
        let is_leaving = observation.stage == Stage::Leaving;
        if let Reply::Stepped(stepped) = reply {
            self.paused.send_replace(stepped.memory.paused);
            observation.wait = stepped.wait.as_ref().map(|wait| wait.reason.clone());
            let first = requested.or(stepped.taken.map(|taken| taken.first));
            let granted = stepped.grants.first().map(|grant| grant.slot - stepped.memory.at);
            let start_in = granted.or_else(|| first.map(|ticket| stepped.memory.slot_in(ticket)));
            observation.next = start_in.map(|start_in| now() + start_in.to_duration());
        }
        drop(observation);
        if let Some(line) = self.outages().answered().filter(|_| !is_leaving) {
            (self.sink.0)(&line);
        }
    }

    fn outages(&self) -> MutexGuard<'_, StoreOutages> {
        self.outages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn observation(&self) -> MutexGuard<'_, Observation> {
        self.observation.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The next event for a waiting process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expectation {
    /// Its slot is due in this time.
    In(Duration),
    Paused,
    AtMaxRunning,
    StateLost,
}

/// The reason why CMD has not started.
impl fmt::Display for ConnectionState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let observation = self.observation();
        match (&observation.outage, &observation.wait) {
            (Some((outage, _)), _) => f.write_str(outage),
            (None, Some(WaitReason::Paused)) => f.write_str("the queue is paused"),
            (None, Some(WaitReason::AtMaxRunning)) => f.write_str("the limit of running jobs is reached"),
            (None, Some(WaitReason::Behind { shard, ticket })) => {
                write!(f, "ticket {ticket} of shard {shard} is ahead of it")
            }
            (None, _) => f.write_str("its slot has not come"),
        }
    }
}

/// A store whose replies a [`ConnectionState`] observes.
#[derive(Debug)]
pub(crate) struct Watched {
    state: Arc<dyn SharedState>,
    connection: ConnectionState,
}

#[async_trait]
impl SharedState for Watched {
    async fn apply(&self, queue: &QueueName, command: Command) -> Result<Reply, StateError> {
        let requested = match &command {
            Command::Step(step) => step.ask.first().map(|ask| ask.ticket),
            _ => None,
        };
        let reply = self.state.apply(queue, command).await?;
        self.connection.answered(requested, &reply);
        Ok(reply)
    }
}
