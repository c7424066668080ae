//! A worker process that starts one process after the other, as a loop in a shell does:
//! `interval-queue run … -- curl …`.

use std::{
    io::{self, Read},
    path::PathBuf,
    process::{Command, Stdio},
};

use clap::Args;

use crate::{
    Failure,
    assignment::Assignment,
    clock,
    worker::{QUEUE, hear_go, say},
};

/// What such a process is told.
#[derive(Clone, Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    assignment: Assignment,
    /// The program of this repository.
    #[arg(long)]
    program: PathBuf,
    /// The port of the server to call.
    #[arg(long)]
    limiter: u16,
}

/// Does what a worker does, until its standard input ends.
pub(crate) fn run(Arguments { assignment, program, limiter }: Arguments) -> Result<(), Failure> {
    say("ready")?;
    clock::sleep_until(hear_go()?);
    for job in 0..assignment.jobs {
        let status = Command::new(&program)
            .args(["run", "--store", &assignment.store, "--queue", QUEUE])
            .args(["--every", &format!("{}us", assignment.interval_us)])
            .args(["--", "curl", "--silent", "--output", "/dev/null"])
            .arg(format!("http://127.0.0.1:{limiter}/"))
            .stdin(Stdio::null())
            .status()?;
        if !status.success() {
            return Err(format!("job {job}: {} run ended with {status}", program.display()).into());
        }
    }
    say("done")?;
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
