//! One command as a transaction: it is begun and looks are made, the rules decide, and what they have written
//! is stored.

use std::collections::HashSet;

use futures::future::{join5, try_join_all};
use interval_queue_contract::{Micros, QueueName, StateError, StateErrorKind};
use interval_queue_task_contract::{Change, Command, Reply, Step, Task, TaskId, Verb};
use tokio_postgres::{GenericClient, Row, types::Type};

use super::{
    PostgresTasks, TASKS,
    cells::Cells,
    find::{self, Locks, Place, Question, others},
    guess,
    low_marks::{self, LowMarks},
    overlay::{Ask, Found, Known, Look, Outcome, Written, decide},
    write,
};
use crate::store::{Lent, Query, Trouble, begin_at, literal};

/// So often more is found within one command: each time everything that is known to be lacking.
const ROUNDS: usize = 400;

/// What a command needs of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// To look, at one instant.
    Read,
    /// To insert tasks, which waits for nobody.
    Add,
    /// To go beside others: it writes what it has locked, and nothing that others look at.
    Beside,
    /// To be the only one.
    Alone,
}

impl Mode {
    /// What begins a transaction.
    pub(super) fn beginning(self) -> String {
        begin_at(match self {
            Self::Read => "REPEATABLE READ, READ ONLY",
            _ => "READ COMMITTED",
        })
    }
}

/// What became of an attempt.
pub(super) enum Attempt {
    /// The reply, or the refusal, and whether those who watch are still to be nudged.
    Over(Result<Reply, StateError>, bool),
    /// It needs more of the queue than it has taken. Nothing was written.
    Alone,
    /// Somebody else has made the queue meanwhile. Nothing was written.
    Again,
}

/// The row of the queue, as it was found once it was locked.
pub(super) struct Begun {
    pub(super) number: i64,
    pub(super) now: Micros,
    pub(super) ageing: Micros,
    low_marks: LowMarks,
    /// The process of the server that carries the transaction out, if something may be prepared there.
    process: Option<i32>,
}

impl PostgresTasks {
    pub(super) fn mode_of(&self, queue: &QueueName, command: &Command) -> Mode {
        match command {
            Command::Read(_) => Mode::Read,
            Command::Add(_) => Mode::Add,
            Command::Step(step) if self.headers.is_plain(queue, step, self.clock()) => Mode::Beside,
            _ => Mode::Alone,
        }
    }

    /// Carries out a command, or finds that it cannot be in this mode.
    pub(super) async fn attempt(
        &self,
        on: &Lent,
        mode: Mode,
        queue: &QueueName,
        command: &Command,
    ) -> Result<Attempt, Trouble> {
        let mut known = Known::default();
        let begun = self.begin(on, mode, queue, command, &mut known).await?;
        let are_left_out =
            mode == Mode::Alone && begun.low_marks.are_left_out(command, begun.now, &mut known);
        let place = Place {
            queue: begun.number,
            locks: locks(mode, command),
            writes: mode != Mode::Read,
            is_ahead: false,
            has_floors: begun.low_marks.are_there() && !are_left_out,
        };
        let decided = self.decide(on, place, mode, begun.now, command, &mut known).await?;
        let (reply, written) = match decided {
            Some((Ok(reply), written)) => (reply, written),
            Some((Err(refused), _)) => return Ok(undone(on, Attempt::Over(Err(refused), false))),
            None => return Ok(undone(on, Attempt::Alone)),
        };
        let fits = match (mode, command) {
            (Mode::Add, _) => written.is_added(),
            (Mode::Beside, Command::Step(step)) => is_own(step, &reply, &written, &known),
            _ => true,
        };
        if !fits {
            return Ok(undone(on, Attempt::Alone));
        }
        if mode == Mode::Read {
            on.end("COMMIT");
            return Ok(Attempt::Over(Ok(reply), false));
        }
        let low_marks = match (mode, command) {
            (Mode::Read | Mode::Add, _) => Vec::new(),
            (Mode::Alone, Command::Step(_)) => {
                begun.low_marks.after_step(&begun, are_left_out, &known, &written)
            }
            _ => begun.low_marks.lowered(&begun, &written).into_iter().collect(),
        };
        let Some(statements) = self.statements(on, mode, queue, begun.number, &written, low_marks).await?
        else {
            return Ok(undone(on, Attempt::Again));
        };
        let notice = written.notifies.then(|| self.news.notice(queue)).flatten();
        let is_unnotified = written.notifies && notice.is_none();
        on.store(begun.process, &statements, notice).await?;
        if let Some(row) = &written.queue {
            self.headers.note(queue, begun.number, row, begun.now);
        }
        if let (Command::Step(step), Reply::Stepped(stepped)) = (command, &reply) {
            self.headers.note_idle(queue, stepped.leased.len() < step.want as usize);
        }
        Ok(Attempt::Over(Ok(reply), is_unnotified))
    }

    /// Begins a transaction, takes what it needs of the queue, and finds what is known to be needed: one trip.
    async fn begin(
        &self,
        on: &Lent,
        mode: Mode,
        queue: &QueueName,
        command: &Command,
        known: &mut Known,
    ) -> Result<Begun, Trouble> {
        let begin = mode.beginning();
        let mut settings = Query::new(self.settings(command));
        let header = self.headers.of(queue);
        let lock = match mode {
            Mode::Alone => Some("pg_advisory_xact_lock"),
            Mode::Beside => Some("pg_advisory_xact_lock_shared"),
            Mode::Read | Mode::Add => None,
        };
        let lock = match (lock, header) {
            // Where its number is known, the settings ask for the lock, too.
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
        let look = Self::look_at(queue, command);
        let ahead = header.map_or_else(Vec::new, |header| guess::asks(command, mode, &header, self.clock()));
        let number = header.map_or(0, |header| header.number);
        let place = Place {
            queue: number,
            locks: locks(mode, command),
            writes: mode != Mode::Read,
            is_ahead: true,
            has_floors: matches!(command, Command::Step(_)) && header.is_some_and(|header| header.has_floors),
        };
        let questions = find::questions(place, ahead);
        let locked = async {
            match &lock {
                Some(lock) => on.ask_for(lock).await.map(drop),
                None => Ok(()),
            }
        };
        let looked = on.ask_for(&look);
        let (begins, set) = (on.simple_query(&begin), on.ask_for(&settings));
        let trip = join5(begins, set, locked, looked, ask_for_all(on, &questions));
        let (begins, set, locked, looked, found) = on.ask(async { Ok(trip.await) }).await?;
        // Before that, what was found may be an answer to something else.
        let process = on.found_at(&begins.map_err(Trouble::of_question)?)?;
        let rows = set.and(locked).and(looked).map_err(Trouble::of_question)?;
        let row = rows.first().ok_or_else(Trouble::moved)?;
        let begun = Begun { process, ..self.begun(queue, row, known)? };
        if !matches!(mode, Mode::Read | Mode::Add) {
            self.headers.note_floors(queue, begun.low_marks.are_there());
        }
        let found = found.map_err(Trouble::of_question)?;
        if begun.number == number {
            for (question, rows) in questions.iter().zip(found) {
                question.learn(&rows, known)?;
            }
        } else if header.is_some() && matches!(mode, Mode::Beside | Mode::Alone) {
            // The tables are others than those in which the queue had this number: something else was locked.
            self.headers.forget(queue);
            return Err(Trouble::moved());
        }
        Ok(begun)
    }

    /// Looks at the row of a queue, and at the clock, once it is locked.
    pub(super) fn look_at(queue: &QueueName, command: &Command) -> Query {
        low_marks::with_column(command, |low_marks| {
            let sql = format!(
                "SELECT (SELECT version FROM interval_queue_task_schema)::bigint, \
                 (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, q.number, {low_marks}, {} \
                 FROM (VALUES (0)) AS one LEFT JOIN interval_queue_task_queue AS q ON q.name = $1",
                others::QUEUE
            );
            Query::new(sql).with(queue.as_str().to_owned(), Type::TEXT)
        })
    }

    pub(super) fn begun(&self, name: &QueueName, row: &Row, known: &mut Known) -> Result<Begun, Trouble> {
        let mut cells = Cells::of(row);
        let version: usize = cells.number()?;
        if version != TASKS.known() {
            return Err(Trouble::moved());
        }
        let server = cells.micros()?;
        let now = self.clock().unwrap_or(server);
        let number: Option<i64> = cells.some_number()?;
        let low_marks = LowMarks::new(cells.some_number()?);
        let queue = match number {
            Some(number) => {
                let queue = others::read_queue(&mut cells)?;
                self.headers.note(name, number, &queue, now);
                Some(Box::new(queue))
            }
            None => None,
        };
        let ageing = queue.as_ref().map_or(Micros::ZERO, |queue| queue.settings.ageing);
        known.learn(Ask::one(Look::Queue), Found::Queue(queue));
        Ok(Begun { number: number.unwrap_or(0), now, ageing, low_marks, process: None })
    }

    /// Runs the rules until they lack nothing. None: they lack what cannot be found in this mode.
    async fn decide(
        &self,
        on: &Lent,
        place: Place,
        mode: Mode,
        now: Micros,
        command: &Command,
        known: &mut Known,
    ) -> Result<Option<(Result<Reply, StateError>, Box<Written>)>, Trouble> {
        for _ in 0..ROUNDS {
            match decide(known, now, command) {
                Outcome::Decided(reply, written) => return Ok(Some((reply, written))),
                Outcome::Lacks(asks) if mode == Mode::Beside && !asks.iter().all(concerns_nobody) => {
                    return Ok(None);
                }
                Outcome::Lacks(asks) => {
                    let questions = find::questions(place, asks);
                    let found = on.ask(ask_for_all(on, &questions)).await?;
                    for (question, rows) in questions.iter().zip(found) {
                        question.learn(&rows, known)?;
                    }
                }
            }
        }
        let text = "the command goes on and on: nothing was stored, ask for less at once";
        Err(StateError::new(StateErrorKind::Unsupported, text).into())
    }

    /// What is to be stored. None: somebody else has made the queue meanwhile.
    async fn statements(
        &self,
        on: &Lent,
        mode: Mode,
        queue: &QueueName,
        number: i64,
        written: &Written,
        low_marks: Vec<Query>,
    ) -> Result<Option<Vec<Query>>, Trouble> {
        let (mut number, mut statements) = (number, Vec::new());
        if let Some(row) = &written.queue {
            if number == 0 {
                let make = write::make_queue(queue.as_str(), row);
                let made = on.ask(on.query_typed(&make.sql, &make.parameters())).await?;
                let Some(made) = made.first() else { return Ok(None) };
                number = Cells::of(made).int()?;
            } else {
                statements.push(write::put_queue(number, row));
            }
        }
        let folds = mode == Mode::Alone && written.queue.is_some();
        statements.extend(write::statements(number, written, folds));
        statements.extend(write::events(number, written, mode != Mode::Add));
        statements.extend(low_marks);
        // Of rows that are there each is written once, so that the order is all the same.
        Ok(Some(match mode {
            Mode::Beside => vec![write::at_once(statements)],
            _ => statements.into_iter().map(write::counted).collect(),
        }))
    }
}

/// Nothing was written.
fn undone(on: &Lent, attempt: Attempt) -> Attempt {
    on.end("ROLLBACK");
    attempt
}

/// Asks all at once, by what is prepared if there is something.
async fn ask_for_all(on: &Lent, questions: &[Question]) -> Result<Vec<Vec<Row>>, tokio_postgres::Error> {
    try_join_all(questions.iter().map(|question| on.ask_for(&question.query))).await
}

/// Asks all at once.
pub(super) async fn ask_all(
    on: &impl GenericClient,
    questions: &[Question],
) -> Result<Vec<Vec<Row>>, tokio_postgres::Error> {
    try_join_all(
        questions
            .iter()
            .map(async |question| on.query_typed(&question.query.sql, &question.query.parameters()).await),
    )
    .await
}

fn locks(mode: Mode, command: &Command) -> Locks {
    match (mode, command) {
        (Mode::Add, _) => Locks::KeyShare,
        (Mode::Beside, _) => Locks::Own,
        (Mode::Alone, Command::Change(Change::Tasks(change))) if change.verb == Verb::Purge => Locks::Update,
        _ => Locks::None,
    }
}

/// Whether a step that goes beside others may look for this after it has begun. What it locks it has locked by then.
fn concerns_nobody(ask: &Ask) -> bool {
    matches!(
        ask.look,
        Look::Payload(_)
            | Look::UnnotifiedFrom(..)
            | Look::HeldBy(_)
            | Look::ToStop(_)
            | Look::NextScheduled
            | Look::NextDeadline
            | Look::Leases
            | Look::Schedules
            | Look::Pending(_)
    )
}

/// Whether a step has written nothing but what it has locked, and nothing that has a key: others may look at those at
/// the same time. And whether it has got what it wanted: of less than that nobody knows whether others have it locked.
fn is_own(step: &Step, reply: &Reply, written: &Written, known: &Known) -> bool {
    let Reply::Stepped(stepped) = reply else { return false };
    let mut locked: HashSet<TaskId> = step.complete.iter().map(|completion| completion.id).collect();
    locked.extend(step.progress.iter().map(|(id, ..)| *id));
    let ready = Look::Ready(step.kinds.clone(), step.at_least);
    if let Some(Found::Tasks(ready)) = known.get(&ready) {
        locked.extend(ready.iter().map(|task| task.id));
    }
    let is_own = |task: &Task| locked.contains(&task.id) && task.key.is_none();
    let got_all = stepped.leased.len() == step.want as usize || stepped.more;
    got_all
        && !stepped.resync
        && written.queue.is_none()
        && written.tasks().all(|(_, change)| change.before.iter().chain(&change.after).all(is_own))
        && written.tasks().all(|(_, change)| change.before.is_some() && change.after.is_some())
        && written.edges.is_empty()
        && written.presences.keys().all(|&worker| worker == step.worker)
        && written.kinds.is_empty()
        && written.keys.is_empty()
        && written.schedules.is_empty()
}
