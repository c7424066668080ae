//! Turns what responses ask for into a hold of the queue.

use std::time::Duration;

use ::http::{HeaderMap, StatusCode};
use futures::{channel::oneshot, future::BoxFuture};

use super::{
    VendorLimit,
    reading::{Limits, Reading, read},
};
use crate::{IntervalQueue, clock, host::timeout};

/// The longest that a response is kept back until its hold is in force.
const PATIENCE: Duration = Duration::from_secs(1);

/// Reads responses and holds the queue, for all processes, as long as they ask for. The module's
/// [documentation](super) tells what is read.
#[derive(Clone, Debug)]
#[must_use = "it observes nothing until it is given responses"]
pub struct Observer {
    queue: IntervalQueue,
    limits: Limits,
    vendor: Vec<VendorLimit>,
}

impl Observer {
    /// An observer that holds that queue.
    pub fn new(queue: IntervalQueue) -> Self {
        let limits = Limits { floor: Duration::from_secs(1), cap: Duration::from_secs(3600) };
        Self { queue, limits, vendor: Vec::new() }
    }

    /// The shortest hold, for responses that ask to wait but not readably how long. Default 1 s, the unit of
    /// all these fields. More than 366 days are 366 days.
    pub const fn floor(mut self, floor: Duration) -> Self {
        self.limits.floor = floor;
        self
    }

    /// The longest hold. A service that asks for more is asked again then. Default one hour, which covers the
    /// windows of most services. More than 366 days are 366 days, the longest of any
    /// [`hold`](IntervalQueue::hold). A floor above it counts in its place: all holds are as long as the
    /// floor then.
    pub const fn cap(mut self, cap: Duration) -> Self {
        self.limits.cap = cap;
        self
    }

    /// Reads these fields of the service, too. Default: only those of the standards. May be called for each of
    /// several limits, of requests and of tokens, say; the longest wait of those with nothing left counts.
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

    /// Reads a response. The hold that it asks for is in force when this returns, unless the state takes
    /// longer than a second: then it comes into force as soon as the state answers. The hold that was asked
    /// for; none if the response asks for nothing.
    ///
    /// If the state fails, that is logged, and there is no hold.
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
    /// Once it was polled, the hold is given also if this is dropped.
    pub async fn observe(&self, status: StatusCode, headers: &HeaderMap) -> Option<Duration> {
        let asked = self.read(status, headers)?;
        self.hold(asked).await;
        Some(asked)
    }

    /// What a response asks for.
    pub(super) fn read(&self, status: StatusCode, headers: &HeaderMap) -> Option<Duration> {
        let Reading { hold, doubts } = read(status, headers, self.limits, &self.vendor, clock::time_of_day());
        for doubt in doubts {
            self.queue.shard.telemetry.response_doubtful(status.as_u16(), hold, &doubt);
        }
        hold
    }

    /// Holds the queue. Ends when that is done or has failed, or is taking too long.
    pub(super) fn hold(&self, asked: Duration) -> BoxFuture<'static, ()> {
        let queue = self.queue.clone();
        Box::pin(async move {
            let host = queue.shard.host.clone();
            let (sender, done) = oneshot::channel::<()>();
            // A task of its own: the caller may give up, and the hold is for everybody.
            host.spawn(Box::pin(async move {
                match queue.hold(asked).await {
                    Ok(()) => queue.shard.telemetry.response_held(asked),
                    Err(error) => queue.shard.telemetry.response_not_held(asked, &error),
                }
                drop(sender);
            }));
            let _ = timeout(&host, PATIENCE, done).await;
        })
    }
}
