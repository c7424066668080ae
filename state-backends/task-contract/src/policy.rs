//! What becomes of a run that did not end well.

use std::time::Duration;

use interval_queue_contract::{InvalidInput, Micros};
use serde::{Deserialize, Serialize};

use crate::{MAX_ATTEMPTS, MAX_DELAY, TaskId};

/// How often a task is run, and how long it waits in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Policy {
    /// Failures after which the task has failed; 1 is at most once. Runs of workers that died count. Default: 5.
    pub max_attempts: u32,
    /// How often a run may ask to be run again, which is no failure. Default: 1,000.
    pub max_retries: u32,
    /// The wait after the first failure; it doubles with each. Default: 10 s.
    pub backoff: Micros,
    /// The longest wait. Default: 1 h.
    pub max_backoff: Micros,
    /// How long a run may take, by its worker's clock. Default: any time.
    pub timeout: Option<Micros>,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            max_attempts: 5,
            max_retries: 1_000,
            backoff: Micros::from_millis(10_000),
            max_backoff: Micros::from_millis(3_600_000),
            timeout: None,
        }
    }
}

impl Policy {
    /// The same with so many attempts.
    #[must_use]
    pub fn max_attempts(self, max_attempts: u32) -> Self {
        Self { max_attempts, ..self }
    }

    /// The same with so many retries that are no failures.
    #[must_use]
    pub fn max_retries(self, max_retries: u32) -> Self {
        Self { max_retries, ..self }
    }

    /// The same with this wait after the first failure, doubled with each up to the longest.
    #[must_use]
    pub fn backoff(self, first: Duration, longest: Duration) -> Self {
        Self { backoff: Micros::from_duration(first), max_backoff: Micros::from_duration(longest), ..self }
    }

    /// The same with so much time for a run.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout: Some(Micros::from_duration(timeout)), ..self }
    }

    pub(crate) fn check(&self) -> Result<(), InvalidInput> {
        let wrong = |text: String| Err(InvalidInput::new(text));
        if !(1..=MAX_ATTEMPTS).contains(&self.max_attempts) {
            return wrong(format!(
                "max attempts {}: give 1 to {MAX_ATTEMPTS}; 1 runs it at most once",
                self.max_attempts
            ));
        }
        if self.max_retries > MAX_ATTEMPTS {
            return wrong(format!("max retries {}: give 0 to {MAX_ATTEMPTS}", self.max_retries));
        }
        if self.max_backoff > MAX_DELAY || self.backoff > self.max_backoff {
            let (backoff, most) = (self.backoff.to_duration(), self.max_backoff.to_duration());
            return wrong(format!(
                "backoff {backoff:?} up to {most:?}: the first wait is at most the longest, and that at most ten years"
            ));
        }
        match self.timeout {
            Some(Micros::ZERO) => wrong("timeout 0: give the run some time, or no time-out".into()),
            _ => Ok(()),
        }
    }

    /// The wait after so many failures: it doubles with each, up to the longest, and a fifth of it at most is taken
    /// off, as the task and the number of its runs say, so that what failed together does not come back together.
    pub fn wait(&self, failures: u32, id: TaskId, attempt: u32) -> Micros {
        let doubled = 1u64.checked_shl(failures.saturating_sub(1)).unwrap_or(u64::MAX);
        let wait = (self.backoff * doubled).min(self.max_backoff);
        let mixed = mix(id.uuid().as_u128().wrapping_add(u128::from(attempt)) as u64);
        let off = u128::from(wait.get()) * u128::from(mixed >> 32) / (5 << 32);
        wait - Micros::new(off as u64)
    }
}

/// As good as random, and the same wherever it is computed: the finaliser of SplitMix64 (Steele, Lea and Flood, 2014).
pub(crate) fn mix(seed: u64) -> u64 {
    let mixed = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb)
}
