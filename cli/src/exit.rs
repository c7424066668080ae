//! The end of the process: exit codes, and the line on stderr that gives the reason.

use std::{fmt::Write as _, io, process::ExitCode};

use interval_queue::{Error, ErrorKind, StateError, StateErrorKind};
use signal_hook::low_level::emulate_default_handler;

/// A condition of `tasks watch --once` holds.
pub(crate) const ALERT: u8 = 1;
/// The command line cannot be used.
pub(crate) const USAGE: u8 = 64;
/// Stored data is damaged, foreign or from a newer version.
pub(crate) const DATAERR: u8 = 65;
/// There is no such queue, or no directory for its file.
pub(crate) const NOINPUT: u8 = 66;
/// The store cannot be reached or did not answer.
pub(crate) const UNAVAILABLE: u8 = 69;
/// An error of this program.
pub(crate) const SOFTWARE: u8 = 70;
/// The operating system refused something.
pub(crate) const OSERR: u8 = 71;
/// The disk of the store is full.
pub(crate) const CANTCREAT: u8 = 73;
/// The output cannot be written, or the items cannot be read.
pub(crate) const IOERR: u8 = 74;
/// CMD was not started in time, or the stored tasks permit no change now.
pub(crate) const TEMPFAIL: u8 = 75;
/// Permission denied.
pub(crate) const NOPERM: u8 = 77;
/// The store cannot do what a shared state needs.
pub(crate) const CONFIG: u8 = 78;
/// CMD failed for some items, as with `xargs(1)`; or awaited tasks failed or were cancelled.
pub(crate) const SOME_FAILED: u8 = 123;
/// CMD or a wait exceeded `--timeout`, as with `timeout(1)`.
pub(crate) const TIMED_OUT: u8 = 124;
/// CMD exists but cannot be executed, as in a shell.
pub(crate) const NOT_EXECUTABLE: u8 = 126;
/// CMD does not exist, as in a shell.
pub(crate) const NOT_FOUND: u8 = 127;
/// Base of the exit code if signal N killed CMD: 128 + N, as in a shell.
pub(crate) const BY_SIGNAL: u8 = 128;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Code(u8),
    /// Killed by this signal, so that a loop in a shell ends as it would without this program.
    Signal(i32),
}

impl Ending {
    pub(crate) fn leave(self) -> ExitCode {
        match self {
            Ending::Code(code) => ExitCode::from(code),
            Ending::Signal(signal) => {
                if !is_init() {
                    // Returns only if the signal is unknown or does not kill.
                    let _ = emulate_default_handler(signal);
                }
                ExitCode::from(BY_SIGNAL.saturating_add(u8::try_from(signal).unwrap_or(0)))
            }
        }
    }
}

/// The first process of a container dies only by signals that it handles.
pub(crate) fn is_init() -> bool {
    std::process::id() == 1
}

#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) code: u8,
    pub(crate) message: String,
    /// A retry can succeed without a change by a person.
    pub(crate) passes: bool,
}

impl Failure {
    pub(crate) fn new(code: u8, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), passes: false }
    }

    pub(crate) fn os(what: &str, error: &io::Error) -> Self {
        Self::new(OSERR, format!("{what}: {error}"))
    }

    pub(crate) fn report(&self) -> ExitCode {
        report(&self.message);
        ExitCode::from(self.code)
    }
}

impl From<&Error> for Failure {
    fn from(error: &Error) -> Self {
        let code = match (error.state(), error.kind()) {
            (Some(state), _) => code_of(state.kind()),
            (None, ErrorKind::Invalid) => USAGE,
            _ => SOFTWARE,
        };
        let passes = error.state().is_some_and(StateError::is_retryable);
        Self { code, message: chain(error), passes }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::from(&error)
    }
}

impl From<StateError> for Failure {
    fn from(error: StateError) -> Self {
        Self { code: code_of(error.kind()), message: chain(&error), passes: error.is_retryable() }
    }
}

pub(crate) fn code_of(kind: StateErrorKind) -> u8 {
    match kind {
        StateErrorKind::Invalid | StateErrorKind::Conflict => USAGE,
        StateErrorKind::Damaged | StateErrorKind::Foreign | StateErrorKind::NewerVersion => DATAERR,
        StateErrorKind::NotFound => NOINPUT,
        StateErrorKind::Full => CANTCREAT,
        StateErrorKind::Denied => NOPERM,
        StateErrorKind::Unsupported => CONFIG,
        _ => UNAVAILABLE,
    }
}

/// In one line, each cause once. Control characters are replaced: the text may be stored data from
/// others.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut line = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        // Some errors include the text of their cause.
        if !line.ends_with(&text) {
            let _ = write!(line, ": {text}");
        }
        cause = error.source();
    }
    line.replace(char::is_control, " ")
}

pub(crate) fn report(line: &str) {
    use io::Write;
    // A single write keeps lines whole if processes share stderr. A closed stderr is no error.
    let line = interval_queue_documents::words::visible(line);
    let _ = io::stderr().write_all(format!("interval-queue: {line}\n").as_bytes());
}

/// Prints a newline, too.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    print_as_it_is(format!("{text}\n").as_bytes())
}

/// Prints no newline.
pub(crate) fn print_as_it_is(bytes: &[u8]) -> Result<(), Failure> {
    print_on(bytes).map(drop)
}

/// False: the reader has closed the pipe.
pub(crate) fn print_on(bytes: &[u8]) -> Result<bool, Failure> {
    match io::Write::write_all(&mut Stdout, bytes) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::new(IOERR, format!("cannot write the output: {error}"))),
    }
}

/// Unlike the standard library's, it returns an error if stdout is not open for writing. A closed
/// stdout looks like `/dev/null`: the runtime opens that before `main`.
#[derive(Debug)]
pub(crate) struct Stdout;

impl io::Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::io::write(io::stdout(), bytes)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Help goes to stdout, errors to stderr.
pub(crate) fn clap(error: &clap::Error) -> ExitCode {
    if error.kind() == clap::error::ErrorKind::InvalidUtf8
        && let Some(what) = not_utf8()
    {
        report(&format!("{what} is not UTF-8: only CMD, its arguments and names of files need not be"));
        return ExitCode::from(USAGE);
    }
    // A reader that closes the pipe needs no more output.
    let is_unwritten = error.print().is_err_and(|error| error.kind() != io::ErrorKind::BrokenPipe);
    ExitCode::from(if error.use_stderr() {
        USAGE
    } else if is_unwritten {
        IOERR
    } else {
        0
    })
}

/// In the command line or its environment variables. CMD may be non-UTF-8, so the first such
/// argument is the cause.
fn not_utf8() -> Option<String> {
    let argument = std::env::args_os().skip(1).find(|argument| argument.to_str().is_none());
    if let Some(argument) = argument {
        return Some(format!("the argument {argument:?}"));
    }
    let variables = ["INTERVAL_QUEUE_STORE", "INTERVAL_QUEUE_NAME"];
    variables
        .into_iter()
        .find(|name| std::env::var_os(name).is_some_and(|value| value.to_str().is_none()))
        .map(Into::into)
}
