//! One run of a task, from its start to the report of its outcome.

use std::{
    any::Any,
    panic::AssertUnwindSafe,
    pin::pin,
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use futures::{
    FutureExt,
    future::{AbortHandle, abortable},
};
use interval_queue::Host;
use interval_queue_task_contract::{Completed, Json, Leased, Outcome, State};
use interval_queue_worker::{Because, RunId};
use tokio::sync::watch;
use tracing::Instrument;

use super::{
    context::Run,
    core::Core,
    handler::{Handler, Output},
    task_error::TaskError,
};
use crate::host;

/// Time for a handler after its stop signal.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// The run must not be released.
const UNFINISHED: &str = "it was ended before it was done, and it has a single attempt";

#[derive(Debug)]
pub(super) struct Live {
    stop: watch::Sender<Option<Because>>,
    abort: AbortHandle,
}

impl Live {
    /// At once if another worker may have the task, else with time to notice.
    pub(super) fn end(&self, host: &Arc<dyn Host>, because: Because) {
        let _ = self.stop.send(Some(because));
        if matches!(because, Because::Lost | Because::LeaseEnded) {
            self.abort.abort();
        } else {
            let abort = self.abort.clone();
            let (clock, stop_by) = (host.clone(), host.now() + STOP_TIMEOUT);
            host.spawn(Box::pin(async move {
                clock.sleep_until(stop_by).await;
                abort.abort();
            }));
        }
    }

    pub(super) fn abort(&self) {
        self.abort.abort();
    }
}

/// Call it under the machine's lock, so that an order to end the run finds it. Dropping the future
/// releases the task.
pub(super) fn begin(core: &Arc<Core>, leased: Leased) -> impl Future<Output = ()> + Send + use<> {
    let handler = core.handlers.get(&leased.task.kind).cloned();
    let (stop, stopped) = watch::channel(None);
    let span = core.queue.shared.telemetry.span(&leased);
    let run = Arc::new(Run { leased, payload: OnceLock::new(), core: core.clone(), stop: stopped });
    let id = run.id();
    let (work, abort) = abortable(work(run.clone(), handler, stop.clone()));
    core.runs().insert(id, Live { stop, abort });
    let mut ending = Ending { run, id, outcome: Outcome::Exchanged, is_stored: false, began: None };
    async move {
        ending.begin();
        if let Ok(end) = work.instrument(span).await {
            ending.end(end);
        }
    }
}

enum End {
    Reported(Outcome),
    /// Already stored by the handler's transaction.
    Stored(Completed),
}

impl End {
    fn of(output: Output, id: RunId) -> Self {
        match output {
            Output::Result(result) => Self::Reported(Outcome::Done(result)),
            Output::Completed(completed) if (completed.id, completed.token) == (id.id, id.token) => {
                Self::Stored(completed)
            }
            Output::Completed(other) => {
                let text =
                    format!("its handler returned the end of another run: {} ({})", other.id, other.token);
                Self::Reported(Outcome::Error(text))
            }
        }
    }
}

async fn work(run: Arc<Run>, handler: Option<Handler>, stop: watch::Sender<Option<Because>>) -> End {
    // Unreachable: the store leases only kinds with a handler.
    let Some(handler) = handler else { return End::Reported(Outcome::Released) };
    let (core, id) = (run.core.clone(), run.id());
    let limit = run.leased.policy.timeout.map(|timeout| timeout.to_duration());
    let mut result = pin!(caught(decoded(run, handler)));
    let in_time = match limit {
        None => Ok(result.as_mut().await),
        Some(limit) => host::timeout(&**core.host(), limit, &mut result).await.ok_or(limit),
    };
    match in_time {
        Ok(Ok(output)) => End::of(output, id),
        Ok(Err(error)) => End::Reported(error.outcome()),
        Err(limit) => {
            let _ = stop.send(Some(Because::Stopping));
            match host::timeout(&**core.host(), STOP_TIMEOUT, result).await {
                Some(Ok(output)) => End::of(output, id),
                _ => End::Reported(Outcome::Error(format!("timed out after {limit:?}"))),
            }
        }
    }
}

/// The queue's codec decodes the payload and encodes the result.
async fn decoded(run: Arc<Run>, handler: Handler) -> Result<Output, TaskError> {
    let core = run.core.clone();
    let codec = &core.queue.shared.codec;
    if let Some(payload) = codec.decode("the payload", &run.leased.payload).map_err(TaskError::permanent)? {
        let _ = run.payload.set(payload);
    }
    match handler(run).await? {
        Output::Result(result) => Ok(Output::Result(codec.encode("the result", result)?)),
        completed => Ok(completed),
    }
}

pub(super) async fn caught<T>(work: impl Future<Output = Result<T, TaskError>>) -> Result<T, TaskError> {
    // `map` drops the future on completion, so a panic of its destructor is caught, too.
    let done = AssertUnwindSafe(work.map(std::convert::identity)).catch_unwind().await;
    done.unwrap_or_else(|panic| Err(TaskError::failed(panic_text(&*panic))))
}

fn panic_text(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.map_or_else(|| "panicked".into(), |text| format!("panicked: {text}"))
}

/// Reports the end of a run when dropped, however the run ends.
struct Ending {
    run: Arc<Run>,
    id: RunId,
    outcome: Outcome,
    is_stored: bool,
    began: Option<Instant>,
}

impl Ending {
    /// From now on a drop counts as the end of a begun run.
    fn begin(&mut self) {
        (self.outcome, self.began) = (Outcome::Released, Some(self.run.core.now()));
    }

    fn end(&mut self, end: End) {
        (self.outcome, self.is_stored) = match end {
            End::Reported(outcome) => (outcome, false),
            End::Stored(completed) if completed.state == State::Done => {
                (Outcome::Done(Json::default()), true)
            }
            End::Stored(_) => (Outcome::Failed("within its transaction".into()), true),
        };
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        let core = self.run.core.clone();
        let outcome = match std::mem::replace(&mut self.outcome, Outcome::Released) {
            // A released task would run again.
            Outcome::Released | Outcome::Unable(_)
                if self.run.leased.policy.max_attempts == 1 && self.run.stop.borrow().is_some() =>
            {
                Outcome::Error(UNFINISHED.into())
            }
            outcome => outcome,
        };
        let ran = self.began.map(|began| core.now().saturating_duration_since(began));
        let telemetry = &core.queue.shared.telemetry;
        // Locked before the machine knows: the worker may end with its last run and read the
        // totals.
        let mut totals = core.totals();
        let counted = if self.is_stored {
            core.machine().completed(self.id);
            core.queue.shared.completed.notify_waiters();
            true
        } else {
            core.machine().ended(self.id, outcome.clone())
        };
        if counted {
            totals.count(&outcome);
        }
        drop(totals);
        // Last, so that an order to end the run always finds it.
        core.runs().remove(&self.id);
        if counted {
            telemetry.ended(&self.run.leased, &outcome, ran);
        } else {
            telemetry.lost(self.id);
        }
        core.wake.notify_one();
    }
}
