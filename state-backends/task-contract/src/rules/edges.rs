//! Notifications of downstreams about the end of a task: once per edge, within a budget of edges.

use super::Work;
use crate::{Edge, EdgeState, Rows, State, Task};

impl<R: Rows> Work<'_, R> {
    /// Returns false if the budget is spent and some are left.
    pub(super) fn notify_downstreams(&mut self, x: &Task, budget: &mut u32) -> Result<bool, R::Error> {
        let x = &self.let_go(x)?;
        let edges = self.rows.unnotified_from(x.id, x.generation, *budget)?;
        for edge in &edges {
            *budget -= 1;
            self.pass_edge(edge, x)?;
            let Some(down) = self.rows.task(edge.down)? else { continue };
            if down.state == State::Waiting {
                self.admit_or_cancel(down)?;
            }
        }
        if *budget == 0 && !self.rows.unnotified_from(x.id, x.generation, 1)?.is_empty() {
            return Ok(false);
        }
        self.save(x, &Task { notified: true, ..x.clone() })?;
        Ok(true)
    }

    /// Checks upstreams for the first time. Returns false if they exceed the budget.
    pub(super) fn check_upstreams(&mut self, x: &Task, budget: &mut u32) -> Result<bool, R::Error> {
        for edge in self.rows.edges_to(x.id, Some(EdgeState::New), None, *budget)? {
            *budget -= 1;
            match self.rows.task(edge.up)? {
                Some(up) if up.state.is_ended() => self.pass_edge(&edge, &up)?,
                Some(_) => self.rows.put_edge(&Edge { state: EdgeState::Open, ..edge })?,
                None => self.rows.put_edge(&Edge { state: EdgeState::Cut, ..edge })?,
            }
        }
        if *budget == 0 && !self.rows.edges_to(x.id, Some(EdgeState::New), None, 1)?.is_empty() {
            return Ok(false);
        }
        self.admit_or_cancel(x.clone())?;
        Ok(true)
    }

    /// Also ends the retention of an upstream without other downstreams.
    pub(super) fn remove_edge(&mut self, edge: &Edge) -> Result<(), R::Error> {
        self.rows.remove_edge(edge)?;
        if let Some(up) = self.rows.task(edge.up)?.filter(|up| up.retained)
            && self.rows.edges_from(up.id, None, 1)?.is_empty()
        {
            self.save(&up, &Task { retained: false, ..up.clone() })?;
        }
        Ok(())
    }

    fn pass_edge(&mut self, edge: &Edge, up: &Task) -> Result<(), R::Error> {
        self.rows.put_edge(&Edge { state: edge.after(up.state), generation: up.generation, ..edge.clone() })
    }

    pub(super) fn admit_or_cancel(&mut self, x: Task) -> Result<(), R::Error> {
        if let Some(cut) = self.rows.edges_to(x.id, Some(EdgeState::Cut), None, 1)?.first() {
            let why = format!("its upstream {} did not end well", cut.up);
            return self.end(&x, State::Cancelled, Some(&why));
        }
        if x.state == State::Waiting && self.rows.has_pending(x.id)? {
            return Ok(());
        }
        self.admit(&x, x.clone())
    }
}
