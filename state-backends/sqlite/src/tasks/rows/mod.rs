//! The reads and writes of the rules, in SQL. Each lookup names its index, so `ANALYZE` changes no
//! plan, and a condition that does not fit a partial index is an error.

use interval_queue_contract::Micros;
use interval_queue_task_contract::{
    Corrected, Counted, Cursor, Edge, EdgeState, Event, Json, Key, KeyRow, Kind, KindRow, LogLine, Presence,
    Queue, Rows, Schedule, Selector, Task, TaskId, Took, WorkerId,
    field::{RowReader as _, micros},
    index::Index,
};

mod columns;
mod declared;
mod edges;
mod others;
mod ready;
mod row_reader;
mod selection;
mod tables;
#[cfg(test)]
#[path = "../../../tests/unit/rows.rs"]
mod tests;

use self::tables::{PAYLOAD, RESULT};
pub use self::tables::{Tables, Writes};
use crate::store::Fault;

/// A statement that selects rows of one table.
macro_rules! select {
    ($record:ident, $rest:literal) => {{
        static SQL: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| {
            use interval_queue_task_contract::record::Record;
            format!("SELECT {} FROM {} {}", $record::NAMES, $record::TABLE, $rest)
        });
        &SQL
    }};
}
use select;

macro_rules! tasks {
    ($rest:literal) => {{
        static SQL: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| {
            format!("SELECT {} FROM interval_queue_task {}", *$crate::tasks::rows::columns::SELECTED, $rest)
        });
        &SQL
    }};
}
use tasks;

impl Rows for Tables<'_> {
    type Error = Fault;

    fn queue(&mut self) -> Result<Option<Queue>, Fault> {
        self.read_queue()
    }

    fn put_queue(&mut self, queue: &Queue) -> Result<(), Fault> {
        self.write_queue(queue)
    }

    fn task(&mut self, id: TaskId) -> Result<Option<Task>, Fault> {
        let queue = self.number()?;
        self.one(
            tasks!("INDEXED BY interval_queue_task_id WHERE queue = ?1 AND id = ?2"),
            (queue, id.to_string()),
        )
    }

    fn insert(&mut self, task: &Task, payload: &Json) -> Result<(), Fault> {
        self.insert_task(task, Some(payload))
    }

    fn put(&mut self, before: &Task, after: &Task) -> Result<(), Fault> {
        self.put_task(before, after)
    }

    fn remove(&mut self, task: &Task) -> Result<(), Fault> {
        self.remove_task(task.id)
    }

    fn payload(&mut self, id: TaskId) -> Result<Option<Json>, Fault> {
        self.body(&PAYLOAD, id)
    }

    fn put_payload(&mut self, id: TaskId, payload: Option<&Json>) -> Result<(), Fault> {
        self.write_body(&PAYLOAD, id, payload)
    }

    fn result(&mut self, id: TaskId) -> Result<Option<Json>, Fault> {
        self.body(&RESULT, id)
    }

    fn put_result(&mut self, id: TaskId, result: Option<&Json>) -> Result<(), Fault> {
        self.set_result(id, result)
    }

    fn log(&mut self, id: TaskId) -> Result<Vec<LogLine>, Fault> {
        self.read_log(id)
    }

    fn put_log(&mut self, id: TaskId, log: &[LogLine]) -> Result<(), Fault> {
        self.write_log(id, log)
    }

    fn look<I: Index>(
        &mut self,
        columns: I::Columns,
        until: Option<Micros>,
        most: u32,
    ) -> Result<Vec<Task>, Fault> {
        let [all, bounded, _] = declared::statements::<I>();
        let mut params: Vec<rusqlite::types::Value> = vec![self.number()?.into(), most.into()];
        params.extend(I::values(&columns).into_iter().map(Into::into));
        params.extend(until.map(|until| micros(until).into()));
        self.tasks(if until.is_some() { bounded } else { all }, rusqlite::params_from_iter(params))
    }

    fn first_instant<I: Index<Columns = ()>>(&mut self) -> Result<Option<Micros>, Fault> {
        let [.., first] = declared::statements::<I>();
        let queue = self.number()?;
        self.some_instant(first, [queue])
    }

    fn ready(&mut self, kinds: &[Kind], at_least: Option<i32>, most: u32) -> Result<Vec<Task>, Fault> {
        self.most_urgent(kinds, at_least, most)
    }

    fn leased(&mut self) -> Result<u64, Fault> {
        let queue = self.number()?;
        let sql = "SELECT count(*) FROM interval_queue_task INDEXED BY interval_queue_task_leased \
                   WHERE queue = ?1 AND state = 'leased'";
        self.number_in(sql, [queue])
    }

    fn leased_of_key(&mut self, key: &Key) -> Result<u64, Fault> {
        let queue = self.number()?;
        let sql = "SELECT count(*) FROM interval_queue_task INDEXED BY interval_queue_task_leased_key \
                   WHERE queue = ?1 AND key = ?2 AND key IS NOT NULL AND state = 'leased'";
        self.number_in(sql, (queue, key.as_str()))
    }

    fn holders(&mut self, key: &Key) -> Result<u64, Fault> {
        let queue = self.number()?;
        let sql = "SELECT count(*) FROM interval_queue_task INDEXED BY interval_queue_task_holder \
                   WHERE queue = ?1 AND key = ?2 AND holds_key";
        self.number_in(sql, (queue, key.as_str()))
    }

    fn has_ordered_holder(&mut self, key: &Key) -> Result<bool, Fault> {
        let queue = self.number()?;
        let sql = "SELECT EXISTS (SELECT 1 FROM interval_queue_task INDEXED BY interval_queue_task_holder \
                   WHERE queue = ?1 AND key = ?2 AND holds_key AND ordered = 1)";
        self.value(sql, (queue, key.as_str()))
    }

    fn last_ready_holder(&mut self, key: &Key) -> Result<Option<Task>, Fault> {
        let queue = self.number()?;
        let sql = tasks!(
            "INDEXED BY interval_queue_task_holder WHERE queue = ?1 AND key = ?2 AND holds_key AND ordered = ?3 \
             AND state = 'ready' ORDER BY line DESC, added DESC, position DESC, id DESC LIMIT 1"
        );
        let ordered = self.one(sql, (queue, key.as_str(), true))?;
        let other = self.one(sql, (queue, key.as_str(), false))?;
        Ok(ordered.into_iter().chain(other).max_by_key(Task::key_order))
    }

    fn blocked(&mut self, key: &Key, most: u32) -> Result<u64, Fault> {
        let queue = self.number()?;
        let sql = "SELECT count(*) FROM (SELECT 1 FROM interval_queue_task INDEXED BY interval_queue_task_line \
                   WHERE queue = ?1 AND key = ?2 AND state = 'blocked' LIMIT ?3)";
        self.number_in(sql, (queue, key.as_str(), most))
    }

    fn next_key(&mut self, after: Option<&Key>) -> Result<Option<Key>, Fault> {
        let queue = self.number()?;
        let after = after.map_or("", Key::as_str);
        let held = "SELECT key FROM interval_queue_task INDEXED BY interval_queue_task_holder \
                    WHERE queue = ?1 AND holds_key AND key > ?2 ORDER BY key LIMIT 1";
        let waited_for = "SELECT key FROM interval_queue_task INDEXED BY interval_queue_task_line \
                          WHERE queue = ?1 AND state = 'blocked' AND key > ?2 ORDER BY key LIMIT 1";
        let read = |row: &rusqlite::Row<'_>| row_reader::Reader::of(row).read::<Key>();
        let held = self.first(held, (queue, after), read)?;
        Ok(held.into_iter().chain(self.first(waited_for, (queue, after), read)?).min())
    }

    fn select(&mut self, selector: &Selector, after: Cursor, most: u32) -> Result<Vec<Task>, Fault> {
        self.selected(selector, after, most)
    }

    fn scan_end(&mut self, after: Cursor) -> Result<Option<Cursor>, Fault> {
        self.end_of_scan(after)
    }

    fn insert_edge(&mut self, edge: &Edge) -> Result<(), Fault> {
        self.upsert(edge)
    }

    fn remove_edge(&mut self, edge: &Edge) -> Result<(), Fault> {
        self.forget_edge(edge)
    }

    fn put_edge(&mut self, edge: &Edge) -> Result<(), Fault> {
        self.upsert(edge)
    }

    fn edges_from(&mut self, up: TaskId, after: Option<TaskId>, most: u32) -> Result<Vec<Edge>, Fault> {
        self.downstreams(up, after, most)
    }

    fn unnotified_from(&mut self, up: TaskId, generation: u32, most: u32) -> Result<Vec<Edge>, Fault> {
        self.unnotified_downstreams(up, generation, most)
    }

    fn edges_to(
        &mut self,
        down: TaskId,
        state: Option<EdgeState>,
        after: Option<TaskId>,
        most: u32,
    ) -> Result<Vec<Edge>, Fault> {
        self.upstreams(down, state, after, most)
    }

    fn has_pending(&mut self, down: TaskId) -> Result<bool, Fault> {
        self.waits_for_some(down)
    }

    fn presence(&mut self, worker: WorkerId) -> Result<Option<Presence>, Fault> {
        let queue = self.number()?;
        self.row(select!(Presence, "WHERE queue = ?1 AND worker = ?2"), (queue, worker.to_string()))
    }

    fn put_presence(&mut self, presence: &Presence) -> Result<(), Fault> {
        self.upsert(presence)
    }

    fn remove_presence(&mut self, worker: WorkerId) -> Result<(), Fault> {
        self.delete::<Presence>(&worker.to_string())
    }

    fn ended_presences(&mut self, until: Micros, cleared: bool, most: u32) -> Result<Vec<Presence>, Fault> {
        let queue = self.number()?;
        let ended = select!(
            Presence,
            "INDEXED BY interval_queue_task_worker_ends WHERE queue = ?1 AND cleared = ?2 AND ends <= ?3 \
                     ORDER BY ends, worker LIMIT ?4"
        );
        self.rows(ended, (queue, cleared, micros(until), most))
    }

    fn shortest_busy_lease(&mut self, after: Micros) -> Result<Option<Micros>, Fault> {
        let queue = self.number()?;
        let sql = "SELECT min(lease) FROM interval_queue_task_worker INDEXED BY interval_queue_task_worker_ends \
                   WHERE queue = ?1 AND cleared IN (0, 1) AND ends > ?2 AND busy = 1";
        self.some_instant(sql, (queue, micros(after)))
    }

    fn longest_lease(&mut self, after: Micros) -> Result<Option<Micros>, Fault> {
        let queue = self.number()?;
        let sql = "SELECT max(lease) FROM interval_queue_task_worker INDEXED BY interval_queue_task_worker_ends \
                   WHERE queue = ?1 AND cleared IN (0, 1) AND ends > ?2";
        self.some_instant(sql, (queue, micros(after)))
    }

    fn next_busy_end(&mut self, after: Micros) -> Result<Option<Micros>, Fault> {
        let queue = self.number()?;
        let sql = "SELECT ends FROM interval_queue_task_worker INDEXED BY interval_queue_task_worker_ends \
                   WHERE queue = ?1 AND cleared = ?3 AND ends > ?2 AND busy = 1 ORDER BY ends LIMIT 1";
        let alive = self.some_instant(sql, (queue, micros(after), false))?;
        Ok(alive.into_iter().chain(self.some_instant(sql, (queue, micros(after), true))?).min())
    }

    fn presences(&mut self) -> Result<Vec<Presence>, Fault> {
        let queue = self.number()?;
        self.rows(select!(Presence, "WHERE queue = ?1 ORDER BY worker"), [queue])
    }

    fn kind(&mut self, kind: &Kind) -> Result<Option<KindRow>, Fault> {
        let queue = self.number()?;
        self.row(select!(KindRow, "WHERE queue = ?1 AND kind = ?2"), (queue, kind.as_str()))
    }

    fn put_kind(&mut self, row: &KindRow) -> Result<(), Fault> {
        self.upsert(row)
    }

    fn kinds(&mut self) -> Result<Vec<KindRow>, Fault> {
        let queue = self.number()?;
        self.rows(select!(KindRow, "WHERE queue = ?1 ORDER BY kind"), [queue])
    }

    fn key(&mut self, key: &Key) -> Result<Option<KeyRow>, Fault> {
        let queue = self.number()?;
        self.row(select!(KeyRow, "WHERE queue = ?1 AND key = ?2"), (queue, key.as_str()))
    }

    fn put_key(&mut self, row: &KeyRow) -> Result<(), Fault> {
        self.upsert(row)
    }

    fn remove_key(&mut self, key: &Key) -> Result<(), Fault> {
        self.delete::<KeyRow>(key.as_str())
    }

    fn paused_keys(&mut self, most: u32) -> Result<Vec<KeyRow>, Fault> {
        let queue = self.number()?;
        let paused = select!(
            KeyRow,
            "INDEXED BY interval_queue_task_key_paused WHERE queue = ?1 AND max_running = 0 ORDER BY key LIMIT ?2"
        );
        self.rows(paused, (queue, most))
    }

    fn keys_to_rebalance(&mut self, most: u32) -> Result<Vec<KeyRow>, Fault> {
        let queue = self.number()?;
        let marked = select!(
            KeyRow,
            "INDEXED BY interval_queue_task_key_needs_rebalancing WHERE queue = ?1 AND needs_rebalancing = 1 \
                      ORDER BY key LIMIT ?2"
        );
        self.rows(marked, (queue, most))
    }

    fn schedule(&mut self, name: &Key) -> Result<Option<Schedule>, Fault> {
        let queue = self.number()?;
        self.row(select!(Schedule, "WHERE queue = ?1 AND name = ?2"), (queue, name.as_str()))
    }

    fn put_schedule(&mut self, schedule: &Schedule) -> Result<(), Fault> {
        self.upsert(schedule)
    }

    fn remove_schedule(&mut self, name: &Key) -> Result<(), Fault> {
        self.delete::<Schedule>(name.as_str())
    }

    fn schedules(&mut self) -> Result<Vec<Schedule>, Fault> {
        let queue = self.number()?;
        self.rows(select!(Schedule, "WHERE queue = ?1 ORDER BY name"), [queue])
    }

    fn count(&mut self, kind: &Kind, counted: Counted, more: i64) -> Result<(), Fault> {
        match self.counts.get_mut(&(kind.clone(), counted)) {
            Some(sum) => *sum += more,
            None => _ = self.counts.insert((kind.clone(), counted), more),
        }
        Ok(())
    }

    fn miscounted(&mut self) -> Result<Vec<Corrected>, Fault> {
        self.all_miscounted()
    }

    fn counts(&mut self) -> Result<Vec<(Kind, Counted, u64)>, Fault> {
        self.all_counts()
    }

    fn took(&mut self, kind: &Kind, took: Took, more: u64) -> Result<(), Fault> {
        *self.times.entry((kind.clone(), took)).or_default() += more;
        Ok(())
    }

    fn times(&mut self, kind: &Kind, from: u32) -> Result<Vec<(Took, u64)>, Fault> {
        self.times_of(kind, from)
    }

    fn forget_times(&mut self, hours: u32, days: u32) -> Result<(), Fault> {
        self.forget_hours(hours, days)
    }

    fn put_event(&mut self, event: &Event) -> Result<(), Fault> {
        self.insert_event(event)
    }

    fn events(&mut self, after: u64, most: u32) -> Result<Vec<(u64, Event)>, Fault> {
        self.events_after(after, most)
    }

    fn last_event(&mut self) -> Result<u64, Fault> {
        let queue = self.number()?;
        let sql = "SELECT coalesce(max(number), 0) FROM interval_queue_task_event \
                   INDEXED BY interval_queue_task_event_queue WHERE queue = ?1";
        self.number_in(sql, [queue])
    }

    fn forget_events(&mut self, before: Micros, most: u32) -> Result<(), Fault> {
        let queue = self.number()?;
        let sql = "DELETE FROM interval_queue_task_event WHERE number IN (SELECT number FROM interval_queue_task_event \
                   INDEXED BY interval_queue_task_event_queue WHERE queue = ?1 AND number < coalesce((\
                   SELECT number FROM (SELECT number, at FROM interval_queue_task_event \
                   INDEXED BY interval_queue_task_event_queue WHERE queue = ?1 ORDER BY number LIMIT ?3) \
                   WHERE at >= ?2 ORDER BY number LIMIT 1), 9223372036854775807) ORDER BY number LIMIT ?3)";
        self.execute(sql, (queue, micros(before), most))?;
        Ok(())
    }

    fn notify(&mut self) -> Result<(), Fault> {
        self.notifies = true;
        Ok(())
    }
}
