//! The rate in an HTTP response. The input is its head: the status, then a field per line.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use interval_queue::fuzzing::asked;

use crate::promise::{Verdict, is_clear};

const FLOOR: Duration = Duration::from_secs(1);
const CAP: Duration = Duration::from_secs(3600);
/// Other fields may be anything.
const FIELDS: [&str; 6] = [
    "retry-after",
    "ratelimit",
    "ratelimit-remaining",
    "ratelimit-reset",
    "x-ratelimit-remaining",
    "x-ratelimit-reset",
];

pub(crate) fn body(bytes: &[u8]) -> Verdict {
    let Some((status, headers)) = head(bytes) else {
        return Verdict::Refused;
    };
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_600_000_000);
    let read = |status, headers: &HeaderMap| asked(status, headers, (FLOOR, CAP), now);
    let (hold, doubts) = read(status, &headers);
    doubts.iter().for_each(|doubt| is_clear(doubt, bytes));
    assert!(hold.is_none_or(|hold| (FLOOR..=CAP).contains(&hold)), "{hold:?}");
    assert!(hold.is_some() || status != StatusCode::TOO_MANY_REQUESTS, "a 429 holds");
    let silent = FIELDS.iter().all(|field| !headers.contains_key(*field));
    assert!(!silent || (hold.is_some() == (status == StatusCode::TOO_MANY_REQUESTS) && doubts.is_empty()));

    // On a success Retry-After is about something else.
    let mut without = headers.clone();
    without.remove("retry-after");
    assert_eq!(read(StatusCode::OK, &headers), read(StatusCode::OK, &without));
    // With a date of its own the reader's clock does not matter.
    let date = headers.get("date").and_then(|date| date.to_str().ok());
    if date.is_some_and(|date| httpdate::parse_http_date(date.trim()).is_ok()) {
        assert_eq!(asked(status, &headers, (FLOOR, CAP), SystemTime::UNIX_EPOCH).0, hold);
    }
    if doubts.is_empty() { Verdict::Read } else { Verdict::Refused }
}

fn head(bytes: &[u8]) -> Option<(StatusCode, HeaderMap)> {
    let mut lines = bytes.split(|byte| *byte == b'\n');
    let status = StatusCode::from_bytes(lines.next()?).ok()?;
    let mut headers = HeaderMap::new();
    for line in lines.filter(|line| !line.is_empty()).take(20) {
        let colon = line.iter().position(|byte| *byte == b':')?;
        headers.append(
            HeaderName::from_bytes(&line[..colon]).ok()?,
            HeaderValue::from_bytes(&line[colon + 1..]).ok()?,
        );
    }
    Some((status, headers))
}
