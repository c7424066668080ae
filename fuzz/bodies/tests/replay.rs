//! Every input that is kept, and some thousands made of them, on plain stable Rust.
//!
//! `INTERVAL_QUEUE_SEED` makes other inputs, `INTERVAL_QUEUE_FUZZ_INPUTS` more or fewer for each target. A
//! broken promise tells the input, ready to be written to a file of the corpus.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod mutate;

use std::{
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
};

use interval_queue_fuzz_bodies::{TARGETS, Target, Verdict};
use mutate::Mutator;

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

fn target(name: &str) -> Target {
    *TARGETS.iter().find(|target| target.name == name).unwrap()
}

/// The inputs that are kept for a target, by name: those that somebody wrote, and those that were found.
fn kept(target: &Target) -> Vec<(String, Vec<u8>)> {
    let read = |of: &str| {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(of).join(target.name);
        fs::read_dir(&directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()))
    };
    let files = read("corpus").chain(read("found"));
    let mut paths: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| (path.display().to_string(), fs::read(path).unwrap())).collect()
}

/// How many inputs were tried, and what became of them.
#[derive(Debug, Default)]
struct Tally {
    read: u64,
    refused: u64,
}

impl Tally {
    fn try_one(&mut self, target: &Target, from: &str, bytes: &[u8]) {
        match catch_unwind(AssertUnwindSafe(|| (target.body)(bytes))) {
            Ok(Verdict::Read) => self.read += 1,
            Ok(Verdict::Refused) => self.refused += 1,
            Err(_) => panic!("target {} on {from}: {:?}", target.name, bytes.escape_ascii().to_string()),
        }
    }
}

fn replay(name: &str, inputs: u64) {
    let target = target(name);
    let kept = kept(&target);
    let mut tally = Tally::default();
    for (path, bytes) in &kept {
        tally.try_one(&target, path, bytes);
    }
    assert!(tally.read > 0 && tally.refused > 0, "{name}: inputs of both kinds are kept: {tally:?}");

    let seed = setting("INTERVAL_QUEUE_SEED", 0);
    let mut mutator = Mutator::new(seed, kept.into_iter().map(|(_, bytes)| bytes).collect());
    for n in 0..setting("INTERVAL_QUEUE_FUZZ_INPUTS", inputs) {
        tally.try_one(&target, &format!("input {n} of INTERVAL_QUEUE_SEED={seed}"), &mutator.make());
    }
    println!("{name}: {tally:?}");
    if let Some(directory) = std::env::var_os("INTERVAL_QUEUE_EVIDENCE") {
        let row = evidence(&target, &tally);
        fs::write(Path::new(&directory).join(format!("fuzz-{name}.json")), format!("{row:#}\n")).unwrap();
    }
}

fn evidence(target: &Target, tally: &Tally) -> serde_json::Value {
    let Tally { read, refused } = tally;
    serde_json::json!([{
        "kind": "fuzz",
        "where": target.reads,
        "fault": "malformed bytes",
        "injected": read + refused,
        "promised": "refused with a clear error, never a panic, nothing overwritten",
        "happened": format!("{refused} refused, {read} valid and read or carried out as such, 0 panics, 0 broken promises"),
    }])
}

macro_rules! targets {
    ($($name:ident: $inputs:literal),* $(,)?) => {
        $(#[test] fn $name() { replay(stringify!($name), $inputs); })*

        #[test]
        fn no_target_is_left_out() {
            let names = TARGETS.map(|target| target.name);
            assert_eq!(names, [$(stringify!($name)),*]);
            for name in names {
                let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../fuzz_targets/{name}.rs"));
                assert!(fs::read_to_string(file).unwrap().contains(&format!("run(\"{name}\"")), "{name}");
            }
        }
    };
}

targets! {
    record: 20_000,
    document: 10_000,
    url: 20_000,
    duration: 40_000,
    names: 20_000,
    answer: 20_000,
    feedback: 20_000,
    rules: 20_000,
    tasks: 2_000,
    rows: 200,
    lines: 20_000,
    verdict: 20_000,
}
