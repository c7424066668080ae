//! Bad input: refused with the documented exit code and a line that names the value and what would be right,
//! nothing stored.

use std::fs;

use crate::{place_tests::Backend, process::text};

const RUN: [&str; 4] = ["--every", "10ms", "--", "true"];

/// Arguments, and what the error must say.
fn refused() -> Vec<(Vec<String>, Vec<&'static str>)> {
    let long = "x".repeat(201);
    let run = |options: &[&str], says: &[&'static str]| {
        // What comes later wins over what comes first.
        let args = ["run"].iter().chain(options).chain(&RUN[2..]).map(|arg| (*arg).to_owned());
        (args.collect(), says.to_vec())
    };
    let plain = |args: &[&str], says: &[&'static str]| {
        (args.iter().map(|arg| (*arg).to_owned()).collect(), says.to_vec())
    };
    vec![
        run(&["--every", "250"], &["'250'", "250ms", "--every"]),
        run(&["--every", "0s"], &["0s", "more than zero"]),
        run(&["--every", "0"], &["'0'", "has no unit"]),
        run(&["--every", "1000years"], &["1000years", "1us to 366days"]),
        run(&["--every", "5parsecs"], &["parsecs", "250ms"]),
        run(&["--every=-1s"], &["'-1s'", "250ms"]),
        run(&["--every", "-1s"], &["'-1s'", "negative"]),
        run(&["--every", "1M"], &["1M: M is no unit here", "write months", "min for minutes"]),
        run(&["--every", "2w"], &["write weeks"]),
        run(&["--every", "1ns"], &["'1ns'", "1us to 366days"]),
        run(&["--every", "1s", "--queue", ""], &["queue name", "1 to 200"]),
        run(&["--every", "1s", "--queue", &long], &["201 bytes", "at most 200"]),
        run(&["--every", "1s", "--queue", "a\nb"], &["control character"]),
        run(&["--every", "1s", "--queue", " a"], &["white space"]),
        run(&["--every", "1s", "--weight", "0"], &["'0'", "1..=1000000"]),
        run(&["--every", "1s", "--weight", "1000001"], &["1000001", "1..=1000000"]),
        run(&["--every", "1s", "--max-running", "0"], &["'0'", "from 1", "none"]),
        run(&["--every", "1s", "--max-running", "many"], &["'many'", "none"]),
        run(&["--every", "1s", "--start-within", "5"], &["'5'", "5s"]),
        run(&["--every", "1s", "--timeout", "0s"], &["0s", "more than zero"]),
        run(&["--every", "1s", "--label", "a\u{7}"], &["control character"]),
        run(&["--every", "1s", "--store", "memory:"], &["memory:", "private to one process", "file:PATH"]),
        run(&["--every", "1s", "--store", "sqlite::memory:"], &["private to one process", "sqlite:PATH"]),
        run(&["--every", "1s", "--store", "http://x"], &["http:", "file:", "sqlite:", "redis:", "postgres:"]),
        run(&["--every", "1s", "--store", "queues.json"], &["queues.json", "file:", "redis:"]),
        run(&["--every", "1s", "--store", "file:queues.json?colour=red"], &["colour", "fsync"]),
        run(&["--every", "1s", "--store", "sqlite:q.db?mode=rwc"], &["\"mode\"", "durability"]),
        run(
            &["--every", "1s", "--store", "postgres://h?durability=no"],
            &["durability=no", "full or relaxed"],
        ),
        run(&["--every", "1s", "--store", "postgres:jobs"], &["postgres://HOST/DATABASE"]),
        run(&["--every", "1s", "--store", "file:."], &["directory"]),
        run(
            &["--every", "1s", "--store", "file:missing/"],
            &["missing/ names a directory", "missing/queue.json"],
        ),
        plain(&["run", "--every", "1s"], &["CMD"]),
        plain(&["run", "--evry", "1s", "true"], &["'--evry'", "'--every'"]),
        plain(&["run", "--every", "1s", "-x"], &["'-x'"]),
        plain(&["hold", "250"], &["'250'", "250ms"]),
        plain(&["hold", "0s"], &["more than zero"]),
        plain(&["hold", "400days"], &["366days"]),
        plain(&["set"], &["--every", "--max-running"]),
        plain(&["set", "--every", "0s"], &["more than zero"]),
        plain(&["set", "--max-running", "0"], &["from 1"]),
        plain(&["stop"], &["stop"]),
        plain(&[], &["Usage"]),
    ]
}

#[test]
fn invalid_arguments_are_reported_and_nothing_is_stored() {
    let place = Backend::file();
    for (args, says) in refused() {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let output = place.run(&args);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(64), "{args:?}: {error}");
        assert!(output.stdout.is_empty(), "{args:?}: {output:?}");
        for part in says {
            assert!(error.contains(part), "{args:?} does not say {part:?}: {error}");
        }
        assert!(place.files().is_empty(), "{args:?} left {:?}", place.files());
    }
}

#[test]
fn an_existing_queue_is_not_touched_by_what_cannot_be_used() {
    let place = Backend::file();
    place.ok(&["run", "--every", "10ms", "--", "true"]);
    let stored = fs::read(place.state_file()).unwrap();
    for (args, _) in refused() {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        assert_eq!(place.run(&args).status.code(), Some(64), "{args:?}");
        assert_eq!(fs::read(place.state_file()).unwrap(), stored, "{args:?}");
    }
}

#[test]
fn state_and_queue_must_be_named_somewhere() {
    let place = Backend::file();
    for (variable, option) in [("INTERVAL_QUEUE_STORE", "--store"), ("INTERVAL_QUEUE_NAME", "--queue")] {
        let output = place.command(&["status"]).env_remove(variable).output().unwrap();
        assert_eq!(output.status.code(), Some(64));
        assert!(text(&output.stderr).contains(option), "{output:?}");
        assert!(place.ok(&["status", "--help"]).contains(variable));
    }
}

#[test]
fn an_option_wins_over_the_environment() {
    let place = Backend::file();
    let other = format!("file:{}", place.path("other.json").display());
    place.ok(&["run", "--store", &other, "--queue", "post", "--every", "10ms", "--", "true"]);
    assert!(!place.state_file().exists());
    assert!(fs::read_to_string(place.path("other.json")).unwrap().contains("\"post\""));
}

#[test]
fn help_and_version_are_no_errors_and_teach() {
    let place = Backend::file();
    let help = place.ok(&["--help"]);
    for part in [
        "Examples:",
        "250ms",
        "Exit codes:",
        "124",
        "127",
        "INTERVAL_QUEUE_STORE",
        "file:",
        "sqlite:",
        "redis:",
        "postgres:",
    ] {
        assert!(help.contains(part), "{part}: {help}");
    }
    assert!(place.ok(&["--version"]).contains(env!("CARGO_PKG_VERSION")));
    for command in [
        "run",
        "each",
        "turns",
        "add",
        "work",
        "tasks",
        "schedule",
        "status",
        "watch",
        "list",
        "pause",
        "resume",
        "hold",
        "set",
        "reset",
        "delete",
        "prune",
        "migrate",
        "schema",
        "completions",
        "man",
    ] {
        assert!(help.contains(&format!("\n  {command}")), "{command}: {help}");
        assert!(place.ok(&[command, "--help"]).contains("Example"), "{command}");
    }
    assert!(place.ok(&["run", "--help"]).contains("Exit codes:"));
}

#[test]
fn a_queue_that_is_not_there_has_a_code_of_its_own() {
    let place = Backend::file();
    for args in [
        &["status"][..],
        &["pause"],
        &["resume"],
        &["hold", "1s"],
        &["set", "--every", "1s"],
        &["reset"],
        &["run", "--", "true"],
        &["run", "--max-running", "1", "--", "true"],
    ] {
        let output = place.run(args);
        assert_eq!(output.status.code(), Some(66), "{args:?}: {output:?}");
        let error = text(&output.stderr);
        assert!(error.contains("\"mail\"") && error.contains("--every"), "{args:?}: {error}");
        assert_eq!(error.lines().count(), 1, "{error}");
        assert!(!place.state_file().exists(), "{args:?}");
    }
    let output = place.run(&["run", "--store", "file:missing/queues.json", "--every", "1s", "--", "true"]);
    assert_eq!(output.status.code(), Some(66), "{output:?}");
    assert!(text(&output.stderr).contains("create it"), "{output:?}");
}

#[test]
fn files_of_other_programs_are_left_unchanged() {
    let place = Backend::file();
    for contents in ["{\"queues\"", "[1, 2]", "{\"interval_queue\": 999, \"queues\": {}}", "hello"] {
        fs::write(place.state_file(), contents).unwrap();
        for args in [&["status"][..], &["list"], &["pause"], &["run", "--every", "1s", "--", "true"]] {
            let output = place.run(args);
            assert_eq!(output.status.code(), Some(65), "{contents} {args:?}: {output:?}");
            assert!(text(&output.stderr).starts_with("interval-queue: "), "{output:?}");
            assert_eq!(text(&output.stderr).lines().count(), 1, "{output:?}");
            assert_eq!(fs::read_to_string(place.state_file()).unwrap(), contents);
        }
    }
}

#[test]
fn a_state_that_cannot_be_reached_is_told_at_once() {
    let place = Backend::file();
    // Nothing listens on the port of a listener that is gone.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("redis://127.0.0.1:{port}");
    for args in [&["status"][..], &["list"], &["resume"], &["run", "--every", "1s", "--", "true"]] {
        let output = place.command(args).env("INTERVAL_QUEUE_STORE", &url).output().unwrap();
        assert_eq!(output.status.code(), Some(69), "{args:?}: {output:?}");
        let error = text(&output.stderr);
        assert_eq!(error.lines().count(), 1, "{error}");
        assert_eq!(error.matches("refused").count(), 1, "the cause is told once: {error}");
    }
}

#[test]
fn stored_control_characters_reach_no_terminal() {
    let place = Backend::file();
    place.ok(&["run", "--every", "10ms", "--", "true"]);
    let stored = fs::read_to_string(place.state_file()).unwrap();
    fs::write(place.state_file(), stored.replace("\"paused\"", "\"\\u001b]0;owned\\u0007\"")).unwrap();
    let error = text(&place.run(&["status"]).stderr);
    assert!(error.contains("owned"), "{error}");
    assert!(!error.trim_end().chars().any(char::is_control), "{error:?}");
}

#[test]
fn a_queue_that_cannot_be_read_does_not_hide_the_others() {
    let place = Backend::file();
    place.ok(&["run", "--queue", "good", "--every", "10ms", "--", "true"]);
    place.ok(&["run", "--queue", "newer", "--every", "10ms", "--", "true"]);
    let mut stored: serde_json::Value =
        serde_json::from_slice(&fs::read(place.state_file()).unwrap()).unwrap();
    stored["queues"]["newer"]["version"] = 9.into();
    fs::write(place.state_file(), stored.to_string()).unwrap();
    let output = place.run(&["list"]);
    assert_eq!(output.status.code(), Some(65), "{output:?}");
    let listed = text(&output.stdout);
    assert!(listed.contains("good") && listed.contains("10ms") && listed.contains("version 9"), "{listed}");
    assert!(text(&output.stderr).contains("\"newer\""), "{output:?}");
}

#[test]
#[cfg(target_os = "linux")]
fn only_an_unwritable_stdout_is_an_error() {
    let place = Backend::file();
    place.ok(&["run", "--every", "10ms", "--", "true"]);
    for args in [&["status"][..], &["list"], &["pause"]] {
        for (redirection, code) in [(">/dev/full", 74), ("1</dev/null", 74), (">/dev/null", 0)] {
            let output = place.shell(&format!("exec \"$IQ\" {} {redirection}", args.join(" "))).finish();
            assert_eq!(output.status.code(), Some(code), "{args:?} {redirection}: {output:?}");
            assert_eq!(text(&output.stderr).contains("cannot write the output"), code == 74, "{output:?}");
        }
        let output =
            place.shell(&format!("{{ sleep 0.1; \"$IQ\" {}; echo $? >&2; }} | :", args.join(" "))).finish();
        assert_eq!(text(&output.stderr), "0\n", "{args:?}");
    }
}

#[test]
fn non_utf8_arguments_are_reported() {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt};
    let odd = OsStr::from_bytes(b"odd\xff");
    let place = Backend::file();
    for option in ["--queue", "--store", "--label", "--every"] {
        let output = place.command(&["run", option]).arg(odd).args(RUN).output().unwrap();
        let error = text(&output.stderr);
        assert_eq!((output.status.code(), error.lines().count()), (Some(64), 1), "{error}");
        assert!(error.contains("the argument \"odd\\xFF\" is not UTF-8"), "{option}: {error}");
    }
    for variable in ["INTERVAL_QUEUE_STORE", "INTERVAL_QUEUE_NAME"] {
        let output = place.command(&["run"]).args(RUN).env(variable, odd).output().unwrap();
        assert!(text(&output.stderr).contains(&format!("{variable} is not UTF-8")), "{output:?}");
    }
    assert!(place.files().is_empty());
    let output = place.command(&["run", "--every", "10ms", "--", "printf"]).arg(odd).output().unwrap();
    assert_eq!(output.stdout, odd.as_bytes(), "{output:?}");
}

#[test]
fn a_command_can_use_the_state_of_the_program_that_started_it() {
    let place = Backend::file();
    let inner = ["run", "--every", "10ms", "--", "sh", "-c", "\"$IQ\" hold 30s && \"$IQ\" status"];
    assert!(place.ok(&inner).contains("held for another"));
    let kept =
        ["run", "--", "env", "-u", "INTERVAL_QUEUE_STORE", "sh", "-c", "echo ${INTERVAL_QUEUE_STORE-none}"];
    place.ok(&["reset"]);
    assert_eq!(place.ok(&kept), "none\n");
}
