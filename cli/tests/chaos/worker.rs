//! A worker of the library in a scene: its handler logs what each run does.

use std::{env, sync::Arc, time::Duration};

use interval_queue_tasks::{Context, Json, TaskError, TaskQueue, Worker};
use serde_json::Value;
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    level_filters::LevelFilter,
};
use tracing_subscriber::{
    Layer,
    layer::{self, SubscriberExt},
};

use crate::{
    log::{Logged, NUMBER, Pen},
    process::ms,
    role,
};

/// How many tasks a worker runs at once.
const JOBS: u32 = 2;
/// The lease of all workers: the shortest there is.
pub(crate) const LEASE: Duration = Duration::from_secs(1);
/// The kind of all tasks, which is that of commands, too.
pub(crate) const KIND: &str = "default";

/// Works until the test is gone.
pub(crate) async fn work(pen: Pen) {
    role::end_with_the_test(|_| {});
    let pen = Arc::new(pen);
    tracing::subscriber::set_global_default(tracing_subscriber::registry().with(Telling(pen.clone())))
        .unwrap();
    let mut is_ready = false;
    loop {
        let error = match worker().await {
            Err(error) => error,
            Ok(worker) => {
                if !std::mem::replace(&mut is_ready, true) {
                    pen.write("ready");
                }
                // It ends only if it cannot begin.
                match worker.run().await {
                    Err(error) => error,
                    Ok(_) => panic!("a worker ends by itself"),
                }
            }
        };
        pen.write(format_args!("trouble {error}"));
        tokio::time::sleep(ms(50)).await;
    }
}

async fn worker() -> Result<Worker, interval_queue_tasks::Error> {
    let (url, name) = role::place();
    let queue = TaskQueue::builder(name).connect(&url).await?;
    let label = format!("process {}", env::var(NUMBER).unwrap());
    let worker = Worker::builder(&queue).state(Pen::open()).jobs(JOBS).lease(LEASE).label(label);
    worker.handler_for([KIND], handle).build()
}

async fn handle(context: Context<Pen>) -> Result<Json, TaskError> {
    let run = Logged::begin(context.state(), context.id(), context.token());
    let payload: Value = serde_json::from_str(context.payload().as_str())?;
    tokio::select! {
        () = tokio::time::sleep(ms(payload["ms"].as_u64().unwrap())) => {}
        () = context.cancelled() => {
            run.hears();
            run.end("released");
            return Err(TaskError::released());
        }
    }
    if u64::from(context.attempt()) <= payload["fails"].as_u64().unwrap() {
        run.end("failed");
        return Err(TaskError::failed("as it was told to"));
    }
    run.end("done");
    Ok(Json::default())
}

/// Logs what the worker hears of the store.
struct Telling(Arc<Pen>);

impl<S: Subscriber> Layer<S> for Telling {
    fn enabled(&self, metadata: &Metadata<'_>, _: layer::Context<'_, S>) -> bool {
        ["task.lost", "task.refused", "store.failed", "store.answers", "worker.started"]
            .contains(&metadata.name())
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::INFO)
    }

    fn on_event(&self, event: &Event<'_>, _: layer::Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        match event.metadata().name() {
            "task.lost" => self.0.write(format_args!("lost {} {}", fields.id, fields.token)),
            "task.refused" => self.0.write(format_args!("refused {}", fields.id)),
            // One that begins in the place of one that could not has missed no answer.
            "store.answers" | "worker.started" => self.0.write("answered"),
            _ => self.0.write(format_args!("trouble {}", fields.error)),
        }
    }
}

#[derive(Default)]
struct Fields {
    id: String,
    token: String,
    error: String,
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let text = format!("{value:?}");
        match field.name() {
            "id" => self.id = text,
            "token" => self.token = text,
            "error" => self.error = text.replace('\n', " "),
            _ => {}
        }
    }
}
