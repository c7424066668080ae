//! The queue itself, counts and events.

use std::sync::LazyLock;

use interval_queue_task_contract::{
    Corrected, Counted, Event, Kind, Queue, Took,
    field::{RowReader as _, micros, to_json},
    record::Record as _,
};

use super::{columns, row_reader::Reader, tables::Tables};
use crate::store::Fault;

impl Tables<'_> {
    pub(super) fn read_queue(&mut self) -> Result<Option<Queue>, Fault> {
        static SQL: LazyLock<String> = LazyLock::new(|| {
            let (names, table) = (Queue::NAMES, Queue::TABLE);
            format!("SELECT number, settings IS NOT NULL, {names} FROM {table} WHERE name = ?1")
        });
        let found = self.first(&SQL, [self.name.as_str()], |row| {
            let reader = &mut Reader::of(row);
            let (number, exists) = (reader.read()?, reader.truth()?);
            Ok((number, exists.then(|| Queue::read(reader)).transpose()?))
        })?;
        let (number, queue) = found.unwrap_or((0, None));
        self.queue = Some(number);
        Ok(queue)
    }

    pub(super) fn write_queue(&mut self, queue: &Queue) -> Result<(), Fault> {
        let number = self.made_number()?;
        self.execute_with(&self.writes.of::<Queue>(columns::ALL), number, queue)
    }

    pub(super) fn all_miscounted(&mut self) -> Result<Vec<Corrected>, Fault> {
        self.write_counts()?;
        let queue = self.number()?;
        let sql = "SELECT kind, counted, sum(before), sum(stored) FROM (\
                   SELECT kind, counted, number AS before, 0 AS stored FROM interval_queue_task_count \
                   WHERE queue = ?1 AND kind <> '' AND counted NOT LIKE 'ever%' \
                   UNION ALL SELECT kind, state, 0, count(*) FROM interval_queue_task WHERE queue = ?1 GROUP BY kind, state) \
                   GROUP BY kind, counted HAVING sum(before) <> sum(stored)";
        let mut all = self.all(sql, [queue], |row| {
            let reader = &mut Reader::of(row);
            let (kind, state) = (reader.read()?, reader.read()?);
            Ok(Corrected { kind, state, before: reader.read()?, counted: reader.read()? })
        })?;
        all.sort_unstable();
        Ok(all)
    }

    pub(super) fn all_counts(&mut self) -> Result<Vec<(Kind, Counted, u64)>, Fault> {
        self.write_counts()?;
        let queue = self.number()?;
        let sql = "SELECT kind, counted, number FROM interval_queue_task_count WHERE queue = ?1 AND kind <> '' AND number > 0";
        let mut counts = self.all(sql, [queue], |row| {
            let reader = &mut Reader::of(row);
            Ok((reader.read()?, reader.read()?, reader.read()?))
        })?;
        counts.sort_unstable();
        Ok(counts)
    }

    pub(super) fn times_of(&mut self, kind: &Kind, from: u32) -> Result<Vec<(Took, u64)>, Fault> {
        self.write_times()?;
        let queue = self.number()?;
        let sql = "SELECT hour, cell, number FROM interval_queue_task_times WHERE queue = ?1 AND kind = ?2 AND hour >= ?3 \
                   ORDER BY hour, cell";
        self.all(sql, (queue, kind.as_str(), from), |row| {
            let reader = &mut Reader::of(row);
            Ok((Took { hour: reader.read()?, cell: reader.read()? }, reader.read()?))
        })
    }

    pub(super) fn forget_hours(&mut self, hours: u32, days: u32) -> Result<(), Fault> {
        self.write_times()?;
        let queue = self.number()?;
        let (first, end) = Took::EVENT_CELLS;
        let sql = "INSERT INTO interval_queue_task_times (queue, kind, hour, cell, number) \
                   SELECT queue, kind, hour / 24 * 24, cell + ?4 - ?3, sum(number) FROM interval_queue_task_times \
                   INDEXED BY interval_queue_task_times_hour \
                   WHERE queue = ?1 AND hour < ?2 AND cell >= ?3 AND cell < ?4 GROUP BY kind, hour / 24, cell \
                   ON CONFLICT DO UPDATE SET number = number + excluded.number";
        self.execute(sql, (queue, hours, first, end))?;
        let sql = "DELETE FROM interval_queue_task_times INDEXED BY interval_queue_task_times_hour \
                   WHERE queue = ?1 AND hour < iif(cell < ?4, ?2, ?3) AND hour < ?2";
        self.execute(sql, (queue, hours, days, end))?;
        Ok(())
    }

    pub(super) fn insert_event(&mut self, event: &Event) -> Result<(), Fault> {
        let queue = self.made_number()?;
        let sql = "INSERT INTO interval_queue_task_event (queue, at, event) VALUES (?1, ?2, ?3)";
        self.execute(sql, (queue, micros(event.at), to_json(event)))?;
        Ok(())
    }

    pub(super) fn events_after(&mut self, after: u64, most: u32) -> Result<Vec<(u64, Event)>, Fault> {
        let queue = self.number()?;
        let sql = "SELECT number, event FROM interval_queue_task_event INDEXED BY interval_queue_task_event_queue \
                   WHERE queue = ?1 AND number > ?2 ORDER BY number LIMIT ?3";
        self.all(sql, (queue, after.cast_signed(), most), |row| {
            let reader = &mut Reader::of(row);
            Ok((reader.read()?, reader.read()?))
        })
    }
}
