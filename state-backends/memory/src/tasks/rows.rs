//! The lookups and writes that the rules need.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound::{Excluded, Unbounded},
};

use interval_queue_contract::{Micros, StateError};
use interval_queue_task_contract::{
    Corrected, Counted, Cursor, Edge, EdgeState, Event, Json, Key, KeyRow, Kind, KindRow, LogLine,
    MAX_SCANNED, Order, Presence, Queue, Rows, Schedule, Selector, State, Task, TaskId, Took, WorkerId,
    index::{self, Index, Sort as _},
};

use super::tables::Tables;

const FIRST_ID: TaskId = TaskId::FIRST;
const LAST_ID: TaskId = TaskId::LAST;

fn take_cloned<'t>(tasks: impl Iterator<Item = &'t Task>, most: u32) -> Result<Vec<Task>, StateError> {
    Ok(tasks.take(most as usize).cloned().collect())
}

impl Tables {
    /// Up to [`MAX_SCANNED`] tasks.
    fn following(&self, after: Cursor) -> Box<dyn Iterator<Item = &Task> + '_> {
        let (added, most) = (index::ByAdded::all(&self.entries), MAX_SCANNED as usize);
        let position = ((), (after.at, after.id));
        match after.order {
            Order::Oldest => Box::new(self.tasks_of(added.range((Excluded(position), Unbounded)).take(most))),
            Order::Newest => Box::new(self.tasks_of(added.range(..position).rev().take(most))),
            Order::Ended => {
                let ended = index::Ended::all(&self.entries);
                let states = State::ALL.into_iter().filter(|state| state.is_ended());
                let of_states = states.flat_map(|state| {
                    let before = ended.range(((state,), index::Sort::FIRST)..((state,), position.1));
                    before.rev().take(most).map(|(_, order)| order)
                });
                let others = index::EndedOther::all(&self.entries).range(..position).rev().take(most);
                let mut orders: Vec<_> = of_states.chain(others.map(|(_, order)| order)).collect();
                orders.sort_unstable();
                let tasks = orders.into_iter().rev().take(most);
                Box::new(tasks.filter_map(|(_, id)| self.tasks.get(id)))
            }
        }
    }
}

impl Rows for Tables {
    type Error = StateError;

    fn queue(&mut self) -> Result<Option<Queue>, StateError> {
        Ok(self.queue.clone())
    }

    fn put_queue(&mut self, queue: &Queue) -> Result<(), StateError> {
        self.set_queue(queue.clone());
        Ok(())
    }

    fn task(&mut self, id: TaskId) -> Result<Option<Task>, StateError> {
        Ok(self.tasks.get(&id).cloned())
    }

    fn insert(&mut self, task: &Task, payload: &Json) -> Result<(), StateError> {
        self.set_task(task.id, Some(task.clone()));
        self.set_payload(task.id, Some(payload.clone()));
        Ok(())
    }

    fn put(&mut self, _: &Task, after: &Task) -> Result<(), StateError> {
        self.set_task(after.id, Some(after.clone()));
        Ok(())
    }

    fn remove(&mut self, task: &Task) -> Result<(), StateError> {
        self.set_task(task.id, None);
        self.set_payload(task.id, None);
        self.set_result(task.id, None);
        self.set_log(task.id, None);
        Ok(())
    }

    fn payload(&mut self, id: TaskId) -> Result<Option<Json>, StateError> {
        Ok(self.payloads.get(&id).cloned())
    }

    fn put_payload(&mut self, id: TaskId, payload: Option<&Json>) -> Result<(), StateError> {
        self.set_payload(id, payload.cloned());
        Ok(())
    }

    fn result(&mut self, id: TaskId) -> Result<Option<Json>, StateError> {
        Ok(self.results.get(&id).cloned())
    }

    fn put_result(&mut self, id: TaskId, result: Option<&Json>) -> Result<(), StateError> {
        self.set_result(id, result.cloned());
        Ok(())
    }

    fn log(&mut self, id: TaskId) -> Result<Vec<LogLine>, StateError> {
        Ok(self.logs.get(&id).cloned().unwrap_or_default())
    }

    fn put_log(&mut self, id: TaskId, log: &[LogLine]) -> Result<(), StateError> {
        self.set_log(id, (!log.is_empty()).then(|| log.to_vec()));
        Ok(())
    }

    fn look<I: Index>(
        &mut self,
        columns: I::Columns,
        until: Option<Micros>,
        most: u32,
    ) -> Result<Vec<Task>, StateError> {
        take_cloned(self.tasks_of(self.entries.look::<I>(columns, until)), most)
    }

    fn first_instant<I: Index<Columns = ()>>(&mut self) -> Result<Option<Micros>, StateError> {
        Ok(I::all(&self.entries).first().map(|(_, order)| order.instant()))
    }

    fn ready(&mut self, kinds: &[Kind], at_least: Option<i32>, most: u32) -> Result<Vec<Task>, StateError> {
        let mut found = Vec::new();
        for kind in kinds {
            let mut from = at_least.unwrap_or(i32::MIN);
            loop {
                let of_kind =
                    self.entries.between::<index::Ready>((kind.clone(), from), (kind.clone(), i32::MAX));
                let Some(&((_, priority), _)) = { of_kind }.next() else { break };
                let ready = self.entries.look::<index::Ready>((kind.clone(), priority), None);
                found.extend(self.tasks_of(ready).take(most as usize));
                from = priority + 1;
            }
        }
        found.sort_by_key(|x| x.order());
        take_cloned(found.into_iter(), most)
    }

    fn leased(&mut self) -> Result<u64, StateError> {
        Ok(index::Leased::all(&self.entries).len() as u64)
    }

    fn leased_of_key(&mut self, key: &Key) -> Result<u64, StateError> {
        Ok(self.entries.look::<index::LeasedOfKey>((key.clone(),), None).count() as u64)
    }

    fn holders(&mut self, key: &Key) -> Result<u64, StateError> {
        Ok(self.entries.holders(key, false).count() as u64)
    }

    fn has_ordered_holder(&mut self, key: &Key) -> Result<bool, StateError> {
        Ok(self.entries.holders(key, true).next().is_some())
    }

    fn last_ready_holder(&mut self, key: &Key) -> Result<Option<Task>, StateError> {
        let holders = [false, true]
            .map(|ordered| (key.clone(), ordered, State::Ready))
            .map(|columns| self.entries.look::<index::Holder>(columns, None).next_back());
        let last = holders.into_iter().flatten().max_by_key(|(_, order)| *order);
        Ok(self.tasks_of(last.into_iter()).next().cloned())
    }

    fn blocked(&mut self, key: &Key, most: u32) -> Result<u64, StateError> {
        let all = self.entries.between::<index::Line>((key.clone(), false), (key.clone(), true));
        Ok(all.take(most as usize).count() as u64)
    }

    fn next_key(&mut self, after: Option<&Key>) -> Result<Option<Key>, StateError> {
        Ok(self.entries.next_key(after))
    }

    fn select(&mut self, selector: &Selector, after: Cursor, most: u32) -> Result<Vec<Task>, StateError> {
        if selector.ids.is_empty() {
            return take_cloned(self.following(after).filter(|task| selector.matches(task)), most);
        }
        let ids: BTreeSet<_> = selector.ids.iter().copied().collect();
        let tasks = ids.iter().filter_map(|id| self.tasks.get(id)).filter(|task| selector.matches(task));
        Ok(after.first_after(tasks.cloned(), most))
    }

    fn scan_end(&mut self, after: Cursor) -> Result<Option<Cursor>, StateError> {
        let last = self.following(after).nth(MAX_SCANNED as usize - 1);
        Ok(last.and_then(|task| after.order.position(task)))
    }

    fn insert_edge(&mut self, edge: &Edge) -> Result<(), StateError> {
        self.set_edge((edge.down, edge.up), Some(edge.clone()));
        Ok(())
    }

    fn remove_edge(&mut self, edge: &Edge) -> Result<(), StateError> {
        self.set_edge((edge.down, edge.up), None);
        Ok(())
    }

    fn put_edge(&mut self, edge: &Edge) -> Result<(), StateError> {
        self.insert_edge(edge)
    }

    fn edges_from(&mut self, up: TaskId, after: Option<TaskId>, most: u32) -> Result<Vec<Edge>, StateError> {
        let following = self.edges_after(up, after);
        Ok(following.take(most as usize).cloned().collect())
    }

    fn unnotified_from(&mut self, up: TaskId, generation: u32, most: u32) -> Result<Vec<Edge>, StateError> {
        Ok(self
            .edges_after(up, None)
            .filter(|edge| edge.is_unnotified(generation))
            .take(most as usize)
            .cloned()
            .collect())
    }

    fn edges_to(
        &mut self,
        down: TaskId,
        state: Option<EdgeState>,
        after: Option<TaskId>,
        most: u32,
    ) -> Result<Vec<Edge>, StateError> {
        let edges = self.edges.range((down, FIRST_ID)..=(down, LAST_ID)).map(|(_, edge)| edge);
        Ok(edges
            .filter(|edge| state.is_none_or(|state| edge.state == state))
            .filter(|edge| after.is_none_or(|after| edge.up > after))
            .take(most as usize)
            .cloned()
            .collect())
    }

    fn has_pending(&mut self, down: TaskId) -> Result<bool, StateError> {
        Ok(self.edges.range((down, FIRST_ID)..=(down, LAST_ID)).any(|(_, edge)| edge.state.is_pending()))
    }

    fn presence(&mut self, worker: WorkerId) -> Result<Option<Presence>, StateError> {
        Ok(self.presences.get(&worker).cloned())
    }

    fn put_presence(&mut self, presence: &Presence) -> Result<(), StateError> {
        self.set_presence(presence.worker, Some(presence.clone()));
        Ok(())
    }

    fn remove_presence(&mut self, worker: WorkerId) -> Result<(), StateError> {
        self.set_presence(worker, None);
        Ok(())
    }

    fn ended_presences(
        &mut self,
        until: Micros,
        cleared: bool,
        most: u32,
    ) -> Result<Vec<Presence>, StateError> {
        let ended =
            self.presences.values().filter(|presence| presence.ends <= until && presence.cleared == cleared);
        let mut ended: Vec<Presence> = ended.cloned().collect();
        ended.sort_by_key(|presence| (presence.ends, presence.worker));
        ended.truncate(most as usize);
        Ok(ended)
    }

    fn shortest_busy_lease(&mut self, after: Micros) -> Result<Option<Micros>, StateError> {
        let busy = self.presences.values().filter(|presence| presence.busy && presence.ends > after);
        Ok(busy.map(|presence| presence.lease).min())
    }

    fn longest_lease(&mut self, after: Micros) -> Result<Option<Micros>, StateError> {
        let alive = self.presences.values().filter(|presence| presence.ends > after);
        Ok(alive.map(|presence| presence.lease).max())
    }

    fn next_busy_end(&mut self, after: Micros) -> Result<Option<Micros>, StateError> {
        let busy = self.presences.values().filter(|presence| presence.busy && presence.ends > after);
        Ok(busy.map(|presence| presence.ends).min())
    }

    fn presences(&mut self) -> Result<Vec<Presence>, StateError> {
        Ok(self.presences.values().cloned().collect())
    }

    fn kind(&mut self, kind: &Kind) -> Result<Option<KindRow>, StateError> {
        Ok(self.kinds.get(kind).cloned())
    }

    fn put_kind(&mut self, row: &KindRow) -> Result<(), StateError> {
        self.set_kind(row.kind.clone(), Some(row.clone()));
        Ok(())
    }

    fn kinds(&mut self) -> Result<Vec<KindRow>, StateError> {
        Ok(self.kinds.values().cloned().collect())
    }

    fn key(&mut self, key: &Key) -> Result<Option<KeyRow>, StateError> {
        Ok(self.keys.get(key).cloned())
    }

    fn put_key(&mut self, row: &KeyRow) -> Result<(), StateError> {
        self.set_key(row.key.clone(), Some(row.clone()));
        Ok(())
    }

    fn remove_key(&mut self, key: &Key) -> Result<(), StateError> {
        self.set_key(key.clone(), None);
        Ok(())
    }

    fn paused_keys(&mut self, most: u32) -> Result<Vec<KeyRow>, StateError> {
        let paused = self.keys.values().filter(|row| row.limit == Some(0));
        Ok(paused.take(most as usize).cloned().collect())
    }

    fn keys_to_rebalance(&mut self, most: u32) -> Result<Vec<KeyRow>, StateError> {
        Ok(self.keys.values().filter(|row| row.needs_rebalancing).take(most as usize).cloned().collect())
    }

    fn schedule(&mut self, name: &Key) -> Result<Option<Schedule>, StateError> {
        Ok(self.schedules.get(name).cloned())
    }

    fn put_schedule(&mut self, schedule: &Schedule) -> Result<(), StateError> {
        self.set_schedule(schedule.name.clone(), Some(schedule.clone()));
        Ok(())
    }

    fn remove_schedule(&mut self, name: &Key) -> Result<(), StateError> {
        self.set_schedule(name.clone(), None);
        Ok(())
    }

    fn schedules(&mut self) -> Result<Vec<Schedule>, StateError> {
        Ok(self.schedules.values().cloned().collect())
    }

    fn count(&mut self, kind: &Kind, counted: Counted, more: i64) -> Result<(), StateError> {
        self.add_count((kind.clone(), counted), more);
        Ok(())
    }

    fn miscounted(&mut self) -> Result<Vec<Corrected>, StateError> {
        let mut found: BTreeMap<(Kind, State), (i64, u64)> = BTreeMap::new();
        for ((kind, counted), &before) in &self.counts {
            if let Counted::Now(state) = counted {
                found.entry((kind.clone(), *state)).or_default().0 = before;
            }
        }
        for x in self.tasks.values() {
            found.entry((x.kind.clone(), x.state)).or_default().1 += 1;
        }
        let corrected = found.into_iter().map(|((kind, state), (before, counted))| Corrected {
            kind,
            state,
            before,
            counted,
        });
        Ok(corrected.filter(|one| u64::try_from(one.before) != Ok(one.counted)).collect())
    }

    fn counts(&mut self) -> Result<Vec<(Kind, Counted, u64)>, StateError> {
        let take_cloned = self.counts.iter().filter(|&(_, &n)| n != 0);
        Ok(take_cloned
            .map(|((kind, counted), &n)| (kind.clone(), *counted, n.max(0).cast_unsigned()))
            .collect())
    }

    fn took(&mut self, kind: &Kind, took: Took, more: u64) -> Result<(), StateError> {
        let took = (kind.clone(), took);
        let number = self.times.get(&took).copied().unwrap_or_default();
        self.set_took(took, Some(number + more));
        Ok(())
    }

    fn times(&mut self, kind: &Kind, from: u32) -> Result<Vec<(Took, u64)>, StateError> {
        let first = (kind.clone(), Took { hour: from, cell: 0 });
        let of_kind = self.times.range(first..).take_while(|((of, _), _)| of == kind);
        Ok(of_kind.map(|((_, took), &number)| (*took, number)).collect())
    }

    fn forget_times(&mut self, hours: u32, days: u32) -> Result<(), StateError> {
        let is_old = |took: &Took| took.hour < if took.is_of_day() { days } else { hours };
        let old: Vec<_> = self.times.iter().filter(|((_, took), _)| is_old(took)).collect();
        let old: Vec<_> = old.into_iter().map(|(took, &number)| (took.clone(), number)).collect();
        for ((kind, took), number) in old {
            if let Some(day) = took.of_day() {
                self.took(&kind, day, number)?;
            }
            self.set_took((kind, took), None);
        }
        Ok(())
    }

    fn put_event(&mut self, event: &Event) -> Result<(), StateError> {
        self.add_event(event.clone());
        Ok(())
    }

    fn events(&mut self, after: u64, most: u32) -> Result<Vec<(u64, Event)>, StateError> {
        let later = self.events.range(after.saturating_add(1)..).take(most as usize);
        Ok(later.map(|(&number, event)| (number, event.clone())).collect())
    }

    fn last_event(&mut self) -> Result<u64, StateError> {
        Ok(self.events.last_key_value().map_or(0, |(&number, _)| number))
    }

    fn forget_events(&mut self, before: Micros, most: u32) -> Result<(), StateError> {
        let old = self.events.iter().take_while(|(_, event)| event.at < before).map(|(&number, _)| number);
        let old: Vec<u64> = old.take(most as usize).collect();
        old.into_iter().for_each(|number| self.set_event(number, None));
        Ok(())
    }

    fn notify(&mut self) -> Result<(), StateError> {
        self.notifies = true;
        Ok(())
    }
}
