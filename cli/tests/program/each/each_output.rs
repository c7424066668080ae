//! What commands print, and what is told of them.

use std::{
    fs::{self, File},
    io::Read,
    os::fd::OwnedFd,
    process::Stdio,
};

use super::each;
use crate::{
    place_tests::Backend,
    process::{Process, text, wait_until},
    pty,
};

#[test]
fn outputs_are_whole() {
    let place = Backend::file();
    let script = "echo begin $0; echo err $0 >&2; sleep 0.1; echo end $0";
    let output = each(&place, b"1\n2\n3\n4\n", &["--every", "1ms", "--", "sh", "-c", script]);
    let lines: Vec<_> = text(&output.stdout).lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), 8, "{output:?}");
    for pair in lines.chunks(2) {
        let item = pair[0].strip_prefix("begin ").unwrap();
        assert_eq!(pair[1], format!("end {item}"));
    }
    assert_eq!(text(&output.stderr).lines().filter(|line| line.starts_with("err ")).count(), 4);
}

#[test]
fn the_order_can_be_that_of_the_items() {
    let place = Backend::file();
    // The first ends last. Each prints more than stays in memory.
    let script =
        "sleep 0.$((5 - $0)); echo begin $0; head -c 200000 /dev/zero | tr '\\0' x; echo; echo end $0";
    fs::write(place.path("input"), "1\n2\n3\n4\n").unwrap();
    let mut command = super::command(&place, &["--keep-order", "--every", "1ms", "--", "sh", "-c", script]);
    command.stdin(File::open(place.path("input")).unwrap());
    let child = command.stdout(File::create(place.path("stdout")).unwrap()).spawn().unwrap();
    let output = Process::adopt(child).finish();
    assert!(output.status.success(), "{output:?}");
    let expected: String = (1..5).map(|n| format!("begin {n}\n{}\nend {n}\n", "x".repeat(200_000))).collect();
    assert!(fs::read_to_string(place.path("stdout")).unwrap() == expected);
}

#[test]
fn ungrouped_output_comes_as_it_is_printed() {
    let place = Backend::file();
    let script = "echo $0; until [ -e go ]; do sleep 0.05; done";
    let stdout = place.path("stdout");
    let mut command = super::command(&place, &["--ungroup", "--every", "1ms", "--", "sh", "-c", script]);
    fs::write(place.path("input"), "a\n").unwrap();
    command.stdin(File::open(place.path("input")).unwrap()).stdout(File::create(&stdout).unwrap());
    let process = Process::adopt(command.spawn().unwrap());
    wait_until("it is printed", || fs::read(&stdout).unwrap() == b"a\n");
    fs::write(place.path("go"), "").unwrap();
    assert!(process.finish().status.success());
}

#[test]
fn processes_left_behind_delay_no_end() {
    let place = Backend::file();
    let output =
        each(&place, b"1\n", &["--every", "1ms", "--", "sh", "-c", "sleep 100 & echo $! > id; echo hi"]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(text(&output.stdout), "hi\n");
    let id = fs::read_to_string(place.path("id")).unwrap().trim().parse().unwrap();
    rustix::process::kill_process(crate::process::pid(id), rustix::process::Signal::KILL).unwrap();
}

#[test]
fn only_the_last_attempt_is_printed() {
    let place = Backend::file();
    let script = "echo $0 >> tries; echo attempt $(wc -l < tries); [ $(wc -l < tries) -ge 3 ]";
    let output = each(&place, b"a\n", &["--retry", "2", "--every", "1ms", "--", "sh", "-c", script]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(text(&output.stdout), "attempt 3\n");
    assert!(text(&output.stderr).contains("1 item: 1 done, 2 retried;"), "{output:?}");
}

#[test]
fn a_closed_stdout_ends_each_without_an_error() {
    let place = Backend::file();
    place.ok(&["run", "--every", "1ms", "--", "true"]);
    for option in ["", "--ungroup"] {
        let script = format!(
            "(yes | \"$IQ\" each {option} -- sh -c 'echo $0'; echo $? > code) | head -n 2; \
             until [ -s code ]; do sleep 0.1; done; cat code; rm code"
        );
        let output = place.shell(&script).finish();
        assert_eq!(text(&output.stdout), "y\ny\n141\n", "{output:?}");
        assert_eq!(text(&output.stderr), "");
    }
    assert_eq!(place.status()["shards"], serde_json::json!([]));
}

#[test]
fn quiet_says_nothing_but_what_is_undone() {
    let place = Backend::file();
    let output = each(&place, b"0\n", &["-q", "--every", "1ms", "--", "sh", "-c", "exit $0"]);
    assert!(output.stderr.is_empty(), "{output:?}");
    let output = each(&place, b"0\n7\n", &["-q", "--every", "1ms", "--", "sh", "-c", "exit $0"]);
    assert!(text(&output.stderr).contains("failed: \"7\": exit code 7"), "{output:?}");
}

/// What the progress, and the commands, leave on a terminal of so many columns.
fn on_a_terminal(place: &Backend, columns: u16, input: &str, args: &[&str]) -> String {
    fs::write(place.path("input"), input).unwrap();
    let (ours, theirs) = pty::open(columns, 24);
    let mut ours = File::from(ours);
    let mut command = super::command(place, args);
    command.stdin(File::open(place.path("input")).unwrap());
    command.stdout(Stdio::from(OwnedFd::from(theirs.try_clone().unwrap())));
    let mut child = command.stderr(Stdio::from(OwnedFd::from(theirs))).spawn().unwrap();
    drop(command);
    let mut bytes = Vec::new();
    // When the last of its users has gone, a terminal ends with an error instead of an end.
    let _ = ours.read_to_end(&mut bytes);
    assert!(child.wait().unwrap().success());
    text(&bytes)
}

/// The text without escape sequences, cut where a terminal begins again at the first column.
fn rows(text: &str) -> Vec<String> {
    let mut rows = vec![String::new()];
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\r' | '\n' => rows.push(String::new()),
            '\x1b' => {
                let _ = chars.by_ref().skip(1).find(char::is_ascii_alphabetic);
            }
            c => rows.last_mut().unwrap().push(c),
        }
    }
    rows
}

#[test]
fn the_progress_fits_into_the_terminal_and_spares_the_output() {
    let place = Backend::file();
    let input: String = (10..30).map(|n| format!("{n}\n")).collect();
    // The last line has no end, and must not be drawn over.
    let args = ["-k", "--every", "60ms", "--", "sh", "-c", "echo out-$0; printf end-$0"];
    for columns in [20, 100] {
        let text = on_a_terminal(&place, columns, &input, &args);
        let rows = rows(&text);
        let progress = |row: &&String| row.contains("/20");
        assert!(rows.iter().any(|row| progress(&row) && row.contains('[') == (columns == 100)), "{text:?}");
        for row in rows.iter().filter(progress) {
            assert!(row.chars().count() <= columns.into(), "{columns}: {row:?}");
        }
        let printed: Vec<_> =
            rows.iter().filter(|row| row.starts_with("out-") || row.starts_with("end-")).collect();
        let expected: Vec<_> = (10..30).flat_map(|n| [format!("out-{n}"), format!("end-{n}")]).collect();
        assert_eq!(printed, expected.iter().collect::<Vec<_>>(), "{text:?}");
        assert!(text.contains("20 items: 20 done"), "{text:?}");
    }
    let text = on_a_terminal(&place, 100, &input, &[&["-q"], &args[..]].concat());
    assert!(!text.contains('\x1b'), "{text:?}");
}

#[test]
#[cfg(target_os = "linux")]
fn items_whose_output_cannot_be_written_are_not_done() {
    let place = Backend::file();
    let full = || File::options().write(true).open("/dev/full").unwrap();
    let read_only = || File::open("/dev/null").unwrap();
    for (order, stdout) in [("--quiet", full()), ("--keep-order", full()), ("--quiet", read_only())] {
        let mut command = super::command(
            &place,
            &[order, "--every", "1ms", "--failed", "left", "--", "sh", "-c", "[ $0 = 0 ] || echo $0"],
        );
        let input: String = (0..40).map(|n| format!("{n}\n")).collect();
        fs::write(place.path("input"), &input).unwrap();
        command.stdin(File::open(place.path("input")).unwrap());
        command.stdout(stdout);
        let output = Process::adopt(command.spawn().unwrap()).finish();
        assert_eq!(output.status.code(), Some(74), "{output:?}");
        let mut left: Vec<u64> =
            super::lines(&place, "left").iter().map(|line| line.parse().unwrap()).collect();
        left.sort_unstable();
        assert_eq!(left, (1..40).collect::<Vec<_>>(), "{output:?}");
        let told = text(&output.stderr);
        assert!(told.contains("40 items: 1 done"), "{told}");
        assert!(
            told.find("cannot write the output").unwrap() < told.find("items not done are in").unwrap(),
            "{told}"
        );
    }
}
