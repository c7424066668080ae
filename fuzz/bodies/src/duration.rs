//! The durations of the command line.

use std::time::Duration;

use interval_queue::contract::{MAX_INTERVAL, MIN_INTERVAL, Micros};
use interval_queue_documents::{
    duration::{interval, positive},
    words::show,
};

use crate::promise::{Verdict, is_clear};

pub(crate) fn body(bytes: &[u8]) -> Verdict {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Verdict::Refused;
    };
    match (positive(text), interval(text)) {
        (Ok(duration), within) => {
            assert!(duration > Duration::ZERO);
            match within {
                Ok(interval) => is_an_interval(interval, duration),
                Err(error) => is_clear(&error, bytes),
            }
            // The parser of durations for display refuses only those too long for an interval.
            if duration <= MAX_INTERVAL.to_duration() {
                is_shown(duration);
            }
            Verdict::Read
        }
        (Err(error), within) => {
            assert!(within.is_err(), "{text:?} is no duration but an interval");
            is_clear(&error, bytes);
            is_clear(&within.unwrap_err(), bytes);
            Verdict::Refused
        }
    }
}

fn is_an_interval(interval: Duration, duration: Duration) {
    assert_eq!(interval, duration);
    let micros = Micros::from_duration(interval);
    assert!((MIN_INTERVAL..=MAX_INTERVAL).contains(&micros), "{micros:?}");
    assert!(micros.to_duration() >= interval, "an interval is never shortened");
}

/// Reads again what is printed, to its precision.
fn is_shown(duration: Duration) {
    let shown = show(duration);
    let step = Duration::from_millis(1);
    match positive(&shown) {
        Ok(read) => {
            assert!(read <= duration && duration - read < step, "{duration:?} is shown as {shown}");
            assert_eq!(show(read), shown, "what is shown stays as it is");
        }
        Err(error) => assert!(duration < step, "{duration:?} is shown as {shown}: {error}"),
    }
}
