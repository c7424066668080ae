//! What came of a scene: counted, held to the promises, and written down as evidence.

use std::{collections::BTreeMap, env, fs, path::Path, time::Duration};

use interval_queue_tasks::{Stored, TaskId};
use serde_json::json;

use crate::{
    chaos_facts::{Case, Facts, What},
    harm::Injection,
    log::Line,
    looks::Seen,
    process::{Scene, counted, micros},
    worker::LEASE,
};

/// Names the directory for what was measured.
const EVIDENCE: &str = "INTERVAL_QUEUE_EVIDENCE";
/// What a machine that others use may add to any length of time.
const BUSY: Duration = Duration::from_secs(5);

/// What came of it.
#[derive(Debug)]
pub(crate) struct Outcome {
    facts: Facts,
    seen: Seen,
    broken: Vec<String>,
    /// From each injection to the end of the next run that was done of a task that it hit.
    recoveries: Vec<u64>,
    /// From each injection to the next run of each task that it hit, and when that began.
    waits: Vec<(u64, u64)>,
    notes: Vec<String>,
}

impl Outcome {
    pub(crate) fn of(
        scene: &Scene,
        case: Case,
        lines: Vec<Line>,
        stored: BTreeMap<TaskId, Stored>,
        seen: Seen,
    ) -> Self {
        let facts = Facts::new(case, lines, stored);
        let broken = facts.broken(&|from, to| scene.log.explained(from, to));
        let mut outcome =
            Self { facts, seen, broken, recoveries: Vec::new(), waits: Vec::new(), notes: Vec::new() };
        let injections = outcome.facts.case.injections.clone();
        injections.iter().for_each(|injection| outcome.measure(injection));
        outcome
    }

    fn measure(&mut self, injection: &Injection) {
        let runs = &self.facts.runs;
        let Some(victim) = injection.victim else {
            // It hit them all, and they go on when it is over.
            let next = runs.iter().filter(|ran| ran.begun > injection.over);
            self.waits.extend(next.clone().map(|ran| (ran.begun - injection.over, ran.begun)).next());
            let next = next.filter(|ran| ran.how.as_deref() == Some("done")).map(|ran| ran.over);
            self.recoveries.extend(next.min().map(|at| at - injection.over));
            return;
        };
        let hit = runs
            .iter()
            .filter(|ran| ran.who == victim && ran.begun < injection.begun && ran.over >= injection.begun);
        let mut first = None;
        for ran in hit {
            let mut next = runs.iter().filter(|next| next.run.0 == ran.run.0 && next.run.1 > ran.run.1);
            // One with a key may wait for another of its key.
            let has_key = self.facts.made.get(&ran.run.0).is_some_and(|made| made.key.is_some());
            if let Some(next) = next.next().filter(|_| !has_key) {
                self.waits.push((next.begun.saturating_sub(injection.begun), next.begun));
            }
            let done = runs.iter().filter(|next| {
                next.run.0 == ran.run.0 && next.run.1 > ran.run.1 && next.how.as_deref() == Some("done")
            });
            first = first.into_iter().chain(done.map(|next| next.over - injection.begun)).min();
        }
        self.recoveries.extend(first);
    }

    /// Adds what a test counted itself.
    pub(crate) fn note(mut self, note: String) -> Self {
        self.notes.push(note);
        self
    }

    /// Writes down what was promised and what happened.
    pub(crate) fn tell(&self, scene: &Scene, fault: &str, promised: &str) {
        let Facts { case, runs, stored, .. } = &self.facts;
        let doubles = self.broken.iter().filter(|text| text.starts_with("T2")).count();
        let killed = case.events.iter().filter(|event| event.what == What::Killed).count();
        let mut happened = format!(
            "{} tasks, {} runs; {} promises broken, {} of them runs at the same time or under one token; {} looks at the \
             store, in {} of them counts and tasks compared",
            counted(stored.len()),
            counted(runs.len()),
            counted(self.broken.len() + self.seen.wrong.len()),
            counted(doubles),
            counted(self.seen.looks),
            counted(self.seen.compared),
        );
        if killed > 0 {
            happened += &format!("; {} processes killed", counted(killed));
        }
        let mut again: Vec<_> = self.waits.iter().map(|(length, _)| *length).collect();
        again.sort_unstable();
        if let (Some(median), Some(longest)) = (again.get(again.len() / 2), again.last()) {
            happened += &format!(
                "; what was hit began again after {} ms (median), {} ms (longest)",
                counted((*median / 1_000) as usize),
                counted((*longest / 1_000) as usize)
            );
        }
        for note in &self.notes {
            happened += &format!("; {note}");
        }
        let mut sorted = self.recoveries.clone();
        sorted.sort_unstable();
        let millis = |micros: Option<&u64>| (*micros.unwrap_or(&0) as f64 / 100.0).round() / 10.0;
        let row = json!({
            "kind": "task-chaos",
            "where": scene.place.kind(),
            "fault": fault,
            "injected": case.injections.len(),
            "promised": promised,
            "happened": happened,
            "starts": runs.len(),
            "recovery_ms": { "median": millis(sorted.get(sorted.len() / 2)), "longest": millis(sorted.last()) },
        });
        println!("{row:#}");
        if let Some(directory) = env::var_os(EVIDENCE) {
            let name = scene.name.replace("::", "-").replace('_', "-");
            fs::create_dir_all(&directory).unwrap();
            let path = Path::new(&directory).join(format!("task-chaos-{name}.json"));
            fs::write(path, format!("{:#}\n", json!([row]))).unwrap();
        }
    }

    /// Asserts what holds whatever happens, and that each task that was hit went on as soon as was promised.
    pub(crate) fn assert_sound(&self, scene: &Scene, promised: Duration) {
        let wrong: Vec<_> = self.broken.iter().chain(&self.seen.wrong).collect();
        assert!(
            wrong.is_empty(),
            "{} promises are broken: {:#?}",
            wrong.len(),
            &wrong[..wrong.len().min(10)]
        );
        assert!(self.seen.compared > 0, "counts were never compared: {:?}", self.seen);
        let most = |length, at| micros(promised + BUSY) + scene.log.explained(at - length, at);
        let late: Vec<_> = self.waits.iter().filter(|(length, at)| *length > most(*length, *at)).collect();
        assert!(late.is_empty(), "T3: the next run came only after so many microseconds: {late:?}");
    }

    /// How long a task of a dead worker may wait: its lease, a quarter of one that nobody looks, and its backoff.
    pub(crate) fn a_lease() -> Duration {
        LEASE * 5 / 4 + Duration::from_millis(100)
    }
}
