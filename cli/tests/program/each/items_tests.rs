//! Items reach the commands as they are.

use std::{
    ffi::OsStr,
    fs::{self, File},
    os::unix::ffi::OsStrExt,
};

use super::{each, start};
use crate::{place_tests::Backend, process::text};

/// Appends its arguments to a file, each with a NUL behind it.
const RECORD: &str = r#"printf '%s\0' "$@" >> got"#;

fn got(place: &Backend) -> Vec<Vec<u8>> {
    let mut got = fs::read(place.path("got")).unwrap_or_default();
    assert_eq!(got.pop(), Some(0));
    got.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect()
}

#[test]
fn between_nuls_every_byte_is_the_items() {
    let place = Backend::file();
    let items: [&[u8]; 9] = [
        b"two words",
        b" \t ",
        b"it's \"quoted\" $HOME `x` \\",
        b"two\nlines\r\n",
        b"-rf",
        b"",
        b"{} and {}",
        b"not UTF-8: \xff\xfe",
        "größer, 日本".as_bytes(),
    ];
    let input = items.join(&0);
    let args = ["-0", "--jobs", "1", "--every", "1ms", "--", "sh", "-c", RECORD, "sh"];
    let output = each(&place, &input, &args);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(got(&place), items);
}

#[test]
fn lines_lose_their_ends_and_empty_ones_are_left_out() {
    let place = Backend::file();
    let input = b"one\n\ntwo \r\n\r\n \nthr\xffee\n--last";
    let args = ["--jobs", "1", "--every", "1ms", "--", "sh", "-c", RECORD, "sh"];
    assert!(each(&place, input, &args).status.success());
    assert_eq!(got(&place), [&b"one"[..], b"two ", b" ", b"thr\xffee", b"--last"]);
}

#[test]
fn the_item_is_wherever_its_place_is() {
    let place = Backend::file();
    let args = ["--every", "1ms", "--", "sh", "-c", RECORD, "sh", "{}", "a{}b{}", "c"];
    assert!(each(&place, b"x {}", &args).status.success());
    assert_eq!(got(&place), [&b"x {}"[..], b"ax {}bx {}", b"c"]);
    fs::remove_file(place.path("got")).unwrap();
    let args = ["-I", "ITEM", "--every", "1ms", "--", "sh", "-c", RECORD, "sh", "{}", "ITEM"];
    assert!(each(&place, b"x", &args).status.success());
    assert_eq!(got(&place), [b"{}", &b"x"[..]]);
}

#[test]
fn no_items_are_no_failure() {
    let place = Backend::file();
    for input in [&b""[..], b"\n\r\n"] {
        let output = each(&place, input, &["--every", "1ms", "--", "echo", "started"]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert_eq!(text(&output.stdout), "");
        assert!(text(&output.stderr).contains("0 items"), "{output:?}");
    }
}

#[test]
fn commands_do_not_eat_the_items() {
    let place = Backend::file();
    let output = each(&place, b"a\nb\n", &["-k", "--every", "1ms", "--", "sh", "-c", "cat; echo $0"]);
    assert_eq!(text(&output.stdout), "a\nb\n");
}

#[test]
fn overlong_items_fail_and_the_others_run() {
    let place = Backend::file();
    let input = [b"a\n".as_slice(), &vec![b'x'; 300_000], b"\na\0b\nc\n"].concat();
    let output = each(&place, &input, &["-k", "--every", "1ms", "--", "echo"]);
    assert_eq!(output.status.code(), Some(123), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), "a\nc\n");
    assert!(text(&output.stderr).contains("4 items: 2 done, 2 failed"), "{}", text(&output.stderr));
    assert!(output.stderr.len() < 1000, "what is long is cut");
}

#[test]
fn an_input_that_cannot_be_read_is_told() {
    let place = Backend::file();
    let mut command = super::command(&place, &["--every", "1ms", "--", "echo"]);
    let output = command.stdin(File::open(place.path("")).unwrap()).output().unwrap();
    assert_eq!(output.status.code(), Some(74), "{output:?}");
    assert!(text(&output.stderr).contains("cannot read the items"), "{output:?}");
}

#[test]
fn invalid_arguments_take_no_ticket() {
    let place = Backend::file();
    let input = place.path("input");
    let input = input.to_str().unwrap();
    for (args, code, says) in [
        (&["--every", "1ms", "--", "no-such-program", "{}"][..], 127, "no-such-program"),
        (&["--every", "1ms", "--", "./{}"], 64, "env ./{}"),
        (&["--every", "1ms", "--jobs", "0", "--", "true"], 64, "'0'"),
        (&["--every", "1ms", "-I", "", "--", "true"], 64, "value is required"),
        (&["--every", "1ms", "-k", "-u", "--", "true"], 64, "cannot be used"),
        (&["--every", "1ms", "--failed", input, "--", "true"], 64, "is the input"),
        (&["--every", "1ms", "--failed", "missing/left", "--", "true"], 74, "missing/left"),
        (&["--every", "1ms"], 64, "CMD"),
    ] {
        let output = each(&place, b"a\n", args);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {output:?}");
        assert!(text(&output.stderr).contains(says), "{args:?}: {output:?}");
        assert_eq!(place.files(), ["input"], "{args:?}");
        assert_eq!(fs::read(input).unwrap(), b"a\n", "{args:?}");
    }
}

#[test]
fn a_program_that_goes_ends_it() {
    let place = Backend::file();
    // By a process of its own: another test's process would inherit a file that is open for writing.
    assert!(
        std::process::Command::new("cp").arg("/bin/sh").arg(place.path("tool")).status().unwrap().success()
    );
    let args = ["--jobs", "1", "--every", "1ms", "--failed", "left", "--", "./tool", "-c", "rm tool"];
    let output = start(&place, b"a\nb\nc\n", &args).finish();
    assert_eq!(output.status.code(), Some(127), "{output:?}");
    assert_eq!(fs::read(place.path("left")).unwrap(), b"b\nc\n");
    assert!(OsStr::from_bytes(&output.stdout).is_empty());
}
