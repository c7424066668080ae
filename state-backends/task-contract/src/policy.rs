//! Retries after runs that did not succeed.

use std::time::Duration;

use interval_queue_contract::{InvalidInput, Micros};
use serde::{Deserialize, Serialize};

use crate::{MAX_ATTEMPTS, MAX_DELAY, TaskId};

/// How often a task runs, and the waits in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Policy {
    /// Failures, including runs of dead workers, after which the task fails for good; 1 runs it at
    /// most once. Default: 5.
    pub max_attempts: u32,
    /// Requests to run again, which are no failures; one more fails the task. Default: 1,000.
    pub max_retries: u32,
    /// Wait after the first failure; doubles with each. Default: 10 s.
    pub backoff: Micros,
    /// Longest wait. Default: 1 h.
    pub max_backoff: Micros,
    /// Longest run, by the worker's clock. Default: unlimited.
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
    /// Sets `max_attempts`.
    #[must_use]
    pub fn max_attempts(self, max_attempts: u32) -> Self {
        Self { max_attempts, ..self }
    }

    /// Sets `max_retries`.
    #[must_use]
    pub fn max_retries(self, max_retries: u32) -> Self {
        Self { max_retries, ..self }
    }

    /// Sets the first and the longest wait after failures.
    #[must_use]
    pub fn backoff(self, first: Duration, longest: Duration) -> Self {
        Self { backoff: Micros::from_duration(first), max_backoff: Micros::from_duration(longest), ..self }
    }

    /// Sets the longest run.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout: Some(Micros::from_duration(timeout)), ..self }
    }

    pub(crate) fn check(&self) -> Result<(), InvalidInput> {
        PolicyOverride::from(*self).check()
    }

    /// The wait after this many failures: doubled with each up to the longest, less up to a fifth
    /// by task and attempt, to spread tasks that failed together.
    pub fn wait(&self, failures: u32, id: TaskId, attempt: u32) -> Micros {
        let doubled = 1u64.checked_shl(failures.saturating_sub(1)).unwrap_or(u64::MAX);
        let wait = (self.backoff * doubled).min(self.max_backoff);
        let mixed = mix(id.uuid().as_u128().wrapping_add(u128::from(attempt)) as u64);
        let off = u128::from(wait.get()) * u128::from(mixed >> 32) / (5 << 32);
        wait - Micros::new(off as u64)
    }
}

/// Parts of a policy that a task, or a [kind](crate::Settings::kinds), sets. `None`: at the time of
/// use, the kind's value, else the queue's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct PolicyOverride {
    /// [`Policy::max_attempts`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u32>,
    /// [`Policy::max_retries`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_retries: Option<u32>,
    /// [`Policy::backoff`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff: Option<Micros>,
    /// [`Policy::max_backoff`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_backoff: Option<Micros>,
    /// [`Policy::timeout`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Micros>,
}

impl From<Policy> for PolicyOverride {
    /// Sets all parts, except a timeout that is `None`.
    fn from(policy: Policy) -> Self {
        Self {
            max_attempts: Some(policy.max_attempts),
            max_retries: Some(policy.max_retries),
            backoff: Some(policy.backoff),
            max_backoff: Some(policy.max_backoff),
            timeout: policy.timeout,
        }
    }
}

impl PolicyOverride {
    /// Sets `max_attempts`.
    #[must_use]
    pub fn max_attempts(self, max_attempts: u32) -> Self {
        Self { max_attempts: Some(max_attempts), ..self }
    }

    /// Sets `max_retries`.
    #[must_use]
    pub fn max_retries(self, max_retries: u32) -> Self {
        Self { max_retries: Some(max_retries), ..self }
    }

    /// Sets the first and the longest wait after failures.
    #[must_use]
    pub fn backoff(self, first: Duration, longest: Duration) -> Self {
        let (first, longest) = (Micros::from_duration(first), Micros::from_duration(longest));
        Self { backoff: Some(first), max_backoff: Some(longest), ..self }
    }

    /// Sets the longest run.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout: Some(Micros::from_duration(timeout)), ..self }
    }

    /// Whether no part is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The policy in force over the kind's or queue's. If one backoff is set here, the other one of
    /// `base` is adjusted to it.
    pub fn over(&self, base: &Policy) -> Policy {
        let longest = || base.max_backoff.max(self.backoff.unwrap_or_default());
        let max_backoff = self.max_backoff.unwrap_or_else(longest);
        Policy {
            max_attempts: self.max_attempts.unwrap_or(base.max_attempts),
            max_retries: self.max_retries.unwrap_or(base.max_retries),
            backoff: self.backoff.unwrap_or(base.backoff).min(max_backoff),
            max_backoff,
            timeout: self.timeout.or(base.timeout),
        }
    }

    pub(crate) fn check(&self) -> Result<(), InvalidInput> {
        let wrong = |text: String| Err(InvalidInput::new(text));
        if let Some(attempts) = self.max_attempts.filter(|attempts| !(1..=MAX_ATTEMPTS).contains(attempts)) {
            return wrong(format!(
                "max attempts {attempts}: give 1 to {MAX_ATTEMPTS}; 1 runs it at most once"
            ));
        }
        if let Some(retries) = self.max_retries.filter(|&retries| retries > MAX_ATTEMPTS) {
            return wrong(format!("max retries {retries}: give 0 to {MAX_ATTEMPTS}"));
        }
        let longest = self.max_backoff.unwrap_or(MAX_DELAY);
        let backoff = self.backoff.unwrap_or_default();
        if longest > MAX_DELAY || backoff > longest {
            let (backoff, most) = (backoff.to_duration(), longest.to_duration());
            return wrong(format!(
                "backoff {backoff:?} up to {most:?}: the first wait is at most the longest, and that at most ten years"
            ));
        }
        match self.timeout {
            Some(Micros::ZERO) => wrong("timeout 0: give the run some time, or no time-out".into()),
            _ => Ok(()),
        }
    }
}

/// The finaliser of SplitMix64 (Steele, Lea and Flood, 2014): equal on every host.
pub(crate) fn mix(seed: u64) -> u64 {
    let mixed = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb)
}
