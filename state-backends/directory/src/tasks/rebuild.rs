//! Rebuilds the index from the files.

use std::{fs, io};

use interval_queue_contract::{Label, Micros, QueueName};
use interval_queue_task_contract::{
    Counted, Edge, EdgeState, KeyRow, KindRow, Presence, Queue, RULES_VERSION, Rows, Settings, State, Task,
    Token, WorkerId,
};
use uuid::Uuid;

use super::{
    TransactionError,
    document::Document,
    index::Index,
    names::{self, SHARD_SIZE, STATES},
    quarantine,
    queue_file::QueueFile,
};
use crate::store::{
    Location,
    files::{MAX_FILE_BYTES, Unread},
};

/// Lease of tasks found as leased. A worker that is alive reports its runs within it.
const GRACE_PERIOD: Micros = Micros::from_millis(60_000);

const SHARDS_PER_COMMIT: usize = 20;

/// Requires an empty index.
pub(super) fn rebuild(location: &Location, index: &Index, now: Micros) -> Result<(), TransactionError> {
    // No process uses the index until it is marked whole, so it may be committed in parts.
    index.connection.execute_batch("BEGIN IMMEDIATE")?;
    for folder in folders(location)? {
        if let Some(queue) = queue_in(location, &folder) {
            Rebuilding::begin(location, index, now, &folder, queue)?.all()?;
        }
    }
    // Command numbers must keep rising.
    let done = fs::read_to_string(location.files().at("done")).unwrap_or_default();
    let command = done.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(0);
    index.set_redo_entries(command, "")?;
    index.mark_whole()?;
    index.connection.execute("DELETE FROM interval_queue_task WHERE queue = -1", [])?;
    index.connection.execute_batch("COMMIT").map_err(TransactionError::Commit)
}

fn entries(location: &Location, name: &str) -> Result<Vec<fs::DirEntry>, TransactionError> {
    let failed = |error| TransactionError::Files(location.failed("look into", name, error));
    match fs::read_dir(location.files().at(name)) {
        Ok(entries) => entries.collect::<Result<_, _>>().map_err(failed),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(failed(error)),
    }
}

/// Some may be of other software.
fn folders(location: &Location) -> Result<Vec<String>, TransactionError> {
    let mut folders = Vec::new();
    for entry in entries(location, "")? {
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let name = entry.file_name().into_string();
        folders.extend(name.ok().filter(|name| is_directory && name != names::TEMPORARY_DIR));
    }
    folders.sort_unstable();
    Ok(folders)
}

fn queue_in(location: &Location, folder: &str) -> Option<QueueFile> {
    let read = location.files().read(format!("{folder}/queue.json")).ok();
    let file = read.and_then(|contents| serde_json::from_slice::<QueueFile>(&contents.text).ok());
    let named = |queue: QueueName| QueueFile {
        queue,
        paused: false,
        paused_kinds: Vec::new(),
        settings: Settings::default(),
        keys: Default::default(),
        schedules: Vec::new(),
        incarnation: Micros::ZERO,
        longest_lease: Micros::ZERO,
    };
    file.filter(|file| names::folder(&file.queue) == folder).or_else(|| names::queue_of(folder).map(named))
}

struct Rebuilding<'a> {
    location: &'a Location,
    index: &'a Index,
    now: Micros,
    folder: &'a str,
    file: QueueFile,
    /// Stands for the unknown workers that have leased tasks.
    unknown: WorkerId,
    has_leased: bool,
    latest: Micros,
}

impl<'a> Rebuilding<'a> {
    fn begin(
        location: &'a Location,
        index: &'a Index,
        now: Micros,
        folder: &'a str,
        file: QueueFile,
    ) -> Result<Self, TransactionError> {
        let unknown = WorkerId::new(Uuid::now_v7());
        Ok(Self { location, index, now, folder, file, unknown, has_leased: false, latest: now })
    }

    fn all(mut self) -> Result<(), TransactionError> {
        let queue = self.file.queue.clone();
        let mut shards = Vec::new();
        for state in STATES {
            for entry in entries(self.location, &format!("{}/{state}", self.folder))? {
                shards.extend(entry.file_name().to_str().and_then(|name| name.parse::<i64>().ok()));
            }
        }
        shards.sort_unstable();
        shards.dedup();
        let is_queue =
            !shards.is_empty() || self.location.files().is_there(format!("{}/queue.json", self.folder));
        if !is_queue {
            return Ok(());
        }
        self.put_queue(&queue)?;
        for (n, shard) in shards.into_iter().enumerate() {
            if n % SHARDS_PER_COMMIT == SHARDS_PER_COMMIT - 1 {
                self.index
                    .connection
                    .execute_batch("COMMIT; BEGIN IMMEDIATE")
                    .map_err(TransactionError::Commit)?;
            }
            self.shard(&queue, shard)?;
        }
        self.edges(&queue)?;
        self.put_queue(&queue)
    }

    fn put_queue(&self, queue: &QueueName) -> Result<(), TransactionError> {
        let mut rows = self.index.tables(queue);
        let incarnation = self.file.incarnation.max(self.now) + Micros::new(1);
        rows.put_queue(&Queue {
            settings: self.file.settings.clone(),
            paused: self.file.paused,
            paused_at: None,
            incarnation,
            lease_clock: self.now,
            seen: self.now,
            latest: self.latest,
            maintenance_due: true,
            rebalance_after: None,
            followed: None,
        })?;
        for kind in &self.file.paused_kinds {
            let served_until = Micros::ZERO;
            rows.put_kind(&KindRow {
                kind: kind.clone(),
                paused: true,
                paused_at: None,
                served_until,
                open: false,
                needs_rebalancing: true,
            })?;
        }
        for (key, limit) in self.file.limits() {
            rows.put_key(&KeyRow { key, limit: Some(limit), paused_at: None, needs_rebalancing: true })?;
        }
        for schedule in &self.file.schedules {
            rows.put_schedule(schedule)?;
        }
        if self.has_leased {
            rows.put_presence(&Presence {
                worker: self.unknown,
                label: Label::new("before the index was made again").unwrap_or_default(),
                sequence: 0,
                lease: GRACE_PERIOD.max(self.file.longest_lease),
                ends: self.now + GRACE_PERIOD.max(self.file.longest_lease),
                kinds: Vec::new(),
                version: RULES_VERSION,
                since: self.now,
                seen: self.now,
                busy: true,
                cleared: false,
                at_least: None,
                room: None,
            })?;
        }
        rows.finish()?;
        Ok(())
    }

    /// All states in one range of numbers, in the order of adding.
    fn shard(&mut self, queue: &QueueName, shard: i64) -> Result<(), TransactionError> {
        let mut found: Vec<(Task, String, Vec<Edge>)> = Vec::new();
        for state in STATES {
            let name = names::shard(self.folder, state, shard);
            for entry in entries(self.location, &name)? {
                let Ok(file_name) = entry.file_name().into_string() else { continue };
                if file_name.ends_with(".json") && !file_name.starts_with('.') {
                    found.extend(self.read(state, format!("{name}/{file_name}"))?);
                }
            }
        }
        found.sort_by_key(|(task, ..)| (task.added, task.position, task.id));
        // Rows get the numbers that follow the highest existing one.
        let sql = "INSERT OR IGNORE INTO interval_queue_task \
                   (number, queue, id, state, kind, priority, due, added, not_before, ordered, holds_key, unserved, holds_name, \
                    weight, has_edges, incarnation, attempt, failures, retries, returns, generation, prefetched, notified, retained) \
                   VALUES (?1, -1, printf('%036d', ?1), 'purged', '', 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)";
        self.index.connection.prepare_cached(sql)?.execute([shard * SHARD_SIZE - 1])?;
        self.latest = found.iter().map(|(task, ..)| task.added).fold(self.latest, Micros::max);
        self.has_leased |= found.iter().any(|(task, ..)| task.state == State::Leased);
        let mut rows = self.index.tables(queue);
        for (mut task, name, edges) in found {
            if let Some(other) = rows.task(task.id)? {
                // The higher attempt counts; of equals, the file that was found first.
                let why = format!(
                    "task {} is {} already: that file counts, and not this one",
                    task.id, other.state
                );
                quarantine::isolate(self.location.files(), &name, &why).map_err(|error| {
                    TransactionError::Files(self.location.failed("set aside", &name, error))
                })?;
                continue;
            }
            if let Some(unique) = &task.unique {
                let is_free = rows.by_name(&unique.name)?.is_none();
                task.holds_name = is_free && !task.state.is_ended() && task.state != State::Leased;
                task.holds_name |= is_free
                    && task.state == State::Leased
                    && unique.until == interval_queue_task_contract::Until::Ended;
            }
            if task.state == State::Leased {
                task.worker = Some(self.unknown);
                task.leased = task.leased.or(Some(self.now));
                task.holds_key = task.key.is_some();
                task.token = Token { attempt: task.token.attempt.saturating_add(1), ..task.token };
            }
            rows.insert_task(&task, None)?;
            for edge in &edges {
                rows.insert_edge(edge)?;
            }
            rows.count(&task.kind, Counted::Now(task.state), 1)?;
            rows.count(&task.kind, Counted::EverAdded, 1)?;
            let number = rows.number_of(task.id)?.unwrap_or_default();
            let target = names::path(self.folder, task.state, number, task.id);
            if let Some(target) = target.filter(|target| *target != name) {
                let moved = self.location.files().rename(&name, &target);
                moved.map_err(|error| TransactionError::Files(self.location.failed("move", &name, error)))?;
            }
        }
        rows.finish()?;
        Ok(())
    }

    /// `None`: quarantined or removed.
    fn read(
        &self,
        state: State,
        name: String,
    ) -> Result<Option<(Task, String, Vec<Edge>)>, TransactionError> {
        let failed = |error| TransactionError::Files(self.location.failed("read", &name, error));
        let read = match self.location.files().read(&name) {
            Ok(contents) => self.task(state, &name, &contents.text),
            Err(Unread::Missing) => return Ok(None),
            Err(Unread::Odd(why)) => Err(why),
            Err(Unread::Denied(error) | Unread::Failed(error)) => return Err(failed(error)),
        };
        match read {
            Ok((task, edges)) => Ok(Some((task, name, edges))),
            Err(why) => {
                let quarantined = quarantine::isolate(self.location.files(), &name, &why);
                quarantined.map_err(|error| {
                    TransactionError::Files(self.location.failed("set aside", &name, error))
                })?;
                Ok(None)
            }
        }
    }

    fn task(&self, state: State, name: &str, text: &[u8]) -> Result<(Task, Vec<Edge>), String> {
        debug_assert!(text.len() as u64 <= MAX_FILE_BYTES);
        let document = Document::parse(text)?;
        let id = document.id()?.ok_or("it has no \"id\"")?;
        let stem = name.rsplit('/').next().and_then(|name| name.strip_suffix(".json"));
        if stem != Some(&*id.to_string()) {
            return Err(format!("its \"id\" is {id}, and its name is another one"));
        }
        let mut task = document.task(id, state)?;
        let new = document.new_task(id)?;
        let from = i64::try_from(task.added.max(task.not_before).get()).unwrap_or(i64::MAX);
        let ageing = i64::try_from(self.file.settings.ageing.get()).unwrap_or(i64::MAX);
        let due = from.saturating_sub(i64::from(task.priority).saturating_mul(ageing));
        task.due = due.min(Micros::MAX.get().cast_signed());
        if state.is_ended() {
            task.ended = task.ended.or(Some(self.now));
            task.ended_lease_clock = Some(self.now);
            task.notified = true;
        } else {
            task.ended = None;
        }
        // The rules admit a task at a gate again.
        let waits = matches!(state, State::Waiting | State::Blocked)
            || state == State::Ready && task.key.is_some()
            || state == State::Scheduled && task.has_edges && task.leased.is_none();
        if waits {
            task.state = State::Added;
        }
        let edge = |edge: interval_queue_task_contract::NewEdge| Edge {
            up: edge.up,
            down: id,
            name: edge.name,
            on_failure: edge.on_failure,
            state: EdgeState::New,
            generation: 0,
        };
        Ok((task, new.edges.into_iter().map(edge).collect()))
    }

    /// Follows the ends of their upstreams.
    fn edges(&self, queue: &QueueName) -> Result<(), TransactionError> {
        let number = "(SELECT number FROM interval_queue_task_queue WHERE name = ?1)";
        let run = |sql: String| self.index.connection.execute(&sql, [queue.as_str()]);
        // Drops edges from tasks that do not exist.
        run(format!(
            "DELETE FROM interval_queue_task_edge WHERE queue = {number} AND NOT EXISTS \
             (SELECT 1 FROM interval_queue_task t WHERE t.queue = {number} AND t.id = up)"
        ))?;
        let state_of = |task: &str| {
            format!("(SELECT state FROM interval_queue_task t WHERE t.queue = {number} AND t.id = {task})")
        };
        // A task past `added` has been notified of its upstreams. The others are checked by the
        // next poll.
        run(format!(
            "UPDATE interval_queue_task_edge SET generation = \
             (SELECT generation FROM interval_queue_task t WHERE t.queue = {number} AND t.id = up), state = CASE \
             WHEN {up} = 'done' THEN 'met' WHEN on_failure = 'run' AND {up} IN ('failed', 'cancelled') THEN 'failed' \
             WHEN {down} IN ('done', 'failed', 'cancelled') THEN 'cut' ELSE 'met' END \
             WHERE queue = {number} AND {down} <> 'added'",
            up = state_of("up"),
            down = state_of("down"),
        ))?;
        Ok(())
    }
}
