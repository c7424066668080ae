//! Imports: live tasks begin at their gates, ended ones stay ended.

use std::collections::{HashMap, HashSet};

use super::{Work, refused};
use crate::{Added, Edge, EdgeState, Imported, Refusal, Reply, Rows, State, Task, TaskId};

impl<R: Rows> Work<'_, R> {
    pub(super) fn import(&mut self, tasks: &[Imported]) -> Result<Reply, R::Error> {
        let mut added = Vec::with_capacity(tasks.len());
        // For each task kept out by its unique name, the stored task.
        let mut stands: HashMap<TaskId, TaskId> = HashMap::new();
        for one in tasks {
            let id = one.task.id;
            if self.rows.task(id)?.is_some() {
                added.push(Added::Again(id));
                continue;
            }
            let name = one.task.unique.as_ref().filter(|_| one.task.holds_name && !one.task.state.is_ended());
            if let Some(unique) = name
                && let Some(holder) = self.rows.by_name(&unique.name)?
            {
                stands.insert(id, holder.id);
                added.push(Added::Kept(holder.id));
                continue;
            }
            self.import_one(one, &stands)?;
            added.push(Added::New(id));
        }
        Ok(Reply::Added(added))
    }

    fn import_one(&mut self, one: &Imported, stands: &HashMap<TaskId, TaskId>) -> Result<(), R::Error> {
        let x = &one.task;
        self.check_size(x.id, &one.payload)?;
        if let Some(result) = &one.result {
            self.check_size(x.id, result)?;
        }
        let mut named = HashSet::with_capacity(one.edges.len());
        for edge in &one.edges {
            let of = *stands.get(&edge.up).unwrap_or(&edge.up);
            // A stored task may replace several upstreams.
            if !named.insert(of) {
                continue;
            }
            let Some(up) = self.rows.task(of)?.filter(|up| up.state != State::Purged) else {
                return Err(refused(Refusal::NotImported(x.id, edge.up)));
            };
            let (name, on_failure) = (edge.name.clone(), edge.on_failure);
            let new = Edge { up: up.id, down: x.id, name, on_failure, state: EdgeState::New, generation: 0 };
            // An ended task checks no upstream.
            let state = match x.state.is_ended() {
                true if up.state.is_ended() => new.after(up.state),
                true => EdgeState::Open,
                false => EdgeState::New,
            };
            self.rows.insert_edge(&Edge { state, generation: up.generation, ..new })?;
        }
        let mut after = Task {
            state: if x.state.is_ended() { x.state } else { State::Added },
            has_edges: !one.edges.is_empty(),
            holds_key: false,
            unserved: false,
            stop: None,
            prefetched: false,
            notified: x.state.is_ended(),
            retained: false,
            ended_lease_clock: x.state.is_ended().then_some(self.lease_clock),
            ..x.clone()
        };
        after.holds_name &= x.unique.is_some() && !x.state.is_ended();
        let (added, position) = (x.added, x.position);
        let bare = Task { kind: x.kind.clone(), added, position, due: x.due, ..Task::bare(x.id) };
        self.insert(&bare, &one.payload)?;
        self.count_added(&x.kind)?;
        self.rows.put_result(x.id, one.result.as_ref())?;
        if !one.log.is_empty() {
            self.rows.put_log(x.id, &one.log)?;
        }
        self.count_end(&x.kind, x.state)?;
        self.notifies |= !x.state.is_ended();
        self.save(&bare, &after)
    }
}
