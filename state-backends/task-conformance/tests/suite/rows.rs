//! The tables of the memory store, looked over the shoulder: what is asked of them is counted, and a flaw falsifies
//! an answer.

use std::collections::HashMap;

use interval_queue_contract::{Micros, StateError};
use interval_queue_memory::Tables;
use interval_queue_task_contract::{
    Corrected, Counted, Cursor, Edge, EdgeState, Event, Json, Key, KeyRow, Kind, KindRow, LogLine, MAX_HELD,
    Presence, Queue, Rows, Schedule, Selector, State, Task, TaskId, Token, Took, WorkerId, index::Index,
};

use crate::wrong::Flaw;

/// The rows of one command.
pub(crate) struct Flawed<'a> {
    pub(crate) tables: &'a mut Tables,
    pub(crate) flaw: Flaw,
    /// What the command completes.
    pub(crate) completed: HashMap<TaskId, (WorkerId, Token)>,
    /// The number of the step.
    pub(crate) sequence: u64,
    /// What was ready when somebody looked last.
    pub(crate) last_ready: &'a mut Vec<Task>,
    pub(crate) counted: &'a mut u64,
    /// Calls, and the rows that they found.
    pub(crate) calls: u64,
    pub(crate) found: u64,
}

/// How many rows an answer has.
pub(crate) trait Many {
    fn many(&self) -> u64 {
        1
    }
}

impl Many for () {}
impl Many for bool {}
impl Many for u64 {}
impl<T> Many for Option<T> {}
impl<T> Many for Vec<T> {
    fn many(&self) -> u64 {
        self.len() as u64
    }
}

impl Flawed<'_> {
    fn seen<T: Many>(&mut self, found: T) -> Result<T, StateError> {
        self.calls += 1;
        self.found += found.many();
        Ok(found)
    }
}

impl Rows for Flawed<'_> {
    type Error = StateError;

    fn queue(&mut self) -> Result<Option<Queue>, StateError> {
        let found = self.tables.queue()?;
        self.seen(found)
    }

    fn put_queue(&mut self, queue: &Queue) -> Result<(), StateError> {
        self.tables.put_queue(queue)?;
        self.seen(())
    }

    fn task(&mut self, id: TaskId) -> Result<Option<Task>, StateError> {
        let mut found = self.tables.task(id)?;
        if let (Flaw::NoFence, Some((worker, token)), Some(x)) =
            (self.flaw, self.completed.get(&id), &mut found)
            && x.state == State::Leased
        {
            (x.worker, x.token) = (Some(*worker), *token);
        }
        if let (Flaw::EndsAsUsual, true, Some(x)) = (self.flaw, self.completed.contains_key(&id), &mut found)
        {
            x.stop = None;
        }
        self.seen(found)
    }

    fn insert(&mut self, task: &Task, payload: &Json) -> Result<(), StateError> {
        let position = if self.flaw == Flaw::ForgetsPositions { 0 } else { task.position };
        self.tables.insert(&Task { position, ..task.clone() }, payload)?;
        self.seen(())
    }

    fn put(&mut self, before: &Task, after: &Task) -> Result<(), StateError> {
        let leaks = self.flaw == Flaw::LeaksKeys && after.state.is_ended() && before.holds_key;
        let after = Task { holds_key: after.holds_key || leaks, ..after.clone() };
        self.tables.put(before, &after)?;
        self.seen(())
    }

    fn remove(&mut self, task: &Task) -> Result<(), StateError> {
        self.tables.remove(task)?;
        self.seen(())
    }

    fn payload(&mut self, id: TaskId) -> Result<Option<Json>, StateError> {
        let found = self.tables.payload(id)?;
        self.seen(found)
    }

    fn put_payload(&mut self, id: TaskId, payload: Option<&Json>) -> Result<(), StateError> {
        self.tables.put_payload(id, payload)?;
        self.seen(())
    }

    fn result(&mut self, id: TaskId) -> Result<Option<Json>, StateError> {
        let found = self.tables.result(id)?;
        self.seen(found)
    }

    fn put_result(&mut self, id: TaskId, result: Option<&Json>) -> Result<(), StateError> {
        self.tables.put_result(id, result)?;
        self.seen(())
    }

    fn log(&mut self, id: TaskId) -> Result<Vec<LogLine>, StateError> {
        let found = self.tables.log(id)?;
        self.seen(found)
    }

    fn put_log(&mut self, id: TaskId, log: &[LogLine]) -> Result<(), StateError> {
        self.tables.put_log(id, log)?;
        self.seen(())
    }

    fn look<I: Index>(
        &mut self,
        columns: I::Columns,
        until: Option<Micros>,
        most: u32,
    ) -> Result<Vec<Task>, StateError> {
        let found = self.tables.look::<I>(columns, until, most)?;
        self.seen(found)
    }

    fn first_instant<I: Index<Columns = ()>>(&mut self) -> Result<Option<Micros>, StateError> {
        let found = self.tables.first_instant::<I>()?;
        self.seen(found)
    }

    fn ready(&mut self, kinds: &[Kind], at_least: Option<i32>, most: u32) -> Result<Vec<Task>, StateError> {
        let mut found = self.tables.ready(kinds, at_least, most)?;
        match self.flaw {
            Flaw::ReversesOrder => found.reverse(),
            // As if two had looked before either has written.
            Flaw::RacesForLeases => {
                let other = std::mem::replace(self.last_ready, found.clone());
                found.extend(other.into_iter().filter(|x| kinds.contains(&x.kind)));
                found.truncate(most as usize);
            }
            _ => {}
        }
        self.seen(found)
    }

    fn leased(&mut self) -> Result<u64, StateError> {
        let found = self.tables.leased()?;
        self.seen(found)
    }

    fn leased_of_key(&mut self, key: &Key) -> Result<u64, StateError> {
        let found = self.tables.leased_of_key(key)?;
        self.seen(found)
    }

    fn held_by(&mut self, worker: WorkerId, most: u32) -> Result<Vec<Task>, StateError> {
        let is_blind = self.flaw == Flaw::IgnoresHoldings && most == MAX_HELD;
        let found = if is_blind { vec![] } else { self.tables.held_by(worker, most)? };
        self.seen(found)
    }

    fn holders(&mut self, key: &Key) -> Result<u64, StateError> {
        let found = self.tables.holders(key)?;
        self.seen(found)
    }

    fn has_ordered_holder(&mut self, key: &Key) -> Result<bool, StateError> {
        let found = self.tables.has_ordered_holder(key)?;
        self.seen(found)
    }

    fn last_ready_holder(&mut self, key: &Key) -> Result<Option<Task>, StateError> {
        let found = if self.flaw == Flaw::SwapsNobody { None } else { self.tables.last_ready_holder(key)? };
        self.seen(found)
    }

    fn first_competitor(&mut self, key: &Key) -> Result<Option<Task>, StateError> {
        let found =
            if self.flaw == Flaw::HandsNothingOver { None } else { self.tables.first_competitor(key)? };
        self.seen(found)
    }

    fn blocked(&mut self, key: &Key, most: u32) -> Result<u64, StateError> {
        let found = self.tables.blocked(key, most)?;
        self.seen(found)
    }

    fn next_key(&mut self, after: Option<&Key>) -> Result<Option<Key>, StateError> {
        let found = self.tables.next_key(after)?;
        self.seen(found)
    }

    fn unnotified(&mut self, most: u32) -> Result<Vec<Task>, StateError> {
        let found = if self.flaw == Flaw::NotifiesNobody { vec![] } else { self.tables.unnotified(most)? };
        self.seen(found)
    }

    fn select(&mut self, selector: &Selector, after: Cursor, most: u32) -> Result<Vec<Task>, StateError> {
        let found = self.tables.select(selector, after, most)?;
        self.seen(found)
    }

    fn scan_end(&mut self, after: Cursor) -> Result<Option<Cursor>, StateError> {
        let found = self.tables.scan_end(after)?;
        self.seen(found)
    }

    fn insert_edge(&mut self, edge: &Edge) -> Result<(), StateError> {
        *self.counted += 1;
        if self.flaw != Flaw::ForgetsEdges || !self.counted.is_multiple_of(3) {
            self.tables.insert_edge(edge)?;
        }
        self.seen(())
    }

    fn remove_edge(&mut self, edge: &Edge) -> Result<(), StateError> {
        self.tables.remove_edge(edge)?;
        self.seen(())
    }

    fn put_edge(&mut self, edge: &Edge) -> Result<(), StateError> {
        self.tables.put_edge(edge)?;
        self.seen(())
    }

    fn edges_from(&mut self, up: TaskId, after: Option<TaskId>, most: u32) -> Result<Vec<Edge>, StateError> {
        let is_blind = self.flaw == Flaw::PurgesInputs && most == 1;
        let found = if is_blind { vec![] } else { self.tables.edges_from(up, after, most)? };
        self.seen(found)
    }

    fn unnotified_from(&mut self, up: TaskId, generation: u32, most: u32) -> Result<Vec<Edge>, StateError> {
        let found = self.tables.unnotified_from(up, generation, most)?;
        self.seen(found)
    }

    fn edges_to(
        &mut self,
        down: TaskId,
        state: Option<EdgeState>,
        after: Option<TaskId>,
        most: u32,
    ) -> Result<Vec<Edge>, StateError> {
        let found = self.tables.edges_to(down, state, after, most)?;
        self.seen(found)
    }

    fn has_pending(&mut self, down: TaskId) -> Result<bool, StateError> {
        let found = self.tables.has_pending(down)?;
        self.seen(found)
    }

    fn presence(&mut self, worker: WorkerId) -> Result<Option<Presence>, StateError> {
        let mut found = self.tables.presence(worker)?;
        if let (Flaw::ObeysLateSteps, Some(presence)) = (self.flaw, &mut found) {
            presence.sequence = presence.sequence.min(self.sequence.saturating_sub(1));
        }
        self.seen(found)
    }

    fn put_presence(&mut self, presence: &Presence) -> Result<(), StateError> {
        self.tables.put_presence(presence)?;
        self.seen(())
    }

    fn remove_presence(&mut self, worker: WorkerId) -> Result<(), StateError> {
        self.tables.remove_presence(worker)?;
        self.seen(())
    }

    fn ended_presences(
        &mut self,
        until: Micros,
        cleared: bool,
        most: u32,
    ) -> Result<Vec<Presence>, StateError> {
        let until = if self.flaw == Flaw::ForgetsWorkers && cleared { Micros::MAX } else { until };
        let found = self.tables.ended_presences(until, cleared, most)?;
        self.seen(found)
    }

    fn shortest_busy_lease(&mut self, after: Micros) -> Result<Option<Micros>, StateError> {
        let found = self.tables.shortest_busy_lease(after)?;
        let found = match self.flaw {
            Flaw::ForgivesNoSilence => Some(Micros::MAX),
            Flaw::ForgivesAllSilence => found.or(Some(Micros::from_millis(30_000))),
            _ => found,
        };
        self.seen(found)
    }

    fn longest_lease(&mut self, after: Micros) -> Result<Option<Micros>, StateError> {
        let found = self.tables.longest_lease(after)?;
        self.seen(found)
    }

    fn next_busy_end(&mut self, after: Micros) -> Result<Option<Micros>, StateError> {
        let found = self.tables.next_busy_end(after)?;
        self.seen(found)
    }

    fn presences(&mut self) -> Result<Vec<Presence>, StateError> {
        let found = self.tables.presences()?;
        self.seen(found)
    }

    fn kind(&mut self, kind: &Kind) -> Result<Option<KindRow>, StateError> {
        let found = self.tables.kind(kind)?;
        self.seen(found)
    }

    fn put_kind(&mut self, row: &KindRow) -> Result<(), StateError> {
        self.tables.put_kind(row)?;
        self.seen(())
    }

    fn kinds(&mut self) -> Result<Vec<KindRow>, StateError> {
        let found = self.tables.kinds()?;
        self.seen(found)
    }

    fn key(&mut self, key: &Key) -> Result<Option<KeyRow>, StateError> {
        let found = self.tables.key(key)?;
        self.seen(found)
    }

    fn put_key(&mut self, row: &KeyRow) -> Result<(), StateError> {
        self.tables.put_key(row)?;
        self.seen(())
    }

    fn remove_key(&mut self, key: &Key) -> Result<(), StateError> {
        self.tables.remove_key(key)?;
        self.seen(())
    }

    fn paused_keys(&mut self, most: u32) -> Result<Vec<KeyRow>, StateError> {
        let found = self.tables.paused_keys(most)?;
        self.seen(found)
    }

    fn keys_to_rebalance(&mut self, most: u32) -> Result<Vec<KeyRow>, StateError> {
        let found = self.tables.keys_to_rebalance(most)?;
        self.seen(found)
    }

    fn schedule(&mut self, name: &Key) -> Result<Option<Schedule>, StateError> {
        let found = self.tables.schedule(name)?;
        self.seen(found)
    }

    fn put_schedule(&mut self, schedule: &Schedule) -> Result<(), StateError> {
        self.tables.put_schedule(schedule)?;
        self.seen(())
    }

    fn remove_schedule(&mut self, name: &Key) -> Result<(), StateError> {
        self.tables.remove_schedule(name)?;
        self.seen(())
    }

    fn schedules(&mut self) -> Result<Vec<Schedule>, StateError> {
        let found = self.tables.schedules()?;
        self.seen(found)
    }

    fn count(&mut self, kind: &Kind, counted: Counted, more: i64) -> Result<(), StateError> {
        *self.counted += 1;
        if self.flaw != Flaw::LosesCounts || !self.counted.is_multiple_of(7) {
            self.tables.count(kind, counted, more)?;
        }
        self.seen(())
    }

    fn miscounted(&mut self) -> Result<Vec<Corrected>, StateError> {
        let found = self.tables.miscounted()?;
        self.seen(found)
    }

    fn counts(&mut self) -> Result<Vec<(Kind, Counted, u64)>, StateError> {
        let found = self.tables.counts()?;
        self.seen(found)
    }

    fn took(&mut self, kind: &Kind, took: Took, more: u64) -> Result<(), StateError> {
        if self.flaw != Flaw::LosesTimes || took.cell > 32 {
            self.tables.took(kind, took, more)?;
        }
        self.seen(())
    }

    fn times(&mut self, kind: &Kind, from: u32) -> Result<Vec<(Took, u64)>, StateError> {
        let found = self.tables.times(kind, from)?;
        self.seen(found)
    }

    fn forget_times(&mut self, hours: u32, days: u32) -> Result<(), StateError> {
        if self.flaw != Flaw::KeepsTimes {
            self.tables.forget_times(hours, days)?;
        }
        self.seen(())
    }

    fn put_event(&mut self, event: &Event) -> Result<(), StateError> {
        if self.flaw != Flaw::LosesEvents || event.from != Some(State::Leased) {
            self.tables.put_event(event)?;
        }
        self.seen(())
    }

    fn events(&mut self, after: u64, most: u32) -> Result<Vec<(u64, Event)>, StateError> {
        let found = self.tables.events(after, most)?;
        self.seen(found)
    }

    fn last_event(&mut self) -> Result<u64, StateError> {
        let found = self.tables.last_event()?;
        self.seen(found)
    }

    fn forget_events(&mut self, before: Micros, most: u32) -> Result<(), StateError> {
        if self.flaw != Flaw::KeepsEvents {
            self.tables.forget_events(before, most)?;
        }
        self.seen(())
    }

    fn notify(&mut self) -> Result<(), StateError> {
        self.tables.notify()?;
        self.seen(())
    }
}
