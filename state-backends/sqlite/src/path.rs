//! Where the database really is: its log lies beside the real file, and all who name it differently must find
//! the same one.

use std::{
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
};

use interval_queue_contract::{StateError, StateErrorKind};

use crate::error::cannot;

/// As many links as Linux follows.
const MOST_LINKS: usize = 40;

/// The absolute path without symbolic links of a file that need not be there, in a directory that must be.
pub(crate) fn resolve(given: &Path) -> Result<PathBuf, StateError> {
    let invalid = |what: &str| StateError::new(StateErrorKind::Invalid, what);
    if given.as_os_str().is_empty() {
        return Err(invalid(
            "the path is empty: give that of a database file, or use memory: within one process",
        ));
    }
    if given == Path::new(":memory:") {
        return Err(invalid(
            "\":memory:\" is shared with nobody: use memory: within one process, or give a path",
        ));
    }
    let mut path = given.to_owned();
    for _ in 0..MOST_LINKS {
        match fs::canonicalize(&path).and_then(|real| Ok((fs::metadata(&real)?, real))) {
            // A pipe or a device would block or swallow what is written.
            Ok((found, real)) if found.is_file() => return Ok(real),
            Ok(_) => return Err(not_a_file(given)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(cannot("use", given, error)),
        }
        // `a/` and `a/.` name a directory, which `file_name` overlooks.
        let text = path.as_os_str().to_string_lossy();
        if text.ends_with(std::path::is_separator) || text.ends_with("/.") {
            return Err(not_a_file(given));
        }
        let (Some(name), Some(parent)) = (path.file_name(), path.parent()) else {
            return Err(not_a_file(given));
        };
        let parent = if parent == Path::new("") { Path::new(".") } else { parent };
        let directory = fs::canonicalize(parent).map_err(|error| cannot("use", given, error))?;
        let file = directory.join(name);
        match fs::read_link(&file) {
            // A link to a file that is yet to be made.
            Ok(target) => path = directory.join(target),
            Err(_) if directory.is_dir() => return Ok(file),
            Err(_) => return Err(not_a_file(given)),
        }
    }
    Err(invalid(&format!("{} leads through too many symbolic links", given.display())))
}

/// The file beside `path` with `ending` after its whole name.
pub(crate) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(ending);
    PathBuf::from(name)
}

fn not_a_file(path: &Path) -> StateError {
    let example = path.join("queues.db");
    let text =
        format!("{} is not a file: give the path of one, for example {}", path.display(), example.display());
    StateError::new(StateErrorKind::Invalid, text)
}
