//! A layer that paces any [`tower_service::Service`] across processes.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
//! use std::time::Duration;
//! use interval_queue::{IntervalQueue, tower::IntervalLayer};
//! use tower::{ServiceBuilder, ServiceExt, service_fn};
//!
//! let queue = IntervalQueue::builder("api")
//!     .interval(Duration::from_millis(100))
//!     .connect("memory:") // file:pace.json, redis://… or postgres://… to share it between processes
//!     .await?;
//! // Instead of this function: a `reqwest::Client`, a tonic channel, a hyper-util client.
//! let call = service_fn(async |page: u32| Ok::<_, std::io::Error>(format!("page {page}")));
//! let client = ServiceBuilder::new().layer(IntervalLayer::new(queue)).service(call);
//!
//! // Each clone waits for a slot of its own.
//! let pages = futures::future::try_join_all((0..3).map(|page| client.clone().oneshot(page))).await?;
//! assert_eq!(pages, ["page 0", "page 1", "page 2"]); // started 100 ms apart
//! # Ok(())
//! # }
//! ```
//!
//! # Back-pressure
//!
//! `poll_ready` is pending until the inner service is ready and this clone's slot has come. `call`
//! then starts the inner service at once. The request counts as a running job until the response
//! future completes or is dropped, so [`max_running`](crate::Builder::max_running) limits the
//! requests of all processes. The body of an HTTP response may arrive later.
//!
//! The first `poll_ready` enters the queue, a clone's at the back. Dropping the service leaves it.
//!
//! - The inner service becomes ready first, so that it does not waste a slot. While it waits for
//!   the slot it keeps its permit of a `ConcurrencyLimit` or `Buffer` below this layer. Put such
//!   layers above this one.
//! - A ready service that is not called holds a slot and counts as running. If it is called later
//!   than a quarter of the interval (at least 10 ms) after its slot, the response future waits for
//!   a new slot. So services that are kept ready cause no burst.
//! - [`options_for`](IntervalLayer::options_for) gives no back-pressure, because the request is not
//!   known before `call`.
//!
//! # Errors
//!
//! As in other fallible layers of tower, the error is a [`BoxError`]. Use `downcast_ref` to find an
//! [`Error`](crate::Error) of the queue; others are the inner service's. Of the queue's errors
//! `poll_ready` returns only [`Closed`](crate::ErrorKind::Closed), because an error there is final
//! and ends a `Buffer` above. The call returns the other errors. axum needs a response instead of
//! an error: use its `HandleErrorLayer`.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
//! use std::time::Duration;
//! use axum::{Router, error_handling::HandleErrorLayer, http::StatusCode, routing::get};
//! use interval_queue::{IntervalQueue, tower::{BoxError, IntervalLayer}};
//! use tower::ServiceBuilder;
//!
//! # let queue = IntervalQueue::builder("api").interval(Duration::from_millis(100)).connect("memory:").await?;
//! let paced = ServiceBuilder::new()
//!     .layer(HandleErrorLayer::new(async |error: BoxError| (StatusCode::SERVICE_UNAVAILABLE, error.to_string())))
//!     .layer(IntervalLayer::new(queue));
//! let app: Router = Router::new().route("/report", get(async || "done")).layer(paced);
//! # drop(app);
//! # Ok(())
//! # }
//! ```

mod layer;
mod per_request;
mod service;
mod slot;
mod tower_future;

pub use layer::IntervalLayer;
pub use per_request::{PerRequest, PerRequestLayer};
pub use service::Interval;
pub use tower_future::ResponseFuture;

/// The error of these services; identical to `tower::BoxError`.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
