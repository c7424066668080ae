//! One trace from a web request to the run of its task in another process, by OpenTelemetry.
//!
//! Starts itself twice: as a shop that adds a task within the span of a request, and as a worker
//! that runs the task. Both print their spans with the exporter of `opentelemetry-stdout`. A service
//! uses an exporter to a collector, such as `opentelemetry-otlp`, in its place.

use std::{
    error::Error,
    process::{Command, Stdio},
};

use interval_queue_tasks::{Context, Task, TaskError, TaskQueue, Worker};
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::Instrument as _;
use tracing_subscriber::{Registry, layer::SubscriberExt as _};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["shop", url] => with_spans("shop", shop(url)).await,
        ["worker", url] => with_spans("worker", worker(url)).await,
        _ => both(),
    }
}

/// Runs with a subscriber that passes spans to OpenTelemetry.
async fn with_spans(
    name: &'static str,
    service: impl Future<Output = Result<(), Box<dyn Error>>>,
) -> Result<(), Box<dyn Error>> {
    let exporter = opentelemetry_stdout::SpanExporter::default();
    let provider = SdkTracerProvider::builder().with_simple_exporter(exporter).build();
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer(name));
    tracing::subscriber::set_global_default(Registry::default().with(layer))?;
    service.await?;
    Ok(provider.shutdown()?)
}

async fn shop(url: &str) -> Result<(), Box<dyn Error>> {
    let queue = TaskQueue::builder("letters").connect(url).await?;
    let request = tracing::info_span!("request");
    queue.add(Task::new("letter", &"Ada")).instrument(request).await?;
    Ok(())
}

async fn worker(url: &str) -> Result<(), Box<dyn Error>> {
    let queue = TaskQueue::builder("letters").connect(url).await?;
    let letter = |_: Context, to: String| async move {
        tracing::info_span!("smtp").in_scope(|| println!("a letter to {to}"));
        Ok::<(), TaskError>(())
    };
    Worker::builder(&queue).handler("letter", letter).build()?.run_until_empty().await?;
    Ok(())
}

fn both() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let url = format!("sqlite:{}", directory.path().join("queues.db").display());
    let mut spans = Vec::new();
    for service in ["shop", "worker"] {
        let mut command = Command::new(std::env::current_exe()?);
        let output = command.args([service, &url]).stderr(Stdio::inherit()).output()?;
        let printed = String::from_utf8(output.stdout)?;
        print!("{printed}");
        if !output.status.success() {
            return Err(format!("{service} has failed: {}", output.status).into());
        }
        spans.extend(fields(&printed));
    }
    let find = |name: &str| spans.iter().find(|span| span.name == name).ok_or(format!("no span {name:?}"));
    let (request, run, smtp) = (find("request")?, find("task")?, find("smtp")?);
    let is_one = [run, smtp].iter().all(|span| span.trace == request.trace)
        && run.parent == request.id
        && smtp.parent == run.id;
    if !is_one {
        return Err("the spans are not one trace".into());
    }
    println!("trace {}: request → task → smtp, in two processes", request.trace);
    Ok(())
}

/// A printed span.
#[derive(Default)]
struct Span {
    name: String,
    trace: String,
    id: String,
    parent: String,
}

/// The fields of the spans that the exporter has printed.
fn fields(printed: &str) -> Vec<Span> {
    let mut spans = Vec::new();
    for line in printed.lines() {
        let Some((name, value)) = line.split_once(':') else { continue };
        let value = value.trim().to_owned();
        if name.trim() == "Name" {
            spans.push(Span { name: value, ..Span::default() });
            continue;
        }
        let Some(span) = spans.last_mut() else { continue };
        match name.trim() {
            "TraceId" => span.trace = value,
            "SpanId" => span.id = value,
            "ParentSpanId" => span.parent = value,
            _ => {}
        }
    }
    spans
}
