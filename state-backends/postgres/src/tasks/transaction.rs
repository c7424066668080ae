//! Runs one command as a transaction: begins it, reads rows, applies the rules, and stores what
//! they have written.

use std::collections::HashSet;

use futures::future::{join5, try_join_all};
use interval_queue_contract::{Micros, QueueName, StateError, StateErrorKind};
use interval_queue_task_contract::{
    Change, Command, Queue, Reply, Step, Task, TaskId, Verb, field::RowReader as _, index,
    record::Record as _,
};
use tokio_postgres::{Row, types::Type};

use super::{
    PostgresTasks, TASKS,
    columns::QUEUE,
    find::{self, Locks, LookupQuery, Scope},
    low_marks::{self, LowMarks},
    read_ahead,
    row_reader::Reader,
    view::{Lookup, LookupResult, Outcome, ReadSet, Target, Written, decide},
    write,
};
use crate::store::{Failure, PooledConnection, Query, begin_at, literal};

/// Each round fetches all rows reported missing.
const MAX_READ_ROUNDS: usize = 400;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Reads one snapshot.
    Read,
    /// Inserts tasks, without a lock on the queue.
    Add,
    /// Concurrent with other shared transactions: writes only rows that it has locked, and no row
    /// that the others read.
    Shared,
    /// Excludes all shared and exclusive transactions of the queue.
    Exclusive,
}

impl Mode {
    pub(super) fn beginning(self) -> String {
        begin_at(match self {
            Self::Read => "REPEATABLE READ, READ ONLY",
            _ => "READ COMMITTED",
        })
    }
}

pub(super) enum Attempt {
    /// The reply or the rejection, and whether watchers must still be notified.
    Done(Result<Reply, StateError>, bool),
    /// Nothing was written.
    NeedsExclusive,
    /// Another process has created the queue in the meantime. Nothing was written.
    Retry,
}

/// The row of the queue, read after the lock was taken.
pub(super) struct TransactionStart {
    pub(super) number: i64,
    pub(super) now: Micros,
    pub(super) ageing: Micros,
    low_marks: LowMarks,
    /// The server process, if statements may be prepared there.
    process: Option<i32>,
}

impl PostgresTasks {
    pub(super) fn mode_of(&self, queue: &QueueName, command: &Command) -> Mode {
        match command {
            Command::Read(_) => Mode::Read,
            Command::Add(_) => Mode::Add,
            Command::Step(step) if self.headers.may_share(queue, step, self.clock()) => Mode::Shared,
            _ => Mode::Exclusive,
        }
    }

    pub(super) async fn attempt(
        &self,
        on: &PooledConnection,
        mode: Mode,
        queue: &QueueName,
        command: &Command,
    ) -> Result<Attempt, Failure> {
        let mut read_set = ReadSet::default();
        let start = self.begin(on, mode, queue, command, &mut read_set).await?;
        let is_full_scan =
            mode == Mode::Exclusive && start.low_marks.need_full_scan(command, start.now, &mut read_set);
        let scope = Scope {
            queue: start.number,
            locks: locks(mode, command),
            writes: mode != Mode::Read,
            is_read_ahead: false,
            has_low_marks: start.low_marks.exist() && !is_full_scan,
        };
        let decided = self.decide(on, scope, mode, start.now, command, &mut read_set).await?;
        let (reply, written) = match decided {
            Some((Ok(reply), written)) => (reply, written),
            Some((Err(refused), _)) => {
                // The caller's next command must find no lock of this one, since maintenance skips
                // locked rows.
                on.round_trip(on.batch_execute("ROLLBACK")).await?;
                return Ok(Attempt::Done(Err(refused), false));
            }
            None => return Ok(rolled_back(on, Attempt::NeedsExclusive)),
        };
        let is_allowed = match (mode, command) {
            (Mode::Add, _) => written.is_added(),
            (Mode::Shared, Command::Step(step)) => writes_only_locked(step, &reply, &written, &read_set),
            _ => true,
        };
        if !is_allowed {
            return Ok(rolled_back(on, Attempt::NeedsExclusive));
        }
        if mode == Mode::Read {
            on.end("COMMIT");
            return Ok(Attempt::Done(Ok(reply), false));
        }
        let low_marks = match (mode, command) {
            (Mode::Read | Mode::Add, _) => Vec::new(),
            (Mode::Exclusive, Command::Step(_)) => {
                start.low_marks.after_step(&start, is_full_scan, &read_set, &written)
            }
            _ => start.low_marks.lower(&start, &written).into_iter().collect(),
        };
        let Some(statements) = self.statements(on, mode, queue, start.number, &written, low_marks).await?
        else {
            return Ok(rolled_back(on, Attempt::Retry));
        };
        let notification = written.notifies.then(|| self.notifier.claim_notification(queue)).flatten();
        let is_notification_pending = written.notifies && notification.is_none();
        on.store(start.process, &statements, notification).await?;
        if let Some(row) = &written.queue {
            self.headers.note(queue, start.number, row, start.now);
        }
        if let (Command::Step(step), Reply::Stepped(stepped)) = (command, &reply) {
            self.headers.note_idle(queue, stepped.leased.len() < step.want as usize);
        }
        Ok(Attempt::Done(Ok(reply), is_notification_pending))
    }

    /// One round trip begins, locks the queue, and reads ahead.
    async fn begin(
        &self,
        on: &PooledConnection,
        mode: Mode,
        queue: &QueueName,
        command: &Command,
        read_set: &mut ReadSet,
    ) -> Result<TransactionStart, Failure> {
        let begin = mode.beginning();
        let mut settings = Query::new(self.settings(command));
        let header = self.headers.of(queue);
        let lock = match mode {
            Mode::Exclusive => Some("pg_advisory_xact_lock"),
            Mode::Shared => Some("pg_advisory_xact_lock_shared"),
            Mode::Read | Mode::Add => None,
        };
        let lock = match (lock, header) {
            // With a cached number of the queue, the statement with the settings also takes the
            // lock.
            (Some(lock), Some(header)) => {
                let lock =
                    format!(", pg_catalog.{lock}(pg_catalog.hashtext({}), $1)", literal(self.schema()));
                settings.sql.to_mut().push_str(&lock);
                settings = settings.with((header.number % i64::from(i32::MAX)) as i32, Type::INT4);
                None
            }
            (Some(lock), None) => {
                let sql = format!(
                    "SELECT {lock}(hashtext($2), (q.number % 2147483647)::integer) \
                     FROM interval_queue_task_queue AS q WHERE q.name = $1"
                );
                let query = Query::new(sql).with(queue.as_str().to_owned(), Type::TEXT);
                Some(query.with(self.schema().to_owned(), Type::TEXT))
            }
            (None, _) => None,
        };
        let start_query = Self::start_query(queue, command);
        let ahead =
            header.map_or_else(Vec::new, |header| read_ahead::lookups(command, mode, &header, self.clock()));
        let number = header.map_or(0, |header| header.number);
        let scope = Scope {
            queue: number,
            locks: locks(mode, command),
            writes: mode != Mode::Read,
            is_read_ahead: true,
            has_low_marks: matches!(command, Command::Step(_))
                && header.is_some_and(|header| header.has_low_marks),
        };
        let lookup_queries = find::lookup_queries(scope, ahead);
        let locked = async {
            match &lock {
                Some(lock) => on.fetch(lock).await.map(drop),
                None => Ok(()),
            }
        };
        let queue_row = on.fetch(&start_query);
        let (begins, set) = (on.simple_query(&begin), on.fetch(&settings));
        let trip = join5(begins, set, locked, queue_row, fetch_all(on, &lookup_queries));
        let (begins, set, locked, queue_row, results) = on.round_trip(async { Ok(trip.await) }).await?;
        // Must come first: in another session, the rows may answer other statements.
        let process = on.check_session(&begins.map_err(Failure::of_query)?)?;
        let rows = set.and(locked).and(queue_row).map_err(Failure::of_query)?;
        let row = rows.first().ok_or_else(Failure::moved)?;
        let start = TransactionStart { process, ..self.read_start(queue, row, read_set)? };
        if !matches!(mode, Mode::Read | Mode::Add) {
            self.headers.note_low_marks(queue, start.low_marks.exist());
        }
        let results = results.map_err(Failure::of_query)?;
        if start.number == number {
            for (lookup_query, rows) in lookup_queries.iter().zip(results) {
                lookup_query.add_rows(&rows, read_set)?;
            }
        } else if header.is_some() && matches!(mode, Mode::Shared | Mode::Exclusive) {
            // The tables were recreated, and the queue has another number: the wrong lock was
            // taken.
            self.headers.forget(queue);
            return Err(Failure::moved());
        }
        Ok(start)
    }

    /// Also reads the clock. Requires the lock.
    pub(super) fn start_query(queue: &QueueName, command: &Command) -> Query {
        low_marks::with_column(command, |low_marks| {
            let sql = format!(
                "SELECT (SELECT version FROM interval_queue_task_schema)::bigint, \
                 (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, q.number, {low_marks}, {} \
                 FROM (VALUES (0)) AS one LEFT JOIN interval_queue_task_queue AS q ON q.name = $1",
                *QUEUE
            );
            Query::new(sql).with(queue.as_str().to_owned(), Type::TEXT)
        })
    }

    pub(super) fn read_start(
        &self,
        name: &QueueName,
        row: &Row,
        read_set: &mut ReadSet,
    ) -> Result<TransactionStart, Failure> {
        let mut reader = Reader::of(row);
        let version = reader.read::<u32>()? as usize;
        if version != TASKS.known() {
            return Err(Failure::moved());
        }
        let server: Micros = reader.read()?;
        let now = self.clock().unwrap_or(server);
        let number: Option<i64> = reader.int()?;
        let low_marks = LowMarks::new(reader.int()?);
        let queue = match number {
            Some(number) => {
                let queue = Queue::read(&mut reader)?;
                self.headers.note(name, number, &queue, now);
                Some(Box::new(queue))
            }
            None => None,
        };
        let ageing = queue.as_ref().map_or(Micros::ZERO, |queue| queue.settings.ageing);
        read_set.insert(Lookup::one(Target::Queue), LookupResult::Queue(queue));
        Ok(TransactionStart { number: number.unwrap_or(0), now, ageing, low_marks, process: None })
    }

    /// Alternates rules and reads until nothing is missing. `None`: rows are missing that cannot be
    /// read in this mode.
    async fn decide(
        &self,
        on: &PooledConnection,
        scope: Scope,
        mode: Mode,
        now: Micros,
        command: &Command,
        read_set: &mut ReadSet,
    ) -> Result<Option<(Result<Reply, StateError>, Box<Written>)>, Failure> {
        for _ in 0..MAX_READ_ROUNDS {
            match decide(read_set, now, command) {
                Outcome::Decided(reply, written) => return Ok(Some((reply, written))),
                Outcome::Missing(lookups)
                    if mode == Mode::Shared && !lookups.iter().all(is_safe_when_shared) =>
                {
                    return Ok(None);
                }
                Outcome::Missing(lookups) => {
                    let lookup_queries = find::lookup_queries(scope, lookups);
                    let results = on.round_trip(fetch_all(on, &lookup_queries)).await?;
                    for (lookup_query, rows) in lookup_queries.iter().zip(results) {
                        lookup_query.add_rows(&rows, read_set)?;
                    }
                }
            }
        }
        let text = "the command needs too many reads: nothing was stored, request less at once";
        Err(StateError::new(StateErrorKind::Unsupported, text).into())
    }

    /// `None`: another process has created the queue in the meantime.
    async fn statements(
        &self,
        on: &PooledConnection,
        mode: Mode,
        queue: &QueueName,
        number: i64,
        written: &Written,
        low_marks: Vec<Query>,
    ) -> Result<Option<Vec<Query>>, Failure> {
        let (mut number, mut statements) = (number, Vec::new());
        if let Some(row) = &written.queue {
            if number == 0 {
                let make = write::make_queue(queue.as_str(), row);
                let made = on.round_trip(on.query_typed(&make.sql, &make.parameters())).await?;
                let Some(made) = made.first() else { return Ok(None) };
                number = Reader::of(made).read()?;
            } else {
                statements.push(write::put_queue(number, row));
            }
        }
        let folds = mode == Mode::Exclusive && written.queue.is_some();
        statements.extend(write::statements(number, written, folds));
        statements.extend(write::events(number, written, mode != Mode::Add));
        statements.extend(low_marks);
        // Each row is written once, but for times: they are rolled up before they are deleted, and
        // never under the shared lock.
        Ok(Some(match mode {
            Mode::Shared => vec![write::at_once(statements)],
            _ => statements.into_iter().map(write::counted).collect(),
        }))
    }
}

fn rolled_back(on: &PooledConnection, attempt: Attempt) -> Attempt {
    on.end("ROLLBACK");
    attempt
}

async fn fetch_all(
    on: &PooledConnection,
    lookup_queries: &[LookupQuery],
) -> Result<Vec<Vec<Row>>, tokio_postgres::Error> {
    try_join_all(lookup_queries.iter().map(|lookup_query| on.fetch(&lookup_query.query))).await
}

fn locks(mode: Mode, command: &Command) -> Locks {
    match (mode, command) {
        (Mode::Add, _) => Locks::KeyShare,
        (Mode::Shared, _) => Locks::Own,
        (Mode::Exclusive, Command::Change(Change::Tasks(change))) if change.verb == Verb::Purge => {
            Locks::Update
        }
        _ => Locks::None,
    }
}

/// The lookup needs no further locks.
fn is_safe_when_shared(lookup: &Lookup) -> bool {
    let target = &lookup.target;
    let is_of_worker = target.is_of::<index::Leased>() || target.is_of::<index::ToStop>();
    is_of_worker
        || matches!(
            target,
            Target::Payload(_)
                | Target::Log(_)
                | Target::UnnotifiedFrom(..)
                | Target::First(_)
                | Target::Leases
                | Target::Schedules
                | Target::Pending(_)
        )
}

/// Whether a poll may commit under the shared lock: it has written only rows that it has locked,
/// and no task with a key, which others may read; and it has got all tasks that it wanted, since
/// missing ones may be locked by others.
fn writes_only_locked(step: &Step, reply: &Reply, written: &Written, read_set: &ReadSet) -> bool {
    let Reply::Stepped(stepped) = reply else { return false };
    let mut locked: HashSet<TaskId> = step.complete.iter().map(|completion| completion.id).collect();
    locked.extend(step.progress.iter().map(|(id, ..)| *id));
    locked.extend(step.log.iter().map(|log| log.id));
    let ready = Target::Ready(step.kinds.clone(), step.at_least);
    if let Some(LookupResult::Tasks(ready)) = read_set.get(&ready) {
        locked.extend(ready.iter().map(|task| task.id));
    }
    let is_own = |task: &Task| locked.contains(&task.id) && task.key.is_none();
    let got_all = stepped.leased.len() >= step.want as usize || stepped.more;
    got_all
        && !stepped.resync
        && written.queue.is_none()
        && written.first_times.is_none()
        && written.tasks().all(|(_, change)| change.before.iter().chain(&change.after).all(is_own))
        && written.tasks().all(|(_, change)| change.before.is_some() && change.after.is_some())
        && written.edges.is_empty()
        && written.presences.keys().all(|&worker| worker == step.worker)
        && written.kinds.is_empty()
        && written.keys.is_empty()
        && written.schedules.is_empty()
}
