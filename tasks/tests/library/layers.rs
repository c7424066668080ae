//! Layers of tower around handlers.

use std::{
    sync::{Arc, Mutex},
    task::{Context as Waker, Poll},
    time::Duration,
};

use futures::{FutureExt, future::BoxFuture};
use interval_queue_tasks::{
    Context, Json, Task, TaskError, TaskQueue, Worker, WorkerBuilder,
    tower::{HandlerError, HandlerService, Output},
};
use tokio::time::sleep;
use tower::{
    BoxError, Layer, Service,
    limit::{ConcurrencyLimitLayer, GlobalConcurrencyLimitLayer},
    timeout::TimeoutLayer,
};

use crate::common::{finish, ms, now, queue, secs, spawned, stored};

/// The kind, the success and the duration of each call.
#[derive(Clone, Default)]
struct Measured(Arc<Mutex<Vec<(String, bool, Duration)>>>);

impl<T> Layer<T> for Measured {
    type Service = Measuring<T>;

    fn layer(&self, inner: T) -> Measuring<T> {
        Measuring { inner, calls: self.clone() }
    }
}

#[derive(Clone)]
struct Measuring<T> {
    inner: T,
    calls: Measured,
}

impl<T, S> Service<Context<S>> for Measuring<T>
where
    T: Service<Context<S>>,
    T::Future: Send + 'static,
{
    type Response = T::Response;
    type Error = T::Error;
    type Future = BoxFuture<'static, Result<T::Response, T::Error>>;

    fn poll_ready(&mut self, waker: &mut Waker<'_>) -> Poll<Result<(), T::Error>> {
        self.inner.poll_ready(waker)
    }

    fn call(&mut self, context: Context<S>) -> Self::Future {
        let (calls, kind, began) = (self.calls.clone(), context.kind().to_string(), now());
        let done = self.inner.call(context);
        async move {
            let done = done.await;
            calls.0.lock().unwrap().push((kind, done.is_ok(), began.elapsed()));
            done
        }
        .boxed()
    }
}

async fn wait(_: Context, millis: u64) -> Result<u64, TaskError> {
    sleep(ms(millis)).await;
    if millis == 13 { Err(TaskError::permanent("unlucky")) } else { Ok(millis) }
}

async fn add(queue: &TaskQueue, tasks: impl IntoIterator<Item = (&'static str, u64)>) {
    queue.add_all(tasks.into_iter().map(|(kind, millis)| Task::new(kind, &millis))).await.unwrap();
}

fn worker(queue: &TaskQueue) -> WorkerBuilder {
    Worker::builder(queue).handler("a", wait).handler("b", wait)
}

#[tokio::test(start_paused = true)]
async fn a_layer_wraps_the_handlers_added_before() {
    let (queue, measured) = (queue().await, Measured::default());
    add(&queue, [("a", 100), ("b", 13), ("c", 1)]).await;
    let totals = finish(worker(&queue).layer(measured.clone()).handler("c", wait)).await;
    assert_eq!((totals.done, totals.failed, totals.permanent), (2, 1, 1));
    let calls = measured.0.lock().unwrap().clone();
    assert_eq!(calls, [("b".into(), false, ms(13)), ("a".into(), true, ms(100))]);
}

#[tokio::test(start_paused = true)]
async fn a_timeout_of_tower_fails_a_run() {
    let queue = queue().await;
    let slow = queue.add(Task::new("a", &2_000).max_attempts(1)).await.unwrap().id();
    let unlucky = queue.add(Task::new("a", &13)).await.unwrap().id();
    let totals = finish(worker(&queue).layer(TimeoutLayer::new(secs(1)))).await;
    assert_eq!((totals.failed, totals.permanent), (2, 1));
    assert_eq!(stored(&queue, slow).await.task.error.unwrap(), "request timed out");
    assert_eq!(stored(&queue, unlucky).await.task.error.unwrap(), "unlucky");
}

#[tokio::test(start_paused = true)]
async fn limits_of_tower_hold_per_kind_or_for_all() {
    for (global, takes) in [(true, 4_000), (false, 2_000)] {
        let queue = queue().await;
        add(&queue, [("a", 1_000), ("a", 1_000), ("b", 1_000), ("b", 1_000)]).await;
        let began = now();
        let worker = match global {
            true => worker(&queue).layer(GlobalConcurrencyLimitLayer::new(1)),
            false => worker(&queue).layer(ConcurrencyLimitLayer::new(1)),
        };
        assert_eq!(finish(worker).await.done, 4);
        let took = began.elapsed();
        assert!((ms(takes)..ms(takes + 900)).contains(&took), "global {global}: {took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_last_layer_is_the_outermost() {
    let (queue, inner, outer) = (queue().await, Measured::default(), Measured::default());
    queue.add(Task::new("a", &2_000).max_attempts(1)).await.unwrap();
    let timeout = TimeoutLayer::new(secs(1));
    finish(worker(&queue).layer(inner.clone()).layer(timeout).layer(outer.clone())).await;
    assert!(inner.0.lock().unwrap().is_empty(), "the timeout drops the inner call");
    assert_eq!(*outer.0.lock().unwrap(), [("a".into(), false, secs(1))]);
}

#[tokio::test(start_paused = true)]
async fn a_layer_wraps_handlers_with_and_without_a_state() {
    let queue = queue().await;
    let ids = queue.add_all(["a", "b"].map(|kind| Task::new(kind, &()))).await.unwrap();
    let worker = Worker::builder(&queue)
        .handler("a", |_: Context, (): ()| async { Ok::<_, TaskError>(1) })
        .state("text")
        .handler(
            "b",
            |context: Context<&'static str>, (): ()| async move { Ok::<_, TaskError>(*context.state()) },
        )
        .layer(Measured::default());
    finish(worker).await;
    assert_eq!(queue.wait::<u32>(ids[0].id()).await.unwrap(), 1);
    assert_eq!(queue.wait::<String>(ids[1].id()).await.unwrap(), "text");
}

/// Answers tasks with a tag instead of their handlers, and turns errors into retries.
#[derive(Clone)]
struct Deciding(HandlerService);

impl Service<Context> for Deciding {
    type Response = Output;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Output, BoxError>>;

    fn poll_ready(&mut self, waker: &mut Waker<'_>) -> Poll<Result<(), BoxError>> {
        self.0.poll_ready(waker)
    }

    fn call(&mut self, context: Context) -> Self::Future {
        if !context.task().tags.is_empty() {
            return async { Ok(Output::Result(Json::of("cached").unwrap())) }.boxed();
        }
        let done = self.0.call(context);
        let later = |error: BoxError| {
            let error = error.downcast_ref::<HandlerError>().expect("it is the error of the handler");
            HandlerError(TaskError::retry_after(secs(60)).because(&error.0)).into()
        };
        async move { done.await.map_err(later) }.boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn a_layer_decides_about_the_outcome() {
    let queue = queue().await;
    let cached = queue.add(Task::new("a", &13).tag("cached")).await.unwrap().id();
    let unlucky = queue.add(Task::new("a", &13)).await.unwrap().id();
    let worker = worker(&queue).layer(tower::layer::layer_fn(Deciding)).build().unwrap();
    let (handle, ended) = (worker.handle(), spawned(worker));
    assert_eq!(queue.wait::<String>(cached).await.unwrap(), "cached");
    sleep(secs(5)).await;
    let task = stored(&queue, unlucky).await.task;
    assert_eq!((task.error.as_deref(), task.state.is_ended()), (Some("unlucky"), false));
    handle.stop();
    assert_eq!(ended.await.unwrap().retried, 1);
}
