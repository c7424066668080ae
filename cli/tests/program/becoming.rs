//! After its slot the program is CMD: input, output, arguments, environment, open files, process, signals,
//! exit code.

use std::{
    ffi::OsStr,
    fs,
    io::Write,
    os::unix::{ffi::OsStrExt, fs::PermissionsExt, process::ExitStatusExt},
    process::Stdio,
};

use rustix::process::Signal;

use crate::{
    place_tests::Backend,
    process::{Process, text, wait_until},
};

/// As this process itself, and as its child.
const WAYS: [&[&str]; 3] = [&[], &["--max-running", "3"], &["--timeout", "1min"]];

fn args<'a>(options: &[&'a str], command: &[&'a str]) -> Vec<&'a str> {
    [&["run", "--every", "1ms"], options, &["--"], command].concat()
}

#[test]
fn input_and_output_are_those_of_the_command() {
    let place = Backend::file();
    for way in WAYS {
        let script = r#"cat; printf '[%s]' "$0" "$@"; printf %s "$COLOUR" >&2; exit 7"#;
        let mut command =
            place.command(&args(way, &["sh", "-c", script, "zero", "a b", "", "--help", "c\nd"]));
        command.arg(OsStr::from_bytes(b"\xff")).env("COLOUR", "red");
        let mut process = command
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        process.stdin.take().unwrap().write_all(b"input ").unwrap();
        let output = process.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(7), "{way:?}: {output:?}");
        assert_eq!(output.stdout, b"input [zero][a b][][--help][c\nd][\xff]", "{way:?}");
        assert_eq!(text(&output.stderr).lines().last(), Some("red"), "{way:?}: {output:?}");
    }
}

#[test]
fn it_is_the_same_process_unless_it_must_stay() {
    let place = Backend::file();
    let print_ids = ["sh", "-c", "echo $$ $PPID"];
    let process = place.spawn(&args(&[], &print_ids));
    let id = process.id().to_string();
    assert_eq!(text(&process.finish().stdout).split(' ').next(), Some(&*id));
    let process = place.spawn(&args(&["--timeout", "1min"], &print_ids));
    let id = process.id().to_string();
    assert_eq!(text(&process.finish().stdout).trim().split(' ').nth(1), Some(&*id));
}

#[test]
fn a_command_killed_by_a_signal_looks_so() {
    let place = Backend::file();
    for way in WAYS {
        for (name, number) in [("TERM", 15), ("KILL", 9), ("SEGV", 11), ("PIPE", 13)] {
            let script = format!("ulimit -c 0; kill -{name} $$; sleep 60");
            let output = place.run(&args(way, &["sh", "-c", &script]));
            assert_eq!(output.status.signal(), Some(number), "{way:?} {name}: {output:?}");
        }
    }
}

#[test]
fn open_files_and_ignored_signals_are_handed_down() {
    let place = Backend::file();
    for way in WAYS {
        fs::write(place.path("input"), "from a file\n").unwrap();
        let way = way.join(" ");
        let script = format!(
            "trap '' HUP; exec 3<input; exec \"$IQ\" run --every 1ms {way} -- \
             sh -c 'kill -HUP $$; cat <&3; echo alive'"
        );
        assert_eq!(text(&place.shell(&script).finish().stdout), "from a file\nalive\n", "{way}");
    }
}

#[test]
fn an_ignored_signal_does_not_end_the_wait() {
    let place = Backend::file();
    place.ok(&args(&[], &["true"]));
    place.ok(&["pause"]);
    let process = place.shell("trap '' HUP; exec \"$IQ\" run -- echo started");
    wait_until("it waits", || place.waiting() == 1);
    process.signal(Signal::HUP);
    place.ok(&["resume"]);
    assert_eq!(text(&process.finish().stdout), "started\n");
}

#[test]
fn an_unusable_program_costs_no_ticket() {
    let place = Backend::file();
    fs::write(place.path("plain"), "echo hello\n").unwrap();
    for (name, code) in
        [("no-such-program", 127), ("./missing", 127), ("", 127), ("./plain", 126), ("./", 126), ("/", 126)]
    {
        let output = place.run(&args(&[], &[name]));
        assert_eq!(output.status.code(), Some(code), "{name:?}: {output:?}");
        assert_eq!(text(&output.stderr).lines().count(), 1, "{output:?}");
        assert_eq!(place.files(), ["plain"], "{name:?}");
    }
    // On the PATH, but not executable.
    let output = place.command(&args(&[], &["plain"])).env("PATH", place.path("")).output().unwrap();
    assert_eq!(output.status.code(), Some(126), "{output:?}");
    assert_eq!(place.files(), ["plain"]);
}

#[test]
fn an_interpreter_that_is_missing_is_named_and_costs_no_ticket() {
    let place = Backend::file();
    let executable = |name: &str, contents: &[u8]| {
        fs::write(place.path(name), contents).unwrap();
        fs::set_permissions(place.path(name), fs::Permissions::from_mode(0o755)).unwrap();
    };
    for (first_line, says) in [
        ("#!/no/such/python -u\n", "its first line names \"/no/such/python\", which does not exist"),
        ("#! /no/such/python\n", "names \"/no/such/python\""),
        ("#!/bin/sh\r\n", "names \"/bin/sh\\r\""),
    ] {
        executable("tool", first_line.as_bytes());
        for command in ["run", "each"] {
            let output = place.run(&[command, "--every", "10ms", "--", "./tool"]);
            assert_eq!(output.status.code(), Some(127), "{first_line:?}: {output:?}");
            assert!(text(&output.stderr).contains(says), "{first_line:?}: {output:?}");
            assert_eq!(place.files(), ["tool"], "{first_line:?}");
        }
    }
    executable("tool", b"#!/bin/sh -e\necho hello\n");
    for way in WAYS {
        assert_eq!(place.ok(&args(way, &["./tool"])), "hello\n");
    }
}

#[test]
fn a_command_needs_no_dashes_before_it_and_keeps_its_own() {
    let place = Backend::file();
    for (words, says) in [
        (&["printf", "%s.", "--every", "1h", "--", "-x"][..], "--every.1h.--.-x."),
        (&["--", "printf", "%s.", "--", "-x", "--help"], "--.-x.--help."),
        (&["--label", "a", "printf", "%s.", "--label"], "--label."),
    ] {
        for command in [&["run", "--every", "10ms"][..], &["each", "-q", "--every", "10ms"]] {
            let mut process = place.command(&[command, words].concat());
            // The item of each, which comes last.
            let input = process.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
            let each = if command[0] == "each" { "item." } else { "" };
            input.stdin.as_ref().unwrap().write_all(b"item\n").unwrap();
            let output = input.wait_with_output().unwrap();
            assert_eq!(text(&output.stdout), format!("{says}{each}"), "{command:?} {words:?}");
        }
    }
}

#[test]
fn a_program_deleted_during_the_wait_ends_with_127() {
    let place = Backend::file();
    for way in WAYS {
        fs::write(place.path("tool"), "#!/bin/sh\necho hello\n").unwrap();
        fs::set_permissions(place.path("tool"), fs::Permissions::from_mode(0o755)).unwrap();
        place.ok(&args(way, &["./tool"]));
        place.ok(&["pause"]);
        let process = Process::spawn(&mut place.command(&args(way, &["./tool"])));
        wait_until("it waits", || place.waiting() == 1);
        fs::remove_file(place.path("tool")).unwrap();
        place.ok(&["resume"]);
        assert_eq!(process.finish().status.code(), Some(127), "{way:?}");
        eventually_nobody(&place);
    }
}

fn eventually_nobody(place: &Backend) {
    wait_until("nothing is left", || place.status()["shards"].as_array().unwrap().is_empty());
}

#[test]
fn without_a_path_programs_are_where_the_system_has_them() {
    let place = Backend::file();
    for way in WAYS {
        let mut command = place.command(&args(way, &["sh", "-c", "echo $0 started"]));
        let output = command.env_remove("PATH").output().unwrap();
        assert!(output.status.success(), "{way:?}: {output:?}");
        assert_eq!(text(&output.stdout), "sh started\n", "{way:?}");
    }
    let output = place.command(&args(&[], &["no-such-program"])).env_remove("PATH").output().unwrap();
    assert_eq!(output.status.code(), Some(127), "{output:?}");
}
