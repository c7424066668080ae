//! Changes of a queue by an operator or an application.

use interval_queue_contract::{Micros, OnExisting};

use super::{Work, refused};
use crate::{
    Change, Corrected, Counted, Key, KeyRow, Kind, KindRow, MAX_KIND_POLICIES, MAX_PAGE, Presence,
    RebalanceCursor, Recounted, Refusal, Reply, Rows, SettingsChange, WorkerId,
};

impl<R: Rows> Work<'_, R> {
    pub(super) fn change(&mut self, change: &Change) -> Result<Reply, R::Error> {
        self.read_lease_clock()?;
        match change {
            Change::Open(settings, on_existing) => self.open(settings, *on_existing)?,
            Change::Set(settings) => self.set(settings)?,
            Change::Pause => {
                let since = paused_since(self.queue.paused, self.queue.paused_at, self.now);
                let queue = self.queue();
                (queue.paused, queue.paused_at) = (true, since);
            }
            Change::Resume => {
                let queue = self.queue();
                (queue.paused, queue.paused_at) = (false, None);
                self.notifies = true;
            }
            Change::Kind(kind, paused) => self.pause_kind(kind, *paused)?,
            Change::Key(key, limit) => {
                self.limit_key(key, *limit)?;
                self.request_maintenance();
            }
            Change::Tasks(change) => return self.change_tasks(change),
            Change::Recount => return self.recount(),
            Change::DeclareLost(worker) => self.declare_lost(*worker)?,
            Change::Note(id, text) => self.add_note(*id, text)?,
            Change::Schedule(new) => self.set_schedule(new)?,
            Change::Unschedule(name) => {
                if self.rows.schedule(name)?.is_none() {
                    return Err(refused(Refusal::NoSchedule(name.clone())));
                }
                self.rows.remove_schedule(name)?;
            }
        }
        Ok(Reply::Changed(self.queue.settings.clone()))
    }

    /// Adds differences, because concurrent commands add to the counts.
    fn recount(&mut self) -> Result<Reply, R::Error> {
        let corrected = self.rows.miscounted()?;
        for Corrected { kind, state, before, counted } in &corrected {
            let counted = i64::try_from(*counted).unwrap_or(i64::MAX);
            self.rows.count(kind, Counted::Now(*state), counted.saturating_sub(*before))?;
        }
        if !corrected.is_empty() {
            // A removed task may have held a key.
            self.queue().rebalance_after = Some(RebalanceCursor::Begin);
            self.request_maintenance();
        }
        Ok(Reply::Recounted(Recounted { corrected, ..Recounted::default() }))
    }

    fn open(&mut self, settings: &SettingsChange, on_existing: OnExisting) -> Result<(), R::Error> {
        let changed = settings.on(&self.queue.settings);
        if self.is_new {
            self.queue().settings = changed;
        } else if changed != self.queue.settings {
            match on_existing {
                OnExisting::Fail => {
                    return Err(refused(Refusal::OtherSettings(Box::new(self.queue.settings.clone()))));
                }
                OnExisting::Replace | OnExisting::Reset => self.set(settings)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn set(&mut self, settings: &SettingsChange) -> Result<(), R::Error> {
        let changed = settings.on(&self.queue.settings);
        if changed.kinds.len() > MAX_KIND_POLICIES {
            return Err(refused(Refusal::TooManyKinds(changed.kinds.len())));
        }
        let rebalances = changed.key_limit != self.queue.settings.key_limit;
        let queue = self.queue();
        queue.settings = changed;
        if rebalances {
            queue.rebalance_after = Some(RebalanceCursor::Begin);
        }
        self.request_maintenance();
        Ok(())
    }

    fn limit_key(&mut self, key: &Key, limit: Option<u32>) -> Result<(), R::Error> {
        let was = self.rows.key(key)?;
        let (was_paused, at) = was.map_or((false, None), |row| (row.limit == Some(0), row.paused_at));
        let paused_at = paused_since(was_paused, at, self.now).filter(|_| limit == Some(0));
        self.rows.put_key(&KeyRow { key: key.clone(), limit, paused_at, needs_rebalancing: true })
    }

    fn pause_kind(&mut self, kind: &Kind, paused: bool) -> Result<(), R::Error> {
        let was = self.rows.kind(kind)?;
        let served_until = was.as_ref().map_or_else(Default::default, |row| row.served_until);
        let open = !paused && served_until > self.lease_clock;
        let (was_paused, at) = was.map_or((false, None), |row| (row.paused, row.paused_at));
        let paused_at = paused_since(was_paused, at, self.now).filter(|_| paused);
        self.rows.put_kind(&KindRow {
            kind: kind.clone(),
            paused,
            paused_at,
            served_until,
            open,
            needs_rebalancing: true,
        })?;
        self.request_maintenance();
        Ok(())
    }

    /// Runs beyond a page fail in the maintenance of the next steps.
    fn declare_lost(&mut self, worker: WorkerId) -> Result<(), R::Error> {
        let Some(lost) = self.rows.presence(worker)?.filter(|presence| !presence.cleared) else {
            return Err(refused(Refusal::NoWorker(worker)));
        };
        let why = format!("its worker ({}) was declared lost", lost.name());
        let held = self.rows.held_by(worker, MAX_PAGE)?;
        let cleared = held.len() < MAX_PAGE as usize;
        for x in held {
            self.worker_lost(x, &why)?;
        }
        let (ends, busy) = (lost.ends.min(self.lease_clock), lost.busy && !cleared);
        self.rows.put_presence(&Presence { ends, cleared, busy, ..lost })?;
        self.request_maintenance();
        Ok(())
    }

    fn request_maintenance(&mut self) {
        self.queue().maintenance_due = true;
        self.notifies = true;
    }
}

/// Pausing again keeps the first time.
fn paused_since(was_paused: bool, at: Option<Micros>, now: Micros) -> Option<Micros> {
    if was_paused { at } else { Some(now) }
}
