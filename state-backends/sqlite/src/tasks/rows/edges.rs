//! The rows of edges.

use interval_queue_task_contract::{Edge, EdgeState, TaskId};

use super::{select, tables::Tables};
use crate::store::Fault;

const STATES: [EdgeState; 6] =
    [EdgeState::New, EdgeState::Open, EdgeState::Met, EdgeState::Failed, EdgeState::Held, EdgeState::Cut];

impl Tables<'_> {
    pub(super) fn forget_edge(&mut self, edge: &Edge) -> Result<(), Fault> {
        let queue = self.number()?;
        let sql = "DELETE FROM interval_queue_task_edge WHERE queue = ?1 AND up = ?2 AND down = ?3";
        self.execute(sql, (queue, edge.up.to_string(), edge.down.to_string()))?;
        Ok(())
    }

    pub(super) fn downstreams(
        &mut self,
        up: TaskId,
        after: Option<TaskId>,
        most: u32,
    ) -> Result<Vec<Edge>, Fault> {
        let queue = self.number()?;
        let sql = select!(Edge, "WHERE queue = ?1 AND up = ?2 AND down > ?3 ORDER BY down LIMIT ?4");
        let after = after.map_or_else(String::new, |after| after.to_string());
        self.rows(sql, (queue, up.to_string(), after, most))
    }

    /// Edges with [pending notifications](Edge::is_unnotified), by downstream.
    pub(super) fn unnotified_downstreams(
        &mut self,
        up: TaskId,
        generation: u32,
        most: u32,
    ) -> Result<Vec<Edge>, Fault> {
        let queue = self.number()?;
        let open = select!(
            Edge,
            "INDEXED BY interval_queue_task_edge_open WHERE queue = ?1 AND up = ?2 AND (state = 'new' OR state = 'open') \
             ORDER BY down LIMIT ?3"
        );
        let held = select!(
            Edge,
            "INDEXED BY interval_queue_task_edge_held WHERE queue = ?1 AND up = ?2 AND state = 'held' AND generation < ?4 \
             ORDER BY generation, down LIMIT ?3"
        );
        let mut unnotified: Vec<Edge> = self.rows(open, (queue, up.to_string(), most))?;
        // No edge is held in an earlier generation than the first.
        if generation > 0 {
            unnotified.extend(self.rows::<Edge>(held, (queue, up.to_string(), most, generation))?);
        }
        unnotified.sort_unstable_by_key(|edge| edge.down);
        unnotified.truncate(most as usize);
        Ok(unnotified)
    }

    pub(super) fn upstreams(
        &mut self,
        down: TaskId,
        state: Option<EdgeState>,
        after: Option<TaskId>,
        most: u32,
    ) -> Result<Vec<Edge>, Fault> {
        let queue = self.number()?;
        let sql = select!(
            Edge,
            "INDEXED BY interval_queue_task_edge_down WHERE queue = ?1 AND down = ?2 AND state = ?3 AND up > ?4 \
             ORDER BY up LIMIT ?5"
        );
        let (down, after) = (down.to_string(), after.map_or_else(String::new, |id| id.to_string()));
        let mut edges = Vec::new();
        for one in state.as_ref().map_or(&STATES[..], std::slice::from_ref) {
            edges.extend(self.rows::<Edge>(sql, (queue, &down, one.as_str(), &after, most))?);
        }
        edges.sort_unstable_by_key(|edge| edge.up);
        edges.truncate(most as usize);
        Ok(edges)
    }

    pub(super) fn waits_for_some(&mut self, down: TaskId) -> Result<bool, Fault> {
        let queue = self.number()?;
        let sql = "SELECT EXISTS (SELECT 1 FROM interval_queue_task_edge INDEXED BY interval_queue_task_edge_down \
                   WHERE queue = ?1 AND down = ?2 AND state IN ('new', 'open', 'held'))";
        self.value(sql, (queue, down.to_string()))
    }
}
