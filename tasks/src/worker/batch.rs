//! Handlers that take several tasks in one call.

use std::{
    sync::{Arc, Mutex, Weak},
    time::Duration,
};

use futures::{
    FutureExt,
    future::{BoxFuture, RemoteHandle},
};
use interval_queue::{Host, InvalidInput};
use interval_queue_task_contract::MAX_HELD;
use serde::{Serialize, de::DeserializeOwned};
use tokio::sync::{Notify, oneshot, watch};

use super::{
    WorkerBuilder,
    context::Context,
    core::{Core, locked},
    handler::{self, Output},
    run::caught,
    task_error::TaskError,
};
use crate::host;

const MAX_WAIT: Duration = Duration::from_secs(3600);

type Outcome = Result<Output, TaskError>;
type Handler<T> = Arc<dyn Fn(Vec<T>) -> BoxFuture<'static, Result<Vec<Outcome>, TaskError>> + Send + Sync>;

impl<S: Send + Sync + 'static> WorkerBuilder<S> {
    /// Handles tasks of a kind in batches: each call gets up to `most` tasks, 1 to 10,000, and
    /// returns one outcome for each, in their order. An error of the call, or a panic, is the
    /// outcome of all its tasks.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// # use interval_queue_tasks::{Context, Task, TaskError, TaskQueue, Worker};
    /// async fn send(batch: Vec<(Context, String)>) -> Result<Vec<Result<String, TaskError>>, TaskError> {
    ///     let answer = |to: String| match to.contains('@') {
    ///         true => Ok(format!("sent to {to}")),
    ///         false => Err(TaskError::permanent("no address")),
    ///     };
    ///     Ok(batch.into_iter().map(|(_, to)| answer(to)).collect())
    /// }
    ///
    /// # let queue = TaskQueue::builder("mails").connect("memory:").await?;
    /// queue.add_all(["ada@example.org", "bob"].map(|to| Task::new("mail", to))).await?;
    /// let wait = Duration::from_millis(100);
    /// let worker = Worker::builder(&queue).batch("mail", 50, wait, send).build()?;
    /// let totals = worker.run_until_empty().await?;
    /// assert_eq!((totals.done, totals.failed), (1, 1));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The first task of a batch waits for others up to `wait`, at most an hour, and the call begins
    /// as soon as the batch is full. A batch holds tasks that this worker runs, so it is also full
    /// with [`jobs`](Self::jobs) tasks. Set `jobs` to a multiple of `most` to run several calls at
    /// once. Under a rate limit, a batch gets as many tasks as start within `wait`.
    ///
    /// Each task remains a run with a lease, token and timeout of its own; the wait is part of the
    /// run. A task whose payload does not deserialize fails alone. A task that is
    /// [cancelled](Context::cancelled) leaves a batch that waits, without a call. During the call it
    /// only gets the signal; if its run ends first, its outcome in the batch is ignored. The call is
    /// dropped when the runs of all its tasks have ended. Events of the call are in no task's span.
    pub fn batch<P, R, E, F, Fut>(mut self, kind: impl AsRef<str>, most: u32, wait: Duration, f: F) -> Self
    where
        P: DeserializeOwned + Send + 'static,
        R: Serialize + Send + 'static,
        E: Into<TaskError> + Send + 'static,
        F: Fn(Vec<(Context<S>, P)>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Vec<Result<R, TaskError>>, E>> + Send + 'static,
    {
        let kind = kind.as_ref();
        self.wrong = self.wrong.or_else(|| check(kind, most, wait).err());
        let (state, f) = (self.state.clone(), Arc::new(f));
        let handler = move |tasks| {
            let f = f.clone();
            async move {
                let results = f(tasks).await.map_err(Into::into)?;
                Ok(results.into_iter().map(|result| handler::output(&result?)).collect())
            }
            .boxed()
        };
        let batches = Arc::new(Batches { wait, handler: Arc::new(handler), open: Mutex::default() });
        let handler = move |run| {
            let (context, batches) = (Context::new(state.clone(), run), batches.clone());
            async move {
                let payload = handler::payload(&context.run)?;
                batches.run(most, context.clone(), (context, payload)).await
            }
            .boxed()
        };
        self.with(kind, Arc::new(handler))
    }
}

fn check(kind: &str, most: u32, wait: Duration) -> Result<(), InvalidInput> {
    if !(1..=MAX_HELD).contains(&most) {
        let text = format!("batches of {most} tasks of kind {kind:?}: give 1 to {MAX_HELD}");
        return Err(InvalidInput::new(text));
    }
    if wait > MAX_WAIT {
        let text = format!("batches of kind {kind:?} wait {wait:?} for more tasks: give at most an hour");
        return Err(InvalidInput::new(text));
    }
    Ok(())
}

struct Batches<T> {
    wait: Duration,
    handler: Handler<T>,
    /// Gone once all its runs have ended.
    open: Mutex<Weak<Batch<T>>>,
}

/// Held by its runs.
struct Batch<T> {
    members: Arc<Members<T>>,
    /// Dropping it drops the call.
    _call: RemoteHandle<()>,
}

struct Members<T> {
    /// `None`: the call has begun.
    waiting: Mutex<Option<Vec<Member<T>>>>,
    full: Notify,
}

/// A closed receiver of its reply means that the run has left the batch.
struct Member<T> {
    task: T,
    reply: oneshot::Sender<Outcome>,
}

impl<T: Send + 'static> Batches<T> {
    async fn run<S>(&self, most: u32, context: Context<S>, task: T) -> Outcome {
        let core = &context.run.core;
        let most = most.min(core.jobs) as usize;
        let (reply, mut outcome) = oneshot::channel();
        let batch = self.join(Member { task, reply }, most, core);
        let cancelled = tokio::select! {
            biased;
            outcome = &mut outcome => Some(outcome),
            () = context.cancelled() => None,
        };
        let outcome = match cancelled {
            Some(outcome) => outcome,
            None if batch.members.leave(&mut outcome) => return Err(TaskError::released()),
            None => outcome.await,
        };
        // The host has ended and dropped the call.
        outcome.unwrap_or_else(|_| Err(TaskError::released()))
    }

    fn join(&self, member: Member<T>, most: usize, core: &Core) -> Arc<Batch<T>> {
        // Declared before the guard: its drop can drop payloads, which must not happen under a
        // lock.
        let last;
        let mut open = locked(&self.open);
        last = open.upgrade();
        let member = match &last {
            None => member,
            Some(batch) => match batch.members.add(member, most) {
                None => return batch.clone(),
                Some(member) => member,
            },
        };
        let members = Arc::new(Members { waiting: Mutex::new(Some(Vec::new())), full: Notify::new() });
        members.add(member, most);
        let (host, stopping) = (core.host(), core.stopping.subscribe());
        let call = call(members.clone(), host.clone(), stopping, self.wait, self.handler.clone());
        let (call, handle) = call.remote_handle();
        let batch = Arc::new(Batch { members, _call: handle });
        *open = Arc::downgrade(&batch);
        drop(open);
        host.spawn(call.boxed());
        batch
    }
}

impl<T> Members<T> {
    /// Returns the member if the batch is full or has begun.
    fn add(&self, member: Member<T>, most: usize) -> Option<Member<T>> {
        let mut waiting = locked(&self.waiting);
        let Some(members) = &mut *waiting else { return Some(member) };
        let is_full = |members: &[Member<T>]| {
            members.len() >= most && members.iter().filter(|one| !one.reply.is_closed()).count() >= most
        };
        if is_full(members) {
            return Some(member);
        }
        members.push(member);
        if is_full(members) {
            self.full.notify_one();
        }
        None
    }

    /// False if the call has begun.
    fn leave(&self, outcome: &mut oneshot::Receiver<Outcome>) -> bool {
        let waiting = locked(&self.waiting);
        if waiting.is_some() {
            outcome.close();
        }
        waiting.is_some()
    }

    /// No member joins or leaves from now on.
    fn begin(&self) -> Vec<Member<T>> {
        let mut members = locked(&self.waiting).take().unwrap_or_default();
        members.retain(|member| !member.reply.is_closed());
        members
    }
}

/// A worker that stops gets no more members.
async fn call<T>(
    members: Arc<Members<T>>,
    host: Arc<dyn Host>,
    mut stopping: watch::Receiver<bool>,
    wait: Duration,
    handler: Handler<T>,
) {
    tokio::select! {
        _ = host::timeout(&*host, wait, members.full.notified()) => {}
        _ = stopping.wait_for(|is_stopping| *is_stopping) => {}
    }
    let (tasks, replies): (Vec<T>, Vec<_>) =
        members.begin().into_iter().map(|member| (member.task, member.reply)).unzip();
    if tasks.is_empty() {
        return;
    }
    let outcomes = caught(async move { handler(tasks).await }).await.and_then(|outcomes| {
        if outcomes.len() == replies.len() {
            return Ok(outcomes);
        }
        Err(TaskError::failed(format!(
            "the handler of a batch returned {} outcomes for {} tasks: return one for each task",
            outcomes.len(),
            replies.len()
        )))
    });
    match outcomes {
        Ok(outcomes) => {
            replies.into_iter().zip(outcomes).for_each(|(reply, outcome)| drop(reply.send(outcome)))
        }
        Err(error) => replies.into_iter().for_each(|reply| drop(reply.send(Err(error.clone())))),
    }
}
