//! Applications that add tasks in transactions of their own.

use std::{
    path::{Path, PathBuf},
    process::Command as Program,
    sync::Mutex,
};

use interval_queue_postgres::PostgresTasks;
use interval_queue_task_contract::{
    Add, Change, Command, Completion, Json, Key, Kind, Leased, NewEdge, NewTask, OnConflict, OnFailure,
    Outcome, Read, Reply, SettingsChange, State, TaskStore, Unique, Until,
};
use interval_queue_test_support::files::skipped;
use sqlx::{Connection, PgConnection};

use super::{application::Driver, support::*};
use crate::common::*;

/// A Python that has the drivers.
fn python() -> PathBuf {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python-drivers");
    let python = place.join("bin/python");
    let has = |program: &Path| {
        Program::new(program)
            .args(["-c", "import asyncpg, psycopg"])
            .output()
            .is_ok_and(|notified| notified.status.success())
    };
    static INSTALLING: Mutex<()> = Mutex::new(());
    let _installing = INSTALLING.lock();
    if !has(&python) {
        succeed(Program::new("python3").args(["-m", "venv", "--clear"]).arg(&place));
        let options = ["--quiet", "--disable-pip-version-check", "--retries", "1", "--timeout", "60"];
        let drivers = ["psycopg[binary]==3.3.9", "asyncpg==0.32.0"];
        succeed(Program::new(&python).args(["-m", "pip", "install"]).args(options).args(drivers));
    }
    python
}

/// A directory in which Node.js finds the drivers. `None`: there is no npm.
fn node_modules() -> Option<PathBuf> {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("node-drivers");
    static INSTALLING: Mutex<()> = Mutex::new(());
    let _installing = INSTALLING.lock();
    if !place.join("node_modules/postgres/package.json").exists() {
        Program::new("npm").arg("--version").output().ok()?;
        std::fs::create_dir_all(&place).unwrap();
        let options = ["--no-audit", "--no-fund", "--silent", "--no-save"];
        let drivers = ["pg@8.23.1", "postgres@3.4.9"];
        let install =
            Program::new("npm").arg("install").args(options).args(drivers).current_dir(&place).output();
        assert!(install.as_ref().unwrap().status.success(), "{install:?}");
    }
    Some(place)
}

fn succeed(program: &mut Program) -> String {
    let notified = program.output().unwrap();
    assert!(notified.status.success(), "{program:?}: {}", String::from_utf8_lossy(&notified.stderr));
    String::from_utf8(notified.stdout).unwrap()
}

/// An order and the mail about it: both are stored, or neither.
const ORDERS: &str = r#"
import json, sys
import psycopg

with psycopg.connect(sys.argv[1]) as connection:
    connection.execute("CREATE TABLE orders (number integer PRIMARY KEY)")
    connection.commit()
    for number in range(6):
        connection.execute("INSERT INTO orders VALUES (%s)", [number])
        connection.execute(
            """SELECT interval_queue.add_task('mail', 'send', %s, '{"key": "orders"}')""",
            [json.dumps({"order": number})],
        )
        if number % 2:
            connection.rollback()
        else:
            connection.commit()
    try:
        connection.execute("""SELECT interval_queue.add_task('mail', options => '{"priority": 500}')""")
    except psycopg.errors.InvalidParameterValue as error:
        print(error.diag.message_primary)
        connection.rollback()
    print(connection.execute("SELECT array_agg(number ORDER BY number) FROM orders").fetchone()[0])
"#;

#[tokio::test]
#[ignore = "needs postgresql and python3: scripts/test runs it"]
async fn a_task_of_a_python_transaction_runs_if_it_commits() {
    let server = server();
    let url = fresh_database(&server);
    let tasks = PostgresTasks::connect(&url).await.unwrap();
    let mut worker = Hand::serving(&tasks, 1, "send");
    worker.step(vec![], 0).await;
    let notified =
        tokio::task::spawn_blocking(move || succeed(Program::new(python()).args(["-c", ORDERS, &url])));
    let notified = notified.await.unwrap();
    assert_eq!(notified.lines().collect::<Vec<_>>(), ["priority 500: give -100 to 100", "[0, 2, 4]"]);
    let (mut ran, mut complete) = (Vec::new(), vec![]);
    // If the program took longer than the worker's lease, the first steps only renew that.
    for _ in 0..10 {
        let stepped = worker.step(complete, 10).await;
        assert!(stepped.leased.len() <= 1, "of one key one runs at a time: {:?}", stepped.leased);
        ran.extend(stepped.leased.iter().map(|leased| leased.payload.as_str().to_owned()));
        complete = done(&stepped.leased);
        worker.step.held = stepped.resync.then(Vec::new);
    }
    assert_eq!(ran, [r#"{"order": 0}"#, r#"{"order": 2}"#, r#"{"order": 4}"#]);
    assert_eq!(tasks.queues().await.unwrap(), [mail()]);
}

/// The Python of "Orders with their mails" in `docs/recipes.md`.
#[tokio::test]
#[ignore = "needs postgresql and python3: scripts/test runs it"]
async fn the_psycopg_recipe_stores_an_order_and_its_mail() {
    let page = include_str!("../../../../../docs/recipes.md");
    let (_, section) = page.split_once("\n## Orders with their mails\n").unwrap();
    let (_, recipe) = section.split_once("\n```python\n").unwrap();
    let (recipe, _) = recipe.split_once("\n```").unwrap();
    let script = format!("import json, psycopg, sys\nurl = sys.argv[1]\n{recipe}");
    let server = server();
    let url = fresh_database(&server);
    let tasks = PostgresTasks::connect(&url).await.unwrap();
    tasks.apply(&mail(), add([])).await.unwrap();
    let application = session(&url).await;
    application.batch_execute("CREATE TABLE orders (number integer PRIMARY KEY)").await.unwrap();
    let run = move || succeed(Program::new(python()).args(["-c", &script, &url]));
    tokio::task::spawn_blocking(run).await.unwrap();
    let stored = "SELECT number, queue, kind, payload::text, (SELECT unique_name FROM interval_queue.interval_queue_task) \
                  FROM orders, interval_queue.interval_queue_tasks";
    let row = application.query_one(stored, &[]).await.unwrap();
    assert_eq!(row.get::<_, i32>(0), 7);
    let texts: Vec<String> = (1..5).map(|column| row.get(column)).collect();
    assert_eq!(texts, ["mail", "send", r#"{"order": 7}"#, "order-7"]);
}

/// The scripts add an order and its task in one transaction, which they roll back or commit. Then they make
/// calls that are refused, and print each error. The second time they complete a task, twice.
const PSYCOPG: &str = r#"
import json, sys
import psycopg

url, refused, *run = sys.argv[1:]
with psycopg.connect(url, autocommit=True) as connection:
    def attempt(number, call, parameters, commits=True):
        try:
            with connection.transaction() as transaction:
                connection.execute("INSERT INTO orders VALUES (%s)", [number])
                connection.execute(call, parameters)
                if not commits:
                    raise psycopg.Rollback(transaction)
        except psycopg.Error as error:
            print(error.sqlstate, error.diag.message_primary)
    if run:
        complete = "SELECT interval_queue.complete_task('mail', %s, %s, %s)"
        for number in [20, 21]:
            attempt(number, complete, [*run, '"sent"'])
    else:
        add = "SELECT interval_queue.add_task('mail', 'send', %s, %s)"
        attempt(1, add, ['{"order": 1}', '{"unique": "only"}'])
        attempt(2, add, ['{"order": 2}', '{}'], commits=False)
        for number, parameters in enumerate(json.loads(refused), 10):
            attempt(number, add, parameters)
"#;

const ASYNCPG: &str = r#"
import asyncio, json, sys
import asyncpg

async def main(url, refused, *run):
    connection = await asyncpg.connect(url)
    async def attempt(number, call, parameters, commits=True):
        transaction = connection.transaction()
        await transaction.start()
        try:
            await connection.execute("INSERT INTO orders VALUES ($1)", number)
            await connection.fetchval(call, *parameters)
        except asyncpg.PostgresError as error:
            print(error.sqlstate, error.message)
            await transaction.rollback()
        else:
            await (transaction.commit() if commits else transaction.rollback())
    if run:
        complete = "SELECT interval_queue.complete_task('mail', $1, $2, $3)"
        for number in [20, 21]:
            await attempt(number, complete, [*run, '"sent"'])
    else:
        add = "SELECT interval_queue.add_task('mail', 'send', $1, $2)"
        await attempt(1, add, ['{"order": 1}', '{"unique": "only"}'])
        await attempt(2, add, ['{"order": 2}', '{}'], commits=False)
        for number, parameters in enumerate(json.loads(refused), 10):
            await attempt(number, add, parameters)
    await connection.close()

asyncio.run(main(*sys.argv[1:]))
"#;

const PG: &str = r#"
const { Client } = require("pg");
const client = new Client({ connectionString: process.argv[1] });
const begin = async (work) => {
  await client.query("BEGIN");
  try {
    await work((text, values) => client.query(text, values));
    await client.query("COMMIT");
  } catch (error) {
    await client.query("ROLLBACK");
    throw error;
  }
};
client.connect().then(() => main(begin)).finally(() => client.end());
"#;

const POSTGRES_JS: &str = r#"
const sql = require("postgres")(process.argv[1], { max: 1, onnotice: () => {} });
const begin = (work) => sql.begin((transaction) => work((text, values) => transaction.unsafe(text, values)));
main(begin).finally(() => sql.end());
"#;

const NODE: &str = r#"
async function main(begin) {
  const [refused, ...run] = process.argv.slice(2);
  const attempt = (number, call, values, commits = true) =>
    begin(async (query) => {
      await query("INSERT INTO orders VALUES ($1)", [number]);
      await query(call, values);
      if (!commits) throw { code: "rollback" };
    }).catch((error) => {
      if (error.code !== "rollback") console.log(error.code, error.message);
    });
  if (run.length) {
    const complete = "SELECT interval_queue.complete_task('mail', $1, $2, $3)";
    for (const number of [20, 21]) await attempt(number, complete, [...run, '"sent"']);
  } else {
    const add = "SELECT interval_queue.add_task('mail', 'send', $1, $2)";
    await attempt(1, add, ['{"order": 1}', '{"unique": "only"}']);
    await attempt(2, add, ['{"order": 2}', "{}"], false);
    let number = 10;
    for (const values of JSON.parse(refused)) await attempt(number++, add, values);
  }
}
"#;

/// An add that is refused, in SQL and in Rust.
struct Refusal {
    payload: String,
    options: String,
    task: NewTask,
    /// The SQL state and the message. `FIRST` stands for the id of the first order's task.
    error: String,
}

/// The payload limit is a tenth of the default, because the arguments of a program have a limit, too.
const MAX_PAYLOAD: u32 = 10_000;

fn send(n: u64, payload: &str) -> NewTask {
    NewTask { kind: Kind::new("send").unwrap(), payload: Json::new(payload).unwrap(), ..task(n) }
}

fn only() -> Option<Unique> {
    Some(Unique { name: Key::new("only").unwrap(), until: Until::Ended })
}

fn refusals() -> [Refusal; 4] {
    let (new, missing) = (id(8), id(9));
    let large = format!("\"{}\"", "x".repeat(20_000));
    let edges = vec![NewEdge { up: missing, name: None, on_failure: OnFailure::Cancel }];
    [
        Refusal {
            payload: "1".to_owned(),
            options: r#"{"unique": "only", "on_conflict": "refuse"}"#.to_owned(),
            task: NewTask { unique: only(), on_conflict: OnConflict::Refuse, ..send(8, "1") },
            error: "23505 task FIRST has the unique name \"only\" and is in state ready: nothing was added; wait until it \
                    has ended, cancel it, or keep or replace it"
                .to_owned(),
        },
        Refusal {
            payload: "1".to_owned(),
            options: format!(r#"{{"id": "{new}", "after": "{missing}"}}"#),
            task: NewTask { edges, ..send(8, "1") },
            error: format!(
                "23503 task {new} waits for {missing}, which is not stored here: name an earlier task of the batch, or one \
                 that is there"
            ),
        },
        Refusal {
            payload: large.clone(),
            options: format!(r#"{{"id": "{new}"}}"#),
            task: send(8, &large),
            error: format!(
                "22023 the payload of task {new} has {} bytes: this queue stores at most {MAX_PAYLOAD}, so store what is \
                 large elsewhere and add where it is",
                large.len()
            ),
        },
        Refusal {
            payload: "1".to_owned(),
            options: r#"{"priority": 500}"#.to_owned(),
            task: NewTask { priority: 500, ..send(8, "1") },
            error: "22023 priority 500: give -100 to 100".to_owned(),
        },
    ]
}

/// The calls that a driver makes in its transactions.
struct Scenario {
    url: String,
    tasks: PostgresTasks,
    refusals: [Refusal; 4],
}

impl Scenario {
    /// Runs it. `driver` adds the tasks of two orders, of which the second is rolled back, and those
    /// that are refused; with the lease of a task it completes that twice. It returns the errors.
    async fn run(driver: impl AsyncFn(&Self, Option<&Leased>) -> Vec<String>) {
        let server = server();
        let url = fresh_database(&server);
        let tasks = PostgresTasks::connect(&url).await.unwrap();
        let application = session(&url).await;
        application.batch_execute("CREATE TABLE orders (number integer PRIMARY KEY)").await.unwrap();
        let mut worker = Hand::serving(&tasks, 1, "send");
        worker.step(vec![], 0).await;
        let limit = SettingsChange { max_payload: Some(MAX_PAYLOAD), ..SettingsChange::default() };
        tasks.apply(&mail(), Command::Change(Change::Set(limit))).await.unwrap();
        let scenario = Self { url, tasks: tasks.clone(), refusals: refusals() };
        let printed = driver(&scenario, None).await;
        let leased = worker.step(vec![], 9).await.leased;
        assert_eq!(leased.len(), 1, "{printed:?}");
        assert_eq!(leased[0].payload.as_str(), r#"{"order": 1}"#);
        let (first, token) = (leased[0].task.id, leased[0].task.token);
        assert_eq!(printed, scenario.refusals.map(|it| it.error.replace("FIRST", &first.to_string())));
        let scenario = Self { refusals: refusals(), ..scenario };
        let printed = driver(&scenario, Some(&leased[0])).await;
        let stale = "is not leased with token";
        assert_eq!(
            printed,
            [format!("55000 task {first} {stale} {token} any more: roll back, it is another run's to do")]
        );
        let found = tasks.apply(&mail(), Command::Read(Read::Tasks(vec![first]))).await.unwrap();
        let Reply::Tasks(found) = found else { panic!("no tasks") };
        let ended = found[0].as_ref().unwrap();
        assert_eq!((ended.task.state, ended.result.as_ref().unwrap().as_str()), (State::Done, "\"sent\""));
        let orders = application.query("SELECT number FROM orders ORDER BY 1", &[]).await.unwrap();
        assert_eq!(orders.iter().map(|row| row.get(0)).collect::<Vec<i32>>(), [1, 20]);
    }

    /// By a program that prints the errors.
    async fn run_program(program: impl Fn() -> Program) {
        Self::run(async |scenario, run| {
            let refused: Vec<_> = scenario.refusals.iter().map(|it| [&it.payload, &it.options]).collect();
            let mut program = program();
            program.args([&scenario.url, &serde_json::to_string(&refused).unwrap()]);
            if let Some(Leased { task, .. }) = run {
                program.args([task.id.to_string(), task.token.to_string()]);
            }
            let printed = tokio::task::spawn_blocking(move || succeed(&mut program)).await.unwrap();
            printed.lines().map(str::to_owned).collect()
        })
        .await;
    }
}

async fn a_python_driver_adds_and_completes(script: &'static str) {
    let python = tokio::task::spawn_blocking(python).await.unwrap();
    Scenario::run_program(|| {
        let mut program = Program::new(&python);
        program.args(["-c", script]);
        program
    })
    .await;
}

async fn a_node_driver_adds_and_completes(name: &str, script: &'static str) {
    let Some(place) = tokio::task::spawn_blocking(node_modules).await.unwrap() else {
        return skipped(name, "npm");
    };
    let script = format!("{NODE}{script}");
    Scenario::run_program(|| {
        let mut program = Program::new("node");
        program.current_dir(&place).args(["-e", &script, "--"]);
        program
    })
    .await;
}

#[tokio::test]
#[ignore = "needs postgresql and python3: scripts/test runs it"]
async fn psycopg_adds_and_completes() {
    a_python_driver_adds_and_completes(PSYCOPG).await;
}

#[tokio::test]
#[ignore = "needs postgresql and python3: scripts/test runs it"]
async fn asyncpg_adds_and_completes() {
    a_python_driver_adds_and_completes(ASYNCPG).await;
}

#[tokio::test]
#[ignore = "needs postgresql and npm: scripts/test runs it"]
async fn pg_of_node_adds_and_completes() {
    a_node_driver_adds_and_completes("pg_of_node_adds_and_completes", PG).await;
}

#[tokio::test]
#[ignore = "needs postgresql and npm: scripts/test runs it"]
async fn postgres_js_adds_and_completes() {
    a_node_driver_adds_and_completes("postgres_js_adds_and_completes", POSTGRES_JS).await;
}

/// The calls of the scripts above, in SQL.
#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn sqlx_adds_and_completes_in_sql() {
    Scenario::run(async |scenario, run| {
        let mut connection = PgConnection::connect(&scenario.url).await.unwrap();
        let mut printed = Vec::new();
        let mut attempt = async |number: i32, call: &'static str, parameters: [&str; 3], commits: bool| {
            let mut transaction = connection.begin().await.unwrap();
            let insert = sqlx::query("INSERT INTO orders VALUES ($1)").bind(number);
            insert.execute(&mut *transaction).await.unwrap();
            let call = parameters.into_iter().fold(sqlx::query(call), |call, text| call.bind(text));
            match call.execute(&mut *transaction).await {
                Ok(_) if commits => transaction.commit().await.unwrap(),
                Ok(_) => transaction.rollback().await.unwrap(),
                Err(error) => {
                    let error = error.as_database_error().unwrap();
                    printed.push(format!("{} {}", error.code().unwrap(), error.message()));
                }
            }
        };
        if let Some(Leased { task, .. }) = run {
            let complete = "SELECT interval_queue.complete_task('mail', $1::uuid, $2, $3)";
            for number in [20, 21] {
                let (id, token) = (task.id.to_string(), task.token.to_string());
                attempt(number, complete, [&id, &token, "\"sent\""], true).await;
            }
        } else {
            let add = "SELECT interval_queue.add_task('mail', $1, $2, $3)";
            attempt(1, add, ["send", r#"{"order": 1}"#, r#"{"unique": "only"}"#], true).await;
            attempt(2, add, ["send", r#"{"order": 2}"#, "{}"], false).await;
            for (number, Refusal { payload, options, .. }) in (10..).zip(&scenario.refusals) {
                attempt(number, add, ["send", payload, options], true).await;
            }
        }
        printed
    })
    .await;
}

/// Runs the calls of a [`Scenario`] by `add_within` and `complete_within`.
#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn rust_drivers_add_and_complete() {
    for driver in Driver::ALL {
        Scenario::run(async |scenario, run| {
            let tasks = &scenario.tasks;
            let mut application = driver.connect(&scenario.url).await;
            let mut printed = Vec::new();
            let mut attempt = async |number: i32, call: Call, commits: bool| {
                let mut transaction = application.begin().await;
                transaction.execute(&format!("INSERT INTO orders VALUES ({number})")).await;
                let called = match call {
                    Call::Add(new) => {
                        let add = Add { tasks: [*new].into(), ..Add::default() };
                        transaction.add(tasks, add).await.map(drop)
                    }
                    Call::Complete(completion) => {
                        transaction.complete(tasks, worker(1), &completion).await.map(drop)
                    }
                };
                match called {
                    Ok(()) if commits => transaction.commit().await,
                    Ok(()) => transaction.rollback().await,
                    Err(error) => printed.push(format!("{} {error}", sql_state(error.kind()))),
                }
            };
            if let Some(Leased { task, .. }) = run {
                for number in [20, 21] {
                    let outcome = Outcome::Done(Json::new("\"sent\"").unwrap());
                    let completion = Completion { id: task.id, token: task.token, outcome };
                    attempt(number, Call::Complete(completion), true).await;
                }
            } else {
                let first = NewTask { unique: only(), ..send(1, r#"{"order": 1}"#) };
                attempt(1, Call::Add(Box::new(first)), true).await;
                attempt(2, Call::Add(Box::new(send(2, r#"{"order": 2}"#))), false).await;
                for (number, refusal) in (10..).zip(&scenario.refusals) {
                    attempt(number, Call::Add(Box::new(refusal.task.clone())), true).await;
                }
            }
            printed
        })
        .await;
    }
}

enum Call {
    Add(Box<NewTask>),
    Complete(Completion),
}

/// The SQL state that has this kind of error.
fn sql_state(kind: StateErrorKind) -> &'static str {
    match kind {
        Invalid => "22023",
        NotFound => "23503",
        StateErrorKind::Conflict => "23505",
        StateErrorKind::Superseded => "55000",
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn a_connection_without_a_transaction_is_refused() {
    let server = server();
    let url = fresh_database(&server);
    let tasks = PostgresTasks::connect(&url).await.unwrap();
    let mut connection = PgConnection::connect(&url).await.unwrap();
    let add = Add { tasks: [task(1)].into(), ..Add::default() };
    let error = tasks.add_within(&mut connection, &mail(), add).await.unwrap_err();
    assert_eq!(error.kind(), Invalid, "{error}");
    assert!(error.to_string().contains("is not in a transaction"), "{error}");
}
