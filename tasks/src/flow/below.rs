//! Commands on a flow, and on a task with its direct and indirect downstreams.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use interval_queue_task_contract::{
    Command, MAX_PAGE, Read, Reply, Selector, State, Stored, Task, TaskId, Verb,
};

use super::FlowId;
use crate::{TaskQueue, Touched, error::Error, queue::unexpected};

/// Of either sort, by a read of a task.
pub(crate) const MAX_LISTED_EDGES: usize = 100;

type Downs = BTreeMap<TaskId, Vec<TaskId>>;

impl TaskQueue {
    /// Applies `verb` to the tasks of a flow. [`Retry`](Verb::Retry) skips done tasks. A retry
    /// begins upstream, other verbs downstream, so that no task starts or is cancelled again
    /// because another is not changed yet. With `dry_run` nothing changes.
    ///
    /// # Errors
    ///
    /// As [`change_at_most`](Self::change_at_most). If no task of the flow is stored, nothing
    /// changes.
    ///
    /// # Cancel safety
    ///
    /// If dropped, a part may have been changed; repeating the call is safe.
    pub async fn change_flow(&self, flow: &FlowId, verb: Verb, dry_run: bool) -> Result<Touched, Error> {
        let stored = self.tasks_of(flow).await?;
        // One command changes all its tasks at once, so their order does not matter.
        let ids = if stored.len() <= MAX_PAGE as usize {
            stored.iter().map(|stored| stored.id).collect()
        } else {
            self.in_order(&stored).await?
        };
        self.change_ordered(ids, verb, false, dry_run).await
    }

    /// Runs all ended tasks of a flow again, including done ones.
    ///
    /// # Errors
    ///
    /// As [`change_flow`](Self::change_flow).
    ///
    /// # Cancel safety
    ///
    /// As [`change_flow`](Self::change_flow).
    pub async fn rerun_flow(&self, flow: &FlowId, dry_run: bool) -> Result<Touched, Error> {
        let stored = self.tasks_of(flow).await?;
        self.change_ordered(self.in_order(&stored).await?, Verb::Retry, true, dry_run).await
    }

    /// Runs a task and all its downstreams again, in any flow and including done ones: each after
    /// its upstreams have ended again. Tasks that have not started wait again; runs go on with
    /// their inputs.
    ///
    /// # Errors
    ///
    /// As [`change_from`](Self::change_from).
    ///
    /// # Cancel safety
    ///
    /// As [`change_flow`](Self::change_flow).
    pub async fn rerun_from(&self, id: TaskId, dry_run: bool) -> Result<Touched, Error> {
        self.change_ordered(in_topological_order(&self.below(id).await?), Verb::Retry, true, dry_run).await
    }

    /// As [`change_flow`](Self::change_flow), for a task and all its downstreams, in any flow. A
    /// retried task with an unsuccessful upstream outside these is cancelled again, or waits, as
    /// its edge sets.
    ///
    /// # Errors
    ///
    /// As [`change_at_most`](Self::change_at_most), and [`Missing`](crate::ErrorKind::Missing) if
    /// there is no such task.
    ///
    /// # Cancel safety
    ///
    /// As [`change_flow`](Self::change_flow).
    pub async fn change_from(&self, id: TaskId, verb: Verb, dry_run: bool) -> Result<Touched, Error> {
        let downs = self.below(id).await?;
        self.change_ordered(in_topological_order(&downs), verb, false, dry_run).await
    }

    /// Each task comes after its upstreams.
    pub(crate) async fn in_order(&self, tasks: &[Task]) -> Result<Vec<TaskId>, Error> {
        let mut downs: Downs = tasks.iter().map(|task| (task.id, Vec::new())).collect();
        for (down, ups) in self.edges_of(tasks).await? {
            for up in ups {
                if let Some(downs) = downs.get_mut(&up) {
                    downs.push(down);
                }
            }
        }
        Ok(in_topological_order(&downs))
    }

    async fn change_ordered(
        &self,
        mut ids: Vec<TaskId>,
        verb: Verb,
        is_rerun: bool,
        dry_run: bool,
    ) -> Result<Touched, Error> {
        let acts = |state: &State| match verb {
            Verb::Retry if !is_rerun => matches!(state, State::Failed | State::Cancelled),
            _ => verb.acts_on(*state),
        };
        let states: Vec<State> = State::ALL.into_iter().filter(acts).collect();
        if verb != Verb::Retry {
            ids.reverse();
        }
        let mut all = Touched::default();
        for ids in ids.chunks(MAX_PAGE as usize) {
            let selector = Selector { states: states.clone(), ..Selector::ids(ids.iter().copied()) };
            let touched = self.change_at_most(usize::MAX, &selector, verb.clone(), dry_run).await?;
            all.ids.extend(touched.ids);
            all.kept.extend(touched.kept);
            all.asked.extend(touched.asked);
            all.taken.extend(touched.taken);
        }
        Ok(all)
    }

    /// Includes indirect downstreams.
    async fn below(&self, id: TaskId) -> Result<Downs, Error> {
        let mut downs = Downs::new();
        let mut front = vec![id];
        while !front.is_empty() {
            let found = self.whole(&front).await?;
            if downs.is_empty() && found.is_empty() {
                return Err(Error::missing(id));
            }
            for stored in found {
                let below = self.downstreams(&stored).await?;
                downs.insert(stored.task.id, below);
            }
            let next: BTreeSet<TaskId> =
                front.iter().filter_map(|id| downs.get(id)).flatten().copied().collect();
            front = next.into_iter().filter(|id| !downs.contains_key(id)).collect();
        }
        Ok(downs)
    }

    /// Includes tasks that waited.
    async fn downstreams(&self, stored: &Stored) -> Result<Vec<TaskId>, Error> {
        let up = stored.task.id;
        let mut all: Vec<TaskId> = stored.downstreams.iter().map(|edge| edge.down).collect();
        let mut is_full = all.len() == MAX_LISTED_EDGES;
        while is_full {
            let read = Read::Downstreams { up, after: all.last().copied() };
            match self.shared.command_with_retries("the read", Command::Read(read)).await? {
                Reply::Downstreams(page) => {
                    is_full = page.len() == MAX_PAGE as usize;
                    all.extend(page);
                }
                other => return Err(unexpected(&other)),
            }
        }
        Ok(all)
    }

    async fn tasks_of(&self, flow: &FlowId) -> Result<Vec<Task>, Error> {
        let mut all = Vec::new();
        self.each(&flow.selector(), |task| all.push(task)).await?;
        Ok(all)
    }

    /// All upstreams, only of tasks that have some.
    async fn edges_of(&self, tasks: &[Task]) -> Result<Vec<(TaskId, Vec<TaskId>)>, Error> {
        let downs: Vec<TaskId> = tasks.iter().filter(|task| task.has_edges).map(|task| task.id).collect();
        let mut edges = Vec::with_capacity(downs.len());
        for stored in self.whole(&downs).await? {
            let id = stored.task.id;
            let mut ups: Vec<TaskId> = stored.upstreams.iter().map(|edge| edge.up).collect();
            let mut after = ups.last().copied().filter(|_| ups.len() == MAX_LISTED_EDGES);
            while after.is_some() {
                let page = self.inputs(id, after).await?;
                ups.extend(page.inputs.iter().map(|input| input.up));
                after = page.next;
            }
            edges.push((id, ups));
        }
        Ok(edges)
    }

    /// Skips ids that are not stored.
    pub(crate) async fn whole(&self, ids: &[TaskId]) -> Result<Vec<Stored>, Error> {
        let mut all = Vec::with_capacity(ids.len());
        let mut rest = ids;
        while !rest.is_empty() {
            let some = rest[..rest.len().min(MAX_PAGE as usize)].to_vec();
            let tasks =
                match self.shared.command_with_retries("the read", Command::Read(Read::Tasks(some))).await? {
                    Reply::Tasks(tasks) if !tasks.is_empty() => tasks,
                    other => return Err(unexpected(&other)),
                };
            // A reply of limited size may contain only the first tasks.
            rest = &rest[tasks.len().min(rest.len())..];
            all.extend(tasks.into_iter().flatten());
        }
        Ok(all)
    }
}

/// Each task comes after its upstreams.
fn in_topological_order(downs: &Downs) -> Vec<TaskId> {
    let mut waits: BTreeMap<TaskId, usize> = downs.keys().map(|&id| (id, 0)).collect();
    for down in downs.values().flatten() {
        waits.entry(*down).and_modify(|ups| *ups += 1);
    }
    let mut free: VecDeque<TaskId> = waits.iter().filter(|(_, ups)| **ups == 0).map(|(&id, _)| id).collect();
    let mut ordered = Vec::with_capacity(downs.len());
    while let Some(id) = free.pop_front() {
        ordered.push(id);
        for down in downs.get(&id).into_iter().flatten() {
            if let Some(ups) = waits.get_mut(down) {
                *ups -= 1;
                if *ups == 0 {
                    free.push_back(*down);
                }
            }
        }
    }
    // Edges that changed between two reads may form a cycle.
    ordered.extend(waits.into_iter().filter(|(_, ups)| *ups > 0).map(|(id, _)| id));
    ordered
}
