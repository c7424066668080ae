//! Transfers tasks to another queue, each after its upstreams.

use std::collections::{BTreeMap, HashMap, HashSet};

use interval_queue_task_contract::{
    Added, Command, Imported, LogLine, MAX_PAGE, MOVED, MOVING, NewEdge, Order, Reply, Selector, State,
    Stored, Tag, TaskId, Until, Verb,
};

use super::Transferred;
use crate::{TaskQueue, error::Error, flow::MAX_LISTED_EDGES, queue::unexpected};

/// Maximum per read and import.
const MAX_BATCH_TASKS: usize = 100;
/// Payloads and results, above which a batch is sent.
const MAX_BATCH_BYTES: usize = 1 << 20;

pub(super) struct Importer<'a, F> {
    from: &'a TaskQueue,
    to: &'a TaskQueue,
    /// The error of moved tasks. `None`: a copy.
    moved: Option<String>,
    there: HashSet<TaskId>,
    /// With the holders of their unique names there.
    pub(super) taken: BTreeMap<TaskId, TaskId>,
    batch: Vec<Imported>,
    bytes: usize,
    pub(super) done: Transferred,
    progress: F,
}

impl<'a, F: FnMut(&Transferred) + Send> Importer<'a, F> {
    pub(super) fn new(from: &'a TaskQueue, to: &'a TaskQueue, moved: Option<String>, progress: F) -> Self {
        let (there, batch, done) = (HashSet::new(), Vec::new(), Transferred::default());
        Self { from, to, moved, there, taken: BTreeMap::new(), batch, bytes: 0, done, progress }
    }

    pub(super) fn report(&mut self) {
        (self.progress)(&self.done);
    }

    /// Returns the tasks left: running, or without all upstreams there.
    pub(super) async fn round(&mut self, selector: &Selector) -> Result<Vec<TaskId>, Error> {
        let (mut after, mut left, mut graph) = (Some(Order::Oldest.start()), Vec::new(), Vec::new());
        let mut keyed = Vec::new();
        let mut running = 0;
        while let Some(from) = after {
            let page = self.from.page(selector, from, MAX_PAGE, false).await?;
            let (waiting, alone): (Vec<_>, Vec<_>) =
                page.tasks.into_iter().partition(|stored| stored.task.has_edges);
            let (of_keys, alone): (Vec<_>, Vec<_>) =
                alone.into_iter().partition(|stored| stored.task.key.is_some());
            keyed.extend(of_keys.iter().map(|stored| (stored.task.key_order(), stored.task.id)));
            let ids: Vec<TaskId> = alone.iter().map(|stored| stored.task.id).collect();
            left.extend(self.transfer(&ids).await?);
            running += self.done.running;
            graph.extend(waiting.into_iter().map(|stored| stored.task));
            after = page.next;
        }
        // Sorted, so that no task overtakes an earlier one of its key.
        keyed.sort();
        let ids: Vec<TaskId> = keyed.into_iter().map(|(_, id)| id).collect();
        left.extend(self.transfer(&ids).await?);
        running += self.done.running;
        let ordered = self.from.in_order(&graph).await?;
        left.extend(self.transfer(&ordered).await?);
        self.done.running += running;
        Ok(left)
    }

    /// Keeps this order. Returns the tasks left.
    pub(super) async fn transfer(&mut self, ids: &[TaskId]) -> Result<Vec<TaskId>, Error> {
        let mut left = Vec::new();
        self.done.running = 0;
        for ids in ids.chunks(MAX_BATCH_TASKS) {
            for stored in self.from.whole(ids).await? {
                let id = stored.task.id;
                match (&self.moved, stored.task.state) {
                    // Retried here, or transferred by another process.
                    (Some(moved), _) if !is_under_way(&stored, moved) => continue,
                    (None, State::Purged) => continue,
                    (None, State::Leased) => {
                        self.done.running += 1;
                        left.push(id);
                        continue;
                    }
                    _ => {}
                }
                let edges = self.edges(&stored).await?;
                let are_there = self.bring(&edges).await?;
                if are_there || self.moved.is_none() && stored.task.state.is_ended() {
                    self.take(stored, edges).await?;
                } else {
                    left.push(id);
                }
            }
            self.send().await?;
        }
        Ok(left)
    }

    /// `stored` lists only the first edges.
    async fn edges(&self, stored: &Stored) -> Result<Vec<NewEdge>, Error> {
        let of_row = stored.upstreams.iter().map(|edge| NewEdge {
            up: edge.up,
            name: edge.name.clone(),
            on_failure: edge.on_failure,
        });
        let mut edges: Vec<NewEdge> = of_row.collect();
        let mut after = edges.last().map(|edge| edge.up).filter(|_| edges.len() == MAX_LISTED_EDGES);
        while after.is_some() {
            let page = self.from.inputs(stored.task.id, after).await?;
            edges.extend(page.inputs.into_iter().map(|input| NewEdge {
                up: input.up,
                name: input.name,
                on_failure: input.on_failure,
            }));
            after = page.next;
        }
        Ok(edges)
    }

    /// Takes along ended upstreams with their results.
    async fn bring(&mut self, edges: &[NewEdge]) -> Result<bool, Error> {
        let unknown: Vec<TaskId> =
            edges.iter().map(|edge| edge.up).filter(|up| !self.there.contains(up)).collect();
        let ups = self.from.whole(&unknown).await?;
        let mut ups: HashMap<TaskId, Stored> = ups.into_iter().map(|up| (up.task.id, up)).collect();
        let mut are_there = true;
        for id in unknown {
            let has_ended = |up: &Stored| {
                let state = up.task.state;
                state.is_ended() && state != State::Purged && !has_left(up)
            };
            match ups.remove(&id).filter(has_ended) {
                Some(up) => self.take(up, Vec::new()).await?,
                None if self.to.whole(&[id]).await?.iter().any(|up| up.task.state != State::Purged) => {
                    self.there.insert(id);
                }
                None => are_there = false,
            }
        }
        Ok(are_there)
    }

    async fn take(&mut self, stored: Stored, mut edges: Vec<NewEdge>) -> Result<(), Error> {
        let Stored { mut task, payload, result, log, .. } = stored;
        if self.moved.as_ref().is_some_and(|moved| task.error.as_ref() == Some(moved)) {
            task.state = State::Added;
            task.ended = None;
            task.error = task.history.last().and_then(|run| run.error.clone());
            task.tags.retain(|tag| tag.as_str() != MOVING);
            let is_held = |until| until == Until::Ended || task.leased.is_none();
            task.holds_name = task.unique.as_ref().is_some_and(|unique| is_held(unique.until));
        }
        // Upstreams of an ended task may be deleted.
        edges.retain(|edge| self.there.contains(&edge.up));
        let mut named = HashSet::with_capacity(edges.len());
        edges.iter_mut().for_each(|edge| edge.up = *self.taken.get(&edge.up).unwrap_or(&edge.up));
        edges.retain(|edge| named.insert(edge.up));
        self.there.insert(task.id);
        let payload = payload.unwrap_or_default();
        self.bytes += payload.as_str().len() + result.as_ref().map_or(0, |result| result.as_str().len());
        self.bytes += log.iter().map(LogLine::size).sum::<usize>();
        self.batch.push(Imported { task, payload, result, log, edges });
        if self.bytes > MAX_BATCH_BYTES || self.batch.len() >= MAX_BATCH_TASKS {
            self.send().await?;
        }
        Ok(())
    }

    async fn send(&mut self) -> Result<(), Error> {
        self.bytes = 0;
        let batch = std::mem::take(&mut self.batch);
        if batch.is_empty() {
            return Ok(());
        }
        let mut ids: Vec<TaskId> = batch.iter().map(|one| one.task.id).collect();
        let added =
            match self.to.shared.command_with_retries("the import", Command::Import(batch.into())).await? {
                Reply::Added(added) => added,
                other => return Err(unexpected(&other)),
            };
        for (id, added) in ids.iter().zip(&added) {
            if let Added::Kept(holder) = added {
                self.taken.insert(*id, *holder);
                continue;
            }
            // The holder of its name in an earlier round may have ended.
            self.taken.remove(id);
            match added {
                Added::New(_) => self.done.new += 1,
                _ => self.done.again += 1,
            }
        }
        ids.retain(|id| !self.taken.contains_key(id));
        if self.moved.is_some() && !ids.is_empty() {
            self.from.change(&Selector::ids(ids), Verb::Untag(Tag::new(MOVING)?), false).await?;
        }
        self.report();
        Ok(())
    }
}

/// To any place: its state here is then no outcome.
fn has_left(stored: &Stored) -> bool {
    let error = stored.task.error.as_deref();
    stored.task.state == State::Cancelled && error.is_some_and(|error| error.starts_with(MOVED))
}

fn has_tag(stored: &Stored) -> bool {
    stored.task.tags.iter().any(|tag| tag.as_str() == MOVING)
}

fn is_under_way(stored: &Stored, moved: &str) -> bool {
    stored.task.state == State::Cancelled && has_tag(stored) && stored.task.error.as_deref() == Some(moved)
}
