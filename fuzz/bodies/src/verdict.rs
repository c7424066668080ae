//! The effect of a command's end on its task, for any output, and the data that its guard receives.
//!
//! The first byte is how it ended, the second how much output is kept, the third where stdout ends:
//! then come stdout and, after a zero, stderr. All of it is also read as bytes of the socket
//! between worker and guard.

use serde_json::Value;

use crate::{
    child::{
        End, Finished, Keep, OutputTail, forwarded,
        guard::{GuardReport, Order, orders},
    },
    exit::{Failure, NOT_EXECUTABLE, NOT_FOUND},
    lines::stays,
    of_the_program::Outcome,
    promise::Verdict,
};

pub(crate) fn body(bytes: &[u8]) -> Verdict {
    socket(bytes);
    let [how, kept, rest @ ..] = bytes else { return Verdict::Refused };
    let mut parts = rest.splitn(2, |byte| *byte == 0);
    let (stdout, stderr) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let kept = usize::from(*kept);
    let finished = Finished {
        end: end_of(*how, stderr.len()),
        stdout: ends(kept, kept / 2, stdout),
        stderr: ends(0, kept, stderr),
    };
    assert_eq!(forwarded(pieces(stderr)), whole_lines(stderr));
    judge(&finished, stdout)
}

fn end_of(byte: u8, number: usize) -> End {
    match byte {
        b'c' => End::Code(i32::try_from(number).unwrap_or(i32::MIN)),
        b's' => End::Signal(i32::try_from(number).unwrap_or(i32::MIN)),
        b't' => End::TimedOut,
        b'x' => End::Stopped,
        b'l' => End::LeaseOver,
        b'u' => End::Unable(Failure { passes: true, ..Failure::new(NOT_FOUND, "not yet") }),
        b'n' => End::Unable(Failure::new(NOT_EXECUTABLE, "not executable")),
        b'g' => End::GuardGone("its guard ended".into()),
        _ => End::Code(0),
    }
}

fn pieces(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.chunks(7)
}

/// Beginning and end are kept, and missing bytes counted.
fn ends(first: usize, last: usize, bytes: &[u8]) -> OutputTail {
    let mut ends = OutputTail::of(first, last);
    pieces(bytes).for_each(|piece| ends.keep(piece));
    let missing = bytes.len().saturating_sub(first + last);
    assert_eq!(ends.missing, missing as u64);
    if missing == 0 {
        assert_eq!(ends.text(), String::from_utf8_lossy(bytes));
    }
    ends
}

/// An unfinished line is ended, so that the next one begins on its own.
fn whole_lines(bytes: &[u8]) -> Vec<u8> {
    let mut all = bytes.to_vec();
    if all.last().is_some_and(|last| *last != b'\n') {
        all.push(b'\n');
    }
    all
}

fn judge(finished: &Finished<OutputTail>, stdout: &[u8]) -> Verdict {
    let begins = match (Outcome::of(finished), &finished.end) {
        (Outcome::Done(result), End::Code(0)) => {
            assert_eq!(finished.stdout.missing, 0, "half a result is none");
            let text = String::from_utf8_lossy(stdout);
            let text = text.trim();
            let read = serde_json::from_str(text).unwrap_or_else(|_| Value::from(text));
            stays(&result, if text.is_empty() { &Value::Null } else { &read });
            return Verdict::Read;
        }
        (Outcome::Failed(why), End::Code(0)) => {
            assert!(finished.stdout.missing > 0, "{why}");
            return Verdict::Refused;
        }
        (Outcome::Failed(why), End::Code(code)) => {
            assert!(![64, 65, 77, 78].contains(code), "{why}");
            (why, format!("exit code {code}"))
        }
        (Outcome::Permanent(why), End::Code(code)) => {
            assert!([64, 65, 77, 78].contains(code), "{why}");
            (why, format!("exit code {code}"))
        }
        (Outcome::Failed(why), End::Signal(_)) => (why, "killed by ".into()),
        (Outcome::Failed(why), End::TimedOut) => (why, "timed out".into()),
        (Outcome::Failed(why), End::GuardGone(gone)) => (why, gone.clone()),
        (Outcome::Ended, End::Stopped | End::LeaseOver) => return Verdict::Refused,
        (Outcome::Unable(_), End::Unable(_)) => return Verdict::Refused,
        (Outcome::Broken(_), End::Unable(failure)) if !failure.passes => return Verdict::Refused,
        (outcome, end) => panic!("{end:?} is taken for {outcome:?}"),
    };
    let (why, reason) = begins;
    let said = finished.stderr.text();
    assert!(why.starts_with(&reason) && why.ends_with(said.trim()), "{why:?} of {said:?}");
    Verdict::Refused
}

/// Orders are read again from what is written; an invalid one ends the connection.
fn socket(bytes: &[u8]) {
    let (read, _) = orders(bytes);
    let mut written = Vec::new();
    for order in &read {
        written.extend(order.line().into_bytes());
        if let Order::Input(input) = order {
            written.extend(input);
        }
    }
    assert_eq!(orders(&written), (read, &[][..]));
    for line in bytes.split(|byte| *byte == b'\n') {
        let Ok(line) = std::str::from_utf8(line) else { continue };
        let Some(news) = GuardReport::of_line(line) else { continue };
        let line = news.line();
        let text = line.strip_suffix('\n').unwrap();
        assert!(!text.contains('\n'), "news are one line: {text:?}");
        assert_eq!(GuardReport::of_line(text).unwrap().line(), line);
    }
}
