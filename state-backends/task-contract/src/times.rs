//! How long tasks waited and ran: counted by kind, hour and length.

use std::{ops::AddAssign, time::Duration};

use interval_queue_contract::Micros;
use serde::Serialize;

/// How long an hour of them is kept: a week.
pub const KEEP_TIMES: Micros = Micros::from_millis(7 * 24 * 3_600_000);

/// How many lengths are told apart.
pub const LENGTHS: usize = 32;

const HOUR: u64 = 3_600_000_000;

/// What is measured of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Span {
    /// From the adding of its task, or from the time that it waited for if that is later, to its lease.
    Wait,
    /// From its lease until the store heard how it ended.
    Run,
}

/// One number of many: how many spans of an hour had such a length, or how long all of them were.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Took {
    /// The hour, counted from 1970.
    pub hour: u32,
    /// The place among the numbers of the hour: for each [`Span`] those of the lengths, and behind them the sum of all
    /// in milliseconds.
    pub cell: u8,
}

impl Took {
    /// The hour of this instant.
    pub fn hour_of(at: Micros) -> u32 {
        u32::try_from(at.get() / HOUR).unwrap_or(u32::MAX)
    }

    /// What a span adds that ended then, and how much of it.
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

    /// Its name in stores.
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

/// Spans by their lengths.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Histogram {
    /// How many were shorter than a millisecond; behind it, how many were shorter than 2, 4, 8 … milliseconds and not
    /// counted before. The last ones are longer than 12 days.
    pub counts: [u64; LENGTHS],
    /// How long all of them were.
    pub total: Micros,
}

impl Histogram {
    /// How many there were.
    pub fn number(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// How long they were on the average, as far as whole milliseconds tell; none: there were none.
    pub fn mean(&self) -> Option<Duration> {
        self.total.get().checked_div(self.number()).map(Duration::from_micros)
    }

    /// How long this share of them was at most, from 0 to 1: 0.5 gives the median. It is the next power of two
    /// milliseconds, so up to twice as long as the true one; none: there were none.
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        let number = self.number();
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a count")]
        let retained = ((number as f64 * share.clamp(0.0, 1.0)).ceil() as u64).clamp(1, number.max(1));
        let mut seen = 0;
        let place = self.counts.iter().position(|&count| {
            seen += count;
            seen >= retained
        })?;
        Some(Duration::from_millis(1 << place))
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

/// How long the runs of one kind waited and took in one hour: each in the hour in which it was leased, or ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Times {
    /// When the hour began.
    pub hour: Micros,
    /// How long they waited.
    pub wait: Histogram,
    /// How long they took.
    pub run: Histogram,
}

impl Times {
    /// The hours that these numbers tell of, in their order.
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

/// Of all of them together; its hour is the first.
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
