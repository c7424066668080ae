//! A shard that runs alone: when it may, which job starts next, and its return without a burst.
//!
//! Each of n shards keeps its starts n intervals apart until a while after its return, so the order
//! of returns does not matter. Unused under [`WhenStateIsLost::Wait`].

use std::time::{Duration, Instant};

use interval_queue_contract::{Memory, StateError};

use crate::{
    alone::{Lost, Share},
    connection::{COMMAND_TIMEOUT, RETRY},
    jobs::Arriving,
    line::Line,
    outage::WhenStateIsLost,
    start::Starting,
};

/// As long as another shard may need to detect that the store is back: its last command may time
/// out, and its longest delay, doubled by jitter, pass.
const SETTLING_TIME: Duration = RETRY.1.saturating_mul(2).saturating_add(COMMAND_TIMEOUT);

impl<J, C, A> Line<J, C, A> {
    /// Records the other shards in the reply to a step. Replies to changes may count dead shards,
    /// and this one or not.
    pub fn count_others(&mut self, memory: &Memory) {
        let others = memory.shards.saturating_sub(u32::from(self.connection.present));
        if others > 0 {
            self.alone.others = others;
        }
    }

    /// Takes in that a step failed.
    pub fn lose(&mut self, error: &StateError, now: Instant, seed: u64) {
        let lost = self.alone.lost.get_or_insert(Lost {
            since: now,
            last_failure: now,
            refused: false,
            unconfirmed: false,
            phase: seed as f64 / u64::MAX as f64,
            is_reported: false,
        });
        if lost.refused && error.is_retryable() {
            (lost.since, lost.is_reported) = (now, false);
        }
        lost.last_failure = now;
        lost.unconfirmed = false;
        lost.refused = !error.is_retryable();
    }

    /// Takes in that a command succeeded. Returns how long the shard keeps to its share, if it may
    /// have run alone.
    pub fn rejoin(&mut self, now: Instant) -> Option<Duration> {
        let may_have_run = self.is_lost(now);
        self.alone.lost = None;
        may_have_run.then(|| {
            self.alone.settling_until = Some(now + SETTLING_TIME);
            SETTLING_TIME
        })
    }

    /// Call it after idle time, in which much may have happened: forgets old failures, or requires
    /// another failure before the shard runs alone.
    pub fn forget_old_loss(&mut self, now: Instant) {
        if let WhenStateIsLost::RunAlone { after, .. } = self.identity.when_lost
            && self.alone.lost.take_if(|lost| lost.last_failure + after < now).is_some()
        {
            // Otherwise a delay longer than `after` could follow one failure.
            self.connection.failing = None;
        }
        if let Some(lost) = &mut self.alone.lost {
            lost.unconfirmed = true;
            self.connection.retry_now(now);
        }
    }

    /// How the shard runs alone, or would with a job.
    pub fn runs_alone(&self, now: Instant) -> Option<Share> {
        self.alone_from().filter(|from| *from <= now)?;
        Some(Share { shards: self.among(), pace: self.share(1) })
    }

    /// As [`runs_alone`](Self::runs_alone), once per outage.
    pub fn report_alone(&mut self, now: Instant) -> Option<Share> {
        let share = self.runs_alone(now)?;
        let lost = self.alone.lost.as_mut().filter(|lost| !lost.is_reported)?;
        lost.is_reported = true;
        Some(share)
    }

    /// The first job, with or without a ticket, if it may start alone now. The shard keeps its
    /// lowest tickets.
    pub fn next_alone(&mut self, now: Instant) -> Option<Starting<J, C>> {
        self.alone_due().filter(|due| *due <= now)?;
        let waiting = self.backlog.waiting.first_rank();
        let arriving =
            self.backlog.first_arriving().filter(|arriving| waiting.is_none_or(|first| *arriving < first));
        let (id, job, caller) = match arriving {
            Some(arriving) => {
                let Arriving { id, job, caller, .. } = self.backlog.take_arriving(arriving.id())?;
                (id, job, Some(caller))
            }
            None => {
                let (id, job) = self.backlog.waiting.pop_first()?;
                (id, job, None)
            }
        };
        self.trim();
        self.start(id, &job);
        Some(Starting { id, job, grant: None, caller })
    }

    /// When the next job starts alone as things stand.
    pub fn alone_due(&self) -> Option<Instant> {
        self.alone_at().filter(|_| self.backlog.open() > 0)
    }

    fn alone_at(&self) -> Option<Instant> {
        let from = self.alone_from()?;
        let most = self.connection.memory.max_running.map(|limit| (limit / self.among()).max(1));
        let full = most.is_some_and(|most| self.running.len() >= most as usize);
        if full || !self.held.grants.is_empty() {
            return None;
        }
        let memory = &self.connection.memory;
        // Each shard had a slot by then: together they are not ahead of the rate.
        let one_each = memory.meters.longest() * u64::from(self.among() - 1);
        let reserved = memory.meters.next_slot(memory.held_until, 1);
        let first = self.clock.ours_for(reserved + one_each, from).max(from);
        let phase = self.alone.lost.as_ref().map_or(0.0, |lost| lost.phase);
        let first = first + one_each.to_duration().mul_f64(phase);
        Some(self.share_at().map_or(first, |share_at| share_at.max(first)))
    }

    /// When a job starts alone after this total weight. `weights` is called only if it does.
    pub fn alone_behind(&self, weights: impl FnOnce() -> u64) -> Option<Instant> {
        let first = self.alone_at()?;
        Some(first + self.share(weights()))
    }

    /// Whether the shard keeps to its share: the store is lost, or was a moment ago.
    ///
    /// It then reports only the ticket that requests a slot: other shards would wait for tickets
    /// that are used slowly.
    pub fn keeps_to_share(&self, now: Instant) -> bool {
        self.is_lost(now) || self.settling(now).is_some()
    }

    /// Whether the shard may request one slot while it keeps to its share.
    pub fn may_ask(&self, now: Instant) -> bool {
        // A grant in the first reply would add to the starts made alone.
        !self.is_lost(now) && self.may_ask_at(now).is_some_and(|at| at <= now)
    }

    /// When to request the next slot, with `ask_at` by the store's slots. `None`: once a grant is
    /// used.
    pub fn ask_due(&self, ask_at: Instant, now: Instant) -> Option<Instant> {
        if self.connection.ask_again || self.settling(now).is_none() {
            return Some(ask_at);
        }
        self.may_ask_at(now).map(|at| at.max(ask_at))
    }

    /// `None` while it has a grant.
    fn may_ask_at(&self, now: Instant) -> Option<Instant> {
        let until = self.settling(now).filter(|_| self.held.grants.is_empty())?;
        Some(self.share_at().map_or(now, |share_at| share_at.min(until)))
    }

    fn settling(&self, now: Instant) -> Option<Instant> {
        self.alone.settling_until.filter(|until| *until > now)
    }

    /// `None`: not as things stand.
    fn alone_from(&self) -> Option<Instant> {
        self.lost()
            .filter(|(lost, _)| !lost.unconfirmed && !self.connection.memory.paused)
            .map(|(_, from)| from)
    }

    fn is_lost(&self, now: Instant) -> bool {
        self.lost().is_some_and(|(_, from)| from <= now)
    }

    /// With the instant from which the store counts as lost.
    fn lost(&self) -> Option<(&Lost, Instant)> {
        let WhenStateIsLost::RunAlone { after, .. } = self.identity.when_lost else { return None };
        let lost = self.alone.lost.as_ref().filter(|lost| !lost.refused)?;
        Some((lost, lost.since + after))
    }

    fn share_at(&self) -> Option<Instant> {
        let (at, weight) = self.alone.last_start?;
        Some(at + self.share(u64::from(weight)))
    }

    fn share(&self, weight: u64) -> Duration {
        (self.connection.memory.meters.longest() * u64::from(self.among()) * weight).to_duration()
    }

    fn among(&self) -> u32 {
        let given = match self.identity.when_lost {
            WhenStateIsLost::RunAlone { shards, .. } => shards,
            WhenStateIsLost::Wait => 1,
        };
        given.max(self.alone.others.saturating_add(1))
    }
}
