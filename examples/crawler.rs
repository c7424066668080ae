//! A polite crawler: a pace for each host, shared by all processes that crawl.
//!
//! Two processes crawl three hosts. A host stands ten requests a second, whoever sends them, and turns away
//! more than 26 in two seconds. The hosts are found while crawling, so each gets a queue of its own when its
//! first link comes up: `IntervalQueues`. One of the hosts is a trap whose every page links to a new one:
//! after some pages the crawler cancels all that waits for it at once, by its group, and gives the other
//! hosts its time.
//!
//!     cargo run --features http --example crawler

use std::{
    collections::{HashMap, HashSet, VecDeque},
    env,
    error::Error,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use axum::{
    Router,
    extract::{Path, State},
    http::{HeaderMap, StatusCode, header::HOST},
    routing::get,
};
use futures::{StreamExt, stream::FuturesUnordered};
use interval_queue::{ErrorKind, IntervalQueue, IntervalQueues, JobGroup, JobOptions};
use reqwest::{Client, Url};
use tokio::{net::TcpListener, process::Command};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

const INTERVAL: Duration = Duration::from_millis(100);
const WINDOW: Duration = Duration::from_secs(2);
const MOST: usize = 26;
/// How many pages of one host are enough for one process.
const ENOUGH: usize = 20;
/// How many pages a tree has.
const TREE: usize = 12;

#[tokio::main]
async fn main() -> Result<()> {
    match (env::var("CRAWL_STATE"), env::var("CRAWL_FROM")) {
        (Ok(state), Ok(from)) => crawl(&state, &from).await,
        _ => parent().await,
    }
}

/// What each process does: follow every link, each host at its pace.
async fn crawl(state: &str, from: &str) -> Result<()> {
    let hosts = IntervalQueues::connect(state, |host| {
        IntervalQueue::builder(format!("host/{host}")).interval(INTERVAL)
    })
    .await?;
    let client = Client::new();
    let mut seen = HashSet::new();
    let mut groups: HashMap<String, (JobGroup, usize)> = HashMap::new();
    let mut pages = FuturesUnordered::new();
    let mut links: Vec<String> = from.split(' ').map(str::to_owned).collect();
    loop {
        for link in links.drain(..).filter(|link| seen.insert(link.clone())) {
            let url: Url = link.parse()?;
            let host = url.authority().to_owned();
            let (group, _) = groups.entry(host.clone()).or_default();
            pages.push(fetch(&hosts, host, client.clone(), url, JobOptions::new().group(group)));
        }
        let Some((host, page)) = pages.next().await else { break };
        let Some(page) = page? else { continue };
        links.extend(page.lines().map(str::to_owned));
        let (group, fetched) = groups.entry(host.clone()).or_default();
        *fetched += 1;
        if *fetched >= ENOUGH && !group.is_cancelled() {
            println!("enough of {host}: {} links are left alone", group.cancel());
        }
    }
    let fetched: usize = groups.values().map(|(_, fetched)| fetched).sum();
    println!("{fetched} pages of {} hosts", groups.len());
    hosts.close().await;
    Ok(())
}

/// The page at the slot of its host; none if its group was cancelled.
async fn fetch(
    hosts: &IntervalQueues,
    host: String,
    client: Client,
    url: Url,
    options: JobOptions,
) -> (String, Result<Option<String>>) {
    let page = async {
        let queue = hosts.get(&host).await?;
        let job = async move { client.get(url).send().await?.error_for_status()?.text().await };
        match queue.job(job).options(options).add().await {
            Ok(job) => job.await,
            Err(error) => Err(error),
        }
        .map(Some)
        .or_else(|error| if error.kind() == ErrorKind::Cancelled { Ok(None) } else { Err(error) })?
        .transpose()
        .map_err(Into::into)
    };
    let page = page.await;
    (host, page)
}

// The rest starts the processes and plays the hosts.

#[derive(Clone, Default)]
struct Host {
    is_trap: bool,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    pages: usize,
    refused: usize,
    peak: usize,
    latest: VecDeque<Instant>,
}

async fn parent() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let state = format!("file:{}", directory.path().join("crawl.json").display());
    let mut hosts = Vec::new();
    for is_trap in [false, false, true] {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let host = Host { is_trap, ..Host::default() };
        hosts.push((format!("http://{}", listener.local_addr()?), host.clone()));
        let site = Router::new().route("/{tree}/{page}", get(page)).with_state(host);
        tokio::spawn(async move { axum::serve(listener, site).await });
    }
    println!(
        "Three hosts that stand {MOST} requests in {WINDOW:?}, and two crawlers at one every {INTERVAL:?} for each\n"
    );
    let mut children = Vec::new();
    for tree in ["oak", "elm"] {
        let from: Vec<_> = hosts.iter().map(|(url, _)| format!("{url}/{tree}/0")).collect();
        let mut command = Command::new(env::current_exe()?);
        command.env("CRAWL_STATE", &state).env("CRAWL_FROM", from.join(" "));
        children.push(command.kill_on_drop(true).spawn()?);
    }
    for mut child in children {
        if !child.wait().await?.success() {
            return Err("a crawler failed".into());
        }
    }
    println!();
    for (url, host) in hosts {
        let seen = host.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let (pages, peak, refused) = (seen.pages, seen.peak, seen.refused);
        println!("{url}: {pages} pages, at most {peak} in {WINDOW:?}, {refused} turned away");
        let expected = if host.is_trap { pages >= 2 * ENOUGH } else { pages == 2 * TREE };
        if refused > 0 || !expected {
            return Err("a host saw more than it stands, or not everything".into());
        }
    }
    Ok(())
}

/// A page: the links on it, one a line. A tree is finite, the trap is not.
#[allow(clippy::disallowed_methods, reason = "the hosts have a clock of their own")]
async fn page(
    State(host): State<Host>,
    Path((tree, number)): Path<(String, usize)>,
    headers: HeaderMap,
) -> (StatusCode, String) {
    let now = Instant::now();
    let mut seen = host.seen.lock().unwrap_or_else(PoisonError::into_inner);
    seen.latest.retain(|at| now - *at < WINDOW);
    if seen.latest.len() >= MOST {
        seen.refused += 1;
        return (StatusCode::TOO_MANY_REQUESTS, String::new());
    }
    seen.latest.push_back(now);
    seen.peak = seen.peak.max(seen.latest.len());
    seen.pages += 1;
    let name = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let links = [2 * number + 1, 2 * number + 2].into_iter().filter(|link| host.is_trap || *link < TREE);
    let links: Vec<_> = links.map(|link| format!("http://{name}/{tree}/{link}")).collect();
    (StatusCode::OK, links.join("\n"))
}
