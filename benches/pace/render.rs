//! Makes the page, its pictures and what both are made of.

use std::{collections::BTreeMap, ffi::OsStr, fs, io, path::Path};

use crate::{
    document::document,
    pictures::{forget_unseen, pictures},
    report::Report,
};

/// Writes `benchmarks.md`, the pictures in `benchmarks/`, and `benchmarks.json`, which is the report without
/// the starts that no picture shows, into the directory of documents. Pictures that this report has no
/// figures for are removed.
///
/// # Errors
///
/// What the file system says.
pub(crate) fn render(report: &Report, docs: &Path) -> io::Result<()> {
    let mut report = report.clone();
    forget_unseen(&mut report);
    let pictures = pictures(&report)?;
    let page = document(&report, &pictures);
    let data = serde_json::to_string(&report)? + "\n";

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
    fs::write(docs.join("benchmarks.md"), page)?;
    fs::write(docs.join("benchmarks.json"), data)
}

/// The sections of stores in what the benchmark `tasks` has printed, by the store's name.
pub(crate) fn sections(text: &str) -> BTreeMap<String, String> {
    let sections = text.split("\n### ").skip(1);
    let named = sections.filter_map(|section| Some((section.lines().next()?, section)));
    named.map(|(name, section)| (name.to_owned(), format!("### {}\n", section.trim_end()))).collect()
}
