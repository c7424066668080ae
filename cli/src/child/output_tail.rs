//! The output of a command, bounded: its beginning and its end are kept, bytes in between are
//! counted.

use std::collections::VecDeque;

use super::keep::Keep;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OutputTail {
    first: Vec<u8>,
    last: VecDeque<u8>,
    pub(crate) missing: u64,
    most: (usize, usize),
}

impl OutputTail {
    /// Bytes of the beginning and of the end.
    pub(crate) fn of(first: usize, last: usize) -> Self {
        Self { most: (first, last), ..Self::default() }
    }

    /// A note in between shows how many bytes are missing.
    pub(crate) fn text(&self) -> String {
        let mut bytes = self.first.clone();
        if self.missing > 0 {
            bytes.extend_from_slice(format!("[… {} bytes are left out …]", self.missing).as_bytes());
        }
        bytes.extend(&self.last);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Keep for OutputTail {
    fn keep(&mut self, bytes: &[u8]) {
        let (begin, rest) = bytes.split_at(bytes.len().min(self.most.0 - self.first.len()));
        self.first.extend_from_slice(begin);
        let (skipped, rest) = rest.split_at(rest.len().saturating_sub(self.most.1));
        self.last.extend(rest);
        let over = self.last.len().saturating_sub(self.most.1);
        self.last.drain(..over);
        self.missing += (skipped.len() + over) as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn little_is_kept_whole_and_of_much_the_ends() {
        for chunk in [1, 3, 7, 100] {
            let all: Vec<u8> = (0..100).collect();
            for length in 0..100 {
                let mut tail = OutputTail::of(10, 20);
                all[..length].chunks(chunk).for_each(|bytes| tail.keep(bytes));
                let missing = length.saturating_sub(30);
                assert_eq!(tail.missing, missing as u64);
                assert_eq!(tail.first, all[..length.min(10)]);
                assert!(tail.last.iter().eq(&all[(length.min(10) + missing)..length]));
            }
        }
        let mut tail = OutputTail::of(2, 3);
        tail.keep(b"abcdefgh");
        assert_eq!(tail.text(), "ab[… 3 bytes are left out …]fgh");
    }
}
