//! Other libraries that store tasks. What each is set up as, and why, is in `../peers/README.md`.

use std::path::PathBuf;

use tokio::process::Command;

use crate::{
    install::{self, Harness, Language},
    place::{Kind, Place, Setting},
    task_contender::PROCESSES,
    task_crew,
};

/// A library.
#[derive(Debug)]
pub(crate) struct Peer {
    name: &'static str,
    /// `None`: cargo builds it.
    language: Option<Language>,
    kind: Kind,
    /// The settings of a worker; the last one does best by its documentation.
    settings: &'static [&'static str],
    /// Which durabilities it has.
    full: &'static [bool],
    processes: usize,
    /// Whether it has a call that adds several.
    adds_several: bool,
    /// Whether something has to be made before tasks are added.
    is_prepared: bool,
}

const BOTH: &[bool] = &[false, true];

const PEERS: &[Peer] = &[
    Peer {
        name: "task-queue",
        language: Some(Language::Python),
        kind: Kind::Directory,
        settings: &["poll"],
        full: &[false],
        processes: PROCESSES,
        adds_several: true,
        is_prepared: false,
    },
    // At its start it takes over what others run.
    Peer {
        name: "effectum",
        language: None,
        kind: Kind::Sqlite,
        settings: &["10 jobs", "100 jobs"],
        full: &[false],
        processes: 1,
        adds_several: true,
        is_prepared: false,
    },
    Peer {
        name: "huey",
        language: Some(Language::Python),
        kind: Kind::Sqlite,
        settings: &["default"],
        full: BOTH,
        processes: PROCESSES,
        adds_several: false,
        is_prepared: false,
    },
    Peer {
        name: "bullmq",
        language: Some(Language::Node),
        kind: Kind::Redis,
        settings: &["concurrency 1", "concurrency 100"],
        full: BOTH,
        processes: PROCESSES,
        adds_several: true,
        is_prepared: false,
    },
    Peer {
        name: "rq",
        language: Some(Language::Python),
        kind: Kind::Redis,
        settings: &["Worker", "SimpleWorker"],
        full: BOTH,
        processes: PROCESSES,
        adds_several: true,
        is_prepared: false,
    },
    Peer {
        name: "graphile-worker",
        language: Some(Language::Node),
        kind: Kind::Postgres,
        settings: &["default", "local queue"],
        full: BOTH,
        processes: PROCESSES,
        adds_several: true,
        is_prepared: true,
    },
    Peer {
        name: "pg-boss",
        language: Some(Language::Node),
        kind: Kind::Postgres,
        settings: &["default", "batches"],
        full: BOTH,
        processes: PROCESSES,
        adds_several: true,
        is_prepared: true,
    },
    Peer {
        name: "pgmq",
        language: Some(Language::Python),
        kind: Kind::Postgres,
        settings: &["one by one", "batches"],
        full: BOTH,
        processes: PROCESSES,
        adds_several: true,
        is_prepared: true,
    },
    Peer {
        name: "procrastinate",
        language: Some(Language::Python),
        kind: Kind::Postgres,
        settings: &["concurrency 1", "concurrency 100"],
        full: BOTH,
        processes: PROCESSES,
        adds_several: true,
        is_prepared: true,
    },
];

/// A library that is there, and how its processes are started.
#[derive(Debug)]
pub(crate) struct Installed {
    peer: &'static Peer,
    version: String,
    command: Vec<PathBuf>,
}

impl Peer {
    /// The libraries for these stores. Prints which cannot be installed, and leaves them out.
    pub(crate) fn installed(settings: &[Setting]) -> Vec<Installed> {
        let is_meant = |peer: &&Self| settings.iter().any(|setting| setting.kind == peer.kind);
        PEERS.iter().filter(is_meant).filter_map(Self::install).collect()
    }

    fn install(&'static self) -> Option<Installed> {
        let harness = match self.language {
            None => install::built(self.name),
            Some(language) => install::harness(language, self.name),
        };
        match harness {
            Ok(Harness { program, script, versions }) => {
                let version = versions.get(self.name).cloned().unwrap_or_default();
                // A harness for stored tasks may have another one for the pace beside it.
                let script = script.map(|script| {
                    let extension = script.extension().unwrap_or_default().to_owned();
                    script.with_file_name("tasks").with_extension(extension)
                });
                Some(Installed {
                    peer: self,
                    version,
                    command: [Some(program), script].into_iter().flatten().collect(),
                })
            }
            Err(error) => {
                eprintln!("{} cannot be installed here and is left out: {error}", self.name);
                None
            }
        }
    }
}

impl Installed {
    pub(crate) fn title(&self) -> String {
        format!("{} {}", self.peer.name, self.version)
    }

    /// Whether it is this library in a setting of this name, or in its first one if the name is empty.
    pub(crate) fn is(&self, name: &str, setting: &str, number: usize) -> bool {
        self.peer.name == name
            && if setting.is_empty() { number == 0 } else { self.peer.settings[number] == setting }
    }

    pub(crate) fn name(&self, setting: usize) -> String {
        format!("{}, {}", self.title(), self.peer.settings[setting])
    }

    pub(crate) fn settings(&self) -> std::ops::Range<usize> {
        0..self.peer.settings.len()
    }

    /// Whether it can add so many by one call.
    pub(crate) fn can_add(&self, batch: usize) -> bool {
        batch == 1 || self.peer.adds_several
    }

    pub(crate) fn can(&self, setting: Setting) -> bool {
        self.peer.kind == setting.kind && self.peer.full.contains(&setting.is_full)
    }

    /// Makes what it needs in a fresh place. None: it cannot, and has said why.
    pub(crate) async fn prepare(&self, place: &Place) -> Option<()> {
        if self.peer.is_prepared {
            task_crew::Process::start(self.command(place, 0, "prepare", [0; 3])).await?.end().await;
        }
        Some(())
    }

    /// How many processes of it can use one queue, at most [`PROCESSES`].
    pub(crate) fn processes(&self) -> usize {
        self.peer.processes
    }

    /// Whether this setting is the one that does best.
    pub(crate) fn is_best(&self, setting: usize) -> bool {
        setting + 1 == self.peer.settings.len()
    }

    /// A process that does something. `numbers`: how many tasks, or how many a second; how many at once;
    /// how many bytes each.
    pub(crate) fn command(&self, place: &Place, setting: usize, role: &str, numbers: [usize; 3]) -> Command {
        let mut command = Command::new(&self.command[0]);
        command.args(&self.command[1..]).args([&place.bare, role, self.peer.settings[setting]]);
        command.arg(if place.setting.is_full { "full" } else { "relaxed" });
        command.args(numbers.map(|number| number.to_string()));
        command
    }
}
