//! Which error texts are alike.

/// So many digits make a word one that tells tasks apart rather than failures.
const DIGITS: usize = 4;
/// As many characters of a text are enough to select by.
const ENOUGH: usize = 200;
/// Of a text so many parts are tried.
const TRIED: usize = 4;

/// What is left of a text without its ids: the parts between them. Texts with the same parts are alike.
///
/// An id is a word with four digits or more. A word goes on over `-` and `_`, and over `.` and `:` between two digits.
/// So ids, times, addresses and long numbers are ids. The numbers of exits, signals and HTTP are none.
pub(super) fn parts(text: &str) -> Vec<&str> {
    let bytes = text.as_bytes();
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let is_of_word = |at: usize| match bytes[at] {
        b'-' | b'_' => true,
        b'.' | b':' => at > 0 && is_digit(at - 1) && is_digit(at + 1),
        byte => byte.is_ascii_alphanumeric(),
    };
    let (mut parts, mut begin, mut at) = (Vec::new(), 0, 0);
    while at < bytes.len() {
        if !is_of_word(at) {
            at += 1;
            continue;
        }
        let end = (at..bytes.len()).find(|&end| !is_of_word(end)).unwrap_or(bytes.len());
        if (at..end).filter(|&at| is_digit(at)).count() >= DIGITS {
            // A word is ASCII, so both ends are borders of characters.
            parts.push(&text[begin..at]);
            begin = end;
        }
        at = end;
    }
    parts.push(&text[begin..]);
    parts
}

/// What texts with these parts have in common, the longest first: without control characters, so that a person can
/// type it, and without what only joins it to an id.
pub(super) fn common<'t>(parts: impl IntoIterator<Item = &'t str>) -> Vec<String> {
    let is_around = |c: char| c.is_whitespace() || ":;,".contains(c);
    let lines = parts.into_iter().flat_map(|part| part.split(char::is_control));
    let mut lines: Vec<String> = lines
        .map(|line| line.trim_matches(is_around).chars().take(ENOUGH).collect::<String>())
        .filter(|line| !line.is_empty())
        .collect();
    lines.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
    lines.dedup();
    lines.truncate(TRIED);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_times_and_addresses_do_not_tell_failures_apart() {
        for (one, other) in [
            ("row 10347: no such customer", "row 9912: no such customer"),
            (
                "task 01957b6e-5e1a-7c3e-9a53-0c6e3a1f2b4d died",
                "task 7c3e957b-1234-7aaa-bbbb-cccccccccccc died",
            ),
            ("2026-11-25T05:03:17.123Z lost", "2027-01-01T00:00:00.9Z lost"),
            ("connect 10.0.0.12:5432: refused", "connect 192.168.1.7:8080: refused"),
            ("größer als 12345 ü", "größer als 54321 ü"),
        ] {
            assert_eq!(parts(one), parts(other));
            assert_eq!(parts(one).len(), 2, "{one}");
        }
    }

    #[test]
    fn what_went_wrong_does() {
        for (one, other) in [
            ("exit code 1", "exit code 2"),
            ("HTTP 404", "HTTP 503"),
            ("timeout", "time is out"),
            ("row 1234 is bad", "row 1234 is gone"),
            ("a - b", "a _ b"),
            ("", "1234"),
        ] {
            assert_ne!(parts(one), parts(other));
        }
        // No sign stands for what was taken out.
        assert_ne!(parts("a # b"), parts("a 12345 b"));
    }

    #[test]
    fn all_texts_of_a_group_have_what_is_common_to_them() {
        let text = "thread 'main'\n\tat 2026-11-25 12345: no such customer \u{1b}[0m 98765";
        let common = common(parts(text));
        assert_eq!(common, ["no such customer", "thread 'main'", "[0m", "at"]);
        assert!(common.iter().all(|part| text.contains(part)));
        assert_eq!(super::common(parts("1234 5678")), [":"; 0]);
        assert_eq!(super::common(["ü".repeat(300).as_str()]), ["ü".repeat(200)]);
    }
}
