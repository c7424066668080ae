//! Helpers for tests of applications: they run the real worker, and end.

use std::time::Duration;

use interval_queue_tasks::{
    Context, Json, Schedule, State, Task, TaskError, TaskQueue, Worker, WorkerBuilder, testing,
};
use serde_json::json;

use crate::common::{builder, queue, secs, stored};

/// Tasks of kind `k` are done. Tasks of kind `fail` fail.
fn worker(queue: &TaskQueue) -> WorkerBuilder {
    let done = async |context: Context| Ok::<_, TaskError>(context.payload().clone());
    let fail = async |_: Context| Err::<Json, TaskError>("busy".into());
    Worker::builder(queue)
        .handler_for(["k"], move |context| Box::pin(done(context)))
        .handler_for(["fail"], move |context| Box::pin(fail(context)))
}

/// The text of the panic with which this ends.
async fn panic_of(asserted: impl Future<Output: Send + 'static> + Send + 'static) -> String {
    let panic = tokio::spawn(asserted).await.map(drop).unwrap_err().into_panic();
    *panic.downcast::<String>().unwrap()
}

#[tokio::test]
async fn assertions_match_parts_of_payloads() {
    let queue = queue().await;
    let first = Task::new("k", &json!({"to": {"name": "Ada", "age": 36}, "tags": [1, 2]}));
    let second = Task::new("k", &json!({"to": {"name": "Ada"}}));
    let id = first.id();
    queue.add_all([first, second, Task::new("text", "Ada")]).await.unwrap();
    let found = testing::assert_added(&queue, "k", &json!({"to": {"name": "Ada"}})).await;
    assert_eq!(found.task.id, id, "the first one");
    testing::assert_added(&queue, "k", &json!({"tags": [1, 2]})).await;
    testing::assert_added(&queue, "k", &json!({})).await;
    testing::assert_added(&queue, "text", "Ada").await;
    testing::refute_added(&queue, "k", &json!({"tags": [1]})).await;
    testing::refute_added(&queue, "k", &json!({"to": {"name": "Ada", "age": 37}})).await;
    testing::refute_added(&queue, "text", &json!({})).await;
    testing::refute_added(&queue, "other", &json!({})).await;
    testing::drain(worker(&queue)).await.unwrap();
    assert_eq!(testing::assert_added(&queue, "k", &json!({})).await.task.state, State::Done);
}

#[tokio::test]
async fn a_failed_assertion_lists_the_stored_tasks() {
    let queue = queue().await;
    let other = queue.clone();
    let text = panic_of(async move {
        testing::assert_added(&other, "k", &json!({"to": "Bob"})).await;
    });
    let text = text.await;
    assert!(text.contains("testing_tests.rs:"), "the place of the assertion: {text}");
    assert!(
        text.ends_with(
            "no task was added of kind \"k\" whose payload has {\"to\":\"Bob\"}; queue \"test\" has no tasks"
        ),
        "{text}"
    );
    let tasks = (0..60).map(|n| Task::new("k", &json!({"to": "Ada", "n": n})));
    queue.add_all(tasks).await.unwrap();
    let other = queue.clone();
    let text = panic_of(async move {
        testing::assert_added(&other, "k", &json!({"to": "Bob"})).await;
    });
    let text = text.await;
    assert!(text.contains("has 60:\n  ready \"k\" {\"n\":0,\"to\":\"Ada\"}\n  ready"), "{text}");
    assert!(text.ends_with("\n  and 10 more"), "{text}");
    let text = panic_of(async move { testing::refute_added(&queue, "k", &json!({"n": 7})).await }).await;
    assert!(text.contains("a task was added of kind \"k\""), "{text}");
    assert!(text.ends_with("has 1:\n  ready \"k\" {\"n\":7,\"to\":\"Ada\"}"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn run_one_runs_the_most_urgent_task_alone() {
    let queue = queue().await;
    assert!(testing::run_one(worker(&queue)).await.unwrap().is_none());
    let urgent = Task::new("fail", &()).priority(1).backoff(Duration::ZERO, Duration::ZERO);
    let first = queue.add(Task::new("k", &7)).await.unwrap().id();
    let urgent = queue.add(urgent).await.unwrap().id();
    queue.add(Task::new("k", &8)).await.unwrap();
    let ran = testing::run_one(worker(&queue).jobs(9).prefetch(9)).await.unwrap().unwrap();
    assert_eq!((ran.task.id, ran.task.failures), (urgent, 1), "the retry is a run of its own");
    queue
        .change(&interval_queue_tasks::Selector::ids([urgent]), interval_queue_tasks::Verb::Cancel, false)
        .await
        .unwrap();
    let ran = testing::run_one(worker(&queue)).await.unwrap().unwrap();
    assert_eq!((ran.task.id, ran.task.state, ran.result.unwrap().as_str()), (first, State::Done, "7"));
    assert_eq!(testing::drain(worker(&queue)).await.unwrap().done, 1);
}

#[tokio::test(start_paused = true)]
async fn drain_leaves_tasks_that_wait() {
    let queue = queue().await;
    let first = Task::new("k", &());
    let downstream = Task::new("k", &()).after(first.id());
    let failing = Task::new("fail", &()).backoff(secs(10), secs(10)).max_attempts(2);
    let later = Task::new("k", &()).delay(secs(60));
    let blocked = Task::new("k", &()).after(later.id());
    let (failing_id, blocked_id) = (failing.id(), blocked.id());
    let keyed = (0..30).map(|_| Task::new("k", &()).key("one at a time"));
    let unserved = Task::new("unserved", &());
    let tasks = [first, downstream, failing, later, blocked, unserved];
    queue.add_all(tasks.into_iter().chain(keyed)).await.unwrap();
    queue.set_schedule(Schedule::after_end("s", secs(3600), Task::new("k", &()))).await.unwrap();

    let totals = testing::drain(worker(&queue)).await.unwrap();
    assert_eq!((totals.done, totals.failed), (33, 1), "{totals}");
    assert_eq!(stored(&queue, failing_id).await.task.state, State::Scheduled);
    assert_eq!(testing::drain(worker(&queue)).await.unwrap(), interval_queue_tasks::Totals::default());

    tokio::time::sleep(secs(60)).await;
    let totals = testing::drain(worker(&queue)).await.unwrap();
    assert_eq!((totals.done, totals.failed), (2, 1), "{totals}");
    assert_eq!(stored(&queue, failing_id).await.task.state, State::Failed);
    assert_eq!(stored(&queue, blocked_id).await.task.state, State::Done);
}

#[tokio::test(start_paused = true)]
async fn drain_of_a_paused_or_paced_queue_ends() {
    let queue = builder().interval(secs(1)).connect("memory:").await.unwrap();
    queue.add_all((0..5).map(|n| Task::new("k", &n))).await.unwrap();
    queue.pause().await.unwrap();
    assert_eq!(testing::drain(worker(&queue)).await.unwrap().done, 0);
    assert!(testing::run_one(worker(&queue)).await.unwrap().is_none());
    queue.resume().await.unwrap();
    assert!(testing::run_one(worker(&queue)).await.unwrap().is_some());
    assert_eq!(testing::drain(worker(&queue)).await.unwrap().done, 4);
}

#[cfg(feature = "sqlite")]
#[tokio::test]
async fn helpers_work_with_a_store_in_a_file() {
    let place = tempfile::tempdir().unwrap();
    let queue = builder().connect(&format!("sqlite:{}/jobs.db", place.path().display())).await.unwrap();
    let first = Task::new("k", &1);
    let second = Task::new("k", &2).after(first.id());
    queue.add_all([first, second]).await.unwrap();
    testing::assert_added(&queue, "k", &2).await;
    assert!(testing::run_one(worker(&queue)).await.unwrap().is_some());
    assert_eq!(testing::drain(worker(&queue)).await.unwrap().done, 1);
    assert!(testing::run_one(worker(&queue)).await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn drain_runs_tasks_of_due_schedules_and_of_large_fan_outs() {
    let queue = queue().await;
    queue.set_schedule(Schedule::after_end("s", secs(3600), Task::new("k", &()))).await.unwrap();
    assert_eq!(testing::drain(worker(&queue)).await.unwrap().done, 1);
    let first = Task::new("k", &());
    let id = first.id();
    // More than one step of a worker admits.
    let unserved = (0..2_000).map(|n| Task::new("unserved", &n).after(id));
    queue.add_all([first].into_iter().chain(unserved).chain([Task::new("k", &()).after(id)])).await.unwrap();
    assert!(testing::run_one(worker(&queue)).await.unwrap().is_some());
    assert_eq!(testing::drain(worker(&queue)).await.unwrap().done, 1);
}
