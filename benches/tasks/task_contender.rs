//! What adds and runs tasks: the commands of a worker, the worker of the library, another library.

use std::{env, rc::Rc};

use tokio::process::Command;

use crate::{place::Place, task_peers::Installed};

/// How many processes work together.
pub(crate) const PROCESSES: usize = 4;

/// What adds and runs tasks.
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

    /// What it is called where it only adds.
    pub(crate) fn adder(&self) -> String {
        match self {
            Self::Peer(peer, _) => peer.title(),
            _ => "`TaskQueue`".into(),
        }
    }

    pub(crate) fn is_peer(&self) -> bool {
        matches!(self, Self::Peer(..))
    }

    /// Processes that add so many, so many at once.
    pub(crate) fn adders(&self, place: &Place, count: usize, batch: usize, size: usize) -> Vec<Command> {
        let Self::Peer(peer, setting) = self else {
            let each = |_| ours("adder", place, [batch, size, count / PROCESSES]);
            return (0..PROCESSES).map(each).collect();
        };
        peer.commands(place, *setting, "add", [count, batch, size])
    }

    /// Processes that run them, so many at once if they are ours.
    pub(crate) fn workers(&self, place: &Place, batch: usize) -> Vec<Command> {
        let role = match self {
            Self::Steps => "stepper",
            Self::Worker => "runner",
            Self::Peer(peer, setting) => return peer.commands(place, *setting, "work", [0, 0, 0]),
        };
        (0..PROCESSES).map(|_| ours(role, place, [batch])).collect()
    }
}

/// A process of this library.
pub(crate) fn ours<const N: usize>(role: &str, place: &Place, numbers: [usize; N]) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command.arg(role).arg(&place.url).args(numbers.map(|number| number.to_string()));
    command
}
