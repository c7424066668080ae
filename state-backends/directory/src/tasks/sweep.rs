//! What people did with files: directories that have changed since they were looked at are looked at again, and what is
//! found goes through the rules.

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
    Trouble,
    index::Index,
    names::{self, DROP, SHARD, STATES},
    reconcile,
    round::Round,
};
use crate::store::{Place, files::is_marked};

/// So many findings are gone through in one transaction.
const MOST: usize = 1_000;
/// The least time between two sweeps of a worker that steps.
const PAUSE: Duration = Duration::from_secs(1);
/// Sweeps take one part of so many of the time.
const PART: u32 = 50;
/// A directory that was changed so long ago has no change that is not seen yet, in microseconds: the time of a file is
/// as coarse as a tick of the kernel.
const SURE: i64 = 20_000;
/// The same over a network mount, whose clock is another one.
const SURE_REMOTE: i64 = 5_000_000;

/// When a queue is to be looked at again.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sweeps {
    next: Option<Instant>,
    /// When the drop box was changed last, as it was looked at.
    dropped: Option<i64>,
}

/// What is not as the index has it.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// Files that are not known where they are: the state of their directory, none: the drop box.
    pub(super) strange: Vec<(Option<State>, PathBuf)>,
    /// Tasks whose files are not where they should be.
    pub(super) gone: Vec<TaskId>,
    /// Tasks whose files were written to.
    pub(super) edited: Vec<TaskId>,
}

impl Findings {
    fn len(&self) -> usize {
        self.strange.len() + self.gone.len() + self.edited.len()
    }
}

/// Looks at what has changed of a queue, if it is time to or somebody counts.
#[allow(
    clippy::disallowed_methods,
    reason = "measures how long a sweep takes, never an instant of the state"
)]
pub(super) fn sweep(
    place: &Place,
    index: &Index,
    now: Micros,
    queue: &QueueName,
    sweeps: Sweeps,
    counts: bool,
) -> Result<Sweeps, Trouble> {
    let begun = Instant::now();
    let folder = names::folder(queue);
    let dropped = changed(place, &format!("{folder}/{DROP}"));
    let is_due = counts || sweeps.next.is_none_or(|next| begun >= next);
    let is_dropped =
        dropped.is_some() && dropped != sweeps.dropped && index.seen(&folder, DROP, 0)? != dropped;
    let sweeps = Sweeps { dropped: dropped.filter(|_| !is_dropped), ..sweeps };
    if !is_due && !is_dropped {
        return Ok(sweeps);
    }
    loop {
        let mut round = Round::begin(place, index, now)?;
        let mut look = Look { place, index, folder: &folder, findings: Findings::default(), has_seen: false };
        if let Some(dropped) = dropped.filter(|_| is_dropped) {
            look.drop_box(dropped)?;
        }
        if is_due {
            let number = number_of(index, queue)?;
            for state in STATES {
                look.state(number, state)?;
            }
        }
        let (findings, has_seen) = (look.findings, look.has_seen);
        let is_full = findings.len() >= MOST;
        let mut is_changed = false;
        if findings.len() > 0 || has_seen {
            is_changed = reconcile::reconcile(&mut round, queue, findings)?;
            if is_changed || has_seen {
                round.commit()??;
            }
        }
        if !(is_full && is_changed && counts) {
            break;
        }
    }
    if !is_due {
        return Ok(sweeps);
    }
    let took = begun.elapsed();
    Ok(Sweeps { next: Some(Instant::now() + PAUSE.max(took * PART)), ..sweeps })
}

/// Looks at the files of some tasks.
pub(super) fn look_at(
    place: &Place,
    index: &Index,
    now: Micros,
    queue: &QueueName,
    suspects: &[TaskId],
) -> Result<(), Trouble> {
    // One that was moved by hand is found where it is.
    sweep(place, index, now, queue, Sweeps::default(), true)?;
    let mut round = Round::begin(place, index, now)?;
    let findings = Findings { edited: suspects.to_vec(), ..Findings::default() };
    if reconcile::reconcile(&mut round, queue, findings)? {
        round.commit()??;
    }
    Ok(())
}

fn number_of(index: &Index, queue: &QueueName) -> Result<Option<i64>, Trouble> {
    let sql = "SELECT number FROM interval_queue_task_queue WHERE name = ?1";
    Ok(index.on.prepare_cached(sql)?.query_row([queue.as_str()], |row| row.get(0)).optional()?)
}

/// When a directory was changed last, in nanoseconds; none: it is not there.
fn changed(place: &Place, name: &str) -> Option<i64> {
    let metadata = fs::symlink_metadata(place.files().at(name)).ok().filter(fs::Metadata::is_dir)?;
    nanoseconds(&metadata)
}

fn nanoseconds(metadata: &fs::Metadata) -> Option<i64> {
    let since = metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(since.as_nanos()).ok()
}

/// One look at the directories of a queue.
struct Look<'a> {
    place: &'a Place,
    index: &'a Index,
    folder: &'a str,
    findings: Findings,
    has_seen: bool,
}

impl Look<'_> {
    fn failed(&self, name: &str, error: io::Error) -> Trouble {
        Trouble::Files(self.place.failed("look into", name, error))
    }

    /// Notes that a directory is as the index has it, if nothing can have happened unseen.
    fn saw(&mut self, state: &str, shard: i64, changed: i64) -> Result<(), Trouble> {
        let sure = if self.place.is_remote() { SURE_REMOTE } else { SURE };
        let age = i64::try_from(clock::host()).unwrap_or(i64::MAX).saturating_sub(changed / 1_000);
        if age > sure {
            self.index.set_seen(self.folder, state, shard, changed)?;
            self.has_seen = true;
        }
        Ok(())
    }

    fn entries(&self, name: &str) -> Result<Vec<fs::DirEntry>, Trouble> {
        match fs::read_dir(self.place.files().at(name)) {
            Ok(entries) => entries.collect::<Result<_, _>>().map_err(|error| self.failed(name, error)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(self.failed(name, error)),
        }
    }

    fn drop_box(&mut self, changed: i64) -> Result<(), Trouble> {
        let name = format!("{}/{DROP}", self.folder);
        let entries = match fs::read_dir(self.place.files().at(&name)) {
            Ok(entries) => entries,
            Err(error) => return Err(self.failed(&name, error)),
        };
        for entry in entries {
            let entry = entry.map_err(|error| self.failed(&name, error))?;
            let shown = entry.file_name();
            let shown = shown.to_string_lossy();
            // Others are still being written.
            if shown.starts_with('.') || [".tmp", ".part", "~"].iter().any(|ending| shown.ends_with(ending)) {
                continue;
            }
            self.findings.strange.push((None, PathBuf::from(&name).join(entry.file_name())));
            if self.findings.len() >= MOST {
                return Ok(());
            }
        }
        if self.findings.len() == 0 { self.saw(DROP, 0, changed) } else { Ok(()) }
    }

    fn state(&mut self, queue: Option<i64>, state: State) -> Result<(), Trouble> {
        let name = format!("{}/{state}", self.folder);
        let seen: HashMap<i64, i64> = self.index.all_seen(self.folder, state.as_str())?.into_iter().collect();
        let mut shards = Vec::new();
        for entry in self.entries(&name)? {
            let kind = entry.file_type().map_err(|error| self.failed(&name, error))?;
            let shown = entry.file_name();
            match shown.to_str().and_then(|name| name.parse::<i64>().ok()) {
                Some(shard) if kind.is_dir() => {
                    let changed = entry.metadata().ok().as_ref().and_then(nanoseconds).unwrap_or(0);
                    if seen.get(&shard) != Some(&changed) {
                        shards.push((shard, changed));
                    }
                }
                // Put there by hand, without looking for the right directory.
                _ if !kind.is_dir() && is_of_task(&shown) => {
                    self.findings.strange.push((Some(state), PathBuf::from(&name).join(&shown)));
                }
                _ => {}
            }
        }
        shards.sort_unstable();
        for (shard, changed) in shards {
            if self.findings.len() >= MOST {
                return Ok(());
            }
            self.shard(queue, state, shard, changed)?;
        }
        // A whole directory may be gone.
        if let Some(queue) = queue {
            self.gone_shards(queue, state)?;
        }
        Ok(())
    }

    fn expected(&self, queue: i64, state: State, shard: i64) -> Result<HashSet<TaskId>, Trouble> {
        let sql =
            "SELECT id FROM interval_queue_task WHERE number BETWEEN ?1 AND ?2 AND queue = ?3 AND state = ?4";
        let mut statement = self.index.on.prepare_cached(sql)?;
        let first = shard * SHARD;
        let ids = statement
            .query_map((first, first + SHARD - 1, queue, state.as_str()), |row| row.get::<_, String>(0))?;
        let ids = ids.collect::<Result<Vec<_>, _>>()?;
        Ok(ids.iter().filter_map(|id| id.parse().ok()).collect())
    }

    fn shard(&mut self, queue: Option<i64>, state: State, shard: i64, changed: i64) -> Result<(), Trouble> {
        let name = names::shard(self.folder, state, shard);
        let mut expected = match queue {
            Some(queue) => self.expected(queue, state, shard)?,
            None => HashSet::new(),
        };
        let before = self.findings.len();
        let mut is_empty = true;
        for entry in self.entries(&name)? {
            is_empty = false;
            let shown = entry.file_name();
            if !is_of_task(&shown) {
                continue;
            }
            let stem = shown.to_str().and_then(|name| name.strip_suffix(".json"));
            let id = stem.and_then(|stem| stem.parse::<TaskId>().ok().filter(|id| id.to_string() == stem));
            match id.filter(|id| expected.remove(id)) {
                Some(id) => {
                    let written = entry.metadata().and_then(|metadata| metadata.modified());
                    let is_known = written.is_ok_and(|written| is_marked(written, names::mark(id)));
                    // What is written of a task that runs is looked at once it does not.
                    if !is_known && state != State::Leased {
                        self.findings.edited.push(id);
                    }
                }
                None => self.findings.strange.push((Some(state), PathBuf::from(&name).join(&shown))),
            }
        }
        self.findings.gone.extend(expected);
        if is_empty && self.findings.len() == before {
            // Else they would gather. One that is filled just now stays.
            let _ = fs::remove_dir(self.place.files().at(&name));
            return self.index.forget_seen(self.folder, state.as_str(), shard);
        }
        if self.findings.len() == before { self.saw(state.as_str(), shard, changed) } else { Ok(()) }
    }

    /// Directories that were there when they were looked at and are not any more.
    fn gone_shards(&mut self, queue: i64, state: State) -> Result<(), Trouble> {
        for (shard, _) in self.index.all_seen(self.folder, state.as_str())? {
            if !self.place.files().is_there(names::shard(self.folder, state, shard)) {
                let gone = self.expected(queue, state, shard)?;
                self.findings.gone.extend(gone);
                self.index.forget_seen(self.folder, state.as_str(), shard)?;
                self.has_seen = true;
            }
        }
        Ok(())
    }
}

/// Others are those of editors, which are gone in a moment.
fn is_of_task(name: &std::ffi::OsStr) -> bool {
    let name = name.to_string_lossy();
    name.ends_with(".json") && !name.starts_with('.')
}
