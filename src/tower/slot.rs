//! A place in the queue on the way to its slot, and the rule for those that come too late.

use std::{
    sync::{Mutex, PoisonError},
    task::{Context, Poll, ready},
    time::Duration,
};

use futures::{FutureExt, future::BoxFuture};

use crate::{Error, ErrorKind, IntervalQueue, JobOptions, Turn, line::MIN_TOLERANCE};

/// A turn on its way.
pub(super) type Coming = BoxFuture<'static, Result<Turn, Error>>;

/// Where slots come from, and for what.
#[derive(Clone, Debug)]
pub(super) struct Pace {
    pub(super) queue: IntervalQueue,
    pub(super) options: JobOptions,
}

impl Pace {
    /// How long after its slot a call may start. Less than the driver allows itself, since keeping a ready
    /// service is a habit and an overloaded host is not.
    fn tolerance(&self) -> Duration {
        MIN_TOLERANCE.max(self.queue.interval() / 4)
    }

    /// A turn that is seen when it comes. A service not looked at for long takes another; the tolerance
    /// doubles, so that an overloaded host still gets on.
    pub(super) fn turn(&self) -> Coming {
        let pace = self.clone();
        async move {
            let mut tolerance = pace.tolerance();
            loop {
                let Self { queue, options } = pace.clone();
                let turn = queue.turn().options(options).await?;
                if turn.age() <= tolerance {
                    return Ok(turn);
                }
                queue.shard.telemetry.slot_stale(turn.age());
                tolerance = tolerance.saturating_mul(2);
            }
        }
        .boxed()
    }
}

/// The slot for the next call of a service.
#[derive(Default)]
pub(super) enum Slot {
    /// No place was taken.
    #[default]
    Untaken,
    /// Waits for its slot. Never locked: the mutex is there because axum wants services to be `Sync`.
    Coming(Mutex<Coming>),
    /// Has come.
    Come(Turn),
    /// Does not come, and the call is told so.
    Failed(Error),
}

impl Slot {
    /// Ready once the slot has come, or will not. It stays so, however late it gets: callers count on that.
    /// An error of `poll_ready` is for good, and stacks end by it; so only that of a closed queue is one.
    pub(super) fn poll_come(&mut self, pace: &Pace, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        loop {
            *self = match self {
                Self::Untaken => Self::Coming(Mutex::new(pace.turn())),
                Self::Coming(turn) => {
                    let turn = turn.get_mut().unwrap_or_else(PoisonError::into_inner);
                    match ready!(turn.poll_unpin(context)) {
                        Ok(turn) => Self::Come(turn),
                        Err(error) if error.kind() == ErrorKind::Closed => {
                            *self = Self::Untaken;
                            return Poll::Ready(Err(error));
                        }
                        Err(error) => Self::Failed(error),
                    }
                }
                Self::Come(_) | Self::Failed(_) => return Poll::Ready(Ok(())),
            }
        }
    }

    /// Takes the slot for a call; none if it is late, and ends here, or has not come.
    pub(super) fn take(&mut self, pace: &Pace) -> Result<Option<Turn>, Error> {
        match std::mem::take(self) {
            Self::Come(turn) => Ok(Some(turn).filter(|turn| turn.age() <= pace.tolerance())),
            Self::Failed(error) => Err(error),
            Self::Untaken | Self::Coming(_) => Ok(None),
        }
    }
}
