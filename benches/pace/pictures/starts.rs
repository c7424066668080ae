//! The starts of one run.

use crate::report::Pace;

/// The starts of one run in their order, with instants in intervals.
#[derive(Debug)]
pub(super) struct Starts {
    pub(super) all: Vec<Start>,
    /// The processes, in the order of their numbers.
    pub(super) processes: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Start {
    pub(super) process: u32,
    /// Since the first start, in intervals.
    pub(super) at: f64,
    /// Since the start before it, in intervals; the first start has none.
    pub(super) gap: Option<f64>,
}

impl Start {
    /// Whether it came so early after the one before it that it counts as close.
    pub(super) fn is_close(&self) -> bool {
        self.gap.is_some_and(|gap| gap < 0.9)
    }
}

impl Starts {
    /// None: there are too few to show anything.
    pub(super) fn of(pace: &Pace) -> Option<Self> {
        let mut sample = pace.sample.clone();
        sample.sort_by_key(|&(_, at)| at);
        let interval = pace.interval.max(1) as f64;
        let gaps = sample.windows(2).map(|pair| Some((pair[1].1 - pair[0].1) as f64 / interval));
        let gaps = std::iter::once(None).chain(gaps);
        let all: Vec<_> = sample
            .iter()
            .zip(gaps)
            .map(|(&(process, at), gap)| Start { process, at: at as f64 / interval, gap })
            .collect();
        let mut processes: Vec<_> = all.iter().map(|start| start.process).collect();
        processes.sort_unstable();
        processes.dedup();
        (all.len() > 10).then_some(Self { all, processes })
    }

    pub(super) fn gaps(&self) -> impl Iterator<Item = f64> + '_ {
        self.all.iter().filter_map(|start| start.gap)
    }

    pub(super) fn close(&self) -> usize {
        self.all.iter().filter(|start| start.is_close()).count()
    }

    /// The instant of the last start.
    pub(super) fn end(&self) -> f64 {
        self.all.last().map_or(0.0, |start| start.at)
    }

    /// Starts as a share of the slots that there were.
    pub(super) fn rate(&self) -> f64 {
        (self.all.len() - 1) as f64 / self.end().max(f64::MIN_POSITIVE)
    }

    /// When a process was killed, and which one if that can be seen: the one that stopped first, and by then.
    pub(super) fn kill(&self, pace: &Pace) -> Option<(f64, Option<u32>)> {
        let kill = pace.runs.first()?.kill.as_ref()?;
        let at = kill.at as f64 / pace.interval.max(1) as f64;
        let last = |process| self.all.iter().rev().find(|start| start.process == process);
        let lasts = self.processes.iter().filter_map(|&process| last(process));
        let silent = lasts.min_by(|one, other| one.at.total_cmp(&other.at));
        Some((at, silent.filter(|last| last.at <= at + 1.0).map(|last| last.process)))
    }
}
