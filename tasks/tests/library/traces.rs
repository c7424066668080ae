//! The trace of a task, with the subscriber of OpenTelemetry.

use std::time::Duration;

use interval_queue_tasks::{Context, Flow, Schedule, Task, TaskError, TaskQueue, Worker};
use opentelemetry::trace::{TraceContextExt as _, TracerProvider as _};
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::{Instrument as _, subscriber::DefaultGuard};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::{Registry, layer::SubscriberExt as _};

use crate::common::{finish, queue, stored};

/// Passes the spans of this thread to OpenTelemetry.
fn subscribed() -> DefaultGuard {
    let tracer = SdkTracerProvider::builder().build().tracer("test");
    tracing::subscriber::set_default(
        Registry::default().with(tracing_opentelemetry::layer().with_tracer(tracer)),
    )
}

fn trace_of_span() -> String {
    tracing::Span::current().context().span().span_context().trace_id().to_string()
}

fn trace_of(traceparent: &str) -> &str {
    traceparent.split('-').nth(1).unwrap()
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn a_run_continues_the_trace_of_its_add() {
    let _guard = subscribed();
    let queue = queue().await;
    let add = async {
        let id = queue.add(Task::new("a", &())).await.unwrap().id();
        (id, trace_of_span())
    };
    let (id, added) = add.instrument(tracing::info_span!("request")).await;
    let traceparent = stored(&queue, id).await.task.trace.unwrap();
    assert_eq!(trace_of(traceparent.as_str()), added);
    let handler = |context: Context, (): ()| async move {
        let of_task = context.traceparent().map(|text| trace_of(text).to_owned());
        match of_task == Some(trace_of_span()) {
            true => Ok(()),
            false => Err(TaskError::permanent("another trace")),
        }
    };
    assert_eq!(finish(Worker::builder(&queue).handler("a", handler)).await.done, 1);
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn a_trace_is_that_of_the_task_or_none() {
    let _guard = subscribed();
    let queue = queue().await;
    let alone = queue.add(Task::new("a", &())).await.unwrap().id();
    assert_eq!(stored(&queue, alone).await.task.trace, None);
    let own = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let add = queue.add(Task::new("a", &()).traceparent(own));
    let with = add.instrument(tracing::info_span!("request")).await.unwrap().id();
    assert_eq!(stored(&queue, with).await.task.trace.unwrap().as_str(), own);
    let error = queue.add(Task::new("a", &()).traceparent("00-1-2-3")).await.unwrap_err();
    assert!(error.to_string().contains("\"00-1-2-3\" is no traceparent"), "{error}");
}

/// A schedule that belongs to a trace would be another one at each start of the process.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn a_schedule_belongs_to_no_trace() {
    let _guard = subscribed();
    let queue = queue().await;
    async fn set(queue: &TaskQueue) -> Vec<String> {
        let hour = Duration::from_secs(3_600);
        let flow =
            Flow::new().task("first", Task::new("a", &1)).task("last", Task::new("a", &2).after("first"));
        let schedules =
            [Schedule::every("task", hour, Task::new("a", &())), Schedule::every("flow", hour, flow)];
        for schedule in schedules {
            queue.set_schedule(schedule).instrument(tracing::info_span!("start")).await.unwrap();
        }
        queue.schedules().await.unwrap().iter().map(|stored| format!("{stored:?}")).collect()
    }
    let first = set(&queue).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(set(&queue).await, first);
}
