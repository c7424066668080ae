//! A shard as the driver of the façade runs it: its line, and the one step that is under way. See `src/line`
//! and `src/line/talk.rs` of the façade; the words are theirs.

use interval_queue_contract::{
    Ask, Label, Late, Memory, Micros, ShardId, Step, Stepped, Take, Ticket, WaitReason,
};

use crate::{
    Flaw,
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) memory: Memory,
    pub(crate) taken: Option<(Ticket, u32)>,
    pub(crate) grants: Vec<Granted>,
    /// None: nothing is left to wait for.
    pub(crate) wait: Option<Option<Micros>>,
    pub(crate) reason: Option<WaitReason>,
    pub(crate) present: bool,
    pub(crate) running: u32,
    pub(crate) given_up: Option<Ticket>,
}

/// The one step that is under way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Wire {
    #[default]
    Idle,
    Sent(Box<Step>),
    /// The reply is on its way; none: an error.
    Answered(Box<Option<Answer>>),
}

/// Tickets that are being taken, under one request number until that has succeeded.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Taking {
    pub(crate) request: u64,
    pub(crate) batch: Vec<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shard {
    pub(crate) alive: bool,
    /// How many of its jobs it has added.
    pub(crate) added: usize,
    /// The weights of jobs that have no ticket yet.
    pub(crate) arriving: Vec<u32>,
    pub(crate) taking: Option<Taking>,
    /// The weights of jobs that have one, in order.
    pub(crate) waiting: Vec<u32>,
    pub(crate) tickets: Vec<Ticket>,
    pub(crate) grants: Vec<Granted>,
    pub(crate) running: u32,
    pub(crate) memory: Memory,
    pub(crate) sequence: u64,
    pub(crate) request: u64,
    pub(crate) given_up: Option<Ticket>,
    pub(crate) report: bool,
    pub(crate) present: bool,
    pub(crate) ask_at: Option<Micros>,
    pub(crate) ask_again: bool,
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

impl Shard {
    /// A shard that has opened the queue and remembers that.
    pub(crate) fn new(memory: Memory) -> Self {
        Self {
            alive: true,
            added: 0,
            arriving: Vec::new(),
            taking: None,
            waiting: Vec::new(),
            tickets: Vec::new(),
            grants: Vec::new(),
            running: 0,
            memory,
            sequence: 0,
            request: 0,
            given_up: None,
            report: false,
            present: false,
            ask_at: None,
            ask_again: false,
            wire: Wire::Idle,
            stray: None,
            lapsed: false,
            resend: None,
            last: None,
            stale: None,
        }
    }

    pub(crate) fn id(n: usize) -> ShardId {
        let name = ["a", "b", "c", "d"][n];
        ShardId::new(name).unwrap_or_else(|error| unreachable!("{error}"))
    }

    /// Whether nothing waits or runs.
    pub(crate) fn is_quiet(&self) -> bool {
        self.has_started_all() && self.running == 0
    }

    /// Whether every job that it has accepted has started.
    pub(crate) fn has_started_all(&self) -> bool {
        self.arriving.is_empty() && self.taking.is_none() && self.waiting.is_empty() && self.grants.is_empty()
    }

    /// When it sends its next step; none: when something happens.
    pub(crate) fn step_due(&self) -> Option<Micros> {
        if !self.alive || self.wire != Wire::Idle {
            return None;
        }
        let take = !self.arriving.is_empty() || self.taking.is_some();
        let tell = self.present && (self.report || (self.given_up.is_some() && self.tickets.is_empty()));
        let goodbye = self.is_quiet() && self.present;
        if take || tell || goodbye || self.resend.is_some() {
            return Some(NOW);
        }
        let renew = (self.running > 0).then_some(NOW);
        renew.or(self.ask_at.filter(|_| !self.tickets.is_empty()))
    }

    /// Makes the next step.
    pub(crate) fn step(&mut self, setup: &Setup, n: usize) -> Step {
        if let Some(step) = self.resend.take() {
            self.last = Some(step.clone());
            return *step;
        }
        self.sequence += 1;
        self.ask_again = false;
        if self.taking.is_none() && !self.arriving.is_empty() {
            self.request += 1;
            self.taking = Some(Taking { request: self.request, batch: std::mem::take(&mut self.arriving) });
        }
        let lead = setup.lead_of(n);
        let most = usize::try_from(lead.get() / setup.interval().get()).unwrap_or(0) + 1;
        let batch = self.taking.iter().flat_map(|taking| &taking.batch);
        let mut weights = self.waiting.iter().chain(batch).copied().skip(self.grants.len());
        let ask: Vec<_> = self
            .tickets
            .iter()
            .take(most)
            .zip(&mut weights)
            .map(|(&ticket, weight)| Ask { ticket, weight })
            .collect();
        let then = self.tickets.get(ask.len()).copied();
        let take = self.taking.as_ref().map(|taking| {
            let room = if then.is_some() { 0 } else { most - ask.len() };
            let count = u32::try_from(taking.batch.len()).unwrap_or(0);
            Take {
                request: taking.request,
                count,
                weights: weights.take(room.min(taking.batch.len())).collect(),
            }
        });
        let step = Step {
            shard: Self::id(n),
            label: Label::default(),
            sequence: self.sequence,
            memory: self.memory,
            lease: TICK * setup.lease,
            lead,
            take,
            ask,
            then,
            late: Late::NextSlot,
            running: self.running + u32::try_from(self.grants.len()).unwrap_or(0),
            given_up: self.given_up,
        };
        self.last = setup.flaw.is_some_and(Flaw::resends).then(|| Box::new(step.clone()));
        step
    }

    /// Takes in a reply. Returns the grants on which a flawed shard starts a job whose ticket it does not
    /// hold any more.
    pub(crate) fn absorb(&mut self, answer: Answer, setup: &Setup) -> Vec<Granted> {
        let mut used_again = Vec::new();
        self.memory.learn(answer.memory);
        self.present = answer.present;
        self.report &= answer.running != self.running + u32::try_from(self.grants.len()).unwrap_or(0);
        if self.given_up == answer.given_up {
            self.given_up = None;
        }
        if let (Some((first, count)), Some(taking)) = (answer.taken, self.taking.take()) {
            self.tickets.extend((0..u64::from(count)).map(|n| first.after(n)));
            self.waiting.extend(taking.batch);
        }
        for grant in answer.grants {
            let held = self.tickets.iter().position(|&ticket| ticket == grant.ticket);
            if let Some(place) = held {
                self.tickets.remove(place);
                self.grants.push(grant);
            } else if setup.flaw == Some(Flaw::TakesBothAnswers) && grant.slot == NOW {
                used_again.push(grant);
            } else {
                self.report |= setup.limit.is_some();
            }
        }
        self.grants.sort();
        self.ask_at = match answer.wait {
            Some(ask_at) if !self.ask_again => ask_at,
            _ => Some(NOW),
        };
        self.trim(setup);
        used_again
    }

    /// Drops the highest tickets until there are no more than jobs.
    pub(crate) fn trim(&mut self, setup: &Setup) {
        while self.tickets.len() + self.grants.len() > self.waiting.len() {
            if let Some(dropped) = self.tickets.pop() {
                self.given_up = self.given_up.max(Some(dropped));
            } else {
                self.grants.pop();
                self.report |= setup.limit.is_some();
            }
        }
    }

    /// Gives up the grants whose slots have passed. Returns how many.
    pub(crate) fn give_up_late(&mut self, setup: &Setup) -> usize {
        let late: Vec<_> = self.grants.extract_if(.., |grant| grant.slot < NOW).collect();
        for grant in &late {
            self.keep(grant.ticket, setup);
        }
        late.len()
    }

    fn keep(&mut self, ticket: Ticket, setup: &Setup) {
        self.tickets.push(ticket);
        self.tickets.sort();
        self.tickets.dedup();
        self.ask_at = Some(NOW);
        self.ask_again = true;
        self.trim(setup);
    }

    /// Whether its next grant has come.
    pub(crate) fn can_start(&self) -> bool {
        self.alive && self.grants.first().is_some_and(|grant| grant.slot <= NOW)
    }

    /// Starts the first job on the first grant; none if that is too light for it.
    pub(crate) fn start(&mut self, setup: &Setup) -> Option<Granted> {
        let grant = self.grants.remove(0);
        let weight = self.waiting.first().copied()?;
        if weight > grant.weight {
            self.keep(grant.ticket, setup);
            return None;
        }
        self.waiting.remove(0);
        if setup.limit.is_some() {
            self.running += 1;
        }
        Some(grant)
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
        match setup.flaw {
            Some(Flaw::ResendsAsItWas) => self.resend = self.last.take(),
            Some(Flaw::TakesBothAnswers) => {
                self.resend = self.last.take();
                self.stale = answer.map(Box::new);
            }
            Some(Flaw::GuessesItsTickets) => {
                if let Some(taking) = self.taking.take() {
                    let next = self.memory.ticket.after(1);
                    self.tickets.extend((0..taking.batch.len() as u64).map(|n| next.after(n)));
                    self.waiting.extend(taking.batch);
                    self.ask_at = Some(NOW);
                }
            }
            Some(Flaw::FailsOpen) => {
                if let (Some(&ticket), Some(&weight)) = (self.tickets.first(), self.waiting.first()) {
                    self.tickets.remove(0);
                    self.grants.insert(0, Granted { slot: NOW, ticket, weight });
                }
            }
            _ => {}
        }
    }
}

impl Answer {
    pub(crate) fn of(step: &Step, stepped: Stepped) -> Self {
        let at = stepped.memory.at;
        let first = stepped.taken.map(|taken| taken.first);
        let grants = stepped.grants.iter().map(|grant| Granted {
            slot: at + grant.start_in,
            ticket: grant.ticket,
            weight: weight_of(step, grant.ticket, first),
        });
        Self {
            grants: grants.collect(),
            taken: stepped.taken.map(|taken| (taken.first, taken.count)),
            wait: stepped.wait.as_ref().map(|wait| wait.ask_in.map(|ask_in| at + round_up(ask_in))),
            reason: stepped.wait.map(|wait| wait.reason),
            present: stepped.present,
            memory: stepped.memory,
            running: step.running,
            given_up: step.given_up,
        }
    }
}

/// To the next tick: a shard may always be late.
fn round_up(duration: Micros) -> Micros {
    TICK * duration.get().div_ceil(TICK.get())
}

/// The weight that was asked for with a ticket.
pub(crate) fn weight_of(step: &Step, ticket: Ticket, first_taken: Option<Ticket>) -> u32 {
    let asked = step.ask.iter().find(|ask| ask.ticket == ticket).map(|ask| ask.weight);
    asked.unwrap_or_else(|| {
        let place = first_taken.map_or(0, |first| ticket.behind(first));
        let weights = step.take.iter().flat_map(|take| &take.weights);
        weights.copied().nth(usize::try_from(place).unwrap_or(0)).unwrap_or(1)
    })
}
