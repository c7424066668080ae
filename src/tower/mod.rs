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
//! // In place of the function: a `reqwest::Client`, the channel of a tonic client, a client of hyper-util.
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
//! `poll_ready` is pending until the inner service is ready and the slot of this clone has come. `call` then
//! starts the inner service at once. The request counts as a running job until the response future is done or
//! dropped, so [`max_running`](crate::Builder::max_running) limits the requests of all processes. The body of
//! an HTTP response may still be on its way then.
//!
//! The first `poll_ready` takes the place in the queue. Dropping the service gives it up. A clone has no
//! place until it is polled, and waits at the back.
//!
//! - The inner service is made ready first, so that no slot is spent on one that is not. While it waits for
//!   the slot, its readiness is kept: a permit of a `ConcurrencyLimit` or a `Buffer` below this layer is held
//!   all the while. Put them above.
//! - A ready service that is not called holds a slot and counts as running. If it is called later than a
//!   quarter of the interval (10 ms if that is more) after its slot, the slot is not used: the response
//!   future takes a new one and calls the inner service then. So services that were kept ready are no burst.
//! - With [`options_for`](IntervalLayer::options_for) there is no back-pressure from the queue, because what
//!   a request takes is not known before it is there.
//!
//! # Errors
//!
//! As for the fallible layers of tower, the error is a [`BoxError`]: that of the inner service, or an
//! [`Error`](crate::Error) of the queue, to be found with `downcast_ref`. Of the queue's errors `poll_ready`
//! gives [`Closed`](crate::ErrorKind::Closed) alone, because it is for good and ends a `Buffer` above; others
//! are those of the call. axum wants an answer instead, which its `HandleErrorLayer` makes:
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

mod future;
mod layer;
mod per_request;
mod service;
mod slot;

pub use future::ResponseFuture;
pub use layer::IntervalLayer;
pub use per_request::{PerRequest, PerRequestLayer};
pub use service::Interval;

/// What the services of this module fail with; the same as `tower::BoxError`.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
