//! The report as a file.

use std::{
    env, fs,
    path::Path,
    time::{Duration, UNIX_EPOCH},
};

use crate::{Failure, clock, report::Report};

/// Writes the report as JSON, and says where.
pub(crate) fn write(report: &Report, path: &Path) -> Result<(), Failure> {
    let wrong = |error| format!("cannot write {}: {error}", path.display());
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory).map_err(wrong)?;
    }
    fs::write(path, serde_json::to_vec(report)?).map_err(wrong)?;
    println!("\nAll figures of all runs are in {}", path.display());
    Ok(())
}

/// Reads a report that was written so.
pub(crate) fn read(path: &Path) -> Result<Report, Failure> {
    let text =
        fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    serde_json::from_str(&text).map_err(|error| format!("{} is no report: {error}", path.display()).into())
}

/// The day, as `2026-01-31`.
pub(crate) fn today() -> String {
    let now = UNIX_EPOCH + Duration::from_nanos(clock::wall());
    let now = humantime::format_rfc3339_seconds(now).to_string();
    now.split('T').next().unwrap_or_default().to_owned()
}

/// The command that runs this benchmark so again.
pub(crate) fn command() -> String {
    let arguments = env::args()
        .skip(1)
        .filter(|argument| argument != "--bench")
        .map(|argument| if argument.contains(' ') { format!("'{argument}'") } else { argument });
    let arguments: Vec<String> = arguments.collect();
    let separator = if arguments.is_empty() { "" } else { " -- " };
    format!("cargo bench --bench pace{separator}{}", arguments.join(" "))
}
