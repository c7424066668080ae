//! Carries out the plan of a joint job; gives slots back if the others do not come in time.

use std::{
    future::poll_fn,
    sync::Arc,
    task::Poll,
    time::{Duration, Instant},
};

use futures::future::{join_all, select_all};

use super::{
    plan::{self, Estimate, Move},
    seat::Seat,
};
use crate::{error::Error, host::sleep_until, line::Gate, shard::Running};

pub(super) struct Gathering {
    /// In the caller's order.
    seats: Vec<Seat>,
    /// The seat whose slot was late.
    suspect: Option<usize>,
}

impl Gathering {
    /// Waits until all slots are in hand. With a limit, fails at once if the estimated start is
    /// later.
    pub(super) async fn gather(seats: Vec<Seat>, mut limit: Option<Duration>) -> Result<Vec<Running>, Error> {
        let mut gathering = Self { seats, suspect: None };
        loop {
            let now = gathering.now();
            if gathering.good_until().is_some_and(|until| until < now) {
                gathering.retreat()?;
            } else if gathering.seats.iter().all(Seat::is_in_hand) {
                // Slots after the first were requested one after the other.
                let trips = gathering.seats.iter().map(Seat::round_trip);
                let answers = trips.clone().sum::<Duration>() - trips.min().unwrap_or_default();
                let places = gathering.seats.into_iter().filter_map(|seat| seat.start(now, answers * 3 / 2));
                return Ok(places.collect());
            }
            // A job with a slot in hand must not wait for estimates.
            let hurry = gathering.seats.iter().any(Seat::is_in_hand);
            let looks = join_all(gathering.seats.iter().map(|seat| seat.look(hurry)));
            let outlooks = tokio::select! {
                biased;
                changed = gathering.change() => {
                    changed?;
                    continue;
                }
                outlooks = looks => outlooks,
            };
            if let Some(limit) = limit.take() {
                let quote = outlooks.iter().filter_map(|outlook| outlook.wait).max().unwrap_or_default();
                if quote > limit {
                    return Err(Error::estimated_too_late(quote, quote - limit));
                }
            }
            gathering.proceed(&outlooks).await?;
        }
    }

    async fn proceed(&mut self, outlooks: &[Estimate]) -> Result<(), Error> {
        let order = self.order(outlooks);
        let ordered: Vec<_> = order.iter().map(|&seat| outlooks[seat]).collect();
        let suspect = self.suspect.and_then(|suspect| order.iter().position(|&seat| seat == suspect));
        let now = self.now();
        let quoted = |next: usize| ordered[next].wait.map(|wait| now + wait);
        match plan::next(&ordered, suspect) {
            Move::Take(next) => self.seats[order[next]].arrive(Gate::Closed, quoted(next)),
            Move::Open(next) => self.seats[order[next]].open(quoted(next)),
            Move::Close(next) => {
                self.seats.iter_mut().for_each(Seat::renounce);
                self.seats[order[next]].close()
            }
            Move::Wait(time) => {
                if outlooks.iter().any(Estimate::is_imminent) {
                    self.seats.iter_mut().for_each(Seat::announce);
                }
                let at = time.and_then(|time| self.now().checked_add(time));
                let host = self.seats[0].shard().host.clone();
                let at = at.into_iter().chain(self.good_until()).min();
                // Just past that instant.
                let at = at.map(|at| at + Duration::from_micros(1));
                let shards: Vec<_> = self.seats.iter().map(|seat| seat.shard().clone()).collect();
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

    /// Slowest first. All jobs of the same queues use this order.
    fn order(&self, outlooks: &[Estimate]) -> Vec<usize> {
        let mut order: Vec<_> = (0..self.seats.len()).collect();
        order.sort_by_key(|&seat| {
            let shard = self.seats[seat].shard();
            let address = Arc::as_ptr(shard).addr();
            (std::cmp::Reverse(outlooks[seat].interval), shard.queue.clone(), address)
        });
        order
    }

    /// Gives slots back because another one was late.
    fn retreat(&mut self) -> Result<(), Error> {
        self.suspect = self.seats.iter().position(Seat::is_open);
        self.seats.iter_mut().for_each(Seat::renounce);
        self.seats.iter_mut().try_for_each(Seat::close)
    }

    fn good_until(&self) -> Option<Instant> {
        self.seats.iter().filter_map(Seat::good_until).min()
    }

    /// Waits for a ticket or slot.
    async fn change(&mut self) -> Result<(), Error> {
        poll_fn(|context| {
            let mut changes = self.seats.iter_mut().map(|seat| seat.poll_change(context));
            changes.find(Poll::is_ready).unwrap_or(Poll::Pending)
        })
        .await
    }

    fn now(&self) -> Instant {
        self.seats[0].shard().host.now()
    }
}
