//! Watches the line: what changed while it was locked is told once it is not.
//!
//! So nobody who changes the line has to think of those who look at it, and what they run never runs under the lock.

use std::{
    ops::{Deref, DerefMut},
    sync::MutexGuard,
};

use interval_queue_contract::{Memory, Micros, Settings, Ticket};

use super::{LostBecause, Telemetry, anybody_listens, meter::Levels};
use crate::line::Line;

/// A slot that was granted and in which nothing starts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LostSlot {
    pub(super) ticket: Ticket,
    pub(super) reason: LostBecause,
}

/// What is in force for all shards.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    revision: u64,
    pub(super) at: Micros,
    pub(super) settings: Settings,
    pub(super) paused: bool,
    pub(super) held_until: Micros,
}

impl Rules {
    fn of(memory: &Memory) -> Self {
        Self {
            revision: memory.revision,
            at: memory.at,
            settings: memory.settings(),
            paused: memory.paused,
            held_until: memory.held_until,
        }
    }
}

/// What the line notes for those who look at it.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    lost: Vec<LostSlot>,
    /// What was told last.
    told: Option<Rules>,
}

impl Notes {
    pub(crate) fn slot_lost(&mut self, ticket: Ticket, reason: LostBecause) {
        if anybody_listens() {
            self.lost.push(LostSlot { ticket, reason });
        }
    }
}

/// The locked line.
pub(crate) struct LineGuard<'a> {
    line: MutexGuard<'a, Line>,
    /// Behind the lock, so that it is dropped after it.
    news: News<'a>,
}

impl<'a> LineGuard<'a> {
    pub(crate) fn new(line: MutexGuard<'a, Line>, telemetry: &'a Telemetry) -> Self {
        let news = News { telemetry, levels: Levels::default(), lost: Vec::new(), rules: None };
        Self { line, news }
    }
}

impl Deref for LineGuard<'_> {
    type Target = Line;

    fn deref(&self) -> &Line {
        &self.line
    }
}

impl DerefMut for LineGuard<'_> {
    fn deref_mut(&mut self) -> &mut Line {
        &mut self.line
    }
}

impl Drop for LineGuard<'_> {
    fn drop(&mut self) {
        let Self { line, news } = self;
        news.levels = news.telemetry.meter.levels(line.waiting(), line.running.len());
        news.lost = std::mem::take(&mut line.notes.lost);
        let told = line.notes.told;
        if told.map_or(0, |told| told.revision) != line.memory.revision {
            let now = Rules::of(&line.memory);
            line.notes.told = Some(now);
            news.rules = Some((told, now));
        }
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
