//! Mails that go out once: each is a stored task, sent under a key that the mail service knows it by.
//!
//! A shop adds a mail for every order, and sometimes adds it twice, since its own request was repeated: the unique name
//! keeps the second one out. Two workers send them by a service that takes 50 a second, turns some away with 429, and
//! now and then takes a mail and loses the connection before it answers. Then nobody knows whether the mail went out,
//! so it is sent again, under the id of its task as idempotency key, and the service does not send it twice. A mail to
//! an address that is none fails for good at the first attempt and stays to be looked at.
//!
//!     cargo run --features http,tasks --example durable_mail

use std::{
    collections::{BTreeMap, HashSet},
    error::Error,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::{
    Json, Router,
    extract::State,
    http::{HeaderMap, StatusCode, header::RETRY_AFTER},
    response::{IntoResponse, Response},
    routing::post,
};
use interval_queue_tasks::{
    Added, Context, ErrorKind, OnConflict, Order, Policy, Selector, State as Stored, Task, TaskError,
    TaskQueue, Worker, connect,
};
use reqwest::{
    Client,
    header::{CONTENT_TYPE, HeaderName},
};
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

const KEY: HeaderName = HeaderName::from_static("idempotency-key");
const ORDERS: usize = 60;

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Mail {
    to: String,
    order: usize,
}

struct Sender {
    client: Client,
    service: String,
}

/// Sends a mail. The result is what the service calls it.
async fn send(context: Context<Sender>, mail: Mail) -> std::result::Result<String, TaskError> {
    if !mail.to.contains('@') {
        return Err(TaskError::permanent(format!("{:?} is no address", mail.to)));
    }
    let Sender { client, service } = context.state();
    // The same in every attempt, and no other mail has it.
    let request =
        client.post(service).header(KEY, context.id().to_string()).header(CONTENT_TYPE, "application/json");
    let response = request.body(serde_json::to_string(&mail)?).send().await?;
    if response.status() == StatusCode::TOO_MANY_REQUESTS {
        let after = response.headers().get(RETRY_AFTER).and_then(|after| after.to_str().ok()?.parse().ok());
        // Nobody's fault: it counts as no failure.
        return Err(TaskError::retry_after(Duration::from_millis(after.unwrap_or(1_000))));
    }
    Ok(response.error_for_status()?.text().await?)
}

#[tokio::main]
async fn main() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let store = connect(&format!("sqlite:{}", directory.path().join("mails.db").display())).await?;
    let policy = Policy::default().backoff(Duration::from_millis(50), Duration::from_millis(500));
    let queue =
        TaskQueue::builder("mails").interval(Duration::from_millis(20)).policy(policy).open(&store).await?;

    // The shop.
    let mut kept_out = 0;
    for order in 0..ORDERS {
        let to = if order == 7 { "nobody".into() } else { format!("customer{order}@example.org") };
        for _ in 0..1 + usize::from(order % 5 == 0) {
            let mail = Task::new("mail", &Mail { to: to.clone(), order });
            let mail = mail.unique(format!("order {order}")).on_conflict(OnConflict::Keep);
            kept_out += usize::from(matches!(queue.add(mail).await?, Added::Kept(_)));
        }
    }
    println!("{ORDERS} orders, {kept_out} mails that were added a second time and kept out");

    // Two workers, in processes of their own elsewhere.
    let service = Service::default();
    let sender = service.listen().await?;
    let worker = || {
        Worker::builder(&queue)
            .state(Sender { client: Client::new(), service: sender.clone() })
            .handler("mail", send)
    };
    let (one, two) = (worker().build()?, worker().build()?);
    tokio::try_join!(one.run_until_empty(), two.run_until_empty())?;

    let seen = std::mem::take(&mut *service.0.lock().unwrap_or_else(PoisonError::into_inner));
    println!(
        "{} requests: {} turned away, {} answers lost, {} repeated under a key that was known; {} mails went out",
        seen.requests,
        seen.refused,
        seen.lost,
        seen.known,
        seen.sent.len()
    );
    let failed = queue.page(&Selector::states([Stored::Failed]), Order::Oldest, 10, false).await?.tasks;
    for stored in &failed {
        println!(
            "failed: {} after {} attempt",
            stored.task.error.as_deref().unwrap_or_default(),
            stored.task.failures
        );
        match queue.wait::<String>(stored.task.id).await {
            Err(error) if error.kind() == ErrorKind::Failed => {}
            other => return Err(format!("a failed task was waited for: {other:?}").into()),
        }
    }
    let each_once = seen.sent.values().all(|times| *times == 1);
    if seen.sent.len() != ORDERS - 1 || !each_once || failed.len() != 1 || seen.lost == 0 || seen.refused == 0
    {
        return Err("a mail is missing, or went out twice".into());
    }
    Ok(())
}

// The rest plays the mail service.

#[derive(Clone, Default)]
struct Service(Arc<Mutex<Seen>>);

#[derive(Default)]
struct Seen {
    requests: usize,
    refused: usize,
    lost: usize,
    known: usize,
    keys: HashSet<String>,
    sent: BTreeMap<usize, usize>,
}

impl Service {
    async fn listen(&self) -> Result<String> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}/", listener.local_addr()?);
        let site = Router::new().route("/", post(take)).with_state(self.clone());
        tokio::spawn(async move { axum::serve(listener, site).await });
        Ok(url)
    }
}

/// Takes a mail: every ninth request is turned away, every seventh answer gets lost.
async fn take(State(Service(seen)): State<Service>, headers: HeaderMap, Json(mail): Json<Mail>) -> Response {
    let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
    seen.requests += 1;
    if seen.requests.is_multiple_of(9) {
        seen.refused += 1;
        return (StatusCode::TOO_MANY_REQUESTS, [(RETRY_AFTER, "100")]).into_response();
    }
    let key = headers.get(KEY).and_then(|key| key.to_str().ok()).unwrap_or_default().to_owned();
    if seen.keys.insert(key) {
        *seen.sent.entry(mail.order).or_default() += 1;
    } else {
        seen.known += 1;
    }
    if seen.requests.is_multiple_of(7) {
        seen.lost += 1;
        // What stands between the sender and the service says so when it lost an answer.
        return StatusCode::BAD_GATEWAY.into_response();
    }
    format!("mail {}", seen.sent.len()).into_response()
}
