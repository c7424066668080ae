//! Resolves paths, so that all names of a file share one lock and one log.

use std::{
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
};

use interval_queue_contract::{StateError, StateErrorKind};

use super::{cannot, identity::names};

/// Maximum links followed, as on Linux.
const MAX_LINKS: usize = 40;

/// The absolute path without symbolic links. The file may be missing; its directory must exist.
/// Errors suggest `example` as a file name.
///
/// # Errors
///
/// The directory is missing, the path is empty or no regular file, or the file has several names.
pub fn resolve(given: &Path, example: &str) -> Result<PathBuf, StateError> {
    let invalid =
        |what: &str| StateError::new(StateErrorKind::Invalid, format!("{} {what}", given.display()));
    let in_directory = |what: &str| {
        let example = given.join(example);
        invalid(&format!("{what}, for example {}", example.display()))
    };
    let not_a_file = || match given.metadata() {
        Ok(found) if found.is_dir() => in_directory("is a directory: give the path of a file"),
        // A device, pipe or socket.
        Ok(_) => invalid("is not a regular file: give the path of one, which need not be there"),
        Err(_) => in_directory("is not a regular file: give the path of a file"),
    };
    let mut path = given.to_owned();
    for _ in 0..MAX_LINKS {
        match fs::canonicalize(&path).and_then(|real| Ok((fs::metadata(&real)?, real))) {
            // A pipe or device would block, or swallow writes.
            Ok((found, real)) if found.is_file() => {
                return if names(&found) > 1 { Err(has_other_names(&real)) } else { Ok(real) };
            }
            Ok(_) => return Err(not_a_file()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(cannot("use", &path, error)),
        }
        // `a/` and `a/.` name a directory, which `file_name` ignores.
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
            // A link to a file that does not exist yet.
            Ok(target) => path = directory.join(target),
            Err(_) if directory.is_dir() => return Ok(file),
            Err(_) => return Err(not_a_file()),
        }
    }
    Err(invalid("leads through too many symbolic links: give the path of a file"))
}

/// Lock and log are named after the file: another name would lead to others.
fn has_other_names(path: &Path) -> StateError {
    let text = format!(
        "{path} has several names (hard links), each with a lock and a pace of its own: keep one and make the others symbolic \
         links; `find / -samefile {path}` lists them",
        path = path.display()
    );
    StateError::new(StateErrorKind::Invalid, text)
}

/// The path with `ending` appended to the file name.
pub fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(ending);
    PathBuf::from(name)
}

/// The directory of the file at this absolute path.
pub fn directory(file: &Path) -> &Path {
    file.parent().unwrap_or(Path::new("/"))
}
