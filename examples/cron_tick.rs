//! Shards that went idle in a pause are restarted by a tick from outside: a signal, or a call that cron
//! makes.
//!
//! The program starts two services on one JSON file, with wake-ups off. An operator pauses the queue, so both
//! go idle: no timer, no task, no I/O. After the resume they do not know yet; the tick tells them. In production
//! a crontab line does it:
//!
//!     * * * * *  pkill -USR1 my-service
//!     * * * * *  curl -fsS -X POST http://127.0.0.1:8080/tick
//!
//!     cargo run --features http --example cron_tick

use std::{
    env,
    error::Error,
    process::Stdio,
    time::{Duration, Instant},
};

use axum::{Router, routing::post};
use interval_queue::{IntervalQueue, WakeUps};
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    process::{Child, ChildStdout, Command},
    signal::unix::{SignalKind, signal},
    time::sleep,
};

const INTERVAL: Duration = Duration::from_millis(100);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    match (env::var("TICK_NAME"), env::var("TICK_STATE")) {
        (Ok(name), Ok(state)) => service(&name, &state).await,
        _ => operator().await,
    }
}

/// A service: adds its jobs and passes every tick on to its queue.
async fn service(name: &str, state: &str) -> Result<(), Box<dyn Error>> {
    let builder = IntervalQueue::builder("tick").interval(INTERVAL).label(name).wake_ups(WakeUps::Off);
    let queue = builder.connect(state).await?;

    // A tick by HTTP: POST /tick.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("listening http://{}/tick", listener.local_addr()?);
    let ticked = queue.clone();
    let tick = post(async move || {
        let tick = ticked.tick().await;
        format!("{} jobs wait{}\n", tick.waiting, if tick.paused { ", paused" } else { "" })
    });
    tokio::spawn(async move { axum::serve(listener, Router::new().route("/tick", tick)).await });

    // A tick by signal: kill -USR1.
    let mut signals = signal(SignalKind::user_defined1())?;
    let ticked = queue.clone();
    tokio::spawn(async move {
        while signals.recv().await.is_some() {
            ticked.start();
        }
    });

    for number in 1..=20 {
        queue.add(async move { println!("job {number}") }).await?;
    }
    queue.wait_idle().await;
    println!("done");
    Ok(())
}

/// A service as the operator sees it.
struct Service {
    name: &'static str,
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    url: String,
    jobs: usize,
}

impl Service {
    async fn start(name: &'static str, state: &str) -> Result<Self, Box<dyn Error>> {
        let mut child = Command::new(env::current_exe()?)
            .env("TICK_NAME", name)
            .env("TICK_STATE", state)
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let mut lines = BufReader::new(child.stdout.take().ok_or("no stdout")?).lines();
        let first = lines.next_line().await?.unwrap_or_default();
        let url = first.strip_prefix("listening ").ok_or("the service does not listen")?.to_owned();
        Ok(Self { name, child, lines, url, jobs: 0 })
    }

    /// Takes in what it says for a while; true once it is done.
    async fn listen(&mut self, time: Duration) -> Result<bool, Box<dyn Error>> {
        let deadline = sleep(time);
        tokio::pin!(deadline);
        loop {
            tokio::select! {
                () = &mut deadline => return Ok(false),
                line = self.lines.next_line() => match line?.as_deref() {
                    Some("done") => return Ok(true),
                    Some(_) => self.jobs += 1,
                    None => return Err(format!("service {} ended early", self.name).into()),
                },
            }
        }
    }
}

#[allow(clippy::disallowed_methods, reason = "the example shows how time passes")]
async fn operator() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let state = format!("file:{}", directory.path().join("pace.json").display());
    let began = Instant::now();
    let say = |text: String| println!("{:5.1} s  {text}", began.elapsed().as_secs_f64());

    let (mut a, mut b) = tokio::try_join!(Service::start("a", &state), Service::start("b", &state))?;
    a.listen(Duration::from_secs(1)).await?;
    b.listen(Duration::ZERO).await?;

    let queue = IntervalQueue::builder("tick").interval(INTERVAL).label("operator").connect(&state).await?;
    queue.pause().await?;
    a.listen(interval_queue::MAX_LEAD.to_duration()).await?;
    b.listen(Duration::from_millis(100)).await?;
    say(format!("paused after {} jobs of a and {} of b", a.jobs, b.jobs));

    let before = a.jobs + b.jobs;
    queue.resume().await?;
    a.listen(Duration::from_millis(500)).await?;
    b.listen(Duration::from_millis(500)).await?;
    say(format!(
        "resumed, and {} jobs started: the services are idle until somebody ticks",
        a.jobs + b.jobs - before
    ));

    let pid = a.child.id().ok_or("service a has ended")?;
    tick_by_signal(pid).await?;
    say(format!("kill -USR1 {pid}"));
    let answer = reqwest::Client::new().post(&b.url).send().await?.text().await?;
    say(format!("POST {} answers: {}", b.url, answer.trim()));

    let patience = Duration::from_secs(60);
    if !(a.listen(patience).await? && b.listen(patience).await?) {
        return Err("the services did not finish".into());
    }
    say(format!("all {} jobs are done", a.jobs + b.jobs));
    if a.jobs + b.jobs != 40 {
        return Err("jobs were lost".into());
    }
    Ok(())
}

async fn tick_by_signal(pid: u32) -> Result<(), Box<dyn Error>> {
    let status = Command::new("sh").args(["-c", &format!("kill -USR1 {pid}")]).status().await?;
    if status.success() { Ok(()) } else { Err("the signal could not be sent".into()) }
}
