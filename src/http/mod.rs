//! Holds the queue, for all processes, when an HTTP response asks to wait.
//!
//! An [`Observer`] reads the responses of a service. When a response asks its callers to wait, the
//! observer [holds](crate::IntervalQueue::hold) the queue, so that no process calls earlier. Use
//! [`FeedbackLayer`] for a tower service with HTTP responses, and [`Observer::observe`] otherwise.
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
//!     .layer(IntervalLayer::new(queue.clone())) // outside, so that the hold is in force before the slot is given back
//!     .layer(FeedbackLayer::new(Observer::new(queue.clone())))
//!     .service(server);
//!
//! let began = tokio::time::Instant::now();
//! client.oneshot(Request::new(())).await?;
//! queue.turn().await?; // of any process
//! assert!(began.elapsed() >= Duration::from_secs(30));
//! # Ok(())
//! # }
//! ```
//!
//! # What is read
//!
//! | response | hold |
//! |---|---|
//! | 429 or 503 with `Retry-After` (seconds or a date) | until then |
//! | any, with a `RateLimit` item that has nothing remaining (`"default";r=0;t=30`) | its `t`; of several the longest |
//! | any, with `RateLimit-Remaining: 0`, or `remaining=0` in `RateLimit` (older drafts) | until its reset |
//! | any, with nothing remaining in the [service's own fields](Observer::vendor) | until their reset |
//! | 429 with none of these | the [floor](Observer::floor) |
//!
//! - **`Retry-After` counts on 429 and 503 only.** With another status it concerns that one
//!   request, e.g. a redirect. It takes precedence over the `RateLimit` fields, as their draft
//!   requires.
//! - **A date** is compared with the `Date` of the same response, so the clock of the client does
//!   not matter. Without a `Date`, which a 503 may lack, the client's clock is used.
//! - **Responses are not trusted.** A hold is at least the floor and at most the
//!   [cap](Observer::cap). If a response asks to wait, but its value is unreadable or in the past,
//!   the hold is the floor. A warning names the value.
//! - **`RateLimit-Reset`** is in seconds. From 10⁹ on it is seconds since 1970, as some services
//!   send it.
//! - **`X-RateLimit-…` fields are read only if configured.** Their reset is seconds, milliseconds
//!   or an instant, depending on the service. Set it with [`Observer::vendor`].
//! - **Calls under way continue.** Calls that have started, or were granted up to [a
//!   second](crate::MAX_LEAD) ahead, still reach the service. With
//!   [`max_running(1)`](crate::Builder::max_running) there are none.
//! - **gRPC** has no such fields: it reports a limit as a status in the trailers.

mod doubt;
mod feedback;
mod future;
mod head;
mod observer;
mod reading;
mod remaining;
mod vendor;

pub use feedback::{Feedback, FeedbackLayer};
pub use future::FeedbackFuture;
pub use head::{HttpResponse, ReadHead};
pub use observer::Observer;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub use reading::asked;
pub use vendor::{Reset, VendorLimit};
