//! The page that lists all names holds for the code, and the code for the page.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
};

use interval_queue::StateErrorKind;
use interval_queue_tasks::{Context, Schedule, Task, TaskError, Worker};
use tracing::{Event, Subscriber, field::Field, span};
use tracing_subscriber::{
    Layer,
    layer::{Context as LayerContext, SubscriberExt},
};

use crate::{
    common::{Faulty, builder, finish, secs, spawned},
    schedules_tests::set_newer,
};

const PAGE: &str = include_str!("../../src/telemetry/mod.rs");

/// The rows of the table under this heading: the names in the first column, and the words in code in the last.
fn table(heading: &str) -> BTreeMap<String, BTreeSet<String>> {
    let rest = PAGE.split(&format!("//! # {heading}\n")).nth(1).expect("the heading is there");
    let rest = rest.split("//! # ").next().unwrap();
    let rows = rest.lines().filter(|line| line.starts_with("//! | `"));
    rows.map(|row| {
        let cells: Vec<_> = row.trim_start_matches("//! |").split('|').collect();
        let code =
            |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<BTreeSet<_>>();
        let name = code(cells[0]).into_iter().next().unwrap();
        (name, code(cells[3]))
    })
    .collect()
}

/// What is between quotes behind this, in the code of the page.
fn quoted(code: &str, mark: &str) -> BTreeSet<String> {
    let found = code.split(mark).skip(1).filter_map(|rest| rest.split('"').nth(1));
    found.map(str::to_owned).collect()
}

#[test]
fn events_and_their_page_agree() {
    let code = PAGE.split("pub(crate) mod name;").nth(1).unwrap();
    let events: BTreeSet<_> =
        code.split("emit!(").skip(1).filter_map(|rest| rest.split('"').nth(1)).map(str::to_owned).collect();
    let events: BTreeSet<_> = events.into_iter().filter(|name| name.contains('.')).collect();
    assert_eq!(events, table("Events").into_keys().collect());
}

#[test]
fn metrics_and_their_page_agree() {
    let names = include_str!("../../src/telemetry/name.rs");
    let metrics =
        quoted(names, "&str =").into_iter().filter(|name| name.starts_with("interval_queue_tasks_"));
    assert_eq!(metrics.collect::<BTreeSet<_>>(), table("Metrics").into_keys().collect());
}

thread_local! {
    // A test with all its tasks is one thread, and a process has one subscriber.
    static SEEN: RefCell<BTreeMap<String, BTreeSet<String>>> = const { RefCell::new(BTreeMap::new()) };
}

struct Names;

struct Fields<'a>(&'a mut BTreeSet<String>);

impl tracing::field::Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, _: &dyn std::fmt::Debug) {
        self.0.insert(field.name().to_owned());
    }
}

impl<S: Subscriber> Layer<S> for Names {
    fn on_event(&self, event: &Event<'_>, _: LayerContext<'_, S>) {
        SEEN.with_borrow_mut(|seen| {
            event.record(&mut Fields(seen.entry(event.metadata().name().to_owned()).or_default()));
        });
    }

    fn on_new_span(&self, attributes: &span::Attributes<'_>, _: &span::Id, _: LayerContext<'_, S>) {
        SEEN.with_borrow_mut(|seen| {
            attributes.record(&mut Fields(seen.entry(attributes.metadata().name().to_owned()).or_default()));
        });
    }
}

#[tokio::test(start_paused = true)]
async fn events_have_the_fields_of_the_page() {
    tracing::subscriber::set_global_default(tracing_subscriber::registry().with(Names)).unwrap();
    let store = Faulty::new();
    let queue = store.open(builder()).await;
    let never = Task::new("nobody serves it", &());
    queue.set_schedule(Schedule::after_end("at once", secs(60), never)).await.unwrap();
    set_newer(&store, queue.overview().await.unwrap().at).await;
    queue
        .add_all(["done", "failed", "retried", "released", "slow"].map(|name| Task::new("a", name)))
        .await
        .unwrap();
    let worker = Worker::builder(&queue).handler("a", |context: Context, name: String| async move {
        match &*name {
            "failed" => Err(TaskError::permanent("so")),
            "retried" if context.task().retries == 0 => Err(TaskError::retry_after(Default::default())),
            "slow" => {
                tokio::time::sleep(secs(2)).await;
                Ok(())
            }
            "released" if context.token().attempt == 1 => Err(TaskError::released().because("no room")),
            _ => Ok(()),
        }
    });
    finish(worker).await;
    let seen = SEEN.take();
    let page = table("Events");
    let both = ["task.added", "task.leased", "task.done", "task.failed", "task.retried", "task.released"];
    for name in
        both.into_iter().chain(["schedule.fired", "schedule.failed", "worker.started", "worker.stopped"])
    {
        let mut fields = seen.get(name).unwrap_or_else(|| panic!("{name} was not told")).clone();
        assert!(fields.remove("queue") && fields.remove("message"), "{name}: {fields:?}");
        assert_eq!(fields, page[name], "{name}");
    }
    assert_eq!(seen["task"], ["queue", "id", "kind", "attempt"].map(str::to_owned).into());
}

#[tokio::test(start_paused = true)]
async fn a_run_is_lost_if_its_worker_ends_before_reporting_it() {
    let _told = tracing::subscriber::set_default(tracing_subscriber::registry().with(Names));
    let store = Faulty::new();
    let queue = store.open(builder()).await;
    queue.add(Task::new("a", &())).await.unwrap();
    let worker = Worker::builder(&queue).handler("a", |_: Context, (): ()| async {
        tokio::time::sleep(secs(2)).await;
        Ok::<_, TaskError>(())
    });
    let worker = worker.build().unwrap();
    let (handle, ended) = (worker.handle(), spawned(worker));
    tokio::time::sleep(secs(1)).await;
    store.set_down(true);
    tokio::time::sleep(secs(2)).await;
    handle.stop();
    ended.await.unwrap();
    let seen = SEEN.take();
    assert!(seen.contains_key("task.lost"), "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn an_outage_shows_in_the_worker_and_as_an_event_if_it_lasts() {
    let _told = tracing::subscriber::set_default(tracing_subscriber::registry().with(Names));
    let store = Faulty::new();
    let queue = store.open(builder()).await;
    let worker = Worker::builder(&queue)
        .lease(secs(1))
        .handler("a", |_: Context, (): ()| async { Ok::<_, TaskError>(()) });
    let worker = worker.build().unwrap();
    let (handle, ended) = (worker.handle(), spawned(worker));
    let outage_after = async |seconds| {
        tokio::time::sleep(secs(seconds)).await;
        handle.outage()
    };
    assert!(outage_after(2).await.is_none());
    store.set_down(true);
    let outage = outage_after(3).await.expect("its steps fail");
    assert!(outage.error.is_retryable() && outage.lasted > secs(1), "{outage:?}");
    store.set_down(false);
    assert!(outage_after(10).await.is_none());
    assert!(!SEEN.take().contains_key("store.failed"), "a short outage is no event");
    store.set_down(true);
    assert!(outage_after(12).await.is_some());
    assert!(SEEN.take().contains_key("store.failed"), "a long one is");
    *store.error.lock().unwrap() = Some(StateErrorKind::Full);
    store.set_down(false);
    let outage = outage_after(12).await.expect("the disk is full");
    assert_eq!(outage.error.kind(), StateErrorKind::Full);
    assert!(outage.lasted > secs(20), "it is the same outage: {outage:?}");
    let seen = SEEN.take();
    let fields = ["queue", "message", "kind", "error", "lasting"].map(str::to_owned);
    assert_eq!(seen["store.failed"], fields.into(), "it has become a lasting one");
    *store.error.lock().unwrap() = None;
    assert!(outage_after(12).await.is_none());
    let seen = SEEN.take();
    assert!(seen.contains_key("store.answers") && !seen.contains_key("store.failed"), "{seen:?}");
    handle.stop();
    ended.await.unwrap();
}

#[cfg(feature = "metrics")]
#[tokio::test(start_paused = true)]
async fn counters_match_the_history() {
    use metrics_util::debugging::{DebugValue, DebuggingRecorder};
    let recorder = Box::leak(Box::new(DebuggingRecorder::new()));
    let snapshotter = recorder.snapshotter();
    let _local = metrics::set_default_local_recorder(recorder);
    let queue = crate::common::queue().await;
    queue.add_all((0..5).map(|n| Task::new("a", &n).max_attempts(1))).await.unwrap();
    finish(Worker::builder(&queue).handler("a", |_: Context, n: u32| async move {
        if n == 0 { Err(TaskError::failed("so")) } else { Ok(()) }
    }))
    .await;
    let mut counted = BTreeMap::new();
    for (key, _, _, value) in snapshotter.snapshot().into_vec() {
        let labels: Vec<_> = key.key().labels().map(|label| label.value().to_owned()).collect();
        let value = match value {
            DebugValue::Counter(count) => count,
            DebugValue::Histogram(samples) => samples.len() as u64,
            DebugValue::Gauge(_) => continue,
        };
        counted
            .insert((key.key().name().trim_start_matches("interval_queue_tasks_").to_owned(), labels), value);
    }
    let get = |name: &str, labels: &[&str]| {
        counted.get(&(name.to_owned(), labels.iter().map(|&label| label.to_owned()).collect())).copied()
    };
    assert_eq!(get("added_total", &["test"]), Some(5));
    assert_eq!(get("leased_total", &["test"]), Some(5));
    assert_eq!(get("ended_total", &["test", "done"]), Some(4));
    assert_eq!(get("ended_total", &["test", "failed"]), Some(1));
    assert_eq!(get("run_seconds", &["test"]), Some(5));
    assert!(get("step_seconds", &["test"]).is_some_and(|steps| steps >= 2));
    assert_eq!(get("lost_total", &["test"]), None);
}
