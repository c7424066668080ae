//! Reasons, numbers and times in words, for terminals and pages.

mod condition;
mod counts;
mod length;
mod reason;
mod visible;

use std::time::UNIX_EPOCH;

use interval_queue::Micros;
use interval_queue_tasks::contract::{AttemptEnd, LogLine, Progress};

pub use condition::{condition, fact, facts, reason, resume_key, resume_kind};
pub use counts::{measured, share, states};
pub use length::{Length, about, show};
pub use reason::why;
pub use visible::visible;

/// A number with its thousands separated: `12,345`.
pub fn number(of: u64) -> String {
    let digits = of.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A count with its noun.
pub fn many(count: u64, one: &str, more: &str) -> String {
    format!("{} {}", number(count), if count == 1 { one } else { more })
}

/// `1 task`, or `N tasks`.
pub fn tasks(count: u64) -> String {
    many(count, "task", "tasks")
}

/// An instant of the store's clock, in UTC.
pub fn time(at: Micros) -> String {
    UNIX_EPOCH
        .checked_add(at.to_duration())
        .map_or_else(|| "far away".into(), |at| humantime::format_rfc3339_seconds(at).to_string())
}

/// A stored text on one line, with escapes for what a terminal does not show.
pub fn line(text: &str) -> String {
    visible(&text.trim().replace(char::is_control, " ")).into_owned()
}

/// A word as a shell takes it.
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.:/,@%+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// The progress of a run: `3 of 10 rows`.
pub fn progress(at: &Progress) -> String {
    let of = if at.total > 0 { format!(" of {}", at.total) } else { String::new() };
    line(&format!("{}{of} {}", at.done, at.text))
}

/// Where a line of a log comes from: `attempt 2`, or `note`.
pub fn log_source(line: &LogLine) -> String {
    if line.is_note() { "note".into() } else { format!("attempt {}", line.token.attempt) }
}

/// A line of a log with its time and source.
pub fn log_line(line: &LogLine) -> String {
    format!("{} {}: {}", time(line.at), log_source(line), self::line(&line.text))
}

/// How a run ended, as a word.
pub fn end(end: AttemptEnd) -> &'static str {
    match end {
        AttemptEnd::Done => "done",
        AttemptEnd::Error => "error",
        AttemptEnd::Retry => "retry",
        AttemptEnd::Released => "released",
        AttemptEnd::Stopped => "stopped",
        AttemptEnd::Died => "died",
        AttemptEnd::Lost => "lost",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_their_thousands_separated() {
        let numbers = [0, 7, 999, 1_000, 12_345, 1_234_567].map(number);
        assert_eq!(numbers, ["0", "7", "999", "1,000", "12,345", "1,234,567"]);
        assert_eq!([tasks(1), tasks(2_000)], ["1 task", "2,000 tasks"]);
    }

    #[test]
    fn a_shell_reads_a_quoted_word_as_it_is() {
        assert_eq!(quoted("refused:1/2"), "refused:1/2");
        assert_eq!(quoted("it's $HOME"), "'it'\\''s $HOME'");
        assert_eq!(quoted(""), "''");
    }
}
