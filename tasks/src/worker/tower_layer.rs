//! Layers of tower around handlers.

use std::{
    error::Error as StdError,
    fmt,
    future::poll_fn,
    sync::Arc,
    task::{Context as Waker, Poll},
};

use futures::{FutureExt, future::BoxFuture};
use tower_layer::Layer;
use tower_service::Service;

use super::{
    WorkerBuilder,
    context::Context,
    handler::{Handler, Output},
    task_error::TaskError,
};

type BoxError = Box<dyn StdError + Send + Sync>;

impl<S: Send + Sync + 'static> WorkerBuilder<S> {
    /// Wraps the handlers of all kinds that were added before this call in a layer of tower, such as
    /// a timeout, a limit or a trace. The last layer is the outermost. The layer makes a service for
    /// each kind, so `ConcurrencyLimitLayer` limits each kind and `GlobalConcurrencyLimitLayer` all.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use interval_queue_tasks::{Context, Task, TaskError, TaskQueue, Worker};
    /// use std::time::Duration;
    /// use tower::{limit::GlobalConcurrencyLimitLayer, timeout::TimeoutLayer};
    ///
    /// async fn fetch(_: Context, page: u32) -> Result<u32, TaskError> {
    ///     tokio::time::sleep(Duration::from_secs(page.into())).await;
    ///     Ok(page)
    /// }
    ///
    /// # let queue = TaskQueue::builder("pages").connect("memory:").await?;
    /// # queue.add_all([1, 60].map(|page| Task::new("fetch", &page).max_attempts(1))).await?;
    /// let worker = Worker::builder(&queue)
    ///     .handler("fetch", fetch)
    ///     .layer(TimeoutLayer::new(Duration::from_secs(30)))
    ///     .layer(GlobalConcurrencyLimitLayer::new(4))
    ///     .build()?;
    /// let totals = worker.run_until_empty().await?;
    /// assert_eq!((totals.done, totals.failed), (1, 1));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// A run calls a clone of the service once it is ready, and waits for that within the run: it
    /// has a permit, and its timeout passes. An error of the service fails the run as `?` does, see
    /// [`TaskError`], unless it is or contains a [`HandlerError`](crate::tower::HandlerError), which
    /// keeps what happens next. A layer that calls the handler again does so within the same run.
    /// The [state](Self::state) of its [`Context`] is that of the builder at this call; each handler keeps its own. Around
    /// handlers of [batches](Self::batch) the service is called for each task.
    pub fn layer<L>(mut self, layer: L) -> Self
    where
        L: Layer<HandlerService<S>>,
        L::Service: Service<Context<S>, Response = Output> + Clone + Send + Sync + 'static,
        <L::Service as Service<Context<S>>>::Error: Into<BoxError> + Send,
        <L::Service as Service<Context<S>>>::Future: Send,
    {
        for handler in self.handlers.values_mut() {
            let service = layer.layer(HandlerService { handler: handler.clone(), state: self.state.clone() });
            let state = self.state.clone();
            *handler = Arc::new(move |run| {
                let (context, service) = (Context::new(state.clone(), run), service.clone());
                async move { call(service, context).await.map_err(task_error) }.boxed()
            });
        }
        self
    }
}

async fn call<T, R>(mut service: T, request: R) -> Result<T::Response, BoxError>
where
    T: Service<R>,
    T::Error: Into<BoxError>,
{
    poll_fn(|waker| service.poll_ready(waker)).await.map_err(Into::into)?;
    service.call(request).await.map_err(Into::into)
}

fn task_error(error: BoxError) -> TaskError {
    let first: &(dyn StdError + 'static) = &*error;
    let handler = std::iter::successors(Some(first), |&error| error.source())
        .find_map(|error| error.downcast_ref::<HandlerError>());
    handler.map(|error| error.0.clone()).unwrap_or_else(|| TaskError::from(error))
}

/// A handler as a service of tower: see [`WorkerBuilder::layer`]. It is always ready. Its errors
/// are [`HandlerError`]s, boxed as the layers of tower require.
pub struct HandlerService<S = ()> {
    handler: Handler,
    state: Arc<S>,
}

impl<S> Clone for HandlerService<S> {
    fn clone(&self) -> Self {
        Self { handler: self.handler.clone(), state: self.state.clone() }
    }
}

impl<S> fmt::Debug for HandlerService<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandlerService").finish_non_exhaustive()
    }
}

impl<S> Service<Context<S>> for HandlerService<S> {
    type Response = Output;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Output, BoxError>>;

    fn poll_ready(&mut self, _: &mut Waker<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, context: Context<S>) -> Self::Future {
        let done = (self.handler)(context.run);
        async move { done.await.map_err(|error| HandlerError(error).into()) }.boxed()
    }
}

/// A [`TaskError`] as an error that can be boxed. A layer finds it by `downcast_ref`, and returns
/// it to decide what happens next, for example to [retry](TaskError::retry_after).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandlerError(pub TaskError);

impl fmt::Display for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl StdError for HandlerError {}
