//! Limiters that know one process only, for what a limiter costs that shares nothing. The process works as
//! the [workers of this library](crate::worker) do.

use std::{
    io::{self, Read},
    num::NonZeroU32,
    sync::Arc,
    time::Duration,
};

use clap::{Args, ValueEnum};
use governor::{DefaultDirectRateLimiter, Quota};
use tokio::time::timeout;

use crate::{
    Failure,
    assignment::Assignment,
    clock,
    contender::Threads,
    notes::{Keep, Notebook, Start},
    worker::{Left, hear_go, offer, runtime, say},
};

/// Who limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Library {
    Governor,
    LeakyBucket,
}

impl Library {
    /// The name of the crate.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Governor => "governor",
            Self::LeakyBucket => "leaky-bucket",
        }
    }
}

/// What the process is told.
#[derive(Clone, Debug, Args)]
pub(crate) struct Arguments {
    #[arg(long)]
    library: Library,
    #[command(flatten)]
    assignment: Assignment,
}

/// A limiter that lets one job start in each interval.
#[derive(Debug)]
enum Limiter {
    Governor(DefaultDirectRateLimiter),
    LeakyBucket(leaky_bucket::RateLimiter),
}

impl Limiter {
    fn new(library: Library, interval: Duration) -> Result<Self, Failure> {
        Ok(match library {
            Library::Governor => {
                let quota = Quota::with_period(interval).ok_or("an interval of zero is no pace")?;
                Self::Governor(DefaultDirectRateLimiter::direct(quota.allow_burst(NonZeroU32::MIN)))
            }
            Library::LeakyBucket => {
                let mut one = leaky_bucket::RateLimiter::builder();
                Self::LeakyBucket(one.max(1).initial(1).refill(1).interval(interval).build())
            }
        })
    }

    async fn wait(&self) {
        match self {
            Self::Governor(limiter) => limiter.until_ready().await,
            Self::LeakyBucket(limiter) => limiter.acquire_one().await,
        }
    }
}

/// Does what a worker does, until its standard input ends.
pub(crate) fn run(arguments: Arguments) -> Result<(), Failure> {
    runtime(Threads::Single)?.block_on(work(arguments))
}

async fn work(Arguments { library, assignment }: Arguments) -> Result<(), Failure> {
    let notes = Arc::new(Notebook::open(&assignment.out, Keep::Nothing, assignment.jobs)?);
    let limiter = Arc::new(Limiter::new(library, Duration::from_micros(assignment.interval_us))?);
    let left = Arc::new(Left::new(assignment.jobs));
    say("ready")?;
    let go = hear_go()?;
    let cpu = clock::cpu();
    let worked = async {
        offer(&assignment, go, |job| {
            let (notes, limiter, left) = (notes.clone(), limiter.clone(), left.clone());
            let called = clock::monotonic();
            tokio::spawn(async move {
                limiter.wait().await;
                let started = clock::monotonic();
                notes.start(Start { job, called, accepted: None, started });
                left.one_less();
            });
        })
        .await;
        left.none().await;
    };
    // Jobs that have not started by then count as lost.
    let _ = timeout(Duration::from_nanos(assignment.patience()), worked).await;
    notes.finish(clock::cpu() - cpu, None);
    say("done")?;
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
