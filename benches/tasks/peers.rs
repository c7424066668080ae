//! Other libraries that store tasks in SQLite. What each is set up as, and why, is in `../peers/README.md`.

use std::path::PathBuf;

use tokio::process::Command;

use crate::{
    install::{self, Language},
    place::Place,
    speed::{Case, PROCESSES},
};

/// A library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// One process with four workers: at its start it takes over what others run.
    Effectum,
    /// Four processes.
    Huey,
}

/// A library that is there, and how its processes are started.
#[derive(Debug)]
pub(crate) struct Installed {
    pub(crate) peer: Peer,
    pub(crate) version: String,
    command: Vec<PathBuf>,
}

impl Peer {
    /// Those that can be had here. What cannot is named, and left out.
    pub(crate) fn installed() -> Vec<Installed> {
        [Self::Effectum, Self::Huey].into_iter().filter_map(Self::install).collect()
    }

    fn name(self) -> &'static str {
        match self {
            Self::Effectum => "effectum",
            Self::Huey => "huey",
        }
    }

    fn install(self) -> Option<Installed> {
        let harness = match self {
            Self::Effectum => install::built(self.name()),
            Self::Huey => install::harness(Language::Python, self.name()),
        };
        match harness {
            Ok(harness) => {
                let version = harness.versions.get(self.name()).cloned().unwrap_or_default();
                let command = [Some(harness.program), harness.script].into_iter().flatten().collect();
                Some(Installed { peer: self, version, command })
            }
            Err(error) => {
                println!("{} cannot be installed here and is left out: {error}.\n", self.name());
                None
            }
        }
    }
}

impl Installed {
    pub(crate) fn name(&self) -> String {
        format!("{} {}", self.peer.name(), self.version)
    }

    /// Whether it can do this. huey adds and leases tasks one by one; effectum does not sync with each commit.
    pub(crate) fn can(&self, case: &Case) -> bool {
        match self.peer {
            Peer::Effectum => !case.is_full,
            Peer::Huey => case.added == 1 && case.batch == 1,
        }
    }

    /// The processes that do it.
    pub(crate) fn commands(&self, case: &Case, place: &Place) -> Vec<Command> {
        let numbers = |numbers: &[usize]| numbers.iter().map(ToString::to_string).collect::<Vec<_>>();
        let command = || {
            let mut command = Command::new(&self.command[0]);
            command.args(&self.command[1..]).arg(&place.file);
            command
        };
        match self.peer {
            Peer::Effectum => {
                let mut command = command();
                command.args(numbers(&[case.added, case.batch, case.tasks]));
                vec![command]
            }
            Peer::Huey => {
                let one = || {
                    let mut command = command();
                    command.arg(if case.is_full { "full" } else { "relaxed" });
                    command.args(numbers(&[case.added, case.tasks / PROCESSES]));
                    command
                };
                (0..PROCESSES).map(|_| one()).collect()
            }
        }
    }
}
