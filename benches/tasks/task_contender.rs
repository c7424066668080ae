//! Contenders that add and run tasks: the commands of a worker, the worker of this library, another library.

use std::{env, rc::Rc};

use tokio::process::Command;

use crate::{place::Place, task_peers::Installed};

/// How many processes work together.
pub(crate) const PROCESSES: usize = 4;
/// How many tasks a process adds at once that runs them, too, and how many bytes each has.
pub(crate) const ADDED: usize = 100;
const SIZE: usize = 100;
/// How many tasks run at once in a worker while others offer them.
pub(crate) const JOBS: usize = 16;

/// Adds and runs tasks.
#[derive(Clone, Debug)]
pub(crate) enum Contender {
    /// The commands of a worker by themselves.
    Steps,
    /// A worker of this library.
    Worker,
    /// Another library, and which of its settings.
    Peer(Rc<Installed>, usize),
}

impl Contender {
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Steps => "steps".into(),
            Self::Worker => "`Worker`".into(),
            Self::Peer(peer, setting) => peer.name(*setting),
        }
    }

    /// Its name in the table of adds.
    pub(crate) fn adder(&self) -> String {
        match self {
            Self::Peer(peer, _) => peer.title(),
            _ => "`TaskQueue`".into(),
        }
    }

    pub(crate) fn is_peer(&self) -> bool {
        matches!(self, Self::Peer(..))
    }

    /// How many of these processes it can have.
    pub(crate) fn at_most(&self, processes: usize) -> usize {
        match self {
            Self::Peer(peer, _) => processes.min(peer.processes()),
            _ => processes,
        }
    }

    /// Processes that add `count` tasks together, `batch` at once.
    pub(crate) fn adders(
        &self,
        place: &Place,
        processes: usize,
        count: usize,
        [batch, size]: [usize; 2],
    ) -> Vec<Command> {
        let count = count / self.at_most(processes);
        let ours = || ours("adder", place, [batch, size, count]);
        self.processes(place, processes, ("add", [count, batch, size]), ours)
    }

    /// Processes that run tasks, `batch` at once if they are ours.
    pub(crate) fn workers(&self, place: &Place, batch: usize) -> Vec<Command> {
        let role = if matches!(self, Self::Steps) { "stepper" } else { "runner" };
        self.processes(place, PROCESSES, ("work", [0; 3]), || ours(role, place, [batch]))
    }

    /// Processes that add what they run, [`ADDED`] at once.
    pub(crate) fn steady(&self, place: &Place, jobs: usize) -> Vec<Command> {
        self.processes(place, PROCESSES, ("steady", [0, ADDED, SIZE]), || {
            let mut command = ours("runner", place, [jobs]);
            command.arg("--adding");
            command
        })
    }

    /// Processes that run tasks, and one that offers `rate` a second to them.
    pub(crate) fn open_loop(&self, place: &Place, workers: usize, rate: f64) -> Vec<Command> {
        let numbers = [(rate.round() as usize).max(1), 1, 0];
        let mut commands =
            self.processes(place, workers, ("timed", numbers), || ours("runner", place, [JOBS]));
        // The only process that a queue can have offers the tasks itself.
        if self.at_most(2) == 2 {
            commands.extend(self.processes(place, 1, ("offer", numbers), || {
                let mut adder = ours("adder", place, [1, 0, 0]);
                adder.args(["--rate", &rate.to_string()]);
                adder
            }));
        }
        commands
    }

    fn processes(
        &self,
        place: &Place,
        processes: usize,
        (role, numbers): (&str, [usize; 3]),
        ours: impl Fn() -> Command,
    ) -> Vec<Command> {
        let each = |_| match self {
            Self::Peer(peer, setting) => peer.command(place, *setting, role, numbers),
            _ => ours(),
        };
        (0..self.at_most(processes)).map(each).collect()
    }
}

/// A process of this library.
pub(crate) fn ours<const N: usize>(role: &str, place: &Place, numbers: [usize; N]) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command.arg(role).arg(&place.url).args(numbers.map(|number| number.to_string()));
    command
}
