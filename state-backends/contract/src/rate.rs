//! Rates of a queue.

use std::{fmt, ops::Deref};

use serde::Serialize;
use tinyvec::ArrayVec;

use crate::{
    InvalidInput, Micros,
    limits::{check_burst, check_interval},
};

/// Maximum number of rates per queue.
pub const MAX_RATES: usize = 8;

/// A token bucket: it holds `burst` starts and gains one per `interval`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Rate {
    /// Time between two starts in the long run: 1 µs to 366 days.
    pub interval: Micros,
    /// Maximum number of starts at once, at least 1. With 1, starts are an interval apart.
    pub burst: u32,
}

impl Rate {
    /// One start per `interval`, never two at once.
    pub const fn every(interval: Micros) -> Self {
        Self { interval, burst: 1 }
    }

    /// Whether starts within this rate are always within `other`.
    pub fn implies(self, other: Self) -> bool {
        self.interval >= other.interval && self.burst <= other.burst
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "every {:?}", self.interval.to_duration())?;
        if self.burst > 1 { write!(f, " with bursts of {}", self.burst) } else { Ok(()) }
    }
}

/// The rates of a queue, 1 to [`MAX_RATES`], shortest interval first. All hold together.
///
/// A rate that another one [implies](Rate::implies) is left out. So a longer interval has a larger
/// burst, and only the first rate can be without bursts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct Rates(ArrayVec<[Rate; MAX_RATES]>);

impl Rates {
    /// One start per `interval`, never two at once.
    pub fn every(interval: Micros) -> Self {
        let mut rates = Self::default();
        rates.0.push(Rate::every(interval));
        rates
    }

    /// These rates together.
    ///
    /// # Errors
    ///
    /// No rate, more than [`MAX_RATES`], or one out of range; the error names it.
    pub fn of(wanted: impl IntoIterator<Item = Rate>) -> Result<Self, InvalidInput> {
        let wanted: Vec<_> = wanted.into_iter().collect();
        if wanted.len() > MAX_RATES {
            let text = format!("{} rates: a queue has at most {MAX_RATES}", wanted.len());
            return Err(InvalidInput::new(text));
        }
        let mut rates = Self::default();
        for rate in &wanted {
            let rules = wanted.iter().all(|other| other == rate || !other.implies(*rate));
            if rules && !rates.contains(rate) {
                rates.0.push(*rate);
            }
        }
        rates.0.sort_unstable();
        rates.check().map(|()| rates)
    }

    /// Another rate that implies `rate`, which then has no effect.
    pub fn that_implies(&self, rate: Rate) -> Option<Rate> {
        self.iter().copied().find(|other| *other != rate && other.implies(rate))
    }

    /// The longest interval.
    pub fn longest(&self) -> Micros {
        self.last().map_or(Micros::ZERO, |rate| rate.interval)
    }

    pub(crate) fn raw(rates: impl Iterator<Item = Rate>) -> Self {
        Self(rates.take(MAX_RATES).collect())
    }

    pub(crate) fn check(&self) -> Result<(), InvalidInput> {
        if self.is_empty() {
            return Err(InvalidInput::new("a queue without a rate: give it an interval"));
        }
        for rate in self.iter() {
            check_interval(rate.interval)?;
            check_burst(*rate)?;
        }
        let apart = |pair: &[Rate]| pair[0].interval < pair[1].interval && pair[0].burst < pair[1].burst;
        if !self.windows(2).all(apart) {
            return Err(InvalidInput::new(format!(
                "of the rates {self} one implies another: leave that out"
            )));
        }
        Ok(())
    }
}

impl Deref for Rates {
    type Target = [Rate];

    fn deref(&self) -> &[Rate] {
        &self.0
    }
}

impl fmt::Display for Rates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, rate) in self.iter().enumerate() {
            f.write_str(if n > 0 { ", and " } else { "" })?;
            rate.fmt(f)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(interval: u64, burst: u32) -> Rate {
        Rate { interval: Micros::new(interval), burst }
    }

    #[test]
    fn a_rate_implied_by_another_is_left_out() {
        let of = |rates: &[Rate]| Rates::of(rates.iter().copied()).unwrap().to_vec();
        assert_eq!(of(&[rate(9, 30), rate(5, 20)]), [rate(5, 20), rate(9, 30)]);
        assert_eq!(of(&[rate(5, 20), rate(5, 20)]), [rate(5, 20)]);
        assert_eq!(of(&[rate(5, 20), rate(9, 20), rate(9, 21)]), [rate(9, 20)]);
        assert_eq!(of(&[rate(5, 1), rate(9, 1), rate(7, 1)]), [rate(9, 1)]);
        assert_eq!(Rates::every(Micros::new(9)).that_implies(rate(5, 20)), Some(rate(9, 1)));
    }

    #[test]
    fn invalid_rates_are_rejected() {
        let error = |rates: &[Rate]| Rates::of(rates.iter().copied()).unwrap_err().to_string();
        assert!(error(&[]).contains("interval"));
        assert!(error(&[rate(0, 1)]).contains("interval 0"));
        assert!(error(&[rate(5, 0)]).contains("burst 0"));
        assert!(error(&[rate(86_400_000_000, 367)]).contains("burst 367"));
        assert!(error(&(1..=9).map(|n| rate(n.into(), n)).collect::<Vec<_>>()).contains("9 rates"));
    }
}
