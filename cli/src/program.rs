//! CMD is looked up first, so that a mistyped name costs neither a ticket nor a wait.

use std::{
    env,
    ffi::{OsStr, OsString},
    fs::{self, File},
    io::{self, Read},
    os::unix::{ffi::OsStrExt, process::CommandExt},
    path::{Path, PathBuf},
    process::Command,
};

use crate::exit::{Failure, NOT_EXECUTABLE, NOT_FOUND};

/// `execvp` uses it without PATH.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// Linux reads as many bytes of a script to find its interpreter.
const MAX_FIRST_LINE_BYTES: usize = 256;

#[derive(Debug)]
pub(crate) struct Program {
    name: OsString,
    path: PathBuf,
    args: Vec<OsString>,
}

impl Program {
    /// Finds CMD as a shell does.
    ///
    /// # Errors
    ///
    /// The program does not exist or cannot be executed, with the exit codes of a shell.
    pub(crate) fn find(words: &[OsString]) -> Result<Self, Failure> {
        let (name, args) =
            words.split_first().ok_or_else(|| Failure::new(NOT_FOUND, "no command is given"))?;
        let path = find(name).ok_or_else(|| unusable(name))?;
        if let Some(interpreter) = missing_interpreter(&path) {
            return Err(no_interpreter(name, &interpreter));
        }
        Ok(Self { name: name.clone(), path, args: args.to_vec() })
    }

    pub(crate) fn base_name(&self) -> String {
        Path::new(&self.name).file_name().unwrap_or(&self.name).to_string_lossy().into_owned()
    }

    pub(crate) fn args(&self) -> &[OsString] {
        &self.args
    }

    pub(crate) fn with_arg(mut self, arg: OsString) -> Self {
        self.args.push(arg);
        self
    }

    /// Returns only on failure.
    pub(crate) fn exec(self) -> Failure {
        let error = self.command(&self.args).exec();
        cannot_execute(self.path.as_os_str(), &error)
    }

    pub(crate) fn into_command(self) -> Command {
        self.command(&self.args)
    }

    pub(crate) fn command(&self, args: impl IntoIterator<Item: AsRef<OsStr>>) -> Command {
        let mut command = Command::new(&self.path);
        command.arg0(&self.name).args(args);
        command
    }
}

pub(crate) fn cannot_execute(path: &OsStr, error: &io::Error) -> Failure {
    if is_of_host(error) {
        return Failure { passes: true, ..Failure::os(&format!("cannot execute {}", path.display()), error) };
    }
    if error.kind() != io::ErrorKind::NotFound {
        return Failure::new(NOT_EXECUTABLE, format!("cannot execute {}: {error}", path.display()));
    }
    if let Some(interpreter) = missing_interpreter(Path::new(path)) {
        return no_interpreter(path, &interpreter);
    }
    let hint = if Path::new(path).exists() {
        ": the file exists, but its loader may be missing, as for a program of another system"
    } else {
        ""
    };
    Failure::new(NOT_FOUND, format!("cannot execute {}: {error}{hint}", path.display()))
}

/// The host lacks a resource for now, whatever the program.
fn is_of_host(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let lacks = [Errno::AGAIN, Errno::NOMEM, Errno::MFILE, Errno::NFILE, Errno::TXTBSY];
    error.raw_os_error().is_some_and(|code| lacks.iter().any(|lack| lack.raw_os_error() == code))
}

fn no_interpreter(name: &OsStr, interpreter: &str) -> Failure {
    // So that a carriage return at its end is visible.
    let interpreter = interpreter.escape_debug();
    let text = format!(
        "cannot execute {}: its first line names \"{interpreter}\", which does not exist",
        name.display()
    );
    Failure::new(NOT_FOUND, text)
}

/// Named by the first line of a script.
fn missing_interpreter(script: &Path) -> Option<String> {
    let mut line = [0; MAX_FIRST_LINE_BYTES];
    let read = File::open(script).and_then(|mut file| file.read(&mut line)).ok()?;
    let line = line[..read].strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let words = line.split(|byte| matches!(byte, b' ' | b'\t'));
    let interpreter = OsStr::from_bytes(words.into_iter().find(|word| !word.is_empty())?);
    let is_missing =
        matches!(fs::metadata(interpreter), Err(error) if error.kind() == io::ErrorKind::NotFound);
    is_missing.then(|| interpreter.to_string_lossy().into_owned())
}

fn find(name: &OsStr) -> Option<PathBuf> {
    // The current directory is used only for names with a slash. Without it, a relative name is
    // looked up as it is.
    let here = env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
    which::which_in(name, Some(search_path()), here).ok()
}

fn search_path() -> OsString {
    env::var_os("PATH").unwrap_or_else(|| DEFAULT_PATH.into())
}

fn unusable(name: &OsStr) -> Failure {
    let shown = name.display();
    match places(name).into_iter().find(|path| path.exists()) {
        Some(path) if path.is_dir() => {
            Failure::new(NOT_EXECUTABLE, format!("{shown} is a directory: name a program"))
        }
        Some(path) => {
            let path = path.display();
            Failure::new(
                NOT_EXECUTABLE,
                format!("{shown} cannot be executed: `chmod +x {path}` may be missing"),
            )
        }
        None if is_path(name) => Failure::new(NOT_FOUND, format!("{shown} not found: there is no such file")),
        None => {
            Failure::new(NOT_FOUND, format!("{shown:?} not found: no directory of PATH has such a program"))
        }
    }
}

fn places(name: &OsStr) -> Vec<PathBuf> {
    if name.is_empty() {
        return Vec::new();
    }
    if is_path(name) {
        return vec![PathBuf::from(name)];
    }
    // A shell skips a directory of that name on the PATH.
    env::split_paths(&search_path())
        .map(|directory| directory.join(name))
        .filter(|path| !path.is_dir())
        .collect()
}

fn is_path(name: &OsStr) -> bool {
    name.as_encoded_bytes().contains(&b'/')
}
