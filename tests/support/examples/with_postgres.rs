//! Runs a command with the URL of a PostgreSQL server as its last argument. The server is there as long as
//! the command runs.
//!
//!     cargo run -p interval-queue-test-support --example with_postgres -- psql -c 'SELECT version()'

use std::{
    env,
    process::{Command, ExitCode},
};

use interval_queue_test_support::PostgresServer;

fn main() -> ExitCode {
    let mut arguments = env::args_os().skip(1);
    let Some(program) = arguments.next() else {
        eprintln!("usage: with_postgres PROGRAM [ARGUMENT …]");
        return ExitCode::from(2);
    };
    let server = PostgresServer::start();
    match Command::new(&program).args(arguments).arg(server.url()).status() {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{program:?} cannot be run: {error}");
            ExitCode::FAILURE
        }
    }
}
