//! Rates as people read them.

use indicatif::{HumanCount, HumanFloatCount};
use interval_queue::{Micros, Rates};

use interval_queue_documents::words::show;

/// Uses the smallest unit with at least one start.
pub(crate) fn rate(interval: Micros) -> String {
    let (per_unit, unit) = starts(interval);
    let number = HumanFloatCount((per_unit * 100.0).round() / 100.0);
    format!("{number} per {unit}")
}

pub(crate) fn pace(rates: &Rates) -> String {
    let words = rates.iter().map(|of| {
        let every = format!("every {} ({})", show(of.interval), rate(of.interval));
        if of.burst > 1 { format!("{every}, up to {} at once", HumanCount(of.burst.into())) } else { every }
    });
    format!("one start {}", words.collect::<Vec<_>>().join("; and "))
}

/// A part of the starts, in the unit of [`rate`].
pub(crate) fn in_unit(interval: Micros, part: f64) -> String {
    let number = format!("{:.1}", starts(interval).0 * part);
    let (whole, tenths) = number.split_once('.').unwrap_or((&number, "0"));
    match whole.parse() {
        Ok(whole) => format!("{}.{tenths}", HumanCount(whole)),
        Err(_) => number,
    }
}

fn starts(interval: Micros) -> (f64, &'static str) {
    let per_second = 1e6 / interval.get().max(1) as f64;
    let units = [(1.0, "second"), (60.0, "minute"), (3600.0, "hour"), (86_400.0, "day")];
    let (seconds, unit) =
        units.into_iter().find(|(seconds, _)| per_second * seconds >= 1.0).unwrap_or((86_400.0, "day"));
    (per_second * seconds, unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_read_well() {
        assert_eq!(rate(Micros::from_millis(250)), "4 per second");
        assert_eq!(rate(Micros::new(1)), "1,000,000 per second");
        assert_eq!(in_unit(Micros::new(1), 0.5), "500,000.0");
        assert_eq!(rate(Micros::from_millis(9_000)), "6.67 per minute");
        assert_eq!(rate(Micros::from_millis(3_600_000)), "1 per hour");
        assert_eq!(rate(Micros::from_millis(172_800_000)), "0.5 per day");
    }
}
