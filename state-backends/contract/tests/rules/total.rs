//! The rules answer whatever they are given: any record that passes its check, any command, any time.

use std::collections::BTreeMap;

use interval_queue_contract::{
    Ask, Change, Command, Label, LastTake, Late, MAX_INTERVAL, MAX_LEAD, MAX_LEASE, MIN_LEASE, MaxRunning,
    Memory, Micros, OnExisting, Presence, Reading, Record, Reply, Settings, ShardId, Step, Take, Ticket,
};
use proptest::{collection::vec, option, prelude::*};

use crate::common::{State, open};

/// Numbers at the ends of the range, and some that meet.
fn number() -> impl Strategy<Value = u64> {
    const LAST: u64 = Ticket::MAX.get();
    prop_oneof![0..20_u64, LAST - 5..=LAST, Just(1_000_000), any::<u64>()]
}

fn micros() -> impl Strategy<Value = Micros> {
    number().prop_map(Micros::new)
}

fn ticket() -> impl Strategy<Value = Ticket> {
    number().prop_map(Ticket::new)
}

fn within(least: Micros, most: Micros) -> impl Strategy<Value = Micros> {
    let beyond = micros();
    prop_oneof![8 => (least.get()..=most.get()).prop_map(Micros::new), 1 => Just(least), 1 => Just(most), 1 => beyond]
}

fn shard() -> impl Strategy<Value = ShardId> {
    prop::sample::select(vec!["a", "b", "c"]).prop_map(|name| ShardId::new(name).unwrap())
}

fn weight() -> impl Strategy<Value = u32> {
    prop_oneof![Just(1), 0..3_u32, Just(1_000_000), any::<u32>()]
}

prop_compose! {
    fn presence()(
        head in option::of(ticket()),
        running in prop_oneof![0..4_u32, any::<u32>()],
        expires_at in micros(),
        sequence in number(),
        last_take in option::of((number(), ticket(), 1..9_u32)),
    ) -> Presence {
        let last_take = last_take.map(|(request, first, count)| LastTake {
            request,
            first: first.clamp(Ticket::new(1), Ticket::new(Ticket::MAX.get() - 9)),
            count,
        });
        Presence { head, running, expires_at, sequence, last_take, label: Label::default() }
    }
}

prop_compose! {
    fn record()(
        interval in within(Micros::new(1), MAX_INTERVAL),
        max_running in option::of(1..5_u32),
        paused in prop::bool::weighted(0.2),
        revision in number(),
        (ticket, current, line_from, gaps_until) in (ticket(), ticket(), ticket(), ticket()),
        (free_at, held_until, lifted_at, seen_at) in (micros(), micros(), micros(), micros()),
        shards in prop::collection::btree_map(shard(), presence().boxed(), 0..4),
    ) -> Record {
        let heads = shards.values().filter_map(|presence| presence.head).max();
        let taken = shards.values().filter_map(|presence| presence.last_take);
        let taken = taken.map(|take| take.first.after(u64::from(take.count))).max();
        let shards: BTreeMap<_, _> = shards;
        Record {
            paused, revision, current, line_from, gaps_until, free_at, held_until, lifted_at, seen_at, shards,
            ticket: ticket.max(current).max(heads.unwrap_or_default()).max(taken.unwrap_or_default()),
            ..Record::new(Settings { interval: interval.clamp(Micros::new(1), MAX_INTERVAL), max_running })
        }
    }
}

prop_compose! {
    fn memory()(
        (at, free_at, held_until) in (micros(), micros(), micros()),
        (ticket, current) in (ticket(), ticket()),
        (sequence, revision) in (number(), number()),
        interval in within(Micros::new(1), MAX_INTERVAL),
        max_running in option::of(0..5_u32),
        paused in any::<bool>(),
        longest_lead in within(Micros::ZERO, MAX_LEAD),
        shards in any::<u32>(),
        nothing in any::<bool>(),
    ) -> Memory {
        if nothing {
            return Memory::default();
        }
        Memory {
            at, sequence, ticket, current, free_at, revision, interval, max_running, paused, held_until, longest_lead, shards,
        }
    }
}

prop_compose! {
    fn step()(
        shard in shard(),
        sequence in number(),
        memory in memory().boxed(),
        lease in within(MIN_LEASE, MAX_LEASE),
        lead in within(Micros::ZERO, MAX_LEAD),
        take in option::of((number(), prop_oneof![0..5_u32, any::<u32>()], vec(weight(), 0..3))),
        mut asked in vec((ticket(), weight()), 0..4),
        sorted in prop::bool::weighted(0.9),
        then in option::weighted(0.3, ticket()),
        late in prop::sample::select(vec![Late::NextSlot, Late::Requeue]),
        running in prop_oneof![0..4_u32, any::<u32>()],
        given_up in option::of(ticket()),
    ) -> Command {
        if sorted {
            asked.sort_unstable();
            asked.dedup_by_key(|(ticket, _)| *ticket);
        }
        Command::Step(Step {
            take: take.map(|(request, count, weights)| Take { request, count, weights }),
            ask: asked.into_iter().map(|(ticket, weight)| Ask { ticket, weight }).collect(),
            label: Label::default(),
            shard, sequence, memory, lease, lead, then, late, running, given_up,
        })
    }
}

fn command() -> impl Strategy<Value = Command> {
    let limit = || {
        let some = prop_oneof![0..3_u32, any::<u32>()].prop_map(MaxRunning::AtMost);
        prop_oneof![Just(MaxRunning::Keep), Just(MaxRunning::Unlimited), some]
    };
    let interval = || option::of(within(Micros::new(1), MAX_INTERVAL));
    let on_existing = vec![OnExisting::Replace, OnExisting::Join, OnExisting::Fail, OnExisting::Reset];
    let opening = (interval(), limit(), prop::sample::select(on_existing));
    let change = prop_oneof![
        opening.prop_map(|(interval, limit, on_existing)| open(interval, limit, on_existing)),
        (interval(), limit()).prop_map(|(interval, max_running)| Change::Set { interval, max_running }),
        micros().prop_map(Change::Hold),
        prop::sample::select(vec![Change::Pause, Change::Resume, Change::Reset]),
    ];
    prop_oneof![
        6 => step().boxed(),
        3 => (change.boxed(), memory().boxed()).prop_map(|(change, memory)| Command::Change(change, memory)),
        1 => Just(Command::Read),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// No panic; an error changes nothing; what is stored passes the check and survives its JSON; tickets and
    /// `current` never go back; the time that counts never goes back by a little.
    #[test]
    fn any_command_on_any_record_is_answered(
        stored in option::of(record().boxed()),
        readings in vec((micros(), prop::sample::select(vec!["", "other"])), 1..6),
        commands in vec(command().boxed(), 6),
    ) {
        let mut state = State { stored, ..State::empty() };
        for ((now, incarnation), command) in readings.into_iter().zip(commands) {
            state.reading = Reading { now, incarnation: incarnation.into() };
            let before = state.stored.clone();
            let outcome = state.apply(&command);
            if outcome.is_err() || command == Command::Read {
                prop_assert_eq!(&state.stored, &before);
                continue;
            }
            let after = state.record();
            prop_assert!(after.check().is_ok(), "{:?}", after);
            prop_assert_eq!(&Record::from_json(&after.to_json().unwrap()).unwrap(), after);
            if let Some(before) = before {
                prop_assert!(after.ticket >= before.ticket && after.current >= before.current);
                prop_assert!(after.line_from >= before.line_from);
                prop_assert!(after.seen_at >= before.seen_at.min(now));
            }
            match (command, outcome.unwrap()) {
                (Command::Step(step), Reply::Stepped(stepped)) => {
                    prop_assert!(stepped.grants.iter().all(|grant| grant.ticket <= after.current));
                    prop_assert_eq!(stepped.present, after.shards.contains_key(&step.shard));
                    prop_assert_eq!(stepped.memory.sequence, step.sequence);
                    prop_assert!(Command::Change(Change::Pause, stepped.memory).check().is_ok());
                }
                (Command::Change(..), Reply::Changed(changed)) => {
                    prop_assert_eq!(changed.memory, Memory::of(after));
                }
                (command, reply) => prop_assert!(false, "{:?} answered by {:?}", command, reply),
            }
        }
    }

    /// What anybody sends as JSON is read or refused.
    #[test]
    fn a_record_is_read_back_as_it_was_written(record in record()) {
        prop_assert!(record.check().is_ok());
        prop_assert_eq!(Record::from_json(&record.to_json().unwrap()).unwrap(), record);
    }
}
