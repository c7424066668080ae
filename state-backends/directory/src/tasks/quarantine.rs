//! The quarantine of a queue: files that cannot be used, each with its reason next to it.

use std::{
    io,
    path::{Path, PathBuf},
};

use super::names::QUARANTINE;
use crate::store::Files;

/// Leaves room for endings.
const MAX_NAME_BYTES: usize = 200;

/// Returns the new path.
pub(super) fn isolate(files: &Files, from: impl AsRef<Path>, why: &str) -> io::Result<String> {
    let from = from.as_ref();
    let folder = from.iter().next().map(PathBuf::from).unwrap_or_default();
    let folder = folder.to_string_lossy();
    let shown = from.file_name().unwrap_or_default().to_string_lossy();
    let name: String = shown.chars().map(|sign| if sign.is_control() { '_' } else { sign }).collect();
    let fits = (0..=name.len().min(MAX_NAME_BYTES)).rev().find(|&at| name.is_char_boundary(at)).unwrap_or(0);
    let mut quarantined = format!("{folder}/{QUARANTINE}/{}", &name[..fits]);
    let mut next = 2;
    while files.is_there(&quarantined) {
        quarantined = format!("{folder}/{QUARANTINE}/{}.{next}", &name[..fits]);
        next += 1;
    }
    // The reason is written first, so no quarantined file is without one.
    let reason = format!("{quarantined}.reason");
    files.replace(&reason, &format!("{}: {why}\n", from.display()))?;
    let Some(from) = from.to_str() else {
        std::fs::rename(files.at(from), files.at(&quarantined))?;
        return Ok(quarantined);
    };
    match files.rename(from, &quarantined) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => files.remove(&reason)?,
        moved => moved?,
    }
    Ok(quarantined)
}
