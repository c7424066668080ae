//! Maps the end of a run to the end of its task.

use interval_queue::task_contract::Json;

use super::ended::{Ended, RunEnd};
use crate::exit::{CONFIG, DATAERR, Failure, NOPERM, NOT_EXECUTABLE, NOT_FOUND, USAGE};

/// Codes of sysexits(3) after which a retry fails in the same way.
const PERMANENT_CODES: [u8; 4] = [USAGE, DATAERR, NOPERM, CONFIG];

/// The end of the task.
#[derive(Clone, Debug)]
pub(crate) enum TaskOutcome {
    Done(Json),
    /// It failed, and is retried according to its policy.
    Failed(String),
    /// A retry cannot succeed.
    Permanent(String),
    /// It was ended early. Not counted as a failure, if it may run again.
    Ended,
    /// It was not run, for this reason. Not counted as a failure.
    Unable(Failure),
    /// Its program cannot be executed. Not counted as a failure.
    Broken(Failure),
}

impl TaskOutcome {
    pub(crate) fn of(ended: &Ended) -> Self {
        match &ended.how {
            RunEnd::Code(0) => result(ended),
            RunEnd::Code(code) => {
                let text = with_errors(format!("exit code {code}"), ended);
                let is_permanent = u8::try_from(*code).is_ok_and(|code| PERMANENT_CODES.contains(&code));
                if is_permanent { Self::Permanent(text) } else { Self::Failed(text) }
            }
            RunEnd::Signal(signal) => {
                let name = signal_hook::low_level::signal_name(*signal);
                let name = name.map_or_else(|| format!("signal {signal}"), Into::into);
                Self::Failed(with_errors(format!("killed by {name}"), ended))
            }
            RunEnd::TimedOut => Self::Failed(with_errors("timed out".into(), ended)),
            RunEnd::GuardGone(why) => Self::Failed(with_errors(why.clone(), ended)),
            RunEnd::Stopped | RunEnd::LeaseOver => Self::Ended,
            RunEnd::Unable(failure) => {
                let is_program = [NOT_EXECUTABLE, NOT_FOUND].contains(&failure.code);
                let message = with_errors(failure.message.clone(), ended);
                let failure = Failure { message, ..failure.clone() };
                if is_program && !failure.passes { Self::Broken(failure) } else { Self::Unable(failure) }
            }
        }
    }
}

/// The output as JSON.
fn result(ended: &Ended) -> TaskOutcome {
    let stdout = &ended.stdout;
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

/// The reason with the end of stderr.
fn with_errors(reason: String, ended: &Ended) -> String {
    let errors = ended.stderr.text();
    let errors = errors.trim();
    if errors.is_empty() { reason } else { format!("{reason}: {errors}") }
}

#[cfg(test)]
mod tests {
    use super::super::output_tail::OutputTail;
    use super::*;
    use crate::exit::OSERR;

    fn ended(how: RunEnd, stdout: &str, stderr: &str) -> TaskOutcome {
        let tail = |text: &str| {
            let mut tail = OutputTail::of(20, 10);
            tail.push(text.as_bytes());
            tail
        };
        TaskOutcome::of(&Ended { how, stdout: tail(stdout), stderr: tail(stderr) })
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
            let TaskOutcome::Done(json) = ended(RunEnd::Code(0), stdout, "x") else { panic!("{stdout}") };
            assert_eq!(json.as_str(), result);
        }
        let TaskOutcome::Failed(text) = ended(RunEnd::Code(0), &"x".repeat(31), "") else {
            panic!("it was cut")
        };
        assert!(text.contains("1 bytes") && text.contains("128 KiB"), "{text}");
    }

    #[test]
    fn codes_say_whether_it_is_tried_again() {
        for code in [1, 2, 75, 127, 255] {
            let TaskOutcome::Failed(text) = ended(RunEnd::Code(code), "", "no\n") else { panic!("{code}") };
            assert_eq!(text, format!("exit code {code}: no"));
        }
        for code in [64, 65, 77, 78] {
            assert!(matches!(ended(RunEnd::Code(code), "", ""), TaskOutcome::Permanent(_)), "{code}");
        }
        let TaskOutcome::Failed(text) = ended(RunEnd::Signal(9), "", "") else {
            panic!("a signal is a failure")
        };
        assert_eq!(text, "killed by SIGKILL");
        assert!(matches!(ended(RunEnd::Stopped, "", ""), TaskOutcome::Ended));
        let gone = Failure::new(NOT_FOUND, "gone");
        assert!(matches!(ended(RunEnd::Unable(gone), "", ""), TaskOutcome::Broken(_)));
        let lacks = Failure { passes: true, ..Failure::new(OSERR, "cannot start a guard") };
        let TaskOutcome::Unable(failure) = ended(RunEnd::Unable(lacks), "", "no memory\n") else {
            panic!("the task is not to blame")
        };
        assert_eq!(failure.message, "cannot start a guard: no memory");
    }
}
