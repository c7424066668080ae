//! A joint job's position in one of its queues.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use futures::{FutureExt, channel::oneshot, future::BoxFuture};
use interval_queue_contract::{Change, Micros, Ticket};
use tokio::sync::OwnedSemaphorePermit;

use super::plan::{Estimate, MemberState};
use crate::{
    IntervalQueue,
    error::Error,
    line::{Gate, MAX_MEMORY_AGE, MIN_TOLERANCE},
    shard::{Accepted, Entry, Job, Running, Shard, Terms, Waiting, WithdrawGuard},
    telemetry::Origin,
    turn::handover,
};

/// Counts a job that is about to join the shard's line.
struct Announced(Arc<Shard>);

impl Drop for Announced {
    fn drop(&mut self) {
        self.0.line().backlog.announced -= 1;
    }
}

struct Waits {
    guard: WithdrawGuard,
    gate: Gate,
    /// `None` once taken.
    taken: Option<BoxFuture<'static, Result<Ticket, Error>>>,
    slot: oneshot::Receiver<Result<Running, Error>>,
    /// `None` once the ticket is taken.
    estimated: Option<Instant>,
}

enum Held {
    Nothing,
    Waits(Waits),
    InHand(Running),
}

pub(super) struct Member {
    pub(super) queue: IntervalQueue,
    terms: Terms,
    origin: Origin,
    held: Held,
    /// While the job is absent and about to join.
    announced: Option<Announced>,
    /// `None`: the line is unbounded.
    permit: Option<OwnedSemaphorePermit>,
}

impl Member {
    pub(super) fn new(queue: IntervalQueue, terms: Terms, origin: Origin) -> Self {
        Self { queue, terms, origin, held: Held::Nothing, announced: None, permit: None }
    }

    pub(super) async fn take_permit(&mut self) -> Result<(), Error> {
        let permit = self.shard().acquire(1, &self.terms).await;
        self.permit = permit.inspect_err(|error| self.note_refusal(error))?;
        Ok(())
    }

    pub(super) fn shard(&self) -> &Arc<Shard> {
        &self.queue.shard
    }

    fn state(&self) -> MemberState {
        match &self.held {
            Held::Nothing => MemberState::Absent,
            Held::Waits(Waits { gate: Gate::Closed, .. }) => MemberState::Gated,
            Held::Waits(Waits { gate: Gate::Open, .. }) => MemberState::Open,
            Held::InHand(_) => MemberState::InHand,
        }
    }

    pub(super) fn is_open(&self) -> bool {
        self.state() == MemberState::Open
    }

    pub(super) fn is_in_hand(&self) -> bool {
        self.state() == MemberState::InHand
    }

    /// Reads the record first if that is old and there is no `hurry`.
    pub(super) fn estimate(&self, hurry: bool) -> BoxFuture<'static, Estimate> {
        let (state, interval, tolerance) = (self.state(), self.interval(), self.tolerance());
        let (queue, terms) = (self.queue.clone(), self.terms.clone());
        let announced = self.announced.is_some();
        let (id, estimated) = match &self.held {
            Held::Waits(waits) => (waits.guard.id, waits.estimated.filter(|_| waits.taken.is_some())),
            _ => (0, None),
        };
        async move {
            let shard = &queue.shard;
            let announced = if announced { queue.interval() } else { Duration::ZERO };
            let slot = match state {
                _ if hurry => Some(shard.host.now()),
                MemberState::Absent => {
                    shard.estimate_joint_start(&terms).await.and_then(|slot| slot.checked_sub(announced))
                }
                MemberState::Gated | MemberState::Open if estimated.is_some() => estimated,
                _ => {
                    let old = {
                        let line = shard.line();
                        let age = shard.host.now().saturating_duration_since(line.connection.last_reply);
                        state == MemberState::Gated
                            && age > MAX_MEMORY_AGE
                            && line.connection.failing.is_none()
                    };
                    if old {
                        queue.tick().await;
                    }
                    shard.line().earliest_start(id, terms.line.priority, shard.host.now())
                }
            };
            let now = shard.host.now();
            let wait = slot.map(|slot| slot.saturating_duration_since(now));
            let lead = shard.lead().get().to_duration();
            // With a running limit a slot may come late.
            let sure = shard.line().connection.memory.max_running.is_none();
            Estimate { state, wait, interval, lead, tolerance, sure }
        }
        .boxed()
    }

    /// The next slot is delayed as much, and other shards must learn of that before they are
    /// granted it.
    pub(super) fn tolerance(&self) -> Duration {
        let lead = self.shard().lead().get().to_duration();
        lead.max(self.interval() / 2).max(MIN_TOLERANCE)
    }

    fn interval(&self) -> Duration {
        self.queue.interval().saturating_mul(self.terms.line.weight)
    }

    /// When the held slot becomes stale.
    pub(super) fn good_until(&self) -> Option<Instant> {
        let Held::InHand(running) = &self.held else { return None };
        Some(running.since + self.tolerance())
    }

    pub(super) fn announce(&mut self) {
        if matches!(self.held, Held::Nothing) && self.announced.is_none() {
            self.shard().line().backlog.announced += 1;
            self.announced = Some(Announced(self.shard().clone()));
        }
    }

    pub(super) fn renounce(&mut self) {
        self.announced = None;
    }

    pub(super) fn arrive(&mut self, gate: Gate, estimated: Option<Instant>) -> Result<(), Error> {
        self.renounce();
        let shard = self.queue.shard.clone();
        let (job, slot) = self.job();
        let arrived = self.terms.admit(&shard, || shard.arrive(vec![job], Entry::Joint(gate)));
        let arrived = arrived.inspect_err(|error| self.note_refusal(error))?;
        let Accepted { guard, taken } = arrived.into_iter().next().ok_or_else(Error::closed)?;
        let taken = async move { taken.wait().await }.boxed();
        self.held = Held::Waits(Waits { guard, gate, taken: Some(taken), slot, estimated });
        shard.wake();
        Ok(())
    }

    /// Joins the line first if absent.
    pub(super) fn open(&mut self, estimated: Option<Instant>) -> Result<(), Error> {
        let Held::Waits(waits) = &mut self.held else { return self.arrive(Gate::Open, estimated) };
        waits.gate = Gate::Open;
        let shard = &self.queue.shard;
        shard.line().open_gate(waits.guard.id, shard.host.now());
        shard.wake();
        Ok(())
    }

    /// Gives back a held slot.
    pub(super) fn close(&mut self) -> Result<(), Error> {
        match std::mem::replace(&mut self.held, Held::Nothing) {
            Held::Nothing => {}
            Held::Waits(mut waits) => {
                waits.gate = Gate::Closed;
                self.shard().line().backlog.close_gate(waits.guard.id);
                self.held = Held::Waits(waits);
            }
            Held::InHand(running) if running.ticket == Ticket::NONE => drop(running),
            Held::InHand(running) => self.give_back(running)?,
        }
        Ok(())
    }

    fn give_back(&mut self, running: Running) -> Result<(), Error> {
        let shard = self.queue.shard.clone();
        let (job, slot) = self.job();
        let (id, ticket) = (running.id, running.ticket);
        let put_back = || {
            let mut line = shard.line();
            if line.shut_down {
                return Err(Error::cancelled());
            }
            line.give_back(id, ticket, job);
            Ok(())
        };
        self.terms.admit(&shard, put_back)?;
        let guard = WithdrawGuard::new(shard.clone(), id);
        self.held = Held::Waits(Waits { guard, gate: Gate::Closed, taken: None, slot, estimated: None });
        Ok(())
    }

    fn job(&self) -> (Waiting, oneshot::Receiver<Result<Running, Error>>) {
        let (start, slot) = handover();
        (Waiting::new(self.terms.line, Job::new(start).from(self.origin.clone())), slot)
    }

    fn note_refusal(&self, error: &Error) {
        let shard = self.shard();
        shard.note_refusal(error, shard.host.now(), &self.terms.line, 1);
    }

    /// When the ticket is taken or the slot has come.
    pub(super) fn poll_change(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        let Held::Waits(waits) = &mut self.held else { return Poll::Pending };
        let mut changed = false;
        if let Some(taken) = &mut waits.taken
            && let Poll::Ready(ticket) = taken.poll_unpin(context)
        {
            ticket?;
            waits.taken = None;
            changed = true;
        }
        if let Poll::Ready(slot) = Pin::new(&mut waits.slot).poll(context) {
            self.held = Held::InHand(slot.unwrap_or_else(|_| Err(Error::cancelled()))?);
            changed = true;
        }
        if changed { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    pub(super) fn round_trip(&self) -> Duration {
        self.shard().lead().round_trip()
    }

    /// If the round trips (`answers`) do not explain the delay, holds the queue, so that the next
    /// slot keeps its distance from the start.
    pub(super) fn start(self, now: Instant, answers: Duration) -> Option<Running> {
        let Held::InHand(running) = self.held else { return None };
        let shard = self.queue.shard;
        // Zero with bursts: no distance is kept.
        let interval = shard.line().connection.memory.spacing();
        let late = now.saturating_duration_since(running.since);
        let borne = answers + (interval.to_duration() / 100).max(MAX_FREE_DELAY);
        if interval > Micros::ZERO && late > borne && running.ticket != Ticket::NONE {
            // The hold reaches the store half a round trip from now.
            let under_way = Micros::from_duration(shard.lead().round_trip() / 2);
            let hold = Change::Hold(interval * u64::from(self.terms.line.weight) - under_way);
            let host = shard.host.clone();
            host.spawn(Box::pin(async move {
                // If it fails, the next start comes closer by as much.
                let _ = shard.change_now(hold).await;
            }));
        }
        Some(running)
    }
}

/// Holds no queue.
const MAX_FREE_DELAY: Duration = Duration::from_millis(1);
