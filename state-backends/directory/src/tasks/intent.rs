//! What becomes of files once the transaction of a command is stored: each intent can be carried out again.

use std::{fmt::Write, io};

use super::aside;
use crate::store::Files;

/// One thing to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Intent {
    /// A file that was written under another name takes its place.
    Put { temporary: String, to: String },
    /// A file goes to another place, which is free.
    Move { from: String, to: String },
    /// A file goes.
    Remove { name: String },
}

impl Intent {
    /// All that has a tab or a line break in its name is set aside before.
    pub(super) fn encode(intents: &[Self]) -> String {
        let mut text = String::new();
        for intent in intents {
            let _ = match intent {
                Self::Put { temporary, to } => writeln!(text, "put\t{temporary}\t{to}"),
                Self::Move { from, to } => writeln!(text, "move\t{from}\t{to}"),
                Self::Remove { name } => writeln!(text, "remove\t{name}\t"),
            };
        }
        text
    }

    pub(super) fn decode(text: &str) -> Vec<Self> {
        let decode = |line: &str| {
            let mut parts = line.split('\t').map(str::to_owned);
            let (what, one, other) = (parts.next()?, parts.next()?, parts.next()?);
            Some(match &*what {
                "put" => Self::Put { temporary: one, to: other },
                "move" => Self::Move { from: one, to: other },
                _ => Self::Remove { name: one },
            })
        };
        text.lines().filter_map(decode).collect()
    }

    /// The places that it changes.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let (one, other) = match self {
            Self::Put { to, .. } => (to, None),
            Self::Move { from, to } => (from, Some(to)),
            Self::Remove { name } => (name, None),
        };
        [Some(one), other].into_iter().flatten().map(String::as_str)
    }

    pub(super) fn carry_out(&self, files: &Files) -> io::Result<()> {
        let gone = |result: io::Result<()>, name: &str| match result {
            // It was done before, or a person has removed the file just now, which will be noticed.
            Err(error) if error.kind() == io::ErrorKind::NotFound && !files.is_there(name) => Ok(()),
            other => other,
        };
        match self {
            Self::Put { temporary, to } => gone(files.rename(temporary, to), temporary),
            Self::Move { from, to } => {
                let moved = files.rename_to_free(from, to);
                if let Ok(false) = moved
                    && files.is_there(from)
                {
                    let why =
                        "it was written while its task was moved: the task is there under the same name";
                    return aside::set_aside(files, from, why).map(drop);
                }
                gone(moved.map(drop), from)
            }
            Self::Remove { name } => files.remove(name),
        }
    }
}
