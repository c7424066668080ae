//! A state of the model: the record, the shards, what is on its way between them, and what is held against
//! promises.

use std::collections::BTreeSet;

use interval_queue_contract::{
    Change, Command, Grant, MaxRunning, Memory, Meter, Micros, OnExisting, Reading, Record, Reply,
    StateErrorKind, Step, Stepped, Taken, Ticket, judge::Slot, rules,
};

use crate::{
    Flaw, Promise, flaw,
    model::Action,
    setup::{Loss, NOW, Requests, Setup, TICK, Trouble},
    shard::{Answer, Granted, Shard, Wire, instant},
    sight::Sight,
};

/// A slot that was granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Entry {
    pub(crate) grant: Granted,
    pub(crate) shard: usize,
}

/// A state of the model.
#[derive(Clone, Debug, Default, Hash)]
#[allow(clippy::derived_hash_with_manual_eq, reason = "equal is what hashes do not tell apart")]
pub struct World {
    pub(crate) stored: Option<Record>,
    /// What the record may be rewound to.
    pub(crate) saved: Option<Record>,
    pub(crate) incarnation: u8,
    pub(crate) shards: Vec<Shard>,
    /// The slots that can still matter.
    pub(crate) ledger: Vec<Entry>,
    pub(crate) started: BTreeSet<(usize, Ticket)>,
    pub(crate) left: Trouble,
    pub(crate) losses: u8,
    pub(crate) early: u64,
    /// How many slots may come too early because of losses.
    pub(crate) excused: u64,
    pub(crate) broken: BTreeSet<Promise>,
    /// What happened on the way here; empty in a state.
    pub(crate) seen: Vec<Sight>,
}

impl World {
    pub(crate) fn new(setup: &Setup) -> Self {
        let mut world = Self { left: setup.trouble, ..Self::default() };
        let max_running = setup.limit.map_or(MaxRunning::Keep, MaxRunning::AtMost);
        let open = Change::Open { rates: Some(setup.rates()), max_running, on_existing: OnExisting::Keep };
        let memory = world.change(open);
        world.shards = (0..setup.jobs.len()).map(|n| Shard::new(setup, n, memory)).collect();
        world
    }

    fn reading(&self) -> Reading {
        Reading { now: NOW, incarnation: self.incarnation.to_string() }
    }

    fn change(&mut self, change: Change) -> Memory {
        let reading = self.reading();
        let command = Command::Change(change, Memory::default());
        match rules::apply(&mut self.stored, &reading, &command) {
            Ok(Reply::Changed(changed)) => changed.memory,
            _ => Memory::default(),
        }
    }

    pub(crate) fn happen(&mut self, setup: &Setup, action: Action) {
        match action {
            Action::Pass => self.shift(TICK),
            Action::Add(n) => {
                let shard = &mut self.shards[n];
                shard.add(setup.jobs[n][shard.added]);
            }
            Action::Send(n) => {
                let shard = &mut self.shards[n];
                let Some(step) = shard.step(setup, n) else { return };
                shard.wire = Wire::Sent(step);
                if setup.requests == Requests::Quick {
                    self.happen(setup, Action::Arrive(n));
                }
            }
            Action::Arrive(n) => {
                if let Wire::Sent(step) = std::mem::take(&mut self.shards[n].wire) {
                    let answer = self.step(setup, n, &step, false);
                    self.shards[n].wire = Wire::Answered(Box::new(answer));
                }
            }
            Action::Receive(n) => {
                let wire = std::mem::take(&mut self.shards[n].wire);
                match wire {
                    Wire::Answered(answer) => match *answer {
                        Some(answer) => self.absorb(setup, n, answer),
                        None if setup.flaw == Some(Flaw::ResendsAsItWas) => {
                            self.shards[n].resend = self.shards[n].last.take();
                        }
                        None => self.shards[n].fail(StateErrorKind::Superseded),
                    },
                    Wire::Idle | Wire::Sent(_) => {}
                }
            }
            Action::ReceiveLate(n) => {
                if let Some(answer) = self.shards[n].stale.take() {
                    self.absorb(setup, n, *answer);
                }
            }
            Action::TimeOut(n) => {
                self.left.timeouts -= 1;
                self.shards[n].time_out(setup);
            }
            Action::Stray(n) => {
                if let Some(step) = self.shards[n].stray.take() {
                    let _nobody_listens = self.step(setup, n, &step, true);
                }
            }
            Action::Start(n) => {
                if let Some(grant) = self.shards[n].start(setup) {
                    self.start(n, grant);
                }
            }
            Action::Finish(n) => {
                self.shards[n].finish();
            }
            Action::Cancel(n) => {
                self.left.cancels -= 1;
                let shard = &mut self.shards[n];
                shard.last_waiting().and_then(|id| shard.line.withdraw(id));
            }
            Action::Crash(n) => {
                self.left.crashes -= 1;
                let shard = &mut self.shards[n];
                let stray = match std::mem::take(&mut shard.wire) {
                    Wire::Sent(step) => Some(step),
                    _ => shard.stray.take(),
                };
                *shard = Shard { alive: false, stray, ..Shard::new(setup, n, Memory::default()) };
            }
            Action::Pause => {
                self.left.pauses -= 1;
                self.change(Change::Pause);
            }
            Action::Resume => {
                self.change(Change::Resume);
                // A shard that resumes also nudges: `start` or `tick`.
                self.nudge();
            }
            Action::Hold => {
                self.left.holds -= 1;
                self.change(Change::Hold(setup.interval() * 2));
            }
            Action::Save => self.saved.clone_from(&self.stored),
            Action::Lose(loss) => self.lose(setup, loss),
        }
        let sights = self.shards.iter_mut().filter_map(Shard::sights);
        self.seen.extend(sights);
        self.count_running(setup);
    }

    /// Of the shards that the record has not taken for dead, no more jobs run than may.
    fn count_running(&mut self, setup: &Setup) {
        let Some(limit) = setup.limit else { return };
        let mut running = 0;
        for (n, shard) in self.shards.iter_mut().enumerate().filter(|(_, shard)| shard.alive) {
            let counted = shard.counted();
            let presence = self.stored.as_ref().and_then(|record| record.shards.get(Shard::id(n)));
            let known = presence.is_some_and(|presence| presence.expires_at > NOW);
            shard.lapsed = counted > 0 && (shard.lapsed || !known);
            running += if shard.lapsed { 0 } else { counted };
        }
        if running > limit as usize {
            self.broken.insert(Promise::Limit);
        }
    }

    pub(crate) fn nudge(&mut self) {
        for shard in self.shards.iter_mut().filter(|shard| shard.alive) {
            shard.line.connection.request_now(instant(NOW));
        }
    }

    fn lose(&mut self, setup: &Setup, loss: Loss) {
        self.left.losses -= 1;
        self.losses += 1;
        match loss {
            Loss::Gone => self.stored = None,
            Loss::Rewound => {
                self.stored = self.saved.take();
                self.excused += setup.slots_ahead();
            }
            Loss::FailedOver => {
                self.stored = self.saved.take();
                self.incarnation += 1;
            }
        }
        self.saved = None;
    }

    fn absorb(&mut self, setup: &Setup, n: usize, answer: Answer) {
        let shard = &mut self.shards[n];
        let mut held = shard.line.held.tickets.clone();
        held.extend(answer.taken.into_iter().flat_map(Taken::tickets));
        let grants = answer.grants.clone();
        shard.absorb(answer);
        if setup.flaw == Some(Flaw::TakesBothAnswers) {
            // It starts a job whose ticket it does not hold any more.
            let again = grants.into_iter().filter(|grant| grant.slot == NOW && !held.contains(&grant.ticket));
            again.for_each(|grant| self.start(n, grant));
        }
    }

    /// A step arrives at the state. None: it is refused.
    fn step(&mut self, setup: &Setup, n: usize, step: &Step, stray: bool) -> Option<Answer> {
        let before = self.stored.clone();
        let reading = self.reading();
        let outcome = flaw::apply(setup.flaw, &mut self.stored, &reading, step);
        let stepped = match outcome {
            Ok(stepped) => stepped,
            Err(error) if error.kind() == StateErrorKind::Superseded => {
                self.seen.push(Sight::Superseded);
                if !stray && self.losses == 0 && setup.flaw.is_none() {
                    self.broken.insert(Promise::Soundness);
                }
                return None;
            }
            Err(_) => {
                self.broken.insert(Promise::Soundness);
                return None;
            }
        };
        if stray {
            self.seen.push(Sight::Stray);
        }
        let again = unheard(before.as_ref(), step);
        self.judge(setup, before.as_ref(), &stepped, &again);
        if before.is_some_and(|before| denies_own_slot(&before, step, &stepped)) {
            self.seen.push(Sight::OwnSlotDenied);
        }
        let answer = Answer::of(step, stepped);
        for grant in &answer.grants {
            if again.contains(&Grant { ticket: grant.ticket, slot: grant.slot }) {
                self.seen.push(Sight::Again);
            } else {
                self.record(setup, n, *grant);
            }
        }
        Some(answer)
    }

    /// What every reply owes.
    fn judge(&mut self, setup: &Setup, before: Option<&Record>, stepped: &Stepped, again: &[Grant]) {
        let Some(after) = &self.stored else {
            self.broken.insert(Promise::Soundness);
            return;
        };
        if after.check().is_err() {
            self.broken.insert(Promise::Soundness);
        }
        let any = !stepped.grants.is_empty();
        let slots = || stepped.grants.iter().map(|grant| grant.slot);
        if any && (after.paused || slots().any(|slot| slot < after.held_until)) {
            self.broken.insert(Promise::Obedience);
        }
        let running: u32 = after.shards.values().map(|presence| presence.running).sum();
        if let Some(limit) = setup.limit {
            if any && running > limit {
                self.broken.insert(Promise::Limit);
            }
            if running >= limit {
                self.seen.push(Sight::Full);
            }
        }
        let Some(before) = before else { return };
        let aged = after.shards.iter().any(|(id, presence)| {
            before.shards.get(id).is_some_and(|known| known.sequence > presence.sequence)
        });
        if after.ticket < before.ticket || after.current < before.current || aged {
            self.broken.insert(Promise::Forward);
        }
        if stepped
            .grants
            .first()
            .is_some_and(|grant| grant.ticket <= before.current && !again.contains(grant))
        {
            let own = after.meters.first() == before.meters.first();
            self.seen.push(if own { Sight::OwnSlot } else { Sight::LateSlot });
        }
        if after.shards.len() < before.shards.len()
            && before.shards.values().any(|known| known.expires_at <= NOW)
        {
            self.seen.push(Sight::LeaseEnded);
        }
        if after.lifted_at != before.lifted_at {
            self.seen.push(Sight::Lifted);
        }
    }

    /// Writes a granted slot down, and whether there are too many around it.
    fn record(&mut self, setup: &Setup, shard: usize, grant: Granted) {
        let entry = Entry { grant, shard };
        // An overtaken ticket whose grant was lost is granted the same slot again.
        if self.ledger.contains(&entry) {
            return;
        }
        let eras = setup.eras();
        let mut place = self.ledger.partition_point(|other| *other < entry);
        self.ledger.insert(place, entry);
        loop {
            let slots: Vec<_> = self.ledger.iter().map(|entry| entry.grant.judged()).collect();
            let Some(crowd) = eras.overfull_span(&slots, place, 0) else { return };
            if self.losses == 0 {
                self.broken.insert(Promise::Spacing);
            }
            self.seen.push(Sight::Early);
            self.early += 1;
            if self.early > self.excused {
                self.broken.insert(Promise::Recovery);
            }
            // Those that leave more room for what follows count as the ones in time.
            let (first, last) = crowd.places;
            let end = |place: usize| self.ledger[place].grant.end(setup.interval());
            let late = (first..=last).filter(|other| *other != place).max_by_key(|other| end(*other));
            let late = late.filter(|late| end(*late) > end(place)).unwrap_or(place);
            self.ledger.remove(late);
            if late == place {
                return;
            }
            place -= usize::from(late < place);
        }
    }

    /// A job starts.
    pub(crate) fn start(&mut self, n: usize, grant: Granted) {
        self.seen.push(Sight::Start);
        // A shard that was granted a slot before has left its mark in a record that is never lost.
        let granted = self.stored.as_ref().is_some_and(|record| {
            grant.ticket <= record.current && grant.slot < record.meters.first().tat && grant.slot <= NOW
        });
        if !granted && self.losses == 0 {
            self.broken.insert(Promise::Granted);
        }
        // After a loss two shards may hold the same ticket.
        let by_another = self.losses == 0 && self.started.iter().any(|(_, ticket)| *ticket == grant.ticket);
        if by_another || !self.started.insert((n, grant.ticket)) {
            self.broken.insert(Promise::Once);
        }
    }
}

impl Granted {
    /// When the next slot may come, by its weight alone.
    fn end(&self, interval: Micros) -> Micros {
        self.slot + interval * u64::from(self.weight)
    }

    pub(crate) fn judged(&self) -> Slot {
        Slot { at: signed(self.slot), weight: self.weight, era: 0 }
    }
}

/// What the shard was granted without having heard of it.
fn unheard(before: Option<&Record>, step: &Step) -> Vec<Grant> {
    let known = before.and_then(|before| before.shards.get(&step.shard));
    let known = known.filter(|known| known.sequence > step.memory.sequence);
    known.map_or_else(Vec::new, |known| known.granted.clone())
}

/// Whether a ticket had a slot in its line, and could have no use of it.
fn denies_own_slot(before: &Record, step: &Step, stepped: &Stepped) -> bool {
    let Some(ask) = step.ask.first() else { return false };
    let line = before.meters.first();
    let overtaken = ask.ticket <= before.current && ask.ticket >= before.line_from;
    let back = line.interval * before.current.after(1).behind(ask.ticket);
    let granted = stepped.grants.first().map(|grant| grant.slot);
    let there =
        overtaken && ask.weight == 1 && line.burst == 1 && line.tat >= NOW + back && before.held_until <= NOW;
    let used_up = |meter: &Meter| meter.tat - meter.interval * u64::from(meter.burst - 1) > line.tat - back;
    let denied = before.meters.iter().skip(1).any(used_up);
    there && denied && granted != Some(line.tat - back)
}

pub(crate) fn signed(instant: Micros) -> i64 {
    i64::try_from(instant.get()).unwrap_or(i64::MAX)
}
