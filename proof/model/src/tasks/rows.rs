//! The rows of a wrong variant of the rules: what is found is not what is stored, or what is stored not what was
//! written.

use interval_queue_contract::{Micros, StateError};
use interval_queue_memory::Tables;
use interval_queue_task_contract::{
    AttemptEnd, Change, Command, Corrected, Counted, Cursor, Edge, EdgeState, Event, Json, Key, KeyRow, Kind,
    KindRow, LogLine, Presence, Queue, Rows, Schedule, Selector, State, Step, Task, TaskId, Took, Verb,
    WorkerId, index::Index,
};

use super::Flaw;

/// The rows of one command.
pub(super) struct Flawed<'a> {
    pub(super) tables: &'a mut Tables,
    pub(super) flaw: Flaw,
    pub(super) command: &'a Command,
}

impl Flawed<'_> {
    fn step(&self) -> Option<&Step> {
        match self.command {
            Command::Step(step) => Some(step),
            _ => None,
        }
    }
}

/// What is found and written as it is.
macro_rules! honest {
    ($($name:ident($($given:ident: $of:ty),*) -> $found:ty;)*) => {
        $(fn $name(&mut self, $($given: $of),*) -> Result<$found, StateError> {
            self.tables.$name($($given),*)
        })*
    };
}

impl Rows for Flawed<'_> {
    type Error = StateError;

    fn task(&mut self, id: TaskId) -> Result<Option<Task>, StateError> {
        let mut found = self.tables.task(id)?;
        let complete = self.step().and_then(|step| {
            let completion = step.complete.iter().find(|completion| completion.id == id)?;
            Some((step.worker, completion.token))
        });
        if let (Flaw::NoFence, Some(x), Some((worker, token))) = (self.flaw, &mut found, complete)
            && x.state == State::Leased
        {
            (x.worker, x.token) = (Some(worker), token);
        }
        if let (Flaw::StopForgotten, Some(x), Some(_)) = (self.flaw, &mut found, complete) {
            x.stop = None;
        }
        Ok(found)
    }

    fn put(&mut self, before: &Task, after: &Task) -> Result<(), StateError> {
        let died = before.state == State::Leased
            && after.failures > before.failures
            && after.history.last().is_some_and(|last| last.end == AttemptEnd::Died);
        if self.flaw == Flaw::DeathsForgotten && died {
            return self.tables.put(before, &Task { failures: before.failures, ..after.clone() });
        }
        self.tables.put(before, after)
    }

    fn by_name(&mut self, name: &Key) -> Result<Option<Task>, StateError> {
        let retries =
            matches!(self.command, Command::Change(Change::Tasks(change)) if change.verb == Verb::Retry);
        if self.flaw == Flaw::RetryTakesName && retries { Ok(None) } else { self.tables.by_name(name) }
    }

    fn ready(&mut self, kinds: &[Kind], at_least: Option<i32>, most: u32) -> Result<Vec<Task>, StateError> {
        if self.flaw == Flaw::LastComesFirst {
            let mut all = self.tables.ready(kinds, at_least, u32::MAX)?;
            all.reverse();
            all.truncate(most as usize);
            return Ok(all);
        }
        self.tables.ready(kinds, at_least, most)
    }

    fn leased(&mut self) -> Result<u64, StateError> {
        let leased = self.tables.leased()?;
        Ok(if self.flaw == Flaw::LimitForgotten { 0 } else { leased })
    }

    fn first_competitor(&mut self, key: &Key) -> Result<Option<Task>, StateError> {
        let first = self.tables.first_competitor(key)?;
        Ok(first.filter(|_| self.flaw != Flaw::NoHandOver))
    }

    fn unnotified(&mut self, most: u32) -> Result<Vec<Task>, StateError> {
        let unnotified = self.tables.unnotified(most)?;
        Ok(if self.flaw == Flaw::EndsNotNotified { Vec::new() } else { unnotified })
    }

    fn has_pending(&mut self, down: TaskId) -> Result<bool, StateError> {
        let pending = self.tables.has_pending(down)?;
        Ok(pending && self.flaw != Flaw::EdgesForgotten)
    }

    fn presence(&mut self, worker: WorkerId) -> Result<Option<Presence>, StateError> {
        let mut found = self.tables.presence(worker)?;
        if let (Flaw::NoSequence, Some(presence), Some(step)) = (self.flaw, &mut found, self.step())
            && step.worker == worker
        {
            presence.sequence = presence.sequence.min(step.sequence - 1);
        }
        Ok(found)
    }

    fn ended_presences(
        &mut self,
        until: Micros,
        cleared: bool,
        most: u32,
    ) -> Result<Vec<Presence>, StateError> {
        let ended = self.tables.ended_presences(until, cleared, most)?;
        Ok(if self.flaw == Flaw::NoLease { Vec::new() } else { ended })
    }

    fn look<I: Index>(
        &mut self,
        columns: I::Columns,
        until: Option<Micros>,
        most: u32,
    ) -> Result<Vec<Task>, StateError> {
        self.tables.look::<I>(columns, until, most)
    }

    fn first_instant<I: Index<Columns = ()>>(&mut self) -> Result<Option<Micros>, StateError> {
        self.tables.first_instant::<I>()
    }

    honest! {
        queue() -> Option<Queue>;
        put_queue(queue: &Queue) -> ();
        insert(task: &Task, payload: &Json) -> ();
        remove(task: &Task) -> ();
        payload(id: TaskId) -> Option<Json>;
        put_payload(id: TaskId, payload: Option<&Json>) -> ();
        result(id: TaskId) -> Option<Json>;
        put_result(id: TaskId, result: Option<&Json>) -> ();
        log(id: TaskId) -> Vec<LogLine>;
        put_log(id: TaskId, log: &[LogLine]) -> ();
        leased_of_key(key: &Key) -> u64;
        holders(key: &Key) -> u64;
        has_ordered_holder(key: &Key) -> bool;
        last_ready_holder(key: &Key) -> Option<Task>;
        blocked(key: &Key, most: u32) -> u64;
        next_key(after: Option<&Key>) -> Option<Key>;
        select(selector: &Selector, after: Cursor, most: u32) -> Vec<Task>;
        scan_end(after: Cursor) -> Option<Cursor>;
        insert_edge(edge: &Edge) -> ();
        remove_edge(edge: &Edge) -> ();
        put_edge(edge: &Edge) -> ();
        edges_from(up: TaskId, after: Option<TaskId>, most: u32) -> Vec<Edge>;
        unnotified_from(up: TaskId, generation: u32, most: u32) -> Vec<Edge>;
        edges_to(down: TaskId, state: Option<EdgeState>, after: Option<TaskId>, most: u32) -> Vec<Edge>;
        put_presence(presence: &Presence) -> ();
        remove_presence(worker: WorkerId) -> ();
        shortest_busy_lease(after: Micros) -> Option<Micros>;
        longest_lease(after: Micros) -> Option<Micros>;
        next_busy_end(after: Micros) -> Option<Micros>;
        presences() -> Vec<Presence>;
        kind(kind: &Kind) -> Option<KindRow>;
        put_kind(row: &KindRow) -> ();
        kinds() -> Vec<KindRow>;
        key(key: &Key) -> Option<KeyRow>;
        put_key(row: &KeyRow) -> ();
        remove_key(key: &Key) -> ();
        paused_keys(most: u32) -> Vec<KeyRow>;
        keys_to_rebalance(most: u32) -> Vec<KeyRow>;
        schedule(name: &Key) -> Option<Schedule>;
        put_schedule(schedule: &Schedule) -> ();
        remove_schedule(name: &Key) -> ();
        schedules() -> Vec<Schedule>;
        count(kind: &Kind, counted: Counted, more: i64) -> ();
        miscounted() -> Vec<Corrected>;
        counts() -> Vec<(Kind, Counted, u64)>;
        took(kind: &Kind, took: Took, more: u64) -> ();
        times(kind: &Kind, from: u32) -> Vec<(Took, u64)>;
        forget_times(hours: u32, days: u32) -> ();
        put_event(event: &Event) -> ();
        events(after: u64, most: u32) -> Vec<(u64, Event)>;
        last_event() -> u64;
        forget_events(before: Micros, most: u32) -> ();
        notify() -> ();
    }
}
