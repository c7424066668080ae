//! The hold that a response asks for: a pure function of status, headers and time of day.

use std::time::{Duration, SystemTime};

use ::http::{
    HeaderMap, HeaderValue, StatusCode,
    header::{DATE, RETRY_AFTER},
};
use interval_queue_contract::MAX_INTERVAL;

use super::{VendorLimit, doubt::UnusableField, remaining::used_up};

/// Cut to `MAX_INTERVAL`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    pub(super) floor: Duration,
    pub(super) cap: Duration,
}

impl Limits {
    fn bounded(self) -> Self {
        let longest = MAX_INTERVAL.to_duration();
        Self { floor: self.floor.min(longest), cap: self.cap.min(longest) }
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Reading {
    pub(super) hold: Option<Duration>,
    pub(super) doubts: Vec<UnusableField>,
}

/// Of a response that arrived at `now`; the rules are in the module's documentation.
pub(super) fn read(
    status: StatusCode,
    headers: &HeaderMap,
    limits: Limits,
    vendor: &[VendorLimit],
    now: SystemTime,
) -> Reading {
    let limits = limits.bounded();
    let mut doubts = Vec::new();
    let limited = status == StatusCode::TOO_MANY_REQUESTS;
    let listens = limited || status == StatusCode::SERVICE_UNAVAILABLE;
    let retry_after = headers.get(RETRY_AFTER).filter(|_| listens);
    // By its own `Date` the response's dates were written.
    let at = headers.get(DATE).and_then(|value| date(value.to_str().ok()?.trim())).unwrap_or(now);

    let asked = retry_after
        .and_then(|value| wait(value, at).map_err(|doubt| doubts.push(doubt)).ok())
        .or_else(|| {
            let of_the_service =
                vendor.iter().filter_map(|limit| limit.used_up(headers, at, &mut doubts)).max();
            used_up(headers, at, &mut doubts).max(of_the_service)
        })
        // A wait of unknown length.
        .or_else(|| (limited || retry_after.is_some()).then_some(Duration::ZERO));
    if let Some(asked) = asked.filter(|asked| *asked > limits.cap) {
        let asked = format!("{} s", asked.as_secs());
        doubts.push(UnusableField::new("the time to wait", asked, "is longer than the cap"));
    }
    Reading { hold: asked.map(|asked| asked.min(limits.cap).max(limits.floor)), doubts }
}

/// Reads a response for the fuzz targets: the hold and the doubts as logged. The fields
/// `X-RateLimit-…` are read as every `Reset`.
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub fn asked(
    status: StatusCode,
    headers: &HeaderMap,
    (floor, cap): (Duration, Duration),
    now: SystemTime,
) -> (Option<Duration>, Vec<String>) {
    use super::Reset;
    let kinds = [Reset::InSeconds, Reset::InMilliseconds, Reset::AtSeconds, Reset::AtMilliseconds];
    let vendor = kinds.map(VendorLimit::x_rate_limit);
    let Reading { hold, doubts } = read(status, headers, Limits { floor, cap }, &vendor, now);
    (hold, doubts.iter().map(UnusableField::to_string).collect())
}

fn wait(value: &HeaderValue, at: SystemTime) -> Result<Duration, UnusableField> {
    let doubt = |problem| UnusableField::new("retry-after", value, problem);
    let text = value.to_str().unwrap_or_default().trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // More digits than a `u64` has: the longest wait.
        return Ok(Duration::from_secs(text.parse().unwrap_or(u64::MAX)));
    }
    let until = date(text).ok_or_else(|| doubt("is neither whole seconds nor a date"))?;
    until.duration_since(at).map_err(|_| doubt("is in the past"))
}

fn date(text: &str) -> Option<SystemTime> {
    httpdate::parse_http_date(text).ok()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    const LIMITS: Limits = Limits { floor: Duration::from_secs(1), cap: Duration::from_secs(3600) };

    pub(in crate::http) fn headers(lines: &str) -> HeaderMap {
        let field = |line: &str| {
            let (name, value) = line.split_once(": ").unwrap();
            (name.parse().unwrap(), HeaderValue::from_bytes(value.as_bytes()).unwrap())
        };
        let mut headers = HeaderMap::new();
        for (name, value) in lines.lines().map(field) {
            headers.append::<::http::HeaderName>(name, value);
        }
        headers
    }

    /// The response arrives at 08:50:00. Returns the hold in seconds and the doubts.
    fn read_at_ten_to_nine(status: u16, lines: &str) -> (Option<u64>, Vec<UnusableField>) {
        let now = date("Sun, 06 Nov 1994 08:50:00 GMT").unwrap();
        let status = StatusCode::from_u16(status).unwrap();
        let Reading { hold, doubts } = read(status, &headers(lines), LIMITS, &[], now);
        (hold.map(|hold| hold.as_secs()), doubts)
    }

    #[test]
    fn clear_fields_are_taken_as_they_are() {
        for (status, lines, hold) in [
            (200, "server: x", None),
            (503, "server: x", None),
            (429, "server: x", Some(1)),
            // `Retry-After` counts on 429 and 503 only.
            (429, "retry-after: 30", Some(30)),
            (503, "retry-after:  30 ", Some(30)),
            (429, "retry-after: 0", Some(1)),
            (429, "retry-after: 3600", Some(3600)),
            (200, "retry-after: 30", None),
            (202, "retry-after: 30", None),
            (301, "retry-after: 30", None),
            (413, "retry-after: 30", None),
            (500, "retry-after: garbage", None),
            // Dates: by the server's `Date`, else by the local clock.
            (
                429,
                "retry-after: Sun, 06 Nov 1994 08:50:07 GMT\ndate: Sun, 06 Nov 1994 08:49:37 GMT",
                Some(30),
            ),
            (
                429,
                "retry-after: Sunday, 06-Nov-94 08:50:07 GMT\ndate: Sun, 06 Nov 1994 08:49:37 GMT",
                Some(30),
            ),
            (429, "retry-after: Sun Nov  6 08:50:07 1994\ndate: Sun, 06 Nov 1994 08:49:37 GMT", Some(30)),
            (503, "retry-after: Sun, 06 Nov 1994 08:50:07 GMT", Some(7)),
            (503, "retry-after: Sun, 06 Nov 1994 08:50:07 GMT\ndate: today", Some(7)),
            (503, "retry-after: Sun, 06 Nov 1994 08:50:00 GMT", Some(1)),
            // `RateLimit`, with and without `Retry-After`.
            (200, "ratelimit: \"a\";r=0;t=30", Some(30)),
            (429, "ratelimit: \"a\";r=0;t=30", Some(30)),
            (429, "ratelimit: \"a\";r=5;t=30", Some(1)),
            (503, "ratelimit: \"a\";r=5;t=30", None),
            (429, "retry-after: 5\nratelimit: \"a\";r=0;t=30", Some(5)),
            (200, "retry-after: 5\nratelimit: \"a\";r=0;t=30", Some(30)),
        ] {
            assert_eq!(read_at_ten_to_nine(status, lines), (hold, Vec::new()), "{status} {lines}");
        }
    }

    #[test]
    fn doubtful_fields_are_named_and_bounded() {
        const NO_WAIT: &str = "is neither whole seconds nor a date";
        for (status, lines, hold, problem) in [
            (429, "retry-after: 31536000", Some(3600), "is longer than the cap"),
            (429, "retry-after: 99999999999999999999999999", Some(3600), "is longer than the cap"),
            (429, "retry-after: Sat, 06 Nov 2094 08:50:07 GMT", Some(3600), "is longer than the cap"),
            (200, "ratelimit: \"a\";r=0;t=999999999999999", Some(3600), "is longer than the cap"),
            (429, "retry-after: -5", Some(1), NO_WAIT),
            (429, "retry-after: +5", Some(1), NO_WAIT),
            (429, "retry-after: 1.5", Some(1), NO_WAIT),
            (503, "retry-after: soon", Some(1), NO_WAIT),
            (503, "retry-after: ", Some(1), NO_WAIT),
            (429, "retry-after: später", Some(1), NO_WAIT),
            (429, "retry-after: Sun, 06 Nov 1994 08:49:59 GMT", Some(1), "is in the past"),
            // A readable `RateLimit` counts despite an unreadable `Retry-After`.
            (429, "retry-after: soon\nratelimit: \"a\";r=0;t=30", Some(30), NO_WAIT),
            (429, "ratelimit: ???", Some(1), "is no structured field"),
            (200, "ratelimit: ???", None, "is no structured field"),
        ] {
            let (read, doubts) = read_at_ten_to_nine(status, lines);
            let problems: Vec<_> = doubts.iter().map(|doubt| doubt.problem).collect();
            assert_eq!((read, problems), (hold, vec![problem]), "{status} {lines}");
        }
    }

    #[test]
    fn a_doubt_is_one_printable_line_that_names_the_value() {
        let (_, doubts) = read_at_ten_to_nine(429, "retry-after: tomörrow");
        assert_eq!(
            doubts[0].to_string(),
            r#"retry-after is "tom\xc3\xb6rrow", which is neither whole seconds nor a date"#
        );
        let (_, doubts) = read_at_ten_to_nine(429, &format!("retry-after: {}", "x".repeat(5000)));
        assert!(doubts[0].to_string().len() < 200, "{}", doubts[0]);
        let (_, doubts) = read_at_ten_to_nine(503, "retry-after: 31536000");
        assert_eq!(
            doubts[0].to_string(),
            r#"the time to wait is "31536000 s", which is longer than the cap"#
        );
    }

    #[test]
    fn a_floor_above_the_cap_counts() {
        let limits = Limits { floor: Duration::from_secs(8), cap: Duration::from_secs(5) };
        let reading = read(
            StatusCode::TOO_MANY_REQUESTS,
            &headers("retry-after: 9"),
            limits,
            &[],
            SystemTime::UNIX_EPOCH,
        );
        assert_eq!(reading.hold, Some(Duration::from_secs(8)));
    }
}
