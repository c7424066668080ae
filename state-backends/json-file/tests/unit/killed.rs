//! What a killed process leaves of a file that it overwrites: a whole text, at every length up to a page.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    env, fs,
    io::{self, BufRead},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use interval_queue_test_support::Process;

use crate::store::file::{Flush, TextFile};

/// One file for each: around sectors of a disk, and up to a page.
const LENGTHS: [usize; 4] = [1, 513, 4095, 4096];

fn file_of(directory: &Path, length: usize) -> PathBuf {
    directory.join(length.to_string())
}

/// Overwrites one file after the other without end, with texts of one letter.
fn be_a_victim() {
    let directory = PathBuf::from(io::stdin().lock().lines().next().unwrap().unwrap());
    let mut files = LENGTHS.map(|length| TextFile::new(file_of(&directory, length), true, Flush::Nothing));
    let (mut before, mut text) = (Vec::new(), Vec::new());
    println!("\nwriting");
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
    if Process::is_copy() {
        return be_a_victim();
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
    // On a busy machine a second has few of them.
    while kills < 20 || begun.elapsed() < duration {
        let (sender, lines) = mpsc::channel();
        let mut victim = Process::start(test, move |line| {
            let _ = sender.send(line == "writing");
        });
        victim.tell(&directory.path().display().to_string());
        assert!(lines.iter().any(|is_writing| is_writing));
        thread::sleep(Duration::from_micros(kills % 50 * 10));
        victim.kill();
        kills += 1;
        for (file, length) in files.iter().zip(LENGTHS) {
            let text = fs::read(file).unwrap();
            let is_whole = text.len() == length && text.iter().all(|letter| *letter == text[0]);
            assert!(is_whole, "{} is spoilt after {kills} kills", file.display());
        }
    }
    println!("{}: {kills} kills", place.display());
    assert_eq!(files.map(|file| fs::metadata(file).unwrap().ino()), inodes, "never overwritten");
}
