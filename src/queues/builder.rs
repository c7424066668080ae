//! How many queues by their keys are set up.

use std::{
    fmt,
    future::{Future, ready},
    sync::Arc,
    time::Duration,
};

use futures::FutureExt;
use interval_queue_contract::SharedState;

use super::{IntervalQueues, Make, shelf::Bounds};
use crate::{Builder, error::Error, store::connect};

impl IntervalQueues {
    /// Queues on a state. `make` gives the settings for the queue of a key, and its name. It is called with
    /// each opening, and keys that it gives one name share a pace, as all shards of a name do.
    pub fn new(state: impl SharedState, make: impl Fn(&str) -> Builder + Send + Sync + 'static) -> Self {
        Self::builder(make).open(state)
    }

    /// Queues on the state at `url`; see [`connect`](crate::connect) for what it can be, and
    /// [`new`](Self::new) for `make`.
    ///
    /// # Errors
    ///
    /// Those of [`connect`](crate::connect).
    pub async fn connect(
        url: &str,
        make: impl Fn(&str) -> Builder + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        Self::builder(make).connect(url).await
    }

    /// Settings to change before; see [`new`](Self::new) for `make`.
    pub fn builder(make: impl Fn(&str) -> Builder + Send + Sync + 'static) -> QueuesBuilder {
        let make: Make = Box::new(move |key| ready(Ok(make(key))).boxed());
        QueuesBuilder { make, bounds: Bounds::default() }
    }

    /// The same where the settings have to be loaded first, from a database, say, which may fail.
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
    /// // When the customer has another plan:
    /// customers.reload("ada").await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// All who wait for a key wait for one loading, as long as it takes; it ends with the last of them. It is
    /// not loaded again while the queue is kept, unless it is [reloaded](Self::reload). An error of it is the
    /// source of what [`get`](Self::get) gives.
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

/// Settings for [`IntervalQueues`]; made by [`IntervalQueues::builder`].
#[must_use]
pub struct QueuesBuilder {
    make: Make,
    bounds: Bounds,
}

impl QueuesBuilder {
    /// How long an idle queue is kept after its last use: when it was last asked for, or seen with work or a
    /// handle. Default: 60 s. Zero drops it with the next [`get`](IntervalQueues::get) of any key.
    pub fn keep_idle(mut self, keep_idle: Duration) -> Self {
        self.bounds.keep_idle = keep_idle;
        self
    }

    /// How many queues are kept before idle ones have to go at once, the longest unused first. Those that are
    /// not idle stay in any number. Default: 10,000.
    pub fn max_kept(mut self, queues: usize) -> Self {
        self.bounds.max_kept = queues;
        self
    }

    /// Queues on a state. Opens none yet.
    pub fn open(self, state: impl SharedState) -> IntervalQueues {
        IntervalQueues::on(Arc::new(state), self.make, self.bounds)
    }

    /// Queues on the state at `url`; see [`connect`](crate::connect) for what it can be.
    ///
    /// # Errors
    ///
    /// Those of [`connect`](crate::connect).
    pub async fn connect(self, url: &str) -> Result<IntervalQueues, Error> {
        Ok(IntervalQueues::on(connect(url).await?.pace().await?, self.make, self.bounds))
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
