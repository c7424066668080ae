//! Verbs on selected tasks, in bounded commands up to a watermark.

use std::collections::HashMap;

use interval_queue_contract::Micros;

use super::Work;
use crate::{
    AttemptEnd, ChangeTasks, Cursor, Edge, EdgeState, Key, MAX_EDGES, MAX_TAGS, MOVED, MOVING, Order, Reply,
    Rows, State, Stop, Tag, Task, TaskId, Touched, Verb,
};

const MAX_SEARCHED_TASKS: u32 = 20;

impl<R: Rows> Work<'_, R> {
    pub(super) fn change_tasks(&mut self, change: &ChangeTasks) -> Result<Reply, R::Error> {
        let watermark = change.watermark.unwrap_or(self.adding_time() + Micros::new(1));
        let to = self.linked_to(&change.verb)?;
        let mut selector = change.selector.clone();
        let before = selector.added_before.map_or(watermark, |before| before.min(watermark));
        selector.added_before = Some(before);
        if selector.states.is_empty() {
            selector.states = State::ALL.to_vec();
        }
        selector.states.retain(|&state| change.verb.acts_on(state));
        let mut touched = Touched { watermark, ..Touched::default() };
        if selector.states.is_empty() {
            return Ok(Reply::Touched(touched));
        }
        let limit = if to.as_ref().is_some_and(|up| up.has_edges) {
            change.limit.min(MAX_SEARCHED_TASKS)
        } else {
            change.limit
        };
        let found;
        (found, touched.next) =
            self.select(&selector, change.after.unwrap_or(Order::Oldest.start()), limit)?;
        let mut budget = MAX_EDGES as u32;
        let mut given: HashMap<Key, TaskId> = HashMap::new();
        for selected in found {
            let id = selected.id;
            // Another selected task's change may have changed this one.
            let needs_change = |x: &Task| change.verb.acts_on(x.state) && !change.verb.is_done_to(x);
            let Some(x) = self.rows.task(id)?.filter(needs_change) else { continue };
            if self.is_linked_so(&change.verb, id)? {
                continue;
            }
            let edges = match change.verb {
                Verb::Retry | Verb::Link(_) | Verb::Purge if x.has_edges => {
                    self.rows.edges_to(id, None, None, MAX_EDGES as u32)?.len() as u32
                }
                _ => 0,
            };
            let below = match change.verb {
                Verb::Retry | Verb::Purge => self.rows.edges_from(id, None, MAX_EDGES as u32)?.len() as u32,
                _ => 0,
            };
            if let (Verb::Retry, Some(unique)) = (&change.verb, &x.unique) {
                let holder = self.rows.by_name(&unique.name)?.map(|holder| holder.id);
                if let Some(holder) = holder.or(given.get(&unique.name).copied()) {
                    touched.taken.push((id, holder));
                    continue;
                }
                given.insert(unique.name.clone(), id);
            }
            let is_touched = match change.verb {
                Verb::Purge => !self.is_needed(id)?,
                Verb::Tag(_) => x.tags.len() < MAX_TAGS,
                // There it would run concurrently with a task of its key here.
                Verb::Move(_) => match &x.key {
                    Some(key) => self.rows.leased_of_key(key)? == 0,
                    None => true,
                },
                Verb::Link(_) => match &to {
                    Some(up) => self.may_wait_for(&x, edges, up)?,
                    None => false,
                },
                _ => true,
            };
            if is_touched {
                let is_whole = change.dry_run || change.verb != Verb::Purge || self.remove_edges_of(&x)?;
                if !is_whole {
                    touched.next = Some(Cursor::just_before(&selected));
                    break;
                }
                if change.verb == Verb::Cancel && x.state == State::Leased {
                    touched.asked.push(id);
                }
                if !change.dry_run {
                    self.change_task(x, &change.verb)?;
                }
                touched.ids.push(id);
            } else {
                touched.kept.push(id);
            }
            budget = budget.saturating_sub(edges + below);
            if budget == 0 {
                touched.next = Order::Oldest.position(&selected);
                break;
            }
        }
        Ok(Reply::Touched(touched))
    }

    /// Waited for, or its result is used.
    fn is_needed(&mut self, up: TaskId) -> Result<bool, R::Error> {
        let mut is_needed = false;
        for edge in self.rows.edges_from(up, None, MAX_EDGES as u32)? {
            is_needed |= self.rows.task(edge.down)?.is_some_and(|down| !down.state.is_ended());
        }
        Ok(is_needed)
    }

    /// Returns false if there are more than a command may read.
    fn remove_edges_of(&mut self, x: &Task) -> Result<bool, R::Error> {
        for edge in self.rows.edges_from(x.id, None, MAX_EDGES as u32)? {
            self.rows.remove_edge(&edge)?;
        }
        if x.has_edges {
            for edge in self.rows.edges_to(x.id, None, None, MAX_EDGES as u32)? {
                self.remove_edge(&edge)?;
            }
        }
        Ok(self.rows.edges_from(x.id, None, 1)?.is_empty())
    }

    fn change_task(&mut self, x: Task, verb: &Verb) -> Result<(), R::Error> {
        match verb {
            Verb::Cancel | Verb::Release if x.state == State::Leased => {
                let stop = match (verb, x.stop) {
                    (Verb::Release, Some(stop)) => stop,
                    (Verb::Release, None) => Stop::Release,
                    _ => Stop::Cancel,
                };
                self.notifies = true;
                self.save(&x, &Task { stop: Some(stop), ..x.clone() })
            }
            Verb::Cancel => self.end(&x, State::Cancelled, Some("it was cancelled")),
            Verb::Release => self.admit(&x, Task { not_before: x.not_before.min(self.now), ..x.clone() }),
            Verb::Retry => self.retry(x),
            Verb::Delay(delay) => self.reorder(&x, Task { not_before: self.now + *delay, ..x.clone() }),
            Verb::Priority(priority) => self.reorder(&x, Task { priority: *priority, ..x.clone() }),
            Verb::Tag(tag) => {
                let mut after = x.clone();
                after.tags.push(tag.clone());
                self.save(&x, &after)
            }
            Verb::Untag(tag) => {
                let mut after = x.clone();
                after.tags.retain(|one| one != tag);
                self.save(&x, &after)
            }
            Verb::Move(to) => {
                let mut after = Task { error: Some(format!("{MOVED}{to}")), ..x.clone() };
                after.tags.extend(Tag::new(MOVING));
                // Marked as notified: downstreams, here or moved, keep waiting.
                (after.notified, after.holds_key) = (true, false);
                let after = self.save_end(&x, after, State::Cancelled)?;
                self.release_kept_instant(&after)?;
                self.free(&x, &after)
            }
            Verb::Link(edge) => self.link(x, edge),
            Verb::Unlink(up) => self.unlink(x, *up),
            Verb::Purge => {
                self.rows.put_payload(x.id, None)?;
                self.rows.put_result(x.id, None)?;
                self.rows.put_log(x.id, &[])?;
                self.save(
                    &x,
                    &Task {
                        state: State::Purged,
                        error: None,
                        history: Vec::new(),
                        progress: None,
                        has_edges: false,
                        retained: false,
                        ..x.clone()
                    },
                )
            }
        }
    }

    /// As if added so, and back to its gates. A run goes on.
    fn reorder(&mut self, x: &Task, mut after: Task) -> Result<(), R::Error> {
        // After a run, `not_before` is the time of the next attempt, which does not change `due`.
        let is_since_added = x.leased.is_some() && after.not_before == x.not_before;
        after.due = self.due(&after, if is_since_added { Micros::ZERO } else { after.not_before });
        match x.state {
            State::Leased => return self.save(x, &after),
            // A passed time gate stays passed when the clock steps back.
            State::Blocked | State::Ready if after.not_before == x.not_before => {
                after.not_before = x.not_before.min(self.now);
            }
            _ => {}
        }
        // Another task of the key may be more urgent now.
        after.holds_key &= x.ordered && x.leased.is_some();
        self.admit(x, after)
    }

    fn retry(&mut self, x: Task) -> Result<(), R::Error> {
        let mut after = Task {
            generation: x.generation.saturating_add(1),
            stop: None,
            progress: None,
            ended: None,
            ended_lease_clock: None,
            notified: false,
            retained: false,
            // A task completed within a transaction may still hold its key.
            holds_key: false,
            ..x.clone()
        };
        after.tags.retain(|tag| tag.as_str() != MOVING);
        // A task that left and did not arrive keeps its runs and times.
        if after.tags.len() == x.tags.len() {
            (after.failures, after.retries, after.returns) = (0, 0, 0);
            after.not_before = Micros::ZERO;
        }
        // The history has the last run already if the task ended between two runs.
        if x.leased.is_some() && x.history.last().is_none_or(|last| last.token != x.token) {
            let end = if x.state == State::Done { AttemptEnd::Done } else { AttemptEnd::Error };
            after.remember(end, x.ended.unwrap_or(self.now));
        }
        after.holds_name = x.unique.is_some();
        after.deadline = x.deadline.filter(|&deadline| deadline > self.now);
        self.rows.put_result(x.id, None)?;
        after.state = State::Added;
        self.notifies = true;
        if x.has_edges {
            self.reopen_edges(x.id)?;
            self.save(&x, &after)?;
            self.free(&x, &after)?;
        } else {
            self.admit(&x, after)?;
        }
        self.reopen_below(x.id)
    }

    /// Downstreams that used the end of `up` and have not started wait again.
    fn reopen_below(&mut self, up: TaskId) -> Result<(), R::Error> {
        for edge in self.rows.edges_from(up, None, MAX_EDGES as u32)? {
            let down = match edge.state {
                EdgeState::Met | EdgeState::Failed => self.rows.task(edge.down)?,
                _ => None,
            };
            if let Some(down) = down.filter(|down| !down.state.is_ended() && down.state != State::Leased) {
                self.rows.put_edge(&Edge { state: EdgeState::New, ..edge })?;
                self.back_to_edges(down)?;
            }
        }
        Ok(())
    }

    fn reopen_edges(&mut self, down: TaskId) -> Result<(), R::Error> {
        for edge in self.rows.edges_to(down, None, None, MAX_EDGES as u32)? {
            if edge.state != EdgeState::New {
                self.rows.put_edge(&Edge { state: EdgeState::New, ..edge })?;
            }
        }
        Ok(())
    }
}
