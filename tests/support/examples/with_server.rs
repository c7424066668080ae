//! Runs a command with the URL of a server as its last argument. The server is there as long as the command runs.
//!
//!     cargo run -p interval-queue-test-support --example with_server -- postgres psql -c 'SELECT version()'

use std::{
    env,
    ffi::OsString,
    process::{Command, ExitCode},
};

use interval_queue_test_support::{PostgresServer, RedisServer};

fn main() -> ExitCode {
    let mut arguments = env::args_os().skip(1);
    let kind = arguments.next().unwrap_or_default();
    let command: Vec<OsString> = arguments.collect();
    match kind.to_str() {
        Some("postgres") if !command.is_empty() => run(&command, PostgresServer::start().url()),
        Some("redis") if !command.is_empty() => run(&command, RedisServer::start().url()),
        _ => {
            eprintln!("usage: with_server postgres|redis PROGRAM [ARGUMENT …]");
            ExitCode::from(2)
        }
    }
}

fn run(command: &[OsString], url: &str) -> ExitCode {
    match Command::new(&command[0]).args(&command[1..]).arg(url).status() {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{:?} cannot be run: {error}", command[0]);
            ExitCode::FAILURE
        }
    }
}
