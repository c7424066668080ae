//! Durations in words.

use std::time::Duration;

use interval_queue::Micros;

/// A given duration, rounded down to a millisecond if it is longer than 10 ms, else to a
/// microsecond: `2s 345ms`, `1ms 500us`.
pub fn show(duration: impl Into<Length>) -> String {
    let Length(duration) = duration.into();
    let unit = if duration > Duration::from_millis(10) { 1_000_000 } else { 1_000 };
    let rounded = Duration::new(duration.as_secs(), duration.subsec_nanos() / unit * unit);
    humantime::format_duration(rounded).to_string()
}

/// A measured duration in at most two units: `250ms`, `5.1s`, `3m 24s`, `2h 10m`, `3d 4h`.
pub fn about(duration: impl Into<Length>) -> String {
    let Length(duration) = duration.into();
    let seconds = duration.as_secs();
    let two = |first: u64, unit: &str, second: u64, of: &str| match second {
        0 => format!("{first}{unit}"),
        second => format!("{first}{unit} {second}{of}"),
    };
    match seconds {
        0 => format!("{}ms", duration.as_millis()),
        1..60 => match duration.subsec_millis() / 100 {
            0 => format!("{seconds}s"),
            tenths => format!("{seconds}.{tenths}s"),
        },
        60..3600 => two(seconds / 60, "m", seconds % 60, "s"),
        3600..86_400 => two(seconds / 3600, "h", seconds / 60 % 60, "m"),
        _ => two(seconds / 86_400, "d", seconds / 3600 % 24, "h"),
    }
}

/// A duration of either type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Length(Duration);

impl From<Duration> for Length {
    fn from(duration: Duration) -> Self {
        Self(duration)
    }
}

impl From<Micros> for Length {
    fn from(micros: Micros) -> Self {
        Self(micros.to_duration())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measured_durations_have_two_units() {
        for (millis, text) in [
            (0, "0ms"),
            (250, "250ms"),
            (5_000, "5s"),
            (5_123, "5.1s"),
            (204_567, "3m 24s"),
            (180_000, "3m"),
            (7_800_000, "2h 10m"),
            (273_600_000, "3d 4h"),
        ] {
            assert_eq!(about(Duration::from_millis(millis)), text);
        }
    }

    #[test]
    fn given_durations_are_rounded_down() {
        assert_eq!(show(Duration::from_micros(2_345_678)), "2s 345ms");
        assert_eq!(show(Duration::from_micros(1500)), "1ms 500us");
        assert_eq!(show(Duration::from_nanos(27_000_006)), "27ms");
        assert_eq!(show(Duration::from_nanos(1_007)), "1us");
    }
}
