//! What becomes of runs, however they end.

use std::{collections::BTreeMap, fmt, time::Duration};

use interval_queue::Micros;
use interval_queue_tasks::{
    Context, ErrorKind, Policy, Selector, State, Task, TaskError, TaskQueue, Verb, Worker,
    contract::AttemptEnd,
};

use crate::common::{builder, finish, ms, now, secs, stored};

/// A queue that tries again at once.
async fn quick(attempts: u32) -> TaskQueue {
    let backoff = Micros::from_millis(1);
    let policy = Policy { max_attempts: attempts, backoff, max_backoff: backoff, ..Policy::default() };
    builder().policy(policy).max_payload(1_000).connect("memory:").await.unwrap()
}

/// Runs one task, whose attempts go to `f` with their numbers, to its end.
async fn ends<F, Fut>(queue: &TaskQueue, task: Task, f: F) -> interval_queue_tasks::contract::Task
where
    F: Fn(Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<serde_json::Value, TaskError>> + Send + 'static,
{
    let id = queue.add(task).await.unwrap().id();
    let f = std::sync::Arc::new(f);
    let handler = move |context: Context, _: serde_json::Value| f(context);
    finish(Worker::builder(queue).handler("a", handler)).await;
    stored(queue, id).await.task
}

#[derive(Debug)]
struct Wrapped(std::num::ParseIntError);

impl fmt::Display for Wrapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the page has no number")
    }
}

impl std::error::Error for Wrapped {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_counts_and_is_kept_with_its_causes() {
    let queue = quick(3).await;
    let fail = async |_: Context| -> Result<serde_json::Value, TaskError> {
        Ok("x".parse::<u32>().map_err(Wrapped)?.into())
    };
    let task = ends(&queue, Task::new("a", &1), fail).await;
    assert_eq!((task.state, task.failures), (State::Failed, 3));
    assert_eq!(task.error.as_deref(), Some("the page has no number: invalid digit found in string"));
    assert_eq!(task.history.len(), 2, "the last run is the task itself");
    let error = queue.wait::<u32>(task.id).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Failed);
    assert!(error.to_string().contains("the page has no number"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_a_failure_with_its_words() {
    let queue = quick(2).await;
    let task = ends(&queue, Task::new("a", &1), |context| async move {
        if context.attempt() == 1 {
            panic!("number {}", 7);
        }
        Ok(context.attempt().into())
    })
    .await;
    assert_eq!((task.state, task.failures), (State::Done, 1));
    assert_eq!(task.history[0].error.as_deref(), Some("panicked: number 7"));
    assert_eq!(queue.wait::<u32>(task.id).await.unwrap(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_payload_that_does_not_fit_fails_for_good() {
    let queue = quick(5).await;
    let id = queue.add(Task::new("a", &"seven")).await.unwrap().id();
    let handler = async |_: Context, _: u32| Ok::<_, TaskError>(());
    finish(Worker::builder(&queue).handler("a", handler)).await;
    let task = stored(&queue, id).await.task;
    let error = task.error.unwrap();
    assert_eq!((task.state, task.failures), (State::Failed, 1));
    assert!(
        error.contains("the payload is not one of kind \"a\": invalid type: string \"seven\", expected u32"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn results_that_cannot_be_stored_are_failures() {
    let queue = quick(1).await;
    let task = ends(&queue, Task::new("a", &1), |_| async { Ok("x".repeat(2_000).into()) }).await;
    assert_eq!(task.state, State::Failed);
    assert!(
        task.error.as_ref().unwrap().contains("the result has 2002 bytes: this queue stores at most 1000"),
        "{task:?}"
    );

    let id = queue.add(Task::new("b", &1)).await.unwrap().id();
    let no_json = async |_: Context, _: u32| Ok::<_, TaskError>(BTreeMap::from([((1, 2), 3)]));
    finish(Worker::builder(&queue).handler("b", no_json)).await;
    let error = stored(&queue, id).await.task.error.unwrap();
    assert!(error.contains("its result cannot be stored: no JSON can be made of it"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn to_be_run_again_is_no_failure() {
    let queue = quick(1).await;
    let began = now();
    let task = ends(&queue, Task::new("a", &1), |context| async move {
        if context.task().retries < 3 {
            return Err(TaskError::retry_after(secs(20)).because("busy"));
        }
        Ok(7.into())
    })
    .await;
    assert_eq!((task.state, task.failures, task.retries), (State::Done, 0, 3));
    assert!(began.elapsed() >= secs(60) && began.elapsed() < secs(65), "{:?}", began.elapsed());
    assert_eq!(task.history[0].error.as_deref(), Some("busy"));
}

#[tokio::test(start_paused = true)]
async fn permanent_failures_end_and_released_runs_do_not_count() {
    let queue = quick(5).await;
    let task = ends(&queue, Task::new("a", &1), |context| async move {
        if context.token().attempt < 3 {
            return Err(TaskError::released());
        }
        Err(TaskError::permanent("there is no such page"))
    })
    .await;
    assert_eq!((task.state, task.failures, task.token.attempt), (State::Failed, 1, 3));
    assert_eq!(task.error.as_deref(), Some("there is no such page"));
}

#[tokio::test(start_paused = true)]
async fn a_run_past_its_timeout_fails_unless_it_ends_well_on_request() {
    let queue = quick(1).await;
    let began = now();
    let slow = Task::new("a", &1).timeout(secs(3));
    let task = ends(&queue, slow, |_| async { std::future::pending().await }).await;
    assert_eq!((task.state, task.error.as_deref()), (State::Failed, Some("timed out after 3s")));
    assert!(began.elapsed() < secs(10), "{:?}", began.elapsed());

    let ending = Task::new("a", &1).timeout(secs(3));
    let task = ends(&queue, ending, |context| async move {
        assert_eq!(context.timeout(), Some(Duration::from_secs(3)));
        context.cancelled().await;
        tokio::time::sleep(ms(100)).await;
        Ok("as far as I came".into())
    })
    .await;
    assert_eq!(task.state, State::Done);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_run_that_returns_a_result_is_cancelled() {
    let queue = quick(1).await;
    let first = Task::new("a", &1);
    let second = Task::new("a", &2).after(first.id());
    let (id, below) = (first.id(), second.id());
    queue.add_all([first, second]).await.unwrap();
    let operator = queue.clone();
    let handler = move |context: Context, _: u32| {
        let operator = operator.clone();
        async move {
            operator.change(&Selector::ids([context.id()]), Verb::Cancel, false).await.unwrap();
            context.cancelled().await;
            Ok::<u32, TaskError>(7)
        }
    };
    finish(Worker::builder(&queue).handler("a", handler)).await;
    assert_eq!(queue.wait::<u32>(id).await.unwrap_err().kind(), ErrorKind::Cancelled);
    let task = stored(&queue, id).await.task;
    assert_eq!(task.history.last().unwrap().end, AttemptEnd::Done);
    assert_eq!(stored(&queue, below).await.task.state, State::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn a_result_of_another_type_is_an_error() {
    let queue = quick(1).await;
    let task = ends(&queue, Task::new("a", &1), |_| async { Ok("text".into()) }).await;
    let error = queue.wait::<u32>(task.id).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Mismatch);
    assert!(error.to_string().contains("expected u32"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_text_and_a_boxed_error_are_errors_of_a_run() {
    let queue = quick(1).await;
    let texts = async |context: Context, _: i32| -> Result<(), TaskError> {
        match context.task().kind.as_str() {
            "str" => Err("the page is empty")?,
            "string" => Err(format!("page {} is empty", 7))?,
            _ => Err::<(), Box<dyn std::error::Error + Send + Sync>>(Box::new(Wrapped(
                "x".parse::<i32>().unwrap_err(),
            )))?,
        }
        Ok(())
    };
    let mut worker = Worker::builder(&queue);
    let mut ids = Vec::new();
    for kind in ["str", "string", "box"] {
        ids.push(queue.add(Task::new(kind, &1)).await.unwrap().id());
        worker = worker.handler(kind, texts);
    }
    let totals = finish(worker).await;
    assert_eq!(totals.to_string(), "0 done, 3 failed (0 for good), 0 retried, 0 released");
    let mut errors = Vec::new();
    for id in ids {
        errors.push(stored(&queue, id).await.task.error.unwrap());
    }
    assert_eq!(
        errors,
        ["the page is empty", "page 7 is empty", "the page has no number: invalid digit found in string"]
    );
}
