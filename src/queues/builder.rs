//! Constructors and options of [`IntervalQueues`].

use std::{
    fmt,
    future::{Future, ready},
    sync::Arc,
    time::Duration,
};

use futures::FutureExt;
use interval_queue_contract::SharedState;

use super::{IntervalQueues, Make, cache::Bounds};
use crate::{Builder, error::Error, store::connect};

impl IntervalQueues {
    /// Queues on one store. `make` runs at each opening and returns the name and settings of a
    /// key's queue. Keys with the same name share its rate.
    pub fn new(state: impl SharedState, make: impl Fn(&str) -> Builder + Send + Sync + 'static) -> Self {
        Self::builder(make).open(state)
    }

    /// Queues on the store at `url`, as in [`connect`](crate::connect); see [`new`](Self::new) for
    /// `make`.
    ///
    /// # Errors
    ///
    /// As [`connect`](crate::connect).
    pub async fn connect(
        url: &str,
        make: impl Fn(&str) -> Builder + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        Self::builder(make).connect(url).await
    }

    /// Options to set before opening; see [`new`](Self::new) for `make`.
    pub fn builder(make: impl Fn(&str) -> Builder + Send + Sync + 'static) -> QueuesBuilder {
        let make: Make = Box::new(move |key| ready(Ok(make(key))).boxed());
        QueuesBuilder { make, bounds: Bounds::default() }
    }

    /// As [`builder`](Self::builder), with settings that must be loaded, e.g. from a database.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// # use interval_queue::{IntervalQueue, IntervalQueues};
    /// # async fn calls_per_second_of(customer: &str) -> Result<f64, std::io::Error> { Ok(5.0) }
    /// let customers = IntervalQueues::loading(|customer: String| async move {
    ///     let rate = calls_per_second_of(&customer).await?;
    ///     let interval = Duration::from_secs_f64(1.0 / rate);
    ///     Ok::<_, std::io::Error>(IntervalQueue::builder(format!("customer/{customer}")).interval(interval))
    /// })
    /// .connect("memory:")
    /// .await?;
    /// customers.get("ada").await?.turn().await?;
    ///
    /// // After the customer has changed plans:
    /// customers.reload("ada").await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Callers of a key share one loading. It has no time limit and is dropped with its last
    /// caller. Settings are loaded once while the queue is kept, and by [`reload`](Self::reload).
    /// [`get`](Self::get) returns a loading error as the source of its error.
    pub fn loading<F, L, E>(load: F) -> QueuesBuilder
    where
        F: Fn(String) -> L + Send + Sync + 'static,
        L: Future<Output = Result<Builder, E>> + Send + 'static,
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let make: Make = Box::new(move |key| {
            let loaded = load(key.to_owned());
            async move { loaded.await.map_err(|error| Error::of_settings(error.into())) }.boxed()
        });
        QueuesBuilder { make, bounds: Bounds::default() }
    }
}

/// Options of [`IntervalQueues`]; made by [`IntervalQueues::builder`].
#[must_use]
pub struct QueuesBuilder {
    make: Make,
    bounds: Bounds,
}

impl QueuesBuilder {
    /// How long an idle queue is kept after its last use: when it was last requested, or found with
    /// work or a handle. Default: 60 s. Zero: until the next [`get`](IntervalQueues::get) of any
    /// key.
    pub fn keep_idle(mut self, keep_idle: Duration) -> Self {
        self.bounds.keep_idle = keep_idle;
        self
    }

    /// Above this number of kept queues, idle ones are dropped at once, least recently used first.
    /// Queues in use are always kept. Default: 10,000.
    pub fn max_kept(mut self, queues: usize) -> Self {
        self.bounds.max_kept = queues;
        self
    }

    /// Queues on one store. Opens no queue yet.
    pub fn open(self, state: impl SharedState) -> IntervalQueues {
        IntervalQueues::on(Arc::new(state), self.make, self.bounds)
    }

    /// Queues on the store at `url`, as in [`connect`](crate::connect).
    ///
    /// # Errors
    ///
    /// As [`connect`](crate::connect).
    pub async fn connect(self, url: &str) -> Result<IntervalQueues, Error> {
        Ok(IntervalQueues::on(connect(url).await?.rates().await?, self.make, self.bounds))
    }
}

impl fmt::Debug for QueuesBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueuesBuilder")
            .field("keep_idle", &self.bounds.keep_idle)
            .field("max_kept", &self.bounds.max_kept)
            .finish_non_exhaustive()
    }
}
