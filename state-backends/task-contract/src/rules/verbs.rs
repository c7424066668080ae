//! Verbs on selected tasks, in bounded commands up to a watermark.

use interval_queue_contract::Micros;

use super::Work;
use crate::{AttemptEnd, ChangeTasks, Reply, Rows, State, Stop, Task, TaskId, Touched, Verb};

impl<R: Rows> Work<'_, R> {
    pub(super) fn change_tasks(&mut self, change: &ChangeTasks) -> Result<Reply, R::Error> {
        let watermark = change.watermark.unwrap_or(self.adding_time() + Micros::new(1));
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
        let found = self.rows.select(&selector, change.after, change.limit)?;
        if found.len() == change.limit as usize {
            touched.next = found.last().map(|x| x.id);
        }
        for id in found.into_iter().map(|x| x.id) {
            // Another one of them may have changed it.
            let Some(x) = self.rows.task(id)?.filter(|x| change.verb.acts_on(x.state)) else { continue };
            let is_touched = match change.verb {
                Verb::Purge => self.rows.edges_from(id, None, 1)?.is_empty(),
                Verb::Cancel | Verb::Retry | Verb::Release => true,
            };
            if !is_touched {
                touched.kept.push(id);
                continue;
            }
            if !change.dry_run {
                self.change_task(x, change.verb)?;
            }
            touched.ids.push(id);
        }
        Ok(Reply::Touched(touched))
    }

    fn change_task(&mut self, x: Task, verb: Verb) -> Result<(), R::Error> {
        match verb {
            Verb::Cancel | Verb::Release if x.state == State::Leased => {
                let stop = match (verb, x.stop) {
                    (Verb::Release, Some(stop)) => stop,
                    (Verb::Release, None) => Stop::Release,
                    _ => Stop::Cancel,
                };
                self.nudges = true;
                self.save(&x, &Task { stop: Some(stop), ..x.clone() })
            }
            Verb::Cancel => self.end(&x, State::Cancelled, Some("it was cancelled")),
            Verb::Release => self.admit(&x, Task { not_before: x.not_before.min(self.now), ..x.clone() }),
            Verb::Retry => self.retry(x),
            Verb::Purge => {
                self.rows.put_payload(x.id, None)?;
                self.rows.put_result(x.id, None)?;
                self.save(
                    &x,
                    &Task {
                        state: State::Purged,
                        error: None,
                        history: Vec::new(),
                        progress: None,
                        ..x.clone()
                    },
                )
            }
        }
    }

    /// An ended task goes through all its gates again; without its unique name if that is taken.
    fn retry(&mut self, x: Task) -> Result<(), R::Error> {
        let mut after = Task {
            failures: 0,
            retries: 0,
            returns: 0,
            not_before: Micros::ZERO,
            life: x.life.saturating_add(1),
            stop: None,
            progress: None,
            ended: None,
            ended_tick: None,
            told: false,
            wanted: false,
            // One that was settled within a transaction may hold it still.
            holds_key: false,
            ..x.clone()
        };
        // One that ended between two runs has told of the last one.
        if x.leased.is_some() && x.history.last().is_none_or(|last| last.token != x.token) {
            let end = if x.state == State::Done { AttemptEnd::Done } else { AttemptEnd::Error };
            after.remember(end, x.ended.unwrap_or(self.now));
        }
        if let Some(unique) = &x.unique {
            after.holds_name = self.rows.by_name(&unique.name)?.is_none();
        }
        after.deadline = x.deadline.filter(|&deadline| deadline > self.now);
        self.rows.put_result(x.id, None)?;
        after.state = State::Added;
        self.nudges = true;
        if !x.has_edges {
            return self.admit(&x, after);
        }
        self.reopen_edges(x.id)?;
        self.save(&x, &after)?;
        self.free(&x, &after)
    }

    /// Its own edges that were not met are looked at again.
    fn reopen_edges(&mut self, down: TaskId) -> Result<(), R::Error> {
        use crate::EdgeState::{Cut, Failed, Held, New, Open};
        for state in [Cut, Failed, Held, Open] {
            for edge in self.rows.edges_to(down, Some(state), None, crate::MAX_EDGES as u32)? {
                self.rows.put_edge(&crate::Edge { state: New, ..edge })?;
            }
        }
        Ok(())
    }
}
