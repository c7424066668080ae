//! Other libraries, beside which this one is measured. What their workers do, and why it is fair, is in
//! `benches/peers/README.md`.

use std::{collections::BTreeMap, env, fs, io, process::Command, sync::OnceLock};

use clap::ValueEnum;

use crate::{
    assignment::Assignment,
    contender::{Contender, StateKind},
    install::{self, Harness, Language},
    local::Library,
    report::Scenario,
    scenario::Plan,
};

/// Name in the report, name of the package and its folder, what runs it, what its processes share.
const PROGRAMS: [(&str, &str, Language, StateKind); 4] = [
    ("sharded-interval-queue", "sharded-interval-queue", Language::Node, StateKind::Redis),
    ("Bottleneck", "bottleneck", Language::Node, StateKind::Redis),
    ("BullMQ", "bullmq", Language::Node, StateKind::Redis),
    ("PyrateLimiter", "pyrate-limiter", Language::Python, StateKind::Sqlite),
];

/// All others.
pub(crate) fn all() -> Vec<Box<dyn Contender>> {
    let programs = PROGRAMS.into_iter().map(|(name, folder, language, state)| {
        Box::new(Program { name, folder, language, states: [state], harness: OnceLock::new() })
            as Box<dyn Contender>
    });
    let libraries =
        Library::value_variants().iter().map(|library| Box::new(Local(*library)) as Box<dyn Contender>);
    programs.chain(libraries).collect()
}

/// A library of another language.
#[derive(Debug)]
struct Program {
    name: &'static str,
    folder: &'static str,
    language: Language,
    states: [StateKind; 1],
    harness: OnceLock<Harness>,
}

impl Contender for Program {
    fn name(&self) -> &str {
        self.name
    }

    fn prepare(&self) -> io::Result<()> {
        let harness = install::harness(self.language, self.folder).map_err(io::Error::other)?;
        self.harness.get_or_init(|| harness);
        Ok(())
    }

    fn states(&self) -> &[StateKind] {
        &self.states
    }

    fn versions(&self) -> BTreeMap<String, String> {
        let named = |(name, version): (&String, &String)| {
            (if name == self.folder { self.name.to_owned() } else { name.clone() }, version.clone())
        };
        self.harness.get().into_iter().flat_map(|harness| &harness.versions).map(named).collect()
    }

    fn takes_part(&self, plan: &Plan) -> bool {
        takes_part(plan)
    }

    fn command(&self, _: &Plan, assignment: &Assignment) -> io::Result<Command> {
        let harness = self.harness.get().ok_or_else(|| io::Error::other("it is not installed"))?;
        let mut command = Command::new(&harness.program);
        command.args(&harness.script).args(assignment.arguments());
        Ok(command)
    }
}

/// A limiter of one process.
#[derive(Debug)]
struct Local(Library);

impl Contender for Local {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn states(&self) -> &[StateKind] {
        &[StateKind::Memory]
    }

    fn versions(&self) -> BTreeMap<String, String> {
        let lock =
            fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.lock")).unwrap_or_default();
        let heading = format!("name = \"{}\"\nversion = \"", self.name());
        let version = lock.split_once(&heading).and_then(|(_, rest)| rest.split_once('"'));
        version.map(|(version, _)| (self.name().to_owned(), version.to_owned())).into_iter().collect()
    }

    fn takes_part(&self, plan: &Plan) -> bool {
        takes_part(plan)
    }

    fn command(&self, _: &Plan, assignment: &Assignment) -> io::Result<Command> {
        let mut command = Command::new(env::current_exe()?);
        command.args(["local", "--library", self.name()]).args(assignment.arguments());
        Ok(command)
    }
}

/// Most of the others count in whole milliseconds, and none is meant for one.
fn takes_part(plan: &Plan) -> bool {
    match plan.scenario {
        Scenario::Saturated | Scenario::Killed => matches!(plan.interval_us(), 10_000 | 50_000),
        Scenario::Sparse => plan.interval_us() == 10_000,
        _ => false,
    }
}
