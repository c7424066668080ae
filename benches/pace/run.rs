//! One run: a state, a crew, its notes.

use std::time::Duration;

use interval_queue::contract::{Command, Label, QueueName};

use crate::{
    Failure,
    analysis::{Clocks, Facts, Killed},
    assignment::Assignment,
    clock,
    contender::{Contender, Threads},
    crew::{Crew, Word},
    machine,
    notes::Log,
    report::Run,
    scenario::Plan,
    state::{self, State},
    watched::connect,
    worker::{QUEUE, runtime},
};

/// How long workers may take to get ready.
const READY: Duration = Duration::from_secs(120);
/// From the order to begin until the beginning: all have read it by then. A tenth of a second.
const NOTICE: u64 = 100_000_000;
/// How much longer than a worker is patient the crew is.
const GRACE: Duration = Duration::from_secs(20);
/// So many starts are kept for pictures.
const SAMPLE: usize = 2_000;

/// What a run brought.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) run: Run,
    /// The process and the instant of the first starts, in microseconds after the first one.
    pub(crate) sample: Vec<(u32, u64)>,
}

/// Runs a plan once.
pub(crate) fn once(contender: &dyn Contender, plan: &Plan, seed: u64) -> Result<Outcome, Failure> {
    let state = State::start(plan.state, plan.round_trip)?;
    let notes = state::directory_for_notes()?;
    let assignments: Vec<Assignment> = (0..plan.processes)
        .map(|worker| Assignment {
            store: state.url().to_owned(),
            interval_us: plan.interval_us(),
            jobs: plan.jobs / u64::from(plan.processes),
            worker,
            workers: plan.processes,
            out: notes.path().join(format!("worker-{worker}")),
            offer: plan.offer,
            seed,
        })
        .collect();
    let commands: Result<Vec<_>, _> =
        assignments.iter().map(|assignment| contender.command(plan, assignment)).collect();
    let mut crew = Crew::start(commands?)?;
    crew.wait_for(Word::Ready, READY)?;

    let (before, server_before, busy_before) = (clock::both(), state.server_cpu(), machine::busy());
    let go = clock::monotonic() + NOTICE;
    crew.go(go)?;
    let killed = match plan.kill_after {
        Some(after) => {
            let mut killed = kill_first(&mut crew, &assignments[0], go, after)?;
            if contender.has_leases() {
                killed.lease_end = lease_end(&state, assignments[0].worker)?;
            }
            Some(killed)
        }
        None => None,
    };
    let patience = Duration::from_nanos(assignments[0].patience());
    crew.wait_for(Word::Done, patience + GRACE)?;
    let (after, server_after, busy_after) = (clock::both(), state.server_cpu(), machine::busy());
    crew.finish();

    let logs: Result<Vec<Log>, _> = assignments.iter().map(|assignment| Log::read(&assignment.out)).collect();
    let facts = Facts {
        interval: plan.interval_us(),
        jobs_each: assignments[0].jobs,
        logs: logs?,
        clocks: Clocks { before, after },
        busy: busy_before.zip(busy_after).map(|((busy, all), (busy_after, all_after))| {
            (busy_after - busy) as f64 / (all_after - all).max(1) as f64
        }),
        cores: machine::cores(),
        server_cpu: server_after.zip(server_before).map(|(after, before)| after - before),
        killed,
    };
    let starts = facts.starts();
    let first = starts.first().map_or(0, |(_, start)| start.started);
    let sample = starts.iter().take(SAMPLE);
    let sample = sample.map(|(worker, start)| (*worker as u32, (start.started - first) / 1000)).collect();
    Ok(Outcome { run: facts.analyse(), sample })
}

fn kill_first(crew: &mut Crew, assignment: &Assignment, go: u64, after: Duration) -> Result<Killed, Failure> {
    clock::sleep_until(go + after.as_nanos() as u64);
    let at = clock::monotonic();
    crew.kill(0)?;
    let since = at.saturating_sub(go);
    let offered = assignment.offers().take_while(|when| *when <= since).count() as u64;
    Ok(Killed { worker: 0, at, offered, lease_end: None })
}

/// When the lease of one of this library's workers ends, in microseconds on the state's clock; none: it has
/// none.
fn lease_end(state: &State, worker: u32) -> Result<Option<u64>, Failure> {
    let Ok(queue) = QueueName::new(QUEUE) else { return Ok(None) };
    let snapshot = runtime(Threads::Single)?.block_on(async {
        let state = connect(state.direct_url()).await?;
        Ok::<_, Failure>(state.apply(&queue, Command::Read).await?.read()?)
    })?;
    let label = Label::new(format!("worker {worker}"))?;
    let shards = snapshot.map(|snapshot| snapshot.record.shards).unwrap_or_default();
    Ok(shards.values().find(|presence| presence.label == label).map(|presence| presence.expires_at.get()))
}
