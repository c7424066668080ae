//! Maps the end of a run to the end of its task.

use std::time::Duration;

use interval_queue_tasks::Json;

use crate::child::{End, Finished, OutputTail};
use crate::exit::{CONFIG, DATAERR, Failure, NOPERM, NOT_EXECUTABLE, NOT_FOUND, USAGE};

/// Codes of sysexits(3) after which a retry fails in the same way.
const PERMANENT_CODES: [u8; 4] = [USAGE, DATAERR, NOPERM, CONFIG];

#[derive(Clone, Debug)]
pub(crate) enum TaskOutcome {
    Done(Json),
    /// It failed, and is retried according to its policy.
    Failed(String),
    /// A retry cannot succeed.
    Permanent(String),
    /// CMD asks to run it again after this time, and says why. Not counted as a failure.
    Retry(Duration, String),
    /// CMD gives it back, and says why. Not counted as a failure.
    Released(String),
    /// It was ended early. Not counted as a failure, if it may run again.
    Ended,
    /// It was not run, for this reason. Not counted as a failure.
    Unable(Failure),
    /// Its program cannot be executed. Not counted as a failure.
    Broken(Failure),
}

impl TaskOutcome {
    pub(crate) fn of(finished: &Finished<OutputTail>) -> Self {
        let text = || with_errors(finished.end.to_string(), finished);
        match &finished.end {
            End::Code(0) => result(finished),
            End::Code(code) if u8::try_from(*code).is_ok_and(|code| PERMANENT_CODES.contains(&code)) => {
                Self::Permanent(text())
            }
            End::Code(_) | End::Signal(_) | End::TimedOut | End::GuardGone(_) => Self::Failed(text()),
            End::Stopped | End::LeaseOver => Self::Ended,
            End::Unable(failure) => {
                let is_program = [NOT_EXECUTABLE, NOT_FOUND].contains(&failure.code);
                let failure = Failure { message: text(), ..failure.clone() };
                if is_program && !failure.passes { Self::Broken(failure) } else { Self::Unable(failure) }
            }
        }
    }
}

fn result(finished: &Finished<OutputTail>) -> TaskOutcome {
    let stdout = &finished.stdout;
    if stdout.missing > 0 {
        let text = format!(
            "the output is too long for a result, {} bytes were left out: print at most 128 KiB, or where the result is",
            stdout.missing
        );
        return TaskOutcome::Failed(text);
    }
    let text = stdout.text();
    let text = text.trim();
    if text.is_empty() {
        return TaskOutcome::Done(Json::default());
    }
    match Json::new(text).or_else(|_| Json::of(text)) {
        Ok(result) => TaskOutcome::Done(result),
        Err(error) => TaskOutcome::Failed(error.to_string()),
    }
}

fn with_errors(reason: String, finished: &Finished<OutputTail>) -> String {
    let errors = finished.stderr.text();
    let errors = errors.trim();
    if errors.is_empty() { reason } else { format!("{reason}: {errors}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{child::Keep, exit::OSERR};

    fn ended(end: End, stdout: &str, stderr: &str) -> TaskOutcome {
        let tail = |text: &str| {
            let mut tail = OutputTail::of(20, 10);
            tail.keep(text.as_bytes());
            tail
        };
        TaskOutcome::of(&Finished { end, stdout: tail(stdout), stderr: tail(stderr) })
    }

    #[test]
    fn stdout_is_the_result() {
        for (stdout, result) in [
            ("{\"a\": [1]}\n", "{\"a\": [1]}"),
            ("7", "7"),
            ("plain text\n", "\"plain text\""),
            ("", "null"),
            (" \n", "null"),
        ] {
            let TaskOutcome::Done(json) = ended(End::Code(0), stdout, "x") else { panic!("{stdout}") };
            assert_eq!(json.as_str(), result);
        }
        let TaskOutcome::Failed(text) = ended(End::Code(0), &"x".repeat(31), "") else {
            panic!("it was cut")
        };
        assert!(text.contains("1 bytes") && text.contains("128 KiB"), "{text}");
    }

    #[test]
    fn codes_say_whether_it_is_tried_again() {
        for code in [1, 2, 75, 127, 255] {
            let TaskOutcome::Failed(text) = ended(End::Code(code), "", "no\n") else { panic!("{code}") };
            assert_eq!(text, format!("exit code {code}: no"));
        }
        for code in [64, 65, 77, 78] {
            assert!(matches!(ended(End::Code(code), "", ""), TaskOutcome::Permanent(_)), "{code}");
        }
        let TaskOutcome::Failed(text) = ended(End::Signal(9), "", "") else {
            panic!("a signal is a failure")
        };
        assert_eq!(text, "killed by SIGKILL");
        assert!(matches!(ended(End::Stopped, "", ""), TaskOutcome::Ended));
        let gone = Failure::new(NOT_FOUND, "gone");
        assert!(matches!(ended(End::Unable(gone), "", ""), TaskOutcome::Broken(_)));
        let lacks = Failure { passes: true, ..Failure::new(OSERR, "cannot start a guard") };
        let TaskOutcome::Unable(failure) = ended(End::Unable(lacks), "", "no memory\n") else {
            panic!("the task is not to blame")
        };
        assert_eq!(failure.message, "cannot start a guard: no memory");
    }
}
