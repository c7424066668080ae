//! Explains what a task waits for, what is ahead of it and what happens next.

use interval_queue::{Micros, Snapshot};
use interval_queue_tasks::{
    Error, Overview, Selector, State, Stored, TaskId, TaskQueue, Why as Gate,
    contract::{EdgeState, Task, Worker},
};

use crate::{Task as TaskDocument, Why, Worker as WorkerDocument, micros, words};

/// Maximum number of tasks ahead that an explanation has.
const MAX_AHEAD: usize = 10;
/// Maximum number of tasks that are read to count the tasks ahead.
pub const MAX_READ: u32 = 1_000;

/// Why a task does not run, what is ahead of it, and what happens next.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Explanation {
    /// The gate at which it waits.
    pub gate: &'static str,
    /// Why it does not run, as a sentence.
    pub reason: String,
    /// The next event, as a sentence.
    pub next: String,
    /// The latest time of that. `None`: unknown.
    pub by: Option<Micros>,
    /// Tasks ahead of it, the nearest first, at most ten.
    pub ahead: Vec<Task>,
    /// Number of tasks ahead of it. `None`: more than [`MAX_READ`].
    pub all_ahead: Option<u64>,
    /// Workers that run it or could run it.
    pub workers: Vec<Worker>,
}

impl Explanation {
    /// Explains a task of this queue. `rate`: the snapshot of the queue's rate limit, if it has
    /// one; needed only if the task could start ([`Why::Next`](Gate::Next)).
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    pub async fn of(
        queue: &TaskQueue,
        overview: &Overview,
        rate: Option<&Snapshot>,
        stored: &Stored,
    ) -> Result<Self, Error> {
        Explainer { queue, overview, rate }.explain(stored).await
    }

    /// The document of the explanation of this task.
    pub fn document(&self, task: &Task) -> Why {
        Why {
            ahead: self.ahead.iter().map(TaskDocument::row).collect(),
            ahead_count: self.all_ahead,
            gate: self.gate,
            latest_us: micros(self.by),
            next: self.next.clone(),
            reason: self.reason.clone(),
            task: TaskDocument::row(task),
            workers: self.workers.iter().map(WorkerDocument::of).collect(),
        }
    }

    fn new(gate: &'static str, reason: impl Into<String>, next: impl Into<String>) -> Self {
        Self {
            gate,
            reason: reason.into(),
            next: next.into(),
            by: None,
            ahead: Vec::new(),
            all_ahead: Some(0),
            workers: Vec::new(),
        }
    }

    fn by(self, by: Micros) -> Self {
        Self { by: Some(by), ..self }
    }

    fn ahead(self, mut ahead: Vec<Task>) -> Self {
        let all_ahead = Some(ahead.len() as u64);
        ahead.truncate(MAX_AHEAD);
        Self { ahead, all_ahead, ..self }
    }

    /// These tasks are ahead, sorted by `key`; `is_all`: there are no more.
    fn with_all<K: Ord>(self, (mut tasks, is_all): (Vec<Task>, bool), key: impl Fn(&Task) -> K) -> Self {
        tasks.sort_by_key(key);
        let explanation = self.ahead(tasks);
        Self { all_ahead: explanation.all_ahead.filter(|_| is_all), ..explanation }
    }

    fn workers(self, workers: Vec<Worker>) -> Self {
        Self { workers, ..self }
    }
}

struct Explainer<'a> {
    queue: &'a TaskQueue,
    overview: &'a Overview,
    rate: Option<&'a Snapshot>,
}

impl Explainer<'_> {
    async fn explain(&self, stored: &Stored) -> Result<Explanation, Error> {
        let task = &stored.task;
        let Some(why) = &stored.why else {
            return match task.state {
                State::Leased => self.leased(task).await,
                _ => self.ended(stored).await,
            };
        };
        let reason = words::why(task, why);
        Ok(match why {
            Gate::NoStep => {
                let workers = self.alive().await?;
                let next = if workers.is_empty() {
                    "no worker is there: `interval-queue work` starts one, and its first poll checks the gates"
                } else {
                    "one of the next polls of any worker checks its gates: 25 tasks every 0.1 s while tasks are ready"
                };
                Explanation::new("no_step", reason, next).workers(workers)
            }
            Gate::Upstreams => self.upstreams(stored).await?,
            Gate::Time(_) => {
                let reason = match (task.failures, &task.error) {
                    (1.., Some(error)) => {
                        let failures = words::many(task.failures.into(), "failure", "failures");
                        format!("{reason}, after {failures}, the last one: {error}")
                    }
                    (0, Some(error)) => format!("{reason}; its last run requested that: {error}"),
                    _ => reason,
                };
                let next = format!(
                    "then the next poll of a worker lets it through; `interval-queue tasks release {}` does so now",
                    task.id
                );
                Explanation::new("time", reason, next).by(task.not_before)
            }
            Gate::Key(_) => self.key(task, reason).await?,
            Gate::KeyPaused => Explanation::new("key_paused", reason, "when the pause of the key ends"),
            Gate::KindPaused => Explanation::new("kind_paused", reason, "when the pause of the kind ends"),
            Gate::Unserved => {
                let workers = self.alive().await?;
                let others = match workers.is_empty() {
                    true => "no worker is there",
                    false => "the live workers serve other kinds",
                };
                let next = format!("{others}: `interval-queue work --kind {}` serves it", task.kind);
                Explanation::new("unserved", reason, next).workers(workers)
            }
            Gate::Lost => self.lost(task, reason).await?,
            Gate::Paused => Explanation::new("paused", reason, "when the pause ends"),
            Gate::Limit => {
                let limit = self.overview.settings.max_running;
                let limit = limit.map_or(String::new(), |limit| format!(", {limit}"));
                let leased = self.queue.first(&Selector::states([State::Leased]), MAX_READ).await?;
                let next = "when a running task ends, after the tasks ahead of it";
                Explanation::new("limit", format!("{reason}{limit}"), next)
                    .with_all(leased, |task| (task.leased, task.id))
            }
            Gate::Load(_) => {
                let next = format!(
                    "when the load of a worker falls; or now, with a higher priority: `interval-queue tasks priority --to N {}`",
                    task.id
                );
                Explanation::new("load", reason, next).workers(self.alive().await?)
            }
            Gate::Capacity => {
                let next = "when a worker has enough free capacity, after runs of it have ended";
                Explanation::new("capacity", reason, next).workers(self.alive().await?)
            }
            Gate::Next => self.next(task, reason).await?,
            _ => Explanation::new("other", reason, "unknown"),
        })
    }

    async fn alive(&self) -> Result<Vec<Worker>, Error> {
        let workers = self.queue.workers().await?;
        Ok(workers.into_iter().filter(|worker| worker.alive_for.is_some()).collect())
    }

    /// Stored tasks among these, by id.
    async fn rows(&self, mut ids: Vec<TaskId>) -> Result<Vec<Task>, Error> {
        ids.sort();
        ids.truncate(MAX_READ as usize);
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        Ok(self.queue.first(&Selector::ids(ids), MAX_READ).await?.0)
    }

    async fn upstreams(&self, stored: &Stored) -> Result<Explanation, Error> {
        let pending = stored.upstreams.iter().filter(|edge| edge.state.is_pending());
        let pending = self.rows(pending.map(|edge| edge.up).collect()).await?;
        let held: Vec<_> = stored.upstreams.iter().filter(|edge| edge.state == EdgeState::Held).collect();
        let left: Vec<Task> = pending.into_iter().filter(|up| up.state != State::Done).collect();
        let reason = match left.len() {
            0 => "the tasks that it waited for have ended".to_owned(),
            1 => "it waits for another task".to_owned(),
            many => format!("it waits for {many} other tasks"),
        };
        let next = match held.first() {
            None if left.is_empty() => "the next poll of any worker lets it through".to_owned(),
            None => "when they have ended as its edges require".to_owned(),
            Some(edge) => format!(
                "{} of them failed, and it waits until they are done: `interval-queue tasks retry {}`",
                held.len(),
                edge.up
            ),
        };
        Ok(Explanation::new("upstreams", reason, next).ahead(left))
    }

    async fn key(&self, task: &Task, reason: String) -> Result<Explanation, Error> {
        let of_key =
            |states: &[State]| Selector { key: task.key.clone(), ..Selector::states(states.to_vec()) };
        let (blocked, is_all) = self.queue.first(&of_key(&[State::Blocked]), MAX_READ).await?;
        let mut ahead: Vec<_> =
            blocked.into_iter().filter(|one| !one.unserved && one.key_order() < task.key_order()).collect();
        // The nearest task ahead comes first.
        ahead.sort_by_key(|one| std::cmp::Reverse(one.key_order()));
        let number = ahead.len();
        let (mut holders, _) =
            self.queue.first(&of_key(&[State::Scheduled, State::Ready, State::Leased]), MAX_READ).await?;
        holders.retain(|one| one.holds_key);
        let has = match holders.as_slice() {
            [] => "no task holds its key".to_owned(),
            [one] => format!("task {} holds its key", one.id),
            many => format!("{} tasks hold its key", many.len()),
        };
        let order = match (number, is_all) {
            (0, true) => "it is the first of the blocked tasks of its key".to_owned(),
            (1.., true) => format!("it is number {} of the blocked tasks of its key", number + 1),
            (_, false) => reason,
        };
        let next = if number == 0 && holders.is_empty() {
            "the next poll of a worker lets it through"
        } else {
            "when a task that holds the key ends, the first blocked task is let through"
        };
        // The explanation always has the holders of the key.
        ahead.truncate(MAX_AHEAD.saturating_sub(holders.len()));
        let all = (number + holders.len()) as u64;
        let explanation =
            Explanation::new("key", format!("{order}; {has}"), next).ahead([ahead, holders].concat());
        Ok(Explanation { all_ahead: is_all.then_some(all), ..explanation })
    }

    /// A ready task: only the rate, the workers and other ready tasks can delay it.
    async fn next(&self, task: &Task, reason: String) -> Result<Explanation, Error> {
        if let Some(rate) = self.rate {
            let held = rate.record.held_until;
            if rate.record.paused {
                let reason = "the rate is paused: `interval-queue resume` ends it";
                return Ok(Explanation::new("rate_paused", reason, "when the pause ends"));
            }
            if held > rate.at {
                let left = format!("the rate is held for another {}", words::about(held - rate.at));
                let next = "then tasks start again, in their order";
                return Ok(Explanation::new("rate_held", left, next).by(held));
            }
        }
        let mut serving = self.alive().await?;
        serving.retain(|worker| worker.presence.kinds.contains(&task.kind));
        let kinds = serving.iter().flat_map(|worker| worker.presence.kinds.iter().cloned()).collect();
        let (mut ready, is_all) =
            self.queue.first(&Selector { kinds, ..Selector::states([State::Ready]) }, MAX_READ).await?;
        ready.retain(|one| one.order() < task.order());
        let next = match serving.len() {
            0 => "when a worker that serves its kind polls: none has a lease in force".to_owned(),
            1 => "when the worker that serves its kind has free capacity".to_owned(),
            many => format!("when one of the {many} workers that serve its kind has free capacity"),
        };
        Ok(Explanation::new("next", reason, next).workers(serving).with_all((ready, is_all), Task::order))
    }

    async fn leased(&self, task: &Task) -> Result<Explanation, Error> {
        let now = self.overview.at;
        let since = task.leased.map_or(String::new(), |at| format!(" for {}", words::about(now - at)));
        let far = task.progress.as_ref();
        let far = far.map_or(String::new(), |at| format!(", and is at {}", words::progress(at)));
        let stop = task.stop;
        let stop =
            stop.map_or(String::new(), |stop| format!("; its worker is asked to end it ({})", stop.as_str()));
        let reason = format!("it runs{since}{far}{stop}");
        let lost = self.after_loss(task);
        let workers = self.queue.workers().await?;
        let Some(worker) = workers.into_iter().find(|one| Some(one.presence.worker) == task.worker) else {
            let next = format!("its worker is gone: after the next poll of another worker {lost}");
            return Ok(Explanation::new("leased", reason, next));
        };
        let next = format!(
            "when its worker reports its end; if the worker does not poll before its lease ends, {lost}"
        );
        let by = worker.alive_for.map(|left| now + left);
        Ok(Explanation { by, ..Explanation::new("leased", reason, next).workers(vec![worker]) })
    }

    /// A task whose worker did not poll within its lease.
    async fn lost(&self, task: &Task, reason: String) -> Result<Explanation, Error> {
        let workers = self.queue.workers().await?;
        let then = self.after_loss(task);
        let next = match workers.iter().any(|worker| worker.alive_for.is_some()) {
            true => format!("after a poll of another worker {then}"),
            false => {
                format!(
                    "no worker is there: `interval-queue work` starts one, and after its first poll {then}"
                )
            }
        };
        let own = workers.into_iter().filter(|one| Some(one.presence.worker) == task.worker);
        Ok(Explanation::new("lost", reason, next).workers(own.collect()))
    }

    /// The fate of a task whose worker is lost.
    fn after_loss(&self, task: &Task) -> &'static str {
        let attempts = self.overview.settings.policy_of(task).max_attempts;
        if task.failures + 1 >= attempts { "it has failed" } else { "it runs again" }
    }

    async fn ended(&self, stored: &Stored) -> Result<Explanation, Error> {
        let task = &stored.task;
        let at = task.ended.map_or(String::new(), |at| format!(" at {}", words::time(at)));
        let error = task.error.as_ref().map_or(String::new(), |error| format!(": {error}"));
        let again = format!("`interval-queue tasks retry {}` runs it again", task.id);
        let cut = stored.upstreams.iter().filter(|edge| edge.state == EdgeState::Cut).map(|edge| edge.up);
        let explanation = match task.state {
            State::Done => Explanation::new("done", format!("it was done{at}"), again),
            State::Failed => {
                let after = words::many(task.failures.into(), "failure", "failures");
                Explanation::new("failed", format!("it failed for good{at}, after {after}{error}"), again)
            }
            State::Cancelled => Explanation::new("cancelled", format!("it was cancelled{at}{error}"), again),
            _ => Explanation::new("purged", "it was purged: only its id is kept for a while", "nothing more"),
        };
        Ok(explanation.ahead(self.rows(cut.collect()).await?))
    }
}
