//! The control loop of a worker: it carries out the decisions of the machine.

use std::{
    pin::Pin,
    sync::Arc,
    time::{Duration, Instant},
};

use futures::{
    FutureExt, StreamExt,
    future::{AbortHandle, abortable},
};
use interval_queue::{StateError, StateErrorKind};
use interval_queue_task_contract::{Command, Counted, Read, Reply, State, Step, Stepped};
use interval_queue_worker::Next;

use super::{core::Core, run, schedules::Schedules, watch, worker_pace};
use crate::{error::Error, host, totals::Totals};

/// Dropping it ends the worker and its runs.
struct Driver {
    core: Arc<Core>,
    watching: AbortHandle,
    /// Empty if the queue has no rate.
    slot_requests: worker_pace::SlotRequests,
    rate: worker_pace::RateLookup,
    schedules: Schedules,
    until: Until,
    /// The last check whether tasks are left. `None`: the worker runs until it is stopped.
    until_empty: Option<Instant>,
}

/// When a worker ends that is not stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Until {
    Stopped,
    /// No task of its kinds is left.
    Empty,
    /// No task of its kinds is ready.
    NoneReady,
}

/// Other workers may have the last tasks.
const EMPTY_CHECK_INTERVAL: Duration = Duration::from_millis(250);

impl Drop for Driver {
    /// Nothing renews the lease of the runs any more.
    fn drop(&mut self) {
        self.watching.abort();
        self.core.runs().values().for_each(run::Live::abort);
        self.core.outages().over(&self.core.queue.shared.telemetry);
        if let Some(membership) = &self.core.membership {
            membership.leave(self.core.host().random());
        }
    }
}

struct Answer {
    sequence: u64,
    completes: bool,
    sent: Instant,
    reply: Result<Stepped, StateError>,
}

async fn send(core: Arc<Core>, step: Step) -> Answer {
    let (sequence, completes, sent) = (step.sequence, !step.complete.is_empty(), core.now());
    core.connection.send_modify(|connection| connection.sent = Some(sent));
    let reply = match core.queue.shared.command(Command::Step(step)).await {
        Ok(Reply::Stepped(stepped)) => Ok(stepped),
        Ok(other) => {
            Err(StateError::new(StateErrorKind::Damaged, format!("a step was answered by {other:?}")))
        }
        Err(error) => Err(error),
    };
    Answer { sequence, completes, sent, reply }
}

/// Spawned like its runs: on the caller's thread, each message between them would wake another
/// thread.
pub(super) async fn drive(core: Arc<Core>, until: Until) -> Result<Totals, Error> {
    let host = core.host().clone();
    let (work, end) = work(core, until).remote_handle();
    host.spawn(work.boxed());
    // Dropping `end` drops the spawned task.
    end.await
}

async fn work(core: Arc<Core>, until: Until) -> Result<Totals, Error> {
    core.queue.shared.telemetry.worker_started(&core.machine().identity);
    let (watch, watching) = abortable(watch::keep_watching(core.clone()));
    core.host().spawn(Box::pin(watch.map(drop)));
    let until_empty = (until != Until::Stopped).then(|| core.now());
    let (slot_requests, rate, schedules) =
        (worker_pace::SlotRequests::new(), worker_pace::RateLookup::default(), Schedules::default());
    let mut driver =
        Driver { core: core.clone(), watching, slot_requests, rate, schedules, until, until_empty };
    let mut under_way: Option<Pin<Box<dyn Future<Output = Answer> + Send>>> = None;
    loop {
        driver.act();
        let rate_at = driver.rate.begin(&core);
        let (asks_at, next) = {
            let mut machine = core.machine();
            (core.acquire_permits(&mut machine), machine.next(core.now()))
        };
        let until = match next {
            Next::Done => break,
            Next::Send(mut step) => {
                let at_least = core.at_least();
                core.machine().restrict(&mut step, at_least);
                under_way = Some(Box::pin(send(core.clone(), *step)));
                continue;
            }
            Next::Sleep(until) => {
                until.into_iter().chain(driver.empty_check_at()).chain(asks_at).chain(rate_at).min()
            }
        };
        let answered = async {
            match &mut under_way {
                Some(answer) => answer.await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            answer = answered => {
                under_way = None;
                driver.absorb(answer).await?;
            }
            () = core.wake.notified() => {}
            _ = driver.slot_requests.next(), if !driver.slot_requests.is_empty() => {}
            () = driver.rate.done(&core) => {}
            () = driver.schedules.done(&core) => {}
            () = host::sleep_until(&**core.host(), until) => driver.check_empty().await,
        }
    }
    let unreported = core.machine().give_up();
    unreported.into_iter().for_each(|run| core.queue.shared.telemetry.lost(run));
    let totals = *core.totals();
    core.queue.shared.telemetry.worker_stopped(&core.machine().identity, totals);
    Ok(totals)
}

impl Driver {
    /// Carries out pending orders, then starts tasks.
    fn act(&mut self) {
        let core = &self.core;
        let now = core.now();
        if let Some(grace) = core.take_stop_request() {
            core.machine().stop(now + grace);
            core.answered.notify_waiters();
        }
        loop {
            let Some(order) = core.machine().order() else { break };
            if let Some(live) = core.runs().get(&order.run) {
                live.end(core.host(), order.because);
            }
        }
        if core.machine().pace.ahead.is_some() {
            return worker_pace::request_slots(core, &mut self.slot_requests);
        }
        // The rate was removed: nothing waits for slots any more.
        self.slot_requests.clear();
        loop {
            let run = {
                let mut machine = core.machine();
                let Some(leased) = machine.start(now) else { return };
                run::begin(core, leased)
            };
            core.host().spawn(Box::pin(run));
        }
    }

    async fn absorb(&mut self, answer: Answer) -> Result<(), Error> {
        let Answer { sequence, completes, sent, reply } = answer;
        let core = &self.core;
        let shared = &core.queue.shared;
        let now = core.now();
        let stepped = match reply {
            Ok(stepped) => stepped,
            Err(error) => {
                let is_first = {
                    let mut machine = core.machine();
                    machine.fail(sequence, &error, now, core.host().random());
                    machine.connection.acknowledged == 0
                };
                core.connection.send_modify(|connection| connection.failed(sent, &error));
                core.outages().failed(&shared.telemetry, &error, sent, now);
                // The caller gets an error of the first step. Later errors may be fixed meanwhile.
                return if is_first && !error.is_retryable() { Err(error.into()) } else { Ok(()) };
            }
        };
        shared.telemetry.stepped(now.saturating_duration_since(sent));
        worker_pace::keep_ahead(core, now.saturating_duration_since(sent));
        let leased: Vec<_> = stepped.leased.iter().map(|leased| leased.task.clone()).collect();
        let resync = stepped.resync;
        let (absorbed, is_idle) = {
            let mut machine = core.machine();
            let lease = machine.identity.lease.to_duration();
            core.connection.send_modify(|connection| connection.answered(sent, (!resync).then_some(lease)));
            let absorbed = machine.absorb(sequence, stepped, now);
            // Other workers get unused permits before anything is awaited.
            core.acquire_permits(&mut machine);
            (absorbed, core.is_idle(&machine))
        };
        let Some(absorbed) = absorbed else { return Ok(()) };
        leased.iter().for_each(|task| shared.telemetry.leased(task));
        absorbed.lost.iter().for_each(|run| shared.telemetry.lost(*run));
        absorbed.refused.iter().for_each(|id| shared.telemetry.refused(*id));
        core.outages().answered(&shared.telemetry, now);
        self.schedules.absorb(core, sequence, absorbed.schedules);
        if completes {
            shared.completed.notify_waiters();
        }
        core.answered.notify_waiters();
        if is_idle {
            self.end_if_empty().await;
        }
        Ok(())
    }

    /// `None`: the worker is not idle, or does not end by itself.
    fn empty_check_at(&self) -> Option<Instant> {
        let checked = self.until_empty?;
        let machine = self.core.machine();
        let is_idle = machine.stopping.is_none() && self.core.is_idle(&machine);
        is_idle.then(|| checked + EMPTY_CHECK_INTERVAL)
    }

    async fn check_empty(&mut self) {
        if self.empty_check_at().is_some_and(|at| at <= self.core.now()) {
            self.end_if_empty().await;
        }
    }

    async fn end_if_empty(&mut self) {
        if self.until_empty.is_some() {
            let is_over = self.schedules.is_completed()
                && match self.until {
                    Until::NoneReady => !self.core.machine().connection.more,
                    _ => is_empty(&self.core).await,
                };
            if is_over {
                self.core.stop_within(Duration::ZERO);
            }
            self.until_empty = Some(self.core.now());
        }
    }
}

/// Of the kinds that the worker serves and has not set aside. A task that waits forever counts as
/// left.
async fn is_empty(core: &Core) -> bool {
    let reply = core.queue.shared.command(Command::Read(Read::Overview)).await;
    let Ok(Reply::Overview(overview)) = reply else { return false };
    let is_left = |state: State| !state.is_ended();
    let kinds = core.machine().identity.kinds.clone();
    !overview.counts.iter().any(|(kind, counted, count)| {
        *count > 0 && kinds.contains(kind) && matches!(counted, Counted::Now(state) if is_left(*state))
    })
}
