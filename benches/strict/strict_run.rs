//! One run: nginx, a state, a crew, and what nginx said.

use std::{
    env,
    path::Path,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use interval_queue_test_support::RedisServer;

use crate::{
    Failure,
    assignment::{Assignment, Offer},
    clock,
    contender::{Contender, Ours, StateKind},
    crew::{Crew, Word},
    nginx::{Nginx, Verdict},
    strict_case::{Case, PROCESSES, Who},
};

/// How long workers may take to get ready.
const READY: Duration = Duration::from_secs(120);
/// From the order to begin until the beginning: a tenth of a second.
const NOTICE: u64 = 100_000_000;
/// How much longer than a worker is patient the crew is.
const GRACE: Duration = Duration::from_secs(20);

/// What a run needs that is there for all of them.
pub(crate) struct Means<'a> {
    pub(crate) ours: Ours,
    pub(crate) peers: &'a [Box<dyn Contender>],
    /// The program of this repository.
    pub(crate) program: Option<&'a Path>,
}

/// Runs a case once.
pub(crate) fn once(case: &Case, means: &Means<'_>, seed: u64) -> Result<Verdict, Failure> {
    let notes = tempfile::Builder::new().prefix("interval-queue-strict-").tempdir()?;
    let peer = means.peers.iter().find(|peer| case.who.name() == peer.name());
    let state = peer.and_then(|peer| peer.states().first().copied()).unwrap_or(StateKind::Redis);
    // Dropped at the end of the run.
    let (_server, url) = match state {
        StateKind::Sqlite => (None, format!("sqlite:{}", notes.path().join("pace.sqlite").display())),
        _ => {
            let server = RedisServer::start();
            let url = format!("redis://127.0.0.1:{}/", server.port());
            (Some(server), url)
        }
    };
    let nginx = Nginx::start(case.limit)?;
    let assignments: Vec<_> = (0..PROCESSES)
        .map(|worker| Assignment {
            store: url.clone(),
            interval_us: case.interval().as_micros() as u64,
            jobs: case.jobs / u64::from(PROCESSES),
            worker,
            workers: PROCESSES,
            out: notes.path().join(format!("worker-{worker}")),
            offer: Offer::Saturated,
            seed,
        })
        .collect();
    let plan = case.plan(state);
    let commands: Result<Vec<_>, Failure> = assignments
        .iter()
        .map(|assignment| {
            let mut command = match (case.who, peer, means.program) {
                (Who::Slots, ..) => means.ours.command(&plan, assignment)?,
                (Who::Starts, ..) => {
                    let mut command = means.ours.command(&plan, assignment)?;
                    command.arg("--by-starts");
                    command
                }
                (Who::Peer(_), Some(peer), _) => peer.command(&plan, assignment)?,
                (Who::Curl, _, Some(program)) => {
                    let mut command = Command::new(env::current_exe()?);
                    command.arg("shell").args(assignment.arguments()).arg("--program").arg(program);
                    command
                }
                (Who::Peer(_), None, _) | (Who::Curl, _, None) => return Err("it is not here".into()),
            };
            command.args(["--limiter", &nginx.port().to_string()]);
            Ok(command)
        })
        .collect();
    let mut crew = Crew::start(commands?)?;
    crew.wait_for(Word::Ready, READY)?;
    crew.go(clock::monotonic() + NOTICE)?;
    crew.wait_for(Word::Done, Duration::from_nanos(assignments[0].patience()) + GRACE)?;
    let verdict = nginx.verdict(case.jobs);
    crew.finish();
    Ok(verdict?)
}

/// Threads that keep processors busy until this is dropped.
#[derive(Debug)]
pub(crate) struct BusyLoops {
    ended: Arc<AtomicBool>,
    loops: Vec<thread::JoinHandle<()>>,
}

impl BusyLoops {
    pub(crate) fn start(count: u32) -> Self {
        let ended = Arc::new(AtomicBool::new(false));
        let turn = |ended: Arc<AtomicBool>| move || while !ended.load(Ordering::Relaxed) {};
        let loops = (0..count).map(|_| thread::spawn(turn(ended.clone()))).collect();
        Self { ended, loops }
    }
}

impl Drop for BusyLoops {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        for turning in self.loops.drain(..) {
            let _ = turning.join();
        }
    }
}
