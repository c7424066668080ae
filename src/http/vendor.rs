//! A service's own fields for what remains of a limit.

use std::time::{Duration, SystemTime};

use ::http::{HeaderMap, HeaderName};

use super::doubt::UnusableField;

/// The unit of the field that reports when a limit resets.
///
/// See the service's documentation. A response usually shows it: ten digits are seconds since 1970,
/// thirteen are milliseconds since 1970, a small number counts from now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reset {
    /// Seconds from now.
    InSeconds,
    /// Milliseconds from now.
    InMilliseconds,
    /// Seconds since 1970.
    AtSeconds,
    /// Milliseconds since 1970.
    AtMilliseconds,
}

/// The two fields in which a service reports what remains of a limit; for
/// [`Observer::vendor`](super::Observer::vendor).
///
/// Numbers may have a fraction. A limit with less than 1 remaining is used up.
///
/// ```
/// use http::HeaderName;
/// use interval_queue::http::{Reset, VendorLimit};
///
/// // As sent by GitHub:
/// let limit = VendorLimit::x_rate_limit(Reset::AtSeconds);
/// // Other fields:
/// let limit = VendorLimit::new(
///     HeaderName::from_static("x-app-calls-left"),
///     HeaderName::from_static("x-app-calls-reset-after"),
///     Reset::InSeconds,
/// );
/// # let _ = limit;
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VendorLimit {
    remaining: HeaderName,
    reset: HeaderName,
    kind: Reset,
}

impl VendorLimit {
    /// A limit with these two fields; `kind` is the unit of `reset`.
    pub const fn new(remaining: HeaderName, reset: HeaderName, kind: Reset) -> Self {
        Self { remaining, reset, kind }
    }

    /// `X-RateLimit-Remaining` and `X-RateLimit-Reset`.
    pub const fn x_rate_limit(kind: Reset) -> Self {
        let remaining = HeaderName::from_static("x-ratelimit-remaining");
        Self::new(remaining, HeaderName::from_static("x-ratelimit-reset"), kind)
    }

    /// If the limit is used up; zero if the reset is missing or unreadable.
    pub(super) fn used_up(
        &self,
        headers: &HeaderMap,
        at: SystemTime,
        doubts: &mut Vec<UnusableField>,
    ) -> Option<Duration> {
        let mut doubt = |name: &HeaderName, problem| {
            let value = headers.get(name).map_or(&b""[..], |value| value.as_bytes());
            let shown = [name.as_str().as_bytes(), value].join(&b": "[..]);
            doubts.push(UnusableField::new("the service's own limit", shown, problem));
        };
        let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or_default().trim());
        let Some(left) = number(text(&self.remaining)?) else {
            doubt(&self.remaining, "is no count of what is left");
            return None;
        };
        if left >= 1.0 {
            return None;
        }
        let Some(reset) = text(&self.reset) else { return Some(Duration::ZERO) };
        let Some(wait) = number(reset).map(|reset| self.until(reset, at)) else {
            doubt(&self.reset, "has nothing left, but no number until when");
            return Some(Duration::ZERO);
        };
        if wait.is_none() {
            doubt(&self.reset, "has nothing left, but a reset in the past: is its kind right?");
        }
        Some(wait.unwrap_or_default())
    }

    /// `None`: the reset is past.
    fn until(&self, reset: f64, at: SystemTime) -> Option<Duration> {
        let milliseconds = matches!(self.kind, Reset::InMilliseconds | Reset::AtMilliseconds);
        let seconds = if milliseconds { reset / 1000.0 } else { reset };
        // Too large for a `Duration`: the longest wait.
        let reset = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        match self.kind {
            Reset::InSeconds | Reset::InMilliseconds => Some(reset),
            Reset::AtSeconds | Reset::AtMilliseconds => {
                let now = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
                reset.checked_sub(now)
            }
        }
    }
}

/// Digits with an optional fraction; no sign, no exponent.
fn number(text: &str) -> Option<f64> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    text.parse().ok().filter(|_| plain)
}

#[cfg(test)]
mod tests {
    use super::{super::reading::tests::headers, *};

    /// At the second 1,600,000,000. Returns the wait and the doubts.
    fn read(kind: Reset, remaining: &str, reset: &str) -> (Option<Duration>, Vec<String>) {
        let lines =
            [("remaining", remaining), ("reset", reset)].into_iter().filter(|(_, value)| *value != "-");
        let lines: Vec<_> = lines.map(|(name, value)| format!("x-ratelimit-{name}: {value}")).collect();
        let mut doubts = Vec::new();
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_600_000_000);
        let wait = VendorLimit::x_rate_limit(kind).used_up(&headers(&lines.join("\n")), at, &mut doubts);
        (wait, doubts.iter().map(UnusableField::to_string).collect())
    }

    #[test]
    fn a_reset_is_read_as_the_configured_kind() {
        for (kind, reset, millis) in [
            (Reset::InSeconds, "30", 30_000),
            (Reset::InSeconds, "1.5", 1_500),
            (Reset::InMilliseconds, "250", 250),
            (Reset::AtSeconds, "1600000030", 30_000),
            (Reset::AtSeconds, "1600000030.25", 30_250),
            (Reset::AtMilliseconds, "1600000000500", 500),
            (Reset::AtSeconds, "1600000000", 0),
        ] {
            let expected = Some(Duration::from_millis(millis));
            assert_eq!(read(kind, "0", reset), (expected, Vec::new()), "{kind:?} {reset}");
            assert_eq!(read(kind, "0.9", reset), (expected, Vec::new()), "{kind:?} {reset}");
            assert_eq!(read(kind, "1", reset), (None, Vec::new()), "{kind:?} {reset}");
        }
        assert_eq!(read(Reset::InSeconds, "0", "-"), (Some(Duration::ZERO), Vec::new()));
        assert_eq!(read(Reset::InSeconds, "-", "30"), (None, Vec::new()));
        assert!(read(Reset::InSeconds, "0", &"9".repeat(300)).0.unwrap() > Duration::from_secs(u64::MAX / 2));
    }

    #[test]
    fn doubtful_fields_are_named_and_hold_for_the_floor_at_most() {
        for (kind, remaining, reset, wait, says) in [
            (Reset::InSeconds, "many", "30", None, "x-ratelimit-remaining: many\", which is no count"),
            (Reset::InSeconds, "-1", "30", None, "which is no count of what is left"),
            (Reset::InSeconds, "0", "noon", Some(0), "x-ratelimit-reset: noon\", which has nothing left"),
            (Reset::InSeconds, "0", "1e9", Some(0), "no number until when"),
            (Reset::InSeconds, "0", "inf", Some(0), "no number until when"),
            // Seconds from now, read as an instant.
            (Reset::AtSeconds, "0", "30", Some(0), "is its kind right?"),
        ] {
            let (found, doubts) = read(kind, remaining, reset);
            assert_eq!(found, wait.map(Duration::from_secs), "{remaining} {reset}");
            assert!(doubts.len() == 1 && doubts[0].contains(says), "{doubts:?}");
        }
    }
}
