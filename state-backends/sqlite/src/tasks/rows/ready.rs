//! Lookups of the most urgent tasks.

use interval_queue_task_contract::{Kind, Task, field::RowReader as _};

use super::{row_reader::Reader, tables::Tables, tasks};
use crate::store::Fault;

impl Tables<'_> {
    /// The index orders the tasks of each kind and priority. There are few such pairs: they are
    /// found one after the other, and their tasks are merged.
    pub(super) fn most_urgent(
        &mut self,
        kinds: &[Kind],
        at_least: Option<i32>,
        most: u32,
    ) -> Result<Vec<Task>, Fault> {
        let queue = self.number()?;
        let pairs = self.pairs(queue, kinds, at_least)?;
        if let [(kind, priority)] = &pairs[..] {
            let sql = tasks!(
                "INDEXED BY interval_queue_task_ready WHERE queue = ?1 AND state = 'ready' AND kind = ?2 AND priority = ?3 \
                 ORDER BY due, added, position, id LIMIT ?4"
            );
            return self.tasks(sql, (queue, kind, priority, most));
        }
        let sql = "SELECT number, id, due, added, position FROM interval_queue_task INDEXED BY interval_queue_task_ready \
                   WHERE queue = ?1 AND state = 'ready' AND kind = ?2 AND priority = ?3 \
                   ORDER BY due, added, position, id LIMIT ?4";
        let mut heads = Vec::new();
        for (kind, priority) in &pairs {
            heads.extend(self.all(sql, (queue, kind, priority, most), |row| {
                let reader = &mut Reader::of(row);
                let (number, id) = (reader.read::<i64>()?, reader.read::<String>()?);
                Ok((reader.read::<i64>()?, reader.read::<i64>()?, reader.read::<i64>()?, id, number))
            })?);
        }
        heads.sort_unstable();
        heads.truncate(most as usize);
        let mut tasks = Vec::with_capacity(heads.len());
        for (.., number) in heads {
            tasks.extend(self.one(tasks!("WHERE number = ?1"), [number])?);
        }
        Ok(tasks)
    }

    /// Kinds and priorities with ready tasks. One statement finds the next priority of a kind,
    /// another the next kind: a comparison of both at once would scan all tasks of the first pair.
    fn pairs(&self, queue: i64, kinds: &[Kind], at_least: Option<i32>) -> Result<Vec<(String, i64)>, Fault> {
        let next_kind = "SELECT kind, priority FROM interval_queue_task INDEXED BY interval_queue_task_ready \
                         WHERE queue = ?1 AND state = 'ready' AND kind > ?2 ORDER BY kind, priority LIMIT 1";
        let next_priority = "SELECT priority FROM interval_queue_task INDEXED BY interval_queue_task_ready \
                             WHERE queue = ?1 AND state = 'ready' AND kind = ?2 AND priority > ?3 ORDER BY priority LIMIT 1";
        let least = at_least.map_or(i64::MIN, i64::from);
        let mut pairs = Vec::new();
        // No kind is empty.
        let mut behind = String::new();
        let pair = |row: &rusqlite::Row<'_>| {
            let reader = &mut Reader::of(row);
            Ok((reader.read::<String>()?, reader.read::<i64>()?))
        };
        while let Some((kind, lowest)) = self.first(next_kind, (queue, &behind), pair)? {
            behind = kind.clone();
            if !kinds.iter().any(|wanted| wanted.as_str() == kind) {
                continue;
            }
            let mut priority = Some(lowest);
            while let Some(this) = priority {
                if this >= least {
                    pairs.push((kind.clone(), this));
                }
                let from = this.max(least.saturating_sub(1));
                priority = self.first(next_priority, (queue, &kind, from), |row| Reader::of(row).read())?;
            }
        }
        Ok(pairs)
    }

    /// `None`: there is no row.
    pub(super) fn some_instant(
        &self,
        sql: &str,
        params: impl rusqlite::Params,
    ) -> Result<Option<interval_queue_contract::Micros>, Fault> {
        Ok(self.first(sql, params, |row| Reader::of(row).read())?.flatten())
    }
}
