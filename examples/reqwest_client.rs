//! Several processes call an HTTP API with reqwest, through a stack of tower layers that keeps to the API's
//! limit.
//!
//! The program starts a local server that allows so many calls in any two seconds and answers 429 with
//! `Retry-After` beyond, and three clients in processes of their own. None of them ever hears the 429. Once
//! the server asks for two seconds of quiet, in a 503 with `Retry-After`: one process hears it, and all keep
//! still.
//!
//!     cargo run --features http --example reqwest_client

use std::{
    collections::VecDeque,
    env,
    process::Command,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use axum::{
    Router,
    extract::{Path, State},
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header::RETRY_AFTER},
    routing::get,
};
use futures::{
    future::{join, try_join_all},
    stream::{self, TryStreamExt},
};
use interval_queue::{
    IntervalQueue,
    http::{FeedbackLayer, Observer},
    tower::{BoxError, IntervalLayer},
};
use tower::{ServiceBuilder, ServiceExt};

/// The server allows this many calls in any [`WINDOW`].
const LIMIT: usize = 20;
const WINDOW: Duration = Duration::from_secs(2);
/// N calls in any window W want an interval of W / N, here 100 ms, if each call took the same time to arrive.
/// They do not: what starts within W and a jitter J can arrive within W, which wants (W + J) / (N − 1). The
/// half that is added here pays for a jitter of 0.85 s, so that a busy machine does not matter. Between two
/// data centres a twentieth is plenty; a service that answers with `RateLimit` or `Retry-After` corrects what
/// was chosen too short.
const INTERVAL: Duration = Duration::from_millis(150);
const CLIENTS: [&str; 3] = ["A", "B", "C"];
const CALLS: usize = 14;
/// After so many calls the server asks for quiet.
const CALLS_BEFORE_QUIET: usize = 20;
const QUIET: Duration = Duration::from_secs(2);

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    match (env::var("API_URL"), env::var("API_STATE")) {
        (Ok(url), Ok(state)) => client(&url, &state).await,
        _ => server_and_clients().await,
    }
}

/// What each client does.
async fn client(url: &str, state: &str) -> Result<(), BoxError> {
    // One call at a time over all processes: so the one that is asked to wait holds the queue before there is
    // another.
    let queue = IntervalQueue::builder("api").interval(INTERVAL).max_running(1).connect(state).await?;
    let http = reqwest::Client::builder().no_proxy().build()?;
    let feedback = FeedbackLayer::new(Observer::new(queue.clone()))
        .head(|response: &reqwest::Response| (response.status(), response.headers()));
    let api = ServiceBuilder::new()
        .layer(IntervalLayer::new(queue.clone())) // waits for its slot
        .layer(feedback) // makes all wait if the response asks for it
        .service(http.clone());

    // Three at a time, as fast as they get their slots.
    let calls = stream::iter((0..CALLS).map(Ok));
    calls
        .try_for_each_concurrent(3, async |_| {
            loop {
                let response = api.clone().oneshot(http.get(url).build()?).await?;
                if response.status() != StatusCode::SERVICE_UNAVAILABLE {
                    return response.error_for_status().map(drop).map_err(BoxError::from);
                }
            }
        })
        .await?;
    queue.close().await;
    Ok(())
}

// The rest is the server, and what it has seen.

#[derive(Default)]
struct Seen {
    /// Calls of the last window.
    recent: VecDeque<Instant>,
    most_in_a_window: usize,
    answered: usize,
    refused: usize,
    /// Until when the server wants quiet, once it does.
    quiet_until: Option<Instant>,
    while_quiet: usize,
    /// Who called since this was last shown.
    callers: String,
}

type Shared = Arc<Mutex<Seen>>;

fn lock(seen: &Shared) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

#[allow(clippy::disallowed_methods, reason = "the server has a clock of its own")]
async fn call(State(seen): State<Shared>, Path(client): Path<String>) -> (StatusCode, HeaderMap) {
    let now = Instant::now();
    let mut seen = lock(&seen);
    while seen.recent.front().is_some_and(|call| now.duration_since(*call) >= WINDOW) {
        seen.recent.pop_front();
    }
    seen.recent.push_back(now);
    seen.most_in_a_window = seen.most_in_a_window.max(seen.recent.len());
    seen.callers += &client;
    seen.callers.push(' ');

    if seen.quiet_until.is_some_and(|until| now < until) {
        seen.while_quiet += 1;
    }
    if seen.answered == CALLS_BEFORE_QUIET && seen.quiet_until.is_none() {
        seen.quiet_until = Some(now + QUIET);
        seen.callers += "(told to wait) ";
        return (StatusCode::SERVICE_UNAVAILABLE, wait(QUIET));
    }
    if seen.recent.len() > LIMIT {
        seen.refused += 1;
        return (StatusCode::TOO_MANY_REQUESTS, wait(WINDOW));
    }
    seen.answered += 1;
    let reset = WINDOW.saturating_sub(now.duration_since(seen.recent[0])).as_secs_f64().ceil();
    let left = format!(r#""calls";r={};t={reset}"#, LIMIT - seen.recent.len());
    let fields = HeaderValue::try_from(left).map(|left| (HeaderName::from_static("ratelimit"), left));
    (StatusCode::OK, fields.into_iter().collect())
}

fn wait(duration: Duration) -> HeaderMap {
    HeaderMap::from_iter([(RETRY_AFTER, duration.as_secs().into())])
}

async fn server_and_clients() -> Result<(), BoxError> {
    let seen = Shared::default();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    let app = Router::new().route("/{client}", get(call)).with_state(seen.clone());
    let server = tokio::spawn(async move { axum::serve(listener, app).await });
    println!("A server at {url} allows {LIMIT} calls in any {WINDOW:?}.");
    println!(
        "Processes A, B and C make {CALLS} calls each, one every {INTERVAL:?}. Who called, second by second:\n"
    );

    let directory = tempfile::tempdir()?;
    let state = format!("file:{}", directory.path().join("pace.json").display());
    let mut clients = Vec::new();
    for name in CLIENTS {
        let mut client = Command::new(env::current_exe()?);
        client.env("API_URL", format!("{url}/{name}")).env("API_STATE", &state);
        clients.push(tokio::process::Command::from(client).kill_on_drop(true).spawn()?);
    }
    let done = Arc::new(tokio::sync::Notify::new());
    let all = async {
        let ended = try_join_all(clients.iter_mut().map(|client| client.wait())).await;
        done.notify_one();
        ended
    };
    let (ended, ()) = join(all, show(&seen, &done)).await;
    server.abort();

    let seen = lock(&seen);
    println!(
        "\n{} of {} calls answered, {} refused; at most {} in any {WINDOW:?}; {} while the server wanted quiet",
        seen.answered,
        CLIENTS.len() * CALLS,
        seen.refused,
        seen.most_in_a_window,
        seen.while_quiet,
    );
    let failed = ended?.into_iter().find(|status| !status.success());
    if let Some(status) = failed {
        return Err(format!("a client ended with {status}").into());
    }
    let asked_for_quiet = seen.quiet_until.is_some();
    if seen.answered != CLIENTS.len() * CALLS || seen.refused > 0 || seen.while_quiet > 0 || !asked_for_quiet
    {
        return Err("the limit was broken".into());
    }
    Ok(())
}

/// Prints who called in each second, until the clients are done.
async fn show(seen: &Shared, done: &tokio::sync::Notify) {
    let mut seconds = tokio::time::interval(Duration::from_secs(1));
    seconds.tick().await;
    for second in 1.. {
        let last = tokio::select! {
            _ = seconds.tick() => false,
            () = done.notified() => true,
        };
        println!("{second:4} s   {}", std::mem::take(&mut lock(seen).callers));
        if last {
            break;
        }
    }
}
