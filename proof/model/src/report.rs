//! Runs the checker on a model, and tells what came out.

use std::{collections::BTreeSet, env, fmt::Debug, fs, hash::Hash, mem, path::PathBuf, sync::MutexGuard};

use serde_json::json;
use stateright::{Checker, HasDiscoveries, Model, Path};

use crate::{Action, Promise, Sight};

/// A model that notes what it comes across.
pub(crate) trait Explored: Send + Sync + 'static
where
    Self: Model<
            State: Clone + Hash + PartialEq + Send + Sync + 'static,
            Action: Clone + Debug + PartialEq + Send + Sync + 'static,
        >,
{
    type Promise: Copy + Debug + Send;
    type Sight: Copy + Debug + Ord + Send;
    /// The kind of its rows of evidence.
    const KIND: &'static str;

    fn found(&self) -> MutexGuard<'_, Found<Self::Promise, Self::Sight>>;
    /// A promise in a sentence.
    fn text(promise: Self::Promise) -> &'static str;
    /// What happens from every state within so many ticks, in words.
    fn calm(&self, ticks: u64) -> String;
    /// A way in words, one line for each thing that happens.
    fn story(&self, actions: &[Self::Action]) -> Vec<String>;
}

/// What was found on the way through all states.
#[derive(Debug)]
pub(crate) struct Found<P, S> {
    pub(crate) sights: BTreeSet<S>,
    /// The promise that was broken first.
    pub(crate) broken: Option<P>,
    /// The longest that the living had to wait once all trouble was over, in ticks.
    pub(crate) slowest: u64,
}

impl<P, S> Default for Found<P, S> {
    fn default() -> Self {
        Self { sights: BTreeSet::new(), broken: None, slowest: 0 }
    }
}

impl<P, S> Found<P, S> {
    /// Whether the state breaks nothing. Only the first state that does is told: stateright would put each
    /// later one in its place, and the first is at the end of a shortest way.
    pub(crate) fn keeps(&mut self, broken: impl FnOnce(&mut Self) -> Option<P>) -> bool {
        if self.broken.is_none() {
            self.broken = broken(self);
            return self.broken.is_none();
        }
        true
    }
}

/// What the checker found in a setup.
#[derive(Clone, Debug)]
pub struct Verdict<P = Promise, A = Action, S = Sight> {
    /// How many different states were reached.
    pub states: usize,
    /// How many things in a row lead to the furthest state.
    pub depth: usize,
    /// What happens from every state once there is no more trouble, and within which time.
    pub calm: String,
    /// What happened somewhere.
    pub sights: BTreeSet<S>,
    /// The promise that is broken first, and a shortest way to it.
    pub refuted: Option<(P, Vec<A>)>,
    /// That way in words, one line for each thing that happens.
    pub story: Vec<String>,
    kind: &'static str,
    /// The broken promise in a sentence.
    broken: &'static str,
}

/// Explores everything that can happen in the model, until there is nothing new or a promise is broken.
///
/// # Panics
///
/// The checker stopped half-way.
pub(crate) fn explore<M: Explored>(model: M) -> Verdict<M::Promise, M::Action, M::Sight> {
    // One thread: only so the first way found is a shortest one. Tests run beside each other anyway.
    let checker = model.checker().finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    assert!(checker.is_done() || !checker.discoveries().is_empty(), "the checker stopped half-way");
    let model = checker.model();
    let Found { sights, broken, slowest } = mem::take(&mut *model.found());
    let refuted = broken.zip(checker.discoveries().into_values().next().map(Path::into_actions));
    Verdict {
        states: checker.unique_state_count(),
        depth: checker.max_depth(),
        calm: model.calm(slowest),
        sights,
        story: refuted.as_ref().map(|(_, actions)| model.story(actions)).unwrap_or_default(),
        refuted,
        kind: M::KIND,
        broken: broken.map(M::text).unwrap_or_default(),
    }
}

impl<P, A, S: Debug> Verdict<P, A, S> {
    /// Prints the verdict, and writes it to the directory named by `INTERVAL_QUEUE_EVIDENCE`, if one is.
    ///
    /// # Panics
    ///
    /// The directory cannot be written to.
    pub fn tell(&self, name: &str, what: &str, promised: &str) {
        let Self { states, depth, calm, sights, refuted, story, kind, broken } = self;
        let happened = match refuted {
            None => format!(
                "no violation in {states} states, up to {depth} things in a row; from each of them {calm}"
            ),
            Some((_, actions)) => {
                format!("refuted in {} steps, {broken}: {}", actions.len(), story.join("; "))
            }
        };
        println!("{name}: {what}, {states} states\n  {sights:?}\n  {happened}");
        if let Some(directory) = env::var_os("INTERVAL_QUEUE_EVIDENCE").map(PathBuf::from) {
            let row = json!([{
                "kind": kind,
                "where": "rules",
                "fault": what,
                "injected": states,
                "promised": promised,
                "happened": happened,
            }]);
            let file = directory.join(format!("{kind}-{name}.json"));
            let written =
                fs::create_dir_all(&directory).and_then(|()| fs::write(&file, format!("{row:#}\n")));
            assert!(written.is_ok(), "{}: {written:?}", file.display());
        }
    }
}
