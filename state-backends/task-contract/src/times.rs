//! How long tasks waited and ran, and how many were added and ended: counts by kind and hour.

use std::{ops::AddAssign, time::Duration};

use interval_queue_contract::Micros;
use serde::Serialize;

/// Retention of the numbers of an hour: a week.
pub const KEEP_TIMES: Micros = Micros::from_millis(7 * 24 * 3_600_000);

/// Retention of the numbers of a day: 400 days.
pub const KEEP_DAYS: Micros = Micros::from_millis(400 * 24 * 3_600_000);

/// The number of length classes.
pub const LENGTHS: usize = 32;

const HOUR: u64 = 3_600_000_000;
const DAY: u64 = 24 * HOUR;

/// A measured span of a task's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Span {
    /// From adding, or `not_before` if later, to the lease.
    Wait,
    /// From the lease until the store received the end.
    Run,
}

/// An event that is counted by hour and day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Occurrence {
    /// A task was added.
    Added,
    /// A task is done.
    Done,
    /// A task has failed for good.
    Failed,
    /// A task was cancelled.
    Cancelled,
    /// A run has failed, or asked to run again, and its task runs again.
    Retried,
}

impl Occurrence {
    /// The number of events.
    pub const COUNT: u8 = 5;

    fn of_cell(cell: u8, first: u8) -> Option<Self> {
        let all = [Self::Added, Self::Done, Self::Failed, Self::Cancelled, Self::Retried];
        all.get(usize::from(cell.checked_sub(first)?)).copied()
    }
}

const EVENTS: u8 = first_cell(Span::Run) + LENGTHS as u8 + 1;
const DAY_EVENTS: u8 = EVENTS + Occurrence::COUNT;

/// The key of a stored number: spans of one length class in one hour, the sum of their lengths, or
/// events in an hour or a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Took {
    /// Hours since 1970; of a day, its first hour.
    pub hour: u32,
    /// Index within the hour: for each [`Span`] the counts by length class, then the sum of lengths
    /// in milliseconds; then the counts of [events](Occurrence) in the hour, then in the day.
    pub cell: u8,
}

impl Took {
    /// The hour of this instant.
    pub fn hour_of(at: Micros) -> u32 {
        u32::try_from(at.get() / HOUR).unwrap_or(u32::MAX)
    }

    /// The count and the sum to which a span adds that ended at `end`, with the amounts.
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

    /// The count of an event.
    pub fn occurrence(occurrence: Occurrence, at: Micros) -> Self {
        Self { hour: Self::hour_of(at), cell: EVENTS + occurrence as u8 }
    }

    /// The cells of an hour's events: the first, and the first after them. A day's follow.
    pub const EVENT_CELLS: (u8, u8) = (EVENTS, DAY_EVENTS);

    /// The count of the day to which an hour's count is added once the hour is forgotten. `None`:
    /// another number.
    pub fn of_day(self) -> Option<Self> {
        let cell = (EVENTS..DAY_EVENTS).contains(&self.cell).then_some(self.cell + Occurrence::COUNT)?;
        Some(Self { hour: self.hour / 24 * 24, cell })
    }

    /// Whether it is a count of a day.
    pub fn is_of_day(self) -> bool {
        self.cell >= DAY_EVENTS
    }

    /// Name in stores.
    pub fn name(self) -> String {
        format!("took {} {}", self.hour, self.cell)
    }
}

const fn first_cell(span: Span) -> u8 {
    match span {
        Span::Wait => 0,
        Span::Run => LENGTHS as u8 + 1,
    }
}

/// Spans counted by length.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Histogram {
    /// The first counts spans below 1 ms; number n from 2^(n-1) up to 2^n ms; the last from 12 days
    /// on.
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
    /// milliseconds, up to twice the true value. `None`: no spans.
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

/// Tasks of a kind that were added and have ended within an hour or a day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Throughput {
    /// Added tasks.
    pub added: u64,
    /// Tasks that are done.
    pub done: u64,
    /// Tasks that have failed for good.
    pub failed: u64,
    /// Tasks that were cancelled.
    pub cancelled: u64,
    /// Runs after which their task runs again: failed ones, and those that asked for it.
    pub retried: u64,
}

impl Throughput {
    fn add(&mut self, occurrence: Occurrence, number: u64) {
        let count = match occurrence {
            Occurrence::Added => &mut self.added,
            Occurrence::Done => &mut self.done,
            Occurrence::Failed => &mut self.failed,
            Occurrence::Cancelled => &mut self.cancelled,
            Occurrence::Retried => &mut self.retried,
        };
        *count += number;
    }
}

impl AddAssign<&Throughput> for Throughput {
    fn add_assign(&mut self, other: &Throughput) {
        self.added += other.added;
        self.done += other.done;
        self.failed += other.failed;
        self.cancelled += other.cancelled;
        self.retried += other.retried;
    }
}

/// The events of one kind in one day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Day {
    /// When the day began, in UTC.
    pub day: Micros,
    /// The numbers of tasks.
    pub throughput: Throughput,
}

impl Day {
    /// Groups stored numbers by day, in order. A day may have hours that are still kept.
    pub fn of(mut numbers: Vec<(Took, u64)>) -> Vec<Self> {
        numbers.sort_unstable();
        let mut all: Vec<Self> = Vec::new();
        for (took, number) in numbers {
            let of_hour = Occurrence::of_cell(took.cell, EVENTS);
            let Some(occurrence) = of_hour.or(Occurrence::of_cell(took.cell, DAY_EVENTS)) else { continue };
            let day = Micros::new(u64::from(took.hour) * HOUR / DAY * DAY);
            if all.last().is_none_or(|last| last.day != day) {
                all.push(Self { day, ..Self::default() });
            }
            if let Some(day) = all.last_mut() {
                day.throughput.add(occurrence, number);
            }
        }
        all
    }
}

/// How long runs of one kind waited and took in one hour, in which they were leased or ended, and
/// its events.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Times {
    /// When the hour began.
    pub hour: Micros,
    /// From adding to lease.
    pub wait: Histogram,
    /// From lease to end.
    pub run: Histogram,
    /// Tasks added and ended.
    pub throughput: Throughput,
}

impl Times {
    /// Groups stored numbers by hour, in order, without those of days.
    pub fn of(mut numbers: Vec<(Took, u64)>) -> Vec<Self> {
        numbers.retain(|(took, _)| !took.is_of_day());
        numbers.sort_unstable();
        let mut all: Vec<Self> = Vec::new();
        for (took, number) in numbers {
            let hour = Micros::new(u64::from(took.hour) * HOUR);
            if all.last().is_none_or(|last| last.hour != hour) {
                all.push(Self { hour, ..Self::default() });
            }
            let Some(times) = all.last_mut() else { continue };
            if let Some(occurrence) = Occurrence::of_cell(took.cell, EVENTS) {
                times.throughput.add(occurrence, number);
                continue;
            }
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

impl AddAssign<&Times> for Times {
    fn add_assign(&mut self, other: &Times) {
        self.wait += &other.wait;
        self.run += &other.run;
        self.throughput += &other.throughput;
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
    fn events_of_kept_and_expired_hours_make_up_a_day() {
        let hour = |hours: u64| Micros::new(hours * HOUR + 5);
        let done = |hours| Took::occurrence(Occurrence::Done, hour(hours));
        let of_day = done(24).of_day().unwrap();
        assert_eq!((of_day.hour, of_day.is_of_day(), of_day.of_day()), (24, true, None));
        assert_eq!(Took::of(Span::Run, Micros::new(7), hour(3))[0].0.of_day(), None);
        let numbers = vec![
            (done(47), 2),
            (of_day, 3),
            (done(48), 4),
            (Took::occurrence(Occurrence::Retried, hour(30)), 1),
        ];
        let [first, second] = Day::of(numbers.clone())[..] else { panic!("two days") };
        let throughput = Throughput { done: 5, retried: 1, ..Throughput::default() };
        assert_eq!(first, Day { day: Micros::new(DAY), throughput });
        assert_eq!((second.day, second.throughput.done), (Micros::new(2 * DAY), 4));
        let hours: Vec<_> = Times::of(numbers).iter().map(|times| times.throughput.done).collect();
        assert_eq!(hours, [0, 2, 4], "a day is no hour");
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
