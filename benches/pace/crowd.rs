//! Many shards that all wait on one queue, in a few processes.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use crate::{
    Failure,
    analysis::spread,
    clock,
    contender::StateKind,
    crew::{Crew, Word},
    member::{self, Notes},
    report::{Crowd, Spread},
    scenario::shown,
    state::{self, State},
};

/// In how many processes the shards are, where the state can be shared.
const PROCESSES: u64 = 4;
/// How long starts are counted.
const COUNTED: Duration = Duration::from_secs(10);
/// From the instant at which all wait until starts are counted.
const SETTLING: Duration = Duration::from_secs(3);
/// How long it may take until all wait.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long it may take besides until a process answers: one that drowns in work is slow.
const GRACE: Duration = Duration::from_secs(60);

/// So many shards on one state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Case {
    pub(crate) kind: StateKind,
    shards: u64,
    interval: Duration,
    counted: Duration,
}

/// All there are; `quick`: those that are soon done.
pub(crate) fn cases(quick: bool) -> Vec<Case> {
    let counted = if quick { COUNTED / 10 } else { COUNTED };
    let mut cases = Vec::new();
    for kind in [StateKind::Redis, StateKind::Tmpfs, StateKind::Memory] {
        for (shards, interval) in [(10, 1), (100, 1), (10, 10), (100, 10), (1_000, 10), (10_000, 10)] {
            if !quick || shards <= 100 {
                cases.push(Case { kind, shards, interval: Duration::from_millis(interval), counted });
            }
        }
    }
    cases
}

/// Counts each of the cases.
pub(crate) fn crowds<'a>(cases: impl IntoIterator<Item = &'a Case>) -> Vec<Crowd> {
    cases.into_iter().map(Case::run).collect()
}

impl Case {
    /// How a user names it.
    pub(crate) fn name(&self) -> String {
        format!("crowd {} {} shards {}", self.kind.name(), self.shards, shown(self.interval))
    }

    /// About how long it runs.
    pub(crate) fn takes(&self) -> Duration {
        self.counted + SETTLING + Duration::from_millis(self.shards)
    }

    /// Counts what starts. What went wrong is in what it gives.
    pub(crate) fn run(&self) -> Crowd {
        self.count().unwrap_or_else(|failure| Crowd { failure: Some(failure.to_string()), ..self.nothing() })
    }

    fn count(&self) -> Result<Crowd, Failure> {
        let state = State::start(self.kind, Duration::ZERO)?;
        let notes = state::directory_for_notes()?;
        let outs: Vec<PathBuf> =
            (0..self.processes()).map(|process| notes.path().join(format!("member-{process}"))).collect();
        let commands: Result<Vec<_>, _> =
            (0..).zip(&outs).map(|(process, out)| self.command(&state, process, out)).collect();
        let mut crew = Crew::start(commands?)?;
        crew.wait_for(Word::Ready, PATIENCE + GRACE)?;
        let begins = clock::monotonic() + SETTLING.as_nanos() as u64;
        crew.go(begins)?;
        clock::sleep_until(begins);
        let server_before = state.server_cpu();
        clock::sleep_until(begins + self.counted.as_nanos() as u64);
        let server_after = state.server_cpu();
        let record_bytes = state.record_bytes();
        crew.wait_for(Word::Done, GRACE)?;
        crew.finish();
        let notes: Result<Vec<Notes>, _> = outs.iter().map(|out| Notes::read(out)).collect();
        let server = server_after.zip(server_before).map(|(after, before)| after - before);
        Ok(self.found(&notes?, server, record_bytes))
    }

    fn processes(&self) -> u64 {
        if self.kind == StateKind::Memory { 1 } else { PROCESSES }
    }

    fn command(&self, state: &State, process: u64, out: &Path) -> Result<Command, Failure> {
        let processes = self.processes();
        let orders = member::Arguments {
            store: state.url().to_owned(),
            interval_us: self.interval.as_micros() as u64,
            shards: self.shards / processes + u64::from(process < self.shards % processes),
            counted_ms: self.counted.as_millis() as u64,
            patience_ms: PATIENCE.as_millis() as u64,
            out: out.to_owned(),
        };
        let mut command = Command::new(env::current_exe()?);
        command.arg("member").args(orders.arguments());
        Ok(command)
    }

    /// What is known before anything ran.
    fn nothing(&self) -> Crowd {
        Crowd {
            state: self.kind.name().to_owned(),
            shards: self.shards,
            processes: self.processes() as u32,
            interval: self.interval.as_micros() as u64,
            seconds: self.counted.as_secs_f64(),
            rate: 0.0,
            gaps: Spread::default(),
            close: 0,
            operations_per_second: 0.0,
            operations: 0.0,
            server_share: None,
            cpu_share: 0.0,
            record_bytes: None,
            failure: None,
        }
    }

    fn found(&self, notes: &[Notes], server: Option<f64>, record_bytes: Option<u64>) -> Crowd {
        let nothing = self.nothing();
        let mut starts: Vec<u64> = notes.iter().flat_map(|notes| &notes.starts).copied().collect();
        starts.sort_unstable();
        let gaps: Vec<f64> = starts.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1000.0).collect();
        let interval = nothing.interval as f64;
        let micros = nothing.seconds * 1e6;
        let commands: u64 = notes.iter().map(|notes| notes.commands).sum();
        let cpu: u64 = notes.iter().map(|notes| notes.cpu).sum();
        let waiting: u64 = notes.iter().map(|notes| notes.waiting).sum();
        let missing = nothing.shards.saturating_sub(waiting);
        Crowd {
            rate: starts.len() as f64 * interval / micros,
            close: gaps.iter().filter(|gap| **gap < interval * 0.9).count() as u64,
            gaps: spread(gaps).unwrap_or_default(),
            operations_per_second: commands as f64 / nothing.seconds,
            operations: commands as f64 / starts.len().max(1) as f64,
            server_share: server.map(|used| used / micros),
            cpu_share: cpu as f64 / 1000.0 / micros,
            record_bytes,
            failure: (missing > 0).then(|| {
                let (shards, seconds) = (nothing.shards, PATIENCE.as_secs());
                format!("{missing} of {shards} shards had no ticket after {seconds} s; {} started in the next {} s", starts.len(), nothing.seconds)
            }),
            ..nothing
        }
    }
}
