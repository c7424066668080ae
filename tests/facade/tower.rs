//! Paced services of tower: their pace, their back-pressure, and what becomes of places that nobody wants any
//! more.

use std::{
    collections::HashSet,
    convert::Infallible,
    future::{Future, poll_fn},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    task::{Context, Poll},
    time::Duration,
};

use axum::{Router, error_handling::HandleErrorLayer, http::StatusCode, routing::get};
use futures::{FutureExt, future::join_all};
use interval_queue::{
    Error, ErrorKind, IntervalQueue, JobOptions,
    tower::{BoxError, Interval, IntervalLayer},
};
use tokio::time::{Instant, sleep, timeout};
use tower::{Layer, Service, ServiceBuilder, ServiceExt, util::BoxCloneSyncService};

use crate::common::{Starts, memory, ms, open, queue, shards};

const INTERVAL: Duration = Duration::from_millis(100);

/// A service that notes when it is called, and answers after a while.
#[derive(Clone, Debug)]
struct Noted {
    starts: Starts,
    takes: Duration,
    /// What `poll_ready` says.
    readiness: Arc<Mutex<Poll<Result<(), &'static str>>>>,
    /// As services that reserve something in `poll_ready`, it panics if it is called without.
    ready: bool,
}

impl Noted {
    fn new(takes: Duration) -> Self {
        Self {
            starts: Starts::new(),
            takes,
            readiness: Arc::new(Mutex::new(Poll::Ready(Ok(())))),
            ready: false,
        }
    }

    fn becomes(&self, readiness: Poll<Result<(), &'static str>>) {
        *self.readiness.lock().unwrap() = readiness;
    }
}

impl Service<usize> for Noted {
    type Response = usize;
    type Error = BoxError;
    type Future = futures::future::BoxFuture<'static, Result<usize, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        let readiness = *self.readiness.lock().unwrap();
        self.ready = readiness.is_ready();
        readiness.map_err(Into::into)
    }

    fn call(&mut self, job: usize) -> Self::Future {
        assert!(std::mem::take(&mut self.ready), "called without being ready");
        self.starts.note(job);
        let takes = self.takes;
        async move {
            sleep(takes).await;
            Ok(job)
        }
        .boxed()
    }
}

fn paced(queue: &IntervalQueue, inner: &Noted) -> Interval<Noted> {
    // A clone is not ready because its origin was.
    let inner = Noted { ready: false, ..inner.clone() };
    IntervalLayer::new(queue.clone()).layer(inner)
}

/// Whether it is ready; looks once.
async fn is_ready<S: Service<usize>>(service: &mut S) -> bool {
    poll_fn(|context| Poll::Ready(service.poll_ready(context))).await.is_ready()
}

/// Nothing of the shard is left, neither here nor in the record.
async fn leaves_nothing(queue_under_test: &IntervalQueue, state: &interval_queue::MemoryState) {
    timeout(ms(10_000), queue_under_test.wait_idle()).await.unwrap();
    assert!(state.snapshot(&queue()).unwrap().shards.is_empty());
}

#[tokio::test(start_paused = true)]
async fn services_of_two_shards_keep_one_pace() {
    let (_, state) = memory();
    let inner = Noted::new(ms(250));
    let mut calls = Vec::new();
    for shard in &shards(2, &state, INTERVAL).await {
        let service = paced(shard, &inner);
        calls.extend((0..10).map(|job| service.clone().oneshot(job)));
    }
    for answer in join_all(calls).await {
        answer.unwrap();
    }
    assert_eq!(inner.starts.all().len(), 20);
    assert!(inner.starts.gaps().iter().all(|gap| *gap >= INTERVAL), "{:?}", inner.starts.gaps());
    assert!(inner.starts.all()[19].at < INTERVAL * 21, "no slot is wasted: {:?}", inner.starts.all());
    state.assert_spaced(INTERVAL);
}

#[tokio::test(start_paused = true)]
async fn it_is_ready_at_its_slot_and_not_before() {
    let (_, state) = memory();
    let queue = open(state, INTERVAL).await;
    let inner = Noted::new(ms(0));
    let mut service = paced(&queue, &inner);
    let began = Instant::now();
    assert_eq!(service.ready().await.unwrap().call(0).await.unwrap(), 0);
    assert!(!is_ready(&mut service).await);
    service.ready().await.unwrap();
    assert!(began.elapsed() >= INTERVAL);
    // And stays so.
    for _ in 0..3 {
        assert!(is_ready(&mut service).await);
        sleep(INTERVAL).await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_inner_service_is_called_in_the_call_itself() {
    let (_, state) = memory();
    let inner = Noted::new(ms(0));
    let mut service = paced(&open(state, INTERVAL).await, &inner);
    let response = service.ready().await.unwrap().call(7);
    assert_eq!(inner.starts.jobs(), [7]);
    drop(response);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_not_ready_takes_no_slot() {
    let (memory, state) = memory();
    let shard = open(state, INTERVAL).await;
    let inner = Noted::new(ms(0));
    inner.becomes(Poll::Pending);
    let mut service = paced(&shard, &inner);
    for _ in 0..3 {
        assert!(!is_ready(&mut service).await);
        sleep(INTERVAL).await;
    }
    assert_eq!((shard.waiting(), memory.snapshot(&queue()).unwrap().ticket.get()), (0, 0));
    inner.becomes(Poll::Ready(Ok(())));
    assert_eq!(service.ready().await.unwrap().call(1).await.unwrap(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_request_runs_until_its_response_is_there_or_dropped() {
    let (memory, state) = memory();
    let builder = IntervalQueue::builder("test").interval(ms(10)).max_running(1);
    let shard = builder.open(state).await.unwrap();
    let inner = Noted::new(ms(1_000));
    let mut service = paced(&shard, &inner);

    let first = service.ready().await.unwrap().call(0);
    let mut second = paced(&shard, &inner);
    assert!(timeout(ms(900), second.ready()).await.is_err(), "the first one runs");
    first.await.unwrap();
    let response = second.ready().await.unwrap().call(1);
    assert_eq!(shard.running(), 1);

    let mut third = paced(&shard, &inner);
    assert!(timeout(ms(900), third.ready()).await.is_err(), "the second one runs");
    drop(response);
    drop(timeout(ms(900), third.ready()).await.unwrap().unwrap().call(2));
    drop((service, second, third));
    leaves_nothing(&shard, &memory).await;
}

#[tokio::test(start_paused = true)]
async fn a_response_that_is_done_but_kept_does_not_run() {
    let (_, state) = memory();
    let shard = open(state, INTERVAL).await;
    let mut service = paced(&shard, &Noted::new(ms(0)));
    let mut response = service.ready().await.unwrap().call(0);
    (&mut response).await.unwrap();
    assert_eq!(shard.running(), 0);
    drop(response);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_service_gives_its_place_up() {
    let (memory, state) = memory();
    let shard = open(state, INTERVAL).await;
    let inner = Noted::new(ms(0));
    paced(&shard, &inner).oneshot(0).await.unwrap();
    for wait in [0, 1, 50, 150] {
        let mut dropped = paced(&shard, &inner);
        // Taking its ticket, waiting for its slot, or ready.
        let _ = timeout(ms(wait), dropped.ready()).await;
        drop(dropped);
        assert_eq!((shard.waiting(), shard.running()), (0, 0), "dropped after {wait} ms");
        timeout(INTERVAL * 3, paced(&shard, &inner).oneshot(1)).await.unwrap().unwrap();
    }
    leaves_nothing(&shard, &memory).await;
}

#[tokio::test(start_paused = true)]
async fn a_clone_takes_a_place_of_its_own() {
    let (_, state) = memory();
    let shard = open(state, INTERVAL).await;
    let inner = Noted::new(ms(0));
    let mut service = paced(&shard, &inner);
    service.ready().await.unwrap();
    let mut clone = service.clone();
    assert!(!is_ready(&mut clone).await, "the slot has not been given twice");
    clone.ready().await.unwrap().call(1).await.unwrap();
    drop(service);
    assert_eq!(inner.starts.jobs(), [1]);
}

/// Ten services that are ready, one after the other.
async fn ten_ready(shard: &IntervalQueue, inner: &Noted) -> Vec<Interval<Noted>> {
    let mut services = Vec::new();
    for _ in 0..10 {
        let mut service = paced(shard, inner);
        service.ready().await.unwrap();
        services.push(service);
    }
    services
}

#[tokio::test(start_paused = true)]
async fn services_that_were_kept_ready_are_no_burst() {
    for kept in [ms(0), ms(1), ms(24), ms(60), ms(60_000)] {
        let (memory, state) = memory();
        let shard = open(state, INTERVAL).await;
        let inner = Noted::new(ms(500));
        let mut services = ten_ready(&shard, &inner).await;
        sleep(kept).await;
        let calls: Vec<_> = services.iter_mut().enumerate().map(|(job, service)| service.call(job)).collect();
        drop(services);
        let answers: HashSet<_> = join_all(calls).await.into_iter().map(Result::unwrap).collect();
        assert_eq!(answers.len(), 10, "each has its answer");
        let gaps = inner.starts.gaps();
        assert!(gaps.iter().all(|gap| *gap >= INTERVAL * 3 / 4), "kept for {kept:?}: {gaps:?}");
        leaves_nothing(&shard, &memory).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_stale_call_that_is_dropped_gives_its_place_up() {
    let (memory, state) = memory();
    let shard = open(state, INTERVAL).await;
    let inner = Noted::new(ms(0));
    let mut services = ten_ready(&shard, &inner).await;
    sleep(INTERVAL).await;
    for wait in [0, 7, 50, 120] {
        let mut service = services.pop().unwrap();
        let response = service.call(0);
        assert_eq!(shard.running(), services.len(), "its stale slot has ended");
        // Not yet looked at, taking its ticket, waiting for its slot, or done.
        let _ = timeout(ms(wait), response).await;
        assert_eq!((shard.waiting(), shard.running()), (0, services.len()));
    }
    drop(services);
    leaves_nothing(&shard, &memory).await;
}

#[tokio::test(start_paused = true)]
async fn responses_that_nobody_looks_at_are_no_burst() {
    let (_, state) = memory();
    let shard = open(state, INTERVAL).await;
    let inner = Noted::new(ms(0));
    let layer = IntervalLayer::new(shard).options_for(|_: &usize| JobOptions::new());
    let mut responses = Box::pin(join_all((0..10).map(|job| layer.layer(inner.clone()).oneshot(job))));
    // They take their places, and are forgotten.
    assert!(timeout(ms(1), &mut responses).await.is_err());
    sleep(INTERVAL * 20).await;
    assert!(responses.await.iter().all(Result::is_ok));
    assert!(inner.starts.gaps().iter().all(|gap| *gap >= INTERVAL * 3 / 4), "{:?}", inner.starts.gaps());
}

#[tokio::test(start_paused = true)]
async fn calls_take_as_many_intervals_as_they_weigh() {
    let (_, state) = memory();
    let shard = open(state.clone(), INTERVAL).await;
    let inner = Noted::new(ms(0));
    let heavy = IntervalLayer::new(shard.clone()).options(JobOptions::new().weight(3)).layer(inner.clone());
    heavy.clone().oneshot(0).await.unwrap();
    heavy.oneshot(1).await.unwrap();

    let by_request = IntervalLayer::new(shard)
        .options_for(|request: &usize| JobOptions::new().weight(u32::try_from(*request).unwrap()));
    for request in [2, 5, 1] {
        by_request.layer(inner.clone()).oneshot(request).await.unwrap();
    }
    let weights = [3, 3, 2, 5];
    for (gap, weight) in inner.starts.gaps().iter().zip(weights) {
        assert!(*gap >= INTERVAL * weight && *gap < INTERVAL * (weight + 1), "{:?}", inner.starts.gaps());
    }
    state.assert_spaced(INTERVAL);
}

#[tokio::test(start_paused = true)]
async fn a_slot_of_a_request_is_waited_for_in_the_response() {
    let (memory, state) = memory();
    let shard = open(state, INTERVAL).await;
    let inner = Noted::new(ms(0));
    let mut service =
        IntervalLayer::new(shard.clone()).options_for(|_: &usize| JobOptions::new()).layer(inner.clone());
    service.ready().await.unwrap().call(0).await.unwrap();
    // Ready at once, and nothing is taken before the future is polled.
    let unpolled = service.ready().now_or_never().unwrap().unwrap().call(1);
    let mut polled = service.ready().now_or_never().unwrap().unwrap().call(2);
    assert!((&mut polled).now_or_never().is_none());
    assert_eq!((shard.waiting(), inner.starts.jobs()), (1, vec![0]));
    drop((unpolled, polled));
    leaves_nothing(&shard, &memory).await;
}

#[tokio::test(start_paused = true)]
async fn errors_of_the_queue_and_of_the_service_come_through() {
    let (_, state) = memory();
    let shard = open(state, INTERVAL).await;
    let kind = |error: BoxError| error.downcast_ref::<Error>().unwrap().kind();

    let weightless = IntervalLayer::new(shard.clone()).options(JobOptions::new().weight(0));
    let refused = weightless.layer(Noted::new(ms(0))).oneshot(0).await.unwrap_err();
    assert_eq!(kind(refused), ErrorKind::Invalid);

    let fails = tower::service_fn(async |_: usize| Err::<usize, _>("not today"));
    let failed = IntervalLayer::new(shard.clone()).layer(fails).oneshot(0).await.unwrap_err();
    assert_eq!(failed.to_string(), "not today");
    assert_eq!(shard.running(), 0);

    let mut waiting = paced(&shard, &Noted::new(ms(0)));
    assert!(timeout(ms(50), waiting.ready()).await.is_err());
    shard.shutdown(ms(0)).await;
    // For this call, and then for good.
    assert_eq!(kind(waiting.ready().await.unwrap().call(0).await.unwrap_err()), ErrorKind::Cancelled);
    assert_eq!(kind(waiting.ready().await.map(drop).unwrap_err()), ErrorKind::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_fails_while_it_waits_gives_its_place_up() {
    let (memory, state) = memory();
    let shard = open(state, INTERVAL).await;
    let inner = Noted::new(ms(0));
    paced(&shard, &inner).oneshot(0).await.unwrap();
    let mut service = paced(&shard, &inner);
    assert!(timeout(ms(50), service.ready()).await.is_err());
    assert_eq!(shard.waiting(), 1);
    inner.becomes(Poll::Ready(Err("the connection is lost")));
    assert_eq!(service.ready().await.map(drop).unwrap_err().to_string(), "the connection is lost");
    assert_eq!(shard.waiting(), 0);
    leaves_nothing(&shard, &memory).await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_queue_in_a_web_server_is_a_response() {
    let (_, state) = memory();
    let shard = open(state, INTERVAL).await;
    let paced = ServiceBuilder::new()
        .layer(HandleErrorLayer::new(async |error: BoxError| {
            (StatusCode::SERVICE_UNAVAILABLE, error.to_string())
        }))
        .layer(IntervalLayer::new(shard.clone()));
    let app: Router = Router::new().route("/", get(async || "done")).layer(paced);
    let ask = async |app: &Router| {
        let request = axum::http::Request::new(axum::body::Body::empty());
        app.clone().oneshot(request).await.unwrap().status()
    };
    let began = Instant::now();
    for _ in 0..3 {
        assert_eq!(ask(&app).await, StatusCode::OK);
    }
    assert!(began.elapsed() >= INTERVAL * 2);
    shard.close().await;
    assert_eq!(ask(&app).await, StatusCode::SERVICE_UNAVAILABLE);
}

#[tokio::test(start_paused = true)]
async fn it_stands_in_any_stack() {
    let (_, state) = memory();
    let shard = open(state, INTERVAL).await;
    let called = Arc::new(AtomicBool::new(false));
    let note = called.clone();
    let stack = ServiceBuilder::new()
        .map_request(|request: u8| usize::from(request))
        .layer(IntervalLayer::new(shard.clone()))
        .layer(IntervalLayer::new(shard).options_for(|_: &usize| JobOptions::new()))
        .service_fn(move |request: usize| {
            note.store(true, SeqCst);
            async move { Ok::<_, Infallible>(request) }
        });
    let boxed = BoxCloneSyncService::new(stack);
    let answer = tokio::spawn(boxed.oneshot(3)).await.unwrap().unwrap();
    assert_eq!((answer, called.load(SeqCst)), (3, true));
}

/// What spawns a response asks for this.
fn _responses_can_be_sent<S, R>(service: &mut Interval<S>, request: R) -> impl Future + Send + 'static
where
    S: Service<R, Error: Into<BoxError>, Future: Send> + Clone + Send + 'static,
    R: Send + 'static,
{
    service.call(request)
}
