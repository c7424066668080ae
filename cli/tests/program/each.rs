//! `each`: what becomes of the items of a list, and at what pace.

mod each_output;
mod each_pace;
mod ending;
mod items_tests;

use std::{
    fs::{self, File},
    io::Write,
    process::{Child, Command, Output, Stdio},
};

use crate::{place_tests::Backend, process::Process};

/// `each` with that input in a file.
pub(crate) fn each(place: &Backend, input: &[u8], args: &[&str]) -> Output {
    start(place, input, args).finish()
}

/// The same, and does not wait for it.
pub(crate) fn start(place: &Backend, input: &[u8], args: &[&str]) -> Process {
    // Another process may be reading it.
    if fs::read(place.path("input")).ok().as_deref() != Some(input) {
        fs::write(place.path("input"), input).unwrap();
    }
    let mut command = command(place, args);
    Process::adopt(command.stdin(File::open(place.path("input")).unwrap()).spawn().unwrap())
}

/// `each` with an input that stays open.
fn open_ended(place: &Backend, args: &[&str]) -> Child {
    command(place, args).stdin(Stdio::piped()).spawn().unwrap()
}

fn command(place: &Backend, args: &[&str]) -> Command {
    let mut command = place.command(&["each"]);
    command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Sends something to an input that stays open.
fn tell(child: &mut Child, input: &[u8]) {
    let stdin = child.stdin.as_mut().unwrap();
    stdin.write_all(input).unwrap();
    stdin.flush().unwrap();
}

/// The lines of a file that commands write to.
fn lines(place: &Backend, name: &str) -> Vec<String> {
    fs::read_to_string(place.path(name)).unwrap_or_default().lines().map(str::to_owned).collect()
}
