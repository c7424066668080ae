//! What is done with all the queues that are kept, and with the settings of one later on.

use std::{panic::AssertUnwindSafe, sync::Arc};

use futures::{FutureExt, StreamExt, stream};
use interval_queue_contract::InvalidInput;

use super::IntervalQueues;
use crate::{IntervalQueue, Tick, error::Error};

/// How many queues are asked at a time: enough for a state that is far away.
const AT_ONCE: usize = 64;

/// All of these act on the queues that this process keeps at the call. Others, also those of keys that were
/// dropped because they were idle, are not opened for it: [`Store::queues`](crate::Store::queues) has the
/// names of all that are stored.
impl IntervalQueues {
    /// The keys of the queues that are kept, sorted. It is no use of them.
    pub fn keys(&self) -> Vec<Arc<str>> {
        self.iter().map(|(key, _)| key).collect()
    }

    /// The queues that are kept with their keys, sorted by these. It is no use of them, but none is dropped
    /// for being idle while somebody has its handle.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (Arc<str>, IntervalQueue)> + use<> {
        let mut kept = self.inner.inside().shelf.by_key();
        kept.sort_by(|(one, _), (other, _)| one.cmp(other));
        kept.into_iter()
    }

    /// [Ticks](IntervalQueue::tick) those in which jobs wait, for a cron job or a health check. What was
    /// found of each, sorted by key.
    ///
    /// # Cancel safety
    ///
    /// Dropped, some of them were ticked.
    pub async fn tick(&self) -> Vec<(Arc<str>, Tick)> {
        let waiting = self.iter().filter(|(_, queue)| queue.waiting() > 0);
        let ticks = stream::iter(waiting).map(async |(key, queue)| (key, queue.tick().await));
        ticks.buffered(AT_ONCE).collect().await
    }

    /// [Pauses](IntervalQueue::pause) them, each for all its shards. One that is opened later is paused only
    /// if it was then.
    ///
    /// # Errors
    ///
    /// The first one, with its key, once all others were paused.
    ///
    /// # Cancel safety
    ///
    /// Dropped, some of them are paused.
    pub async fn pause_all(&self) -> Result<(), Error> {
        self.each(async |queue| queue.pause().await).await
    }

    /// [Resumes](IntervalQueue::resume) them, each for all its shards.
    ///
    /// # Errors
    ///
    /// The first one, with its key, once all others were resumed.
    ///
    /// # Cancel safety
    ///
    /// Dropped, some of them are resumed.
    pub async fn resume_all(&self) -> Result<(), Error> {
        self.each(async |queue| queue.resume().await).await
    }

    async fn each(&self, act: impl AsyncFn(IntervalQueue) -> Result<(), Error>) -> Result<(), Error> {
        let acts = stream::iter(self.iter())
            .map(async |(key, queue)| act(queue).await.map_err(|error| Error::of_key(&key, &error)));
        acts.buffered(AT_ONCE).fold(Ok(()), async |first: Result<(), Error>, next| first.and(next)).await
    }

    /// Asks for the settings of a key once more, and makes its pace and running limit those of all shards,
    /// whatever they were: when the plan of a customer has changed. Everything else in the settings counts
    /// when the queue is next opened. Opens the queue if it is not kept.
    ///
    /// To change one of them by hand, [`get`](Self::get) the queue and use
    /// [`set_interval`](IntervalQueue::set_interval) or [`set_max_running`](IntervalQueue::set_max_running).
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get), and [`Invalid`](crate::ErrorKind::Invalid) if the settings name another queue
    /// than before.
    ///
    /// # Cancel safety
    ///
    /// Dropped, the settings are changed or are not.
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
