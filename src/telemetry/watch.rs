//! Observes the line: changes made under the lock are reported after its release. So code that
//! changes the line need not report them, and subscribers never run under the lock.

use std::{
    ops::{Deref, DerefMut},
    sync::MutexGuard,
};

use interval_queue_contract::Memory;

use super::{Telemetry, is_observed, meter::Levels};
use crate::line::{Kept, LostSlot};

pub(crate) struct LineGuard<'a, J, C, A> {
    line: MutexGuard<'a, Kept<J, C, A>>,
    /// Declared after the lock, to be dropped after it.
    news: News<'a>,
}

impl<'a, J, C, A> LineGuard<'a, J, C, A> {
    pub(crate) fn new(line: MutexGuard<'a, Kept<J, C, A>>, telemetry: &'a Telemetry) -> Self {
        let news = News { telemetry, levels: Levels::default(), lost: Vec::new(), rules: None };
        Self { line, news }
    }
}

impl<J, C, A> Deref for LineGuard<'_, J, C, A> {
    type Target = Kept<J, C, A>;

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
        let Self { line, news } = self;
        news.levels = news.telemetry.meter.levels(line.backlog.len(), line.running.len());
        news.lost = std::mem::take(&mut line.hand.lost);
        news.lost.retain(|_| is_observed());
        let seen = line.connection.memory;
        if line.told.map_or(0, |told| told.revision) != seen.revision {
            news.rules = Some((line.told.replace(seen), seen));
        }
    }
}

/// Reported after the lock is released.
struct News<'a> {
    telemetry: &'a Telemetry,
    levels: Levels,
    lost: Vec<LostSlot>,
    rules: Option<(Option<Memory>, Memory)>,
}

impl Drop for News<'_> {
    fn drop(&mut self) {
        self.telemetry.meter.tell(self.levels);
        self.lost.iter().for_each(|lost| self.telemetry.slot_lost(lost));
        if let Some((before, now)) = self.rules {
            self.telemetry.rules_seen(before, now);
        }
    }
}
