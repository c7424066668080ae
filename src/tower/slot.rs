//! The slot of the next call, and the limit for late calls.

use std::{
    sync::{Mutex, PoisonError},
    task::{Context, Poll, ready},
    time::Duration,
};

use futures::{FutureExt, future::BoxFuture};

use crate::{Error, ErrorKind, IntervalQueue, JobOptions, Turn, line::MIN_TOLERANCE};

pub(super) type Coming = BoxFuture<'static, Result<Turn, Error>>;

#[derive(Clone, Debug)]
pub(super) struct Pace {
    pub(super) queue: IntervalQueue,
    pub(super) options: JobOptions,
}

impl Pace {
    /// Stricter than the driver's: services are often kept ready for long, hosts are rarely
    /// overloaded.
    fn tolerance(&self) -> Duration {
        MIN_TOLERANCE.max(self.queue.interval() / 4)
    }

    /// Each stale turn doubles the tolerance, so that an overloaded host makes progress.
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

#[derive(Default)]
pub(super) enum Slot {
    #[default]
    Untaken,
    /// The mutex is never locked: it makes the service `Sync`, as axum requires.
    Coming(Mutex<Coming>),
    Come(Turn),
    /// The call returns the error.
    Failed(Error),
}

impl Slot {
    /// Ready once the slot has come or failed, and from then on: callers rely on that. Returns only
    /// `Closed`, because an error of `poll_ready` is final for the stack; `take` returns others.
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

    /// `None`: not there, or stale and dropped.
    pub(super) fn take(&mut self, pace: &Pace) -> Result<Option<Turn>, Error> {
        match std::mem::take(self) {
            Self::Come(turn) => Ok(Some(turn).filter(|turn| turn.age() <= pace.tolerance())),
            Self::Failed(error) => Err(error),
            Self::Untaken | Self::Coming(_) => Ok(None),
        }
    }
}
