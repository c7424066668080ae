//! Where a file really is, so that all who name it differently share one file, one lock and one log.

use std::{
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
};

use interval_queue_contract::{StateError, StateErrorKind};

use super::cannot;

/// As many links as Linux follows.
const MOST_LINKS: usize = 40;

/// The absolute path without symbolic links of a file that need not be there, in a directory that must be.
/// `example` is the name of a file, for errors.
///
/// # Errors
///
/// There is no such directory, the path names a directory or anything else than a file, or nothing at all.
pub fn resolve(given: &Path, example: &str) -> Result<PathBuf, StateError> {
    let invalid = |what: &str| {
        let example = given.join(example);
        let text = format!("{} {what}, for example {}", given.display(), example.display());
        StateError::new(StateErrorKind::Invalid, text)
    };
    let not_a_file = || {
        let what = if given.is_dir() { "is a directory" } else { "is not a regular file" };
        invalid(&format!("{what}: give the path of a file"))
    };
    let mut path = given.to_owned();
    for _ in 0..MOST_LINKS {
        match fs::canonicalize(&path).and_then(|real| Ok((fs::metadata(&real)?, real))) {
            // A pipe or a device would block or swallow what is written.
            Ok((found, real)) if found.is_file() => return Ok(real),
            Ok(_) => return Err(not_a_file()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(cannot("use", &path, error)),
        }
        // `a/` and `a/.` name a directory, which `file_name` overlooks.
        let text = path.as_os_str().to_string_lossy();
        if text.strip_suffix('.').unwrap_or(&text).ends_with(std::path::is_separator) {
            let what = "names a directory, and there is none: create it and give the path of a file in it";
            return Err(invalid(what));
        }
        let (Some(name), Some(parent)) = (path.file_name(), path.parent()) else {
            return Err(not_a_file());
        };
        let parent = if parent == Path::new("") { Path::new(".") } else { parent };
        let directory = fs::canonicalize(parent).map_err(|error| cannot("use", &path, error))?;
        let file = directory.join(name);
        match fs::read_link(&file) {
            // A link to a file that is yet to be made.
            Ok(target) => path = directory.join(target),
            Err(_) if directory.is_dir() => return Ok(file),
            Err(_) => return Err(not_a_file()),
        }
    }
    Err(invalid("leads through too many symbolic links: give the path of a file"))
}

/// The file beside `path` with `ending` after its whole name.
pub fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(ending);
    PathBuf::from(name)
}

/// The directory that has the file of this absolute path.
pub fn directory(file: &Path) -> &Path {
    file.parent().unwrap_or(Path::new("/"))
}
