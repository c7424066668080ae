//! Watches the line: what changed while it was locked is told once it is not.
//!
//! So nobody who changes the line has to think of those who look at it, and what they run never runs under
//! the lock.

use std::{
    ops::{Deref, DerefMut},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use interval_queue_contract::{Memory, Micros, Settings};

use super::{Telemetry, anybody_listens, meter::Levels};
use crate::line::{Kept, LostSlot};

/// What is in force for all shards.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub(super) at: Micros,
    pub(super) settings: Settings,
    pub(super) paused: bool,
    pub(super) held_until: Micros,
}

impl Rules {
    fn of(memory: &Memory) -> Self {
        Self {
            at: memory.at,
            settings: memory.settings(),
            paused: memory.paused,
            held_until: memory.held_until,
        }
    }
}

/// What was told last.
#[derive(Debug, Default)]
pub(super) struct Told {
    revision: AtomicU64,
    rules: Mutex<Option<Rules>>,
}

impl Told {
    /// What was told before and what is to be told now, if that is something else. To be asked while the line
    /// is locked.
    fn news(&self, memory: &Memory) -> Option<(Option<Rules>, Rules)> {
        if self.revision.swap(memory.revision, Ordering::Relaxed) == memory.revision {
            return None;
        }
        let now = Rules::of(memory);
        let before = self.rules.lock().unwrap_or_else(PoisonError::into_inner).replace(now);
        Some((before, now))
    }
}

/// The locked line.
pub(crate) struct LineGuard<'a, J, C, A> {
    line: MutexGuard<'a, Kept<J, C, A>>,
    /// Behind the lock, so that it is dropped after it.
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
        news.lost.retain(|_| anybody_listens());
        news.rules = news.telemetry.told.news(&line.contact.memory);
    }
}

/// What to tell when the line is not locked any more.
struct News<'a> {
    telemetry: &'a Telemetry,
    levels: Levels,
    lost: Vec<LostSlot>,
    rules: Option<(Option<Rules>, Rules)>,
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
