//! A cache of queues by key, least recently used first. No I/O and no user code: evicted queues are
//! returned.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{IntervalQueue, shard::Shard};

/// At each use. More than one, as a use may add one; few, so that no caller works for others.
const MAX_CHECKS: usize = 16;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) keep_idle: Duration,
    pub(crate) max_kept: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { keep_idle: Duration::from_secs(60), max_kept: 10_000 }
    }
}

#[derive(Debug, Default)]
pub(crate) struct QueueCache {
    kept: HashMap<Arc<str>, Kept>,
    /// Numbered, as instants may be equal.
    by_use: BTreeMap<u64, Arc<str>>,
    uses: u64,
}

#[derive(Debug)]
struct Kept {
    queue: IntervalQueue,
    used: Instant,
    use_number: u64,
}

impl QueueCache {
    /// Counts as a use. `None` also if the queue was closed and has finished.
    pub(crate) fn get(&mut self, key: &str, now: Instant) -> Option<IntervalQueue> {
        let kept = self.kept.get_mut(key).filter(|kept| !is_over(&kept.queue.shard))?;
        let key = self.by_use.remove(&kept.use_number)?;
        self.uses += 1;
        (kept.used, kept.use_number) = (now, self.uses);
        self.by_use.insert(self.uses, key);
        Some(kept.queue.clone())
    }

    /// Returns the replaced queue.
    pub(crate) fn keep(
        &mut self,
        key: Arc<str>,
        queue: IntervalQueue,
        now: Instant,
    ) -> Option<IntervalQueue> {
        let before = self.kept.remove(&key);
        if let Some(before) = &before {
            self.by_use.remove(&before.use_number);
        }
        self.uses += 1;
        self.by_use.insert(self.uses, key.clone());
        self.kept.insert(key, Kept { queue, used: now, use_number: self.uses });
        before.map(|before| before.queue)
    }

    /// Queues idle for too long or too many, least recently used first.
    pub(crate) fn evict(&mut self, now: Instant, bounds: Bounds) -> Vec<IntervalQueue> {
        let mut dropped = Vec::new();
        for _ in 0..MAX_CHECKS {
            let too_many = self.kept.len() > bounds.max_kept;
            let Some(oldest) = self.by_use.first_entry() else { break };
            let Some(kept) = self.kept.get_mut(oldest.get()) else { break };
            if !too_many && now.saturating_duration_since(kept.used) < bounds.keep_idle {
                break;
            }
            let key = oldest.remove();
            if is_unused(&kept.queue) {
                dropped.extend(self.kept.remove(&key).map(|kept| kept.queue));
            } else {
                self.uses += 1;
                (kept.used, kept.use_number) = (now, self.uses);
                self.by_use.insert(self.uses, key);
            }
        }
        dropped
    }

    pub(crate) fn len(&self) -> usize {
        self.kept.len()
    }

    pub(crate) fn all(&self) -> Vec<IntervalQueue> {
        self.kept.values().map(|kept| kept.queue.clone()).collect()
    }

    pub(crate) fn by_key(&self) -> Vec<(Arc<str>, IntervalQueue)> {
        self.kept.iter().map(|(key, kept)| (key.clone(), kept.queue.clone())).collect()
    }
}

/// No job waits, runs or is between attempts, and only the cache holds the shard: drivers, running
/// jobs and handles hold it, too. Only the cache, which is locked, could add a holder.
fn is_unused(queue: &IntervalQueue) -> bool {
    Arc::strong_count(&queue.shard) == 1 && queue.shard.line().is_idle()
}

/// Closed and without jobs.
fn is_over(shard: &Shard) -> bool {
    let line = shard.line();
    line.closed && line.is_idle()
}
