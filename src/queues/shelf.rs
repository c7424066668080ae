//! The queues that are kept by their keys, the longest unused first. No I/O and no code of a user: what is
//! dropped is handed out.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{IntervalQueue, shard::Shard};

/// How many queues are looked at with each use. More than one comes with it, so that it catches up; few, so
/// that nobody waits for the work of others.
const LOOKED_AT: usize = 16;

/// How long queues are kept, and how many.
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

/// Queues by their keys.
#[derive(Debug, Default)]
pub(crate) struct Shelf {
    kept: HashMap<Arc<str>, Kept>,
    /// Their keys in the order of their last uses. Instants alone would not tell them apart.
    by_use: BTreeMap<u64, Arc<str>>,
    uses: u64,
}

#[derive(Debug)]
struct Kept {
    queue: IntervalQueue,
    /// When it was last asked for or seen to be in use.
    used: Instant,
    /// Its key in `by_use`.
    place: u64,
}

impl Shelf {
    /// The queue of a key, which is used by that. One that was closed and has finished is no queue any more.
    pub(crate) fn get(&mut self, key: &str, now: Instant) -> Option<IntervalQueue> {
        let kept = self.kept.get_mut(key).filter(|kept| !is_over(&kept.queue.shard))?;
        let key = self.by_use.remove(&kept.place)?;
        self.uses += 1;
        (kept.used, kept.place) = (now, self.uses);
        self.by_use.insert(self.uses, key);
        Some(kept.queue.clone())
    }

    /// Keeps a queue. The one that was there before, if there was one.
    pub(crate) fn keep(
        &mut self,
        key: Arc<str>,
        queue: IntervalQueue,
        now: Instant,
    ) -> Option<IntervalQueue> {
        let before = self.kept.remove(&key);
        if let Some(before) = &before {
            self.by_use.remove(&before.place);
        }
        self.uses += 1;
        self.by_use.insert(self.uses, key.clone());
        self.kept.insert(key, Kept { queue, used: now, place: self.uses });
        before.map(|before| before.queue)
    }

    /// Takes out some of the queues that are idle for too long, or too many; the longest unused first.
    pub(crate) fn sweep(&mut self, now: Instant, bounds: Bounds) -> Vec<IntervalQueue> {
        let mut dropped = Vec::new();
        for _ in 0..LOOKED_AT {
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
                (kept.used, kept.place) = (now, self.uses);
                self.by_use.insert(self.uses, key);
            }
        }
        dropped
    }

    pub(crate) fn len(&self) -> usize {
        self.kept.len()
    }

    /// All that are kept.
    pub(crate) fn all(&self) -> Vec<IntervalQueue> {
        self.kept.values().map(|kept| kept.queue.clone()).collect()
    }

    /// The same with their keys, in any order.
    pub(crate) fn by_key(&self) -> Vec<(Arc<str>, IntervalQueue)> {
        self.kept.iter().map(|(key, kept)| (key.clone(), kept.queue.clone())).collect()
    }
}

/// Whether nothing waits, runs or is between attempts, and nobody but the shelf has a handle. A driver, a
/// running job and a handle of a job have one of their own; only the shelf could give another away, and it is
/// locked.
fn is_unused(queue: &IntervalQueue) -> bool {
    Arc::strong_count(&queue.shard) == 1 && queue.shard.line().is_idle()
}

/// Whether it takes no jobs and has none.
fn is_over(shard: &Shard) -> bool {
    let line = shard.line();
    line.closed && line.is_idle()
}
