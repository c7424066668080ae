//! The log of a task: lines that its runs wrote, and notes by operators.

use interval_queue_contract::{InvalidInput, Micros};
use serde::{Deserialize, Serialize};

use crate::{TaskId, Token};

/// Most lines of one run that are kept, the last ones.
pub const MAX_LOG_LINES: usize = 64;
/// Longest line of a log or note, in characters.
pub const MAX_LOG_TEXT: usize = 500;
/// Most notes of a task that are kept, the last ones.
pub const MAX_NOTES: usize = 16;
/// Maximum [size](LogLine::size) of a task's log, in bytes: the oldest lines of runs are dropped
/// first.
pub const MAX_LOG: usize = 64 << 10;
/// Bytes that a line counts besides its text.
pub const LOG_LINE_BYTES: usize = 64;

/// A stored line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    /// When it was written, on the store's clock.
    pub at: Micros,
    /// The run. [`Token::default`]: a note.
    pub token: Token,
    /// Number of the line in its run, or of the note, from 1. A gap: lines were dropped.
    pub number: u32,
    /// The text, without line breaks.
    pub text: String,
}

impl LogLine {
    /// Its approximate size in a store, in bytes.
    pub fn size(&self) -> usize {
        self.text.len() + LOG_LINE_BYTES
    }

    /// Whether it is a note by an operator.
    pub fn is_note(&self) -> bool {
        self.token == Token::default()
    }
}

/// A line that a worker reports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NewLogLine {
    /// See [`LogLine::number`]. A number not above the last stored one changes nothing.
    pub number: u32,
    /// Time since it was written, by the worker's clock.
    pub age: Micros,
    /// The text, without line breaks.
    pub text: String,
}

/// Lines of one run, oldest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RunLog {
    /// The task.
    pub id: TaskId,
    /// The token of the run.
    pub token: Token,
    /// At most [`MAX_LOG_LINES`].
    pub lines: Vec<NewLogLine>,
}

impl RunLog {
    pub(crate) fn check(&self) -> Result<(), InvalidInput> {
        let many = self.lines.len();
        if many > MAX_LOG_LINES {
            let text = format!("{many} lines of a log: report at most {MAX_LOG_LINES} of a run at once");
            return Err(InvalidInput::new(text));
        }
        self.lines.iter().try_for_each(|line| check_line(&line.text))
    }
}

pub(crate) fn check_line(text: &str) -> Result<(), InvalidInput> {
    let long = text.chars().count();
    if long > MAX_LOG_TEXT {
        let text = format!("a line of {long} characters: give at most {MAX_LOG_TEXT}");
        return Err(InvalidInput::new(text));
    }
    if text.contains(['\n', '\r']) {
        return Err(InvalidInput::new(format!("{text:?} has a line break: give one line")));
    }
    Ok(())
}

pub(crate) fn append(log: &mut Vec<LogLine>, token: Token, lines: impl IntoIterator<Item = LogLine>) {
    log.extend(lines);
    let limit = if token == Token::default() { MAX_NOTES } else { MAX_LOG_LINES };
    let mut over = log.iter().filter(|line| line.token == token).count().saturating_sub(limit);
    log.retain(|line| {
        let is_dropped = over > 0 && line.token == token;
        over -= usize::from(is_dropped);
        !is_dropped
    });
    let mut bytes: usize = log.iter().map(LogLine::size).sum();
    log.retain(|line| {
        let is_dropped = bytes > MAX_LOG && !line.is_note();
        bytes -= if is_dropped { line.size() } else { 0 };
        !is_dropped
    });
}

pub(crate) fn last_number(log: &[LogLine], token: Token) -> u32 {
    log.iter().filter(|line| line.token == token).map(|line| line.number).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTE: Token = Token { incarnation: Micros::ZERO, attempt: 0 };

    fn token(attempt: u32) -> Token {
        Token { incarnation: Micros::new(7), attempt }
    }

    fn lines(token: Token, numbers: std::ops::RangeInclusive<u32>, size: usize) -> Vec<LogLine> {
        let line =
            |number| LogLine { at: Micros::new(u64::from(number)), token, number, text: "x".repeat(size) };
        numbers.map(line).collect()
    }

    fn numbers(log: &[LogLine], token: Token) -> Vec<u32> {
        log.iter().filter(|line| line.token == token).map(|line| line.number).collect()
    }

    #[test]
    fn a_run_keeps_its_last_lines() {
        let mut log = Vec::new();
        append(&mut log, token(1), lines(token(1), 1..=3, 1));
        append(&mut log, token(2), lines(token(2), 1..=70, 1));
        assert_eq!(numbers(&log, token(1)), [1, 2, 3]);
        assert_eq!(numbers(&log, token(2)), (7..=70).collect::<Vec<_>>());
        assert_eq!(last_number(&log, token(2)), 70);
    }

    #[test]
    fn a_log_is_bounded_and_keeps_its_notes() {
        let mut log = Vec::new();
        append(&mut log, NOTE, lines(NOTE, 1..=20, 500));
        for attempt in 1..=50 {
            append(&mut log, token(attempt), lines(token(attempt), 1..=64, 0));
        }
        assert!(log.len() <= MAX_LOG / LOG_LINE_BYTES, "empty lines count");
        for attempt in 1..=5 {
            append(&mut log, token(attempt), lines(token(attempt), 1..=64, 500));
        }
        assert!(log.iter().map(LogLine::size).sum::<usize>() <= MAX_LOG);
        assert_eq!(numbers(&log, NOTE), (5..=20).collect::<Vec<_>>());
        assert_eq!(numbers(&log, token(5)), (1..=64).collect::<Vec<_>>());
        assert!(numbers(&log, token(1)).is_empty());
    }
}
