//! Similarity of error texts.

use std::ops::Range;

/// A word with as many digits is an id.
const MIN_ID_DIGITS: usize = 4;
/// A word of as many hexadecimal digits, one of them 0 to 9, is an id.
const MIN_HEX_DIGITS: usize = 7;
/// Counts characters.
const MAX_COMMON_CHARS: usize = 200;
/// Maximum per group.
const MAX_CANDIDATES: usize = 4;
/// Short numbers after these words distinguish failures.
const CODES: [&str; 6] = ["code", "status", "signal", "http", "errno", "error"];

/// Begin of a text whose group a handler has named; `] ` ends the name.
const GROUP: &str = "[group ";
/// Counts characters.
pub(crate) const MAX_GROUP: usize = 40;

/// Only letters, digits, `-`, `_` and `.`, and a valid length.
pub(crate) fn is_group(name: &str) -> bool {
    (1..=MAX_GROUP).contains(&name.chars().count())
        && name.chars().all(|c| c.is_alphanumeric() || "-_.".contains(c))
}

pub(crate) fn with_group(name: &str, text: &str) -> String {
    format!("{GROUP}{name}] {text}")
}

fn group(text: &str) -> Option<&str> {
    let name = text.strip_prefix(GROUP)?.split_once("] ")?.0;
    is_group(name).then(|| &text[..GROUP.len() + name.len() + 1])
}

/// The parts of a text between its ids. Texts with equal parts are similar.
///
/// Ids are numbers, hexadecimal words, UUIDs, times, host and mail addresses, and quoted text. A
/// number of up to three digits after a word such as `code`, `status` or `HTTP` is no id: it
/// distinguishes failures.
pub(super) fn parts(text: &str) -> Vec<&str> {
    if let Some(group) = group(text) {
        return vec![group];
    }
    let (mut parts, mut begin, mut at) = (Vec::new(), 0, 0);
    while at < text.len() {
        let (ids, next) = match quoted(text, at) {
            Some(inside) => {
                let next = inside.end + 1;
                (vec![inside], next)
            }
            None => word(text, at),
        };
        for id in ids {
            parts.push(&text[begin..id.start]);
            begin = id.end;
        }
        at = next;
    }
    parts.push(&text[begin..]);
    parts
}

/// The quotes are on one line.
fn quoted(text: &str, at: usize) -> Option<Range<usize>> {
    let quote = text[at..].chars().next().filter(|c| "'\"`".contains(*c))?;
    // An apostrophe is no quote.
    if text[..at].chars().next_back().is_some_and(char::is_alphanumeric) {
        return None;
    }
    let rest = &text[at + 1..];
    let line = rest.find(['\n', '\r']).map_or(rest, |end| &rest[..end]);
    let ends = line.match_indices(quote).map(|(end, _)| end);
    let is_end = |end: &usize| !rest[end + 1..].starts_with(char::is_alphanumeric);
    let end = ends.into_iter().find(is_end)?;
    (end > 0).then_some(at + 1..at + 1 + end)
}

/// Also returns the word's end.
fn word(text: &str, at: usize) -> (Vec<Range<usize>>, usize) {
    let rest = &text[at..];
    let is_of_word = |c: char| c.is_alphanumeric() || "-_.:@+%".contains(c);
    let length = rest.find(|c: char| !is_of_word(c)).unwrap_or(rest.len());
    if length == 0 {
        return (Vec::new(), at + rest.chars().next().map_or(1, char::len_utf8));
    }
    if let Some(host) = rest.strip_prefix(&rest[..length]).filter(|_| rest[..length].ends_with(':'))
        && host.starts_with("//")
    {
        let from = at + length + 2;
        let end = text[from..].find(|c: char| c.is_whitespace() || "/?#'\"`<>),;".contains(c));
        let end = end.map_or(text.len(), |end| from + end);
        return (Vec::from_iter((end > from).then_some(from..end)), end);
    }
    // Trailing punctuation belongs to the sentence.
    let word = rest[..length].trim_end_matches(|c: char| "-_.:@+%".contains(c));
    let end = at + length;
    if word.is_empty() {
        return (Vec::new(), end);
    }
    if is_id(word) {
        return (std::iter::once(at..at + word.len()).collect(), end);
    }
    if is_code(word, &text[..at]) {
        return (Vec::new(), end);
    }
    (digits(word).map(|run| at + run.start..at + run.end).collect(), end)
}

fn is_id(word: &str) -> bool {
    let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let has_digit = word.bytes().any(|byte| byte.is_ascii_digit());
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    let is_mail = word.split_once('@').is_some_and(|(name, host)| !name.is_empty() && !host.is_empty());
    let is_v6 = word.matches(':').count() > 1 && word.split(':').all(is_hex);
    let is_number = word.strip_prefix("0x").is_some_and(is_hex)
        || word.len() >= MIN_HEX_DIGITS && is_hex(word) && has_digit;
    is_mail || has_digit && is_v6 || is_number || digits >= MIN_ID_DIGITS || is_v4(word)
}

fn is_v4(word: &str) -> bool {
    let host = word.split(':').next().unwrap_or_default();
    host.split('.').count() == 4 && host.split('.').all(|part| part.parse::<u8>().is_ok())
}

/// A short number after one of `CODES`.
fn is_code(word: &str, before: &str) -> bool {
    if word.len() > 3 || !word.bytes().all(|byte| byte.is_ascii_digit()) {
        return false;
    }
    let before = before.trim_end_matches(|c: char| c.is_whitespace() || ":=(#".contains(c));
    let last = before.rsplit(|c: char| !c.is_alphabetic()).next().unwrap_or_default();
    CODES.iter().any(|code| last.eq_ignore_ascii_case(code))
}

fn digits(word: &str) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at + word[at..].find(|c: char| c.is_ascii_digit())?;
        let end = word[start..].find(|c: char| !c.is_ascii_digit()).map_or(word.len(), |end| start + end);
        at = end;
        Some(start..end)
    })
}

/// Substrings of all texts with these parts, longest first: without control characters, so that a
/// person can type them, and without outer separators.
pub(super) fn common<'t>(parts: impl IntoIterator<Item = &'t str>) -> Vec<String> {
    let is_around = |c: char| c.is_whitespace() || ":;,".contains(c);
    let lines = parts.into_iter().flat_map(|part| part.split(char::is_control));
    let mut lines: Vec<String> = lines
        .map(|line| line.trim_matches(is_around).chars().take(MAX_COMMON_CHARS).collect::<String>())
        .filter(|line| !line.is_empty())
        .collect();
    lines.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
    lines.dedup();
    lines.truncate(MAX_CANDIDATES);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_times_and_addresses_do_not_split_failures() {
        for (one, other) in [
            ("row 10347: no such customer", "row 7: no such customer"),
            ("smtp-0 is down", "smtp-12 is down"),
            ("no mailbox user7@example.com", "no mailbox ada@example.org"),
            (
                "task 01957b6e-5e1a-7c3e-9a53-0c6e3a1f2b4d died",
                "task 7c3e957b-1234-7aaa-bbbb-cccccccccccc died",
            ),
            ("2026-11-25T05:03:17.123Z lost", "2027-01-01T00:00:00.9Z lost"),
            ("connect 10.0.0.12:5432: refused", "connect 192.168.1.7:8080: refused"),
            ("connect fe80::1ff:fe23 refused", "connect 2001:db8::1 refused"),
            ("GET https://a.example:8080/x failed", "GET https://b.example/x failed"),
            ("at 0xdeadbeef", "at 0x17"),
            ("commit a1b2c3d is gone", "commit 99ffeed is gone"),
            ("no column \"a b\" here", "no column \"size\" here"),
            ("größer als 12345 ü", "größer als 54321 ü"),
        ] {
            assert_eq!(parts(one), parts(other));
            assert_eq!(parts(one).len(), 2, "{one}");
        }
    }

    #[test]
    fn different_causes_split_failures() {
        for (one, other) in [
            ("exit code 1", "exit code 2"),
            ("exit status: 1", "exit status: 75"),
            ("HTTP 404", "HTTP 503"),
            ("it was killed by signal 9", "it was killed by signal 15"),
            ("timeout", "time is out"),
            ("row 1234 is bad", "row 1234 is gone"),
            ("it's down", "it's up"),
            ("a - b", "a _ b"),
            ("", "1234"),
        ] {
            assert_ne!(parts(one), parts(other));
        }
        // No placeholder replaces an id.
        assert_ne!(parts("a # b"), parts("a 12345 b"));
    }

    #[test]
    fn all_texts_of_a_group_have_what_is_common_to_them() {
        let text = "thread 'main'\n\tat 2026-11-25 12345: no such customer \u{1b}[0m 98765";
        let common = common(parts(text));
        assert_eq!(common[..2], ["no such customer", "thread '"]);
        assert!(common.iter().all(|part| text.contains(part)));
        assert_eq!(super::common(parts("1234 5678")), [":"; 0]);
        assert_eq!(super::common(["ü".repeat(300).as_str()]), ["ü".repeat(200)]);
    }

    #[test]
    fn any_text_has_parts() {
        for text in
            ["'", "\"\"", "'a", "://", "a://", "@", "0x", "1.2.3.4:", "日本 'ü' 7", ":::", "it's 'x' y's"]
        {
            let joined: String = parts(text).concat();
            assert!(joined.len() <= text.len(), "{text}");
        }
    }
}
