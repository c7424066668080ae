//! What HTTP responses say about the rate, as a hold for all processes.
//!
//! An [`Observer`] reads the responses of a service. When one asks its callers to wait, it
//! [holds](crate::IntervalQueue::hold) the queue, so that no process calls again before. [`FeedbackLayer`]
//! does that for any tower service with HTTP responses; [`Observer::observe`] does it by hand.
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
//! | 429 or 503 with `Retry-After`, seconds or a date | as long as it says |
//! | any, with an item of `RateLimit` that has nothing remaining (`"default";r=0;t=30`) | its `t`; the longest of several |
//! | any, with `RateLimit-Remaining: 0`, or `remaining=0` in `RateLimit` (older drafts) | until its reset |
//! | any, with nothing remaining in fields of the service's own, if they were [told](Observer::vendor) | until their reset |
//! | 429 without any of them | the [floor](Observer::floor) |
//!
//! - **`Retry-After` counts on 429 and 503 only.** With another status it is about that one request: when to
//!   follow a redirect, or to ask again for what is being made. It goes before the `RateLimit` fields, as
//!   their draft says.
//! - **A date** is read against the `Date` of the same response, so the clock of the client does not matter.
//!   Only if there is none, as a 503 may do, the client's own clock is asked.
//! - **Nothing is trusted.** A hold is never longer than the [cap](Observer::cap), and never shorter than the
//!   floor. What cannot be read, or lies in the past, holds for the floor where a hold is due, and a warning
//!   names it.
//! - **`RateLimit-Reset`** is seconds; from a thousand million on it is seconds since 1970, as some services
//!   have it.
//! - **`X-RateLimit-…` is read as you say.** The reset is seconds to some services, an instant to others,
//!   milliseconds to a few, and nothing in it says which: tell it with [`Observer::vendor`].
//! - **What is under way goes on.** Calls that were started, or granted up to [a second](crate::MAX_LEAD)
//!   ahead, still reach the service. With [`max_running(1)`](crate::Builder::max_running) there are none.
//! - **gRPC** has no such fields: a limit is a status in the trailers there.

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
