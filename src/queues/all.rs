//! Methods that act on all kept queues, and `reload`.

use std::{panic::AssertUnwindSafe, sync::Arc};

use futures::{FutureExt, StreamExt, stream};
use interval_queue_contract::InvalidInput;

use super::IntervalQueues;
use crate::{IntervalQueue, Tick, error::Error};

/// Enough for a remote store.
const MAX_CONCURRENT: usize = 64;

/// These methods act on the queues that this process keeps at the call. They open no queue, not
/// even an idle one that was dropped: [`Store::queues`](crate::Store::queues) lists all stored
/// names.
impl IntervalQueues {
    /// The keys of the kept queues, sorted. Does not count as a use.
    pub fn keys(&self) -> Vec<Arc<str>> {
        self.iter().map(|(key, _)| key).collect()
    }

    /// The kept queues, sorted by key. Does not count as a use, but a queue is kept while
    /// its handle exists.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (Arc<str>, IntervalQueue)> + use<> {
        let mut kept = self.inner.inside().cache.by_key();
        kept.sort_by(|(one, _), (other, _)| one.cmp(other));
        kept.into_iter()
    }

    /// [Ticks](IntervalQueue::tick) the queues with waiting jobs, for a cron job or a health check.
    /// Returns the results, sorted by key.
    ///
    /// # Cancel safety
    ///
    /// If dropped, some queues have been ticked.
    pub async fn tick(&self) -> Vec<(Arc<str>, Tick)> {
        let waiting = self.iter().filter(|(_, queue)| queue.waiting() > 0);
        let ticks = stream::iter(waiting).map(async |(key, queue)| (key, queue.tick().await));
        ticks.buffered(MAX_CONCURRENT).collect().await
    }

    /// [Pauses](IntervalQueue::pause) the kept queues for all their shards.
    ///
    /// # Errors
    ///
    /// The first error, with its key, after all other queues were paused.
    ///
    /// # Cancel safety
    ///
    /// If dropped, some queues are paused.
    pub async fn pause_all(&self) -> Result<(), Error> {
        self.each(async |queue| queue.pause().await).await
    }

    /// [Resumes](IntervalQueue::resume) the kept queues for all their shards.
    ///
    /// # Errors
    ///
    /// The first error, with its key, after all other queues were resumed.
    ///
    /// # Cancel safety
    ///
    /// If dropped, some queues are resumed.
    pub async fn resume_all(&self) -> Result<(), Error> {
        self.each(async |queue| queue.resume().await).await
    }

    async fn each(&self, act: impl AsyncFn(IntervalQueue) -> Result<(), Error>) -> Result<(), Error> {
        let acts = stream::iter(self.iter())
            .map(async |(key, queue)| act(queue).await.map_err(|error| Error::of_key(&key, &error)));
        acts.buffered(MAX_CONCURRENT)
            .fold(Ok(()), async |first: Result<(), Error>, next| first.and(next))
            .await
    }

    /// Loads a key's settings again and sets its rates and running limit for all shards, e.g. after
    /// a change of a customer's plan. Other settings take effect at the next opening. Opens the
    /// queue if it is not kept.
    ///
    /// To change a single setting, use [`get`](Self::get) and
    /// [`set_interval`](IntervalQueue::set_interval) or
    /// [`set_max_running`](IntervalQueue::set_max_running).
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get), and [`Invalid`](crate::ErrorKind::Invalid) if the settings name
    /// another queue.
    ///
    /// # Cancel safety
    ///
    /// If dropped, the settings may or may not have changed.
    pub async fn reload(&self, key: impl AsRef<str>) -> Result<IntervalQueue, Error> {
        let key = key.as_ref();
        let queue = self.get(key).await?;
        let reloaded = async {
            let settings = self.inner.settings(key).await?;
            if settings.name() != queue.name().as_str() {
                let (before, now) = (queue.name(), settings.name().escape_debug());
                let text =
                    format!("its queue was {before}, and the settings are now of {now}: keep the name");
                return Err(InvalidInput::new(text).into());
            }
            queue.shard.change(settings.replacing()?).await
        };
        let reloaded = AssertUnwindSafe(reloaded).catch_unwind().await;
        let reloaded = reloaded.unwrap_or_else(|panic| Err(Error::opening_panicked(&*panic)));
        reloaded.map_err(|error| Error::of_key(key, &error))?;
        queue.start();
        Ok(queue)
    }
}
