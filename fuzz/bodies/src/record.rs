//! The record parser.

use interval_queue::{
    Snapshot,
    contract::{Memory, Record},
};

use crate::promise::{Verdict, is_sound, refuses};

pub(crate) fn body(bytes: &[u8]) -> Verdict {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Verdict::Refused;
    };
    match Record::from_json(text) {
        Ok(record) => {
            is_sound(&record);
            let at = Memory::of(&record).at;
            let standing = Snapshot { at, record }.start_status().to_string();
            assert!(!standing.chars().any(char::is_control), "{standing:?}");
            Verdict::Read
        }
        Err(error) => refuses(&error, bytes),
    }
}
