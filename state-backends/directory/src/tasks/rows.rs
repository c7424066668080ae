//! The rows of a queue in the index. File changes are recorded as pending.

use interval_queue_contract::{Micros, QueueName};
use interval_queue_sqlite::index::Tables;
use interval_queue_store::files::cannot;
use interval_queue_task_contract::{
    Corrected, Counted, Cursor, Edge, EdgeState, Event, Json, Key, KeyRow, Kind, KindRow, LogLine, Presence,
    Queue, Rows, Schedule, Selector, State, Task, TaskId, Took, WorkerId, index::Index as TaskIndex,
};

use super::{
    TransactionError,
    document::Document,
    index::Index,
    leased_files::LeasedFile,
    names,
    pending_files::{PendingFiles, changes_text},
};
use crate::store::files::{Files, Unread, is_marked};

pub(super) struct FiledRows<'a> {
    tables: Tables<'a>,
    pending: &'a mut PendingFiles,
    files: &'a Files,
    /// A file that is read must agree with the index: set for leases.
    is_strict: bool,
    /// Tasks whose files do not agree with the index.
    suspects: Vec<TaskId>,
}

impl<'a> FiledRows<'a> {
    pub(super) fn new(
        index: &'a Index,
        pending: &'a mut PendingFiles,
        files: &'a Files,
        queue: &'a QueueName,
        is_strict: bool,
    ) -> Self {
        Self { tables: index.tables(queue), pending, files, is_strict, suspects: Vec::new() }
    }

    /// Fails with the suspects.
    pub(super) fn finish(mut self) -> Result<(), TransactionError> {
        if !self.suspects.is_empty() {
            return Err(TransactionError::Recheck(self.suspects));
        }
        for id in self.pending.unread() {
            if let Some(task) = self.tables.task(id)? {
                self.note(&task, &task)?;
            }
        }
        let notification = self.tables.finish()?;
        self.pending.notification = notification.or(self.pending.notification);
        Ok(())
    }

    fn number(&mut self, id: TaskId) -> Result<i64, TransactionError> {
        let gone = || rusqlite::Error::QueryReturnedNoRows;
        Ok(self.tables.number_of(id)?.ok_or_else(gone)?)
    }

    /// Names the directory of a task's file.
    fn state(&mut self, id: TaskId) -> Result<Option<State>, TransactionError> {
        match self.pending.seen(id) {
            Some(state) => Ok(Some(state)),
            None => Ok(self.task(id)?.map(|task| task.state)),
        }
    }

    /// `None`: no file, or an unusable one.
    fn document(&mut self, id: TaskId) -> Result<Option<LeasedFile>, TransactionError> {
        let Some(state) = self.state(id)? else { return Ok(None) };
        let number = self.number(id)?;
        let Some(path) = self.pending.path(id, number, state) else { return Ok(None) };
        let read = match self.files.read(&path) {
            Ok(contents) => {
                if self.is_strict && self.files.keeps_marks() && !is_marked(contents.written, names::mark(id))
                {
                    self.suspects.push(id);
                }
                Document::parse(&contents.text).ok().map(|document| {
                    let length = contents.text.len() as u64;
                    LeasedFile { document, written: contents.written, length }
                })
            }
            Err(Unread::Denied(error) | Unread::Failed(error)) => {
                return Err(cannot("read", &self.files.at(&path), error).into());
            }
            Err(Unread::Missing | Unread::Odd(_)) => None,
        };
        let read = read.filter(|read| read.document.id().is_ok_and(|found| found == Some(id)));
        if read.is_none() && self.is_strict {
            self.suspects.push(id);
        }
        Ok(read)
    }

    fn note(&mut self, before: &Task, after: &Task) -> Result<(), TransactionError> {
        let number = self.number(before.id)?;
        let entry = self.pending.entry(before.id, number, Some(before.state));
        entry.is_rewritten |= changes_text(before, after) || entry.origin.is_none();
        entry.task = Some(after.clone());
        Ok(())
    }

    pub(super) fn rewrite(&mut self, task: &Task) -> Result<(), TransactionError> {
        self.note(task, task)?;
        let number = self.number(task.id)?;
        self.pending.entry(task.id, number, Some(task.state)).is_rewritten = true;
        Ok(())
    }

    fn mark_upstreams_changed(&mut self, id: TaskId) -> Result<(), TransactionError> {
        if self.pending.new_downstreams.contains(&id) {
            return Ok(());
        }
        match self.opened(id)? {
            Some(entry) => entry.are_upstreams_changed = true,
            None => _ = self.pending.new_downstreams.insert(id),
        }
        Ok(())
    }

    /// Requires that payload, result, log or upstreams change.
    fn opened(
        &mut self,
        id: TaskId,
    ) -> Result<Option<&mut super::pending_files::PendingFile>, TransactionError> {
        let state = if self.pending.get(id).is_some() { None } else { self.state(id)? };
        if state.is_none() && self.pending.get(id).is_none() {
            return Ok(None);
        }
        let number = self.number(id)?;
        let entry = self.pending.entry(id, number, state);
        entry.is_rewritten = true;
        Ok(Some(entry))
    }
}

impl Rows for FiledRows<'_> {
    type Error = TransactionError;

    fn task(&mut self, id: TaskId) -> Result<Option<Task>, TransactionError> {
        let task = self.tables.task(id)?;
        task.iter().for_each(|task| self.pending.note_seen(task));
        Ok(task)
    }

    fn look<I: TaskIndex>(
        &mut self,
        columns: I::Columns,
        until: Option<Micros>,
        most: u32,
    ) -> Result<Vec<Task>, TransactionError> {
        let tasks = self.tables.look::<I>(columns, until, most)?;
        tasks.iter().for_each(|task| self.pending.note_seen(task));
        Ok(tasks)
    }

    fn first_instant<I: TaskIndex<Columns = ()>>(&mut self) -> Result<Option<Micros>, TransactionError> {
        Ok(self.tables.first_instant::<I>()?)
    }

    fn ready(
        &mut self,
        kinds: &[Kind],
        at_least: Option<i32>,
        most: u32,
    ) -> Result<Vec<Task>, TransactionError> {
        let ready = self.tables.ready(kinds, at_least, most)?;
        ready.iter().for_each(|task| self.pending.note_seen(task));
        Ok(ready)
    }

    fn insert(&mut self, task: &Task, payload: &Json) -> Result<(), TransactionError> {
        self.tables.insert_task(task, None)?;
        let number = self.number(task.id)?;
        let are_upstreams_changed = self.pending.new_downstreams.remove(&task.id);
        let entry = self.pending.entry(task.id, number, None);
        entry.task = Some(task.clone());
        entry.is_rewritten = true;
        entry.payload = Some(payload.clone());
        entry.are_upstreams_changed = are_upstreams_changed;
        Ok(())
    }

    fn put(&mut self, before: &Task, after: &Task) -> Result<(), TransactionError> {
        self.tables.put(before, after)?;
        self.note(before, after)
    }

    fn remove(&mut self, task: &Task) -> Result<(), TransactionError> {
        let number = self.number(task.id)?;
        let entry = self.pending.entry(task.id, number, Some(task.state));
        (entry.task, entry.is_removed) = (None, true);
        Ok(self.tables.remove(task)?)
    }

    fn payload(&mut self, id: TaskId) -> Result<Option<Json>, TransactionError> {
        if let Some(payload) = self.pending.get(id).and_then(|entry| entry.payload.clone()) {
            return Ok(Some(payload));
        }
        let Some(read) = self.document(id)? else { return Ok(None) };
        let payload = read.document.payload();
        if self.is_strict {
            self.pending.read.insert(id, read);
        }
        Ok(payload)
    }

    fn put_payload(&mut self, id: TaskId, payload: Option<&Json>) -> Result<(), TransactionError> {
        // A task without a payload is purged, and its file is removed.
        let Some(payload) = payload else { return Ok(()) };
        if let Some(entry) = self.opened(id)? {
            entry.payload = Some(payload.clone());
        }
        Ok(())
    }

    fn result(&mut self, id: TaskId) -> Result<Option<Json>, TransactionError> {
        if let Some(result) = self.pending.get(id).and_then(|entry| entry.result.clone()) {
            return Ok(result);
        }
        Ok(self.document(id)?.and_then(|read| read.document.result()))
    }

    fn put_result(&mut self, id: TaskId, result: Option<&Json>) -> Result<(), TransactionError> {
        if let Some(entry) = self.opened(id)? {
            entry.result = Some(result.cloned());
        }
        Ok(())
    }

    fn log(&mut self, id: TaskId) -> Result<Vec<LogLine>, TransactionError> {
        if let Some(log) = self.pending.get(id).and_then(|entry| entry.log.clone()) {
            return Ok(log);
        }
        Ok(self.document(id)?.map(|read| read.document.log()).unwrap_or_default())
    }

    fn put_log(&mut self, id: TaskId, log: &[LogLine]) -> Result<(), TransactionError> {
        if let Some(entry) = self.opened(id)? {
            entry.log = Some(log.to_vec());
        }
        Ok(())
    }

    fn put_queue(&mut self, queue: &Queue) -> Result<(), TransactionError> {
        let before = self.tables.queue()?;
        self.pending.is_changed |= before
            .is_none_or(|before| (before.settings, before.paused) != (queue.settings.clone(), queue.paused));
        Ok(self.tables.put_queue(queue)?)
    }

    fn insert_edge(&mut self, edge: &Edge) -> Result<(), TransactionError> {
        self.mark_upstreams_changed(edge.down)?;
        Ok(self.tables.insert_edge(edge)?)
    }

    fn put_presence(&mut self, presence: &Presence) -> Result<(), TransactionError> {
        let before = self.tables.presence(presence.worker)?;
        self.pending.is_changed |= before.is_none_or(|before| before.lease < presence.lease);
        Ok(self.tables.put_presence(presence)?)
    }

    fn put_kind(&mut self, row: &KindRow) -> Result<(), TransactionError> {
        let before = self.tables.kind(&row.kind)?;
        self.pending.is_changed |= before.is_some_and(|before| before.paused) != row.paused;
        Ok(self.tables.put_kind(row)?)
    }

    fn put_key(&mut self, row: &KeyRow) -> Result<(), TransactionError> {
        self.pending.is_changed = true;
        Ok(self.tables.put_key(row)?)
    }

    fn remove_key(&mut self, key: &Key) -> Result<(), TransactionError> {
        self.pending.is_changed = true;
        Ok(self.tables.remove_key(key)?)
    }

    fn put_schedule(&mut self, schedule: &Schedule) -> Result<(), TransactionError> {
        self.pending.is_changed = true;
        Ok(self.tables.put_schedule(schedule)?)
    }

    fn remove_schedule(&mut self, name: &Key) -> Result<(), TransactionError> {
        self.pending.is_changed = true;
        Ok(self.tables.remove_schedule(name)?)
    }

    fn queue(&mut self) -> Result<Option<Queue>, TransactionError> {
        Ok(self.tables.queue()?)
    }

    fn leased(&mut self) -> Result<u64, TransactionError> {
        Ok(self.tables.leased()?)
    }

    fn leased_of_key(&mut self, key: &Key) -> Result<u64, TransactionError> {
        Ok(self.tables.leased_of_key(key)?)
    }

    fn holders(&mut self, key: &Key) -> Result<u64, TransactionError> {
        Ok(self.tables.holders(key)?)
    }

    fn has_ordered_holder(&mut self, key: &Key) -> Result<bool, TransactionError> {
        Ok(self.tables.has_ordered_holder(key)?)
    }

    fn last_ready_holder(&mut self, key: &Key) -> Result<Option<Task>, TransactionError> {
        Ok(self.tables.last_ready_holder(key)?)
    }

    fn blocked(&mut self, key: &Key, most: u32) -> Result<u64, TransactionError> {
        Ok(self.tables.blocked(key, most)?)
    }

    fn next_key(&mut self, after: Option<&Key>) -> Result<Option<Key>, TransactionError> {
        Ok(self.tables.next_key(after)?)
    }

    /// Payloads are in the files, which the rules read.
    fn select(
        &mut self,
        selector: &Selector,
        after: Cursor,
        most: u32,
    ) -> Result<Vec<Task>, TransactionError> {
        let in_index = Selector { payload: None, ..selector.clone() };
        Ok(self.tables.select(&in_index, after, most)?)
    }

    fn scan_end(&mut self, after: Cursor) -> Result<Option<Cursor>, TransactionError> {
        Ok(self.tables.scan_end(after)?)
    }

    fn remove_edge(&mut self, edge: &Edge) -> Result<(), TransactionError> {
        self.mark_upstreams_changed(edge.down)?;
        Ok(self.tables.remove_edge(edge)?)
    }

    fn put_edge(&mut self, edge: &Edge) -> Result<(), TransactionError> {
        Ok(self.tables.put_edge(edge)?)
    }

    fn edges_from(
        &mut self,
        up: TaskId,
        after: Option<TaskId>,
        most: u32,
    ) -> Result<Vec<Edge>, TransactionError> {
        Ok(self.tables.edges_from(up, after, most)?)
    }

    fn unnotified_from(
        &mut self,
        up: TaskId,
        generation: u32,
        most: u32,
    ) -> Result<Vec<Edge>, TransactionError> {
        Ok(self.tables.unnotified_from(up, generation, most)?)
    }

    fn edges_to(
        &mut self,
        down: TaskId,
        state: Option<EdgeState>,
        after: Option<TaskId>,
        most: u32,
    ) -> Result<Vec<Edge>, TransactionError> {
        Ok(self.tables.edges_to(down, state, after, most)?)
    }

    fn has_pending(&mut self, down: TaskId) -> Result<bool, TransactionError> {
        Ok(self.tables.has_pending(down)?)
    }

    fn presence(&mut self, worker: WorkerId) -> Result<Option<Presence>, TransactionError> {
        Ok(self.tables.presence(worker)?)
    }

    fn remove_presence(&mut self, worker: WorkerId) -> Result<(), TransactionError> {
        Ok(self.tables.remove_presence(worker)?)
    }

    fn ended_presences(
        &mut self,
        until: Micros,
        cleared: bool,
        most: u32,
    ) -> Result<Vec<Presence>, TransactionError> {
        Ok(self.tables.ended_presences(until, cleared, most)?)
    }

    fn shortest_busy_lease(&mut self, after: Micros) -> Result<Option<Micros>, TransactionError> {
        Ok(self.tables.shortest_busy_lease(after)?)
    }

    fn longest_lease(&mut self, after: Micros) -> Result<Option<Micros>, TransactionError> {
        Ok(self.tables.longest_lease(after)?)
    }

    fn next_busy_end(&mut self, after: Micros) -> Result<Option<Micros>, TransactionError> {
        Ok(self.tables.next_busy_end(after)?)
    }

    fn presences(&mut self) -> Result<Vec<Presence>, TransactionError> {
        Ok(self.tables.presences()?)
    }

    fn kind(&mut self, kind: &Kind) -> Result<Option<KindRow>, TransactionError> {
        Ok(self.tables.kind(kind)?)
    }

    fn kinds(&mut self) -> Result<Vec<KindRow>, TransactionError> {
        Ok(self.tables.kinds()?)
    }

    fn key(&mut self, key: &Key) -> Result<Option<KeyRow>, TransactionError> {
        Ok(self.tables.key(key)?)
    }

    fn paused_keys(&mut self, most: u32) -> Result<Vec<KeyRow>, TransactionError> {
        Ok(self.tables.paused_keys(most)?)
    }

    fn keys_to_rebalance(&mut self, most: u32) -> Result<Vec<KeyRow>, TransactionError> {
        Ok(self.tables.keys_to_rebalance(most)?)
    }

    fn schedule(&mut self, name: &Key) -> Result<Option<Schedule>, TransactionError> {
        Ok(self.tables.schedule(name)?)
    }

    fn schedules(&mut self) -> Result<Vec<Schedule>, TransactionError> {
        Ok(self.tables.schedules()?)
    }

    fn count(&mut self, kind: &Kind, counted: Counted, more: i64) -> Result<(), TransactionError> {
        Ok(self.tables.count(kind, counted, more)?)
    }

    fn miscounted(&mut self) -> Result<Vec<Corrected>, TransactionError> {
        Ok(self.tables.miscounted()?)
    }

    fn counts(&mut self) -> Result<Vec<(Kind, Counted, u64)>, TransactionError> {
        Ok(self.tables.counts()?)
    }

    fn took(&mut self, kind: &Kind, took: Took, more: u64) -> Result<(), TransactionError> {
        Ok(self.tables.took(kind, took, more)?)
    }

    fn times(&mut self, kind: &Kind, from: u32) -> Result<Vec<(Took, u64)>, TransactionError> {
        Ok(self.tables.times(kind, from)?)
    }

    fn forget_times(&mut self, hours: u32, days: u32) -> Result<(), TransactionError> {
        Ok(self.tables.forget_times(hours, days)?)
    }

    fn put_event(&mut self, event: &Event) -> Result<(), TransactionError> {
        Ok(self.tables.put_event(event)?)
    }

    fn events(&mut self, after: u64, most: u32) -> Result<Vec<(u64, Event)>, TransactionError> {
        Ok(self.tables.events(after, most)?)
    }

    fn last_event(&mut self) -> Result<u64, TransactionError> {
        Ok(self.tables.last_event()?)
    }

    fn forget_events(&mut self, before: Micros, most: u32) -> Result<(), TransactionError> {
        Ok(self.tables.forget_events(before, most)?)
    }

    fn notify(&mut self) -> Result<(), TransactionError> {
        Ok(self.tables.notify()?)
    }
}
