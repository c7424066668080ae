//! Carries out the plan of a joint job; gives slots back if the others do not come in time.

use std::{
    future::poll_fn,
    sync::Arc,
    task::Poll,
    time::{Duration, Instant},
};

use futures::future::{join_all, select_all};

use super::{
    member::Member,
    plan::{self, Estimate, Move},
};
use crate::{error::Error, host::sleep_until, line::Gate, shard::Running};

pub(super) struct Gathering {
    /// In the caller's order.
    members: Vec<Member>,
    suspect: Option<usize>,
}

impl Gathering {
    /// Waits until all slots are held. With a limit, fails at once if the estimated start is later.
    pub(super) async fn gather(
        members: Vec<Member>,
        mut limit: Option<Duration>,
    ) -> Result<Vec<Running>, Error> {
        let mut gathering = Self { members, suspect: None };
        loop {
            let now = gathering.now();
            if gathering.good_until().is_some_and(|until| until < now) {
                gathering.retreat()?;
            } else if gathering.members.iter().all(Member::is_in_hand) {
                // Slots after the first were requested one after the other.
                let trips = gathering.members.iter().map(Member::round_trip);
                let answers = trips.clone().sum::<Duration>() - trips.min().unwrap_or_default();
                let running =
                    gathering.members.into_iter().filter_map(|member| member.start(now, answers * 3 / 2));
                return Ok(running.collect());
            }
            // A held slot must not wait for estimates.
            let hurry = gathering.members.iter().any(Member::is_in_hand);
            let estimating = join_all(gathering.members.iter().map(|member| member.estimate(hurry)));
            let estimates = tokio::select! {
                biased;
                changed = gathering.change() => {
                    changed?;
                    continue;
                }
                estimates = estimating => estimates,
            };
            if let Some(limit) = limit.take() {
                let wait = estimates.iter().filter_map(|estimate| estimate.wait).max().unwrap_or_default();
                if wait > limit {
                    return Err(Error::estimated_too_late(wait, wait - limit));
                }
            }
            gathering.proceed(&estimates).await?;
        }
    }

    async fn proceed(&mut self, estimates: &[Estimate]) -> Result<(), Error> {
        let order = self.order(estimates);
        let ordered: Vec<_> = order.iter().map(|&member| estimates[member]).collect();
        let suspect = self.suspect.and_then(|suspect| order.iter().position(|&member| member == suspect));
        let now = self.now();
        let estimated = |next: usize| ordered[next].wait.map(|wait| now + wait);
        match plan::next(&ordered, suspect) {
            Move::Take(next) => self.members[order[next]].arrive(Gate::Closed, estimated(next)),
            Move::Open(next) => self.members[order[next]].open(estimated(next)),
            Move::Close(next) => {
                self.members.iter_mut().for_each(Member::renounce);
                self.members[order[next]].close()
            }
            Move::Wait(time) => {
                if estimates.iter().any(Estimate::is_imminent) {
                    self.members.iter_mut().for_each(Member::announce);
                }
                let at = time.and_then(|time| self.now().checked_add(time));
                let host = self.members[0].shard().host.clone();
                let at = at.into_iter().chain(self.good_until()).min();
                let at = at.map(|at| at + Duration::from_micros(1));
                let shards: Vec<_> = self.members.iter().map(|member| member.shard().clone()).collect();
                let stopped = select_all(shards.iter().map(|shard| Box::pin(shard.stopped.notified())));
                tokio::select! {
                    biased;
                    changed = self.change() => changed,
                    () = sleep_until(&*host, at) => Ok(()),
                    _ = stopped => Ok(()),
                }
            }
        }
    }

    /// Slowest first, in the same order for all jobs of the same queues.
    fn order(&self, estimates: &[Estimate]) -> Vec<usize> {
        let mut order: Vec<_> = (0..self.members.len()).collect();
        order.sort_by_key(|&member| {
            let shard = self.members[member].shard();
            let address = Arc::as_ptr(shard).addr();
            (std::cmp::Reverse(estimates[member].interval), shard.queue.clone(), address)
        });
        order
    }

    /// Gives slots back because another one was late.
    fn retreat(&mut self) -> Result<(), Error> {
        self.suspect = self.members.iter().position(Member::is_open);
        self.members.iter_mut().for_each(Member::renounce);
        self.members.iter_mut().try_for_each(Member::close)
    }

    fn good_until(&self) -> Option<Instant> {
        self.members.iter().filter_map(Member::good_until).min()
    }

    async fn change(&mut self) -> Result<(), Error> {
        poll_fn(|context| {
            let mut changes = self.members.iter_mut().map(|member| member.poll_change(context));
            changes.find(Poll::is_ready).unwrap_or(Poll::Pending)
        })
        .await
    }

    fn now(&self) -> Instant {
        self.members[0].shard().host.now()
    }
}
