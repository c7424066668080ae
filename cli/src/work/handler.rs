//! Runs tasks: CMD gets the payload, and its end becomes the end of the task.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, UNIX_EPOCH},
};

use interval_queue_tasks::{Context, Json, Kind, State, TaskError, TaskId, TaskQueue, WorkerHandle};
use serde::Serialize;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use tempfile::TempPath;
use tokio::sync::{oneshot, watch};

use super::{
    aside::{Aside, Lack},
    exit_mapping::TaskOutcome,
    kept_commands::KeptCommands,
    programs::Programs,
    reply::Replies,
    reply_file::ReplyDirectory,
    work_args::WorkArgs,
};
use crate::{
    child::{
        End, RunRequest, StderrHandle,
        guard::{INPUTS_VARIABLE, Lease, REPLY_VARIABLE},
        run_guarded,
    },
    exit::{Failure, SOFTWARE},
};

#[derive(Serialize)]
pub(super) struct Input {
    result: Option<Json>,
    state: State,
    task: TaskId,
}

#[derive(Debug)]
pub(super) struct Handler {
    programs: Programs,
    timeout: Option<Duration>,
    writer: StderrHandle,
    /// Whether stderr of a run is its log.
    logs: bool,
    replies: ReplyDirectory,
    /// With `--lines`.
    kept: Option<KeptCommands>,
    aside: Aside,
    /// The reason why this worker cannot run anything any more.
    broken: watch::Sender<Option<Failure>>,
    /// Number of tasks that were started.
    started: watch::Sender<u64>,
    /// Whether this process received a signal to end.
    stopping: AtomicBool,
}

impl Handler {
    pub(super) fn new(programs: Programs, work: &WorkArgs, writer: StderrHandle) -> Self {
        let (aside, timeout) = (Aside::default(), work.timeout);
        let keep = || KeptCommands::new(work.command.clone(), timeout, writer.clone(), !work.no_log);
        let kept = work.lines.then(keep);
        for (kind, failure) in &programs.unusable {
            aside.set_aside(kind, &programs.words(kind), failure);
        }
        Self {
            programs,
            timeout,
            writer,
            logs: !work.no_log,
            replies: ReplyDirectory::default(),
            kept,
            aside,
            broken: watch::Sender::new(None),
            started: watch::Sender::new(0),
            stopping: AtomicBool::new(false),
        }
    }

    /// Usable or not.
    pub(super) fn serves(&self, kind: &Kind) -> bool {
        self.programs.kinds().any(|own| own == kind.as_str())
    }

    /// The workers lease no tasks that cannot be run.
    pub(super) fn watch(&self, workers: Vec<WorkerHandle>) {
        self.aside.watch(workers);
    }

    pub(super) async fn take_up<T>(&self) -> T {
        self.aside.take_up().await
    }

    /// This worker could not run the tasks that are left.
    pub(super) async fn left(&self, queues: &[TaskQueue]) -> Option<Failure> {
        self.aside.left(queues).await
    }

    pub(super) async fn broken(&self) -> Failure {
        let mut broken = self.broken.subscribe();
        let failure = broken.wait_for(Option::is_some).await.ok().and_then(|failure| failure.clone());
        match failure {
            Some(failure) => failure,
            None => std::future::pending().await,
        }
    }

    /// `None`: forever.
    pub(super) async fn has_started(&self, tasks: Option<u64>) {
        let mut started = self.started.subscribe();
        let enough = started.wait_for(|started| tasks.is_some_and(|tasks| *started >= tasks));
        let _ = enough.await;
    }

    /// From now on, a command that a signal ends is not at fault.
    pub(super) fn stops(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    /// The worker has this lease.
    pub(super) async fn handle(
        &self,
        context: Context,
        mut lease: watch::Receiver<Lease>,
    ) -> Result<Json, TaskError> {
        // The first run may begin before the first lease is sent.
        let _ = lease.wait_for(|lease| *lease != Lease::NONE).await;
        self.started.send_modify(|started| *started += 1);
        let mut replies = Replies::default();
        let outcome = match &self.kept {
            Some(kept) => {
                let inputs = inputs(&context).await?;
                kept.run(&context, inputs, lease, &self.aside, &mut replies).await
            }
            None => self.run(&context, lease, &mut replies).await?,
        };
        let failure = |error: TaskError| match replies.into_group() {
            Some(group) => error.group(group),
            None => error,
        };
        if !matches!(outcome, TaskOutcome::Unable(_)) {
            self.aside.host_has(Lack::Process);
        }
        match outcome {
            TaskOutcome::Done(result) => Ok(result),
            TaskOutcome::Failed(why) => Err(failure(TaskError::failed(why))),
            TaskOutcome::Permanent(why) => Err(failure(TaskError::permanent(why))),
            TaskOutcome::Retry(delay, why) => Err(TaskError::retry_after(delay).because(why)),
            TaskOutcome::Released(why) => Err(TaskError::released().because(why)),
            TaskOutcome::Ended => Err(unfinished(&context)),
            TaskOutcome::Unable(failure) => {
                // A lease that was over before the start is no missing resource.
                if failure.code != SOFTWARE {
                    self.aside.host_lacks(Lack::Process, &failure);
                }
                Err(TaskError::released().because(failure.message))
            }
            TaskOutcome::Broken(failure) => {
                let released = TaskError::released().because(&failure.message);
                if self.programs.is_directory {
                    self.aside.set_aside(context.kind(), &self.programs.words(context.kind()), &failure);
                } else {
                    self.broken.send_replace(Some(failure));
                }
                Err(released)
            }
        }
    }

    /// Runs a CMD for this task alone.
    async fn run(
        &self,
        context: &Context,
        lease: watch::Receiver<Lease>,
        replies: &mut Replies,
    ) -> Result<TaskOutcome, TaskError> {
        let inputs = self.inputs_file(context).await?;
        let mut reply = self.replies.file(replies);
        let request = RunRequest {
            words: self.programs.words(context.kind()),
            environment: environment(context, inputs.as_ref(), reply.path()),
            timeout: self.timeout,
        };
        let payload = context.payload().as_str().as_bytes().to_vec();
        let running = run_guarded(request, payload, lease, context.cancelled(), self.stderr_of(context));
        let finished = tokio::select! {
            finished = running => finished,
            never = reply.follow(context) => never,
        };
        if let End::Signal(SIGHUP | SIGINT | SIGQUIT | SIGTERM) = finished.end
            && self.stopping.load(Ordering::Relaxed)
        {
            return Ok(TaskOutcome::Ended);
        }
        let outcome = TaskOutcome::of(&finished);
        match finished.end {
            End::Code(_) => Ok(reply.end(context, outcome).await),
            _ => Ok(outcome),
        }
    }

    /// Stderr of a run, which is also its log.
    fn stderr_of(&self, context: &Context) -> StderrHandle {
        let context = context.clone();
        match self.logs {
            true => self.writer.clone().tapped(Arc::new(move |lines| context.log(lines))),
            false => self.writer.clone(),
        }
    }

    /// Workers that hold this handler may outlive the program's last step.
    pub(super) async fn close(&self) {
        if let Some(kept) = &self.kept {
            kept.close().await;
        }
        self.replies.remove();
    }

    /// Writes a file with the results of the upstreams, if the task has any.
    async fn inputs_file(&self, context: &Context) -> Result<Option<TempPath>, TaskError> {
        let object = inputs(context).await?;
        if object.is_empty() {
            return Ok(None);
        }
        match written(object).await {
            Ok(path) => {
                self.aside.host_has(Lack::Inputs);
                Ok(Some(path))
            }
            Err(error) => {
                let place = std::env::temp_dir();
                let what = format!("cannot write the inputs of a task into {}", place.display());
                let failure = Failure::os(&what, &error);
                self.aside.host_lacks(Lack::Inputs, &failure);
                Err(TaskError::released().because(failure.message))
            }
        }
    }
}

/// Results of the upstreams, by their names as inputs.
async fn inputs(context: &Context) -> Result<BTreeMap<String, Input>, TaskError> {
    if !context.task().has_edges {
        return Ok(BTreeMap::new());
    }
    let inputs = context.inputs().await?;
    let named = inputs.iter().map(|input| {
        let name = input.name.as_ref().map_or_else(|| input.up.to_string(), ToString::to_string);
        (name, Input { result: input.result.clone(), state: input.state, task: input.up })
    });
    Ok(named.collect())
}

/// On a thread of its own: the file system may hang.
async fn written(object: BTreeMap<String, Input>) -> io::Result<TempPath> {
    let (sender, receiver) = oneshot::channel();
    let write = move || {
        let mut file =
            tempfile::Builder::new().prefix("interval-queue-inputs-").suffix(".json").tempfile()?;
        serde_json::to_writer(&mut file, &object)?;
        file.flush()?;
        Ok(file.into_temp_path())
    };
    thread::Builder::new().name("inputs".into()).spawn(move || sender.send(write()).ok())?;
    receiver.await.unwrap_or_else(|_| Err(io::Error::other("the thread that writes them has panicked")))
}

fn environment(
    context: &Context,
    inputs: Option<&TempPath>,
    reply: Option<&Path>,
) -> Vec<(&'static str, OsString)> {
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
    if let Some(trace) = context.traceparent() {
        environment.push(("TRACEPARENT", trace.into()));
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
        environment.push((INPUTS_VARIABLE, PathBuf::from(&**path).into()));
    }
    if let Some(path) = reply {
        environment.push((REPLY_VARIABLE, path.into()));
    }
    environment
}

/// CMD was ended early without being at fault.
fn unfinished(context: &Context) -> TaskError {
    if context.policy().max_attempts == 1 {
        TaskError::failed("it was ended before it was done, and it has a single attempt")
    } else {
        TaskError::released()
    }
}
