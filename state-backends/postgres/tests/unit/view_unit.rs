//! The rules do the same on an overlay as on the rows themselves, however little is found at first.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use async_trait::async_trait;
use interval_queue_conformance::ManualClock;
use interval_queue_contract::{Changes, QueueName};
use interval_queue_memory::Tables;
use interval_queue_task_conformance::{differential::compare, fuzzer::Target as StoreUnderTest, hand};
use interval_queue_task_contract::{
    Change, ChangeTasks, Key, NewTask, Rows, Selector, State, Step, Task, TaskId, TaskStore, Verb,
    index::{self, Index, Sort as _},
};

use super::*;

/// Tables in memory, of which a command finds rows ahead and writes what has changed.
struct Ahead {
    tables: Mutex<Tables>,
    clock: ManualClock,
    /// How many rows are found at first where more are asked for.
    at_first: u32,
    again: AtomicUsize,
}

impl std::fmt::Debug for Ahead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Ahead")
    }
}

#[async_trait]
impl TaskStore for Ahead {
    async fn apply(&self, _: &QueueName, command: Command) -> Result<Reply, StateError> {
        let (mut tables, mut read_set) = (self.tables.lock().unwrap(), ReadSet::default());
        for round in 0.. {
            assert!(round < 2_000, "{command:?} is never decided");
            match decide(&read_set, self.clock.now(), &command) {
                Outcome::Decided(reply, written) => {
                    if reply.is_ok() {
                        write(&mut tables, *written);
                    }
                    tables.finish(true);
                    return reply;
                }
                Outcome::Missing(lookups) => {
                    for lookup in lookups {
                        let is_again = read_set.has(&lookup.target);
                        self.again.fetch_add(is_again.into(), Ordering::Relaxed);
                        let limit = if is_again { lookup.limit } else { lookup.limit.min(self.at_first) };
                        let lookup = Lookup { limit, ..lookup };
                        let result = find(&mut tables, &lookup).unwrap();
                        read_set.insert(lookup, result);
                    }
                }
            }
        }
        unreachable!()
    }

    async fn queues(&self) -> Result<Vec<QueueName>, StateError> {
        Ok(Vec::new())
    }

    async fn changes(&self, _: &QueueName) -> Result<Changes, StateError> {
        unreachable!()
    }
}

fn of_key<'t>(tables: &'t Tables, key: &Key, is_included: impl Fn(&Task) -> bool) -> Vec<&'t Task> {
    tables.tasks.values().filter(|x| x.key.as_ref() == Some(key) && is_included(x)).collect()
}

fn instants(tables: &Tables, limit: u32, at: impl Fn(&Task) -> Option<Micros>) -> LookupResult {
    let mut all: Vec<(Micros, TaskId)> = tables.tasks.values().filter_map(|x| Some((at(x)?, x.id))).collect();
    all.sort();
    all.truncate(limit as usize);
    LookupResult::Instants(all)
}

fn first(mut tasks: Vec<&Task>, limit: u32) -> LookupResult {
    tasks.truncate(limit as usize);
    LookupResult::Tasks(tasks.into_iter().cloned().collect())
}

/// Tasks of the index with this number and with these columns, up to an instant if it is not zero.
fn look(tables: &Tables, number: usize, values: &[String], until: Micros, limit: u32) -> Vec<Task> {
    fn of<I: Index>(tables: &Tables, values: &[String], until: Micros) -> Vec<Task> {
        let is_included = |x: &&Task| {
            let is_early = |order: I::Order| until == Micros::ZERO || order.instant() <= until;
            I::entry(x).is_some_and(|(columns, order)| I::values(&columns) == values && is_early(order))
        };
        let mut tasks: Vec<Task> = tables.tasks.values().filter(is_included).cloned().collect();
        tasks.sort_by_key(|x| I::order(x));
        tasks
    }
    macro_rules! of {
        ($($index:ident)*) => {
            match number {
                $(index::$index::NUMBER => of::<index::$index>(tables, values, until),)*
                _ => panic!("no lookup reads the index {number}"),
            }
        };
    }
    let mut tasks =
        of!(Name Added Scheduled Leased ToStop ReadyHolder Line Unserved Deadline Unnotified Ended);
    tasks.truncate(limit as usize);
    tasks
}

fn find(tables: &mut Tables, lookup: &Lookup) -> Result<LookupResult, StateError> {
    let Lookup { target, limit, until } = lookup;
    let (limit, until) = (*limit, *until);
    Ok(match target {
        Target::Queue => LookupResult::Queue(tables.queue()?.map(Box::new)),
        Target::Task(id) => LookupResult::Task(tables.task(*id)?.map(Box::new)),
        Target::Payload(id) => LookupResult::Json(tables.payload(*id)?),
        Target::Result(id) => LookupResult::Json(tables.result(*id)?),
        Target::Log(id) => LookupResult::Log(tables.log(*id)?),
        Target::Miscounted => LookupResult::Miscounted(tables.miscounted()?),
        Target::Look(number, values) => LookupResult::Tasks(look(tables, *number, values, until, limit)),
        &Target::First(index::Scheduled::NUMBER) => {
            instants(tables, limit, |x| (x.state == State::Scheduled).then_some(x.not_before))
        }
        Target::First(_) => {
            instants(tables, limit, |x| x.deadline.filter(|_| x.stop.is_none() && !x.state.is_ended()))
        }
        Target::Ready(kinds, at_least) => LookupResult::Tasks(tables.ready(kinds, *at_least, limit)?),
        Target::Leased => LookupResult::Number(tables.leased()?),
        Target::LeasedOfKey(key) => LookupResult::Number(tables.leased_of_key(key)?),
        Target::Holders(key) => LookupResult::Number(tables.holders(key)?),
        Target::OrderedHolders(key) => {
            LookupResult::Number(of_key(tables, key, |x| x.holds_key && x.ordered).len() as u64)
        }
        Target::LastReadyHolder(key) => {
            let mut holders = of_key(tables, key, |x| x.holds_key && x.state == State::Ready);
            holders.sort_by_key(|x| std::cmp::Reverse(x.key_order()));
            first(holders, limit)
        }
        Target::Blocked(key) => LookupResult::Number(tables.blocked(key, limit)?),
        Target::NextKey(after) => LookupResult::NextKey(tables.next_key(after.as_ref())?),
        Target::Select(selection) => {
            LookupResult::Tasks(tables.select(&selection.selector, selection.after, limit)?)
        }
        Target::ScanEnd(after) => {
            let end = tables.scan_end(*after)?;
            LookupResult::Instants(end.into_iter().map(|end| (end.at, end.id)).collect())
        }
        Target::From(up, after) => LookupResult::Edges(tables.edges_from(*up, *after, limit)?),
        Target::UnnotifiedFrom(up, generation) => {
            LookupResult::Edges(tables.unnotified_from(*up, *generation, limit)?)
        }
        Target::To(down, state, after) => LookupResult::Edges(tables.edges_to(*down, *state, *after, limit)?),
        Target::Pending(down) => {
            let edges = tables.edges_to(*down, None, None, u32::MAX)?.into_iter();
            LookupResult::Edges(edges.filter(|edge| edge.state.is_pending()).take(limit as usize).collect())
        }
        Target::Presence(worker) => LookupResult::Presence(tables.presence(*worker)?.map(Box::new)),
        Target::Presences => LookupResult::Presences(tables.presences()?),
        Target::Leases => LookupResult::Leases(tables.presences()?.iter().map(Lease::of).collect()),
        Target::Kind(kind) => LookupResult::Kind(tables.kind(kind)?),
        Target::Kinds => LookupResult::Kinds(tables.kinds()?),
        Target::Key(key) => LookupResult::Key(tables.key(key)?),
        Target::PausedKeys => LookupResult::Keys(tables.paused_keys(limit)?),
        Target::KeysToRebalance => LookupResult::Keys(tables.keys_to_rebalance(limit)?),
        Target::Schedule(name) => LookupResult::Schedule(tables.schedule(name)?.map(Box::new)),
        Target::Schedules => LookupResult::Schedules(tables.schedules()?),
        Target::Counts => LookupResult::Counts(tables.counts()?),
        Target::Times(kind, from) => LookupResult::Times(tables.times(kind, *from)?),
        Target::Events(after) => LookupResult::Events(tables.events(*after, limit)?),
        Target::LastEvent => LookupResult::Number(tables.last_event()?),
    })
}

/// The net of what was written, as a store stores it.
fn write(tables: &mut Tables, written: Written) {
    let Ok(()) = written.queue.iter().try_for_each(|queue| tables.put_queue(queue)) else { return };
    for (id, change) in written.tasks() {
        match (&change.before, &change.after) {
            (Some(before), Some(after)) => tables.put(before, after).unwrap(),
            (None, Some(after)) => {
                let payload = written.payloads.get(&id).cloned().flatten().unwrap_or_default();
                tables.insert(after, &payload).unwrap();
            }
            (Some(before), None) => tables.remove(before).unwrap(),
            (None, None) => {}
        }
    }
    for (id, payload) in written.payloads {
        tables.put_payload(id, payload.as_ref()).unwrap();
    }
    for (id, result) in written.results {
        tables.put_result(id, result.as_ref()).unwrap();
    }
    for (id, log) in written.logs {
        tables.put_log(id, &log).unwrap();
    }
    for change in written.edges.into_values() {
        match (change.before, change.after) {
            (Some(_), Some(edge)) => tables.put_edge(&edge).unwrap(),
            (None, Some(edge)) => tables.insert_edge(&edge).unwrap(),
            (Some(edge), None) => tables.remove_edge(&edge).unwrap(),
            (None, None) => {}
        }
    }
    for (worker, presence) in written.presences {
        match presence {
            Some(presence) => tables.put_presence(&presence).unwrap(),
            None => tables.remove_presence(worker).unwrap(),
        }
    }
    written.kinds.values().for_each(|row| tables.put_kind(row).unwrap());
    for (key, row) in written.keys {
        match row {
            Some(row) => tables.put_key(&row).unwrap(),
            None => tables.remove_key(&key).unwrap(),
        }
    }
    for (name, schedule) in written.schedules {
        match schedule {
            Some(schedule) => tables.put_schedule(&schedule).unwrap(),
            None => tables.remove_schedule(&name).unwrap(),
        }
    }
    for ((kind, counted), more) in written.counts {
        tables.count(&kind, counted, more).unwrap();
    }
    for ((kind, took), more) in written.times {
        tables.took(&kind, took, more).unwrap();
    }
    written.first_times.into_iter().for_each(|(hours, days)| tables.forget_times(hours, days).unwrap());
    written.events.iter().for_each(|event| tables.put_event(event).unwrap());
    written.first_event.into_iter().for_each(|(before, limit)| tables.forget_events(before, limit).unwrap());
}

#[tokio::test]
async fn random_commands_do_the_same_on_what_was_found_ahead() {
    let mut again = 0;
    for seed in 0..8 {
        let clock = ManualClock::default();
        let at_first = if seed % 2 == 0 { u32::MAX } else { 1 + seed as u32 / 2 };
        let again_asked = AtomicUsize::new(0);
        let ahead = Ahead { tables: Mutex::default(), clock: clock.clone(), at_first, again: again_asked };
        let ahead = Arc::new(ahead);
        let stage = StoreUnderTest { store: ahead.clone(), clock, copies: None };
        assert!(compare(seed, 600, &stage).await.unwrap() > 20);
        again += ahead.again.load(Ordering::Relaxed);
    }
    assert!(again > 1_000, "more was asked for {again} times only");
}

/// What is found ahead costs as well, but is no matter of the rules.
fn visited(tables: &mut Tables, command: &Command) -> u64 {
    let mut read_set = ReadSet::default();
    loop {
        match decide(&read_set, Micros::new(1), command) {
            Outcome::Decided(reply, written) => {
                reply.unwrap();
                return written.visited();
            }
            Outcome::Missing(lookups) => {
                for lookup in lookups {
                    let result = find(tables, &lookup).unwrap();
                    read_set.insert(lookup, result);
                }
            }
        }
    }
}

#[test]
fn lookups_over_what_an_add_has_written_are_linear() {
    let visits = hand::FLOWS.into_iter().map(|count| visited(&mut Tables::default(), &hand::flow(count)));
    hand::assert_linear(visits, "rows visited");
}

/// Each task that is cancelled lets others of its key in, which are written, too.
#[test]
fn lookups_over_what_a_change_has_written_are_linear() {
    let key = Key::new("one").unwrap();
    let of_key = |n| NewTask { key: Some(key.clone()), ..hand::task(n) };
    let cancels = |count: u64| {
        let mut tables = Tables::default();
        let mut apply = |command: &Command| {
            let reply = rules::apply(&mut tables, Micros::new(1), command);
            tables.finish(reply.is_ok());
            reply.unwrap()
        };
        apply(&hand::add((0..4 * count).map(of_key)));
        apply(&Command::Change(Change::Key(key.clone(), Some(10_000))));
        let kind = Kind::default();
        let mut step = Step::first(hand::worker(1), [kind], hand::LEASE);
        loop {
            let Reply::Stepped(stepped) = apply(&Command::Step(step.clone())) else { panic!("no step") };
            step = Step { sequence: step.sequence + 1, held: None, ..step };
            if !stepped.more {
                break;
            }
        }
        apply(&Command::Change(Change::Key(key.clone(), Some(1))));
        let selector = Selector::ids((0..count).map(hand::id));
        let cancel = ChangeTasks {
            selector,
            verb: Verb::Cancel,
            after: None,
            watermark: None,
            limit: 1_000,
            dry_run: false,
        };
        visited(&mut tables, &Command::Change(Change::Tasks(cancel)))
    };
    let (half, whole) = (cancels(400), cancels(800));
    assert!(half > 400 && whole <= half * 2 + half / 5, "{half} and {whole} rows visited");
}
