//! What a response asks for: a pure function of its status, its headers and the time of day.

use std::{
    fmt,
    time::{Duration, SystemTime},
};

use ::http::{
    HeaderMap, HeaderValue, StatusCode,
    header::{DATE, RETRY_AFTER},
};
use sfv::{BareItem, Dictionary, Item, List, ListEntry, Parser};

/// The draft of the IETF for these fields, and the two forms that earlier versions of it had.
const RATE_LIMIT: &str = "ratelimit";
const REMAINING: &str = "ratelimit-remaining";
const RESET: &str = "ratelimit-reset";

/// How short and how long a hold may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    pub(super) floor: Duration,
    pub(super) cap: Duration,
}

/// What was read.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Reading {
    /// How long nobody should call.
    pub(super) hold: Option<Duration>,
    /// What could not be taken as it was.
    pub(super) doubts: Vec<Doubt>,
}

/// A value that could not be taken as it was.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Doubt {
    field: &'static str,
    /// As it is shown: printable, and not endless.
    value: String,
    problem: &'static str,
}

impl Doubt {
    fn new(field: &'static str, value: impl AsRef<[u8]>, problem: &'static str) -> Self {
        const SHOWN: usize = 100;
        let value = value.as_ref();
        let shown = value[..value.len().min(SHOWN)].escape_ascii();
        let rest = if value.len() > SHOWN { "…" } else { "" };
        Self { field, value: format!("\"{shown}{rest}\""), problem }
    }
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { field, value, problem } = self;
        write!(f, "{field} is {value}, which {problem}")
    }
}

/// Reads a response that arrived at `now`. The module's documentation has the rules.
pub(super) fn read(status: StatusCode, headers: &HeaderMap, limits: Limits, now: SystemTime) -> Reading {
    let mut doubts = Vec::new();
    let limited = status == StatusCode::TOO_MANY_REQUESTS;
    let listens = limited || status == StatusCode::SERVICE_UNAVAILABLE;
    let retry_after = headers.get(RETRY_AFTER).filter(|_| listens);

    let asked = retry_after
        .and_then(|value| wait(value, headers, now).map_err(|doubt| doubts.push(doubt)).ok())
        .or_else(|| used_up(headers, &mut doubts))
        // To wait, but not how long.
        .or_else(|| (limited || retry_after.is_some()).then_some(Duration::ZERO));
    if let Some(asked) = asked.filter(|asked| *asked > limits.cap) {
        let asked = format!("{} s", asked.as_secs());
        doubts.push(Doubt::new("the time to wait", asked, "is longer than the cap"));
    }
    Reading { hold: asked.map(|asked| asked.min(limits.cap).max(limits.floor)), doubts }
}

/// How long a `Retry-After` says to wait.
fn wait(value: &HeaderValue, headers: &HeaderMap, now: SystemTime) -> Result<Duration, Doubt> {
    let doubt = |problem| Doubt::new("retry-after", value, problem);
    let text = value.to_str().unwrap_or_default().trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // More digits than fit are as long as it gets.
        return Ok(Duration::from_secs(text.parse().unwrap_or(u64::MAX)));
    }
    let until = date(text).ok_or_else(|| doubt("is neither whole seconds nor a date"))?;
    let sent = headers.get(DATE).and_then(|value| date(value.to_str().ok()?.trim()));
    until.duration_since(sent.unwrap_or(now)).map_err(|_| doubt("is in the past"))
}

fn date(text: &str) -> Option<SystemTime> {
    httpdate::parse_http_date(text).ok()
}

/// How long until something is left again, by the fields that count what is left; zero if they do not say. The longest, if
/// several limits have nothing left.
fn used_up(headers: &HeaderMap, doubts: &mut Vec<Doubt>) -> Option<Duration> {
    let lines: Vec<_> = headers.get_all(RATE_LIMIT).iter().map(HeaderValue::as_bytes).collect();
    // A list may be spread over several lines (RFC 9651, section 4.2).
    let combined = lines.join(&b", "[..]);
    let mut doubt = |problem| doubts.push(Doubt::new(RATE_LIMIT, &combined, problem));
    let stated = stated(&combined).unwrap_or_else(|| {
        doubt("is no structured field");
        Vec::new()
    });
    let combined = stated.iter().filter_map(|limit| limit.used_up(&mut doubt)).max();

    let value = |field| headers.get(field).map_or(&b""[..], HeaderValue::as_bytes);
    let separate = headers.get(REMAINING).and_then(|_| {
        let limit = Stated {
            left: number(value(REMAINING)),
            reset: headers.get(RESET).map(|_| number(value(RESET))),
        };
        limit.used_up(|problem| {
            let both = [value(REMAINING), value(RESET)].join(&b" and "[..]);
            doubts.push(Doubt::new(REMAINING, both, problem));
        })
    });
    combined.max(separate)
}

/// What is said of one limit: how often one may still call, and in how many seconds more often. No number: it is none, or a
/// negative one.
#[derive(Debug, PartialEq, Eq)]
struct Stated {
    left: Option<u64>,
    reset: Option<Option<u64>>,
}

impl Stated {
    fn new(left: &BareItem, reset: Option<&BareItem>) -> Self {
        Self { left: whole(left), reset: reset.map(whole) }
    }

    /// How long until something is left again, if nothing is.
    fn used_up(&self, mut doubt: impl FnMut(&'static str)) -> Option<Duration> {
        match (self.left, self.reset) {
            (Some(0), None) => Some(Duration::ZERO),
            (Some(0), Some(Some(seconds))) => Some(Duration::from_secs(seconds)),
            (Some(0), Some(None)) => {
                doubt("has nothing left, but no whole seconds until it has");
                Some(Duration::ZERO)
            }
            (Some(_), _) => None,
            (None, _) => {
                doubt("does not tell what is left");
                None
            }
        }
    }
}

/// The limits in the field `RateLimit`: a list of items with parameters, or in drafts before the eighth one dictionary.
fn stated(field: &[u8]) -> Option<Vec<Stated>> {
    if let Ok(list) = Parser::new(field).parse::<List>() {
        let items = list.iter().filter_map(|entry| match entry {
            ListEntry::Item(item) => Some(Stated::new(item.params.get("r")?, item.params.get("t"))),
            ListEntry::InnerList(_) => None,
        });
        return Some(items.collect());
    }
    let dictionary: Dictionary = Parser::new(field).parse().ok()?;
    let item = |key| match dictionary.get(key)? {
        ListEntry::Item(item) => Some(&item.bare_item),
        ListEntry::InnerList(_) => None,
    };
    Some(item("remaining").map(|left| Stated::new(left, item("reset"))).into_iter().collect())
}

fn number(field: &[u8]) -> Option<u64> {
    whole(&Parser::new(field).parse::<Item>().ok()?.bare_item)
}

fn whole(item: &BareItem) -> Option<u64> {
    u64::try_from(i64::from(item.as_integer()?)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { floor: Duration::from_secs(1), cap: Duration::from_secs(3600) };
    const SENT: &str = "Sun, 06 Nov 1994 08:49:37 GMT";

    fn response(status: u16, fields: &[(&'static str, &str)]) -> (StatusCode, HeaderMap) {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(*name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        (StatusCode::from_u16(status).unwrap(), headers)
    }

    /// Reads a response at 08:50:00, which is 23 seconds after `SENT`. The hold in seconds, and the doubts.
    fn read_at(status: u16, fields: &[(&'static str, &str)]) -> (Option<u64>, Vec<Doubt>) {
        let (status, headers) = response(status, fields);
        let now = date("Sun, 06 Nov 1994 08:50:00 GMT").unwrap();
        let Reading { hold, doubts } = read(status, &headers, LIMITS, now);
        (hold.map(|hold| hold.as_secs()), doubts)
    }

    #[test]
    fn what_is_clear_is_taken_as_it_is() {
        let nothing: &[(&str, &str)] = &[];
        for (status, fields, hold) in [
            (200, nothing, None),
            (503, nothing, None),
            (429, nothing, Some(1)),
            // Retry-After, where it is about the rate.
            (429, &[("retry-after", "30")], Some(30)),
            (503, &[("retry-after", " 30 ")], Some(30)),
            (429, &[("retry-after", "0")], Some(1)),
            (429, &[("retry-after", "3600")], Some(3600)),
            (200, &[("retry-after", "30")], None),
            (202, &[("retry-after", "30")], None),
            (301, &[("retry-after", "30")], None),
            (413, &[("retry-after", "30")], None),
            (500, &[("retry-after", "garbage")], None),
            // A date, by the server's clock and else by ours.
            (429, &[("retry-after", "Sun, 06 Nov 1994 08:50:07 GMT"), ("date", SENT)], Some(30)),
            (429, &[("retry-after", "Sunday, 06-Nov-94 08:50:07 GMT"), ("date", SENT)], Some(30)),
            (429, &[("retry-after", "Sun Nov  6 08:50:07 1994"), ("date", SENT)], Some(30)),
            (503, &[("retry-after", "Sun, 06 Nov 1994 08:50:07 GMT")], Some(7)),
            (503, &[("retry-after", "Sun, 06 Nov 1994 08:50:07 GMT"), ("date", "today")], Some(7)),
            (429, &[("retry-after", SENT), ("date", SENT)], Some(1)),
            // RateLimit, with any status.
            (200, &[("ratelimit", r#""default";r=0;t=30"#)], Some(30)),
            (200, &[("ratelimit", r#""default";r=1;t=30"#)], None),
            (200, &[("ratelimit", r#""default";r=0"#)], Some(1)),
            (429, &[("ratelimit", r#""default";r=5;t=30"#)], Some(1)),
            (200, &[("ratelimit", "default;r=0;t=30")], Some(30)),
            (200, &[("ratelimit", r#""default";t=30"#)], None),
            (
                200,
                &[("ratelimit", r#""burst";r=0;t=3, "daily";r=0;t=60;pk=:cHsdsRa894==:, "hourly";r=7;t=99"#)],
                Some(60),
            ),
            (200, &[("ratelimit", r#""burst";r=0;t=3"#), ("ratelimit", r#""daily";r=0;t=60"#)], Some(60)),
            (200, &[("ratelimit", "")], None),
            (200, &[("ratelimit-policy", r#""default";q=0;w=30"#)], None),
            // As it was in earlier drafts.
            (200, &[("ratelimit", "limit=10, remaining=0, reset=30")], Some(30)),
            (200, &[("ratelimit", "limit=10, remaining=1, reset=30")], None),
            (
                200,
                &[("ratelimit-limit", "10"), ("ratelimit-remaining", "0"), ("ratelimit-reset", "30")],
                Some(30),
            ),
            (
                200,
                &[("ratelimit-limit", "10"), ("ratelimit-remaining", "3"), ("ratelimit-reset", "30")],
                None,
            ),
            (200, &[("ratelimit-remaining", "0")], Some(1)),
            (200, &[("ratelimit-reset", "30")], None),
            (
                200,
                &[
                    ("ratelimit", r#""default";r=0;t=5"#),
                    ("ratelimit-remaining", "0"),
                    ("ratelimit-reset", "9"),
                ],
                Some(9),
            ),
            // Retry-After goes before them.
            (429, &[("retry-after", "5"), ("ratelimit", r#""default";r=0;t=30"#)], Some(5)),
            (200, &[("retry-after", "5"), ("ratelimit", r#""default";r=0;t=30"#)], Some(30)),
            // Nobody knows what this means.
            (200, &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "30")], None),
        ] {
            assert_eq!(read_at(status, fields), (hold, Vec::new()), "{status} {fields:?}");
        }
    }

    #[test]
    fn what_is_doubtful_is_named_and_bounded() {
        let year = "31536000";
        let digits = "9".repeat(40);
        let past = "Sun, 06 Nov 1994 08:49:36 GMT";
        let no_wait = "is neither whole seconds nor a date";
        for (status, fields, hold, field, problem) in [
            (429, &[("retry-after", year)][..], Some(3600), "the time to wait", "is longer than the cap"),
            (429, &[("retry-after", &digits)], Some(3600), "the time to wait", "is longer than the cap"),
            (
                200,
                &[("ratelimit", r#""a";r=0;t=999999999999999"#)],
                Some(3600),
                "the time to wait",
                "is longer than the cap",
            ),
            (429, &[("retry-after", "-5")], Some(1), "retry-after", no_wait),
            (429, &[("retry-after", "+5")], Some(1), "retry-after", no_wait),
            (429, &[("retry-after", "1.5")], Some(1), "retry-after", no_wait),
            (503, &[("retry-after", "soon")], Some(1), "retry-after", no_wait),
            (503, &[("retry-after", "")], Some(1), "retry-after", no_wait),
            (429, &[("retry-after", "später")], Some(1), "retry-after", no_wait),
            (429, &[("retry-after", past), ("date", SENT)], Some(1), "retry-after", "is in the past"),
            (429, &[("retry-after", SENT)], Some(1), "retry-after", "is in the past"),
            // What is clear beside it counts.
            (
                429,
                &[("retry-after", "soon"), ("ratelimit", r#""a";r=0;t=30"#)],
                Some(30),
                "retry-after",
                no_wait,
            ),
            (200, &[("ratelimit", "r=0; ;;")], None, "ratelimit", "is no structured field"),
            (429, &[("ratelimit", "r=0; ;;")], Some(1), "ratelimit", "is no structured field"),
            (200, &[("ratelimit", "ä")], None, "ratelimit", "is no structured field"),
            (200, &[("ratelimit", r#""a";r=-1;t=30"#)], None, "ratelimit", "does not tell what is left"),
            (
                200,
                &[("ratelimit", r#""a";r=none;t=30, "b";r=0;t=7"#)],
                Some(7),
                "ratelimit",
                "does not tell what is left",
            ),
            (
                200,
                &[("ratelimit", r#""a";r=0;t=-30"#)],
                Some(1),
                "ratelimit",
                "has nothing left, but no whole seconds until it has",
            ),
            (
                200,
                &[("ratelimit-remaining", "-1"), ("ratelimit-reset", "30")],
                None,
                "ratelimit-remaining",
                "does not tell what is left",
            ),
            (
                200,
                &[("ratelimit-remaining", "0"), ("ratelimit-reset", "noon")],
                Some(1),
                "ratelimit-remaining",
                "has nothing left, but no whole seconds until it has",
            ),
        ] {
            let (read, doubts) = read_at(status, fields);
            let named: Vec<_> = doubts.iter().map(|doubt| (doubt.field, doubt.problem)).collect();
            assert_eq!((read, named), (hold, vec![(field, problem)]), "{status} {fields:?}");
        }
    }

    #[test]
    fn a_doubt_is_one_printable_line_that_names_the_value() {
        let (_, doubts) = read_at(429, &[("retry-after", "tomörrow")]);
        assert_eq!(
            doubts[0].to_string(),
            r#"retry-after is "tom\xc3\xb6rrow", which is neither whole seconds nor a date"#
        );
        let (_, doubts) = read_at(429, &[("retry-after", &"x".repeat(5000))]);
        assert!(doubts[0].to_string().len() < 200, "{}", doubts[0]);
        let (_, doubts) = read_at(503, &[("retry-after", "31536000")]);
        assert_eq!(
            doubts[0].to_string(),
            r#"the time to wait is "31536000 s", which is longer than the cap"#
        );
    }

    #[test]
    fn a_floor_above_the_cap_counts() {
        let (status, headers) = response(429, &[("retry-after", "9")]);
        let limits = Limits { floor: Duration::from_secs(8), cap: Duration::from_secs(5) };
        assert_eq!(read(status, &headers, limits, SystemTime::UNIX_EPOCH).hold, Some(Duration::from_secs(8)));
    }
}
