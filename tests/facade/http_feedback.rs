//! What a response says about the rate holds for every process, and costs the caller nothing but the wait.

use std::{io, time::Duration};

use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, header::RETRY_AFTER};
use interval_queue::{
    IntervalQueue, MemoryState,
    http::{FeedbackLayer, Observer, Reset, VendorLimit},
    tower::{BoxError, IntervalLayer},
};
use interval_queue_conformance::Faulty;
use tokio::time::{Instant, sleep, timeout};
use tower::{Layer, ServiceBuilder, ServiceExt, service_fn, util::BoxCloneService};

use crate::common::{Starts, memory, ms, open, queue, shards, wired};

const SECOND: Duration = Duration::from_secs(1);

type Client = BoxCloneService<Request<()>, Response<&'static str>, BoxError>;

/// A client of a server that always answers the same, with the layer around it.
fn client(observer: Observer, status: u16, fields: &[(&'static str, &'static str)]) -> Client {
    let fields = fields.to_vec();
    let server = service_fn(move |_: Request<()>| {
        let mut response = Response::builder().status(status);
        for (name, value) in &fields {
            response = response.header(*name, *value);
        }
        async move { response.body("the body") }
    });
    let stack = ServiceBuilder::new().map_err(Into::into).layer(FeedbackLayer::new(observer)).service(server);
    BoxCloneService::new(stack)
}

/// How long until somebody may start, when the first slot is past.
async fn next_start(shard: &IntervalQueue) -> Duration {
    let began = Instant::now();
    drop(shard.turn().await.unwrap());
    began.elapsed()
}

/// For how long the record says that nobody may start.
fn held(state: &MemoryState) -> Duration {
    let record = state.snapshot(&queue()).unwrap();
    record.held_until.to_duration().saturating_sub(record.seen_at.to_duration())
}

#[tokio::test(start_paused = true)]
async fn every_process_waits_as_long_as_a_response_asks() {
    let (_, state) = memory();
    let shards = shards(2, &state, ms(10)).await;
    let retry_after = client(Observer::new(shards[0].clone()), 429, &[("retry-after", "30")]);
    let response = retry_after.oneshot(Request::new(())).await.unwrap();
    assert_eq!((response.status(), *response.body()), (StatusCode::TOO_MANY_REQUESTS, "the body"));
    assert!(next_start(&shards[1]).await >= SECOND * 30, "the other one knows");

    let used_up = client(Observer::new(shards[1].clone()), 200, &[("ratelimit", r#""default";r=0;t=7"#)]);
    assert_eq!(used_up.oneshot(Request::new(())).await.unwrap().status(), StatusCode::OK);
    assert!(next_start(&shards[0]).await >= SECOND * 7);
}

#[tokio::test(start_paused = true)]
async fn the_hold_is_in_force_when_the_response_is_there() {
    let (memory, state) = memory();
    let wire = Faulty::new(state);
    let shard = open(wire.clone(), ms(10)).await;
    wire.change(|faults| (faults.delay_before, faults.delay_after) = (ms(200), ms(200)));
    let retry_after = client(Observer::new(shard), 503, &[("retry-after", "30")]);
    retry_after.oneshot(Request::new(())).await.unwrap();
    assert!(held(&memory) > SECOND * 29);
}

#[tokio::test(start_paused = true)]
async fn a_response_without_a_request_to_wait_passes_at_once() {
    let (_, wire) = wired();
    let shard = open(wire.clone(), ms(10)).await;
    wire.change(|faults| faults.delay_before = ms(500));
    let changes = wire.counts().changes;
    for (status, fields) in [
        (200, &[("ratelimit", r#""default";r=1;t=30"#)][..]),
        (202, &[("retry-after", "30")]),
        (503, &[]),
        (200, &[("ratelimit", "what?")]),
    ] {
        let began = Instant::now();
        let response =
            client(Observer::new(shard.clone()), status, fields).oneshot(Request::new(())).await.unwrap();
        assert_eq!((response.status().as_u16(), began.elapsed()), (status, Duration::ZERO));
    }
    let failing = service_fn(async |_: Request<()>| Err::<Response<()>, _>(io::Error::other("no route")));
    let failing = FeedbackLayer::new(Observer::new(shard)).layer(failing);
    assert_eq!(failing.oneshot(Request::new(())).await.unwrap_err().to_string(), "no route");
    assert_eq!(wire.counts().changes, changes, "nobody was held");
}

#[tokio::test(start_paused = true)]
async fn a_state_that_fails_costs_the_caller_a_second_at_most() {
    for outage in [true, false] {
        let (memory, state) = memory();
        let wire = Faulty::new(state);
        let shard = open(wire.clone(), ms(10)).await;
        wire.change(|faults| (faults.outage, faults.delay_before) = (outage, ms(4_000)));
        let began = Instant::now();
        let response =
            client(Observer::new(shard), 429, &[("retry-after", "30")]).oneshot(Request::new(())).await;
        assert_eq!(response.unwrap().status(), StatusCode::TOO_MANY_REQUESTS);
        assert!(began.elapsed() <= SECOND, "outage: {outage}");
        // What is only slow comes into force when it has arrived.
        sleep(ms(5_000)).await;
        assert_eq!(held(&memory) > Duration::ZERO, !outage);
    }
}

#[tokio::test(start_paused = true)]
async fn a_hold_is_given_although_nobody_wants_the_response_any_more() {
    let (memory, state) = memory();
    let wire = Faulty::new(state);
    let shard = open(wire.clone(), ms(10)).await;
    wire.change(|faults| faults.delay_before = ms(500));
    let response = client(Observer::new(shard), 429, &[("retry-after", "30")]).oneshot(Request::new(()));
    assert!(timeout(ms(100), response).await.is_err());
    sleep(SECOND).await;
    assert!(held(&memory) > Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn the_next_of_all_requests_starts_after_the_hold() {
    let (_, state) = memory();
    let builder = IntervalQueue::builder("test").interval(ms(10)).max_running(1);
    let shard = builder.open(state).await.unwrap();
    let starts = Starts::new();
    let noted = starts.clone();
    let server = service_fn(move |request: usize| {
        noted.note(request);
        async { Response::builder().status(429).header(RETRY_AFTER, "2").body(()) }
    });
    let client = ServiceBuilder::new()
        .layer(IntervalLayer::new(shard.clone()))
        .layer(FeedbackLayer::new(Observer::new(shard)))
        .service(server);
    futures::future::join_all((0..5).map(|request| client.clone().oneshot(request))).await;
    assert!(starts.gaps().iter().all(|gap| *gap >= SECOND * 2), "{:?}", starts.gaps());
}

#[tokio::test(start_paused = true)]
async fn responses_are_observed_without_a_layer_and_within_bounds() {
    let (memory, state) = memory();
    let shard = open(state, ms(10)).await;
    let observer = Observer::new(shard).floor(SECOND * 2).cap(SECOND * 60);
    let observe = async |status: u16, value: &'static str| {
        let headers = HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_static(value))]);
        let asked = observer.observe(StatusCode::from_u16(status).unwrap(), &headers).await;
        (asked, held(&memory))
    };
    assert_eq!(observe(200, "30").await, (None, Duration::ZERO));
    assert_eq!(observe(429, "never").await, (Some(SECOND * 2), SECOND * 2));
    assert_eq!(observe(429, "30").await, (Some(SECOND * 30), SECOND * 30));
    assert_eq!(observe(503, "31536000").await, (Some(SECOND * 60), SECOND * 60));
    // A longer one that is in force stays.
    assert_eq!(observe(429, "1").await, (Some(SECOND * 2), SECOND * 60));
}

#[tokio::test(start_paused = true)]
async fn a_hold_beyond_the_maximum_is_shortened_to_it() {
    const LONGEST: Duration = Duration::from_secs(366 * 24 * 3600);
    let (hour, endless) = (SECOND * 3600, Duration::MAX);
    for (floor, cap, retry_after, hold) in [
        (SECOND, endless, "99999999999", LONGEST),
        (SECOND, LONGEST + Duration::from_nanos(1), "99999999999", LONGEST),
        (SECOND, endless, "31536000", SECOND * 31_536_000),
        (endless, hour, "1", LONGEST),
        (endless, endless, "1", LONGEST),
        (hour * 2, hour, "1", hour * 2),
    ] {
        let (memory, state) = memory();
        let observer = Observer::new(open(state, ms(10)).await).floor(floor).cap(cap);
        let headers = HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_static(retry_after))]);
        let asked = observer.observe(StatusCode::TOO_MANY_REQUESTS, &headers).await;
        assert_eq!((asked, held(&memory)), (Some(hold), hold), "{floor:?} to {cap:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_date_counts_by_the_clock_of_who_wrote_it() {
    let (memory, state) = memory();
    let shard = open(state, ms(10)).await;
    // Whatever the year is here.
    let fields =
        [("date", "Sun, 06 Nov 1994 08:49:37 GMT"), ("retry-after", "Sun, 06 Nov 1994 08:50:07 GMT")];
    client(Observer::new(shard), 429, &fields).oneshot(Request::new(())).await.unwrap();
    assert_eq!(held(&memory), SECOND * 30);
}

#[tokio::test(start_paused = true)]
async fn responses_of_other_types_are_read_with_a_function() {
    struct Answer(StatusCode, HeaderMap);
    let (memory, state) = memory();
    let shard = open(state, ms(10)).await;
    let server =
        service_fn(async |()| Ok::<_, io::Error>(Answer(StatusCode::TOO_MANY_REQUESTS, HeaderMap::new())));
    let layer = FeedbackLayer::new(Observer::new(shard)).head(|answer: &Answer| (answer.0, &answer.1));
    let answer = layer.layer(server).oneshot(()).await.unwrap();
    assert_eq!(answer.0, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(held(&memory), SECOND);
}

#[tokio::test(start_paused = true)]
async fn configured_fields_hold_and_the_longest_counts() {
    let fields = [("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "20"), ("x-tokens-left", "0")];
    let tokens = VendorLimit::new(
        HeaderName::from_static("x-tokens-left"),
        HeaderName::from_static("x-tokens-reset-ms"),
        Reset::InMilliseconds,
    );
    for (told, reset, hold) in [(false, "90000", 0), (true, "90000", 90), (true, "7", 20)] {
        let (_, state) = memory();
        let shards = shards(2, &state, ms(10)).await;
        let mut observer = Observer::new(shards[0].clone());
        if told {
            observer = observer.vendor(VendorLimit::x_rate_limit(Reset::InSeconds)).vendor(tokens.clone());
        }
        let fields: Vec<_> = fields.into_iter().chain([("x-tokens-reset-ms", reset)]).collect();
        client(observer, 200, &fields).oneshot(Request::new(())).await.unwrap();
        let waited = next_start(&shards[1]).await;
        assert!(waited >= SECOND * hold && waited < SECOND * (hold + 1), "{told} {reset}: {waited:?}");
    }
}
