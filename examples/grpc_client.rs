//! Several processes call a gRPC service with tonic, at one pace.
//!
//! The program starts a local server of the gRPC health protocol that allows so many calls in any two
//! seconds, and four clients in processes of their own. A generated client takes any tower service as its
//! channel, so the queue goes in between: nothing else of the client changes.
//!
//!     cargo run --features grpc --example grpc_client

use std::{
    collections::VecDeque,
    env,
    process::Command,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use futures::{
    future::{join, try_join_all},
    stream::{self, TryStreamExt},
};
use interval_queue::{
    IntervalQueue,
    tower::{BoxError, IntervalLayer},
};
use tonic::{
    Request, Status,
    service::interceptor::InterceptedService,
    transport::{Endpoint, Server, server::TcpIncoming},
};
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};
use tower::ServiceBuilder;

/// The server allows this many calls in any [`WINDOW`].
const LIMIT: usize = 40;
const WINDOW: Duration = Duration::from_secs(2);
/// [`WINDOW`] / [`LIMIT`] is 50 ms. The half that is added is the margin for calls that arrive later or
/// earlier than others: what starts within the window and 0.9 s may arrive within one window. See the example
/// `reqwest_client` for how to choose it.
const INTERVAL: Duration = Duration::from_millis(75);
const CLIENTS: [&str; 4] = ["A", "B", "C", "D"];
const CALLS: usize = 20;

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    match (env::var("GRPC_URL"), env::var("GRPC_STATE"), env::var("GRPC_CLIENT")) {
        (Ok(url), Ok(state), Ok(name)) => client(url, &state, &name).await,
        _ => server_and_clients().await,
    }
}

/// What each client does.
async fn client(url: String, state: &str, name: &str) -> Result<(), BoxError> {
    let queue = IntervalQueue::builder("grpc").interval(INTERVAL).label(name).connect(state).await?;
    let channel = Endpoint::from_shared(url)?.connect().await?;
    let paced = ServiceBuilder::new().layer(IntervalLayer::new(queue.clone())).service(channel);
    let health = HealthClient::new(paced);

    // Three at a time, as fast as they get their slots: each clone of the client waits for one of its own.
    let calls = stream::iter((0..CALLS).map(Ok));
    calls
        .try_for_each_concurrent(3, async |_| {
            let mut request = Request::new(HealthCheckRequest::default());
            request.metadata_mut().insert("client", name.parse()?);
            health.clone().check(request).await?;
            Ok::<_, BoxError>(())
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
    /// Who called since this was last shown.
    callers: String,
}

type Shared = Arc<Mutex<Seen>>;

fn lock(seen: &Shared) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lets a call in, or not.
#[allow(clippy::disallowed_methods, reason = "the server has a clock of its own")]
#[allow(clippy::result_large_err, reason = "tonic's interceptors fail with its status")]
fn let_in(seen: &Shared, request: Request<()>) -> Result<Request<()>, Status> {
    let now = Instant::now();
    let mut seen = lock(seen);
    while seen.recent.front().is_some_and(|call| now.duration_since(*call) >= WINDOW) {
        seen.recent.pop_front();
    }
    seen.recent.push_back(now);
    seen.most_in_a_window = seen.most_in_a_window.max(seen.recent.len());
    let caller = request.metadata().get("client").and_then(|name| name.to_str().ok());
    seen.callers += caller.unwrap_or("?");
    if seen.recent.len() > LIMIT {
        seen.refused += 1;
        return Err(Status::resource_exhausted("too many calls"));
    }
    seen.answered += 1;
    Ok(request)
}

async fn server_and_clients() -> Result<(), BoxError> {
    let seen = Shared::default();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    let (_reporter, health) = tonic_health::server::health_reporter();
    let doorkeeper = seen.clone();
    let health = InterceptedService::new(health, move |request| let_in(&doorkeeper, request));
    let server = tokio::spawn(Server::builder().serve_with_incoming(health, TcpIncoming::from(listener)));
    println!("A gRPC server at {url} allows {LIMIT} calls in any {WINDOW:?}.");
    println!(
        "Processes A, B, C and D make {CALLS} calls each, one every {INTERVAL:?}. Who called, second by second:\n"
    );

    let directory = tempfile::tempdir()?;
    let state = format!("file:{}", directory.path().join("pace.json").display());
    let mut clients = Vec::new();
    for name in CLIENTS {
        let mut client = Command::new(env::current_exe()?);
        client.env("GRPC_URL", &url).env("GRPC_STATE", &state).env("GRPC_CLIENT", name);
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
        "\n{} of {} calls answered, {} refused; at most {} in any {WINDOW:?}",
        seen.answered,
        CLIENTS.len() * CALLS,
        seen.refused,
        seen.most_in_a_window,
    );
    let failed = ended?.into_iter().find(|status| !status.success());
    if let Some(status) = failed {
        return Err(format!("a client ended with {status}").into());
    }
    if seen.answered != CLIENTS.len() * CALLS || seen.refused > 0 {
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
