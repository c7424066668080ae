//! What a process that waits for slots knows of the store: it sees every reply on its way to the shard, and
//! says when they stop coming.

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
    exit::{Failure, say},
    outage::StoreOutages,
};

/// The store, as seen by the one shard of this process.
#[derive(Clone, Debug)]
pub(crate) struct Contact {
    news: Arc<Mutex<News>>,
    outages: Arc<Mutex<StoreOutages>>,
    paused: watch::Sender<bool>,
    voice: Voice,
}

/// Where lines go.
#[derive(Clone)]
struct Voice(Arc<dyn Fn(&str) + Send + Sync>);

impl fmt::Debug for Voice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Voice")
    }
}

#[derive(Debug, Default)]
struct News {
    stage: Stage,
    /// How the store failed last, and since when it fails; none while it answers.
    outage: Option<(String, Instant)>,
    /// The record as the store told it last, and when.
    memory: Option<(Memory, Instant)>,
    wait: Option<WaitReason>,
    /// When this process starts something next if every ticket before its own is used.
    next: Option<Instant>,
}

/// What this process is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Stage {
    /// It waits for its slot.
    #[default]
    Waiting,
    /// CMD runs.
    Running,
    /// It leaves; nobody wants to hear of the store any more.
    Leaving,
}

impl Contact {
    /// With the store at this URL.
    pub(crate) fn new(url: &str) -> Self {
        Self::speaking(url, say)
    }

    /// One whose lines go elsewhere than straight to stderr.
    pub(crate) fn speaking(url: &str, voice: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self {
            news: Arc::default(),
            outages: Arc::new(Mutex::new(StoreOutages::of(url))),
            paused: watch::Sender::new(false),
            voice: Voice(Arc::new(voice)),
        }
    }

    /// The store, watched.
    pub(crate) fn watch(&self, state: Arc<dyn SharedState>) -> Watched {
        Watched { state, contact: self.clone() }
    }

    pub(crate) fn enter(&self, stage: Stage) {
        self.news().stage = stage;
    }

    /// Takes in that the store failed. An outage is printed once, see [`StoreOutages`].
    pub(crate) fn failed(&self, failure: &Failure) {
        let mut outages = self.outages();
        let mut news = self.news();
        let since = news.outage.take().map_or_else(now, |(_, since)| since);
        news.outage = Some((outages.describe(failure), since));
        let then = match news.stage {
            Stage::Waiting => "waiting",
            Stage::Running => "the command continues; its permit is free again when its lease ends",
            Stage::Leaving => return,
        };
        drop(news);
        if let Some(line) = outages.failed(failure, since) {
            (self.voice.0)(&format!("{line}; {then}"));
        }
    }

    /// Waits until the queue is paused.
    pub(crate) async fn paused(&self) {
        // The sender is in `self`.
        let _ = self.paused.subscribe().wait_for(|paused| *paused).await;
    }

    /// Says when pauses begin and end.
    pub(crate) async fn tell_pauses<T>(&self) -> T {
        let mut paused = self.paused.subscribe();
        for (is_paused, text) in
            [(true, "the queue is paused; waiting"), (false, "the queue is resumed")].into_iter().cycle()
        {
            // The sender is in `self`.
            let _ = paused.wait_for(|paused| *paused == is_paused).await;
            (self.voice.0)(text);
        }
        std::future::pending().await
    }

    /// What is waited for, in few words: the next slot, or what is in the way of it. None if that is not
    /// known.
    pub(crate) fn outlook(&self) -> Option<Expectation> {
        let news = self.news();
        match (&news.outage, &news.wait, news.next) {
            (Some(_), ..) => Some(Expectation::StateLost),
            (None, Some(WaitReason::Paused), _) => Some(Expectation::Paused),
            (None, Some(WaitReason::AtMaxRunning), _) => Some(Expectation::AtMaxRunning),
            (None, _, next) => next.map(|next| Expectation::In(next.saturating_duration_since(now()))),
        }
    }

    /// The record as it was told last, moved on to now. None before the store has answered.
    pub(crate) fn memory(&self) -> Option<Memory> {
        let (memory, heard) = self.news().memory?;
        let since = Micros::from_duration(now().saturating_duration_since(heard));
        Some(Memory { at: memory.at + since, ..memory })
    }

    fn answered(&self, asked: Option<Ticket>, reply: &Reply) {
        let mut news = self.news();
        news.memory = match reply {
            Reply::Stepped(stepped) => Some((stepped.memory, now())),
            Reply::Changed(changed) => Some((changed.memory, now())),
            _ => news.memory,
        };
        news.outage = None;
        let is_leaving = news.stage == Stage::Leaving;
        if let Reply::Stepped(stepped) = reply {
            self.paused.send_replace(stepped.memory.paused);
            news.wait = stepped.wait.as_ref().map(|wait| wait.reason.clone());
            let first = asked.or(stepped.taken.map(|taken| taken.first));
            let granted = stepped.grants.first().map(|grant| grant.slot - stepped.memory.at);
            let start_in = granted.or_else(|| first.map(|ticket| stepped.memory.slot_in(ticket)));
            news.next = start_in.map(|start_in| now() + start_in.to_duration());
        }
        drop(news);
        if let Some(line) = self.outages().answered().filter(|_| !is_leaving) {
            (self.voice.0)(&line);
        }
    }

    fn outages(&self) -> MutexGuard<'_, StoreOutages> {
        self.outages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn news(&self) -> MutexGuard<'_, News> {
        self.news.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a process that waits may expect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expectation {
    /// Its slot comes in that time.
    In(Duration),
    Paused,
    AtMaxRunning,
    StateLost,
}

/// Why CMD has not started, in words.
impl fmt::Display for Contact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let news = self.news();
        match (&news.outage, &news.wait) {
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

/// A state whose replies a [`Contact`] sees.
#[derive(Debug)]
pub(crate) struct Watched {
    state: Arc<dyn SharedState>,
    contact: Contact,
}

#[async_trait]
impl SharedState for Watched {
    async fn apply(&self, queue: &QueueName, command: Command) -> Result<Reply, StateError> {
        let asked = match &command {
            Command::Step(step) => step.ask.first().map(|ask| ask.ticket),
            _ => None,
        };
        let reply = self.state.apply(queue, command).await?;
        self.contact.answered(asked, &reply);
        Ok(reply)
    }
}
