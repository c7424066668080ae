//! Limits on the tasks that a worker leases while its host is busy.

use std::{
    fmt, fs,
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use interval_queue::InvalidInput;
use interval_queue_task_contract::{ABOVE_ALL, MAX_PRIORITY};

use crate::error::Error;

const READ_INTERVAL: Duration = Duration::from_secs(1);

/// Limits the priorities that a worker leases under load. Above each level, tasks below its
/// priority wait for another worker or for less load ([`Why::Load`](crate::Why::Load)). Runs go on.
///
/// ```
/// use interval_queue_tasks::Load;
///
/// // Above half of what the host can do only tasks of priority 0 and higher, above 95 % nothing.
/// let load = Load::system().above(0.5, 0).above(0.8, 5).nothing_above(0.95);
/// ```
#[derive(Clone)]
#[must_use]
pub struct Load {
    measure: Measure,
    /// Each load with the least priority above it.
    levels: Vec<(f64, i32)>,
}

#[derive(Clone)]
enum Measure {
    Given(Arc<dyn Fn() -> f64 + Send + Sync>),
    System(Arc<Mutex<Option<(Instant, f64)>>>),
}

impl Load {
    /// Uses the application's own measure: 0.0 is idle, 1.0 is full load, more is possible. It is
    /// called before each poll, so it must be quick. NaN means unknown and counts as idle.
    pub fn measured_by(measure: impl Fn() -> f64 + Send + Sync + 'static) -> Self {
        Self { measure: Measure::Given(Arc::new(measure)), levels: Vec::new() }
    }

    /// Uses the system's load: the one-minute load average divided by the number of processors.
    /// Linux only: it is read from `/proc/loadavg`.
    pub fn system() -> Self {
        Self { measure: Measure::System(Arc::default()), levels: Vec::new() }
    }

    /// Above `load` (0 or more), leases only tasks with at least this priority. The highest
    /// exceeded level applies.
    pub fn above(mut self, load: f64, at_least: i32) -> Self {
        self.levels.push((load, at_least));
        self
    }

    /// Leases no task above this load.
    pub fn nothing_above(self, load: f64) -> Self {
        self.above(load, ABOVE_ALL)
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        let wrong = |text: String| Err(Error::from(InvalidInput::new(text)));
        let mut levels = self.levels.clone();
        levels.sort_by(|one, other| one.0.total_cmp(&other.0));
        if levels.is_empty() {
            return wrong("a load without levels holds nothing back: give at least one level".into());
        }
        for &(load, at_least) in &levels {
            if !load.is_finite() || load < 0.0 {
                return wrong(format!("load {load}: give 0 or more, where 1 is as much as there may be"));
            }
            if !(-MAX_PRIORITY..=ABOVE_ALL).contains(&at_least) {
                return wrong(format!(
                    "priority {at_least} above load {load}: give -{MAX_PRIORITY} to {MAX_PRIORITY}"
                ));
            }
        }
        for pair in levels.windows(2) {
            let ((low, less), (high, more)) = (pair[0], pair[1]);
            if low == high {
                return wrong(format!("load {low} is given twice: give each level once"));
            }
            if more < less {
                let text = format!(
                    "above load {high} priority {more} is taken, and above {low} only {less}: turn them round"
                );
                return wrong(text);
            }
        }
        match &self.measure {
            Measure::System(_) if system().is_none() => wrong(
                "the load of this system cannot be read from /proc/loadavg: measure it in another way".into(),
            ),
            _ => Ok(()),
        }
    }

    /// `None`: any.
    pub(super) fn at_least(&self, now: Instant) -> Option<i32> {
        let load = match &self.measure {
            Measure::Given(measure) => measure(),
            Measure::System(last) => {
                let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
                match *last {
                    Some((at, load)) if now.saturating_duration_since(at) < READ_INTERVAL => load,
                    _ => last.insert((now, system().unwrap_or(f64::NAN))).1,
                }
            }
        };
        self.levels.iter().filter(|(above, _)| load > *above).map(|&(_, least)| least).max()
    }
}

fn system() -> Option<f64> {
    let average: f64 = fs::read_to_string("/proc/loadavg").ok()?.split(' ').next()?.parse().ok()?;
    let processors = thread::available_parallelism().map_or(1, usize::from);
    Some(average / processors as f64)
}

impl fmt::Debug for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Load").field("levels", &self.levels).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::disallowed_methods, reason = "any instant will do")]
    fn the_highest_level_that_is_exceeded_counts() {
        let at = |load| Load::measured_by(move || load).above(0.8, 5).nothing_above(0.95).above(0.5, 0);
        let now = Instant::now();
        let least = |load| at(load).at_least(now);
        assert!(at(0.0).check().is_ok());
        assert_eq!([0.0, 0.5, f64::NAN].map(least), [None; 3]);
        assert_eq!([0.51, 0.8, 0.9, 7.0].map(least), [Some(0), Some(0), Some(5), Some(ABOVE_ALL)]);
    }

    #[test]
    fn invalid_loads_are_rejected() {
        let load = || Load::measured_by(|| 0.0);
        for (wrong, says) in [
            (load(), "without levels"),
            (load().above(f64::NAN, 0), "load NaN"),
            (load().above(-1.0, 0), "load -1"),
            (load().above(0.5, 200), "priority 200"),
            (load().above(0.5, 0).above(0.5, 1), "given twice"),
            (load().nothing_above(0.5).above(0.9, 1), "turn them round"),
        ] {
            let error = wrong.check().unwrap_err().to_string();
            assert!(error.contains(says), "{error} says nothing of {says}");
        }
    }
}
