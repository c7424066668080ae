//! Runs the checker, and tells what came out.

use std::{collections::BTreeSet, env, fs, mem, path::PathBuf};

use serde_json::json;
use stateright::{Checker, HasDiscoveries, Model, Path};

use crate::{Action, Promise, Queue, Setup, Sight, model::Found, setup::TICK, story};

/// What the checker found in a setup.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// How many different states were reached.
    pub states: usize,
    /// How many things in a row lead to the furthest state.
    pub depth: usize,
    /// Once there is no more trouble, for how many intervals the last job of the living waits, at worst.
    pub slowest: f64,
    /// What happened somewhere.
    pub sights: BTreeSet<Sight>,
    /// The promise that is broken first, and a shortest way to it.
    pub refuted: Option<(Promise, Vec<Action>)>,
    /// That way in words, one line for each thing that happens.
    pub story: Vec<String>,
}

/// Explores everything that can happen in the setup, until there is nothing new or a promise is broken.
///
/// # Panics
///
/// The checker stopped half-way.
pub fn check(setup: &Setup) -> Verdict {
    // One thread: only so the first way found is a shortest one. Tests run beside each other anyway.
    let checker =
        Queue::new(setup.clone()).checker().finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    assert!(checker.is_done() || !checker.discoveries().is_empty(), "the checker stopped half-way");
    let model = checker.model();
    let Found { sights, broken, slowest } = mem::take(&mut *model.found());
    let refuted = broken.zip(checker.discoveries().into_values().next().map(Path::into_actions));
    Verdict {
        states: checker.unique_state_count(),
        depth: checker.max_depth(),
        slowest: (TICK * slowest).to_duration().div_duration_f64(setup.interval().to_duration()),
        sights,
        story: refuted.as_ref().map(|(_, actions)| story::tell(model, actions)).unwrap_or_default(),
        refuted,
    }
}

impl Verdict {
    /// Prints the verdict, and writes it to the directory named by `INTERVAL_QUEUE_EVIDENCE`, if one is.
    ///
    /// # Panics
    ///
    /// The directory cannot be written to.
    pub fn tell(&self, name: &str, what: &str, promised: &str) {
        let Self { states, depth, slowest, sights, refuted, story } = self;
        let happened = match refuted {
            None => format!(
                "no violation in {states} states, up to {depth} things in a row; \
                 from each of them all jobs of the living start within {slowest} intervals"
            ),
            Some((promise, actions)) => {
                format!("refuted in {} steps, {}: {}", actions.len(), promise.text(), story.join("; "))
            }
        };
        println!("{name}: {what}, {states} states\n  {sights:?}\n  {happened}");
        if let Some(directory) = env::var_os("INTERVAL_QUEUE_EVIDENCE").map(PathBuf::from) {
            let row = json!([{
                "kind": "model",
                "where": "rules",
                "fault": what,
                "injected": states,
                "promised": promised,
                "happened": happened,
            }]);
            let file = directory.join(format!("model-{name}.json"));
            let written =
                fs::create_dir_all(&directory).and_then(|()| fs::write(&file, format!("{row:#}\n")));
            assert!(written.is_ok(), "{}: {written:?}", file.display());
        }
    }
}
