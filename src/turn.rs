//! [`Turn`]: a started slot in which the caller runs its own code.

use futures::{channel::oneshot, future::AbortHandle};
use interval_queue_contract::Ticket;

use crate::{
    error::Error,
    shard::{Running, Start},
};

/// A slot that has come. Until dropped, it counts as a running job.
///
/// Returned by [`IntervalQueue::turn`](crate::IntervalQueue::turn).
#[derive(Debug)]
#[must_use = "the job counts as running while its turn lives"]
pub struct Turn(pub(crate) Running);

impl Turn {
    /// The ticket of the start. [`Ticket::NONE`]: it started alone, see
    /// [`WhenStateIsLost`](crate::WhenStateIsLost).
    pub fn ticket(&self) -> Ticket {
        self.0.ticket
    }

    #[cfg(feature = "tower")]
    pub(crate) fn age(&self) -> std::time::Duration {
        self.0.shard.host.now().saturating_duration_since(self.0.since)
    }
}

struct Handover(oneshot::Sender<Result<Running, Error>>);

impl Start for Handover {
    fn start(self: Box<Self>, running: Running) -> Result<Option<AbortHandle>, Running> {
        match self.0.send(Ok(running)) {
            Err(Ok(running)) => Err(running),
            _ => Ok(None),
        }
    }

    fn refuse(self: Box<Self>, error: Error) {
        // The caller may have stopped waiting.
        let _ = self.0.send(Err(error));
    }
}

pub(crate) fn handover() -> (Box<dyn Start>, oneshot::Receiver<Result<Running, Error>>) {
    let (sender, slot) = oneshot::channel();
    (Box::new(Handover(sender)), slot)
}
