//! Tasks that come from another queue.

use interval_queue_contract::InvalidInput;
use serde::Serialize;

use crate::{
    Json, LogLine, MAX_ADD, MAX_EDGES, MAX_ERROR, MAX_HISTORY, MAX_LOG, MAX_PRIORITY, MAX_TAGS, MAX_WEIGHT,
    NewEdge, State, Task,
};

/// A task as another queue stored it, with its past runs.
///
/// A live task goes through the gates here; time of adding, order, runs and remaining attempts
/// stay. It is not imported if its unique name is held here. An ended task stays ended; its
/// retention begins now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Imported {
    /// The row. A leased task cannot be imported until its run has ended.
    pub task: Task,
    /// The handler's input.
    pub payload: Json,
    /// The result.
    pub result: Option<Json>,
    /// The log.
    pub log: Vec<LogLine>,
    /// Upstreams that are stored here, or earlier in the import.
    pub edges: Vec<NewEdge>,
}

pub(crate) fn check(tasks: &[Imported]) -> Result<(), InvalidInput> {
    let many = tasks.len();
    if many > MAX_ADD {
        return Err(InvalidInput::new(format!(
            "{many} tasks at once: import at most {MAX_ADD}, in several commands"
        )));
    }
    tasks.iter().try_for_each(Imported::check)
}

impl Imported {
    fn check(&self) -> Result<(), InvalidInput> {
        let x = &self.task;
        let wrong = |text: String| Err(InvalidInput::new(format!("task {}: {text}", x.id)));
        if matches!(x.state, State::Leased | State::Purged) {
            return wrong(format!("it is {}: import those that wait or have ended", x.state));
        }
        if !(-MAX_PRIORITY..=MAX_PRIORITY).contains(&x.priority) || !(1..=MAX_WEIGHT).contains(&x.weight) {
            return wrong(format!("priority {} and weight {} are out of their bounds", x.priority, x.weight));
        }
        if x.due.unsigned_abs() > interval_queue_contract::Micros::MAX.get() {
            return wrong(format!("it is due at {}, which is out of bounds", x.due));
        }
        if x.tags.len() > MAX_TAGS || x.history.len() > MAX_HISTORY || self.edges.len() > MAX_EDGES {
            let (tags, runs, edges) = (x.tags.len(), x.history.len(), self.edges.len());
            return wrong(format!(
                "{tags} tags, {runs} runs and {edges} upstreams: at most {MAX_TAGS}, {MAX_HISTORY} and {MAX_EDGES}"
            ));
        }
        self.log.iter().try_for_each(|line| crate::log::check_line(&line.text))?;
        let logged: usize = self.log.iter().map(LogLine::size).sum();
        if logged > 2 * MAX_LOG {
            return wrong(format!("a log of {logged} bytes: at most {MAX_LOG}"));
        }
        // A cut-off error has a suffix beyond `MAX_ERROR`.
        let is_long =
            |error: &Option<String>| error.as_ref().is_some_and(|error| error.len() > 2 * MAX_ERROR);
        if is_long(&x.error) || x.history.iter().any(|run| is_long(&run.error)) {
            return wrong(format!("an error is longer than {MAX_ERROR} bytes"));
        }
        if x.ordered && x.key.is_none() {
            return wrong("it is ordered and has no key".into());
        }
        x.policy.check()
    }
}
