//! The tables of stored tasks in SQLite, with foreign values in some cells. Each command does as
//! the rows say, or is refused with an error that names file, row and column, and nothing changes.
//!
//! The first byte selects tables as the program makes them, which SQLite checks, or tables that
//! accept anything. Then come cells: column, row, type, length, value.

use interval_queue::{
    contract::{Micros, OnExisting, QueueName, StateErrorKind},
    task_contract::{
        Add, Change, ChangeTasks, Command, Completion, Json, Key, Kind, MAX_PAGE, NewEdge, NewSchedule,
        NewTask, OnFailure, Order, Outcome, Overlap, Policy, Progress, Read, Reply, Selector, SettingsChange,
        State, Step, Tag, TaskId, Unique, Until, Verb, When, WorkerId,
    },
};
use interval_queue_sqlite::fuzzing::{Bench, Failed, PATH};
use rusqlite::{Error, ErrorCode, types::Value};
use uuid::Uuid;

use crate::promise::{Verdict, is_clear};

thread_local! {
    static AS_MADE: Filled = Filled::new(true);
    static LOOSE: Filled = Filled::new(false);
}

pub(crate) fn body(bytes: &[u8]) -> Verdict {
    let [which, cells @ ..] = bytes else { return Verdict::Refused };
    let edited = |filled: &Filled| filled.edited(cells);
    if *which == b's' { AS_MADE.with(edited) } else { LOOSE.with(edited) }
}

/// Tables with something of everything.
struct Filled {
    as_made: bool,
    bench: Bench,
    columns: Vec<(String, String)>,
}

fn queue() -> QueueName {
    QueueName::new("mail").unwrap()
}

fn id(n: u128) -> TaskId {
    TaskId::new(Uuid::from_u128(n))
}

fn worker(n: u128) -> WorkerId {
    WorkerId::new(Uuid::from_u128(n))
}

fn key(text: &str) -> Key {
    Key::new(text).unwrap()
}

const TASKS: u128 = 9;
const NOW: Micros = Micros::new(1_750_000_000_000_000);

fn at(millis: u64) -> Micros {
    NOW + Micros::from_millis(millis)
}

fn step(of: u128, sequence: u64, want: u32) -> Step {
    let step = Step::first(worker(of), [Kind::default()], Micros::from_millis(30_000));
    Step { sequence, acknowledged: sequence - 1, want, held: None, ..step }
}

impl Filled {
    fn new(as_made: bool) -> Self {
        let bench = Bench::new(as_made).unwrap();
        let long = Json::of(&"x".repeat(700)).unwrap();
        let mut tasks: Vec<_> =
            (1..=TASKS).map(|n| NewTask::new(id(n), Json::new("{\"a\": 1}").unwrap())).collect();
        tasks[0].payload = long.clone();
        tasks[1].policy = Policy::default().into();
        tasks[1].tags = vec![Tag::new("red").unwrap()];
        tasks[2..5].iter_mut().for_each(|task| task.key = Some(key("k")));
        tasks[4].ordered = true;
        tasks[5].not_before = When::After(Micros::from_millis(60_000));
        tasks[5].deadline = Some(When::After(Micros::from_millis(90_000)));
        tasks[6].unique = Some(Unique { name: key("only"), until: Until::Ended });
        tasks[7].edges = vec![NewEdge { up: id(1), name: Some(key("one")), on_failure: OnFailure::Wait }];
        tasks[8].kind = Kind::new("other").unwrap();
        let filled = Self { as_made, columns: columns(&bench), bench };
        let schedule = NewSchedule {
            name: key("tick"),
            definition: Json::default(),
            next: Some(at(5)),
            paused: false,
            overlap: Overlap::Keep,
        };
        filled.must(at(0), Command::Change(Change::Open(SettingsChange::default(), OnExisting::Keep)));
        filled.must(at(1), Command::Add(Add { tasks: tasks.into(), sequence: 0, age: Micros::ZERO }));
        filled.must(at(2), Command::Change(Change::Schedule(schedule)));
        filled.must(at(3), Command::Change(Change::Key(key("k"), Some(2))));
        filled.must(at(4), Command::Change(Change::Kind(Kind::new("other").unwrap(), true)));
        filled.must(at(200), Command::Step(Step { held: Some(Vec::new()), ..step(1, 1, 0) }));
        let Reply::Stepped(stepped) = filled.must(at(400), Command::Step(step(1, 2, 4))) else { panic!() };
        let complete = stepped.leased.iter().take(2).zip([Outcome::Done(long), Outcome::Error("no".into())]);
        let complete = complete.map(|(leased, outcome)| Completion {
            id: leased.task.id,
            token: leased.task.token,
            outcome,
        });
        let complete = Step { complete: complete.collect(), ..step(1, 3, 1) };
        let running = stepped.leased.last().unwrap();
        let progress = Progress { done: 1, total: 2, text: "half".into() };
        let progress = vec![(running.task.id, running.task.token, progress)];
        filled.must(at(600), Command::Step(Step { progress, ..complete }));
        filled
    }

    fn must(&self, now: Micros, command: Command) -> Reply {
        self.bench.apply(&queue(), now, &command).unwrap_or_else(|failed| panic!("{failed:?} to {command:?}"))
    }

    /// In the end all is as before.
    fn edited(&self, mut cells: &[u8]) -> Verdict {
        let on = self.bench.connection();
        on.execute_batch("SAVEPOINT edit").unwrap();
        let mut edits = 0;
        while let [column, row, kind, length, rest @ ..] = cells
            && edits < 4
        {
            let (value, rest) = rest.split_at(rest.len().min(usize::from(*length)));
            edits += usize::from(self.edit(*column, *row, *kind, value));
            cells = rest;
        }
        let verdict = if edits > 0 && self.goes_on() { Verdict::Read } else { Verdict::Refused };
        on.execute_batch("ROLLBACK TO edit; RELEASE edit").unwrap();
        verdict
    }

    /// SQLite may refuse the value.
    fn edit(&self, column: u8, row: u8, kind: u8, value: &[u8]) -> bool {
        let (table, column) = &self.columns[usize::from(column) % self.columns.len()];
        let mut number = [0; 8];
        number.iter_mut().zip(value).for_each(|(to, from)| *to = *from);
        let written = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
        let (cast, value) = match kind {
            b'i' => ("?1", Value::Integer(written.unwrap_or(i64::from_le_bytes(number)))),
            b'r' => ("?1", Value::Real(f64::from_le_bytes(number))),
            b'n' => ("?1", Value::Null),
            b'b' => ("?1", Value::Blob(value.to_vec())),
            // Also invalid UTF-8.
            _ => ("CAST(?1 AS TEXT)", Value::Blob(value.to_vec())),
        };
        let on = self.bench.connection();
        let count = format!("SELECT count(*) FROM {table}");
        let rows: i64 = on.prepare_cached(&count).unwrap().query_row([], |row| row.get(0)).unwrap();
        if rows == 0 {
            return false;
        }
        // Tables of names and of numbers are found by different columns; all can be counted.
        let which = format!(
            "SELECT count(*) FROM pragma_table_xinfo('{table}') WHERE pk = 1 AND name = 'number' OR pk = 1 AND name = 'task'"
        );
        let has_number: bool = on.prepare_cached(&which).unwrap().query_row([], |row| row.get(0)).unwrap();
        let names = if has_number { "rowid".to_owned() } else { primary(on, table) };
        let sql = format!(
            "UPDATE {table} SET {column} = {cast} WHERE ({names}) = (SELECT {names} FROM {table} LIMIT 1 OFFSET ?2)"
        );
        let mut update = on.prepare_cached(&sql).unwrap();
        update.execute((value, i64::from(row) % rows)).is_ok_and(|changed| changed > 0)
    }

    fn goes_on(&self) -> bool {
        let all: Vec<_> = (1..=TASKS).map(id).collect();
        let page = Read::Page {
            selector: Selector::states(State::ALL),
            after: Order::Oldest.start(),
            limit: MAX_PAGE,
            bodies: true,
        };
        let reads = [
            Read::Overview,
            page,
            Read::Tasks(all.clone()),
            Read::Inputs { down: id(8), after: None },
            Read::Workers,
            Read::Schedules,
            Read::Upcoming(MAX_PAGE),
            Read::Ready(vec![Kind::default()]),
        ];
        let change = |verb| {
            let selector = Selector::default();
            let limit = MAX_PAGE;
            ChangeTasks { selector, verb, after: None, watermark: None, limit, dry_run: false }
        };
        let verbs =
            [Verb::Cancel, Verb::Retry, Verb::Purge].map(|verb| Command::Change(Change::Tasks(change(verb))));
        let steps = [step(1, 4, 5), Step { held: Some(Vec::new()), ..step(2, 1, 5) }, step(1, 5, 5)];
        let reads = reads.map(Command::Read);
        let commands =
            reads.iter().cloned().chain(steps.map(Command::Step)).chain(verbs).chain(reads.clone());
        let mut done = false;
        for (n, command) in (0..).zip(commands) {
            // The worker dies after its first step.
            let now = at(1_000 + 60_000 * n);
            match self.bench.apply(&queue(), now, &command) {
                Ok(_) => done = true,
                Err(failed) => is_named(self.as_made, &failed, &command),
            }
        }
        for id in all {
            match self.bench.copy(&queue(), &QueueName::new("other").unwrap(), id) {
                Ok(Some([read, written])) => {
                    assert_eq!(read, written, "what is written back is what was read")
                }
                Ok(None) => {}
                Err(failed) => is_named(self.as_made, &failed, &Command::Read(Read::Tasks(vec![id]))),
            }
        }
        done
    }
}

/// The error names file, row and column.
fn is_named(as_made: bool, failed: &Failed, command: &Command) {
    let error = match failed {
        Failed::Rejected(error) => error,
        // Only in tables that accept anything, and never silently.
        Failed::Sqlite(Error::InvalidColumnType(..)) if !as_made => return,
        // Two rows with one id, or a number that cannot rise: SQLite itself refuses it.
        Failed::Sqlite(Error::SqliteFailure(error, _)) if error.code == ErrorCode::ConstraintViolation => {
            return;
        }
        Failed::Sqlite(error) => panic!("{error:?} to {command:?}"),
    };
    let text = error.to_string();
    // Values are cut in errors.
    is_clear(&text, &[0; 100]);
    match error.kind() {
        StateErrorKind::Damaged => {
            assert!(text.starts_with(PATH), "{text}");
            let row = text.contains(" a row of interval_queue_task") && text.contains("column ");
            assert!(row || text.contains("no task ") || text.contains("no queue"), "{text}");
        }
        StateErrorKind::NotFound | StateErrorKind::Superseded | StateErrorKind::Conflict => {}
        kind => panic!("{kind:?}: {text} to {command:?}"),
    }
}

fn columns(bench: &Bench) -> Vec<(String, String)> {
    let sql = "SELECT m.name, c.name FROM sqlite_schema AS m, pragma_table_info(m.name) AS c \
               WHERE m.type = 'table' AND m.name <> 'interval_queue_task_schema' ORDER BY m.name, c.cid";
    let on = bench.connection();
    let mut statement = on.prepare(sql).unwrap();
    statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().collect::<Result<_, _>>().unwrap()
}

fn primary(on: &rusqlite::Connection, table: &str) -> String {
    let sql = "SELECT name FROM pragma_table_info(?1) WHERE pk > 0 ORDER BY pk";
    let mut statement = on.prepare_cached(sql).unwrap();
    let names = statement.query_map([table], |row| row.get::<_, String>(0)).unwrap();
    names.collect::<Result<Vec<_>, _>>().unwrap().join(", ")
}
