//! What a killed process leaves of a file that it overwrites: a whole text, at every length up to a page.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    env, fs,
    io::{BufRead, BufReader},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use crate::store::file::{TextFile, Way};

/// Tells a copy of this test program in which directory it is to write until it is killed.
const DIRECTORY: &str = "JSON_FILE_TEST_VICTIM";
/// One file for each: around sectors of a disk, and up to a page.
const LENGTHS: [usize; 4] = [1, 513, 4095, 4096];

fn file_of(directory: &Path, length: usize) -> PathBuf {
    directory.join(length.to_string())
}

/// Overwrites one file after the other without end, with texts of one letter.
fn be_a_victim(directory: &Path) {
    let mut files = LENGTHS.map(|length| TextFile::new(file_of(directory, length), Way::InPlace));
    let (mut before, mut text) = (Vec::new(), Vec::new());
    println!("writing");
    for letter in (b'a'..=b'z').cycle() {
        for (file, length) in files.iter_mut().zip(LENGTHS) {
            let before = file.read(&mut before).unwrap().unwrap().len();
            text.clear();
            text.resize(length, letter);
            file.replace(before, &mut text).unwrap();
        }
    }
}

#[test]
fn a_process_killed_while_it_overwrites_leaves_a_whole_text() {
    const NAME: &str = "store::killed::a_process_killed_while_it_overwrites_leaves_a_whole_text";
    if let Some(directory) = env::var_os(DIRECTORY) {
        return be_a_victim(Path::new(&directory));
    }
    let is_long = env::var_os("INTERVAL_QUEUE_CHAOS").is_some_and(|value| value == "long");
    // Where memory is the disk a file of two pages is spoilt after some thirty kills.
    for place in [env::temp_dir(), "/dev/shm".into()].iter().filter(|place| place.is_dir()) {
        kill_for(Duration::from_secs(if is_long { 60 } else { 1 }), place, NAME);
    }
}

#[allow(clippy::disallowed_methods, reason = "bounds how long the test runs")]
fn kill_for(duration: Duration, place: &Path, test: &str) {
    let directory = tempfile::tempdir_in(place).unwrap();
    let files = LENGTHS.map(|length| file_of(directory.path(), length));
    for (file, length) in files.iter().zip(LENGTHS) {
        fs::write(file, vec![b'.'; length]).unwrap();
    }
    let inodes = files.each_ref().map(|file| fs::metadata(file).unwrap().ino());
    let (begun, mut kills) = (Instant::now(), 0);
    while begun.elapsed() < duration {
        let mut victim = Command::new(env::current_exe().unwrap());
        victim.args(["--exact", test, "--nocapture"]).env(DIRECTORY, directory.path());
        let mut victim = victim.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(victim.stdout.take().unwrap()).lines();
        assert!(lines.map_while(Result::ok).any(|line| line.ends_with("writing")));
        thread::sleep(Duration::from_micros(kills % 50 * 10));
        victim.kill().unwrap();
        victim.wait().unwrap();
        kills += 1;
        for (file, length) in files.iter().zip(LENGTHS) {
            let text = fs::read(file).unwrap();
            let is_whole = text.len() == length && text.iter().all(|letter| *letter == text[0]);
            assert!(is_whole, "{} is spoilt after {kills} kills", file.display());
        }
    }
    println!("{}: {kills} kills", place.display());
    assert!(kills > 10, "{kills}");
    assert_eq!(files.map(|file| fs::metadata(file).unwrap().ino()), inodes, "never overwritten");
}
