//! The driver: the one task of a shard, alive only while jobs wait or run. It sends one poll
//! (`Step`) at a time and starts jobs at their slots. No user code runs in it.

use std::{iter, sync::Arc, time::Instant};

use futures::future::BoxFuture;
use interval_queue_contract::{Command, Reply, Snapshot, StateError, Step, Stepped, Ticket};

use crate::{
    connection::{Connection, Failing},
    error::Error,
    host::Host,
    line::{COMMAND_TIMEOUT, Due, Next},
    shard::{Arriving, Running, Shard, Started, Starting, Withdrawn, refuse, timed_out},
    telemetry::{Run, Sent},
    wake,
};

/// Marks a driver that has not stopped by itself as ended in `Drop`: the runtime may drop it
/// anywhere.
struct Driving {
    shard: Arc<Shard>,
    stopped: bool,
}

impl Drop for Driving {
    fn drop(&mut self) {
        if !self.stopped {
            let mut line = self.shard.line();
            line.driving = false;
            line.orphaned = true;
        }
        self.shard.idle.notify_waiters();
        self.shard.answered.notify_waiters();
    }
}

struct PendingCommand {
    /// `None`: the command reads the record.
    step: Option<Step>,
    sent: Instant,
    reply: BoxFuture<'static, Result<Reply, StateError>>,
}

pub(crate) fn of(shard: Arc<Shard>) -> BoxFuture<'static, ()> {
    Box::pin(drive(Driving { shard, stopped: false }))
}

async fn drive(mut driving: Driving) {
    let shard = &driving.shard.clone();
    let mut under_way: Option<PendingCommand> = None;
    let (mut alarm, mut patience) = (Alarm::default(), Alarm::default());
    loop {
        if start_what_is_due(shard) == MAX_STARTS_IN_A_ROW {
            tokio::task::yield_now().await;
            continue;
        }
        let lead = shard.lead().get();
        let wake_at = {
            let mut line = shard.line();
            match line.next(shard.host.now(), lead, under_way.is_some()) {
                Next::Send(step) => {
                    let unspaced = line.cannot_space() && !std::mem::replace(&mut line.unspaced, true);
                    drop(line);
                    if unspaced {
                        shard.telemetry.unspaced(step.memory.interval(), lead);
                    }
                    under_way = Some(send(shard, Some(*step)));
                    continue;
                }
                Next::Read => {
                    drop(line);
                    under_way = Some(send(shard, None));
                    continue;
                }
                Next::Sleep(wake_at) => wake_at,
                Next::Stop => {
                    // Under the lock of the line, so that the next wake-up starts another driver.
                    line.driving = false;
                    driving.stopped = true;
                    break;
                }
            }
        };
        let reply = async {
            let Some(PendingCommand { sent, reply, .. }) = &mut under_way else {
                return std::future::pending().await;
            };
            let given_up = *sent + COMMAND_TIMEOUT;
            tokio::select! {
                biased;
                reply = reply => reply,
                () = patience.not_before(&*shard.host, given_up) => Err(timed_out()),
            }
        };
        tokio::select! {
            biased;
            reply = reply => {
                if let Some(PendingCommand { step, sent, .. }) = under_way.take() {
                    match step {
                        Some(step) => absorb_reply(shard, &step, sent, reply.and_then(Reply::stepped)),
                        None => absorb_read(shard, sent, reply.and_then(Reply::read)),
                    }
                }
                // A store that replies at once must not occupy the thread.
                tokio::task::coop::consume_budget().await;
            }
            () = alarm.at(&*shard.host, wake_at) => {
                if let Some(wake_at) = wake_at {
                    shard.lead().observe_lateness(shard.host.now().saturating_duration_since(wake_at));
                }
            }
            () = shard.woken.notified() => {}
        }
    }
    drop((alarm, patience));
    shard.host.rest();
}

/// Kept while other events wake the driver.
#[derive(Default)]
struct Alarm {
    set: Option<(Instant, BoxFuture<'static, ()>)>,
}

impl Alarm {
    async fn at(&mut self, host: &dyn Host, instant: Option<Instant>) {
        let Some(instant) = instant else {
            self.set = None;
            return std::future::pending().await;
        };
        self.set.take_if(|(set, _)| *set != instant);
        let (_, sleep) = self.set.get_or_insert_with(|| (instant, host.sleep_until(instant)));
        sleep.await;
        self.set = None;
    }

    /// For instants that only increase and usually pass unused: the timer is not moved until it
    /// fires.
    async fn not_before(&mut self, host: &dyn Host, instant: Instant) {
        while host.now() < instant {
            let (_, sleep) = self.set.get_or_insert_with(|| (instant, host.sleep_until(instant)));
            sleep.await;
            self.set = None;
        }
    }
}

fn send(shard: &Arc<Shard>, step: Option<Step>) -> PendingCommand {
    let command = step.clone().map_or(Command::Read, Command::Step);
    let sent = shard.host.now();
    let shard = shard.clone();
    let reply = Box::pin(async move { shard.apply(command).await });
    PendingCommand { step, sent, reply }
}

/// Rejects jobs that would start too late. After a failed read they go on without an estimate: the
/// poll that takes their tickets returns the error.
fn absorb_read(shard: &Arc<Shard>, sent: Instant, reply: Result<Option<Snapshot>, StateError>) {
    let now = shard.host.now();
    shard.telemetry.meter.replied(Sent::Read, now.saturating_duration_since(sent), &reply);
    let refused: Vec<_> = {
        let mut line = shard.line();
        if let Ok(Some(snapshot)) = reply {
            let seen = line.observe(&snapshot, sent, now);
            iter::from_fn(|| line.refuse_by(&seen, now)).collect()
        } else {
            line.backlog.unestimated.clear();
            Vec::new()
        }
    };
    refused.into_iter().for_each(|(job, estimate)| shard.give_up(job, Some(estimate), now));
}

fn absorb_reply(shard: &Arc<Shard>, step: &Step, sent: Instant, reply: Result<Stepped, StateError>) {
    let received = shard.host.now();
    shard.telemetry.meter.replied(Sent::Step, received.saturating_duration_since(sent), &reply);
    match reply {
        Ok(stepped) => {
            shard.lead().observe_round_trip(received.saturating_duration_since(sent));
            let connection = Connection::after(step, &stepped, received);
            let absorbed = shard.line().absorb(step, stepped, sent, received);
            absorbed.taken.into_iter().for_each(|(caller, ticket)| caller.notify(Ok(ticket)));
            if let Some(outage) = absorbed.outage {
                shard.telemetry.state_answers(outage);
            }
            shard.telemetry.rejoined(absorbed.settling);
            wake::watch(shard);
            shard.connection.send_replace(connection);
        }
        Err(error) => {
            let refused = shard.line().fail(&error, received, shard.host.random());
            for Arriving { job, caller, .. } in refused {
                refuse(Withdrawn { job, caller: Some(caller) }, Error::from(error.clone()));
            }
            shard.connection.send_modify(|connection| {
                Failing::record(&mut connection.failing, &error, received);
            });
            shard.report(error);
        }
    }
    shard.answered.notify_waiters();
    shard.notify_stopped();
}

/// Other tasks run after as many starts.
const MAX_STARTS_IN_A_ROW: usize = 64;

/// Also gives up late jobs. Returns the number of starts.
fn start_what_is_due(shard: &Arc<Shard>) -> usize {
    let (mut count, mut started) = (0, None);
    loop {
        // Read for each job: if the process was stopped meanwhile, later jobs may be too late.
        let now = shard.host.now();
        let due = {
            let mut line = shard.line();
            if let Some(started) = started.take() {
                line.started(started);
            }
            if count == MAX_STARTS_IN_A_ROW { None } else { line.next_due(now) }
        };
        match due {
            Some(Due::Start(starting)) => started = start(shard, starting, now),
            Some(Due::GiveUp(job)) => shard.give_up(job, None, now),
            Some(Due::Refuse(job, estimate)) => shard.give_up(job, Some(estimate), now),
            None => return count,
        }
        count += 1;
    }
}

/// Or the next waiting job, if the caller no longer wants the first.
fn start(shard: &Arc<Shard>, mut starting: Starting, now: Instant) -> Option<Started> {
    loop {
        let Starting { id, mut job, grant, caller } = starting;
        let weight = job.weight;
        let alone = if grant.is_none() { shard.line().report_alone(now) } else { None };
        if let Some(share) = alone {
            shard.telemetry.runs_alone(share);
        }
        let ticket = grant.map_or(Ticket::NONE, |grant| grant.ticket);
        let slot = grant.as_ref().map(|grant| grant.slot);
        let run = Run::of(weight, job.priority(), job.payload.take_origin(), slot);
        let running = Running { shard: shard.clone(), id, ticket, since: now, run };
        let started = job.payload.start.start(running);
        if let Some(caller) = caller {
            caller.notify(Ok(ticket));
        }
        let unwanted = match started {
            Ok(abort) => return Some(Started { id, at: now, weight, abort }),
            Err(running) => running,
        };
        unwanted.pass_on();
        starting = shard.line().fill(grant?, shard.host.now())?;
    }
}
