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

/// An interval, which is a round number of something.
pub(crate) fn interval(microseconds: u64) -> String {
    let (count, unit) = match microseconds {
        whole if whole % 1_000_000 == 0 => (whole / 1_000_000, "s"),
        whole if whole % 1_000 == 0 => (whole / 1_000, "ms"),
        other => (other, "µs"),
    };
    format!("{} {unit}", counted(count))
}
