//! What a worker process is told to do: the same for this library's workers and for those of others.

use std::{ffi::OsString, path::PathBuf};

use clap::{Args, ValueEnum};
use rand::{RngExt, SeedableRng, rngs::StdRng};

/// The orders of one worker, as its arguments. The worker of another library may be given more.
#[derive(Clone, Debug, Args)]
pub(crate) struct Assignment {
    /// The address of the store: redis://127.0.0.1:PORT/, file:PATH, sqlite:PATH or memory:.
    #[arg(long)]
    pub(crate) store: String,
    /// Microseconds between two starts of all workers.
    #[arg(long)]
    pub(crate) interval_us: u64,
    /// How many jobs this worker offers.
    #[arg(long)]
    pub(crate) jobs: u64,
    /// Which worker this is, from zero.
    #[arg(long)]
    pub(crate) worker: u32,
    /// How many workers there are.
    #[arg(long)]
    pub(crate) workers: u32,
    /// The file to append to what happens.
    #[arg(long)]
    pub(crate) out: PathBuf,
    /// When the jobs are offered.
    #[arg(long)]
    pub(crate) offer: Offer,
    /// What makes random instants repeatable.
    #[arg(long)]
    pub(crate) seed: u64,
}

/// When jobs are offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Offer {
    /// Evenly, all workers together at twice the rate.
    Saturated,
    /// At random instants, all workers together at half the rate.
    Sparse,
    /// All before the queue is let go. Only this library's worker knows it.
    Ahead,
}

impl Assignment {
    /// These orders as arguments.
    pub(crate) fn arguments(&self) -> Vec<OsString> {
        let numbers = [
            ("--interval-us", self.interval_us),
            ("--jobs", self.jobs),
            ("--worker", self.worker.into()),
            ("--workers", self.workers.into()),
            ("--seed", self.seed),
        ];
        let mut arguments: Vec<OsString> =
            numbers.into_iter().flat_map(|(name, value)| [name.into(), value.to_string().into()]).collect();
        arguments.extend(["--store".into(), self.store.clone().into()]);
        arguments.extend(["--offer".into(), self.offer.name().into()]);
        arguments.extend(["--out".into(), self.out.clone().into()]);
        arguments
    }

    /// When each job is offered, in nanoseconds after the beginning.
    pub(crate) fn offers(&self) -> impl Iterator<Item = u64> + use<> {
        let (interval, workers, worker) =
            (self.interval_us * 1000, u64::from(self.workers), u64::from(self.worker));
        let offer = self.offer;
        let mut random = StdRng::seed_from_u64(self.seed.wrapping_mul(1000).wrapping_add(worker));
        let mean = (2 * interval * workers) as f64;
        let mut at = 0.0;
        (0..self.jobs).map(move |job| match offer {
            Offer::Saturated => (job * workers + worker) * interval / 2,
            Offer::Sparse => {
                // Gaps between events that know nothing of each other: exponentially distributed.
                at -= mean * (1.0 - random.random::<f64>()).ln();
                at as u64
            }
            Offer::Ahead => 0,
        })
    }

    /// After how many nanoseconds a worker gives up.
    pub(crate) fn patience(&self) -> u64 {
        self.jobs * self.interval_us * 1000 * u64::from(self.workers) * 4 + 30_000_000_000
    }
}

impl Offer {
    fn name(self) -> &'static str {
        match self {
            Self::Saturated => "saturated",
            Self::Sparse => "sparse",
            Self::Ahead => "ahead",
        }
    }
}
