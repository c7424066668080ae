//! What an operator or an application changes for all.

use interval_queue_contract::{OnExisting, StateError, StateErrorKind};

use super::Work;
use crate::{Change, KeyRow, Kind, KindRow, Level, Reply, Rows, SettingsChange};

impl<R: Rows> Work<'_, R> {
    pub(super) fn change(&mut self, change: &Change) -> Result<Reply, R::Error> {
        self.tell_time()?;
        match change {
            Change::Open(settings, on_existing) => self.open(settings, *on_existing)?,
            Change::Set(settings) => self.set(settings),
            Change::Pause => self.queue().paused = true,
            Change::Resume => {
                self.queue().paused = false;
                self.nudges = true;
            }
            Change::Kind(kind, paused) => self.pause_kind(kind, *paused)?,
            Change::Key(key, limit) => {
                self.rows.put_key(&KeyRow { key: key.clone(), limit: *limit, uneven: true })?;
                self.sweep_soon();
            }
            Change::Tasks(change) => return self.change_tasks(change),
            Change::Schedule(new) => self.set_schedule(new)?,
            Change::Unschedule(name) => {
                if self.rows.schedule(name)?.is_none() {
                    let text = format!("there is no schedule {:?} in this queue", name.as_str());
                    return Err(StateError::new(StateErrorKind::NotFound, text).into());
                }
                self.rows.remove_schedule(name)?;
            }
        }
        Ok(Reply::Changed(self.queue.settings.clone()))
    }

    fn open(&mut self, settings: &SettingsChange, on_existing: OnExisting) -> Result<(), R::Error> {
        let wanted = settings.on(&self.queue.settings);
        if self.is_new {
            self.queue().settings = wanted;
        } else if wanted != self.queue.settings {
            match on_existing {
                OnExisting::Fail => {
                    let text = format!("the queue is there with other settings: {:?}", self.queue.settings);
                    return Err(StateError::new(StateErrorKind::Conflict, text).into());
                }
                OnExisting::Replace | OnExisting::Reset => self.set(settings),
                _ => {}
            }
        }
        Ok(())
    }

    fn set(&mut self, settings: &SettingsChange) {
        let wanted = settings.on(&self.queue.settings);
        let relevels = wanted.key_limit != self.queue.settings.key_limit;
        let queue = self.queue();
        queue.settings = wanted;
        if relevels {
            queue.level_after = Some(Level::Begin);
        }
        self.sweep_soon();
    }

    fn pause_kind(&mut self, kind: &Kind, paused: bool) -> Result<(), R::Error> {
        let served_until = self.rows.kind(kind)?.map_or_else(Default::default, |row| row.served_until);
        let open = !paused && served_until > self.ticks;
        self.rows.put_kind(&KindRow { kind: kind.clone(), paused, served_until, open, uneven: true })?;
        self.sweep_soon();
        Ok(())
    }

    /// The next step looks at what follows from a change.
    fn sweep_soon(&mut self) {
        self.queue().unswept = true;
        self.nudges = true;
    }
}
