//! One transaction: commands on the index, their file changes, and the commit of both.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use interval_queue_contract::{Micros, QueueName, StateError};
use interval_queue_task_contract::{Command, Reply, Rows, rules};
use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::{
    TransactionError,
    document::Document,
    index::Index,
    names::{self, TEMPORARY_DIR},
    pending_files::{PendingFile, PendingFiles},
    queue_file,
    redo_entry::{self, RedoEntry},
    rows::FiledRows,
};
use crate::store::{
    Location,
    files::{Files, Unread},
};

/// Has the last command whose redo list was carried out.
const DONE_FILE: &str = "done";
/// Longer texts are written before the commit, under temporary names, to keep the redo list short.
const MAX_INLINE_BYTES: usize = 4_096;
/// Limits all texts of a redo list.
const MAX_INLINE_BYTES_TOTAL: usize = 1 << 20;

pub(super) struct DirectoryTransaction<'a> {
    pub(super) location: &'a Location,
    pub(super) index: &'a Index,
    sqlite: Transaction<'a>,
    pub(super) now: Micros,
    pending: BTreeMap<QueueName, PendingFiles>,
    written: usize,
    /// Bytes of texts in the redo list.
    listed: usize,
}

impl<'a> DirectoryTransaction<'a> {
    pub(super) fn begin(
        location: &'a Location,
        index: &'a Index,
        now: Micros,
    ) -> Result<Self, TransactionError> {
        let sqlite = Transaction::new_unchecked(&index.connection, TransactionBehavior::Immediate)?;
        Ok(Self { location, index, sqlite, now, pending: BTreeMap::new(), written: 0, listed: 0 })
    }

    pub(super) fn files(&self) -> &'a Files {
        self.location.files()
    }

    pub(super) fn pending(&mut self, queue: &QueueName) -> &mut PendingFiles {
        self.pending.entry(queue.clone()).or_insert_with(|| PendingFiles::new(queue))
    }

    fn run(&self, sql: &str) -> Result<(), TransactionError> {
        let on: &Connection = &self.sqlite;
        on.prepare_cached(sql)?.execute([])?;
        Ok(())
    }

    /// The command is undone alone if it fails.
    pub(super) fn apply(
        &mut self,
        queue: &QueueName,
        command: &Command,
        is_strict: bool,
    ) -> Result<Reply, TransactionError> {
        let now = self.now;
        self.with_rows(queue, is_strict, |rows| rules::apply(rows, now, command))
    }

    /// If the only command of a transaction fails, the transaction must be dropped. SQLite then
    /// needs no savepoint, which would copy each changed page.
    pub(super) fn apply_only(
        &mut self,
        queue: &QueueName,
        command: &Command,
        is_strict: bool,
    ) -> Result<Reply, TransactionError> {
        let now = self.now;
        self.work(queue, is_strict, |rows| rules::apply(rows, now, command))
    }

    /// Changes are undone alone if `work` fails.
    pub(super) fn with_rows<T>(
        &mut self,
        queue: &QueueName,
        is_strict: bool,
        work: impl FnOnce(&mut FiledRows<'_>) -> Result<T, TransactionError>,
    ) -> Result<T, TransactionError> {
        self.run("SAVEPOINT command")?;
        let done = self.work(queue, is_strict, work);
        if done.is_err() {
            self.pending(queue).undo_command();
            self.run("ROLLBACK TO command")?;
        }
        self.run("RELEASE command")?;
        done
    }

    fn work<T>(
        &mut self,
        queue: &QueueName,
        is_strict: bool,
        work: impl FnOnce(&mut FiledRows<'_>) -> Result<T, TransactionError>,
    ) -> Result<T, TransactionError> {
        let (index, files) = (self.index, self.files());
        let pending = self.pending(queue);
        // After a panic the whole transaction is dropped, with its pending files.
        let mut rows = FiledRows::new(index, pending, files, queue, is_strict);
        let done = work(&mut rows).and_then(|done| rows.finish().map(|()| done))?;
        pending.commit_command();
        Ok(done)
    }

    /// An inner error means that the commands are stored but the redo list failed: it must be
    /// carried out before the next commit.
    pub(super) fn commit(mut self) -> Result<Result<(), TransactionError>, TransactionError> {
        let location = self.location;
        let mut redo = Vec::new();
        let command = self.index.command()? + 1;
        let mut leased = Vec::new();
        for mut pending in std::mem::take(&mut self.pending).into_values() {
            if let Some(number) = pending.notification {
                // Watchers wake while the rest is stored, and wait for the lock until then.
                let _ = location.files().note(&format!("{}/news", pending.folder), &format!("{number}\n"));
            }
            self.stage(&pending, command, &mut redo)?;
            leased.extend(pending.leased());
        }
        if !redo.is_empty() {
            self.files()
                .flush_directory(TEMPORARY_DIR)
                .map_err(|error| self.failed("flush", TEMPORARY_DIR, error))?;
            self.index.set_redo_entries(command, &RedoEntry::encode(&redo))?;
        }
        let step = || location.files().faults.step();
        step().map_err(|error| TransactionError::Files(location.failed("commit", "index.db", error)))?;
        self.sqlite.commit().map_err(TransactionError::Commit)?;
        if !redo.is_empty() {
            if let Err(error) = carry_out(location, command, &redo, false) {
                return Ok(Err(TransactionError::Files(error)));
            }
            self.index.carried_out.set(command);
        }
        for (id, token, read) in leased {
            self.index.leased_files.keep(id, token, read);
        }
        Ok(Ok(()))
    }

    fn failed(&self, verb: &str, name: &str, error: std::io::Error) -> TransactionError {
        TransactionError::Files(self.location.failed(verb, name, error))
    }

    /// Long texts become temporary files, other changes redo entries.
    fn stage(
        &mut self,
        pending: &PendingFiles,
        command: i64,
        redo: &mut Vec<RedoEntry>,
    ) -> Result<(), TransactionError> {
        let files = self.files();
        let mut made = BTreeSet::new();
        for (id, entry) in pending.entries() {
            let task = entry.task.as_ref();
            let target = task.and_then(|task| names::path(&pending.folder, task.state, entry.number, id));
            let (Some(task), Some(target)) = (task, target) else {
                redo.extend(entry.origin.clone().map(|name| RedoEntry::Remove { name }));
                continue;
            };
            let stays = entry.origin.as_ref() == Some(&target);
            let directory = target.rsplit_once('/').map_or("", |(directory, _)| directory);
            if !stays && !made.contains(directory) {
                files.make_directory(directory).map_err(|error| self.failed("make", &target, error))?;
                made.insert(directory.to_owned());
            }
            let from = entry.origin.clone().filter(|_| !stays);
            if !entry.is_rewritten {
                redo.extend(from.map(|from| RedoEntry::Move { from, to: target }));
                continue;
            }
            let (text, mark) = (self.text(&pending.queue, entry, task)?, names::mark(id));
            // A file by another program is not overwritten in place: it may be open, or have a
            // second name.
            let is_ours = entry.origin.as_deref().is_none_or(|origin| shard_of(origin).is_some());
            if is_ours && text.len() <= MAX_INLINE_BYTES && self.listed < MAX_INLINE_BYTES_TOTAL {
                self.listed += text.len();
                let is_new = entry.origin.is_none();
                redo.extend(from.map(|from| RedoEntry::Move { from, to: target.clone() }));
                redo.push(RedoEntry::Write { is_new, to: target, mark, text });
                continue;
            }
            if !stays && files.is_there(&target) {
                redo_entry::make_room(files, &target)
                    .map_err(|error| self.failed("set aside", &target, error))?;
            }
            let temporary = self.temporary(command);
            files
                .write(&temporary, &text, Some(mark))
                .map_err(|error| self.failed("write", &temporary, error))?;
            redo.push(RedoEntry::Put { temporary, to: target });
            redo.extend(from.map(|name| RedoEntry::Remove { name }));
        }
        redo.extend(pending.redo.iter().cloned());
        if pending.is_changed {
            let text = queue_file::text(self.index, &pending.queue)?;
            let temporary = self.temporary(command);
            files.write(&temporary, &text, None).map_err(|error| self.failed("write", &temporary, error))?;
            for below in [names::DROP_BOX, names::QUARANTINE] {
                let name = format!("{}/{below}", pending.folder);
                files.make_directory(&name).map_err(|error| self.failed("make", &name, error))?;
            }
            redo.push(RedoEntry::Put { temporary, to: format!("{}/queue.json", pending.folder) });
        }
        Ok(())
    }

    /// A killed process may have left a file of that name.
    fn temporary(&mut self, command: i64) -> String {
        self.written += 1;
        format!("{TEMPORARY_DIR}/{command}-{}", self.written)
    }

    fn text(
        &self,
        queue: &QueueName,
        entry: &PendingFile,
        task: &interval_queue_task_contract::Task,
    ) -> Result<String, TransactionError> {
        let cached =
            |origin: &String| self.index.leased_files.take(task.id, task.token, self.files(), origin);
        let kept = match (entry.origin.as_ref().and_then(cached), &entry.origin) {
            (Some(cached), _) => cached,
            (None, None) => Document::default(),
            (None, Some(origin)) => match self.files().read(origin) {
                Ok(contents) => Document::parse(&contents.text).unwrap_or_default(),
                Err(Unread::Failed(error)) => return Err(self.failed("read", origin, error)),
                Err(_) => Document::default(),
            },
        };
        let upstreams = match entry.are_upstreams_changed {
            true => Some(self.index.tables(queue).edges_to(task.id, None, None, u32::MAX)?),
            false => None,
        };
        let text = kept.of_task(
            task,
            entry.payload.as_ref(),
            entry.result.as_ref(),
            entry.log.as_deref(),
            upstreams.as_deref(),
        );
        text.map_err(|what| {
            TransactionError::Files(StateError::new(interval_queue_contract::StateErrorKind::Damaged, what))
        })
    }
}

/// Returns queue, state, number.
fn shard_of(name: &str) -> Option<(&str, &str, i64)> {
    let mut parts = name.split('/');
    let (folder, state, shard) = (parts.next()?, parts.next()?, parts.next()?);
    parts.next()?;
    Some((folder, state, shard.parse().ok()?))
}

/// The file `done` records that.
fn carry_out(location: &Location, command: i64, redo: &[RedoEntry], again: bool) -> Result<(), StateError> {
    let files = location.files();
    for entry in redo {
        entry.carry_out(files, again).map_err(|error| {
            let name = entry.names().next().unwrap_or_default();
            location.failed("finish the command before, at", name, error)
        })?;
    }
    if files.is_flushed() {
        let directories =
            redo.iter().flat_map(RedoEntry::names).filter_map(|name| Some(name.rsplit_once('/')?.0));
        let mut directories: Vec<_> = directories.collect();
        directories.sort_unstable();
        directories.dedup();
        for directory in directories {
            files.flush_directory(directory).map_err(|error| location.failed("flush", directory, error))?;
        }
    }
    let text = format!("{command} {}\n", location.boot());
    files.note(DONE_FILE, &text).map_err(|error| location.failed("write", DONE_FILE, error))
}

/// Carries out the redo list that a killed process has left. `false`: the index is older than the
/// files.
pub(super) fn finish(location: &Location, index: &Index) -> Result<bool, TransactionError> {
    let last = index.command()?;
    if last > 0 && index.carried_out.get() == last {
        return Ok(true);
    }
    let done = fs::read_to_string(location.files().at(DONE_FILE)).ok();
    let mut parts = done.as_deref().unwrap_or_default().split_whitespace();
    let command: Option<i64> = parts.next().and_then(|number| number.parse().ok());
    let was_here = parts.next().is_some_and(|booted| booted == location.boot());
    if command.is_some_and(|command| command > last) || !index.is_whole()? {
        return Ok(false);
    }
    if command != Some(last) && last > 0 {
        carry_out(location, last, &RedoEntry::decode(&index.redo_entries()?), true)
            .map_err(TransactionError::Files)?;
    }
    if !was_here && last > 0 {
        // The host has been started since, and may have lost the last writes: everything is
        // checked.
        if !index.is_sound()? {
            return Ok(false);
        }
        index.forget_all_seen()?;
        if command == Some(last) {
            carry_out(location, last, &[], true).map_err(TransactionError::Files)?;
        }
    }
    index.carried_out.set(last);
    Ok(true)
}
