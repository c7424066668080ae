//! What is below a task, and what is done with a whole flow or with all below a task.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use interval_queue_task_contract::{Command, MAX_PAGE, Read, Reply, Selector, State, Stored, TaskId, Verb};

use super::FlowId;
use crate::{TaskQueue, Touched, error::Error, queue::unexpected};

/// So many upstreams and downstreams a look at a task lists at most.
pub(crate) const LISTED: usize = 100;

/// The downstreams of tasks.
type Downs = BTreeMap<TaskId, Vec<TaskId>>;

impl TaskQueue {
    /// Does something with the tasks of a flow. [`Retry`](Verb::Retry) takes those that failed or were cancelled: what
    /// is done stays done. A retry begins above and everything else below, so that no task of the flow starts, or is
    /// cancelled again, since another one is not changed yet. With `dry_run` nothing is done, only told what would be.
    ///
    /// # Errors
    ///
    /// As [`change`](Self::change). If no task of the flow is stored, nothing is touched.
    ///
    /// # Cancel safety
    ///
    /// Dropped, a part of it may have been done; to do it again is safe.
    pub async fn change_flow(&self, flow: &FlowId, verb: Verb, dry_run: bool) -> Result<Touched, Error> {
        let stored = self.tasks_of(flow).await?;
        // What one command changes has no order.
        let ids = if stored.len() <= MAX_PAGE as usize {
            stored.iter().map(|stored| stored.task.id).collect()
        } else {
            self.in_order(&stored).await?
        };
        self.change_ordered(ids, verb, false, dry_run).await
    }

    /// Runs all tasks of a flow again that have ended, also those that are done.
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

    /// Runs a task and all below it again, in whatever flows, also what is done: each when those that it waits for
    /// have ended once more. What has not started waits again, too; what runs goes on with what it has got.
    ///
    /// # Errors
    ///
    /// As [`change_from`](Self::change_from).
    ///
    /// # Cancel safety
    ///
    /// As [`change_flow`](Self::change_flow).
    pub async fn rerun_from(&self, id: TaskId, dry_run: bool) -> Result<Touched, Error> {
        self.change_ordered(from_above(&self.below(id).await?), Verb::Retry, true, dry_run).await
    }

    /// The same with a task and all below it, in whatever flows: those that wait for it, those that wait for them, and
    /// so on. One that is retried and waits for another upstream as well, which did not end well and is not below the
    /// task, is cancelled again, or waits, as its edge says.
    ///
    /// # Errors
    ///
    /// As [`change`](Self::change); [`Missing`](crate::ErrorKind::Missing) if there is no such task.
    ///
    /// # Cancel safety
    ///
    /// As [`change_flow`](Self::change_flow).
    pub async fn change_from(&self, id: TaskId, verb: Verb, dry_run: bool) -> Result<Touched, Error> {
        let downs = self.below(id).await?;
        self.change_ordered(from_above(&downs), verb, false, dry_run).await
    }

    /// The ids of these tasks, each behind all of them that it waits for.
    pub(crate) async fn in_order(&self, tasks: &[Stored]) -> Result<Vec<TaskId>, Error> {
        let mut downs: Downs = tasks.iter().map(|stored| (stored.task.id, Vec::new())).collect();
        for (down, ups) in self.edges_of(tasks).await? {
            for up in ups {
                if let Some(downs) = downs.get_mut(&up) {
                    downs.push(down);
                }
            }
        }
        Ok(from_above(&downs))
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

    /// A task and all below it, with their downstreams.
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

    /// All that waits for a task, or did.
    async fn downstreams(&self, stored: &Stored) -> Result<Vec<TaskId>, Error> {
        let up = stored.task.id;
        let mut all: Vec<TaskId> = stored.downstreams.iter().map(|edge| edge.down).collect();
        let mut is_full = all.len() == LISTED;
        while is_full {
            let read = Read::Downstreams { up, after: all.last().copied() };
            match self.shared.insist("the look", Command::Read(read)).await? {
                Reply::Downstreams(page) => {
                    is_full = page.len() == MAX_PAGE as usize;
                    all.extend(page);
                }
                other => return Err(unexpected(&other)),
            }
        }
        Ok(all)
    }

    /// The tasks of a flow.
    async fn tasks_of(&self, flow: &FlowId) -> Result<Vec<Stored>, Error> {
        let (selector, mut after, mut all) = (flow.selector(), None, Vec::new());
        loop {
            let page = self.page(&selector, after, MAX_PAGE, false).await?;
            all.extend(page.tasks);
            after = page.next;
            if after.is_none() {
                return Ok(all);
            }
        }
    }

    /// Those of them that have upstreams, with these.
    async fn edges_of(&self, tasks: &[Stored]) -> Result<Vec<(TaskId, Vec<TaskId>)>, Error> {
        let downs: Vec<TaskId> =
            tasks.iter().filter(|stored| stored.task.has_edges).map(|stored| stored.task.id).collect();
        let mut edges = Vec::with_capacity(downs.len());
        for stored in self.whole(&downs).await? {
            let id = stored.task.id;
            let mut ups: Vec<TaskId> = stored.upstreams.iter().map(|edge| edge.up).collect();
            let mut after = ups.last().copied().filter(|_| ups.len() == LISTED);
            while after.is_some() {
                let page = self.inputs(id, after).await?;
                ups.extend(page.inputs.iter().map(|input| input.up));
                after = page.next;
            }
            edges.push((id, ups));
        }
        Ok(edges)
    }

    /// Tasks with all that belongs to them; those that are not stored are left out.
    pub(crate) async fn whole(&self, ids: &[TaskId]) -> Result<Vec<Stored>, Error> {
        let mut all = Vec::with_capacity(ids.len());
        let mut rest = ids;
        while !rest.is_empty() {
            let some = rest[..rest.len().min(MAX_PAGE as usize)].to_vec();
            let tasks = match self.shared.insist("the look", Command::Read(Read::Tasks(some))).await? {
                Reply::Tasks(tasks) if !tasks.is_empty() => tasks,
                other => return Err(unexpected(&other)),
            };
            // A reply may have the first of them alone.
            rest = &rest[tasks.len().min(rest.len())..];
            all.extend(tasks.into_iter().flatten());
        }
        Ok(all)
    }
}

/// Each behind all that it waits for, as far as they are among these.
fn from_above(downs: &Downs) -> Vec<TaskId> {
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
    // A link between two looks may have turned an edge.
    ordered.extend(waits.into_iter().filter(|(_, ups)| *ups > 0).map(|(id, _)| id));
    ordered
}
