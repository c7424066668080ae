//! The connection of a waiting process to the store: what its shard last learned, and the lines
//! about outages.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use interval_queue::{Connection, IntervalQueue, WaitReason};
use tokio::{sync::watch, time::Instant};

use crate::{
    clock::now,
    exit::{Failure, report},
    outage::StoreOutages,
};

/// A process has one shard.
#[derive(Clone)]
pub(crate) struct ConnectionState(Arc<Inner>);

struct Inner {
    observation: Mutex<Observation>,
    /// Set when the queue is open.
    seen: OnceLock<watch::Receiver<Connection>>,
    /// The destination of printed lines.
    sink: Box<dyn Fn(&str) + Send + Sync>,
}

struct Observation {
    stage: Stage,
    /// The last error and the start of the outage. `None`: the store answers.
    outage: Option<(String, Instant)>,
    outages: StoreOutages,
}

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
    /// Lines go to stderr.
    pub(crate) fn new(url: &str) -> Self {
        Self::with_sink(url, report)
    }

    /// Lines go to `sink`.
    pub(crate) fn with_sink(url: &str, sink: impl Fn(&str) + Send + Sync + 'static) -> Self {
        let observation = Observation { stage: Stage::Waiting, outage: None, outages: StoreOutages::of(url) };
        let (observation, sink) = (Mutex::new(observation), Box::new(sink));
        Self(Arc::new(Inner { observation, seen: OnceLock::new(), sink }))
    }

    pub(crate) fn observe(&self, queue: &IntervalQueue) {
        let mut seen = queue.connection();
        if self.0.seen.set(seen.clone()).is_err() {
            return;
        }
        self.refresh();
        let connection = self.clone();
        tokio::spawn(async move {
            while seen.changed().await.is_ok() {
                connection.refresh();
            }
        });
    }

    /// Prints a line if one is due.
    pub(crate) fn refresh(&self) {
        let Some(failing) = self.seen().map(|seen| seen.failing.clone()) else { return };
        match failing {
            Some(failing) => self.failed(&failing.error.into()),
            None => self.answered(),
        }
    }

    pub(crate) fn enter(&self, stage: Stage) {
        self.observation().stage = stage;
    }

    /// An outage is printed once, see [`StoreOutages`].
    pub(crate) fn failed(&self, failure: &Failure) {
        let mut observation = self.observation();
        let since = observation.outage.take().map_or_else(now, |(_, since)| since);
        observation.outage = Some((observation.outages.describe(failure), since));
        let consequence = match observation.stage {
            Stage::Waiting => "waiting",
            Stage::Running => "the command continues; its permit is free again when its lease ends",
            Stage::Leaving => return,
        };
        if let Some(line) = observation.outages.failed(failure, since) {
            drop(observation);
            (self.0.sink)(&format!("{line}; {consequence}"));
        }
    }

    fn answered(&self) {
        let mut observation = self.observation();
        observation.outage = None;
        let is_leaving = observation.stage == Stage::Leaving;
        if let Some(line) = observation.outages.answered().filter(|_| !is_leaving) {
            drop(observation);
            (self.0.sink)(&line);
        }
    }

    /// The last reply of the store. `None`: the queue is not open.
    fn seen(&self) -> Option<watch::Ref<'_, Connection>> {
        self.0.seen.get().map(watch::Receiver::borrow)
    }

    pub(crate) async fn paused(&self, is_paused: bool) {
        if let Some(mut seen) = self.0.seen.get().cloned()
            && seen.wait_for(|seen| seen.paused == is_paused).await.is_ok()
        {
            return;
        }
        // The queue is closed or was never open.
        std::future::pending().await
    }

    pub(crate) async fn report_pauses<T>(&self) -> T {
        loop {
            self.paused(true).await;
            (self.0.sink)("the queue is paused; waiting");
            self.paused(false).await;
            (self.0.sink)("the queue is resumed");
        }
    }

    /// `None`: unknown.
    pub(crate) fn expectation(&self) -> Option<Expectation> {
        if self.observation().outage.is_some() {
            return Some(Expectation::StateLost);
        }
        let seen = self.seen()?;
        match &seen.wait {
            Some(WaitReason::Paused) => Some(Expectation::Paused),
            Some(WaitReason::AtMaxRunning) => Some(Expectation::AtMaxRunning),
            _ => {
                let next = Instant::from_std(seen.next_start?);
                Some(Expectation::In(next.saturating_duration_since(now())))
            }
        }
    }

    fn observation(&self) -> MutexGuard<'_, Observation> {
        self.0.observation.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for ConnectionState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ConnectionState")
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expectation {
    /// Its slot is due in this time.
    In(Duration),
    Paused,
    AtMaxRunning,
    StateLost,
}

/// Prints why CMD has not started.
impl fmt::Display for ConnectionState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((outage, _)) = &self.observation().outage {
            return f.write_str(outage);
        }
        match self.seen().and_then(|seen| seen.wait.clone()) {
            Some(WaitReason::Paused) => f.write_str("the queue is paused"),
            Some(WaitReason::AtMaxRunning) => f.write_str("the limit of running jobs is reached"),
            Some(WaitReason::Behind { shard, ticket }) => {
                write!(f, "ticket {ticket} of shard {shard} is ahead of it")
            }
            _ => f.write_str("its slot has not come"),
        }
    }
}
