//! A row of a table: the store, the part and the library that is measured.

use std::{panic::AssertUnwindSafe, time::Duration};

use futures::FutureExt;

use crate::{
    adds, backlog, burn, degraded,
    figures::median,
    open_loop,
    place::{Place, Places, Setting},
    server::Figures,
    steady,
    task_contender::Contender,
};

/// Bytes of a payload, usually and at most.
pub(crate) const SMALL: usize = 100;
pub(crate) const LARGE: usize = 4_000;

/// A row of a table.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) setting: Setting,
    pub(crate) what: What,
    /// The figures of each run.
    pub(crate) runs: Vec<Figures>,
}

/// A measurement.
#[derive(Clone, Debug)]
pub(crate) enum What {
    Adds { contender: Contender, processes: usize, batch: usize, size: usize },
    Burn { contender: Contender, batch: usize, size: usize },
    Steady { contender: Contender, jobs: usize },
    OpenLoop { contender: Contender },
    Degraded,
    Backlog,
    Killed,
}

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    /// A part of the tasks.
    pub(crate) share: usize,
    /// How long something is measured.
    pub(crate) time: Duration,
    /// How long it may take to fill a store.
    pub(crate) fill: Duration,
}

impl What {
    /// The part of the page.
    pub(crate) fn part(&self) -> &'static str {
        match self {
            Self::Adds { .. } => "Adds",
            Self::Burn { .. } => "Burn-down",
            Self::Steady { .. } => "Steady",
            Self::OpenLoop { .. } => "Open loop",
            Self::Degraded => "Degraded",
            Self::Backlog => "Backlog",
            Self::Killed => "Killed",
        }
    }

    /// Whether it is measured at both durabilities, or only at the faster one.
    pub(crate) fn is_durable(&self) -> bool {
        matches!(self, Self::Adds { size, .. } | Self::Burn { size, .. } if *size == SMALL)
    }

    /// Whether it is measured in each run: a full store takes long.
    pub(crate) fn is_repeated(&self) -> bool {
        !matches!(self, Self::Degraded | Self::Backlog)
    }

    /// The library whose tasks are added or run, if this is compared with others.
    pub(crate) fn contender(&self) -> Option<&Contender> {
        match self {
            Self::Adds { contender, .. }
            | Self::Burn { contender, .. }
            | Self::Steady { contender, .. }
            | Self::OpenLoop { contender } => Some(contender),
            Self::Degraded | Self::Backlog | Self::Killed => None,
        }
    }

    fn is_peer(&self) -> bool {
        self.contender().is_some_and(Contender::is_peer)
    }

    /// The cells that identify it in its table.
    pub(crate) fn labels(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::Adds { contender, processes, batch, size } => vec![
                ("payload", bytes(*size)),
                ("processes", processes.to_string()),
                ("added at once", batch.to_string()),
                ("what", contender.adder()),
            ],
            Self::Burn { contender, batch, size } => vec![
                ("payload", bytes(*size)),
                ("what", contender.name()),
                ("at once", if contender.is_peer() { String::new() } else { batch.to_string() }),
            ],
            Self::Steady { contender, jobs } => vec![
                ("what", contender.name()),
                ("jobs of a worker", if contender.is_peer() { String::new() } else { jobs.to_string() }),
            ],
            Self::OpenLoop { contender } => vec![("what", contender.name())],
            Self::Degraded | Self::Backlog | Self::Killed => Vec::new(),
        }
    }

    /// Whether the other, of another library, is the same case.
    pub(crate) fn is_alike(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::Adds { processes, batch, size, .. },
                Self::Adds { contender, processes: by, batch: other, size: of_other },
            ) => (contender.at_most(*processes), batch, size) == (*by, other, of_other),
            (Self::Burn { size, .. }, Self::Burn { size: other, .. }) => size == other,
            (Self::Steady { .. }, Self::Steady { .. }) => true,
            _ => false,
        }
    }
}

impl Case {
    pub(crate) fn new(setting: Setting, what: What) -> Self {
        Self { setting, what, runs: Vec::new() }
    }

    /// Measures it once, in a fresh place.
    pub(crate) async fn measure(&mut self, places: &mut Places, scale: Scale) {
        let place = places.make(self.setting);
        // A panic in one case keeps the figures of the others.
        let measured = AssertUnwindSafe(self.what.measure(&place, places, scale)).catch_unwind().await;
        if let Ok(Some(figures)) = measured {
            self.runs.push(figures);
        } else {
            let labels: Vec<String> = self.what.labels().into_iter().map(|(_, label)| label).collect();
            eprintln!(
                "{}: {} {} came to nothing",
                self.setting.kind.name(),
                self.what.part(),
                labels.join(" ")
            );
        }
    }

    /// The median of a figure.
    pub(crate) fn figure(&self, title: &str) -> Option<f64> {
        let of_run = |run: &Figures| run.iter().find(|(name, _)| *name == title).map(|(_, figure)| *figure);
        median(self.runs.iter().filter_map(of_run))
    }

    /// How many times as much it is as of the best of other libraries in the same case.
    pub(crate) fn ratio(&self, all: &[Self], title: &str) -> Option<f64> {
        let peers = all.iter().filter(|other| {
            other.what.is_peer() && other.setting == self.setting && self.what.is_alike(&other.what)
        });
        let best = peers.filter_map(|peer| peer.figure(title)).max_by(f64::total_cmp)?;
        Some(self.figure(title)? / best)
    }
}

impl What {
    async fn measure(&self, place: &Place, places: &mut Places, scale: Scale) -> Option<Figures> {
        match self {
            Self::Adds { contender, processes, batch, size } => {
                adds::measure(place, contender, *processes, [*batch, *size], scale).await
            }
            Self::Burn { contender, batch, size } => {
                burn::measure(place, contender, *batch, *size, scale).await
            }
            Self::Steady { contender, jobs } => steady::measure(place, contender, *jobs, scale).await,
            Self::OpenLoop { contender } => open_loop::measure(place, contender, places, scale).await,
            Self::Degraded => Some(degraded::measure(place, places, scale).await),
            Self::Backlog => backlog::measure(place, places, scale).await,
            Self::Killed => degraded::kill(place).await,
        }
    }
}

fn bytes(size: usize) -> String {
    if size < 1_000 { format!("{size} B") } else { format!("{} kB", size / 1_000) }
}
