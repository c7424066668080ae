//! Finds edits by hand: scans the directories that have changed since the last scan, and passes the
//! findings to the rules.

use std::{
    collections::{HashMap, HashSet},
    fs, io,
    path::PathBuf,
    time::{Duration, Instant, UNIX_EPOCH},
};

use interval_queue_contract::{Micros, QueueName};
use interval_queue_store::files::clock;
use interval_queue_task_contract::{State, TaskId};
use rusqlite::OptionalExtension;

use super::{
    TransactionError,
    index::Index,
    names::{self, DROP_BOX, SHARD_SIZE, STATES},
    reconcile,
    transaction::DirectoryTransaction,
};
use crate::store::{Location, files::is_marked};

/// Limits one transaction.
const MAX_FINDINGS: usize = 1_000;
/// Limits polling workers.
const MIN_SCAN_INTERVAL: Duration = Duration::from_secs(1);
/// Scans take at most one part in 50 of the time.
const SCAN_TIME_DIVISOR: u32 = 50;
/// Age of a modification time before a directory counts as seen: file times are as coarse as a tick
/// of the kernel.
const CLOCK_TICK_US: i64 = 20_000;
/// Age over a network mount, whose clock differs from the host's.
const REMOTE_CLOCK_SKEW_US: i64 = 5_000_000;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ScanState {
    next: Option<Instant>,
    /// Time of the drop box at the last scan.
    dropped: Option<i64>,
}

#[derive(Debug, Default)]
pub(super) struct Findings {
    /// Not expected by the index, with the state of their directory. `None`: the drop box.
    pub(super) strange: Vec<(Option<State>, PathBuf)>,
    /// Tasks whose files are not in their place.
    pub(super) gone: Vec<TaskId>,
    /// Tasks whose files have lost their mark.
    pub(super) edited: Vec<TaskId>,
}

impl Findings {
    fn len(&self) -> usize {
        self.strange.len() + self.gone.len() + self.edited.len()
    }
}

/// Scans a queue if a scan is due, if the drop box has files, or if `counts` is set: then the
/// caller needs exact counts.
#[allow(clippy::disallowed_methods, reason = "measures how long a scan takes, never an instant of the store")]
pub(super) fn scan(
    location: &Location,
    index: &Index,
    now: Micros,
    queue: &QueueName,
    scan_state: ScanState,
    counts: bool,
) -> Result<ScanState, TransactionError> {
    let begun = Instant::now();
    let folder = names::folder(queue);
    let dropped = modified(location, &format!("{folder}/{DROP_BOX}"));
    let is_due = counts || scan_state.next.is_none_or(|next| begun >= next);
    let has_drops =
        dropped.is_some() && dropped != scan_state.dropped && index.seen(&folder, DROP_BOX, 0)? != dropped;
    let scan_state = ScanState { dropped: dropped.filter(|_| !has_drops), ..scan_state };
    if !is_due && !has_drops {
        return Ok(scan_state);
    }
    loop {
        let mut transaction = DirectoryTransaction::begin(location, index, now)?;
        let mut scan =
            Scan { location, index, folder: &folder, findings: Findings::default(), has_seen: false };
        if let Some(dropped) = dropped.filter(|_| has_drops) {
            scan.scan_drop_box(dropped)?;
        }
        if is_due {
            let number = number_of(index, queue)?;
            for state in STATES {
                scan.state(number, state)?;
            }
        }
        let (findings, has_seen) = (scan.findings, scan.has_seen);
        let is_full = findings.len() >= MAX_FINDINGS;
        let mut is_changed = false;
        if findings.len() > 0 || has_seen {
            is_changed = reconcile::reconcile(&mut transaction, queue, findings)?;
            if is_changed || has_seen {
                transaction.commit()??;
            }
        }
        if !(is_full && is_changed && counts) {
            break;
        }
    }
    if !is_due {
        return Ok(scan_state);
    }
    let took = begun.elapsed();
    Ok(ScanState {
        next: Some(Instant::now() + MIN_SCAN_INTERVAL.max(took * SCAN_TIME_DIVISOR)),
        ..scan_state
    })
}

pub(super) fn scan_tasks(
    location: &Location,
    index: &Index,
    now: Micros,
    queue: &QueueName,
    suspects: &[TaskId],
) -> Result<(), TransactionError> {
    // A full scan finds files that were moved by hand.
    scan(location, index, now, queue, ScanState::default(), true)?;
    let mut transaction = DirectoryTransaction::begin(location, index, now)?;
    let findings = Findings { edited: suspects.to_vec(), ..Findings::default() };
    if reconcile::reconcile(&mut transaction, queue, findings)? {
        transaction.commit()??;
    }
    Ok(())
}

fn number_of(index: &Index, queue: &QueueName) -> Result<Option<i64>, TransactionError> {
    let sql = "SELECT number FROM interval_queue_task_queue WHERE name = ?1";
    Ok(index.connection.prepare_cached(sql)?.query_row([queue.as_str()], |row| row.get(0)).optional()?)
}

/// In nanoseconds. `None`: no such directory.
fn modified(location: &Location, name: &str) -> Option<i64> {
    let metadata = fs::symlink_metadata(location.files().at(name)).ok().filter(fs::Metadata::is_dir)?;
    nanoseconds(&metadata)
}

fn nanoseconds(metadata: &fs::Metadata) -> Option<i64> {
    let since = metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(since.as_nanos()).ok()
}

struct Scan<'a> {
    location: &'a Location,
    index: &'a Index,
    folder: &'a str,
    findings: Findings,
    has_seen: bool,
}

impl Scan<'_> {
    fn failed(&self, name: &str, error: io::Error) -> TransactionError {
        TransactionError::Files(self.location.failed("look into", name, error))
    }

    /// The directory must be old enough that no later change can have the same time.
    fn mark_seen(&mut self, state: &str, shard: i64, modified: i64) -> Result<(), TransactionError> {
        let margin = if self.location.is_remote() { REMOTE_CLOCK_SKEW_US } else { CLOCK_TICK_US };
        let age = i64::try_from(clock::host()).unwrap_or(i64::MAX).saturating_sub(modified / 1_000);
        if age > margin {
            self.index.set_seen(self.folder, state, shard, modified)?;
            self.has_seen = true;
        }
        Ok(())
    }

    fn entries(&self, name: &str) -> Result<Vec<fs::DirEntry>, TransactionError> {
        match fs::read_dir(self.location.files().at(name)) {
            Ok(entries) => entries.collect::<Result<_, _>>().map_err(|error| self.failed(name, error)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(self.failed(name, error)),
        }
    }

    fn scan_drop_box(&mut self, modified: i64) -> Result<(), TransactionError> {
        let name = format!("{}/{DROP_BOX}", self.folder);
        let entries = match fs::read_dir(self.location.files().at(&name)) {
            Ok(entries) => entries,
            Err(error) => return Err(self.failed(&name, error)),
        };
        for entry in entries {
            let entry = entry.map_err(|error| self.failed(&name, error))?;
            let file_name = entry.file_name();
            let file_name = file_name.to_string_lossy();
            // Files with these names are still being written.
            if file_name.starts_with('.')
                || [".tmp", ".part", "~"].iter().any(|ending| file_name.ends_with(ending))
            {
                continue;
            }
            self.findings.strange.push((None, PathBuf::from(&name).join(entry.file_name())));
            if self.findings.len() >= MAX_FINDINGS {
                return Ok(());
            }
        }
        if self.findings.len() == 0 { self.mark_seen(DROP_BOX, 0, modified) } else { Ok(()) }
    }

    fn state(&mut self, queue: Option<i64>, state: State) -> Result<(), TransactionError> {
        let name = format!("{}/{state}", self.folder);
        let seen: HashMap<i64, i64> = self.index.all_seen(self.folder, state.as_str())?.into_iter().collect();
        let mut shards = Vec::new();
        for entry in self.entries(&name)? {
            let kind = entry.file_type().map_err(|error| self.failed(&name, error))?;
            let file_name = entry.file_name();
            match file_name.to_str().and_then(|name| name.parse::<i64>().ok()) {
                Some(shard) if kind.is_dir() => {
                    let modified = entry.metadata().ok().as_ref().and_then(nanoseconds).unwrap_or(0);
                    if seen.get(&shard) != Some(&modified) {
                        shards.push((shard, modified));
                    }
                }
                // Put there by hand, directly below the state.
                _ if !kind.is_dir() && is_of_task(&file_name) => {
                    self.findings.strange.push((Some(state), PathBuf::from(&name).join(&file_name)));
                }
                _ => {}
            }
        }
        shards.sort_unstable();
        for (shard, modified) in shards {
            if self.findings.len() >= MAX_FINDINGS {
                return Ok(());
            }
            self.shard(queue, state, shard, modified)?;
        }
        // A whole directory may have been removed.
        if let Some(queue) = queue {
            self.gone_shards(queue, state)?;
        }
        Ok(())
    }

    fn expected(&self, queue: i64, state: State, shard: i64) -> Result<HashSet<TaskId>, TransactionError> {
        let sql =
            "SELECT id FROM interval_queue_task WHERE number BETWEEN ?1 AND ?2 AND queue = ?3 AND state = ?4";
        let mut statement = self.index.connection.prepare_cached(sql)?;
        let first = shard * SHARD_SIZE;
        let ids = statement.query_map((first, first + SHARD_SIZE - 1, queue, state.as_str()), |row| {
            row.get::<_, String>(0)
        })?;
        let ids = ids.collect::<Result<Vec<_>, _>>()?;
        Ok(ids.iter().filter_map(|id| id.parse().ok()).collect())
    }

    fn shard(
        &mut self,
        queue: Option<i64>,
        state: State,
        shard: i64,
        modified: i64,
    ) -> Result<(), TransactionError> {
        let name = names::shard(self.folder, state, shard);
        let mut expected = match queue {
            Some(queue) => self.expected(queue, state, shard)?,
            None => HashSet::new(),
        };
        let before = self.findings.len();
        let mut is_empty = true;
        for entry in self.entries(&name)? {
            is_empty = false;
            let file_name = entry.file_name();
            if !is_of_task(&file_name) {
                continue;
            }
            let stem = file_name.to_str().and_then(|name| name.strip_suffix(".json"));
            let id = stem.and_then(|stem| stem.parse::<TaskId>().ok().filter(|id| id.to_string() == stem));
            match id.filter(|id| expected.remove(id)) {
                Some(id) => {
                    let written = entry.metadata().and_then(|metadata| metadata.modified());
                    let is_known = written.is_ok_and(|written| is_marked(written, names::mark(id)));
                    // Edits of a running task are found when its run ends.
                    if !is_known && state != State::Leased {
                        self.findings.edited.push(id);
                    }
                }
                None => self.findings.strange.push((Some(state), PathBuf::from(&name).join(&file_name))),
            }
        }
        self.findings.gone.extend(expected);
        if is_empty && self.findings.len() == before {
            // Empty directories would accumulate. `remove_dir` fails if the directory has been
            // filled meanwhile.
            let _ = fs::remove_dir(self.location.files().at(&name));
            return self.index.forget_seen(self.folder, state.as_str(), shard);
        }
        if self.findings.len() == before { self.mark_seen(state.as_str(), shard, modified) } else { Ok(()) }
    }

    /// Their directories were removed since they were seen.
    fn gone_shards(&mut self, queue: i64, state: State) -> Result<(), TransactionError> {
        for (shard, _) in self.index.all_seen(self.folder, state.as_str())? {
            if !self.location.files().is_there(names::shard(self.folder, state, shard)) {
                let gone = self.expected(queue, state, shard)?;
                self.findings.gone.extend(gone);
                self.index.forget_seen(self.folder, state.as_str(), shard)?;
                self.has_seen = true;
            }
        }
        Ok(())
    }
}

/// Other files are short-lived ones of editors.
fn is_of_task(name: &std::ffi::OsStr) -> bool {
    let name = name.to_string_lossy();
    name.ends_with(".json") && !name.starts_with('.')
}
