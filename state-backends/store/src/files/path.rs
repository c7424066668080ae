//! Where a file really is, so that all who name it differently share one file, one lock and one log.

use std::{
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
};

use interval_queue_contract::{StateError, StateErrorKind};

use super::{cannot, identity::names};

/// As many links as Linux follows.
const MOST_LINKS: usize = 40;

/// The absolute path without symbolic links of a file that need not be there, in a directory that must be.
/// `example` is the name of a file, for errors.
///
/// # Errors
///
/// There is no such directory, the path names a directory or anything else than a file, or nothing at all, or
/// the file has more names than one.
pub fn resolve(given: &Path, example: &str) -> Result<PathBuf, StateError> {
    let invalid =
        |what: &str| StateError::new(StateErrorKind::Invalid, format!("{} {what}", given.display()));
    let in_directory = |what: &str| {
        let example = given.join(example);
        invalid(&format!("{what}, for example {}", example.display()))
    };
    let not_a_file = || match given.metadata() {
        Ok(found) if found.is_dir() => in_directory("is a directory: give the path of a file"),
        // A device, a pipe or a socket.
        Ok(_) => invalid("is not a regular file: give the path of one, which need not be there"),
        Err(_) => in_directory("is not a regular file: give the path of a file"),
    };
    let mut path = given.to_owned();
    for _ in 0..MOST_LINKS {
        match fs::canonicalize(&path).and_then(|real| Ok((fs::metadata(&real)?, real))) {
            // A pipe or a device would block or swallow what is written.
            Ok((found, real)) if found.is_file() => {
                return if names(&found) > 1 { Err(has_other_names(&real)) } else { Ok(real) };
            }
            Ok(_) => return Err(not_a_file()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(cannot("use", &path, error)),
        }
        // `a/` and `a/.` name a directory, which `file_name` overlooks.
        let text = path.as_os_str().to_string_lossy();
        if text.strip_suffix('.').unwrap_or(&text).ends_with(std::path::is_separator) {
            let what = "names a directory, and there is none: create it and give the path of a file in it";
            return Err(in_directory(what));
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

/// What lies beside a file, as its lock and its log do, has the name of the file: who comes by another name
/// would find others.
fn has_other_names(path: &Path) -> StateError {
    let text = format!(
        "{path} has several names (hard links), each with a lock and a pace of its own: keep one and make the others symbolic \
         links; `find / -samefile {path}` lists them",
        path = path.display()
    );
    StateError::new(StateErrorKind::Invalid, text)
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
