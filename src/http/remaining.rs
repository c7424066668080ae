//! The standard fields for what remains of a limit: `RateLimit` and its predecessors.

use std::time::{Duration, SystemTime};

use ::http::{HeaderMap, HeaderValue};
use sfv::{BareItem, Dictionary, Item, List, ListEntry, Parser};

use super::doubt::UnusableField;

/// Since the seventh draft.
const RATE_LIMIT: &str = "ratelimit";
/// Before the seventh draft, with [`RESET`].
const REMAINING: &str = "ratelimit-remaining";
const RESET: &str = "ratelimit-reset";

/// The longest wait; zero if the fields of the used-up limits give none.
pub(super) fn used_up(
    headers: &HeaderMap,
    at: SystemTime,
    doubts: &mut Vec<UnusableField>,
) -> Option<Duration> {
    let lines: Vec<_> = headers.get_all(RATE_LIMIT).iter().map(HeaderValue::as_bytes).collect();
    // A list may be spread over several lines (RFC 9651, section 4.2).
    let combined = lines.join(&b", "[..]);
    let mut doubt = |problem| doubts.push(UnusableField::new(RATE_LIMIT, &combined, problem));
    let stated = stated(&combined).unwrap_or_else(|| {
        doubt("is no structured field");
        Vec::new()
    });
    let combined = stated.iter().filter_map(|limit| limit.used_up(&mut doubt)).max();

    let value = |field| headers.get(field).map(HeaderValue::as_bytes);
    let separate = value(REMAINING).and_then(|remaining| {
        let reset = value(RESET).map(|reset| number(reset).and_then(|reset| until(reset, at)));
        Stated { left: number(remaining), reset }.used_up(|problem| {
            let both = [remaining, value(RESET).unwrap_or_default()].join(&b" and "[..]);
            doubts.push(UnusableField::new(REMAINING, both, problem));
        })
    });
    combined.max(separate)
}

/// `left` and the inner `reset` are `None` if unreadable.
#[derive(Debug, PartialEq, Eq)]
struct Stated {
    left: Option<u64>,
    reset: Option<Option<Duration>>,
}

impl Stated {
    fn new(left: &BareItem, reset: Option<&BareItem>) -> Self {
        Self { left: whole(left), reset: reset.map(|reset| whole(reset).map(Duration::from_secs)) }
    }

    fn used_up(&self, mut doubt: impl FnMut(&'static str)) -> Option<Duration> {
        match (self.left, self.reset) {
            (Some(0), None) => Some(Duration::ZERO),
            (Some(0), Some(Some(reset))) => Some(reset),
            (Some(0), Some(None)) => {
                doubt("has nothing left, but no whole seconds until it has");
                Some(Duration::ZERO)
            }
            (Some(_), _) => None,
            (None, _) => {
                doubt("is no count of what is left");
                None
            }
        }
    }
}

/// A list of items with parameters; before the eighth draft a dictionary.
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

/// Seconds, or seconds since 1970, which large services send against every draft. No limit lasts
/// thirty years, so the two are distinct.
fn until(reset: u64, at: SystemTime) -> Option<Duration> {
    let reset = Duration::from_secs(reset);
    if reset < Duration::from_secs(1_000_000_000) {
        return Some(reset);
    }
    SystemTime::UNIX_EPOCH.checked_add(reset)?.duration_since(at).ok()
}

#[cfg(test)]
mod tests {
    use super::{super::reading::tests::headers, *};

    /// At the second 1,600,000,000. Returns the wait in seconds and the doubts.
    fn read(lines: &str) -> (Option<u64>, Vec<(&'static str, &'static str)>) {
        let mut doubts = Vec::new();
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_600_000_000);
        let wait = used_up(&headers(lines), at, &mut doubts);
        (wait.map(|wait| wait.as_secs()), doubts.iter().map(|doubt| (doubt.field, doubt.problem)).collect())
    }

    #[test]
    fn clear_fields_are_taken_as_they_are() {
        for (lines, wait) in [
            ("server: x", None),
            ("ratelimit: \"default\";r=0;t=30", Some(30)),
            ("ratelimit: \"default\";r=1;t=30", None),
            ("ratelimit: \"default\";r=0", Some(0)),
            ("ratelimit: default;r=0;t=30", Some(30)),
            ("ratelimit: \"default\";t=30", None),
            // Several limits: the longest wait of the used-up ones.
            ("ratelimit: \"a\";r=0;t=3, \"b\";r=0;t=60;pk=:cHsdsRa894==:, \"c\";r=7;t=99", Some(60)),
            ("ratelimit: \"a\";r=0;t=60\nratelimit: \"b\";r=0;t=3", Some(60)),
            ("ratelimit: ", None),
            ("ratelimit: (\"a\" \"b\");r=0;t=30", None),
            ("ratelimit-policy: \"default\";q=0;w=30", None),
            // Earlier drafts.
            ("ratelimit: limit=10, remaining=0, reset=30", Some(30)),
            ("ratelimit: limit=10, remaining=1, reset=30", None),
            ("ratelimit: limit=10, remaining=0", Some(0)),
            ("ratelimit-limit: 10\nratelimit-remaining: 0\nratelimit-reset: 30", Some(30)),
            ("ratelimit-limit: 10\nratelimit-remaining: 3\nratelimit-reset: 30", None),
            ("ratelimit-remaining: 0;w=60\nratelimit-reset: 30", Some(30)),
            ("ratelimit-remaining: 0", Some(0)),
            ("ratelimit-reset: 30", None),
            ("ratelimit-remaining: 0\nratelimit-reset: 1600000030", Some(30)),
            ("ratelimit: \"default\";r=0;t=5\nratelimit-remaining: 0\nratelimit-reset: 9", Some(9)),
            // Not standard: the unit of the reset is unknown.
            ("x-ratelimit-remaining: 0\nx-ratelimit-reset: 30", None),
        ] {
            assert_eq!(read(lines), (wait, Vec::new()), "{lines}");
        }
    }

    #[test]
    fn doubtful_fields_are_named() {
        const WHAT_LEFT: &str = "is no count of what is left";
        const UNTIL_WHEN: &str = "has nothing left, but no whole seconds until it has";
        for (lines, wait, field, problem) in [
            ("ratelimit: r=0; ;;", None, RATE_LIMIT, "is no structured field"),
            ("ratelimit: ä", None, RATE_LIMIT, "is no structured field"),
            ("ratelimit: \"a\";r=-1;t=30", None, RATE_LIMIT, WHAT_LEFT),
            ("ratelimit: \"a\";r=none;t=30, \"b\";r=0;t=7", Some(7), RATE_LIMIT, WHAT_LEFT),
            ("ratelimit: \"a\";r=0;t=-30", Some(0), RATE_LIMIT, UNTIL_WHEN),
            ("ratelimit: \"a\";r=0;t=1.5", Some(0), RATE_LIMIT, UNTIL_WHEN),
            ("ratelimit-remaining: -1\nratelimit-reset: 30", None, REMAINING, WHAT_LEFT),
            ("ratelimit-remaining: 0\nratelimit-reset: noon", Some(0), REMAINING, UNTIL_WHEN),
            ("ratelimit-remaining: 0\nratelimit-reset: 1599999999", Some(0), REMAINING, UNTIL_WHEN),
        ] {
            assert_eq!(read(lines), (wait, vec![(field, problem)]), "{lines}");
        }
    }
}
