//! `--lines`: commands that are kept, and run one task after the other.
//!
//! A run is a line on stdin and an answer on stdout, with the same number. A command that answers
//! anything else cannot be trusted with the next task: it is ended, and another one is started.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    time::{Duration, UNIX_EPOCH},
};

use futures::future::join_all;
use interval_queue_documents::words::show;
use interval_queue_tasks::{Context, Json, TaskId};
use serde::Serialize;
use tokio::sync::watch;

use super::{
    aside::Aside,
    exit_mapping::TaskOutcome,
    handler::Input,
    reply::{self, Replies, Reply},
};
use crate::{
    child::{
        End, Finished, IdleState, KeptCommand, Line, OutputTail, RunRequest, StderrHandle, guard::Lease,
    },
    clock::expired,
    exit::report,
};

/// Time to answer after the request to stop a run.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Serialize)]
struct Run<'a> {
    id: u64,
    task: TaskId,
    queue: &'a str,
    kind: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
    attempt: u32,
    token: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    deadline: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scheduled: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    traceparent: Option<&'a str>,
    payload: &'a Json,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    inputs: BTreeMap<String, Input>,
}

#[derive(Serialize)]
struct Cancel {
    id: u64,
    cancel: bool,
}

/// Its command cannot run another task.
struct Lost {
    outcome: TaskOutcome,
    /// Why, if the command is to blame.
    fault: Option<String>,
    /// Whether it ended with exit code 0 and without a line.
    is_retired: bool,
}

/// To the log of the run that the command has.
#[derive(Clone, Debug, Default)]
struct Logger(Arc<Mutex<Option<Context>>>);

impl Logger {
    fn begin(&self, context: &Context) {
        *self.run() = Some(context.clone());
    }

    fn end(&self) {
        *self.run() = None;
    }

    fn write(&self, lines: &str) {
        if let Some(context) = &*self.run() {
            context.log(lines);
        }
    }

    fn run(&self) -> MutexGuard<'_, Option<Context>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
struct Idle {
    command: KeptCommand,
    logger: Logger,
    /// Whether it has run a task.
    is_used: bool,
}

#[derive(Debug)]
pub(super) struct KeptCommands {
    words: Vec<OsString>,
    timeout: Option<Duration>,
    writer: StderrHandle,
    /// Commands without a task. There are never more commands than tasks that run at once.
    idle: Mutex<Vec<Idle>>,
    /// Whether stderr is the log of the run.
    logs: bool,
    /// The number of the next run.
    next: AtomicU64,
    /// Commands that ended in a row, without an answer in between.
    ends: AtomicU32,
}

impl KeptCommands {
    pub(super) fn new(
        words: Vec<OsString>,
        timeout: Option<Duration>,
        writer: StderrHandle,
        logs: bool,
    ) -> Self {
        let (idle, next, ends) = Default::default();
        Self { words, timeout, writer, idle, logs, next, ends }
    }

    pub(super) async fn run(
        &self,
        context: &Context,
        inputs: BTreeMap<String, Input>,
        lease: watch::Receiver<Lease>,
        aside: &Aside,
        replies: &mut Replies,
    ) -> TaskOutcome {
        let id = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        let line = line_of(id, context, inputs);
        loop {
            let command = match self.take(lease.clone(), aside).await {
                Ok(command) => command,
                Err(outcome) => return outcome,
            };
            if let Some(outcome) = self.run_on(command, id, &line, context, aside, replies).await {
                return outcome;
            }
        }
    }

    /// Runs a task on this command. `None`: the command has ended on purpose after an earlier task,
    /// and has not begun this one.
    async fn run_on(
        &self,
        idle: Idle,
        id: u64,
        line: &[u8],
        context: &Context,
        aside: &Aside,
        replies: &mut Replies,
    ) -> Option<TaskOutcome> {
        let Idle { mut command, logger, is_used } = idle;
        logger.begin(context);
        command.write(line.to_vec());
        let mut has_replied = false;
        let mut cancelled = false;
        let mut stop_timeout = std::pin::pin!(expired(None));
        let mut timeout = std::pin::pin!(expired(self.timeout));
        let lost = loop {
            tokio::select! {
                biased;
                () = context.cancelled(), if !cancelled => {
                    cancelled = true;
                    command.write(json_line(&Cancel { id, cancel: true }));
                    stop_timeout.set(expired(Some(CANCEL_TIMEOUT)));
                }
                _ = stop_timeout.as_mut() => {
                    command.kill().await;
                    break Lost { outcome: TaskOutcome::Ended, fault: None, is_retired: false };
                }
                _ = timeout.as_mut() => {
                    let finished = Finished { end: End::TimedOut, ..command.kill().await };
                    break Lost { outcome: TaskOutcome::of(&finished), fault: None, is_retired: false };
                }
                // Last: progress without end must not keep the others waiting.
                line = command.next_line() => match answer(line, id) {
                    Ok(reply) => {
                        has_replied = true;
                        self.ends.store(0, Ordering::Relaxed);
                        if let Some(outcome) = replies.apply(reply, context) {
                            logger.end();
                            self.idle().push(Idle { command, logger, is_used: true });
                            return Some(outcome);
                        }
                    }
                    Err(fault) => {
                        let lost = self.lose(command, fault).await;
                        if is_used && !has_replied && lost.is_retired {
                            return None;
                        }
                        break lost;
                    }
                },
            }
        };
        if let Some(fault) = lost.fault {
            let rest = aside.rest(self.ends.fetch_add(1, Ordering::Relaxed));
            let (id, rest) = (context.id(), show(rest));
            report(&format!("CMD is started again in {rest}: while it ran task {id}: {fault}"));
        }
        Some(lost.outcome)
    }

    /// Ends the input of commands without a task.
    pub(super) async fn close(&self) {
        let idle = std::mem::take(&mut *self.idle());
        join_all(idle.into_iter().map(|idle| idle.command.close())).await;
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes an idle command, or starts one. A command may end with exit code 0 between two tasks,
    /// to free memory.
    async fn take(&self, lease: watch::Receiver<Lease>, aside: &Aside) -> Result<Idle, TaskOutcome> {
        while let Some(mut idle) = { self.idle().pop() } {
            let fault = match idle.command.state() {
                IdleState::Waits => return Ok(idle),
                // It is ended when dropped.
                IdleState::Printed => "CMD printed a line".to_owned(),
                IdleState::Ended => match idle.command.close().await.end {
                    End::Code(0) => continue,
                    end => format!("CMD ended ({end})"),
                },
            };
            report(&format!("{fault} while it had no task: another one is started"));
            aside.rest(self.ends.fetch_add(1, Ordering::Relaxed));
        }
        let request = RunRequest { words: self.words.clone(), environment: Vec::new(), timeout: None };
        let logger = Logger::default();
        let mut writer = self.writer.clone();
        if self.logs {
            let logger = logger.clone();
            writer = writer.tapped(Arc::new(move |lines| logger.write(lines)));
        }
        let command = KeptCommand::start(&request, lease, writer).map_err(TaskOutcome::Unable)?;
        Ok(Idle { command, logger, is_used: false })
    }

    /// Ends a command that has not answered as it should.
    async fn lose(&self, command: KeptCommand, fault: Option<String>) -> Lost {
        let Some(fault) = fault else {
            let finished = command.close().await;
            let fault = match &finished.end {
                End::Code(_) | End::Signal(_) | End::GuardGone(_) => Some(finished.end.to_string()),
                _ => None,
            };
            let is_retired = matches!(finished.end, End::Code(0));
            return Lost { outcome: of_end(&finished), fault, is_retired };
        };
        command.kill().await;
        Lost { outcome: TaskOutcome::Failed(fault.clone()), fault: Some(fault), is_retired: false }
    }
}

/// An error is the fault of the command, or `None`: it has ended.
fn answer(line: Option<Line>, id: u64) -> Result<Reply, Option<String>> {
    let fault = match line {
        None => return Err(None),
        Some(Line::TooLong) => "CMD answered with a line of more than 1 MiB".into(),
        Some(Line::Half(line)) => match reply::parse(&line) {
            Err(why) => format!("CMD ended within the line {why}"),
            Ok(_) => "CMD ended within a line: write a newline after each answer".into(),
        },
        Some(Line::Whole(line)) => match reply::parse(&line) {
            Err(why) => format!("CMD printed what is no answer, {why}; print other text to stderr"),
            Ok((Some(of), reply)) if of == id => return Ok(reply),
            Ok((Some(of), _)) => {
                format!("CMD answered run {of} instead of {id}: copy \"id\" into each answer")
            }
            Ok((None, _)) => "CMD answered without \"id\": copy it into each answer".into(),
        },
    };
    Err(Some(fault))
}

/// Never the task's result.
fn of_end(finished: &Finished<OutputTail>) -> TaskOutcome {
    match TaskOutcome::of(finished) {
        TaskOutcome::Done(_) => TaskOutcome::Failed("CMD ended without an answer".into()),
        TaskOutcome::Permanent(why) => TaskOutcome::Failed(why),
        outcome => outcome,
    }
}

fn line_of(id: u64, context: &Context, inputs: BTreeMap<String, Input>) -> Vec<u8> {
    let seconds = |at: std::time::SystemTime| Some(at.duration_since(UNIX_EPOCH).ok()?.as_secs());
    json_line(&Run {
        id,
        task: context.id(),
        queue: context.queue().name().as_str(),
        kind: context.kind().as_str(),
        key: context.task().key.as_ref().map(|key| key.as_str()),
        attempt: context.attempt(),
        token: context.token().to_string(),
        deadline: context.deadline().and_then(seconds),
        scheduled: context.scheduled().and_then(seconds),
        traceparent: context.traceparent(),
        payload: context.payload(),
        inputs,
    })
}

fn json_line(value: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(value).unwrap_or_default();
    // A payload may be written over several lines; strings have no line breaks.
    line.iter_mut().filter(|byte| matches!(**byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
    line.push(b'\n');
    line
}
