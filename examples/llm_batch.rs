//! A batch for a model endpoint that limits both requests and tokens, from several processes.
//!
//! The endpoint takes ten requests and a thousand tokens a second. That is two queues: one with an interval
//! of 100 ms for each request, and one with an interval of 1 ms for each *token*, in which a prompt weighs as
//! much as it has tokens. A prompt starts when both have a slot for it: `Limits`. Long prompts so wait for
//! tokens and short ones for requests, and neither queue wastes what the other one has not got.
//!
//! The endpoint counts in windows of two seconds and refuses whatever is more than a fifth above that, plus
//! one prompt of the longest kind: a heavy job has its tokens at its start, and those behind it wait. If it
//! refuses all the same, `Retry-After` holds everybody.
//!
//!     cargo run --features http --example llm_batch

use std::{
    collections::VecDeque,
    env,
    error::Error,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use axum::{
    Router,
    extract::State,
    http::{StatusCode, header::RETRY_AFTER},
    response::IntoResponse,
    routing::post,
};
use futures::{StreamExt, stream::FuturesUnordered};
use interval_queue::{IntervalQueue, JobOptions, Limits, http::Observer};
use reqwest::Client;
use tokio::{net::TcpListener, process::Command, time::sleep};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

const REQUEST: Duration = Duration::from_millis(100);
const TOKEN: Duration = Duration::from_millis(1);
const LONGEST: usize = 400;
const WINDOW: Duration = Duration::from_secs(2);
const MOST_REQUESTS: usize = 24;
const MOST_TOKENS: usize = 2400 + LONGEST;
const PROMPTS: usize = 16;

#[tokio::main]
async fn main() -> Result<()> {
    match (env::var("BATCH_STATE"), env::var("BATCH_URL")) {
        (Ok(state), Ok(url)) => batch(&state, &url).await,
        _ => parent().await,
    }
}

/// What each process does: ask for everything, and print what comes back as it comes.
async fn batch(state: &str, url: &str) -> Result<()> {
    let state = interval_queue::connect(state).await?.rates().await?; // one connection for both queues
    let requests = IntervalQueue::builder("requests").interval(REQUEST).open(state.clone()).await?;
    let tokens = IntervalQueue::builder("tokens").interval(TOKEN).open(state).await?;
    let both = Limits::new([requests.clone(), tokens])?;
    let (client, observer) = (Client::new(), Observer::new(requests));

    let mut answers = FuturesUnordered::new();
    for number in 0..PROMPTS {
        let prompt = "word ".repeat(20 + number * 97 % (LONGEST - 19));
        let limits = both.weighing([1, count(&prompt) as u32])?;
        let (client, observer, url) = (client.clone(), observer.clone(), url.to_owned());
        answers.push(async move {
            loop {
                let (client, url, prompt) = (client.clone(), url.clone(), prompt.clone());
                let ask = async move { client.post(url).body(prompt).send().await };
                let answer =
                    limits.run_with(JobOptions::new().timeout(Duration::from_secs(20)), ask).await??;
                observer.observe(answer.status(), answer.headers()).await;
                if answer.status() != StatusCode::TOO_MANY_REQUESTS {
                    return Result::Ok(answer.error_for_status()?.text().await?);
                }
            }
        });
    }
    while let Some(answer) = answers.next().await {
        println!("{}", answer?);
    }
    Ok(())
}

/// As if every word were a token.
fn count(prompt: &str) -> usize {
    prompt.split_whitespace().count()
}

// The rest starts the processes and plays the endpoint.

async fn parent() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let state = format!("file:{}", directory.path().join("batch.json").display());
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/complete", listener.local_addr()?);
    let seen = Arc::new(Mutex::new(Seen::default()));
    let endpoint = Router::new().route("/complete", post(complete)).with_state(seen.clone());
    tokio::spawn(async move { axum::serve(listener, endpoint).await });

    println!(
        "An endpoint with a request every {REQUEST:?} and a token every {TOKEN:?}, and two processes that ask\n"
    );
    let mut children = Vec::new();
    for _ in 0..2 {
        let mut command = Command::new(env::current_exe()?);
        command.env("BATCH_STATE", &state).env("BATCH_URL", &url);
        children.push(command.kill_on_drop(true).spawn()?);
    }
    for mut child in children {
        if !child.wait().await?.success() {
            return Err("a process failed".into());
        }
    }
    let seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
    // More than two seconds' worth of tokens is no breach: a long prompt has them all at its start.
    println!(
        "\n{} prompts, {} refused: in no {WINDOW:?} more than {} requests, of {MOST_REQUESTS} that the endpoint takes, and {} tokens, \
         of {MOST_TOKENS}",
        seen.taken, seen.refused, seen.most_requests, seen.most_tokens
    );
    if seen.refused > 0 || seen.taken != 2 * PROMPTS {
        return Err("the endpoint saw more than it allows, or not everything".into());
    }
    Ok(())
}

#[derive(Default)]
struct Seen {
    taken: usize,
    refused: usize,
    most_requests: usize,
    most_tokens: usize,
    latest: VecDeque<(Instant, usize)>,
}

impl Seen {
    #[allow(clippy::disallowed_methods, reason = "the endpoint has a clock of its own")]
    fn take(&mut self, tokens: usize) -> bool {
        let now = Instant::now();
        self.latest.retain(|(at, _)| now - *at < WINDOW);
        let sum = tokens + self.latest.iter().map(|(_, tokens)| tokens).sum::<usize>();
        if self.latest.len() == MOST_REQUESTS || sum > MOST_TOKENS {
            self.refused += 1;
            return false;
        }
        self.latest.push_back((now, tokens));
        self.taken += 1;
        self.most_requests = self.most_requests.max(self.latest.len());
        self.most_tokens = self.most_tokens.max(sum);
        true
    }
}

async fn complete(State(seen): State<Arc<Mutex<Seen>>>, prompt: String) -> impl IntoResponse {
    let tokens = count(&prompt);
    if !seen.lock().unwrap_or_else(PoisonError::into_inner).take(tokens) {
        return (StatusCode::TOO_MANY_REQUESTS, [(RETRY_AFTER, "1")], String::new()).into_response();
    }
    // Thinking takes as long as it takes; the pace does not mind.
    sleep(Duration::from_millis(100 + tokens as u64)).await;
    format!("an answer to {tokens} tokens").into_response()
}
