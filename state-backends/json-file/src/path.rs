//! Where the state file really is, so that all who name it differently share one file and one lock.

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
    let mut path = given.to_owned();
    for _ in 0..MOST_LINKS {
        match fs::canonicalize(&path) {
            Ok(real) => return check_is_file(real),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(cannot("use", &path, error)),
        }
        if names_a_directory(&path) {
            return Err(missing_directory(&path));
        }
        let name = path.file_name().ok_or_else(|| not_a_file(given))?;
        let directory = match path.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        let directory = fs::canonicalize(directory).map_err(|error| cannot("use", &path, error))?;
        let file = directory.join(name);
        match fs::read_link(&file) {
            // A link to a file that is yet to be made.
            Ok(target) => path = directory.join(target),
            Err(_) => return check_parent(file),
        }
    }
    Err(StateError::new(
        StateErrorKind::Invalid,
        format!("{} leads through too many symbolic links", given.display()),
    ))
}

/// The file beside `path` with `ending` after its whole name.
pub(crate) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(ending);
    PathBuf::from(name)
}

fn check_is_file(path: PathBuf) -> Result<PathBuf, StateError> {
    let metadata = fs::metadata(&path).map_err(|error| cannot("use", &path, error))?;
    // A pipe or a device would block or swallow what is written.
    if metadata.is_file() { Ok(path) } else { Err(not_a_file(&path)) }
}

fn check_parent(path: PathBuf) -> Result<PathBuf, StateError> {
    match path.parent() {
        Some(directory) if directory.is_dir() => Ok(path),
        _ => Err(not_a_file(&path)),
    }
}

/// Whether the text of the path says so, as in `a/` and `a/.`, which `file_name` overlooks.
fn names_a_directory(path: &Path) -> bool {
    let text = path.as_os_str().to_string_lossy();
    let ends_with = |ending: &str| {
        text.ends_with(ending) || text.strip_suffix('.').is_some_and(|text| text.ends_with(ending))
    };
    text.ends_with("/..") || ends_with("/") || ends_with(std::path::MAIN_SEPARATOR_STR)
}

fn missing_directory(path: &Path) -> StateError {
    StateError::new(
        StateErrorKind::Invalid,
        format!(
            "{} names a directory, and there is none: create it and give the path of a file in it, for example {}",
            path.display(),
            path.join("queue.json").display()
        ),
    )
}

fn not_a_file(path: &Path) -> StateError {
    let what = if path.is_dir() { "is a directory" } else { "is not a regular file" };
    StateError::new(
        StateErrorKind::Invalid,
        format!(
            "{} {what}: give the path of a file, for example {}",
            path.display(),
            path.join("queue.json").display()
        ),
    )
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn all_names_of_a_file_lead_to_the_same_path_whether_or_not_it_is_there() {
        let directory = tempfile::tempdir().unwrap();
        let real = directory.path().canonicalize().unwrap().join("real");
        fs::create_dir(&real).unwrap();
        fs::create_dir(directory.path().join("other")).unwrap();
        symlink("real", directory.path().join("to_directory")).unwrap();
        symlink("../real/state.json", directory.path().join("other/second")).unwrap();
        symlink("other/second", directory.path().join("first")).unwrap();
        let names = [
            "real/state.json",
            "real/./state.json",
            "other/../real/state.json",
            "to_directory/state.json",
            "first",
        ];
        for there in [false, true] {
            for name in names {
                let resolved = resolve(&directory.path().join(name)).unwrap();
                assert_eq!(resolved, real.join("state.json"), "{name}, there: {there}");
            }
            fs::write(real.join("state.json"), "").unwrap();
        }
    }

    #[test]
    fn a_name_without_directory_is_in_the_current_one() {
        let here = std::env::current_dir().unwrap().canonicalize().unwrap();
        assert_eq!(resolve(Path::new("no_such_file.json")).unwrap(), here.join("no_such_file.json"));
    }

    #[test]
    fn what_cannot_be_a_file_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path();
        symlink("loop_b", base.join("loop_a")).unwrap();
        symlink("loop_a", base.join("loop_b")).unwrap();
        fs::write(base.join("file"), "").unwrap();
        for (path, kind) in [
            (base.to_owned(), StateErrorKind::Invalid),
            (base.join(".."), StateErrorKind::Invalid),
            (base.join("missing/.."), StateErrorKind::Invalid),
            (base.join("missing/"), StateErrorKind::Invalid),
            (base.join("missing/."), StateErrorKind::Invalid),
            (base.join("file/"), StateErrorKind::Invalid),
            (base.join("missing/state.json"), StateErrorKind::NotFound),
            (base.join("file/state.json"), StateErrorKind::Invalid),
            (PathBuf::from(""), StateErrorKind::Invalid),
            (PathBuf::from("/dev/null"), StateErrorKind::Invalid),
            (base.join("x".repeat(300)), StateErrorKind::Invalid),
        ] {
            let error = resolve(&path).unwrap_err();
            assert_eq!(error.kind(), kind, "{}: {error}", path.display());
        }
        assert!(resolve(&base.join("loop_a")).is_err());
        let error = resolve(&base.join("missing/")).unwrap_err().to_string();
        assert!(error.contains("missing/queue.json"), "{error}");
    }
}
