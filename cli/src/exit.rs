//! How the process ends: the exit codes, and the one line that says why.

use std::{fmt::Write as _, io, process::ExitCode};

use interval_queue::{Error, ErrorKind, StateError, StateErrorKind};
use signal_hook::low_level::emulate_default_handler;

/// The command line cannot be used.
pub(crate) const USAGE: u8 = 64;
/// What is stored is damaged, foreign or of a newer version.
pub(crate) const DATAERR: u8 = 65;
/// There is no such queue, or no directory for its file.
pub(crate) const NOINPUT: u8 = 66;
/// The store cannot be reached or did not answer.
pub(crate) const UNAVAILABLE: u8 = 69;
/// This program is at fault.
pub(crate) const SOFTWARE: u8 = 70;
/// The operating system refused something.
pub(crate) const OSERR: u8 = 71;
/// No room is left where the store is.
pub(crate) const CANTCREAT: u8 = 73;
/// The output cannot be written, or the items cannot be read.
pub(crate) const IOERR: u8 = 74;
/// CMD was not started in time.
pub(crate) const TEMPFAIL: u8 = 75;
/// Not permitted.
pub(crate) const NOPERM: u8 = 77;
/// The place cannot do what a shared state needs.
pub(crate) const CONFIG: u8 = 78;
/// CMD failed for some items, as with `xargs(1)`; of tasks that were waited for, some did not end well.
pub(crate) const SOME_FAILED: u8 = 123;
/// CMD, or what was waited for, ran into `--timeout`, as with `timeout(1)`.
pub(crate) const TIMED_OUT: u8 = 124;
/// CMD is there but cannot be executed, as in a shell.
pub(crate) const NOT_EXECUTABLE: u8 = 126;
/// CMD is not there, as in a shell.
pub(crate) const NOT_FOUND: u8 = 127;
/// CMD was killed by signal N: this and N, as in a shell.
pub(crate) const BY_SIGNAL: u8 = 128;

/// How the process ends when nothing failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Code(u8),
    /// Killed by this signal, so that a shell's loop stops as it would without this program.
    Signal(i32),
}

impl Ending {
    pub(crate) fn leave(self) -> ExitCode {
        match self {
            Ending::Code(code) => ExitCode::from(code),
            Ending::Signal(signal) => {
                if !is_init() {
                    // It does not return unless the signal is unknown or does not kill.
                    let _ = emulate_default_handler(signal);
                }
                ExitCode::from(BY_SIGNAL.saturating_add(u8::try_from(signal).unwrap_or(0)))
            }
        }
    }
}

/// Whether this process is the first of a container: no signal can kill it that it does not handle.
pub(crate) fn is_init() -> bool {
    std::process::id() == 1
}

/// Why the process ends without having done what it was to do: an exit code and a line.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) code: u8,
    pub(crate) message: String,
    /// Whether the same may succeed later with nobody doing anything about it.
    pub(crate) passes: bool,
}

impl Failure {
    pub(crate) fn new(code: u8, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), passes: false }
    }

    pub(crate) fn os(what: &str, error: &io::Error) -> Self {
        Self::new(OSERR, format!("{what}: {error}"))
    }

    /// Says it on stderr.
    pub(crate) fn report(&self) -> ExitCode {
        say(&self.message);
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

/// The error and its causes in one line, none of them twice. What others stored may be in it, and speaks to
/// no terminal.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut line = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        // Some errors tell their cause by themselves.
        if !line.ends_with(&text) {
            // Writing to a string cannot fail.
            let _ = write!(line, ": {text}");
        }
        cause = error.source();
    }
    line.replace(char::is_control, " ")
}

/// A line of this program on stderr.
pub(crate) fn say(line: &str) {
    use io::Write;
    // One write, so that lines of processes that share stderr do not mix. A closed stderr is no error.
    let line = crate::text::visible(line);
    let _ = io::stderr().write_all(format!("interval-queue: {line}\n").as_bytes());
}

/// The result of a command on stdout.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    print_as_it_is(format!("{text}\n").as_bytes())
}

/// The same for what has its own ends of lines.
pub(crate) fn print_as_it_is(bytes: &[u8]) -> Result<(), Failure> {
    print_on(bytes).map(drop)
}

/// The same of a part of the output. False: the reader of the pipe has read enough.
pub(crate) fn print_on(bytes: &[u8]) -> Result<bool, Failure> {
    match io::Write::write_all(&mut Stdout, bytes) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::new(IOERR, format!("cannot write the output: {error}"))),
    }
}

/// The standard output. That of the standard library says nothing if it is not open for writing.
///
/// One that was closed cannot be told from `/dev/null`: the runtime puts that in its place before `main`.
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

/// What the parser of the command line has to say: help on stdout, errors on stderr.
pub(crate) fn clap(error: &clap::Error) -> ExitCode {
    if error.kind() == clap::error::ErrorKind::InvalidUtf8
        && let Some(what) = not_utf8()
    {
        say(&format!("{what} is not UTF-8: only CMD, its arguments and names of files need not be"));
        return ExitCode::from(USAGE);
    }
    // A reader that closes the pipe has read enough.
    let unheard = error.print().is_err_and(|error| error.kind() != io::ErrorKind::BrokenPipe);
    ExitCode::from(if error.use_stderr() {
        USAGE
    } else if unheard {
        IOERR
    } else {
        0
    })
}

/// What of the command line, or of what stands in for it, is not UTF-8: CMD may be so, what is before it is
/// meant.
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
