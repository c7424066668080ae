//! Writes the page and its pictures.

use std::{ffi::OsStr, fs, io, path::Path};

use crate::{document::document, pictures::pictures, report::Report};

/// Writes `benchmarks.md` and the pictures in `benchmarks/` into the directory of documents. Pictures of an earlier report that
/// this one has no figures for are removed.
///
/// # Errors
///
/// What the file system says.
pub(crate) fn render(report: &Report, docs: &Path) -> io::Result<()> {
    let pictures = pictures(report)?;
    let directory = docs.join("benchmarks");
    fs::create_dir_all(&directory)?;
    for entry in fs::read_dir(&directory)? {
        let path = entry?.path();
        if path.extension() == Some(OsStr::new("svg")) {
            fs::remove_file(path)?;
        }
    }
    for picture in &pictures {
        fs::write(directory.join(format!("{}.svg", picture.name)), &picture.svg)?;
    }
    fs::write(docs.join("benchmarks.md"), document(report, &pictures))
}
