//! Payloads and results that are encoded in the store.

use std::{
    error::Error as StdError,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use interval_queue_tasks::{
    Builder, Codec, Context, ErrorKind, Json, Order, Schedule, Selector, State, Store, Task, TaskError,
    TaskId, TaskQueue, TaskQueues, Verb, Worker, connect, contract::Outcome,
};

use crate::common::{builder, finish, secs, stored};

type BoxError = Box<dyn StdError + Send + Sync>;

/// Encodes equal values differently, as a cipher with a nonce does, and only decodes what a key
/// encoded that it knows. The plain value `"harmful"` panics, and `"refused"` is an error.
#[derive(Clone)]
struct Sealing {
    key: &'static str,
    nonce: Arc<AtomicU32>,
}

fn sealing(key: &'static str) -> Sealing {
    Sealing { key, nonce: Arc::default() }
}

impl Codec for Sealing {
    fn encode(&self, plain: &Json) -> Result<Json, BoxError> {
        assert!(plain.as_str() != "\"harmful\"", "the codec panics");
        if plain.as_str() == "\"refused\"" {
            return Err("it is refused".into());
        }
        let nonce = self.nonce.fetch_add(1, Ordering::Relaxed);
        let text: String = plain.as_str().chars().rev().collect();
        Ok(Json::of(&(self.key, nonce, text))?)
    }

    fn decode(&self, encoded: &Json) -> Result<Json, BoxError> {
        let (key, _, text): (String, u32, String) = serde_json::from_str(encoded.as_str())?;
        if key != self.key {
            return Err(format!("key {key:?} is unknown").into());
        }
        Ok(Json::new(text.chars().rev().collect::<String>())?)
    }
}

/// Stores and accepts plain values that are no text.
struct TextsOnly(Sealing);

impl Codec for TextsOnly {
    fn encode(&self, plain: &Json) -> Result<Json, BoxError> {
        if plain.as_str().starts_with('"') { self.0.encode(plain) } else { Ok(plain.clone()) }
    }

    fn decode(&self, encoded: &Json) -> Result<Json, BoxError> {
        if encoded.as_str().starts_with('[') { self.0.decode(encoded) } else { Ok(encoded.clone()) }
    }
}

async fn open(store: &Store, change: impl FnOnce(Builder) -> Builder) -> TaskQueue {
    change(builder()).open(store).await.unwrap()
}

/// A queue with this codec, and a handle to it without one.
async fn queues(codec: impl Codec) -> (Store, TaskQueue, TaskQueue) {
    let store = connect("memory:").await.unwrap();
    let queue = open(&store, |builder| builder.codec(codec)).await;
    let plain = open(&store, |builder| builder).await;
    (store, queue, plain)
}

fn json(text: &str) -> Option<Json> {
    Some(Json::new(text).unwrap())
}

async fn bodies(queue: &TaskQueue, id: TaskId) -> (Option<Json>, Option<Json>) {
    let stored = stored(queue, id).await;
    (stored.payload, stored.result)
}

async fn shout(_: Context, text: String) -> Result<String, TaskError> {
    Ok(text.to_uppercase())
}

#[tokio::test(start_paused = true)]
async fn a_store_holds_only_encoded_payloads_and_results() {
    let (store, queue, plain) = queues(sealing("k")).await;
    let up = Task::new("shout", "ada");
    let down = Task::new("join", &7).input("up", up.id());
    let ids = [up.id(), down.id()];
    queue.add_all([up, down]).await.unwrap();
    let worker = Worker::builder(&queue).handler("shout", shout).handler_for(
        ["join"],
        |context: Context| async move {
            assert_eq!(context.payload().as_str(), "7");
            let up: String = context.inputs().await?.get("up")?;
            Ok::<_, TaskError>(Json::of(&format!("{up}!"))?)
        },
    );
    assert_eq!(finish(worker).await.done, 2);

    assert_eq!(bodies(&plain, ids[0]).await, (json(r#"["k",0,"\"ada\""]"#), json(r#"["k",2,"\"ADA\""]"#)));
    assert_eq!(bodies(&plain, ids[1]).await, (json(r#"["k",1,"7"]"#), json(r#"["k",3,"\"!ADA\""]"#)));
    assert_eq!(bodies(&queue, ids[0]).await, (json("\"ada\""), json("\"ADA\"")));
    assert_eq!(queue.wait::<String>(ids[1]).await.unwrap(), "ADA!");
    let page = queue.page(&Selector::default(), Order::Oldest, 10, true).await.unwrap();
    assert_eq!(page.tasks[0].payload, json("\"ada\""));
    assert_eq!(queue.tasks(ids).await.unwrap()[0].result, json("\"ADA\""));
    let found = TaskQueues::open(&store).await.unwrap().codec(sealing("k"));
    let (found, _) = found.find(queue.name()).await.unwrap().unwrap();
    assert_eq!(bodies(&found, ids[0]).await.0, json("\"ada\""));
}

#[tokio::test(start_paused = true)]
async fn a_codec_that_fails_rejects_the_add() {
    let (_, queue, plain) = queues(sealing("k")).await;
    let good = Task::new("shout", "ada");
    let refused = Task::new("shout", "refused");
    let id = refused.id();
    let error = queue.add_all([good, refused.clone()]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Codec);
    assert_eq!(error.to_string(), format!("the payload of task {id} cannot be encoded: it is refused"));
    assert_eq!(error.source().unwrap().to_string(), "it is refused");
    assert_eq!(queue.prepare([refused]).unwrap_err().kind(), ErrorKind::Codec);
    assert_eq!(plain.count(&Selector::default(), 9).await.unwrap(), 0);
}

#[tokio::test(start_paused = true)]
async fn tasks_and_ends_for_a_transaction_are_encoded() {
    let (_, queue, _) = queues(sealing("k")).await;
    let add = queue.prepare([Task::new("a", &1)]).unwrap();
    assert_eq!(add.tasks[0].payload.as_str(), r#"["k",0,"1"]"#);
    let id = queue.add(Task::new("a", &2)).await.unwrap().id();
    finish(Worker::builder(&queue).handler("a", |context: Context, n: u32| async move {
        let error = context.done("refused").unwrap_err();
        assert_eq!((error.kind(), n), (ErrorKind::Codec, 2));
        let Outcome::Done(result) = context.done(&n)?.outcome else { panic!("it is not done") };
        Ok::<_, TaskError>(result.to_string())
    }))
    .await;
    assert_eq!(queue.wait::<String>(id).await.unwrap(), r#"["k",2,"2"]"#);
}

#[tokio::test(start_paused = true)]
async fn an_undecoded_payload_fails_for_good_and_stays() {
    let (store, queue, plain) = queues(sealing("new")).await;
    let old = open(&store, |builder| builder.codec(sealing("old"))).await;
    let id = old.add(Task::new("shout", "ada")).await.unwrap().id();
    let totals = finish(Worker::builder(&queue).handler("shout", shout)).await;
    assert_eq!((totals.failed, totals.permanent), (1, 1));
    let task = stored(&plain, id).await.task;
    assert_eq!((task.state, task.failures), (State::Failed, 1));
    assert_eq!(task.error.unwrap(), "the payload cannot be decoded: key \"old\" is unknown");

    old.change(&Selector::ids([id]), Verb::Retry, false).await.unwrap();
    finish(Worker::builder(&old).handler("shout", shout)).await;
    assert_eq!(old.wait::<String>(id).await.unwrap(), "ADA");
    assert_eq!(queue.wait::<String>(id).await.unwrap_err().kind(), ErrorKind::Codec);
}

#[tokio::test(start_paused = true)]
async fn reads_return_an_undecoded_task_with_the_error() {
    let (_, queue, plain) = queues(sealing("k")).await;
    let foreign = plain.add(Task::new("a", &true)).await.unwrap().id();
    let own = queue.add(Task::new("a", &true)).await.unwrap().id();
    let page = queue.page(&Selector::default(), Order::Oldest, 10, true).await.unwrap().tasks;
    let error = page[0].undecoded.as_deref().unwrap();
    assert!(error.starts_with(&format!("the payload of task {foreign} cannot be decoded: invalid type")));
    assert_eq!((page[0].payload.clone(), page[1].payload.clone()), (json("true"), json("true")));
    assert_eq!((page[1].task.id, page[1].undecoded.as_deref()), (own, None));
    assert!(stored(&queue, foreign).await.undecoded.is_some());
    assert_eq!(stored(&plain, own).await.undecoded, None);
    let heads = queue.page(&Selector::default(), Order::Oldest, 10, false).await.unwrap().tasks;
    assert_eq!(heads[0].undecoded, None, "no payload was read");
}

#[tokio::test(start_paused = true)]
async fn a_result_that_is_not_encoded_fails_the_run() {
    let (_, queue, _) = queues(sealing("k")).await;
    let texts = ["refused", "harmful", "ada"];
    let tasks =
        texts.map(|text| Task::new("reverse", &text.chars().rev().collect::<String>()).max_attempts(1));
    let ids = queue.add_all(tasks).await.unwrap();
    let worker = Worker::builder(&queue).handler("reverse", |_: Context, text: String| async move {
        Ok::<_, TaskError>(text.chars().rev().collect::<String>())
    });
    let totals = finish(worker).await;
    assert_eq!((totals.done, totals.failed), (1, 2));
    let error = async |n: usize| stored(&queue, ids[n].id()).await.task.error.unwrap();
    assert_eq!(error(0).await, "the result cannot be encoded: it is refused");
    assert_eq!(error(1).await, "panicked: the codec panics");
}

#[tokio::test(start_paused = true)]
async fn an_input_that_is_not_decoded_is_an_error() {
    let (_, queue, plain) = queues(sealing("k")).await;
    let up = plain.add(Task::new("up", "ada")).await.unwrap().id();
    finish(Worker::builder(&plain).handler("up", shout)).await;
    let id = queue.add(Task::new("down", &()).input("up", up)).await.unwrap().id();
    finish(Worker::builder(&queue).handler("down", |context: Context, (): ()| async move {
        let error = context.inputs().await.unwrap_err();
        Ok::<_, TaskError>((error.kind() == ErrorKind::Codec, error.to_string()))
    }))
    .await;
    let (is_codec, text) = queue.wait::<(bool, String)>(id).await.unwrap();
    assert!(is_codec && text.starts_with(&format!("the result of task {up} cannot be decoded")), "{text}");
}

#[tokio::test(start_paused = true)]
async fn the_size_limit_counts_encoded_bytes() {
    let store = connect("memory:").await.unwrap();
    let queue = open(&store, |builder| builder.codec(sealing("k")).max_payload(20)).await;
    queue.add(Task::new("a", "12345")).await.unwrap();
    let error = queue.add(Task::new("a", "123456789012345")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    let error = queue.set_schedule(hourly("123456789012345")).await.unwrap_err().to_string();
    assert!(error.contains("has 29 bytes"), "{error}");
}

fn hourly(payload: &str) -> Schedule {
    Schedule::every("hourly", secs(3600), Task::new("shout", payload))
}

#[tokio::test(start_paused = true)]
async fn the_template_of_a_schedule_is_encoded() {
    let (store, queue, plain) = queues(sealing("k")).await;
    queue.set_schedule(hourly("ada")).await.unwrap();
    let payload = async |queue: &TaskQueue| queue.schedules().await.unwrap()[0].payload().cloned();
    let first = payload(&plain).await;
    assert_eq!(first, json(r#"["k",0,"\"ada\""]"#));
    assert_eq!(payload(&queue).await, json("\"ada\""));
    queue.set_schedule(hourly("ada")).await.unwrap();
    assert_eq!(payload(&plain).await, first, "an equal schedule is left alone");
    queue.set_schedule(hourly("bob")).await.unwrap();
    assert_eq!(payload(&queue).await, json("\"bob\""));

    let id = queue.run_schedule("hourly").await.unwrap().id();
    assert_eq!(bodies(&queue, id).await.0, json("\"bob\""));
    finish(Worker::builder(&queue).handler("shout", shout)).await;
    assert_eq!(queue.wait::<String>(id).await.unwrap(), "BOB");
    tokio::time::sleep(secs(2 * 3600)).await;
    assert_eq!(finish(Worker::builder(&queue).handler("shout", shout)).await.done, 1);
    let other = open(&store, |builder| builder.codec(sealing("other"))).await;
    let schedule = other.schedules().await.unwrap().remove(0);
    let error = "the payload of its tasks cannot be decoded: key \"k\" is unknown";
    assert_eq!(
        (schedule.undecoded.as_deref(), schedule.payload()),
        (Some(error), payload(&plain).await.as_ref())
    );
}

#[tokio::test(start_paused = true)]
async fn a_plain_template_is_replaced_once_a_codec_encodes_it() {
    let (_, queue, plain) = queues(TextsOnly(sealing("k"))).await;
    let number = || Schedule::every("number", secs(3600), Task::new("a", &7));
    for schedule in [hourly("ada"), number()] {
        plain.set_schedule(schedule).await.unwrap();
    }
    let next = async || plain.schedules().await.unwrap().iter().map(|one| one.next).collect::<Vec<_>>();
    let before = next().await;
    tokio::time::sleep(secs(2 * 3600)).await;
    for schedule in [hourly("ada"), number()] {
        queue.set_schedule(schedule).await.unwrap();
    }
    let schedules = plain.schedules().await.unwrap();
    assert_eq!(schedules[0].payload().cloned(), json(r#"["k",0,"\"ada\""]"#));
    assert_eq!(schedules[1].payload().cloned(), json("7"));
    assert_ne!(next().await[0], before[0], "it was replaced");
    assert_eq!(next().await[1], before[1], "it was left alone");
}
