//! A shard: the line that is shipped, and the one step of it that is under way.

use std::{
    sync::LazyLock,
    time::{Duration, Instant},
};

use interval_queue_contract::{
    Ask, Grant, Label, Late, Memory, Micros, ShardId, StateError, StateErrorKind, Step, Stepped, Taken,
    Ticket, Wait, WaitReason,
};
use interval_queue_line::{
    Due, Identity, Line, LostBecause, Next, SpaceBy, Started, StateClock, Terms, Waiting, WhenStateIsLost,
};

use crate::{
    Asking, Flaw, Sight,
    setup::{NOW, Setup, TICK},
};

/// A grant that waits for its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Granted {
    pub(crate) slot: Micros,
    pub(crate) ticket: Ticket,
    pub(crate) weight: u32,
}

/// What the state answered, its durations turned to instants at once.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Answer {
    pub(crate) memory: Memory,
    pub(crate) taken: Option<Taken>,
    pub(crate) grants: Vec<Granted>,
    /// None: nothing is left to wait for.
    pub(crate) wait: Option<Option<Micros>>,
    pub(crate) reason: Option<WaitReason>,
    pub(crate) present: bool,
    pub(crate) running: u32,
    pub(crate) given_up: Option<Ticket>,
}

/// The one step that is under way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Wire {
    #[default]
    Idle,
    Sent(Box<Step>),
    /// The reply is on its way; none: an error.
    Answered(Box<Option<Answer>>),
}

#[derive(Clone, Debug)]
pub(crate) struct Shard {
    pub(crate) alive: bool,
    /// How many of its jobs it has added.
    pub(crate) added: usize,
    pub(crate) line: Line<()>,
    pub(crate) wire: Wire,
    /// A request that was given up by its shard and may arrive all the same.
    pub(crate) stray: Option<Box<Step>>,
    /// Whether the record took it for dead while jobs of it ran, which then nobody counts.
    pub(crate) lapsed: bool,
    /// Only of flawed shards: a step to be sent again as it was, the last one sent, and an answer that came
    /// too late.
    pub(crate) resend: Option<Box<Step>>,
    pub(crate) last: Option<Box<Step>>,
    pub(crate) stale: Option<Box<Answer>>,
}

/// What the clock of the state shows is what those of the shards show.
static BEGINNING: LazyLock<Instant> = LazyLock::new(|| {
    #[allow(clippy::disallowed_methods, reason = "any instant does, only differences count")]
    Instant::now()
});

pub(crate) fn instant(at: Micros) -> Instant {
    *BEGINNING + at.to_duration()
}

pub(crate) fn micros(instant: Instant) -> Micros {
    Micros::from_duration(instant.saturating_duration_since(*BEGINNING))
}

/// A clock that agrees with that of the state.
pub(crate) fn exact() -> StateClock {
    let mut clock = StateClock::new(*BEGINNING);
    clock.observe(NOW, instant(NOW), instant(NOW));
    clock
}

impl Shard {
    /// A shard that has opened the queue and remembers that.
    pub(crate) fn new(setup: &Setup, n: usize, memory: Memory) -> Self {
        let identity = Identity {
            shard: Self::id(n).clone(),
            label: Label::default(),
            lease: TICK * setup.lease,
            linger: Duration::ZERO,
            late: Late::NextSlot,
            space_by: SpaceBy::Slots,
            when_lost: WhenStateIsLost::Wait,
        };
        let mut line = Line::new(identity, instant(NOW));
        line.connection.memory = memory;
        line.clock = exact();
        Self {
            alive: true,
            added: 0,
            line,
            wire: Wire::Idle,
            stray: None,
            lapsed: false,
            resend: None,
            last: None,
            stale: None,
        }
    }

    pub(crate) fn id(n: usize) -> &'static ShardId {
        static IDS: LazyLock<[ShardId; 4]> = LazyLock::new(|| {
            ["a", "b", "c", "d"]
                .map(|name| ShardId::new(name).unwrap_or_else(|error| unreachable!("{error}")))
        });
        &IDS[n]
    }

    /// Adds its next job.
    pub(crate) fn add(&mut self, weight: u32) {
        self.added += 1;
        let terms = Terms { weight, priority: 0, deadline: None, group: None };
        self.line.arrive(Waiting::new(terms, ()), (), instant(NOW), None);
    }

    /// Whether every job that it has accepted has started.
    pub(crate) fn has_started_all(&self) -> bool {
        let Line { backlog, held, .. } = &self.line;
        backlog.is_empty() && backlog.taking.is_none() && held.grants.is_empty()
    }

    /// How many jobs the state counts.
    pub(crate) fn counted(&self) -> usize {
        self.line.running.len() + self.line.held.grants.len()
    }

    /// Makes its next step, if it is time for one. A driver first starts what is due, but something may come
    /// due just behind that.
    pub(crate) fn step(&mut self, setup: &Setup, n: usize) -> Option<Box<Step>> {
        let step = self.resend.take().or_else(|| next(&mut self.line, setup, n))?;
        self.last = setup.flaw.is_some_and(Flaw::resends).then(|| step.clone());
        Some(step)
    }

    /// Whether it has one.
    pub(crate) fn has_step(&self, setup: &Setup, n: usize) -> bool {
        self.resend.is_some() || next(&mut self.line.clone(), setup, n).is_some()
    }

    /// Takes in a reply.
    pub(crate) fn absorb(&mut self, answer: Answer) {
        let (step, stepped) = answer.told();
        let at = stepped.memory.at;
        self.line.absorb(&step, stepped, instant(at), instant(NOW));
        self.line.connection.memory.at = answer.memory.at;
        self.line.clock = exact();
        for grant in &mut self.line.held.grants {
            grant.slot = to_a_tick(grant.slot);
            grant.store_slot = micros(grant.slot);
        }
        self.line.connection.ask_at = self.line.connection.ask_at.map(to_a_tick);
    }

    /// Whether its next grant has come.
    pub(crate) fn can_start(&self) -> bool {
        let Line { held, connection, .. } = &self.line;
        self.alive && held.usable_grant(connection.memory.spacing(), instant(NOW)).is_some()
    }

    /// Starts what is due; none if the grant is given up, for being too late or too light.
    pub(crate) fn start(&mut self, setup: &Setup) -> Option<Granted> {
        let Some(Due::Start(starting)) = self.line.next_due(instant(NOW)) else { return None };
        let (id, weight) = (starting.id, starting.job.weight);
        self.line.started(Started { id, at: instant(NOW), weight, abort: None });
        if setup.limit.is_none() {
            self.line.finish(id);
        }
        starting.grant.map(|grant| Granted { slot: micros(grant.slot), ticket: grant.ticket, weight })
    }

    /// A job ends.
    pub(crate) fn finish(&mut self) {
        if let Some(first) = self.line.running.keys().min().copied() {
            self.line.finish(first);
        }
    }

    /// Whether it has a job to withdraw.
    pub(crate) fn last_waiting(&self) -> Option<u64> {
        (0..=self.line.backlog.last_id).rev().find(|id| self.line.backlog.waiting.contains(*id))
    }

    /// What was seen of it since this was asked last.
    pub(crate) fn sights(&mut self) -> Option<Sight> {
        let lost = std::mem::take(&mut self.line.held.lost);
        lost.iter().any(|lost| lost.because == LostBecause::LateStart).then_some(Sight::GivenUp)
    }

    /// A step was refused.
    pub(crate) fn fail(&mut self, kind: StateErrorKind) {
        let refused = self.line.fail(&StateError::new(kind, "trouble"), instant(NOW), 0);
        debug_assert!(refused.is_empty(), "jobs are only refused by errors that last");
    }

    /// The step under way gets no answer.
    pub(crate) fn time_out(&mut self, setup: &Setup) {
        let answer = match std::mem::take(&mut self.wire) {
            Wire::Sent(step) => {
                self.stray = Some(step);
                None
            }
            Wire::Answered(answer) => *answer,
            Wire::Idle => return,
        };
        let guess = self.guess(setup.flaw);
        match setup.flaw {
            Some(Flaw::ResendsAsItWas) => self.resend = self.last.take(),
            Some(Flaw::TakesBothAnswers) => {
                self.resend = self.last.take();
                self.stale = answer.map(Box::new);
            }
            Some(Flaw::GuessesItsTickets | Flaw::FailsOpen) if guess.is_some() => {
                guess.into_iter().for_each(|guess| self.absorb(guess));
            }
            _ => self.fail(StateErrorKind::TimedOut),
        }
    }

    /// The answer that a flawed shard makes up.
    fn guess(&self, flaw: Option<Flaw>) -> Option<Answer> {
        let Line { connection, backlog, held, .. } = &self.line;
        let mut answer = Answer {
            memory: connection.memory,
            taken: None,
            grants: Vec::new(),
            wait: Some(Some(NOW)),
            reason: None,
            present: connection.present,
            running: u32::try_from(self.counted()).unwrap_or(0),
            given_up: None,
        };
        if flaw == Some(Flaw::GuessesItsTickets) {
            let first = connection.memory.ticket.after(1);
            answer.taken = Some(Taken { first, count: backlog.taking.as_ref()?.count });
        } else {
            let weight = backlog.waiting.first()?.weight;
            answer.grants.push(Granted { slot: NOW, ticket: *held.tickets.first()?, weight });
        }
        Some(answer)
    }
}

/// The next step of a line, if it is time for one.
fn next(line: &mut Line<()>, setup: &Setup, n: usize) -> Option<Box<Step>> {
    if setup.asking == Asking::AnyTime && !line.held.tickets.is_empty() {
        line.connection.request_now(instant(NOW));
    }
    match line.next(instant(NOW), setup.lead_of(n), false) {
        Next::Send(step) => Some(step),
        Next::Read | Next::Sleep(_) | Next::Stop => None,
    }
}

/// The line reads instants off the clock of the state, which may drift: later than exact by less than this.
const BLUR: Micros = Micros::new(1_000);

/// On ticks again: a shard may always be late.
fn to_a_tick(at: Instant) -> Instant {
    instant(round_up(micros(at) - BLUR))
}

impl Answer {
    pub(crate) fn of(step: &Step, stepped: Stepped) -> Self {
        let at = stepped.memory.at;
        let grants = stepped.grants.iter().zip(step.asked(stepped.taken));
        let grants =
            grants.map(|(&Grant { ticket, slot }, Ask { weight, .. })| Granted { slot, ticket, weight });
        Self {
            grants: grants.collect(),
            taken: stepped.taken,
            wait: stepped.wait.as_ref().map(|wait| wait.ask_in.map(|ask_in| at + round_up(ask_in))),
            reason: stepped.wait.map(|wait| wait.reason),
            present: stepped.present,
            memory: stepped.memory,
            running: step.running,
            given_up: step.given_up,
        }
    }

    /// The reply, and what its shard has to know of the step, told as of an instant before all that is in it.
    fn told(&self) -> (Step, Stepped) {
        // Less than what looks like a step of the clock.
        let at = NOW - TICK * 18;
        let wait = self.wait.map(|ask_at| Wait {
            reason: WaitReason::AtMaxRunning,
            ask_in: ask_at.map(|ask_at| ask_at - at),
        });
        let step = Step {
            shard: Shard::id(0).clone(),
            label: Label::default(),
            sequence: 0,
            memory: Memory::default(),
            lease: Micros::ZERO,
            lead: Micros::ZERO,
            take: None,
            ask: self.grants.iter().map(|&Granted { ticket, weight, .. }| Ask { ticket, weight }).collect(),
            then: None,
            late: Late::NextSlot,
            running: self.running,
            given_up: self.given_up,
            late_start: None,
        };
        let stepped = Stepped {
            memory: Memory { at, ..self.memory },
            taken: self.taken,
            grants: self
                .grants
                .iter()
                .map(|grant| Grant { ticket: grant.ticket, slot: grant.slot })
                .collect(),
            wait,
            present: self.present,
        };
        (step, stepped)
    }
}

/// To the next tick: a shard may always be late.
fn round_up(duration: Micros) -> Micros {
    TICK * duration.get().div_ceil(TICK.get())
}
