//! A slot to run something in place.

use futures::{channel::oneshot, future::AbortHandle};
use interval_queue_contract::Ticket;

use crate::{
    line::{Start, Waiting},
    shard::Running,
};

/// A slot that has come. While it lives, it counts as a running job.
///
/// Returned by [`IntervalQueue::turn`](crate::IntervalQueue::turn).
#[derive(Debug)]
#[must_use = "the job counts as running while its turn lives"]
pub struct Turn(pub(crate) Running);

impl Turn {
    /// The ticket it was started with; [`Ticket::NONE`] if it started alone, see
    /// [`WhenStateIsLost`](crate::WhenStateIsLost).
    pub fn ticket(&self) -> Ticket {
        self.0.ticket
    }

    /// How long ago its slot came.
    #[cfg(feature = "tower")]
    pub(crate) fn age(&self) -> std::time::Duration {
        self.0.age()
    }
}

struct Handover(oneshot::Sender<Running>);

impl Start for Handover {
    fn start(self: Box<Self>, place: Running) -> Result<Option<AbortHandle>, Running> {
        self.0.send(place).map(|()| None)
    }
}

/// A job that hands its place over.
pub(crate) fn handover(weight: u32) -> (Waiting, oneshot::Receiver<Running>) {
    let (sender, place) = oneshot::channel();
    (Waiting { weight, start: Box::new(Handover(sender)) }, place)
}
