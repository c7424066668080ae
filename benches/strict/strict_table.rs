//! What is shown on the terminal, as a table of Markdown.

use std::time::Duration;

use crate::{figures::median, nginx::Verdict, strict_case::Case};

pub(crate) const HEAD: &str = "\
| limit of nginx | asked for | by | interval | refused per 1,000 | good answers a second | refused in each run |
|---|---|---|---|---|---|---|";

/// A line for a case.
pub(crate) fn row(case: &Case, found: &[Verdict]) -> String {
    let middle = |of: fn(&Verdict) -> f64| median(found.iter().map(of));
    let figures = match (middle(Verdict::refused_per_1000), middle(|verdict| verdict.good_rate)) {
        (Some(refused), Some(good)) => {
            let each: Vec<_> = found.iter().map(|verdict| verdict.refused.to_string()).collect();
            format!("{refused:.0} | {good:.1} | {} of {}", each.join(", "), case.jobs)
        }
        _ => "- | - | none: see above".to_owned(),
    };
    let (limit, share, by) = (case.limit(), case.share, case.who.name());
    format!("| {limit} | {share} % | {by} | {} | {figures} |", shown(case.interval()))
}

/// An interval in milliseconds.
fn shown(interval: Duration) -> String {
    let millis = interval.as_secs_f64() * 1000.0;
    if millis.fract() == 0.0 { format!("{millis} ms") } else { format!("{millis:.2} ms") }
}
