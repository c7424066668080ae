//! What is printed to a terminal fits into it, and what goes anywhere else is whole.

use std::{fs::File, io::Read, os::fd::OwnedFd, process::Stdio};

use crate::{place_tests::Backend, process::wait_until, pty::open};

/// What the program prints to a terminal of so many columns.
fn on_a_terminal(place: &Backend, columns: u16, args: &[&str]) -> String {
    let (ours, theirs) = open(columns, 24);
    let mut ours = File::from(ours);
    let mut child = place.command(args).stdout(Stdio::from(OwnedFd::from(theirs))).spawn().unwrap();
    assert!(child.wait().unwrap().success(), "{args:?}");
    let mut text = Vec::new();
    // When the last of its users has gone, a terminal ends with an error instead of an end.
    let _ = ours.read_to_end(&mut text);
    String::from_utf8(text).unwrap().replace("\r\n", "\n")
}

#[test]
fn status_and_list_fit_into_80_columns_and_leave_nothing_out() {
    let place = Backend::file();
    let label = "a rather long label, as hosts with long names and programs with long names make them";
    place.ok(&["run", "--every", "1h", "--", "true"]);
    let _waiting = place.spawn(&["run", "--label", label, "--", "true"]);
    wait_until("it waits", || place.waiting() == 1);
    let letters = |text: &str| {
        let mut letters: Vec<char> = text.chars().filter(|c| c.is_alphabetic()).collect();
        letters.sort_unstable();
        letters
    };
    for args in [["status"], ["list"]] {
        let whole = place.ok(&args);
        let widest = |text: &str| text.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(widest(&whole) > 80, "{whole}");
        let fitted = on_a_terminal(&place, 80, &args);
        assert!(widest(&fitted) <= 80, "{fitted}");
        assert_eq!(letters(&fitted), letters(&whole), "{fitted}");
        assert_eq!(on_a_terminal(&place, 400, &args).lines().count(), whole.lines().count());
    }
}
