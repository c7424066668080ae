//! Durations as people write them: `250ms`, `1.5s`, `2h 30min`. An error says how to write one.

use std::time::Duration;

use interval_queue::{MAX_INTERVAL, MIN_INTERVAL};
use interval_queue_tasks::MAX_DELAY;

/// Parses a duration: numbers with units. Zero is allowed.
///
/// # Errors
///
/// A text that is no duration, has no unit or an ambiguous one.
pub fn parse(text: &str) -> Result<Duration, String> {
    if text.trim().starts_with('-') {
        let text = text.escape_debug();
        return Err(format!("{text} is negative: write for example 250ms, 1.5s or 2min"));
    }
    let number = text.trim();
    if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        if number.parse() == Ok(0.0) {
            return Err("0 is no time at all and has no unit: write for example 250ms, 1.5s or 2min".into());
        }
        return Err(format!("{number} has no unit: write {number}ms, {number}s or {number}min"));
    }
    for unit in text.split(|c: char| !c.is_alphabetic()) {
        if let Some((_, long)) = UNIT_ABBREVIATIONS.iter().find(|(short, _)| short.contains(&unit)) {
            let text = text.escape_debug();
            let minutes = if *long == "months" { ", or min for minutes" } else { "" };
            return Err(format!("{text}: {unit} is no unit here: write {long}{minutes}"));
        }
    }
    humantime::parse_duration(text).map_err(|error| format!("{error}; write for example 250ms, 1.5s or 2min"))
}

/// Rejected abbreviations and their units: `1M` for a minute would stop the queue for a month.
const UNIT_ABBREVIATIONS: [(&[&str], &str); 3] =
    [(&["w", "wk", "wks"], "weeks"), (&["M"], "months"), (&["y", "yr", "yrs"], "years")];

/// Parses a duration above zero.
///
/// # Errors
///
/// Those of [`parse`], and zero.
pub fn positive(text: &str) -> Result<Duration, String> {
    match parse(text)? {
        Duration::ZERO => Err(format!("{} is no time at all: give more than zero", text.escape_debug())),
        duration => Ok(duration),
    }
}

/// Parses the time between two starts, or the length of a hold.
///
/// # Errors
///
/// Those of [`positive`], and less than a microsecond or more than 366 days.
pub fn interval(text: &str) -> Result<Duration, String> {
    let duration = positive(text)?;
    if duration > MAX_INTERVAL.to_duration() || duration < MIN_INTERVAL.to_duration() {
        let text = text.escape_debug();
        return Err(format!("{text} is out of range: give 1us to 366days"));
    }
    Ok(duration)
}

/// Parses a delay, a deadline or a retention time. Zero is allowed.
///
/// # Errors
///
/// Those of [`parse`], and more than ten years.
pub fn delay(text: &str) -> Result<Duration, String> {
    let duration = parse(text)?;
    if duration > MAX_DELAY.to_duration() {
        return Err(format!("{} is out of range: give at most 10years", text.escape_debug()));
    }
    Ok(duration)
}

/// As [`delay`], but above zero.
///
/// # Errors
///
/// Those of [`delay`] and [`positive`].
pub fn deadline(text: &str) -> Result<Duration, String> {
    positive(text).and_then(|_| delay(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_durations_are_reported_with_a_valid_one() {
        for (text, says) in [
            ("250", "250ms"),
            ("0", "250ms"),
            ("0s", "more than zero"),
            ("367days", "366days"),
            ("1000years", "366days"),
            ("1ns", "1us to 366days"),
            ("5 parsecs", "250ms"),
            ("nan", "250ms"),
            ("1.50", "write 1.50ms, 1.50s"),
            ("-1s", "250ms"),
            ("0s\n", "0s\\n is no time"),
            ("400days\x1b", "250ms"),
            ("\t400days", "\\t400days is out of range"),
            ("", "250ms"),
            ("1M", "M is no unit here: write months, or min for minutes"),
            ("1h 30M", "1h 30M: M is no unit"),
            ("1wk", "write weeks"),
            ("1y", "write years"),
            ("1yrs", "write years"),
        ] {
            let error = interval(text).unwrap_err();
            assert!(error.contains(says), "{text:?}: {error}");
        }
        assert_eq!(interval("2w").unwrap_err(), "2w: w is no unit here: write weeks");
        assert_eq!(interval("1us"), Ok(Duration::from_micros(1)));
        assert_eq!(interval("366days"), Ok(Duration::from_secs(366 * 24 * 3600)));
        assert_eq!(interval("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(delay("9999years").unwrap_err(), "9999years is out of range: give at most 10years");
        assert_eq!(
            [delay("10years").is_ok(), delay("0s").is_ok(), delay("11years").is_ok()],
            [true, true, false]
        );
        let day = Duration::from_secs(24 * 3600);
        assert_eq!([interval("1d"), interval("1week")], [Ok(day), Ok(7 * day)]);
        assert!(interval("1month 1day").unwrap() > 30 * day && interval("1year").unwrap() > 365 * day);
        assert_eq!(interval("1m"), Ok(Duration::from_secs(60)));
    }
}
