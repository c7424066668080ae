//! How long tasks waited and ran: counts by kind, hour and length.

use std::{ops::AddAssign, time::Duration};

use interval_queue_contract::Micros;
use serde::Serialize;

/// How long the numbers of an hour are kept: a week.
pub const KEEP_TIMES: Micros = Micros::from_millis(7 * 24 * 3_600_000);

/// The number of length classes.
pub const LENGTHS: usize = 32;

const HOUR: u64 = 3_600_000_000;

/// A measured span of a task's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Span {
    /// From adding, or `not_before` if later, to the lease.
    Wait,
    /// From the lease until the store received the end.
    Run,
}

/// The key of a stored number: a count of spans of one length class in one hour, or the sum of
/// their lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Took {
    /// Hours since 1970.
    pub hour: u32,
    /// Index within the hour: for each [`Span`] the counts by length class, then the sum of lengths
    /// in milliseconds.
    pub cell: u8,
}

impl Took {
    /// The hour of this instant.
    pub fn hour_of(at: Micros) -> u32 {
        u32::try_from(at.get() / HOUR).unwrap_or(u32::MAX)
    }

    /// The count and the sum that a span ended at `end` adds to, and by how much.
    pub fn of(span: Span, length: Micros, end: Micros) -> [(Self, u64); 2] {
        let ms = length.get() / 1_000;
        let hour = Self::hour_of(end);
        let first = first_cell(span);
        let length = (u64::BITS - ms.leading_zeros()).min(LENGTHS as u32 - 1);
        [length, LENGTHS as u32].map(|place| {
            let cell = first + u8::try_from(place).unwrap_or(u8::MAX);
            (Self { hour, cell }, if place == LENGTHS as u32 { ms } else { 1 })
        })
    }

    /// Name in stores.
    pub fn name(self) -> String {
        format!("took {} {}", self.hour, self.cell)
    }
}

fn first_cell(span: Span) -> u8 {
    match span {
        Span::Wait => 0,
        Span::Run => LENGTHS as u8 + 1,
    }
}

/// Spans counted by length.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Histogram {
    /// The first counts spans below 1 ms; number n those from 2^(n-1) up to 2^n ms. The last has no
    /// upper bound: from 12 days on.
    pub counts: [u64; LENGTHS],
    /// The sum of all lengths.
    pub total: Micros,
}

impl Histogram {
    /// The number of spans.
    pub fn number(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Mean length, to the millisecond. `None`: no spans.
    pub fn mean(&self) -> Option<Duration> {
        self.total.get().checked_div(self.number()).map(Duration::from_micros)
    }

    /// Upper bound of this share of the lengths, 0 to 1: 0.5 gives the median. A power of two
    /// milliseconds, so up to twice the true value. `None`: no spans.
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        let number = self.number();
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a count")]
        let rank = ((number as f64 * share.clamp(0.0, 1.0)).ceil() as u64).clamp(1, number.max(1));
        let mut seen = 0;
        let index = self.counts.iter().position(|&count| {
            seen += count;
            seen >= rank
        })?;
        Some(Duration::from_millis(1 << index))
    }
}

impl AddAssign<&Histogram> for Histogram {
    fn add_assign(&mut self, other: &Histogram) {
        for (count, more) in self.counts.iter_mut().zip(other.counts) {
            *count += more;
        }
        self.total = self.total + other.total;
    }
}

/// How long runs of one kind waited and took in one hour, in which they were leased or ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Times {
    /// When the hour began.
    pub hour: Micros,
    /// From adding to lease.
    pub wait: Histogram,
    /// From lease to end.
    pub run: Histogram,
}

impl Times {
    /// Groups stored numbers by hour, in order.
    pub fn of(mut numbers: Vec<(Took, u64)>) -> Vec<Self> {
        numbers.sort_unstable();
        let mut all: Vec<Self> = Vec::new();
        for (took, number) in numbers {
            let hour = Micros::new(u64::from(took.hour) * HOUR);
            if all.last().is_none_or(|last| last.hour != hour) {
                all.push(Self { hour, ..Self::default() });
            }
            let Some(times) = all.last_mut() else { continue };
            let (of, place) = match took.cell.checked_sub(first_cell(Span::Run)) {
                Some(place) => (&mut times.run, place),
                None => (&mut times.wait, took.cell),
            };
            match of.counts.get_mut(usize::from(place)) {
                Some(count) => *count += number,
                None => of.total = of.total + Micros::new(number.saturating_mul(1_000)),
            }
        }
        all
    }
}

/// Adds the spans; the hour stays.
impl AddAssign<&Times> for Times {
    fn add_assign(&mut self, other: &Times) {
        self.wait += &other.wait;
        self.run += &other.run;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(spans: &[(Span, u64)]) -> Vec<Times> {
        let end = Micros::new(HOUR * 10 + 5);
        Times::of(spans.iter().flat_map(|&(span, us)| Took::of(span, Micros::new(us), end)).collect())
    }

    #[test]
    fn a_length_is_counted_below_the_next_power_of_two() {
        for (us, place) in [
            (0, 0),
            (999, 0),
            (1_000, 1),
            (1_999, 1),
            (2_000, 2),
            (3_999, 2),
            (4_000, 3),
            (u64::MAX >> 11, LENGTHS - 1),
        ] {
            for span in [Span::Wait, Span::Run] {
                let all = times(&[(span, us)]);
                let [one] = all.as_slice() else { panic!("{all:?}") };
                let (of, other) =
                    if span == Span::Wait { (&one.wait, &one.run) } else { (&one.run, &one.wait) };
                assert_eq!(of.counts[place], 1, "{us} µs: {of:?}");
                assert_eq!((of.number(), other.number()), (1, 0));
                assert_eq!(of.total.get() / 1_000, us / 1_000);
                assert_eq!(one.hour, Micros::new(HOUR * 10));
            }
        }
    }

    #[test]
    fn quantiles_and_the_mean_are_those_of_all() {
        let lengths: Vec<_> = (1..=100).map(|ms| (Span::Run, ms * 1_000)).collect();
        let all = times(&lengths);
        let run = &all[0].run;
        let ms = |ms| Some(Duration::from_millis(ms));
        assert_eq!((run.quantile(0.0), run.quantile(0.5), run.quantile(1.0)), (ms(2), ms(64), ms(128)));
        assert_eq!(run.mean(), Some(Duration::from_micros(50_500)));
        assert_eq!((all[0].wait.quantile(0.5), all[0].wait.mean()), (None, None));
        let mut sum = all[0].clone();
        sum += &all[0];
        assert_eq!((sum.run.number(), sum.run.mean()), (200, run.mean()));
    }
}
