//! The lookups and writes that the rules need.

use std::collections::BTreeMap;

use interval_queue_contract::{Micros, StateError};
use interval_queue_task_contract::{
    Corrected, Counted, Edge, EdgeState, Entry, Event, Json, Key, KeyRow, Kind, KindRow, Presence, Queue,
    Rank, Rows, Schedule, Selector, State, Task, TaskId, Took, WorkerId,
};

use super::tables::Tables;

const FIRST: TaskId = TaskId::FIRST;
const LAST: TaskId = TaskId::LAST;
const LOWEST: Rank = Rank::first(i64::MIN);
const HIGHEST: Rank = Rank::last(i64::MAX);

fn some<'t>(tasks: impl Iterator<Item = &'t Task>, most: u32) -> Result<Vec<Task>, StateError> {
    Ok(tasks.take(most as usize).cloned().collect())
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

    fn by_name(&mut self, name: &Key) -> Result<Option<Task>, StateError> {
        Ok(self.range(Entry::Name(name.clone(), FIRST)..=Entry::Name(name.clone(), LAST)).next().cloned())
    }

    fn added(&mut self, most: u32) -> Result<Vec<Task>, StateError> {
        some(self.range(Entry::Added(LOWEST)..=Entry::Added(HIGHEST)), most)
    }

    fn scheduled(&mut self, until: Micros, most: u32) -> Result<Vec<Task>, StateError> {
        let until = Rank::last(i64::try_from(until.get()).unwrap_or(i64::MAX));
        some(self.range(Entry::Scheduled(LOWEST)..=Entry::Scheduled(until)), most)
    }

    fn next_scheduled(&mut self) -> Result<Option<Micros>, StateError> {
        let mut all = self.range(Entry::Scheduled(LOWEST)..=Entry::Scheduled(HIGHEST));
        Ok(all.next().map(|x| x.not_before))
    }

    fn ready(&mut self, kinds: &[Kind], at_least: Option<i32>, most: u32) -> Result<Vec<Task>, StateError> {
        let mut found = Vec::new();
        for kind in kinds {
            let mut from = at_least.unwrap_or(i32::MIN);
            loop {
                let first = Entry::Ready(kind.clone(), from, LOWEST);
                let last = Entry::Ready(kind.clone(), i32::MAX, HIGHEST);
                let Some(priority) = self.range(first..=last).next().map(|x| x.priority) else { break };
                let first = Entry::Ready(kind.clone(), priority, LOWEST);
                let last = Entry::Ready(kind.clone(), priority, HIGHEST);
                found.extend(self.range(first..=last).take(most as usize));
                from = priority + 1;
            }
        }
        found.sort_by_key(|x| x.order());
        some(found.into_iter(), most)
    }

    fn leased(&mut self) -> Result<u64, StateError> {
        Ok(self.leased)
    }

    fn leased_of_key(&mut self, key: &Key) -> Result<u64, StateError> {
        Ok(self.range(Entry::LeasedOfKey(key.clone(), FIRST)..=Entry::LeasedOfKey(key.clone(), LAST)).count()
            as u64)
    }

    fn held_by(&mut self, worker: WorkerId, most: u32) -> Result<Vec<Task>, StateError> {
        some(self.range(Entry::Leased(worker, FIRST)..=Entry::Leased(worker, LAST)), most)
    }

    fn to_stop(&mut self, worker: WorkerId, most: u32) -> Result<Vec<Task>, StateError> {
        some(self.range(Entry::ToStop(worker, FIRST)..=Entry::ToStop(worker, LAST)), most)
    }

    fn holders(&mut self, key: &Key) -> Result<u64, StateError> {
        Ok(self.range(Entry::Holder(key.clone(), FIRST)..=Entry::Holder(key.clone(), LAST)).count() as u64)
    }

    fn has_ordered_holder(&mut self, key: &Key) -> Result<bool, StateError> {
        let all = Entry::OrderedHolder(key.clone(), FIRST)..=Entry::OrderedHolder(key.clone(), LAST);
        Ok(self.range(all).next().is_some())
    }

    fn last_ready_holder(&mut self, key: &Key) -> Result<Option<Task>, StateError> {
        let all = Entry::ReadyHolder(key.clone(), LOWEST)..=Entry::ReadyHolder(key.clone(), HIGHEST);
        Ok(self.range(all).next_back().cloned())
    }

    fn first_competitor(&mut self, key: &Key) -> Result<Option<Task>, StateError> {
        let all = Entry::Competitor(key.clone(), LOWEST)..=Entry::Competitor(key.clone(), HIGHEST);
        Ok(self.range(all).next().cloned())
    }

    fn blocked(&mut self, key: &Key, most: u32) -> Result<u64, StateError> {
        let all = self.range(Entry::KeyInUse(key.clone(), FIRST)..=Entry::KeyInUse(key.clone(), LAST));
        Ok(all.filter(|x| x.state == State::Blocked).take(most as usize).count() as u64)
    }

    fn next_key(&mut self, after: Option<&Key>) -> Result<Option<Key>, StateError> {
        // "!" sorts before every key, and no entry lies between `LAST` of a key and the next key.
        let behind = match after {
            Some(after) => Entry::KeyInUse(after.clone(), LAST),
            None => Entry::KeyInUse(Key::new("!")?, FIRST),
        };
        Ok(self.entries.range(behind..).find_map(|entry| match entry {
            Entry::KeyInUse(key, _) if Some(key) > after => Some(key.clone()),
            _ => None,
        }))
    }

    fn unserved(&mut self, kind: &Kind, most: u32) -> Result<Vec<Task>, StateError> {
        some(self.range(Entry::Unserved(kind.clone(), FIRST)..=Entry::Unserved(kind.clone(), LAST)), most)
    }

    fn ready_holders(&mut self, kind: &Kind, most: u32) -> Result<Vec<Task>, StateError> {
        let all =
            Entry::ReadyHolderOfKind(kind.clone(), FIRST)..=Entry::ReadyHolderOfKind(kind.clone(), LAST);
        some(self.range(all), most)
    }

    fn overdue(&mut self, until: Micros, most: u32) -> Result<Vec<Task>, StateError> {
        some(self.range(Entry::Deadline(Micros::ZERO, FIRST)..=Entry::Deadline(until, LAST)), most)
    }

    fn next_deadline(&mut self) -> Result<Option<Micros>, StateError> {
        let mut all = self.range(Entry::Deadline(Micros::ZERO, FIRST)..=Entry::Deadline(Micros::MAX, LAST));
        Ok(all.next().and_then(|x| x.deadline))
    }

    fn unnotified(&mut self, most: u32) -> Result<Vec<Task>, StateError> {
        some(self.range(Entry::Unnotified(FIRST)..=Entry::Unnotified(LAST)), most)
    }

    fn ended(&mut self, state: State, before: Micros, most: u32) -> Result<Vec<Task>, StateError> {
        let all = self.range(Entry::Ended(state, Micros::ZERO, FIRST)..=Entry::Ended(state, before, LAST));
        some(all.take_while(|x| x.ended < Some(before)), most)
    }

    fn select(
        &mut self,
        selector: &Selector,
        after: Option<TaskId>,
        most: u32,
    ) -> Result<Vec<Task>, StateError> {
        let is_behind = |id: TaskId| after.is_none_or(|after| id > after);
        if selector.ids.is_empty() {
            let behind = after.map_or(std::ops::Bound::Unbounded, std::ops::Bound::Excluded);
            let all = self.tasks.range((behind, std::ops::Bound::Unbounded)).map(|(_, task)| task);
            return some(all.filter(|task| selector.matches(task)), most);
        }
        let mut ids = selector.ids.clone();
        ids.sort();
        ids.dedup();
        let named = ids.into_iter().filter(|&id| is_behind(id)).filter_map(|id| self.tasks.get(&id));
        some(named.filter(|task| selector.matches(task)), most)
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
        let behind = self.edges_behind(up, after);
        Ok(behind.take(most as usize).cloned().collect())
    }

    fn unnotified_from(&mut self, up: TaskId, generation: u32, most: u32) -> Result<Vec<Edge>, StateError> {
        Ok(self
            .edges_behind(up, None)
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
        let edges = self.edges.range((down, FIRST)..=(down, LAST)).map(|(_, edge)| edge);
        Ok(edges
            .filter(|edge| state.is_none_or(|state| edge.state == state))
            .filter(|edge| after.is_none_or(|after| edge.up > after))
            .take(most as usize)
            .cloned()
            .collect())
    }

    fn has_pending(&mut self, down: TaskId) -> Result<bool, StateError> {
        Ok(self.edges.range((down, FIRST)..=(down, LAST)).any(|(_, edge)| edge.state.is_pending()))
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
        let some = self.counts.iter().filter(|&(_, &n)| n != 0);
        Ok(some.map(|((kind, counted), &n)| (kind.clone(), *counted, n.max(0).cast_unsigned())).collect())
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

    fn forget_times(&mut self, before: u32) -> Result<(), StateError> {
        let old: Vec<_> = self.times.keys().filter(|(_, took)| took.hour < before).cloned().collect();
        old.into_iter().for_each(|took| self.set_took(took, None));
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
