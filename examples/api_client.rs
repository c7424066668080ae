//! Several processes call an API that allows ten calls a second, and none is ever turned away.
//!
//! The program starts a local HTTP server that really enforces the limit and answers 429 with `Retry-After`
//! beyond it, and three clients in processes of their own that share one queue. One of them breaks the rules
//! on purpose: it makes a burst of calls past the queue, is answered 429, and holds the queue for everybody
//! as long as the server asks.
//!
//!     cargo run --features http --example api_client

use std::{
    collections::VecDeque,
    env,
    error::Error,
    process::Command,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use axum::{
    Router,
    extract::{Path, State},
    http::{HeaderMap, HeaderValue, StatusCode, header::RETRY_AFTER},
    routing::get,
};
use interval_queue::IntervalQueue;

/// The server allows this many calls in any second.
const LIMIT: usize = 10;
/// A tenth below the limit: the margin for what the network and timers add to the distance of two starts.
const INTERVAL: Duration = Duration::from_millis(110);
const CLIENTS: usize = 3;
const CALLS: usize = 20;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    match (env::var("API_URL"), env::var("API_STATE"), env::var("API_CLIENT")) {
        (Ok(url), Ok(state), Ok(number)) => client(&url, &state, number.parse()?).await,
        _ => server_and_clients().await,
    }
}

/// What each client does.
async fn client(url: &str, state: &str, number: usize) -> Result<(), Box<dyn Error>> {
    let http = reqwest::Client::new();
    // One call at a time over all processes, so that whoever is told to wait can hold the queue before the
    // next call.
    let queue = IntervalQueue::builder("api").interval(INTERVAL).max_running(1).connect(state).await?;
    for n in 0..CALLS {
        if number == 0 && n == CALLS / 2 {
            break_the_limit(&http, url, &queue).await?;
        }
        loop {
            let turn = queue.turn().await?;
            let response = http.get(format!("{url}/paced/{number}-{n}")).send().await?;
            if response.status() != StatusCode::TOO_MANY_REQUESTS {
                response.error_for_status()?;
                break;
            }
            queue.hold(retry_after(&response)).await?;
            drop(turn);
        }
    }
    queue.close().await;
    Ok(())
}

/// Calls past the queue until the server objects, then makes every process wait.
async fn break_the_limit(
    http: &reqwest::Client,
    url: &str,
    queue: &IntervalQueue,
) -> Result<(), Box<dyn Error>> {
    let turn = queue.turn().await?;
    loop {
        let response = http.get(format!("{url}/provoked/burst")).send().await?;
        if response.status() == StatusCode::TOO_MANY_REQUESTS {
            let wait = retry_after(&response);
            println!("client 0 went past the queue and was answered 429: it holds the queue for {wait:?}");
            queue.hold(wait).await?;
            drop(turn);
            return Ok(());
        }
    }
}

/// How long the server asks to wait; a second if it does not say.
fn retry_after(response: &reqwest::Response) -> Duration {
    let seconds = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
    Duration::from_secs(seconds.unwrap_or(1))
}

/// What the server has seen.
#[derive(Default)]
struct Seen {
    recent: VecDeque<Instant>,
    answered: usize,
    refused: usize,
    refused_on_purpose: usize,
}

#[allow(clippy::disallowed_methods, reason = "the server has a clock of its own")]
async fn call(
    State(seen): State<Arc<Mutex<Seen>>>,
    Path((kind, name)): Path<(String, String)>,
) -> (StatusCode, HeaderMap, String) {
    let now = Instant::now();
    let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
    while seen.recent.front().is_some_and(|call| now.duration_since(*call) >= Duration::from_secs(1)) {
        seen.recent.pop_front();
    }
    if seen.recent.len() < LIMIT {
        seen.recent.push_back(now);
        seen.answered += usize::from(kind == "paced");
        return (StatusCode::OK, HeaderMap::new(), format!("answer to {name}"));
    }
    match kind.as_str() {
        "provoked" => seen.refused_on_purpose += 1,
        _ => seen.refused += 1,
    }
    let wait = HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_static("2"))]);
    (StatusCode::TOO_MANY_REQUESTS, wait, String::new())
}

async fn server_and_clients() -> Result<(), Box<dyn Error>> {
    let seen = Arc::new(Mutex::new(Seen::default()));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    let app = Router::new().route("/{kind}/{name}", get(call)).with_state(seen.clone());
    let server = tokio::spawn(async move { axum::serve(listener, app).await });
    println!("A server at {url} allows {LIMIT} calls in any second.");
    println!("{CLIENTS} processes make {CALLS} calls each through one queue, one every {INTERVAL:?}.\n");

    let directory = tempfile::tempdir()?;
    let state = format!("file:{}", directory.path().join("pace.json").display());
    let began = tokio::time::sleep(Duration::ZERO).deadline();
    let mut clients = Vec::new();
    for number in 0..CLIENTS {
        let mut client = Command::new(env::current_exe()?);
        client.env("API_URL", &url).env("API_STATE", &state).env("API_CLIENT", number.to_string());
        clients.push(tokio::process::Command::from(client).kill_on_drop(true).spawn()?);
    }
    let mut tick = tokio::time::interval(Duration::from_secs(2));
    let all = async {
        for client in &mut clients {
            let status = client.wait().await?;
            if !status.success() {
                return Err(format!("a client ended with {status}").into());
            }
        }
        Ok::<(), Box<dyn Error>>(())
    };
    tokio::pin!(all);
    loop {
        tokio::select! {
            done = &mut all => break done?,
            now = tick.tick() => {
                let answered = seen.lock().unwrap_or_else(PoisonError::into_inner).answered;
                println!("{:4.1} s  {answered:3} of {} calls answered", (now - began).as_secs_f64(), CLIENTS * CALLS);
            }
        }
    }
    server.abort();
    let seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
    println!(
        "\n{} of {} calls answered, {} refused; {} refused that were provoked on purpose",
        seen.answered,
        CLIENTS * CALLS,
        seen.refused,
        seen.refused_on_purpose
    );
    if seen.answered != CLIENTS * CALLS || seen.refused > 0 || seen.refused_on_purpose != 1 {
        return Err("the limit was broken".into());
    }
    Ok(())
}
