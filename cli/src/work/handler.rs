//! What is done with a task: CMD runs with its payload, and the end of CMD becomes the end of the task.

use std::{
    ffi::OsString,
    io::Write,
    path::PathBuf,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, UNIX_EPOCH},
};

use interval_queue::task_contract::Json;
use interval_queue_tasks::{Context, TaskError};
use serde_json::{Map, Value, json};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use tempfile::TempPath;
use tokio::sync::watch;

use super::{
    ended::How,
    lease::Lease,
    programs::Programs,
    run::{Given, run},
    verdict::Verdict,
    voice::Speaker,
};
use crate::{exit::Failure, guard::INPUTS};

/// What runs CMD.
#[derive(Debug)]
pub(super) struct Handler {
    programs: Programs,
    timeout: Option<Duration>,
    speaker: Speaker,
    /// Why nothing can be run here any more.
    broken: watch::Sender<Option<Failure>>,
    /// Whether this process was told to end.
    stopping: AtomicBool,
}

impl Handler {
    pub(super) fn new(programs: Programs, timeout: Option<Duration>, speaker: Speaker) -> Self {
        Self {
            programs,
            timeout,
            speaker,
            broken: watch::Sender::new(None),
            stopping: AtomicBool::new(false),
        }
    }

    /// Waits until nothing can be run here any more.
    pub(super) async fn broken(&self) -> Failure {
        let mut broken = self.broken.subscribe();
        // The sender is in `self`.
        let failure = broken.wait_for(Option::is_some).await.ok().and_then(|failure| failure.clone());
        match failure {
            Some(failure) => failure,
            None => std::future::pending().await,
        }
    }

    /// From now on a command that is ended by a signal is not to blame for it.
    pub(super) fn stops(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    /// Runs a task of a worker that has this lease.
    pub(super) async fn handle(
        &self,
        context: Context,
        lease: watch::Receiver<Lease>,
    ) -> Result<Json, TaskError> {
        let inputs = self.inputs(&context).await?;
        let given = Given {
            words: self.programs.words(context.kind()),
            environment: environment(&context, inputs.as_ref()),
            payload: context.payload().as_str().as_bytes().to_vec(),
            timeout: self.timeout,
        };
        let ended = run(given, lease, context.cancelled(), self.speaker.clone()).await;
        drop(inputs);
        if let How::Signal(SIGHUP | SIGINT | SIGQUIT | SIGTERM) = ended.how
            && self.stopping.load(Ordering::Relaxed)
        {
            // Whoever stops a service may send the signal to all of its processes.
            return Err(unfinished(&context));
        }
        match Verdict::of(&ended) {
            Verdict::Done(result) => Ok(result),
            Verdict::Failed(why) => Err(TaskError::failed(why)),
            Verdict::Permanent(why) => Err(TaskError::permanent(why)),
            Verdict::Ended => Err(unfinished(&context)),
            Verdict::Released => Err(TaskError::released()),
            Verdict::Broken(failure) => {
                self.broken.send_replace(Some(failure));
                Err(TaskError::released())
            }
        }
    }

    /// A file with the results of the tasks that it waited for, if it did.
    async fn inputs(&self, context: &Context) -> Result<Option<TempPath>, TaskError> {
        if !context.task().has_edges {
            return Ok(None);
        }
        let inputs = context.inputs().await?;
        let mut object = Map::new();
        for input in inputs.iter() {
            let name = input.name.as_ref().map_or_else(|| input.up.to_string(), ToString::to_string);
            let result: Option<Value> =
                input.result.as_ref().map(|result| serde_json::from_str(result.as_str())).transpose()?;
            let value = json!({ "task": input.up, "state": input.state, "result": result });
            object.insert(name, value);
        }
        let written = tokio::task::spawn_blocking(move || {
            let mut file =
                tempfile::Builder::new().prefix("interval-queue-inputs-").suffix(".json").tempfile()?;
            serde_json::to_writer(&mut file, &object)?;
            file.flush()?;
            Ok::<_, std::io::Error>(file.into_temp_path())
        });
        // It is this host that has no room for it.
        let unwritten =
            |error: &dyn std::fmt::Display| TaskError::released().because(format!("its inputs: {error}"));
        match written.await {
            Ok(Ok(path)) => Ok(Some(path)),
            Ok(Err(error)) => Err(unwritten(&error)),
            Err(error) => Err(unwritten(&error)),
        }
    }
}

fn environment(context: &Context, inputs: Option<&TempPath>) -> Vec<(&'static str, OsString)> {
    let mut environment: Vec<(_, OsString)> = vec![
        ("INTERVAL_QUEUE_TASK_ID", context.id().to_string().into()),
        ("INTERVAL_QUEUE_TASK_QUEUE", context.queue().name().as_str().into()),
        ("INTERVAL_QUEUE_TASK_KIND", context.kind().as_str().into()),
        ("INTERVAL_QUEUE_TASK_ATTEMPT", context.attempt().to_string().into()),
        ("INTERVAL_QUEUE_TASK_TOKEN", context.token().to_string().into()),
    ];
    if let Some(key) = &context.task().key {
        environment.push(("INTERVAL_QUEUE_TASK_KEY", key.as_str().into()));
    }
    for (name, at) in [
        ("INTERVAL_QUEUE_TASK_DEADLINE", context.deadline()),
        ("INTERVAL_QUEUE_TASK_SCHEDULED", context.scheduled()),
    ] {
        if let Some(at) = at.and_then(|at| at.duration_since(UNIX_EPOCH).ok()) {
            environment.push((name, at.as_secs().to_string().into()));
        }
    }
    if let Some(path) = inputs {
        environment.push((INPUTS, PathBuf::from(&**path).into()));
    }
    environment
}

/// CMD was ended before it was done, which is not its fault.
fn unfinished(context: &Context) -> TaskError {
    if context.policy().max_attempts == 1 {
        TaskError::failed("it was ended before it was done, and it has a single attempt")
    } else {
        TaskError::released()
    }
}
