//! Rows of queues, workers, kinds, keys, schedules and counts.

use interval_queue_contract::Micros;
use interval_queue_task_contract::{
    Corrected, Counted, Event, Json, Key, KeyRow, Kind, KindRow, Overlap, Presence, Queue, Schedule, Took,
    WorkerId,
};
use rusqlite::Row;

use super::{
    columns::micros,
    row_reader::{RowReader, json, wide},
    tables::Tables,
};
use crate::store::Fault;

macro_rules! workers {
    ($rest:literal) => {
        concat!(
            "SELECT worker, label, sequence, lease, ends, kinds, version, since, seen, busy, cleared, at_least, room \
             FROM interval_queue_task_worker ",
            $rest
        )
    };
}

fn read_worker(row: &Row<'_>) -> Result<Presence, Fault> {
    let reader = &mut RowReader::of(row);
    Ok(Presence {
        worker: reader.named("no worker id")?,
        label: reader.named("no label")?,
        sequence: reader.int()? as u64,
        lease: reader.micros()?,
        ends: reader.micros()?,
        kinds: reader.json()?,
        version: reader.number()?,
        since: reader.micros()?,
        seen: reader.micros()?,
        busy: reader.truth()?,
        cleared: reader.truth()?,
        at_least: reader.some_number()?,
        room: reader.some_number()?,
    })
}

macro_rules! kinds {
    ($rest:literal) => {
        concat!(
            "SELECT kind, paused, paused_at, served_until, open, needs_rebalancing FROM interval_queue_task_kind ",
            $rest
        )
    };
}

fn read_kind(row: &Row<'_>) -> Result<KindRow, Fault> {
    let reader = &mut RowReader::of(row);
    Ok(KindRow {
        kind: reader.named("no kind")?,
        paused: reader.truth()?,
        paused_at: reader.some_micros()?,
        served_until: reader.micros()?,
        open: reader.truth()?,
        needs_rebalancing: reader.truth()?,
    })
}

macro_rules! keys {
    ($rest:literal) => {
        concat!("SELECT key, max_running, paused_at, needs_rebalancing FROM interval_queue_task_key ", $rest)
    };
}

fn read_key(row: &Row<'_>) -> Result<KeyRow, Fault> {
    let reader = &mut RowReader::of(row);
    Ok(KeyRow {
        key: reader.named("no key")?,
        limit: reader.some_number()?,
        paused_at: reader.some_micros()?,
        needs_rebalancing: reader.truth()?,
    })
}

macro_rules! schedules {
    ($rest:literal) => {
        concat!(
            "SELECT name, revision, incarnation, definition, next, paused, overlap, last, kept, may_follow \
             FROM interval_queue_task_schedule ",
            $rest
        )
    };
}

fn read_schedule(row: &Row<'_>) -> Result<Schedule, Fault> {
    let reader = &mut RowReader::of(row);
    Ok(Schedule {
        name: reader.named("no name")?,
        revision: reader.int()? as u64,
        incarnation: reader.micros()?,
        definition: Json::stored(reader.text()?),
        next: reader.some_micros()?,
        paused: reader.truth()?,
        overlap: reader.word()?.unwrap_or_default(),
        last: reader.some("no task id")?,
        kept: reader.some_micros()?,
        may_follow: reader.truth()?,
    })
}

/// Rows are deleted by name.
pub(super) enum Others {
    Worker,
    Key,
    Schedule,
}

impl Tables<'_> {
    pub(super) fn read_queue(&mut self) -> Result<Option<Queue>, Fault> {
        let sql = "SELECT number, name, settings, paused, paused_at, incarnation, lease_clock, seen, latest, maintenance_due, \
                   rebalance_after, followed FROM interval_queue_task_queue WHERE name = ?1";
        let found = self.first(sql, [self.name.as_str()], |row| {
            let reader = &mut RowReader::of(row);
            let (number, _name) = (reader.int()?, reader.text()?);
            let Some(settings) = reader.some_json()? else { return Ok((number, None)) };
            let queue = Queue {
                settings,
                paused: reader.truth()?,
                paused_at: reader.some_micros()?,
                incarnation: reader.micros()?,
                lease_clock: reader.micros()?,
                seen: reader.micros()?,
                latest: reader.micros()?,
                maintenance_due: reader.truth()?,
                rebalance_after: reader.some_json()?,
                followed: reader.some_json()?,
            };
            Ok((number, Some(queue)))
        })?;
        let (number, queue) = found.unwrap_or((0, None));
        self.queue = Some(number);
        Ok(queue)
    }

    pub(super) fn write_queue(&mut self, queue: &Queue) -> Result<(), Fault> {
        let number = self.made_number()?;
        let sql = "UPDATE interval_queue_task_queue SET settings = ?2, paused = ?3, incarnation = ?4, lease_clock = ?5, seen = ?6, \
                   latest = ?7, maintenance_due = ?8, rebalance_after = ?9, followed = ?10, paused_at = ?11 WHERE number = ?1";
        let rebalance_after = queue.rebalance_after.as_ref().map(json).transpose()?;
        let followed = queue.followed.as_ref().map(json).transpose()?;
        let (settings, incarnation, lease_clock) =
            (json(&queue.settings)?, micros(queue.incarnation), micros(queue.lease_clock));
        let (seen, latest) = (micros(queue.seen), micros(queue.latest));
        self.execute(
            sql,
            (
                number,
                settings,
                queue.paused,
                incarnation,
                lease_clock,
                seen,
                latest,
                queue.maintenance_due,
                rebalance_after,
                followed,
                queue.paused_at.map(micros),
            ),
        )?;
        Ok(())
    }

    pub(super) fn forget(&mut self, what: Others, name: &str) -> Result<(), Fault> {
        let sql = match what {
            Others::Worker => "DELETE FROM interval_queue_task_worker WHERE queue = ?1 AND worker = ?2",
            Others::Key => "DELETE FROM interval_queue_task_key WHERE queue = ?1 AND key = ?2",
            Others::Schedule => "DELETE FROM interval_queue_task_schedule WHERE queue = ?1 AND name = ?2",
        };
        let queue = self.number()?;
        self.execute(sql, (queue, name))?;
        Ok(())
    }

    pub(super) fn worker(&mut self, worker: WorkerId) -> Result<Option<Presence>, Fault> {
        let queue = self.number()?;
        self.first(workers!("WHERE queue = ?1 AND worker = ?2"), (queue, worker.to_string()), read_worker)
    }

    pub(super) fn workers(&mut self) -> Result<Vec<Presence>, Fault> {
        let queue = self.number()?;
        self.all(workers!("WHERE queue = ?1 ORDER BY worker"), [queue], read_worker)
    }

    pub(super) fn ended_workers(
        &mut self,
        until: Micros,
        cleared: bool,
        most: u32,
    ) -> Result<Vec<Presence>, Fault> {
        let queue = self.number()?;
        let sql = workers!(
            "INDEXED BY interval_queue_task_worker_ends WHERE queue = ?1 AND cleared = ?2 AND ends <= ?3 \
             ORDER BY ends, worker LIMIT ?4"
        );
        self.all(sql, (queue, cleared, micros(until), most), read_worker)
    }

    pub(super) fn write_worker(&mut self, presence: &Presence) -> Result<(), Fault> {
        let queue = self.made_number()?;
        let sql = "INSERT INTO interval_queue_task_worker \
                   (queue, worker, label, sequence, lease, ends, kinds, version, since, seen, busy, cleared, at_least, room) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14) \
                   ON CONFLICT DO UPDATE SET label = excluded.label, \
                   sequence = excluded.sequence, lease = excluded.lease, ends = excluded.ends, kinds = excluded.kinds, \
                   version = excluded.version, since = excluded.since, seen = excluded.seen, \
                   busy = excluded.busy, cleared = excluded.cleared, at_least = excluded.at_least, room = excluded.room";
        let Presence {
            worker,
            label,
            sequence,
            lease,
            ends,
            kinds,
            version,
            since,
            seen,
            busy,
            cleared,
            at_least,
            room,
        } = presence;
        let (sequence, lease, ends) = (wide(*sequence), micros(*lease), micros(*ends));
        let (kinds, since, seen) = (json(kinds)?, micros(*since), micros(*seen));
        self.execute(
            sql,
            (
                queue,
                worker.to_string(),
                label.as_str(),
                sequence,
                lease,
                ends,
                kinds,
                version,
                since,
                seen,
                busy,
                cleared,
                at_least,
                room,
            ),
        )?;
        Ok(())
    }

    pub(super) fn kind_row(&mut self, kind: &Kind) -> Result<Option<KindRow>, Fault> {
        let queue = self.number()?;
        self.first(kinds!("WHERE queue = ?1 AND kind = ?2"), (queue, kind.as_str()), read_kind)
    }

    pub(super) fn kind_rows(&mut self) -> Result<Vec<KindRow>, Fault> {
        let queue = self.number()?;
        self.all(kinds!("WHERE queue = ?1 ORDER BY kind"), [queue], read_kind)
    }

    pub(super) fn write_kind(&mut self, row: &KindRow) -> Result<(), Fault> {
        let queue = self.made_number()?;
        let sql = "INSERT OR REPLACE INTO interval_queue_task_kind (queue, kind, paused, paused_at, served_until, open, needs_rebalancing) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        let KindRow { kind, paused, paused_at, served_until, open, needs_rebalancing } = row;
        let paused_at = paused_at.map(micros);
        self.execute(
            sql,
            (queue, kind.as_str(), paused, paused_at, micros(*served_until), open, needs_rebalancing),
        )?;
        Ok(())
    }

    pub(super) fn key_row(&mut self, key: &Key) -> Result<Option<KeyRow>, Fault> {
        let queue = self.number()?;
        self.first(keys!("WHERE queue = ?1 AND key = ?2"), (queue, key.as_str()), read_key)
    }

    pub(super) fn key_rows_to_rebalance(&mut self, most: u32) -> Result<Vec<KeyRow>, Fault> {
        let queue = self.number()?;
        let sql = keys!(
            "INDEXED BY interval_queue_task_key_needs_rebalancing WHERE queue = ?1 AND needs_rebalancing = 1 ORDER BY key LIMIT ?2"
        );
        self.all(sql, (queue, most), read_key)
    }

    pub(super) fn paused_key_rows(&mut self, most: u32) -> Result<Vec<KeyRow>, Fault> {
        let queue = self.number()?;
        let sql = keys!(
            "INDEXED BY interval_queue_task_key_paused WHERE queue = ?1 AND max_running = 0 ORDER BY key LIMIT ?2"
        );
        self.all(sql, (queue, most), read_key)
    }

    pub(super) fn write_key(&mut self, row: &KeyRow) -> Result<(), Fault> {
        let queue = self.made_number()?;
        let sql = "INSERT INTO interval_queue_task_key (queue, key, max_running, paused_at, needs_rebalancing) VALUES (?1, ?2, ?3, ?4, ?5) \
                   ON CONFLICT DO UPDATE SET max_running = excluded.max_running, paused_at = excluded.paused_at, \
                   needs_rebalancing = excluded.needs_rebalancing";
        self.execute(
            sql,
            (queue, row.key.as_str(), row.limit, row.paused_at.map(micros), row.needs_rebalancing),
        )?;
        Ok(())
    }

    pub(super) fn schedule_row(&mut self, name: &Key) -> Result<Option<Schedule>, Fault> {
        let queue = self.number()?;
        self.first(schedules!("WHERE queue = ?1 AND name = ?2"), (queue, name.as_str()), read_schedule)
    }

    pub(super) fn schedule_rows(&mut self) -> Result<Vec<Schedule>, Fault> {
        let queue = self.number()?;
        self.all(schedules!("WHERE queue = ?1 ORDER BY name"), [queue], read_schedule)
    }

    pub(super) fn write_schedule(&mut self, schedule: &Schedule) -> Result<(), Fault> {
        let queue = self.made_number()?;
        let sql = "INSERT OR REPLACE INTO interval_queue_task_schedule \
                   (queue, name, revision, incarnation, definition, next, paused, overlap, last, kept, may_follow) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";
        let Schedule {
            name,
            revision,
            incarnation,
            definition,
            next,
            paused,
            overlap,
            last,
            kept,
            may_follow,
        } = schedule;
        let overlap = match overlap {
            Overlap::Allow => "allow",
            Overlap::Skip => "skip",
            Overlap::Keep => "keep",
        };
        let (revision, incarnation, next) = (wide(*revision), micros(*incarnation), next.map(micros));
        let (last, kept) = (last.map(|id| id.to_string()), kept.map(micros));
        let definition = definition.as_str();
        self.execute(
            sql,
            (
                queue,
                name.as_str(),
                revision,
                incarnation,
                definition,
                next,
                paused,
                overlap,
                last,
                kept,
                may_follow,
            ),
        )?;
        Ok(())
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
            let reader = &mut RowReader::of(row);
            let kind = reader.named("no kind")?;
            let state = reader.word()?.ok_or_else(|| reader.bad("no state"))?;
            Ok(Corrected { kind, state, before: reader.number()?, counted: reader.number()? })
        })?;
        all.sort_unstable();
        Ok(all)
    }

    pub(super) fn all_counts(&mut self) -> Result<Vec<(Kind, Counted, u64)>, Fault> {
        self.write_counts()?;
        let queue = self.number()?;
        let sql = "SELECT kind, counted, number FROM interval_queue_task_count WHERE queue = ?1 AND kind <> '' AND number > 0";
        let mut counts = self.all(sql, [queue], |row| {
            let reader = &mut RowReader::of(row);
            let kind: Kind = reader.named("no kind")?;
            let counted = Counted::of_str(reader.text()?).ok_or_else(|| reader.bad("not counted"))?;
            Ok((kind, counted, reader.number()?))
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
            let reader = &mut RowReader::of(row);
            Ok((Took { hour: reader.number()?, cell: reader.number()? }, reader.number()?))
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
        self.execute(sql, (queue, micros(event.at), json(event)?))?;
        Ok(())
    }

    pub(super) fn events_after(&mut self, after: u64, most: u32) -> Result<Vec<(u64, Event)>, Fault> {
        let queue = self.number()?;
        let sql = "SELECT number, event FROM interval_queue_task_event INDEXED BY interval_queue_task_event_queue \
                   WHERE queue = ?1 AND number > ?2 ORDER BY number LIMIT ?3";
        self.all(sql, (queue, wide(after), most), |row| {
            let reader = &mut RowReader::of(row);
            let number = reader.number()?;
            Ok((number, reader.some_json()?.ok_or_else(|| reader.bad("no event"))?))
        })
    }
}
