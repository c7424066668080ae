//! Counts and measurements in words.

use std::time::Duration;

use interval_queue_tasks::{State, contract::Counted};

use super::{about, number};
use crate::{Counts, Measured};

/// The states that have tasks, with their numbers: `3 ready, 12 done`.
pub fn states(counts: &Counts) -> String {
    let some = State::ALL.into_iter().map(|state| (state, counts.get(Counted::Now(state))));
    let some: Vec<_> = some
        .filter(|(_, count)| *count > 0)
        .map(|(state, count)| format!("{} {state}", number(count)))
        .collect();
    if some.is_empty() { "none".into() } else { some.join(", ") }
}

/// The share of tasks that have ended. `None`: no task was ever added.
pub fn share(counts: &Counts) -> Option<String> {
    let added = counts.get(Counted::EverAdded);
    let ended = u128::from(added.saturating_sub(counts.left()));
    let percent = (ended * 100).checked_div(added.into())?;
    Some(format!("{percent}% of the {} that were ever added", number(added)))
}

/// A measurement: how many tasks ended per second, and when the rest would have ended.
pub fn measured(measured: Measured, left: u64) -> String {
    let over = about(Duration::from_millis(measured.over_us / 1_000));
    if measured.ended == 0 {
        return format!("none ended in the last {over}");
    }
    let hundredths = (measured.per_second() * 100.0).round() as u64;
    let (whole, rest) = (number(hundredths / 100), hundredths % 100);
    let per_second = match rest {
        0 => whole,
        _ if rest % 10 == 0 => format!("{whole}.{}", rest / 10),
        _ => format!("{whole}.{rest:02}"),
    };
    let mut text = format!("{per_second} ended per second, in the last {over}");
    if measured.added > 0 {
        text += &format!(", while {} were added", number(measured.added));
    } else if let Some(to_end) = to_end(measured, left) {
        text += &format!("; at this rate all have ended in {}, if nothing more is added", about(to_end));
    }
    text
}

/// Time until all have ended at this rate.
fn to_end(measured: Measured, left: u64) -> Option<Duration> {
    let seconds = left as f64 / measured.per_second();
    Duration::try_from_secs_f64(seconds.round()).ok().filter(|_| measured.ended > 0 && left > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_measurement_says_what_was_seen() {
        let seen = Measured { added: 0, ended: 20, over_us: 2_000_000 };
        let rate = "10 ended per second, in the last 2s";
        let rest = "; at this rate all have ended in 7s, if nothing more is added";
        assert_eq!(measured(seen, 70), format!("{rate}{rest}"));
        assert_eq!(measured(Measured { added: 3, ..seen }, 70), format!("{rate}, while 3 were added"));
        let none = Measured { ended: 0, ..seen };
        assert_eq!(measured(none, 70), "none ended in the last 2s");
        assert_eq!(to_end(none, 70), None);
        let third = Measured { ended: 1, over_us: 3_000_000, ..seen };
        assert_eq!(measured(third, 0), "0.33 ended per second, in the last 3s");
    }
}
