//! The programs of each kind: CMD, or the programs of a directory.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use interval_queue_tasks::Kind;

use super::work_args::WorkArgs;
use crate::{
    exit::{Failure, NOINPUT, NOT_FOUND, USAGE},
    program::Program,
};

#[derive(Debug)]
pub(super) struct Programs {
    of: BTreeMap<Kind, Vec<OsString>>,
    /// With reasons. At least one command can be executed.
    pub(super) unusable: Vec<(Kind, Failure)>,
    /// Each kind has a program of its own.
    pub(super) is_directory: bool,
    /// All programs together, for the label of the worker.
    pub(super) name: String,
}

impl Programs {
    /// At least one program exists and can be executed.
    pub(super) fn find(work: &WorkArgs) -> Result<Self, Failure> {
        let mut others = work.kinds.iter().enumerate();
        if let Some((_, twice)) = others.find(|(at, kind)| work.kinds[..*at].contains(kind)) {
            let text = format!("kind {:?} is named twice: name it once", twice.as_str());
            return Err(Failure::new(USAGE, text));
        }
        match &work.dir {
            Some(dir) => Self::of_directory(dir, &work.kinds),
            None => {
                let name = Program::find(&work.command)?.base_name();
                let kinds = if work.kinds.is_empty() { &[Kind::default()] } else { &work.kinds[..] };
                let of = kinds.iter().map(|kind| (kind.clone(), work.command.clone())).collect();
                Ok(Self { of, unusable: Vec::new(), is_directory: false, name })
            }
        }
    }

    /// The programs of these kinds in a directory. Without kinds, all programs in it.
    fn of_directory(dir: &Path, kinds: &[Kind]) -> Result<Self, Failure> {
        let unread =
            |error| Failure::new(NOINPUT, format!("cannot read the directory {}: {error}", dir.display()));
        let words = |path: PathBuf| vec![path.into_os_string()];
        let mut of: BTreeMap<_, _> =
            kinds.iter().map(|kind| (kind.clone(), words(dir.join(kind.as_str())))).collect();
        for entry in fs::read_dir(dir).map_err(unread)? {
            let entry = entry.map_err(unread)?;
            let is_program = fs::metadata(entry.path())
                .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0);
            let name = entry.file_name();
            let name = name.to_str();
            if !is_program || name.is_some_and(|name| name.starts_with('.')) {
                continue;
            }
            match name.map(Kind::new) {
                Some(Ok(kind)) if kinds.is_empty() => {
                    of.insert(kind, words(entry.path()));
                }
                Some(Err(error)) if kinds.is_empty() => {
                    let text = format!("{}: its file name is no kind: {error}", entry.path().display());
                    return Err(Failure::new(NOINPUT, text));
                }
                None if kinds.is_empty() => {
                    let text = format!("{:?}: its file name is no kind, since it is not UTF-8", entry.path());
                    return Err(Failure::new(NOINPUT, text));
                }
                _ => {}
            }
        }
        let find = |(kind, words): (&Kind, &Vec<OsString>)| Some((kind.clone(), Program::find(words).err()?));
        let mut unusable: Vec<_> = of.iter().filter_map(find).collect();
        if unusable.len() == of.len()
            && let Some((_, failure)) = unusable.pop()
        {
            return Err(failure);
        }
        if of.is_empty() {
            let text = format!(
                "{} has no program: put one there for each kind, named as the kind, and `chmod +x` it",
                dir.display()
            );
            return Err(Failure::new(NOT_FOUND, text));
        }
        let name = dir.file_name().unwrap_or(dir.as_os_str()).to_string_lossy().into_owned();
        Ok(Self { of, unusable, is_directory: true, name })
    }

    pub(super) fn kinds(&self) -> impl Iterator<Item = &str> {
        self.of.keys().map(Kind::as_str)
    }

    pub(super) fn words(&self, kind: &Kind) -> Vec<OsString> {
        self.of.get(kind).cloned().unwrap_or_default()
    }
}
