//! The rows of a queue: the index finds them and writes them, and what becomes of files is noted.

use interval_queue_contract::{Micros, QueueName};
use interval_queue_sqlite::index::Tables;
use interval_queue_store::files::cannot;
use interval_queue_task_contract::{
    Corrected, Counted, Edge, EdgeState, Event, Json, Key, KeyRow, Kind, KindRow, Presence, Queue, Rows,
    Schedule, Selector, State, Task, TaskId, Took, WorkerId,
};

use super::{
    Trouble,
    desk::{Desk, shows},
    document::Document,
    index::Index,
    known::Read,
    names,
};
use crate::store::files::{Files, Unread, is_marked};

/// The rows of one queue within one command.
pub(super) struct Filed<'a> {
    tables: Tables<'a>,
    desk: &'a mut Desk,
    files: &'a Files,
    /// Whether a file must be as the index has it: it is read for a lease.
    is_strict: bool,
    /// Those whose files are not.
    suspects: Vec<TaskId>,
}

impl<'a> Filed<'a> {
    pub(super) fn new(
        index: &'a Index,
        desk: &'a mut Desk,
        files: &'a Files,
        queue: &'a QueueName,
        is_strict: bool,
    ) -> Self {
        Self { tables: index.tables(queue), desk, files, is_strict, suspects: Vec::new() }
    }

    /// Ends the command.
    pub(super) fn finish(mut self) -> Result<(), Trouble> {
        if !self.suspects.is_empty() {
            return Err(Trouble::Look(self.suspects));
        }
        for id in self.desk.unknown() {
            if let Some(task) = self.tables.task(id)? {
                self.note(&task, &task)?;
            }
        }
        let news = self.tables.finish()?;
        self.desk.news = news.or(self.desk.news);
        Ok(())
    }

    fn number(&mut self, id: TaskId) -> Result<i64, Trouble> {
        let gone = || rusqlite::Error::QueryReturnedNoRows;
        Ok(self.tables.number_of(id)?.ok_or_else(gone)?)
    }

    /// The state in which the file of a task is found.
    fn state(&mut self, id: TaskId) -> Result<Option<State>, Trouble> {
        match self.desk.seen(id) {
            Some(state) => Ok(Some(state)),
            None => Ok(self.task(id)?.map(|task| task.state)),
        }
    }

    /// The file of a task as it is; none: it has none, or one that cannot be read.
    fn document(&mut self, id: TaskId) -> Result<Option<Read>, Trouble> {
        let Some(state) = self.state(id)? else { return Ok(None) };
        let number = self.number(id)?;
        let Some(place) = self.desk.place(id, number, state) else { return Ok(None) };
        let read = match self.files.read(&place) {
            Ok(contents) => {
                if self.is_strict && self.files.keeps_marks() && !is_marked(contents.written, names::mark(id))
                {
                    self.suspects.push(id);
                }
                Document::parse(&contents.text).ok().map(|document| {
                    let length = contents.text.len() as u64;
                    Read { document, written: contents.written, length }
                })
            }
            Err(Unread::Denied(error) | Unread::Failed(error)) => {
                return Err(cannot("read", &self.files.at(&place), error).into());
            }
            Err(Unread::Missing | Unread::Odd(_)) => None,
        };
        let read = read.filter(|read| read.document.id().is_ok_and(|found| found == Some(id)));
        if read.is_none() && self.is_strict {
            self.suspects.push(id);
        }
        Ok(read)
    }

    fn note(&mut self, before: &Task, after: &Task) -> Result<(), Trouble> {
        let number = self.number(before.id)?;
        let entry = self.desk.entry(before.id, number, Some(before.state));
        entry.is_rewritten |= shows(before, after) || entry.origin.is_none();
        entry.task = Some(after.clone());
        Ok(())
    }

    /// Has the file of a task written again as the row says.
    pub(super) fn rewrite(&mut self, task: &Task) -> Result<(), Trouble> {
        self.note(task, task)?;
        let number = self.number(task.id)?;
        self.desk.entry(task.id, number, Some(task.state)).is_rewritten = true;
        Ok(())
    }

    /// Has the file of a task say anew what it waits for.
    fn relink(&mut self, id: TaskId) -> Result<(), Trouble> {
        if self.desk.linked.contains(&id) {
            return Ok(());
        }
        match self.opened(id)? {
            Some(entry) => entry.is_relinked = true,
            None => _ = self.desk.linked.insert(id),
        }
        Ok(())
    }

    /// The entry of a task whose payload, result or upstreams change.
    fn opened(&mut self, id: TaskId) -> Result<Option<&mut super::desk::Entry>, Trouble> {
        let state = if self.desk.get(id).is_some() { None } else { self.state(id)? };
        if state.is_none() && self.desk.get(id).is_none() {
            return Ok(None);
        }
        let number = self.number(id)?;
        let entry = self.desk.entry(id, number, state);
        entry.is_rewritten = true;
        Ok(Some(entry))
    }
}

impl Rows for Filed<'_> {
    type Error = Trouble;

    fn task(&mut self, id: TaskId) -> Result<Option<Task>, Trouble> {
        let task = self.tables.task(id)?;
        task.iter().for_each(|task| self.desk.saw(task));
        Ok(task)
    }

    fn by_name(&mut self, name: &Key) -> Result<Option<Task>, Trouble> {
        let task = self.tables.by_name(name)?;
        task.iter().for_each(|task| self.desk.saw(task));
        Ok(task)
    }

    fn ready(&mut self, kinds: &[Kind], at_least: Option<i32>, most: u32) -> Result<Vec<Task>, Trouble> {
        let ready = self.tables.ready(kinds, at_least, most)?;
        ready.iter().for_each(|task| self.desk.saw(task));
        Ok(ready)
    }

    fn insert(&mut self, task: &Task, payload: &Json) -> Result<(), Trouble> {
        self.tables.insert_task(task, None)?;
        let number = self.number(task.id)?;
        let is_relinked = self.desk.linked.remove(&task.id);
        let entry = self.desk.entry(task.id, number, None);
        entry.task = Some(task.clone());
        entry.is_rewritten = true;
        entry.payload = Some(payload.clone());
        entry.is_relinked = is_relinked;
        Ok(())
    }

    fn put(&mut self, before: &Task, after: &Task) -> Result<(), Trouble> {
        self.tables.put(before, after)?;
        self.note(before, after)
    }

    fn remove(&mut self, task: &Task) -> Result<(), Trouble> {
        let number = self.number(task.id)?;
        let entry = self.desk.entry(task.id, number, Some(task.state));
        (entry.task, entry.goes) = (None, true);
        Ok(self.tables.remove(task)?)
    }

    fn payload(&mut self, id: TaskId) -> Result<Option<Json>, Trouble> {
        if let Some(payload) = self.desk.get(id).and_then(|entry| entry.payload.clone()) {
            return Ok(Some(payload));
        }
        let Some(read) = self.document(id)? else { return Ok(None) };
        let payload = read.document.payload();
        if self.is_strict {
            self.desk.read.insert(id, read);
        }
        Ok(payload)
    }

    fn put_payload(&mut self, id: TaskId, payload: Option<&Json>) -> Result<(), Trouble> {
        // What has none is purged, and its file goes with it.
        let Some(payload) = payload else { return Ok(()) };
        if let Some(entry) = self.opened(id)? {
            entry.payload = Some(payload.clone());
        }
        Ok(())
    }

    fn result(&mut self, id: TaskId) -> Result<Option<Json>, Trouble> {
        if let Some(result) = self.desk.get(id).and_then(|entry| entry.result.clone()) {
            return Ok(result);
        }
        Ok(self.document(id)?.and_then(|read| read.document.result()))
    }

    fn put_result(&mut self, id: TaskId, result: Option<&Json>) -> Result<(), Trouble> {
        if let Some(entry) = self.opened(id)? {
            entry.result = Some(result.cloned());
        }
        Ok(())
    }

    fn put_queue(&mut self, queue: &Queue) -> Result<(), Trouble> {
        let before = self.tables.queue()?;
        self.desk.is_changed |= before
            .is_none_or(|before| (before.settings, before.paused) != (queue.settings.clone(), queue.paused));
        Ok(self.tables.put_queue(queue)?)
    }

    fn insert_edge(&mut self, edge: &Edge) -> Result<(), Trouble> {
        self.relink(edge.down)?;
        Ok(self.tables.insert_edge(edge)?)
    }

    fn put_presence(&mut self, presence: &Presence) -> Result<(), Trouble> {
        let before = self.tables.presence(presence.worker)?;
        self.desk.is_changed |= before.is_none_or(|before| before.lease < presence.lease);
        Ok(self.tables.put_presence(presence)?)
    }

    fn put_kind(&mut self, row: &KindRow) -> Result<(), Trouble> {
        let before = self.tables.kind(&row.kind)?;
        self.desk.is_changed |= before.is_some_and(|before| before.paused) != row.paused;
        Ok(self.tables.put_kind(row)?)
    }

    fn put_key(&mut self, row: &KeyRow) -> Result<(), Trouble> {
        self.desk.is_changed = true;
        Ok(self.tables.put_key(row)?)
    }

    fn remove_key(&mut self, key: &Key) -> Result<(), Trouble> {
        self.desk.is_changed = true;
        Ok(self.tables.remove_key(key)?)
    }

    fn put_schedule(&mut self, schedule: &Schedule) -> Result<(), Trouble> {
        self.desk.is_changed = true;
        Ok(self.tables.put_schedule(schedule)?)
    }

    fn remove_schedule(&mut self, name: &Key) -> Result<(), Trouble> {
        self.desk.is_changed = true;
        Ok(self.tables.remove_schedule(name)?)
    }

    fn queue(&mut self) -> Result<Option<Queue>, Trouble> {
        Ok(self.tables.queue()?)
    }

    fn added(&mut self, most: u32) -> Result<Vec<Task>, Trouble> {
        Ok(self.tables.added(most)?)
    }

    fn scheduled(&mut self, until: Micros, most: u32) -> Result<Vec<Task>, Trouble> {
        Ok(self.tables.scheduled(until, most)?)
    }

    fn next_scheduled(&mut self) -> Result<Option<Micros>, Trouble> {
        Ok(self.tables.next_scheduled()?)
    }

    fn leased(&mut self) -> Result<u64, Trouble> {
        Ok(self.tables.leased()?)
    }

    fn leased_of_key(&mut self, key: &Key) -> Result<u64, Trouble> {
        Ok(self.tables.leased_of_key(key)?)
    }

    fn held_by(&mut self, worker: WorkerId, most: u32) -> Result<Vec<Task>, Trouble> {
        Ok(self.tables.held_by(worker, most)?)
    }

    fn to_stop(&mut self, worker: WorkerId, most: u32) -> Result<Vec<Task>, Trouble> {
        Ok(self.tables.to_stop(worker, most)?)
    }

    fn holders(&mut self, key: &Key) -> Result<u64, Trouble> {
        Ok(self.tables.holders(key)?)
    }

    fn has_ordered_holder(&mut self, key: &Key) -> Result<bool, Trouble> {
        Ok(self.tables.has_ordered_holder(key)?)
    }

    fn last_ready_holder(&mut self, key: &Key) -> Result<Option<Task>, Trouble> {
        Ok(self.tables.last_ready_holder(key)?)
    }

    fn first_competitor(&mut self, key: &Key) -> Result<Option<Task>, Trouble> {
        Ok(self.tables.first_competitor(key)?)
    }

    fn blocked(&mut self, key: &Key, most: u32) -> Result<u64, Trouble> {
        Ok(self.tables.blocked(key, most)?)
    }

    fn next_key(&mut self, after: Option<&Key>) -> Result<Option<Key>, Trouble> {
        Ok(self.tables.next_key(after)?)
    }

    fn unserved(&mut self, kind: &Kind, most: u32) -> Result<Vec<Task>, Trouble> {
        Ok(self.tables.unserved(kind, most)?)
    }

    fn ready_holders(&mut self, kind: &Kind, most: u32) -> Result<Vec<Task>, Trouble> {
        Ok(self.tables.ready_holders(kind, most)?)
    }

    fn overdue(&mut self, until: Micros, most: u32) -> Result<Vec<Task>, Trouble> {
        Ok(self.tables.overdue(until, most)?)
    }

    fn next_deadline(&mut self) -> Result<Option<Micros>, Trouble> {
        Ok(self.tables.next_deadline()?)
    }

    fn unnotified(&mut self, most: u32) -> Result<Vec<Task>, Trouble> {
        Ok(self.tables.unnotified(most)?)
    }

    fn ended(&mut self, state: State, before: Micros, most: u32) -> Result<Vec<Task>, Trouble> {
        Ok(self.tables.ended(state, before, most)?)
    }

    fn select(
        &mut self,
        selector: &Selector,
        after: Option<TaskId>,
        most: u32,
    ) -> Result<Vec<Task>, Trouble> {
        Ok(self.tables.select(selector, after, most)?)
    }

    fn remove_edge(&mut self, edge: &Edge) -> Result<(), Trouble> {
        self.relink(edge.down)?;
        Ok(self.tables.remove_edge(edge)?)
    }

    fn put_edge(&mut self, edge: &Edge) -> Result<(), Trouble> {
        Ok(self.tables.put_edge(edge)?)
    }

    fn edges_from(&mut self, up: TaskId, after: Option<TaskId>, most: u32) -> Result<Vec<Edge>, Trouble> {
        Ok(self.tables.edges_from(up, after, most)?)
    }

    fn unnotified_from(&mut self, up: TaskId, generation: u32, most: u32) -> Result<Vec<Edge>, Trouble> {
        Ok(self.tables.unnotified_from(up, generation, most)?)
    }

    fn edges_to(
        &mut self,
        down: TaskId,
        state: Option<EdgeState>,
        after: Option<TaskId>,
        most: u32,
    ) -> Result<Vec<Edge>, Trouble> {
        Ok(self.tables.edges_to(down, state, after, most)?)
    }

    fn has_pending(&mut self, down: TaskId) -> Result<bool, Trouble> {
        Ok(self.tables.has_pending(down)?)
    }

    fn presence(&mut self, worker: WorkerId) -> Result<Option<Presence>, Trouble> {
        Ok(self.tables.presence(worker)?)
    }

    fn remove_presence(&mut self, worker: WorkerId) -> Result<(), Trouble> {
        Ok(self.tables.remove_presence(worker)?)
    }

    fn ended_presences(&mut self, until: Micros, cleared: bool, most: u32) -> Result<Vec<Presence>, Trouble> {
        Ok(self.tables.ended_presences(until, cleared, most)?)
    }

    fn shortest_busy_lease(&mut self, after: Micros) -> Result<Option<Micros>, Trouble> {
        Ok(self.tables.shortest_busy_lease(after)?)
    }

    fn longest_lease(&mut self, after: Micros) -> Result<Option<Micros>, Trouble> {
        Ok(self.tables.longest_lease(after)?)
    }

    fn next_busy_end(&mut self, after: Micros) -> Result<Option<Micros>, Trouble> {
        Ok(self.tables.next_busy_end(after)?)
    }

    fn presences(&mut self) -> Result<Vec<Presence>, Trouble> {
        Ok(self.tables.presences()?)
    }

    fn kind(&mut self, kind: &Kind) -> Result<Option<KindRow>, Trouble> {
        Ok(self.tables.kind(kind)?)
    }

    fn kinds(&mut self) -> Result<Vec<KindRow>, Trouble> {
        Ok(self.tables.kinds()?)
    }

    fn key(&mut self, key: &Key) -> Result<Option<KeyRow>, Trouble> {
        Ok(self.tables.key(key)?)
    }

    fn paused_keys(&mut self, most: u32) -> Result<Vec<KeyRow>, Trouble> {
        Ok(self.tables.paused_keys(most)?)
    }

    fn keys_to_rebalance(&mut self, most: u32) -> Result<Vec<KeyRow>, Trouble> {
        Ok(self.tables.keys_to_rebalance(most)?)
    }

    fn schedule(&mut self, name: &Key) -> Result<Option<Schedule>, Trouble> {
        Ok(self.tables.schedule(name)?)
    }

    fn schedules(&mut self) -> Result<Vec<Schedule>, Trouble> {
        Ok(self.tables.schedules()?)
    }

    fn count(&mut self, kind: &Kind, counted: Counted, more: i64) -> Result<(), Trouble> {
        Ok(self.tables.count(kind, counted, more)?)
    }

    fn miscounted(&mut self) -> Result<Vec<Corrected>, Trouble> {
        Ok(self.tables.miscounted()?)
    }

    fn counts(&mut self) -> Result<Vec<(Kind, Counted, u64)>, Trouble> {
        Ok(self.tables.counts()?)
    }

    fn took(&mut self, kind: &Kind, took: Took, more: u64) -> Result<(), Trouble> {
        Ok(self.tables.took(kind, took, more)?)
    }

    fn times(&mut self, kind: &Kind, from: u32) -> Result<Vec<(Took, u64)>, Trouble> {
        Ok(self.tables.times(kind, from)?)
    }

    fn forget_times(&mut self, before: u32) -> Result<(), Trouble> {
        Ok(self.tables.forget_times(before)?)
    }

    fn put_event(&mut self, event: &Event) -> Result<(), Trouble> {
        Ok(self.tables.put_event(event)?)
    }

    fn events(&mut self, after: u64, most: u32) -> Result<Vec<(u64, Event)>, Trouble> {
        Ok(self.tables.events(after, most)?)
    }

    fn last_event(&mut self) -> Result<u64, Trouble> {
        Ok(self.tables.last_event()?)
    }

    fn forget_events(&mut self, before: Micros, most: u32) -> Result<(), Trouble> {
        Ok(self.tables.forget_events(before, most)?)
    }

    fn notify(&mut self) -> Result<(), Trouble> {
        Ok(self.tables.notify()?)
    }
}
