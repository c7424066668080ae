//! One transaction: commands on the index, the files that they change, and the commit of both.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use interval_queue_contract::{Micros, QueueName, StateError};
use interval_queue_task_contract::{Command, Reply, Rows, rules};
use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::{
    Trouble,
    desk::{Desk, Entry},
    document::Document,
    index::Index,
    intent::{self, Intent},
    names::{self, TEMPORARY},
    queue_file,
    rows::Filed,
};
use crate::store::{
    Place,
    files::{Files, Unread},
};

/// The file that says up to which command the intents were carried out.
const DONE: &str = "done";
/// Longer texts are written before the commit, under other names, so that the list of intents stays short.
const SHORT: usize = 4_096;
/// The same for all texts of a command together.
const SHORT_TOGETHER: usize = 1 << 20;

/// A transaction that is open.
pub(super) struct Round<'a> {
    pub(super) place: &'a Place,
    pub(super) index: &'a Index,
    transaction: Transaction<'a>,
    pub(super) now: Micros,
    desks: BTreeMap<QueueName, Desk>,
    written: usize,
    /// How many bytes of texts the list of intents has.
    listed: usize,
}

impl<'a> Round<'a> {
    pub(super) fn begin(place: &'a Place, index: &'a Index, now: Micros) -> Result<Self, Trouble> {
        let transaction = Transaction::new_unchecked(&index.on, TransactionBehavior::Immediate)?;
        Ok(Self { place, index, transaction, now, desks: BTreeMap::new(), written: 0, listed: 0 })
    }

    pub(super) fn files(&self) -> &'a Files {
        self.place.files()
    }

    pub(super) fn desk(&mut self, queue: &QueueName) -> &mut Desk {
        self.desks.entry(queue.clone()).or_insert_with(|| Desk::new(queue))
    }

    fn run(&self, sql: &str) -> Result<(), Trouble> {
        let on: &Connection = &self.transaction;
        on.prepare_cached(sql)?.execute([])?;
        Ok(())
    }

    /// Carries out one command, which is undone alone if it fails.
    pub(super) fn apply(
        &mut self,
        queue: &QueueName,
        command: &Command,
        is_strict: bool,
    ) -> Result<Reply, Trouble> {
        let now = self.now;
        self.with_rows(queue, is_strict, |rows| rules::apply(rows, now, command))
    }

    /// Carries out the only command. If it fails the round is to be dropped, so SQLite need not keep what was on each
    /// page before.
    pub(super) fn apply_alone(
        &mut self,
        queue: &QueueName,
        command: &Command,
        is_strict: bool,
    ) -> Result<Reply, Trouble> {
        let now = self.now;
        self.work(queue, is_strict, |rows| rules::apply(rows, now, command))
    }

    /// Does something with the rows of a queue, which is undone alone if it fails.
    pub(super) fn with_rows<T>(
        &mut self,
        queue: &QueueName,
        is_strict: bool,
        work: impl FnOnce(&mut Filed<'_>) -> Result<T, Trouble>,
    ) -> Result<T, Trouble> {
        self.run("SAVEPOINT command")?;
        let done = self.work(queue, is_strict, work);
        if done.is_err() {
            self.desk(queue).undo();
            self.run("ROLLBACK TO command")?;
        }
        self.run("RELEASE command")?;
        done
    }

    fn work<T>(
        &mut self,
        queue: &QueueName,
        is_strict: bool,
        work: impl FnOnce(&mut Filed<'_>) -> Result<T, Trouble>,
    ) -> Result<T, Trouble> {
        let (index, files) = (self.index, self.files());
        let desk = self.desk(queue);
        // A panic leaves the entries of its command in the desk, which goes with the whole transaction then.
        let mut rows = Filed::new(index, desk, files, queue, is_strict);
        let done = work(&mut rows).and_then(|done| rows.finish().map(|()| done))?;
        desk.keep();
        Ok(done)
    }

    /// Writes new files, commits, and carries out what is left to be done. Once it is committed it is stored: the
    /// inner error is why it could not be carried out, which has to be done before anything else is committed.
    pub(super) fn commit(mut self) -> Result<Result<(), Trouble>, Trouble> {
        let place = self.place;
        let mut intents = Vec::new();
        let command = self.index.command()? + 1;
        let mut leased = Vec::new();
        for mut desk in std::mem::take(&mut self.desks).into_values() {
            if let Some(number) = desk.news {
                // Whoever hears of it is awake when all is stored, and waits for the lock until then.
                let _ = place.files().note(&format!("{}/news", desk.folder), &format!("{number}\n"));
            }
            self.stage(&desk, command, &mut intents)?;
            leased.extend(desk.leased());
        }
        if !intents.is_empty() {
            self.files()
                .flush_directory(TEMPORARY)
                .map_err(|error| self.failed("flush", TEMPORARY, error))?;
            self.index.intend(command, &Intent::encode(&intents))?;
        }
        let step = || place.files().faults.step();
        step().map_err(|error| Trouble::Files(place.failed("commit", "index.db", error)))?;
        self.transaction.commit().map_err(Trouble::Commit)?;
        if !intents.is_empty() {
            if let Err(error) = carry_out(place, command, &intents, false) {
                return Ok(Err(Trouble::Files(error)));
            }
            self.index.carried_out.set(command);
        }
        for (id, token, read) in leased {
            self.index.known.keep(id, token, read);
        }
        Ok(Ok(()))
    }

    fn failed(&self, verb: &str, name: &str, error: std::io::Error) -> Trouble {
        Trouble::Files(self.place.failed(verb, name, error))
    }

    /// Writes what changes of the files of a queue, under other names.
    fn stage(&mut self, desk: &Desk, command: i64, intents: &mut Vec<Intent>) -> Result<(), Trouble> {
        let files = self.files();
        let mut made = BTreeSet::new();
        for (id, entry) in desk.entries() {
            let task = entry.task.as_ref();
            let target = task.and_then(|task| names::place(&desk.folder, task.state, entry.number, id));
            let (Some(task), Some(target)) = (task, target) else {
                intents.extend(entry.origin.clone().map(|name| Intent::Remove { name }));
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
                intents.extend(from.map(|from| Intent::Move { from, to: target }));
                continue;
            }
            let (text, mark) = (self.text(&desk.queue, entry, task)?, names::mark(id));
            // What others have made is not written to: they may have it open, or under another name, too.
            let is_ours = entry.origin.as_deref().is_none_or(|origin| shard_of(origin).is_some());
            if is_ours && text.len() <= SHORT && self.listed < SHORT_TOGETHER {
                self.listed += text.len();
                let is_new = entry.origin.is_none();
                intents.extend(from.map(|from| Intent::Move { from, to: target.clone() }));
                intents.push(Intent::Write { is_new, to: target, mark, text });
                continue;
            }
            if !stays && files.is_there(&target) {
                intent::make_room(files, &target)
                    .map_err(|error| self.failed("set aside", &target, error))?;
            }
            let temporary = self.temporary(command);
            files
                .write(&temporary, &text, Some(mark))
                .map_err(|error| self.failed("write", &temporary, error))?;
            intents.push(Intent::Put { temporary, to: target });
            intents.extend(from.map(|name| Intent::Remove { name }));
        }
        intents.extend(desk.intents.iter().cloned());
        if desk.is_changed {
            let text = queue_file::text(self.index, &desk.queue)?;
            let temporary = self.temporary(command);
            files.write(&temporary, &text, None).map_err(|error| self.failed("write", &temporary, error))?;
            for below in [names::DROP, names::ASIDE] {
                let name = format!("{}/{below}", desk.folder);
                files.make_directory(&name).map_err(|error| self.failed("make", &name, error))?;
            }
            intents.push(Intent::Put { temporary, to: format!("{}/queue.json", desk.folder) });
        }
        Ok(())
    }

    /// The name of a new file. One of that name was left by a killed process that came no further.
    fn temporary(&mut self, command: i64) -> String {
        self.written += 1;
        format!("{TEMPORARY}/{command}-{}", self.written)
    }

    fn text(
        &self,
        queue: &QueueName,
        entry: &Entry,
        task: &interval_queue_task_contract::Task,
    ) -> Result<String, Trouble> {
        let known = |origin: &String| self.index.known.take(task.id, task.token, self.files(), origin);
        let kept = match (entry.origin.as_ref().and_then(known), &entry.origin) {
            (Some(known), _) => known,
            (None, None) => Document::default(),
            (None, Some(origin)) => match self.files().read(origin) {
                Ok(contents) => Document::parse(&contents.text).unwrap_or_default(),
                Err(Unread::Failed(error)) => return Err(self.failed("read", origin, error)),
                Err(_) => Document::default(),
            },
        };
        let upstreams = match entry.is_relinked {
            true => Some(self.index.tables(queue).edges_to(task.id, None, None, u32::MAX)?),
            false => None,
        };
        let text = kept.of_task(task, entry.payload.as_ref(), entry.result.as_ref(), upstreams.as_deref());
        text.map_err(|what| {
            Trouble::Files(StateError::new(interval_queue_contract::StateErrorKind::Damaged, what))
        })
    }
}

/// Which bounded directory has this file: queue, state, number.
fn shard_of(name: &str) -> Option<(&str, &str, i64)> {
    let mut parts = name.split('/');
    let (folder, state, shard) = (parts.next()?, parts.next()?, parts.next()?);
    parts.next()?;
    Some((folder, state, shard.parse().ok()?))
}

/// Carries out the intents of a command, and says so.
fn carry_out(place: &Place, command: i64, intents: &[Intent], again: bool) -> Result<(), StateError> {
    let files = place.files();
    for intent in intents {
        intent.carry_out(files, again).map_err(|error| {
            let name = intent.names().next().unwrap_or_default();
            place.failed("finish the command before, at", name, error)
        })?;
    }
    if files.is_flushed() {
        let directories =
            intents.iter().flat_map(Intent::names).filter_map(|name| Some(name.rsplit_once('/')?.0));
        let mut directories: Vec<_> = directories.collect();
        directories.sort_unstable();
        directories.dedup();
        for directory in directories {
            files.flush_directory(directory).map_err(|error| place.failed("flush", directory, error))?;
        }
    }
    let text = format!("{command} {}\n", place.boot());
    files.note(DONE, &text).map_err(|error| place.failed("write", DONE, error))
}

/// Finishes what a killed process has left. False: the index is older than the files.
pub(super) fn finish(place: &Place, index: &Index) -> Result<bool, Trouble> {
    let last = index.command()?;
    if last > 0 && index.carried_out.get() == last {
        return Ok(true);
    }
    let done = fs::read_to_string(place.files().at(DONE)).ok();
    let mut parts = done.as_deref().unwrap_or_default().split_whitespace();
    let command: Option<i64> = parts.next().and_then(|number| number.parse().ok());
    let was_here = parts.next().is_some_and(|booted| booted == place.boot());
    if command.is_some_and(|command| command > last) || !index.is_whole()? {
        return Ok(false);
    }
    if command != Some(last) && last > 0 {
        carry_out(place, last, &Intent::decode(&index.intents()?), true).map_err(Trouble::Files)?;
    }
    if !was_here && last > 0 {
        // The host was started since, and may have lost the last of what was written: all is looked at.
        if !index.is_sound()? {
            return Ok(false);
        }
        index.forget_all_seen()?;
        if command == Some(last) {
            carry_out(place, last, &[], true).map_err(Trouble::Files)?;
        }
    }
    index.carried_out.set(last);
    Ok(true)
}
