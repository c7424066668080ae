//! Figures as people read them.

use interval_queue_report::counted;

/// The middle of some figures; of an even number the mean of the two in the middle. None of none.
pub(crate) fn median(figures: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut figures: Vec<_> = figures.into_iter().collect();
    figures.sort_by(f64::total_cmp);
    let middle = figures.len() / 2;
    let upper = figures.get(middle)?;
    Some(if figures.len() % 2 == 1 { *upper } else { (figures[middle - 1] + upper) / 2.0 })
}

/// The lowest and the highest of some figures. None of none.
pub(crate) fn range(figures: impl IntoIterator<Item = f64>) -> Option<(f64, f64)> {
    figures.into_iter().fold(None, |range, figure| {
        let (low, high) = range.unwrap_or((figure, figure));
        Some((figure.min(low), figure.max(high)))
    })
}

/// Three digits that count, or all before the point, and never more than four after it.
pub(crate) fn figure(value: f64) -> String {
    let size = value.abs();
    if size < 0.000_05 {
        return "0".to_owned();
    }
    let places = (2.0 - size.log10().floor()).clamp(0.0, 4.0) as usize;
    let sign = if value < 0.0 { "−" } else { "" };
    if places == 0 {
        format!("{sign}{}", counted(size.round() as u64))
    } else {
        format!("{sign}{size:.places$}")
    }
}

/// A share of the whole in percent. Near the whole every hundredth of a percent counts.
pub(crate) fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    if (99.0..101.0).contains(&percent) { format!("{percent:.2}") } else { figure(percent) }
}

/// Microseconds in a unit that suits them.
pub(crate) fn time(microseconds: f64) -> String {
    const UNITS: [(&str, f64); 3] = [("s", 1e6), ("ms", 1e3), ("µs", 1.0)];
    let (name, unit) = UNITS.into_iter().find(|&(_, unit)| microseconds.abs() >= unit).unwrap_or(UNITS[2]);
    format!("{} {name}", figure(microseconds / unit))
}

/// An interval, which is a round number of something.
pub(crate) fn interval(microseconds: u64) -> String {
    let (count, unit) = match microseconds {
        whole if whole % 1_000_000 == 0 => (whole / 1_000_000, "s"),
        whole if whole % 1_000 == 0 => (whole / 1_000, "ms"),
        other => (other, "µs"),
    };
    format!("{} {unit}", counted(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_count() {
        let shown = [0.0, 0.000_01, 0.011_9, 0.5, 1.119, 98.74, 118.4, 1_661.2, -0.25].map(figure);
        assert_eq!(shown, ["0", "0", "0.0119", "0.500", "1.12", "98.7", "118", "1,661", "−0.250"]);
    }

    #[test]
    fn a_share_near_the_whole_is_exact() {
        assert_eq!(
            [0.6021, 0.9874, 0.99986, 1.0, 1.001].map(percent),
            ["60.2", "98.7", "99.99", "100.00", "100.10"]
        );
    }

    #[test]
    fn times_have_a_unit() {
        assert_eq!([0.5, 206.3, 1_500.0, 5e6].map(time), ["0.500 µs", "206 µs", "1.50 ms", "5.00 s"]);
        assert_eq!([20, 10_000, 1_000_000].map(interval), ["20 µs", "10 ms", "1 s"]);
    }

    #[test]
    fn a_median_is_in_the_middle() {
        assert_eq!(median([3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median([4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median([]), None);
    }
}
