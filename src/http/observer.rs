//! The observer: turns responses into holds of the queue.

use std::time::Duration;

use ::http::{HeaderMap, StatusCode};
use futures::{channel::oneshot, future::BoxFuture};

use super::{
    VendorLimit,
    reading::{Limits, Reading, read},
};
use crate::{IntervalQueue, clock, host::timeout};

/// Of a response whose hold is not yet in force.
const HOLD_TIMEOUT: Duration = Duration::from_secs(1);

/// Reads responses and holds the queue, for all processes, as long as they ask. See the module's
/// [documentation](super) for the fields.
#[derive(Clone, Debug)]
#[must_use = "it observes nothing until it is given responses"]
pub struct Observer {
    queue: IntervalQueue,
    limits: Limits,
    vendor: Vec<VendorLimit>,
}

impl Observer {
    /// An observer that holds `queue`.
    pub fn new(queue: IntervalQueue) -> Self {
        let limits = Limits { floor: Duration::from_secs(1), cap: Duration::from_secs(3600) };
        Self { queue, limits, vendor: Vec::new() }
    }

    /// The shortest hold. It also applies if a response asks to wait without a readable time.
    /// Default: 1 s, the unit of these fields. Values over 366 days are cut.
    pub const fn floor(mut self, floor: Duration) -> Self {
        self.limits.floor = floor;
        self
    }

    /// The longest hold; after it the service is called again and may ask for more. Default: one
    /// hour, which covers the windows of most services. Values over 366 days, the longest
    /// [`hold`](IntervalQueue::hold), are cut. A floor above the cap replaces it.
    pub const fn cap(mut self, cap: Duration) -> Self {
        self.limits.cap = cap;
        self
    }

    /// Also reads these fields of the service. Default: only the standard fields. Call it for each
    /// limit, e.g. of requests and of tokens; of the used-up limits the longest wait counts.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// use http::{HeaderMap, HeaderValue, StatusCode};
    /// use interval_queue::{IntervalQueue, http::{Observer, Reset, VendorLimit}};
    ///
    /// # let queue = IntervalQueue::builder("api").interval(Duration::from_millis(100)).connect("memory:").await?;
    /// let observer = Observer::new(queue).vendor(VendorLimit::x_rate_limit(Reset::InSeconds));
    /// let mut headers = HeaderMap::new();
    /// headers.insert("x-ratelimit-remaining", HeaderValue::from_static("0"));
    /// headers.insert("x-ratelimit-reset", HeaderValue::from_static("20"));
    /// assert_eq!(observer.observe(StatusCode::OK, &headers).await, Some(Duration::from_secs(20)));
    /// # Ok(())
    /// # }
    /// ```
    pub fn vendor(mut self, limit: VendorLimit) -> Self {
        self.vendor.push(limit);
        self
    }

    /// Reads a response and, if it asks to wait, holds the queue and returns the hold. On return
    /// the hold is in force, unless the store takes longer than a second: then it takes effect when
    /// the store replies.
    ///
    /// A failure of the store is logged; there is no hold then.
    ///
    /// ```no_run
    /// # async fn call(queue: interval_queue::IntervalQueue) -> Result<(), Box<dyn std::error::Error>> {
    /// use interval_queue::http::Observer;
    ///
    /// let observer = Observer::new(queue.clone());
    /// let turn = queue.turn().await?;
    /// let response = reqwest::get("http://example.org/").await?;
    /// if let Some(hold) = observer.observe(response.status(), response.headers()).await {
    ///     println!("nobody calls for {hold:?}");
    /// }
    /// drop(turn);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Cancel safety
    ///
    /// Once polled, the hold takes effect even if the future is dropped.
    pub async fn observe(&self, status: StatusCode, headers: &HeaderMap) -> Option<Duration> {
        let asked = self.read(status, headers)?;
        self.hold(asked).await;
        Some(asked)
    }

    /// Logs unusable fields.
    pub(super) fn read(&self, status: StatusCode, headers: &HeaderMap) -> Option<Duration> {
        let Reading { hold, doubts } = read(status, headers, self.limits, &self.vendor, clock::time_of_day());
        for doubt in doubts {
            self.queue.shard.telemetry.response_doubtful(status.as_u16(), hold, &doubt);
        }
        hold
    }

    /// When the hold is in force, has failed, or takes longer than `HOLD_TIMEOUT`.
    pub(super) fn hold(&self, asked: Duration) -> BoxFuture<'static, ()> {
        let queue = self.queue.clone();
        Box::pin(async move {
            let host = queue.shard.host.clone();
            let (sender, done) = oneshot::channel::<()>();
            // The hold is for all processes, even if the caller gives up.
            host.spawn(Box::pin(async move {
                match queue.hold(asked).await {
                    Ok(()) => queue.shard.telemetry.response_held(asked),
                    Err(error) => queue.shard.telemetry.response_not_held(asked, &error),
                }
                drop(sender);
            }));
            let _ = timeout(&host, HOLD_TIMEOUT, done).await;
        })
    }
}
