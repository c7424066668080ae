//! What the fuzz targets do with bytes: a plain function each, which panics if a promise is broken.
//!
//! `cargo fuzz` calls them for long runs (`../fuzz_targets`), `tests/replay.rs` with the corpus that is kept.
//! Each knows more than that nothing panics: what is read is valid and is read again from what it is written
//! as, and what is refused is refused in one clear line.

#![allow(clippy::unwrap_used, clippy::missing_panics_doc, reason = "a broken promise is a panic here")]

mod answer;
#[allow(dead_code, unreachable_pub, reason = "files of another crate, which asks more of them")]
mod child;
mod commands;
mod document;
mod duration;
#[allow(dead_code, reason = "the file of another crate, which asks more of it")]
mod exit;
mod feedback;
mod lines;
mod names;
#[allow(dead_code, unreachable_pub, reason = "files of another crate, which asks more of them")]
mod of_the_program;
mod promise;
mod record;
mod rows;
mod rules;
mod task_commands;
mod tasks;
mod url;
mod verdict;

pub use promise::Verdict;

/// A parser under test.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The name of the fuzz target, and of its directory of inputs.
    pub name: &'static str,
    /// What it reads, in plain words.
    pub reads: &'static str,
    /// What it does with bytes.
    pub body: fn(&[u8]) -> Verdict,
}

/// All of them.
pub const TARGETS: [Target; 12] = [
    Target { name: "record", reads: "the record of a queue as JSON", body: record::body },
    Target { name: "document", reads: "the state file of many queues", body: document::body },
    Target { name: "url", reads: "the URL of a state", body: url::body },
    Target { name: "duration", reads: "a duration on the command line", body: duration::body },
    Target { name: "names", reads: "names, labels, ids and the keys made of them", body: names::body },
    Target { name: "answer", reads: "what a Redis answers", body: answer::body },
    Target { name: "feedback", reads: "what an HTTP response says of the rate", body: feedback::body },
    Target { name: "rules", reads: "any command on any record that passes its check", body: rules::body },
    Target { name: "tasks", reads: "any commands on stored tasks, one after the other", body: tasks::body },
    Target {
        name: "rows",
        reads: "the tables of stored tasks in SQLite, with any value in any cell",
        body: rows::body,
    },
    Target { name: "lines", reads: "lines of payloads, and what else of a task is text", body: lines::body },
    Target {
        name: "verdict",
        reads: "what a command of a task prints, and what its guard is told",
        body: verdict::body,
    },
];

/// Does what the target of that name does.
pub fn run(target: &str, bytes: &[u8]) {
    let target = TARGETS.iter().find(|known| known.name == target).unwrap();
    let _ = (target.body)(bytes);
}
