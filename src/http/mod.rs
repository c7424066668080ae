//! Holds the queue, for all processes, when an HTTP response asks to wait.
//!
//! An [`Observer`] reads the responses of a service. When a response asks its callers to wait, the
//! observer [holds](crate::IntervalQueue::hold) the queue, so that no process calls earlier. For
//! tower services use [`FeedbackLayer`], otherwise [`Observer::observe`].
//!
//! ```
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
//! use std::time::Duration;
//! use http::{Request, Response, StatusCode, header::RETRY_AFTER};
//! use interval_queue::{IntervalQueue, http::{FeedbackLayer, Observer}, tower::IntervalLayer};
//! use tower::{ServiceBuilder, ServiceExt, service_fn};
//!
//! let queue = IntervalQueue::builder("api").interval(Duration::from_millis(100)).connect("memory:").await?;
//! let server = service_fn(async |_: Request<()>| {
//!     Response::builder().status(StatusCode::TOO_MANY_REQUESTS).header(RETRY_AFTER, "30").body(())
//! });
//! let client = ServiceBuilder::new()
//!     .layer(IntervalLayer::new(queue.clone())) // outside: the hold precedes the next call
//!     .layer(FeedbackLayer::new(Observer::new(queue.clone())))
//!     .service(server);
//!
//! let began = tokio::time::Instant::now();
//! client.oneshot(Request::new(())).await?;
//! queue.turn().await?; // waits for the hold, in any process
//! assert!(began.elapsed() >= Duration::from_secs(30));
//! # Ok(())
//! # }
//! ```
//!
//! # What is read
//!
//! | response | hold |
//! |---|---|
//! | 429 or 503 with `Retry-After` (seconds or a date) | as given |
//! | any, with a used-up item in `RateLimit` (`"default";r=0;t=30`) | its `t`, of several the longest |
//! | any, with `RateLimit-Remaining: 0`, or `remaining=0` in `RateLimit` (older drafts) | until its reset |
//! | any, with nothing remaining in the [service's own fields](Observer::vendor) | until their reset |
//! | 429 with none of these | the [floor](Observer::floor) |
//!
//! - **`Retry-After` counts on 429 and 503 only.** With another status it concerns one request,
//!   e.g. a redirect. It takes precedence over `RateLimit`, as that draft requires.
//! - **A date** is compared with the response's own `Date`, so the client's clock does not matter.
//!   The client's clock is used only if `Date` is missing, as it may be in a 503.
//! - **Responses are not trusted.** A hold is at least the floor and at most the
//!   [cap](Observer::cap). An unreadable or past time counts as the floor. A warning names the
//!   value.
//! - **`RateLimit-Reset`** is in seconds; from 10⁹ on in seconds since 1970, as some services send
//!   it.
//! - **`X-RateLimit-…` must be configured** with [`Observer::vendor`]: depending on the service,
//!   its reset is in seconds, in milliseconds or an instant.
//! - **Calls under way continue.** Calls that have started, or were granted up to [a
//!   second](crate::MAX_LEAD) ahead, still reach the service.
//!   [`max_running(1)`](crate::Builder::max_running) prevents that.
//! - **gRPC** has no such fields: it reports a limit as a status in the trailers.

mod doubt;
mod feedback;
mod head;
mod http_future;
mod observer;
mod reading;
mod remaining;
mod vendor;

pub use feedback::{Feedback, FeedbackLayer};
pub use head::{HttpResponse, ReadHead};
pub use http_future::FeedbackFuture;
pub use observer::Observer;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub use reading::asked;
pub use vendor::{Reset, VendorLimit};
