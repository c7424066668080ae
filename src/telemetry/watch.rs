//! Observes the line: changes made under its lock are reported after the release, so subscribers
//! never run under it.

use std::{
    ops::{Deref, DerefMut},
    sync::MutexGuard,
};

use interval_queue_contract::Memory;

use super::{Telemetry, is_observed, meter::Levels};
use crate::line::{DrivenLine, LostSlot};

pub(crate) struct LineGuard<'a, J, C, A> {
    line: MutexGuard<'a, DrivenLine<J, C, A>>,
    /// After the lock, to be dropped after it.
    changes: Changes<'a>,
}

impl<'a, J, C, A> LineGuard<'a, J, C, A> {
    pub(crate) fn new(line: MutexGuard<'a, DrivenLine<J, C, A>>, telemetry: &'a Telemetry) -> Self {
        let changes = Changes { telemetry, levels: Levels::default(), lost: Vec::new(), rules: None };
        Self { line, changes }
    }
}

impl<J, C, A> Deref for LineGuard<'_, J, C, A> {
    type Target = DrivenLine<J, C, A>;

    fn deref(&self) -> &Self::Target {
        &self.line
    }
}

impl<J, C, A> DerefMut for LineGuard<'_, J, C, A> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.line
    }
}

impl<J, C, A> Drop for LineGuard<'_, J, C, A> {
    fn drop(&mut self) {
        let Self { line, changes } = self;
        changes.levels = changes.telemetry.meter.levels(line.backlog.len(), line.running.len());
        changes.lost = std::mem::take(&mut line.held.lost);
        changes.lost.retain(|_| is_observed());
        let seen = line.connection.memory;
        if line.logged.map_or(0, |logged| logged.revision) != seen.revision {
            changes.rules = Some((line.logged.replace(seen), seen));
        }
    }
}

struct Changes<'a> {
    telemetry: &'a Telemetry,
    levels: Levels,
    lost: Vec<LostSlot>,
    rules: Option<(Option<Memory>, Memory)>,
}

impl Drop for Changes<'_> {
    fn drop(&mut self) {
        self.telemetry.meter.apply(self.levels);
        self.lost.iter().for_each(|lost| self.telemetry.slot_lost(lost));
        if let Some((before, now)) = self.rules {
            self.telemetry.rules_seen(before, now);
        }
    }
}
