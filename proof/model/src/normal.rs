//! The normal form of a state: what no rule can tell apart becomes the same, so that there are finitely many
//! states. Every line that changes something says why no rule can tell.

use std::{collections::BTreeSet, time::Instant};

use interval_queue_contract::{Memory, Meters, Micros, Step, Ticket};
use interval_queue_line::{Alone, Line};

use crate::{
    Asking, Promise, Setup, World,
    setup::{NOW, TICK},
    shard::{Shard, Wire, instant, micros},
};

impl World {
    /// Time goes by: every instant lies further back.
    pub(crate) fn shift(&mut self, by: Micros) {
        self.instants(|_, instant| *instant = *instant - by);
    }

    /// The same state, told as every state is.
    pub(crate) fn normal(mut self, setup: &Setup) -> Self {
        self.tidy(setup);
        // So far for each meter, since one may begin where another one lets the first of the slots be.
        let past = NOW - TICK * setup.longest_interval() * (self.places(setup) + u64::from(setup.burst - 1));
        let longest =
            setup.leads.iter().max().map_or(setup.interval(), |lead| setup.interval().max(TICK * *lead));
        self.instants(|kind, instant| {
            let floor = match kind {
                Kind::Slot => past,
                // A grant that is so late is given up, whenever its shard heard of it.
                Kind::Grant => NOW - setup.interval() - longest - TICK,
                // The lease is to be renewed.
                Kind::Stepped => NOW - TICK * setup.lease.div_ceil(2),
                // An instant that has come has come.
                Kind::Due => NOW,
                // One that is full again was forgotten.
                Kind::Lifted | Kind::Heard | Kind::Judged => return,
            };
            *instant = (*instant).max(floor);
        });
        self.rank_witnesses(setup);
        (0..self.shards.len()).for_each(|n| self.rank_numbers(n));
        self
    }

    /// What nobody will look at again is gone.
    fn tidy(&mut self, setup: &Setup) {
        let forgets = setup.may_forget();
        let known = self.knows_all();
        if !forgets && !known {
            self.broken.insert(Promise::Soundness);
        }
        // What a shard remembers matters only if the record may be lost, or has forgotten some of it.
        let forget_memories = setup.flaw.is_none() && self.left.losses == 0 && known;
        let wanted: Vec<Vec<u64>> = self.shards.iter_mut().map(Shard::requests).collect();
        let heard: Vec<u64> = self.shards.iter_mut().map(Shard::heard).collect();
        for record in self.stored.iter_mut().chain(&mut self.saved) {
            // Every command that reads it writes it first.
            record.seen_at = NOW;
            // It counts only when the settings change.
            record.last_slot = Micros::ZERO;
            if !forgets && record.gaps_until <= record.current {
                // It only is compared with `current`, which never goes back.
                record.gaps_until = Ticket::NONE;
            }
            for (n, wanted) in wanted.iter().enumerate() {
                if let Some(presence) = record.shards.get_mut(Shard::id(n)) {
                    // Only a step that takes under the same number reads it.
                    presence.last_take = presence.last_take.filter(|last| wanted.contains(&last.request));
                    // Only a step reads it that does not know of the reply, and only while a slot is not long ago.
                    let is_unheard = heard[n] < presence.sequence;
                    presence.granted.retain(|grant| is_unheard && grant.slot + setup.interval() >= NOW);
                }
            }
        }
        for shard in &mut self.shards {
            shard.tidy(setup);
            // It is for people and for those who run alone.
            shard.each_memory(|memory| memory.shards = 0);
            if forget_memories {
                shard.each_memory(|memory| {
                    // It cannot lift a record that knows all of it. The shard goes by the settings.
                    let &mut Memory { at, sequence, meters, max_running, .. } = memory;
                    let meters = Meters::new(&meters.rates());
                    *memory = Memory { at, sequence, meters, max_running, ..Memory::default() };
                });
            }
        }
        self.forget_slots(setup);
    }

    /// Every later slot is granted now or later. Slots that came matter as long as a meter that was full at the
    /// first of them is not full again, and of those spans only the one that leaves least room.
    fn forget_slots(&mut self, setup: &Setup) {
        let past = self.ledger.partition_point(|entry| entry.grant.slot <= NOW);
        let mut matters = past;
        for rate in setup.rates().iter() {
            let (mut weight, mut latest) = (0, NOW);
            for (place, entry) in self.ledger[..past].iter().enumerate().rev() {
                weight += u64::from(entry.grant.weight);
                let full = entry.grant.slot + rate.interval * weight;
                if full > latest {
                    (latest, matters) = (full, matters.min(place));
                }
            }
        }
        self.ledger.drain(..matters);
    }

    /// Whether no shard remembers anything that the record does not know.
    fn knows_all(&mut self) -> bool {
        let Some(record) = &self.stored else { return false };
        let known = Memory::of(record);
        self.shards.iter_mut().all(|shard| {
            let mut all = true;
            shard.each_memory(|memory| {
                all &= memory.ticket <= known.ticket
                    && memory.current <= known.current
                    && memory.revision <= known.revision
                    && memory.meters.iter().zip(known.meters.iter()).all(|(one, other)| one.tat <= other.tat)
                    && memory.longest_lead <= known.longest_lead;
            });
            all
        })
    }

    /// Every instant in the state.
    fn instants(&mut self, mut visit: impl FnMut(Kind, &mut Micros)) {
        for record in self.stored.iter_mut().chain(&mut self.saved) {
            record.meters.iter_mut().for_each(|meter| visit(Kind::Slot, &mut meter.tat));
            visit(Kind::Slot, &mut record.held_until);
            visit(Kind::Lifted, &mut record.lifted_at);
            for presence in record.shards.values_mut() {
                visit(Kind::Due, &mut presence.expires_at);
                presence.granted.iter_mut().for_each(|grant| visit(Kind::Slot, &mut grant.slot));
            }
        }
        for shard in &mut self.shards {
            shard.each_memory(|memory| {
                visit(Kind::Heard, &mut memory.at);
                memory.meters.iter_mut().for_each(|meter| visit(Kind::Slot, &mut meter.tat));
                visit(Kind::Slot, &mut memory.held_until);
            });
            let Line { connection, held, .. } = &mut shard.line;
            let mut visit_ours = |kind, ours: &mut Instant| {
                let mut at = micros(*ours);
                visit(kind, &mut at);
                *ours = instant(at);
            };
            connection.ask_at.iter_mut().for_each(|ask_at| visit_ours(Kind::Due, ask_at));
            visit_ours(Kind::Stepped, &mut connection.last_step);
            held.started_at.iter_mut().for_each(|started_at| visit_ours(Kind::Grant, started_at));
            for grant in &mut held.grants {
                visit_ours(Kind::Grant, &mut grant.slot);
                grant.store_slot = micros(grant.slot);
                visit_ours(Kind::Grant, &mut grant.received);
            }
            let answered = match &mut shard.wire {
                Wire::Answered(answer) => answer.as_mut().as_mut(),
                _ => None,
            };
            for answer in answered.into_iter().chain(shard.stale.as_deref_mut()) {
                for grant in &mut answer.grants {
                    visit(Kind::Slot, &mut grant.slot);
                }
                if let Some(Some(ask_at)) = &mut answer.wait {
                    visit(Kind::Due, ask_at);
                }
            }
        }
        for entry in &mut self.ledger {
            visit(Kind::Judged, &mut entry.grant.slot);
        }
    }

    /// How many intervals a meter may lie back until all slots are due that depend on it: as many as
    /// tickets can come after `current`, or as late tickets can queue for it; and the time that those before
    /// have to notice room to run.
    fn places(&self, setup: &Setup) -> u64 {
        if setup.may_forget() {
            return 2 + 2 * setup.weight() + setup.limit.map_or(0, |_| 4);
        }
        let Some(record) = &self.stored else { return 0 };
        let longest = setup.jobs.iter().map(Vec::len).max().unwrap_or(0);
        let to_come: usize =
            self.shards.iter().zip(&setup.jobs).map(|(shard, jobs)| shard.tickets_to_come(jobs.len())).sum();
        let again = usize::from(self.left.timeouts) * longest;
        let last = record.ticket.after((to_come + again) as u64);
        let courtesy = setup.limit.map_or(0, |_| 4 / setup.interval);
        last.behind(record.current).max(self.shards.len() as u64) + courtesy
    }

    /// When a loss was noticed is only compared with when shards last heard of the record.
    fn rank_witnesses(&mut self, setup: &Setup) {
        if !setup.may_lift() {
            // No loss is ever noticed.
            return self.instants(|kind, instant| {
                if kind == Kind::Heard {
                    *instant = Micros::ZERO;
                }
            });
        }
        let mut lifts = BTreeSet::new();
        self.instants(|kind, instant| {
            if kind == Kind::Lifted && *instant < NOW {
                lifts.insert(*instant);
            }
        });
        let long_ago = NOW - TICK * 9;
        self.instants(|kind, instant| {
            let before = lifts.iter().filter(|lift| *lift < instant).count() as u64;
            let upto = lifts.iter().filter(|lift| *lift <= instant).count() as u64;
            match kind {
                Kind::Lifted if *instant < NOW => *instant = long_ago + Micros::new(2 * before + 1),
                Kind::Heard if *instant < NOW => *instant = long_ago + Micros::new(2 * upto),
                _ => {}
            }
        });
    }

    /// The numbers of steps and of requests only are compared with those of the same shard: ranks do as well.
    fn rank_numbers(&mut self, n: usize) {
        let mut known = [BTreeSet::from([0]), BTreeSet::from([0])];
        self.numbers(n, |kind, number| _ = known[kind as usize].insert(*number));
        self.numbers(n, |kind, number| *number = known[kind as usize].range(..*number).count() as u64);
    }

    fn numbers(&mut self, n: usize, mut visit: impl FnMut(Number, &mut u64)) {
        for record in self.stored.iter_mut().chain(&mut self.saved) {
            if let Some(presence) = record.shards.get_mut(Shard::id(n)) {
                visit(Number::Sequence, &mut presence.sequence);
                presence.last_take.iter_mut().for_each(|last| visit(Number::Request, &mut last.request));
            }
        }
        let shard = &mut self.shards[n];
        visit(Number::Sequence, &mut shard.line.connection.sequence);
        visit(Number::Sequence, &mut shard.line.connection.answered);
        visit(Number::Request, &mut shard.line.connection.request);
        shard.each_memory(|memory| visit(Number::Sequence, &mut memory.sequence));
        let taking = shard.line.backlog.taking.iter_mut();
        taking.for_each(|taking| visit(Number::Request, &mut taking.request));
        for step in shard.steps() {
            visit(Number::Sequence, &mut step.sequence);
            step.take.iter_mut().for_each(|take| visit(Number::Request, &mut take.request));
        }
    }
}

/// What an instant is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A slot, or the earliest one.
    Slot,
    /// A slot in hand, or when its shard heard of it.
    Grant,
    /// A shard made its last step.
    Stepped,
    /// Something happens or ends then.
    Due,
    /// A loss was noticed.
    Lifted,
    /// A shard heard of the record.
    Heard,
    /// A slot in the ledger.
    Judged,
}

#[derive(Clone, Copy)]
enum Number {
    Sequence,
    Request,
}

impl Shard {
    /// What this shard will not look at again is gone.
    fn tidy(&mut self, setup: &Setup) {
        let now = instant(NOW);
        let line = &mut self.line;
        if line.held.tickets.is_empty() {
            // It is set before it is read when there are tickets again.
            line.connection.ask_at = None;
        } else if setup.asking == Asking::AnyTime {
            line.connection.ask_at = Some(now);
        }
        if self.wire == Wire::Idle {
            // The next step resets it.
            line.connection.ask_again = false;
            if line.is_quiet() && !line.connection.present {
                // The driver has ended.
                (line.held.given_up, line.connection.report) = (None, false);
            }
        }
        if line.running.is_empty() {
            // No lease is renewed.
            line.connection.last_step = now;
        }
        // It keeps starts apart for an interval.
        line.held.started_at.take_if(|started_at| *started_at + setup.interval().to_duration() <= now);
        for grant in &mut line.held.grants {
            // It is looked at only if it is later than the slot.
            grant.received = grant.received.max(grant.slot);
        }
        // The next try may come at once, and a shard that stood still is as strict as one that did not.
        line.connection.failing = None;
        (line.held.overran, line.held.overruns) = (false, 0);
        // For those only who ask when a job would start, or who run alone.
        (line.connection.answered, line.connection.last_reply, line.connection.lowest_reported) =
            (line.connection.sequence, now, None);
        line.alone = Alone::default();
    }

    /// Every step that may still arrive at the state.
    fn steps(&mut self) -> impl Iterator<Item = &mut Step> {
        let sent = if let Wire::Sent(step) = &mut self.wire { Some(step) } else { None };
        sent.into_iter()
            .chain(&mut self.stray)
            .chain(&mut self.resend)
            .chain(&mut self.last)
            .map(AsMut::as_mut)
    }

    fn each_memory(&mut self, mut visit: impl FnMut(&mut Memory)) {
        visit(&mut self.line.connection.memory);
        self.steps().for_each(|step| visit(&mut step.memory));
        if let Wire::Answered(answer) = &mut self.wire {
            answer.iter_mut().for_each(|answer| visit(&mut answer.memory));
        }
        self.stale.iter_mut().for_each(|answer| visit(&mut answer.memory));
    }

    /// How many tickets may still be taken for it, of so many jobs.
    fn tickets_to_come(&self, jobs: usize) -> usize {
        let backlog = &self.line.backlog;
        let new = if self.alive { jobs - self.added + backlog.arriving.len() } else { 0 };
        let again = backlog.taking.as_ref().map_or(0, |taking| taking.batch.len());
        let sent = if let Wire::Sent(step) = &self.wire { Some(step) } else { None };
        let steps = sent.into_iter().chain(&self.stray);
        let asked: usize = steps.filter_map(|step| step.take.as_ref()).map(|take| take.count as usize).sum();
        new + again + asked
    }

    /// The last reply that every step knows of which it may still make.
    fn heard(&mut self) -> u64 {
        let sent = self.steps().map(|step| step.memory.sequence).min();
        sent.unwrap_or(u64::MAX).min(self.line.connection.memory.sequence)
    }

    /// The numbers of the requests that may still arrive.
    fn requests(&mut self) -> Vec<u64> {
        let taking = self.line.backlog.taking.as_ref().map(|taking| taking.request);
        let sent = self.steps().filter_map(|step| step.take.as_ref()).map(|take| take.request);
        sent.chain(taking).collect()
    }
}
