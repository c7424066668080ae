//! How many queues by their keys are set up.

use std::{fmt, sync::Arc, time::Duration};

use interval_queue_contract::SharedState;

use super::shelf::Bounds;
use crate::{Builder, IntervalQueues, connect::connect, error::Error};

/// Gives the settings for the queue of a key.
pub(crate) type Make = Box<dyn Fn(&str) -> Builder + Send + Sync>;

/// Settings for [`IntervalQueues`]; made by [`IntervalQueues::builder`].
#[must_use]
pub struct QueuesBuilder {
    make: Make,
    bounds: Bounds,
}

impl QueuesBuilder {
    pub(crate) fn new(make: Make) -> Self {
        Self { make, bounds: Bounds { keep_idle: Duration::from_secs(60), max_kept: 10_000 } }
    }

    /// How long an idle queue is kept after its last use: when it was last asked for, or seen with work or a handle. Default:
    /// 60 s. Zero drops it with the next [`get`](IntervalQueues::get) of any key.
    pub fn keep_idle(mut self, keep_idle: Duration) -> Self {
        self.bounds.keep_idle = keep_idle;
        self
    }

    /// How many queues are kept before idle ones have to go at once, the longest unused first. Those that are not idle stay
    /// in any number. Default: 10,000.
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
        Ok(IntervalQueues::on(connect(url).await?, self.make, self.bounds))
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
