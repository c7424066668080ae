//! A crawl that survives: the pages to fetch are stored tasks, so that any process may die at any time.
//!
//! Three processes crawl three hosts. Every page is a task, whose id is made of its address: a page that is found ten
//! times is fetched once. Links are added while a page is fetched. All processes together start one page every 15 ms,
//! and none asks the same host more often than every 40 ms. Twice a second one of the processes is killed with SIGKILL,
//! and another one begins in its place; pages that it had in hand are fetched by others once its lease has ended.
//!
//!     cargo run --features http,tasks --example durable_crawler

use std::{
    collections::{BTreeMap, VecDeque},
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
use interval_queue::{IntervalQueue, IntervalQueues};
use interval_queue_tasks::{
    Context, Order, Selector, State as Stored, Task, TaskError, TaskId, TaskQueue, Worker, connect,
};
use reqwest::{Client, Url};
use tokio::{
    net::TcpListener,
    process::{Child, Command},
    time::sleep,
};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Between two starts of all processes, and between two requests to one host.
const OVERALL: Duration = Duration::from_millis(15);
const PER_HOST: Duration = Duration::from_millis(40);
/// What a process holds is fetched by others so long after its death.
const LEASE: Duration = Duration::from_secs(2);
/// How many pages a host has.
const PAGES: usize = 40;
const KILLS: usize = 6;

#[tokio::main]
async fn main() -> Result<()> {
    match env::var("CRAWL_STORE") {
        Ok(store) => crawl(&store).await,
        Err(_) => parent().await,
    }
}

/// What handlers share.
struct Crawler {
    client: Client,
    hosts: IntervalQueues,
}

/// A page that is still to be fetched. It is added once, wherever it is found.
fn page_task(link: &str) -> Task {
    Task::new("page", link).with_id(TaskId::named(link))
}

/// What each process does, until it is killed or nothing is left.
async fn crawl(store: &str) -> Result<()> {
    let queue = TaskQueue::builder("pages").interval(OVERALL).connect(store).await?;
    let hosts = IntervalQueues::connect(store, |host| {
        IntervalQueue::builder(format!("host/{host}")).interval(PER_HOST)
    })
    .await?;
    let crawler = Crawler { client: Client::new(), hosts };
    let worker =
        Worker::builder(&queue).state(crawler).handler("page", fetch).jobs(8).lease(LEASE).build()?;
    worker.run_until_empty().await?;
    Ok(())
}

/// Fetches a page and adds what it links to. The result is how many links it has.
async fn fetch(context: Context<Crawler>, link: String) -> std::result::Result<usize, TaskError> {
    let url: Url = link.parse().map_err(TaskError::permanent)?;
    let Crawler { client, hosts } = context.state();
    // Kept until the request is answered, so that a host sees its pace.
    let turn = hosts.get(url.authority()).await?.turn().await?;
    let response = client.get(url).send().await?;
    if response.status() == StatusCode::TOO_MANY_REQUESTS {
        // That is not the fault of the page: it counts as no failure.
        return Err(TaskError::retry_after(Duration::from_millis(500)));
    }
    let text = response.error_for_status()?.text().await?;
    drop(turn);
    let links: Vec<Task> = text.lines().map(page_task).collect();
    let count = links.len();
    // Before this task is completed: if the process dies in between, the links are there, and this page is fetched again.
    context.queue().add_all(links).await?;
    Ok(count)
}

// The rest starts and kills the processes, and plays the hosts.

#[derive(Clone, Default)]
struct Host(Arc<Mutex<Seen>>);

#[derive(Default)]
struct Seen {
    fetched: BTreeMap<usize, usize>,
    times: VecDeque<Instant>,
}

async fn parent() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let url = format!("sqlite:{}?durability=relaxed", directory.path().join("crawl.db").display());
    let mut hosts = Vec::new();
    for _ in 0..3 {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let host = Host::default();
        hosts.push((format!("http://{}", listener.local_addr()?), host.clone()));
        let site = Router::new().route("/{page}", get(page)).with_state(host);
        tokio::spawn(async move { axum::serve(listener, site).await });
    }
    let queue = TaskQueue::builder("pages").interval(OVERALL).open(&connect(&url).await?).await?;
    queue.add_all(hosts.iter().map(|(host, _)| page_task(&format!("{host}/0")))).await?;

    println!("Three hosts with {PAGES} pages each, three crawlers, {KILLS} of them killed on the way\n");
    let mut crawlers = Vec::new();
    for _ in 0..3 {
        crawlers.push(start(&url)?);
    }
    for kill in 0..KILLS {
        sleep(Duration::from_millis(500)).await;
        let victim = kill % crawlers.len();
        crawlers[victim].kill().await?;
        crawlers[victim] = start(&url)?;
        println!("killed a crawler: {} of {} pages are done", count(&queue, Stored::Done).await?, 3 * PAGES);
    }
    for mut crawler in crawlers {
        if !crawler.wait().await?.success() {
            return Err("a crawler failed".into());
        }
    }

    println!();
    let (mut twice, mut missing) = (0, 0);
    for (url, Host(seen)) in &hosts {
        let seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        let gaps = seen.times.iter().zip(seen.times.iter().skip(1)).map(|(before, after)| *after - *before);
        println!(
            "{url}: {} pages, the closest two requests {:?} apart",
            seen.fetched.len(),
            gaps.min().unwrap_or_default()
        );
        twice += seen.fetched.values().filter(|times| **times > 1).count();
        missing += PAGES - seen.fetched.len();
    }
    let done = queue.page(&Selector::states([Stored::Done]), Order::Oldest, 1_000, false).await?.tasks;
    let retried = done.iter().filter(|stored| !stored.task.history.is_empty()).count();
    println!(
        "{} tasks done, {twice} pages fetched again, {retried} tasks whose history tells of a run that was lost",
        done.len()
    );
    if missing > 0 || done.len() != 3 * PAGES || twice > retried {
        return Err("a page is missing, or was fetched again and does not say why".into());
    }
    Ok(())
}

fn start(url: &str) -> Result<Child> {
    Ok(Command::new(env::current_exe()?).env("CRAWL_STORE", url).kill_on_drop(true).spawn()?)
}

async fn count(queue: &TaskQueue, state: Stored) -> Result<u64> {
    let counts = queue.overview().await?.counts;
    let wanted = interval_queue_tasks::contract::Counted::Now(state);
    Ok(counts.iter().filter(|(_, counted, _)| *counted == wanted).map(|(.., n)| n).sum())
}

/// A page: links to some others of its host, one a line.
#[allow(clippy::disallowed_methods, reason = "the hosts have a clock of their own")]
async fn page(State(Host(seen)): State<Host>, Path(number): Path<usize>, headers: HeaderMap) -> String {
    let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
    seen.times.push_back(Instant::now());
    *seen.fetched.entry(number).or_default() += 1;
    let name = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let links = [0, 2 * number + 1, 2 * number + 2, number / 2].into_iter().filter(|link| *link < PAGES);
    let links: Vec<_> = links.map(|link| format!("http://{name}/{link}")).collect();
    links.join("\n")
}
