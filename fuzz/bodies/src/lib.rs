//! What the fuzz targets do with bytes: a plain function each, which panics if a promise is broken.
//!
//! `cargo fuzz` calls them for long runs (`../fuzz_targets`), `tests/replay.rs` with the corpus that is kept.
//! Each knows more than that nothing panics: what is read is valid and is read again from what it is written
//! as, and what is refused is refused in one clear line.

#![allow(clippy::unwrap_used, clippy::missing_panics_doc, reason = "a broken promise is a panic here")]

mod answer;
mod commands;
mod document;
mod duration;
mod feedback;
mod names;
/// The program's own file by a link, since a program has no library.
#[allow(unreachable_pub, reason = "the file of another crate")]
mod of_the_program;
mod promise;
mod record;
mod rules;
mod url;

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
pub const TARGETS: [Target; 8] = [
    Target { name: "record", reads: "the record of a queue as JSON", body: record::body },
    Target { name: "document", reads: "the state file of many queues", body: document::body },
    Target { name: "url", reads: "the URL of a state", body: url::body },
    Target { name: "duration", reads: "a duration on the command line", body: duration::body },
    Target { name: "names", reads: "names, labels, ids and the keys made of them", body: names::body },
    Target { name: "answer", reads: "what a Redis answers", body: answer::body },
    Target { name: "feedback", reads: "what an HTTP response says of the rate", body: feedback::body },
    Target { name: "rules", reads: "any command on any record that passes its check", body: rules::body },
];

/// Does what the target of that name does.
pub fn run(target: &str, bytes: &[u8]) {
    let target = TARGETS.iter().find(|known| known.name == target).unwrap();
    let _ = (target.body)(bytes);
}
