//! Edges added to and removed from stored tasks. None closes a cycle.

use std::collections::HashSet;

use super::{Work, refused};
use crate::{
    Edge, EdgeState, MAX_CYCLE_SEARCH, MAX_EDGES, NewEdge, Refusal, Rows, State, Task, TaskId, Verb,
};

impl<R: Rows> Work<'_, R> {
    pub(super) fn linked_to(&mut self, verb: &Verb) -> Result<Option<Task>, R::Error> {
        let Verb::Link(edge) = verb else { return Ok(None) };
        match self.rows.task(edge.up)?.filter(|up| up.state != State::Purged) {
            Some(up) => Ok(Some(up)),
            None => Err(refused(Refusal::NoTask(edge.up))),
        }
    }

    pub(super) fn is_linked_so(&mut self, verb: &Verb, down: TaskId) -> Result<bool, R::Error> {
        Ok(match verb {
            Verb::Link(edge) => self.edge(edge.up, down)?.is_some(),
            Verb::Unlink(up) => self.edge(*up, down)?.is_none(),
            _ => false,
        })
    }

    /// `edges`: the upstreams of `x`.
    pub(super) fn may_wait_for(&mut self, x: &Task, edges: u32, up: &Task) -> Result<bool, R::Error> {
        let makes_a_cycle = x.id == up.id || up.has_edges && self.is_waited_for_by(x.id, up.id)?;
        Ok(!makes_a_cycle && edges < MAX_EDGES as u32)
    }

    /// Also through other tasks. True if the search gets too large.
    fn is_waited_for_by(&mut self, x: TaskId, other: TaskId) -> Result<bool, R::Error> {
        let (mut seen, mut left) = (HashSet::from([x]), vec![x]);
        while let Some(of) = left.pop() {
            for edge in self.rows.edges_from(of, None, MAX_CYCLE_SEARCH + 1)? {
                if edge.down == other {
                    return Ok(true);
                }
                if seen.insert(edge.down) {
                    left.push(edge.down);
                }
            }
            // `seen` contains `x` itself.
            if seen.len() > MAX_CYCLE_SEARCH as usize + 1 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Its permit goes to others.
    pub(super) fn link(&mut self, x: Task, edge: &NewEdge) -> Result<(), R::Error> {
        let NewEdge { up, name, on_failure } = edge.clone();
        self.rows.insert_edge(&Edge {
            up,
            down: x.id,
            name,
            on_failure,
            state: EdgeState::New,
            generation: 0,
        })?;
        self.back_to_edges(x)
    }

    pub(super) fn back_to_edges(&mut self, x: Task) -> Result<(), R::Error> {
        self.notifies = true;
        let mut after = Task { has_edges: true, ..x.clone() };
        // A passed time gate stays passed when the clock steps back.
        if matches!(x.state, State::Blocked | State::Ready) {
            after.not_before = x.not_before.min(self.now);
        }
        self.admit(&x, after)
    }

    pub(super) fn unlink(&mut self, x: Task, up: TaskId) -> Result<(), R::Error> {
        if let Some(edge) = self.edge(up, x.id)? {
            self.remove_edge(&edge)?;
        }
        self.notifies = true;
        match x.state {
            State::Waiting => self.admit_or_cancel(x),
            _ => Ok(()),
        }
    }

    fn edge(&mut self, up: TaskId, down: TaskId) -> Result<Option<Edge>, R::Error> {
        let first = self.rows.edges_to(down, None, up.before(), 1)?.into_iter().next();
        Ok(first.filter(|edge| edge.up == up))
    }
}
