//! Shards in line, to be told one after the other what to do: a situation in one sentence.

use interval_queue_contract::{Change, Late, MaxRunning, Micros, Rates, Step, WaitReason};

use crate::common::*;

/// Three shards with one ticket each: 2, 3 and 4 of a queue that has begun.
pub(crate) fn three() -> (State, Shard, Shard, Shard) {
    let Line { state, shards } = line();
    let [(_, a), (_, b), (_, c)] = shards.try_into().unwrap();
    (state, a, b, c)
}

/// The same three, to be told what to do one after the other. Unless something moves them, their slots come
/// 100, 200 and 300 ms after `T0`.
pub(crate) fn line() -> Line {
    line_of(&[1, 1, 1])
}

/// Shards `a`, `b`, … of a queue that has begun, with so many tickets each, from 2 on.
pub(crate) fn line_of(counts: &[u32]) -> Line {
    let mut state = State::begun();
    let named = ["a", "b", "c"].map(Shard::new).into_iter().zip(counts);
    let shards =
        named.map(|(shard, &count)| (state.record().ticket.get() + 1, shard.with(&mut state, count)));
    let shards = shards.collect();
    Line { state, shards }
}

/// Shards, each with its first ticket. Who holds a ticket is who asks for it.
pub(crate) struct Line {
    pub(crate) state: State,
    pub(crate) shards: Vec<(u64, Shard)>,
}

impl Line {
    fn holder(&mut self, ticket: u64) -> (&mut Shard, &mut State) {
        let holder = self.shards.iter_mut().rfind(|(first, _)| *first <= ticket);
        (&mut holder.unwrap().1, &mut self.state)
    }

    pub(crate) fn with(mut self, prepare: impl FnOnce(&mut State)) -> Self {
        prepare(&mut self.state);
        self
    }

    pub(crate) fn at(self, millis: u64) -> Self {
        self.with(|state| state.at(millis))
    }

    pub(crate) fn limit(self, max_running: u32) -> Self {
        self.with(|state| state.limit(max_running))
    }

    pub(crate) fn change(self, change: Change) -> Self {
        self.with(|state| assert!(state.change(change).is_ok(), "{change:?}"))
    }

    pub(crate) fn hold(self, millis: u64) -> Self {
        self.change(Change::Hold(ms(millis)))
    }

    pub(crate) fn interval(self, millis: u64) -> Self {
        self.change(Change::Set { rates: Some(Rates::every(ms(millis))), max_running: MaxRunning::Keep })
    }

    /// The record is lost.
    pub(crate) fn lose(self) -> Self {
        self.with(|state| state.stored = None)
    }

    /// Another server holds the record.
    pub(crate) fn restart(self) -> Self {
        self.with(|state| state.reading.incarnation.push('+'))
    }

    /// All of them requeue tickets that missed their slots.
    pub(crate) fn requeue(mut self) -> Self {
        self.shards.iter_mut().for_each(|(_, shard)| shard.late = Late::Requeue);
        self
    }

    /// The ticket is outstanding, and does not ask.
    pub(crate) fn keep(mut self, ticket: u64) -> Self {
        let (shard, state) = self.holder(ticket);
        shard.say(state, |step| Step { then: Some(t(ticket)), ..step });
        self
    }

    /// The first ticket is asked for, one behind it was dropped.
    pub(crate) fn drops(mut self, asked: u64, dropped: u64) -> Self {
        let (shard, state) = self.holder(asked);
        shard.say(state, |step| Step { ask: vec![ask(asked, 1)], given_up: Some(t(dropped)), ..step });
        self
    }

    /// Asked for as early as can be, the ticket has its slot so many milliseconds after `T0`.
    #[track_caller]
    pub(crate) fn slot(self, ticket: u64, millis: u64) -> Self {
        self.heavy(ticket, 1, millis)
    }

    /// The same of a job of this weight.
    #[track_caller]
    pub(crate) fn heavy(mut self, ticket: u64, weight: u32, millis: u64) -> Self {
        let (shard, state) = self.holder(ticket);
        assert_eq!(shard.slot(state, ticket, weight), ms(millis), "ticket {ticket}");
        self
    }

    /// Asked for with no lead, the ticket has a slot now.
    #[track_caller]
    pub(crate) fn starts(mut self, ticket: u64) -> Self {
        let (shard, state) = self.holder(ticket);
        let stepped = shard.ask(state, &[ticket], Micros::ZERO);
        assert_eq!(slots(&stepped), [state.now()], "ticket {ticket}: {stepped:?}");
        self
    }

    /// Asked for with a lead of so many milliseconds, the ticket has no slot. Returns what to wait for, and
    /// when to ask again.
    #[track_caller]
    pub(crate) fn wait(&mut self, ticket: u64, lead: u64) -> (WaitReason, Option<Micros>) {
        let (shard, state) = self.holder(ticket);
        let stepped = shard.ask(state, &[ticket], ms(lead));
        assert_eq!(stepped.grants, [], "ticket {ticket}");
        wait(&stepped)
    }

    /// The same, whatever it waits for.
    #[track_caller]
    pub(crate) fn refused(mut self, ticket: u64, lead: u64) -> Self {
        self.wait(ticket, lead);
        self
    }

    /// The same, to be asked for again after so many milliseconds.
    #[track_caller]
    pub(crate) fn waits(mut self, ticket: u64, lead: u64, millis: u64) -> Self {
        assert_eq!(self.wait(ticket, lead).1, Some(ms(millis)), "ticket {ticket}");
        self
    }

    /// The same, for this reason.
    #[track_caller]
    pub(crate) fn waits_because(mut self, ticket: u64, lead: u64, reason: WaitReason) -> Self {
        assert_eq!(self.wait(ticket, lead).0, reason, "ticket {ticket}");
        self
    }

    #[track_caller]
    pub(crate) fn free_at(self, millis: u64) -> Self {
        assert_eq!(tat(self.state.record()), T0 + ms(millis));
        self
    }
}
