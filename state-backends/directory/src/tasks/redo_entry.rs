//! The redo list: file operations that follow the commit of a command. Each can be repeated.

use std::{fmt::Write, io};

use super::{names, quarantine};
use crate::store::Files;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RedoEntry {
    /// Moves a temporary file to its path.
    Put {
        temporary: String,
        to: String,
    },
    /// Writes a short text in place. The redo list has the text, so a crash midway does no harm.
    /// The path of a new file must be free.
    Write {
        is_new: bool,
        to: String,
        mark: u32,
        text: String,
    },
    /// The new path must be free.
    Move {
        from: String,
        to: String,
    },
    Remove {
        name: String,
    },
}

impl RedoEntry {
    /// Names with a tab or a line break were quarantined before.
    pub(super) fn encode(entries: &[Self]) -> String {
        let mut text = String::new();
        for entry in entries {
            let _ = match entry {
                Self::Put { temporary, to } => writeln!(text, "put\t{temporary}\t{to}"),
                Self::Write { is_new, to, mark, text: written } => {
                    let what = if *is_new { "create" } else { "write" };
                    writeln!(text, "{what}\t{to}\t{mark}\t{}\n{written}", written.len())
                }
                Self::Move { from, to } => writeln!(text, "move\t{from}\t{to}"),
                Self::Remove { name } => writeln!(text, "remove\t{name}\t"),
            };
        }
        text
    }

    pub(super) fn decode(mut text: &str) -> Vec<Self> {
        let mut entries = Vec::new();
        while let Some((line, rest)) = text.split_once('\n') {
            text = rest;
            entries.extend(Self::of_line(line, &mut text));
        }
        entries
    }

    /// The text of a written file is taken from `rest`.
    fn of_line(line: &str, rest: &mut &str) -> Option<Self> {
        let mut parts = line.split('\t').map(str::to_owned);
        let (what, one, other) = (parts.next()?, parts.next()?, parts.next()?);
        Some(match &*what {
            "put" => Self::Put { temporary: one, to: other },
            "write" | "create" => {
                let is_new = what == "create";
                let (text, behind) = rest.split_at_checked(parts.next()?.parse().ok()?)?;
                *rest = behind.strip_prefix('\n')?;
                let mark = other.parse().ok()?;
                Self::Write { is_new, to: one, mark, text: text.to_owned() }
            }
            "move" => Self::Move { from: one, to: other },
            _ => Self::Remove { name: one },
        })
    }

    /// All paths that change.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let (one, other) = match self {
            Self::Put { to, .. } | Self::Write { to, .. } => (to, None),
            Self::Move { from, to } => (from, Some(to)),
            Self::Remove { name } => (name, None),
        };
        [Some(one), other].into_iter().flatten().map(String::as_str)
    }

    /// `again`: the operation may have been carried out before.
    pub(super) fn carry_out(&self, files: &Files, again: bool) -> io::Result<()> {
        let gone = |result: io::Result<()>, name: &str| match result {
            // Carried out before, or a person has just removed the file, which the next scan finds.
            Err(error) if error.kind() == io::ErrorKind::NotFound && !files.is_there(name) => Ok(()),
            other => other,
        };
        match self {
            Self::Put { temporary, to } => gone(files.rename(temporary, to), temporary),
            Self::Write { is_new: true, to, mark, text } if !again => {
                if !files.create(to, text, *mark)? {
                    make_room(files, to)?;
                    files.write_over(to, text, *mark)?;
                }
                Ok(())
            }
            Self::Write { to, mark, text, .. } => files.write_over(to, text, *mark),
            Self::Move { from, to } => {
                let moved = files.rename_to_free(from, to);
                if let Ok(false) = moved
                    && files.is_there(from)
                {
                    if again && (files.is_marked(to, names::mark_of_path(to)) || !files.keeps_marks()) {
                        let why =
                            "it was written while its task was moved: the task is there under the same name";
                        return quarantine::isolate(files, from, why).map(drop);
                    }
                    make_room(files, to)?;
                    return files.rename_to_free(from, to).map(drop);
                }
                gone(moved.map(drop), from)
            }
            Self::Remove { name } => files.remove(name),
        }
    }
}

/// A person put or copied a file to the path of a task's file.
pub(super) fn make_room(files: &Files, to: &str) -> io::Result<()> {
    quarantine::isolate(files, to, "its name is that of a task which comes here").map(drop)
}
