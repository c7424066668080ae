//! Unusable fields of a response.

use std::fmt;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct UnusableField {
    pub(super) field: &'static str,
    /// Escaped, truncated after 100 bytes.
    value: String,
    pub(super) problem: &'static str,
}

impl UnusableField {
    pub(super) fn new(field: &'static str, value: impl AsRef<[u8]>, problem: &'static str) -> Self {
        const MAX_SHOWN_CHARS: usize = 100;
        let value = value.as_ref();
        let shown = value[..value.len().min(MAX_SHOWN_CHARS)].escape_ascii();
        let rest = if value.len() > MAX_SHOWN_CHARS { "…" } else { "" };
        Self { field, value: format!("\"{shown}{rest}\""), problem }
    }
}

impl fmt::Display for UnusableField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { field, value, problem } = self;
        write!(f, "{field} is {value}, which {problem}")
    }
}
