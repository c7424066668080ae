//! Applications that add tasks in transactions of their own.

use std::{
    path::{Path, PathBuf},
    process::Command as Program,
};

use interval_queue_postgres::PostgresTasks;
use interval_queue_task_contract::TaskStore;

use super::support::*;
use crate::common::*;

/// A Python that has a driver.
fn python() -> PathBuf {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("psycopg");
    let python = place.join("bin/python");
    let has = |program: &Path| {
        Program::new(program)
            .args(["-c", "import psycopg"])
            .output()
            .is_ok_and(|notified| notified.status.success())
    };
    if !has(&python) {
        succeed(Program::new("python3").args(["-m", "venv", "--clear"]).arg(&place));
        let options = ["--quiet", "--disable-pip-version-check", "--retries", "1", "--timeout", "60"];
        succeed(
            Program::new(&python).args(["-m", "pip", "install"]).args(options).arg("psycopg[binary]==3.3.9"),
        );
    }
    python
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
