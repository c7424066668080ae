//! What a run's notes amount to.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    notes::{Log, Start},
    order::inversions,
    report::{Kill, Run, Spread},
};

/// What is known of a run when it is over. Instants are nanoseconds on the monotonic clock.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    /// In microseconds.
    pub(crate) interval: u64,
    /// How many jobs each worker had.
    pub(crate) jobs_each: u64,
    pub(crate) logs: Vec<Log>,
    /// What both clocks showed before and after.
    pub(crate) clocks: Clocks,
    /// How much of the time of all processors was used, by whomever.
    pub(crate) busy: Option<f64>,
    pub(crate) cores: u32,
    /// What the server used of the processor, in microseconds.
    pub(crate) server_cpu: Option<f64>,
    pub(crate) killed: Option<Killed>,
}

/// A worker that was killed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Killed {
    pub(crate) worker: usize,
    pub(crate) at: u64,
    /// How many jobs it had offered.
    pub(crate) offered: u64,
    /// When its lease ended, in microseconds on the wall clock; none: it has none.
    pub(crate) lease_end: Option<u64>,
}

/// What the monotonic and the wall clock showed, at two instants.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Clocks {
    pub(crate) before: (u64, u64),
    pub(crate) after: (u64, u64),
}

impl Clocks {
    /// The monotonic instant for one of the wall clock in microseconds. In between the clocks drift evenly.
    fn monotonic(&self, wall: u64) -> f64 {
        let ((monotonic, wall_before), (monotonic_after, wall_after)) = (self.before, self.after);
        let since = wall as f64 * 1000.0 - wall_before as f64;
        let took = wall_after.saturating_sub(wall_before) as f64;
        let pace = if took > 0.0 { (monotonic_after - monotonic) as f64 / took } else { 1.0 };
        monotonic as f64 + since * pace
    }
}

impl Facts {
    /// All starts, in the order of time, with their workers.
    pub(crate) fn starts(&self) -> Vec<(usize, Start)> {
        let logs = self.logs.iter().enumerate();
        let mut starts: Vec<_> =
            logs.flat_map(|(worker, log)| log.starts.iter().map(move |start| (worker, *start))).collect();
        starts.sort_by_key(|(_, start)| start.started);
        starts
    }

    /// What the report says of the run.
    pub(crate) fn analyse(&self) -> Run {
        let all = self.starts();
        let starts: Vec<Start> = all.iter().map(|(_, start)| *start).collect();
        let instants: Vec<u64> = starts.iter().map(|start| start.started).collect();
        let gaps: Vec<f64> = instants.windows(2).map(|pair| micros(pair[1] - pair[0])).collect();
        let close = gaps.iter().filter(|gap| **gap < 0.9 * self.interval as f64).count() as u64;
        let (mut lost, mut twice) = (0, 0);
        for (worker, log) in self.logs.iter().enumerate() {
            let different: BTreeSet<u64> = log.starts.iter().map(|start| start.job).collect();
            twice += log.starts.len() as u64 - different.len() as u64;
            if !self.is_killed(worker) {
                lost += self.jobs_each.saturating_sub(different.len() as u64);
            }
        }
        Run {
            started: starts.len() as u64,
            lost,
            twice,
            rate: self.rate(&instants).unwrap_or(0.0),
            gaps: spread(gaps).unwrap_or_default(),
            close,
            inversions: inversions(&starts),
            lateness: self.lateness(),
            closest_slots: self.closest_slots(),
            operations: self.per_start(|log| log.operations.map(|count| count as f64)),
            cpu: self.per_start(|log| log.cpu.map(micros)),
            server_cpu: self.server_cpu.map(|cpu| cpu / starts.len().max(1) as f64),
            others: self.others(),
            waited: spread(starts.iter().map(|start| micros(start.started.saturating_sub(start.called)))),
            kill: self.killed.as_ref().map(|killed| self.kill(killed, &instants)),
        }
    }

    fn is_killed(&self, worker: usize) -> bool {
        self.killed.is_some_and(|killed| killed.worker == worker)
    }

    /// The rate between the first and the last of some instants, as a part of the nominal one.
    fn rate(&self, instants: &[u64]) -> Option<f64> {
        let (first, last) = (instants.first()?, instants.last()?);
        (last > first).then(|| (instants.len() - 1) as f64 * self.interval_nanos() / (last - first) as f64)
    }

    fn interval_nanos(&self) -> f64 {
        self.interval as f64 * 1000.0
    }

    /// How much of something the workers that tell it used for each of their starts.
    fn per_start(&self, of: impl Fn(&Log) -> Option<f64>) -> Option<f64> {
        let told = self.logs.iter().filter_map(|log| Some((of(log)?, log.starts.len())));
        let (sum, starts) = told.fold((0.0, 0), |all, one| (all.0 + one.0, all.1 + one.1));
        (starts > 0).then(|| sum / starts as f64)
    }

    /// What neither the workers nor the server used of the processors. What a killed worker used, nobody
    /// knows.
    fn others(&self) -> Option<f64> {
        let took = self.clocks.after.0.saturating_sub(self.clocks.before.0) as f64 * f64::from(self.cores);
        let workers: u64 = self.logs.iter().filter_map(|log| log.cpu).sum();
        let ours = workers as f64 + self.server_cpu.unwrap_or(0.0) * 1000.0;
        self.busy.filter(|_| took > 0.0).map(|busy| (busy - ours / took).max(0.0))
    }

    /// From the slots, which are on the wall clock, to the starts for which they were used.
    fn lateness(&self) -> Option<Spread> {
        let mut all = Vec::new();
        for log in &self.logs {
            // A ticket that was granted twice gave its first slot up.
            let used: BTreeMap<u64, u64> =
                log.grants.iter().map(|grant| (grant.ticket, grant.slot)).collect();
            let mut slots: Vec<u64> = used.into_values().collect();
            slots.sort_unstable();
            let mut starts: Vec<u64> = log.starts.iter().map(|start| start.started).collect();
            starts.sort_unstable();
            if starts.len() > slots.len() {
                return None;
            }
            let pairs = starts.iter().zip(&slots);
            all.extend(pairs.map(|(start, slot)| (*start as f64 - self.clocks.monotonic(*slot)) / 1000.0));
        }
        spread(all)
    }

    fn closest_slots(&self) -> Option<u64> {
        let granted = self.logs.iter().flat_map(|log| &log.grants).map(|grant| (grant.slot, grant.ticket));
        // A slot that is granted again after a lost reply is the same.
        let slots: Vec<u64> = granted.collect::<BTreeSet<_>>().into_iter().map(|(slot, _)| slot).collect();
        slots.windows(2).map(|pair| pair[1] - pair[0]).min()
    }

    /// Slots are counted along a grid that runs on from the last start before the kill.
    fn kill(&self, killed: &Killed, starts: &[u64]) -> Kill {
        let interval = self.interval_nanos();
        let (first, last) = (starts.first().copied().unwrap_or(0), starts.last().copied().unwrap_or(0));
        let end = killed.lease_end.map_or(last as f64, |end| self.clocks.monotonic(end));
        let before = starts.partition_point(|start| *start <= killed.at);
        let until = starts.partition_point(|start| *start as f64 <= end);
        let last_before = before.checked_sub(1).map_or(first, |index| starts[index]);
        let meanwhile = until.saturating_sub(before);

        let after = &starts[until.min(starts.len())..];
        // Whole slots between the end of the lease and the next start.
        let idle = after.first().map_or(0.0, |next| ((*next as f64 - end) / interval).floor().max(0.0));
        let next = after.first().copied().unwrap_or(last) as f64 - idle * interval;
        let passed =
            ((next - last_before as f64) / interval).round() - f64::from(u8::from(!after.is_empty()));
        let slots_lost = passed as i64 - meanwhile as i64;
        let rate_after = after.len().checked_sub(1).filter(|gaps| *gaps > 0).map(|gaps| {
            let took = (last - after[0]) as f64 + idle * interval;
            gaps as f64 * interval / took
        });
        Kill {
            waiting: killed.offered.saturating_sub(self.logs[killed.worker].starts.len() as u64),
            at: (killed.at.saturating_sub(first)) / 1000,
            lease: ((end - killed.at as f64) / 1000.0).max(0.0) as u64,
            slots_lost,
            own_slots: killed.lease_end.map(|end| self.own_slots(killed, end)),
            rate_during: (passed > 0.0).then(|| meanwhile as f64 / passed),
            rate_after,
        }
    }

    /// How many tickets that nobody was granted lie between the last one before the kill and the last one
    /// before `end`.
    fn own_slots(&self, killed: &Killed, end: u64) -> u64 {
        let grants: Vec<_> = self.logs.iter().flat_map(|log| &log.grants).collect();
        let highest = |is_before: &dyn Fn(u64) -> bool| {
            grants.iter().filter(|grant| is_before(grant.slot)).map(|grant| grant.ticket).max().unwrap_or(0)
        };
        let from = highest(&|slot| self.clocks.monotonic(slot) <= killed.at as f64);
        let to = highest(&|slot| slot <= end);
        let range = from + 1..=to.max(from);
        let granted: BTreeSet<u64> =
            grants.iter().map(|grant| grant.ticket).filter(|ticket| range.contains(ticket)).collect();
        (to.max(from) - from) - granted.len() as u64
    }
}

fn micros(nanos: u64) -> f64 {
    nanos as f64 / 1000.0
}

/// The figures of a distribution, none of an empty one. A percentile is the nearest value.
pub(crate) fn spread(values: impl IntoIterator<Item = f64>) -> Option<Spread> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    let at = |part: f64| values.get((part * values.len().checked_sub(1)? as f64).round() as usize).copied();
    Some(Spread { min: at(0.0)?, p1: at(0.01)?, p50: at(0.5)?, p99: at(0.99)?, max: at(1.0)? })
}
