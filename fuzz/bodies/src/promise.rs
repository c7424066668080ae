//! The promises that hold for every parser.

use std::{error::Error, fmt::Debug};

use interval_queue::contract::Record;

/// What became of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Verdict {
    /// It was read.
    Read,
    /// It was refused.
    Refused,
}

/// Inputs hide this where passwords stand.
pub(crate) const SECRET: &str = "hunter2";

/// One line that begins in lower case or with the value, of bounded length.
pub(crate) fn is_clear(error: &str, input: &[u8]) {
    assert!(!error.is_empty(), "an error says something");
    assert!(!error.chars().any(char::is_control), "an error is one printable line: {error:?}");
    // Names are quoted and may be escaped: up to six characters for one.
    assert!(error.len() <= 1000 + 12 * input.len(), "an error is no longer than it must be: {error}");
    let first = error.chars().next().unwrap_or_default();
    let named = std::str::from_utf8(input).is_ok_and(|input| input.contains(first));
    assert!(!first.is_uppercase() || named, "an error begins in lower case, or with the value: {error}");
}

/// Also with everything a person could see of the error.
pub(crate) fn refuses<E: Error + Debug>(error: &E, input: &[u8]) -> Verdict {
    is_clear(&error.to_string(), input);
    Verdict::Refused
}

/// The rules can work with it, and it is read again from what is written.
pub(crate) fn is_sound(record: &Record) {
    assert!(record.check().is_ok(), "{:?}: {record:?}", record.check());
    let json = record.to_json().unwrap();
    assert_eq!(Record::from_json(&json).unwrap(), *record, "{json}");
}
