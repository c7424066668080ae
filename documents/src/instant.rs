//! Instants as people write them: `2026-12-01T08:00:00+01:00`. An error says how to write one.

use std::time::SystemTime;

use jiff::{Timestamp, Zoned};

/// Parses an instant with its offset or zone.
///
/// # Errors
///
/// A text that is no instant, or has neither offset nor zone.
pub fn parse(text: &str) -> Result<SystemTime, String> {
    let with_offset = text.parse::<Timestamp>();
    let instant = with_offset.or_else(|_| text.parse::<Zoned>().map(|zoned| zoned.timestamp()));
    instant.map(SystemTime::from).map_err(|_| {
        format!(
            "{text:?} is no time with an offset: write for example 2026-12-01T08:00:00Z, 2026-12-01T08:00:00+01:00 or \
             2026-12-01T08:00[Europe/Berlin]"
        )
    })
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    #[test]
    fn an_instant_has_an_offset_or_a_zone() {
        let eight = UNIX_EPOCH + Duration::from_secs(1_796_112_000);
        for text in [
            "2026-12-01T08:00:00Z",
            "2026-12-01 08:00:00Z",
            "2026-12-01T09:00:00+01:00",
            "2026-12-01T09:00[Europe/Berlin]",
        ] {
            assert_eq!(parse(text), Ok(eight), "{text}");
        }
        for text in
            ["", "tomorrow", "2026-12-01", "2026-12-01T08:00:00", "08:00", "2026-13-01T08:00:00Z", "7\n"]
        {
            let error = parse(text).unwrap_err();
            assert!(
                error.contains("is no time with an offset: write for example") && !error.contains('\n'),
                "{error}"
            );
        }
    }
}
