//! Explains what a task waits for, what is ahead of it and what happens next.

use interval_queue::{
    Micros,
    task_contract::{EdgeState, Overview, Selector, State, Stored, Task, TaskId, Why, Worker},
};

use crate::{
    args::Target,
    duration::about,
    exit::Failure,
    tasks::{
        queue_tasks::Tasks,
        task_words,
        workers::{is_alive, progress},
    },
};

/// Maximum tasks ahead that are printed.
const MAX_PRINTED_AHEAD: usize = 10;
/// Maximum tasks that are read to count the tasks ahead.
pub(super) const MAX_TASKS_READ: u32 = 1_000;

/// The explanation of a task.
pub(super) struct Explanation {
    /// The gate at which the task waits.
    pub(super) gate: &'static str,
    pub(super) reason: String,
    /// The next event.
    pub(super) next: String,
    /// The latest time of the next event. `None`: unknown.
    pub(super) by: Option<Micros>,
    /// Tasks ahead of the explained one, the nearest first.
    pub(super) ahead: Vec<Task>,
    /// Number of tasks ahead. `None`: more than [`MAX_TASKS_READ`].
    pub(super) all_ahead: Option<u64>,
    /// Workers that run the task or could run it.
    pub(super) workers: Vec<Worker>,
}

impl Explanation {
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
        ahead.truncate(MAX_PRINTED_AHEAD);
        Self { ahead, all_ahead, ..self }
    }

    fn workers(self, workers: Vec<Worker>) -> Self {
        Self { workers, ..self }
    }
}

/// Makes explanations.
pub(super) struct Explainer<'a> {
    pub(super) target: &'a Target,
    pub(super) tasks: &'a Tasks,
    pub(super) overview: &'a Overview,
}

impl Explainer<'_> {
    pub(super) async fn explain(&self, stored: &Stored) -> Result<Explanation, Failure> {
        let task = &stored.task;
        let Some(why) = &stored.why else {
            return if task.state == State::Leased {
                self.leased(task).await
            } else {
                self.ended(stored).await
            };
        };
        let reason = task_words::why(task, why);
        Ok(match why {
            Why::NoStep => {
                let workers = self.alive().await?;
                let next = if workers.is_empty() {
                    "no worker is there: `interval-queue work` starts one, and its first poll checks the gates"
                } else {
                    "one of the next polls of any worker checks its gates: 25 tasks every 0.1 s while tasks are ready"
                };
                Explanation::new("no_step", reason, next).workers(workers)
            }
            Why::Upstreams => self.upstreams(stored).await?,
            Why::Time(_) => {
                let reason = match (task.failures, &task.error) {
                    (1.., Some(error)) => {
                        let failures = task_words::many(task.failures as usize, "failure", "failures");
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
            Why::Key(_) => self.key(task, reason).await?,
            Why::KeyPaused => Explanation::new("key_paused", reason, "when the pause of the key ends"),
            Why::KindPaused => Explanation::new("kind_paused", reason, "when the pause of the kind ends"),
            Why::Unserved => {
                let workers = self.alive().await?;
                let others = if workers.is_empty() {
                    "no worker is there"
                } else {
                    "the live workers serve other kinds"
                };
                let next = format!("{others}: `interval-queue work --kind {}` serves it", task.kind);
                Explanation::new("unserved", reason, next).workers(workers)
            }
            Why::Lost => self.lost(task, reason).await?,
            Why::Paused => Explanation::new("paused", reason, "when the pause ends"),
            Why::Limit => {
                let limit =
                    self.overview.settings.max_running.map_or(String::new(), |limit| format!(", {limit}"));
                let leased = self.select(Selector::states([State::Leased])).await?;
                let next = "when a running task ends, after the tasks ahead of it";
                with_all(Explanation::new("limit", format!("{reason}{limit}"), next), leased, |task| {
                    (task.leased, task.id)
                })
            }
            Why::Load(_) => {
                let next = format!(
                    "when the load of a worker falls; or now, with a higher priority: `interval-queue tasks priority --to N {}`",
                    task.id
                );
                Explanation::new("load", reason, next).workers(self.alive().await?)
            }
            Why::Room => {
                let next = "when a worker has enough free capacity, after runs of it have ended";
                Explanation::new("room", reason, next).workers(self.alive().await?)
            }
            Why::Next => self.next(task, reason).await?,
            _ => Explanation::new("other", reason, "unknown"),
        })
    }

    async fn alive(&self) -> Result<Vec<Worker>, Failure> {
        let workers = self.tasks.workers().await?;
        Ok(workers.into_iter().filter(is_alive).collect())
    }

    /// Selected tasks, at most [`MAX_TASKS_READ`], and whether these are all.
    async fn select(&self, selector: Selector) -> Result<(Vec<Task>, bool), Failure> {
        let page = self.tasks.page(&selector, None, MAX_TASKS_READ, false).await?;
        Ok((page.tasks.into_iter().map(|stored| stored.task).collect(), page.next.is_none()))
    }

    async fn upstreams(&self, stored: &Stored) -> Result<Explanation, Failure> {
        let pending = stored.upstreams.iter().filter(|edge| edge.state.is_pending());
        let ups: Vec<TaskId> = pending.map(|edge| edge.up).collect();
        let held: Vec<_> = stored.upstreams.iter().filter(|edge| edge.state == EdgeState::Held).collect();
        let ahead = self.tasks.rows(ups).await?;
        let left: Vec<Task> = ahead.into_iter().filter(|up| up.state != State::Done).collect();
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

    async fn key(&self, task: &Task, reason: String) -> Result<Explanation, Failure> {
        let of_key =
            |states: &[State]| Selector { key: task.key.clone(), ..Selector::states(states.to_vec()) };
        let (blocked, is_all) = self.select(of_key(&[State::Blocked])).await?;
        let mut ahead: Vec<_> =
            blocked.into_iter().filter(|one| !one.unserved && one.key_order() < task.key_order()).collect();
        // The nearest task ahead comes first.
        ahead.sort_by_key(|one| std::cmp::Reverse(one.key_order()));
        let places = ahead.len();
        let (mut holders, _) = self.select(of_key(&[State::Scheduled, State::Ready, State::Leased])).await?;
        holders.retain(|one| one.holds_key);
        let has = match holders.len() {
            0 => "no task holds its key".to_owned(),
            1 => format!("task {} holds its key", holders[0].id),
            many => format!("{many} tasks hold its key"),
        };
        let place = match (places, is_all) {
            (0, true) => "it is the first of the blocked tasks of its key".to_owned(),
            (1.., true) => format!("it is number {} of the blocked tasks of its key", places + 1),
            (_, false) => reason,
        };
        let next = if places == 0 && holders.is_empty() {
            "the next poll of a worker lets it through"
        } else {
            "when a task that holds the key ends, the first blocked task is let through"
        };
        // The holders of the key are always printed.
        ahead.truncate(MAX_PRINTED_AHEAD.saturating_sub(holders.len()));
        let all = (places + holders.len()) as u64;
        let explanation =
            Explanation::new("key", format!("{place}; {has}"), next).ahead([ahead, holders].concat());
        Ok(Explanation { all_ahead: is_all.then_some(all), ..explanation })
    }

    /// A ready task: only the rate, the workers and other ready tasks can delay it.
    async fn next(&self, task: &Task, reason: String) -> Result<Explanation, Failure> {
        let workers = self.alive().await?;
        let serving: Vec<_> =
            workers.into_iter().filter(|worker| worker.presence.kinds.contains(&task.kind)).collect();
        if let Some(pace) = self.target.snapshot().await? {
            let held = pace.record.held_until;
            if pace.record.paused {
                return Ok(Explanation::new(
                    "pace_paused",
                    "the rate is paused: `interval-queue resume` ends it",
                    "when the pause ends",
                ));
            }
            if held > pace.at {
                let left = format!("the rate is held for another {}", about(held - pace.at));
                return Ok(
                    Explanation::new("pace_held", left, "then tasks start again, in their order").by(held)
                );
            }
        }
        let kinds = serving.iter().flat_map(|worker| worker.presence.kinds.iter().cloned()).collect();
        let (mut ready, is_all) = self.select(Selector { kinds, ..Selector::states([State::Ready]) }).await?;
        ready.retain(|one| one.order() < task.order());
        let next = match serving.len() {
            0 => "when a worker that serves its kind polls: none has a lease in force".to_owned(),
            1 => "when the worker that serves its kind has free capacity".to_owned(),
            many => format!("when one of the {many} workers that serve its kind has free capacity"),
        };
        Ok(with_all(Explanation::new("next", reason, next).workers(serving), (ready, is_all), Task::order))
    }

    async fn leased(&self, task: &Task) -> Result<Explanation, Failure> {
        let now = self.overview.at;
        let since = task.leased.map_or(String::new(), |at| format!(" for {}", about(now - at)));
        let far = task.progress.as_ref().map_or(String::new(), |at| format!(", and is at {}", progress(at)));
        let stop = task
            .stop
            .map_or(String::new(), |stop| format!("; its worker is asked to end it ({})", stop.as_str()));
        let reason = format!("it runs{since}{far}{stop}");
        let lost = self.if_lost(task);
        let worker =
            self.tasks.workers().await?.into_iter().find(|one| Some(one.presence.worker) == task.worker);
        let Some(worker) = worker else {
            let next = format!("its worker is gone: after the next poll of another worker {lost}");
            return Ok(Explanation::new("leased", reason, next));
        };
        let next = format!(
            "when its worker reports its end; if the worker does not poll before its lease ends, {lost}"
        );
        let end = worker.alive_for.map(|left| now + left);
        let explanation = Explanation::new("leased", reason, next).workers(vec![worker]);
        Ok(Explanation { by: end, ..explanation })
    }

    /// A task whose worker did not poll within its lease.
    async fn lost(&self, task: &Task, reason: String) -> Result<Explanation, Failure> {
        let workers = self.tasks.workers().await?;
        let next = match workers.iter().any(is_alive) {
            true => format!("after a poll of another worker {}", self.if_lost(task)),
            false => format!(
                "no worker is there: `interval-queue work` starts one, and after its first poll {}",
                self.if_lost(task)
            ),
        };
        let own = workers.into_iter().filter(|one| Some(one.presence.worker) == task.worker);
        Ok(Explanation::new("lost", reason, next).workers(own.collect()))
    }

    /// The consequence for a task whose worker is lost.
    fn if_lost(&self, task: &Task) -> &'static str {
        let attempts = task.policy.over(&self.overview.settings.policy).max_attempts;
        if task.failures + 1 >= attempts { "it has failed" } else { "it runs again" }
    }

    async fn ended(&self, stored: &Stored) -> Result<Explanation, Failure> {
        let task = &stored.task;
        let at = task.ended.map_or(String::new(), |at| format!(" at {}", task_words::time(at)));
        let error = task.error.as_ref().map_or(String::new(), |error| format!(": {error}"));
        let again = format!("`interval-queue tasks retry {}` runs it again", task.id);
        let cut = stored.upstreams.iter().filter(|edge| edge.state == EdgeState::Cut).map(|edge| edge.up);
        let explanation = match task.state {
            State::Done => Explanation::new("done", format!("it was done{at}"), again),
            State::Failed => {
                let after = task_words::many(task.failures as usize, "failure", "failures");
                Explanation::new("failed", format!("it failed for good{at}, after {after}{error}"), again)
            }
            State::Cancelled => Explanation::new("cancelled", format!("it was cancelled{at}{error}"), again),
            _ => Explanation::new("purged", "it was purged: only its id is kept for a while", "nothing more"),
        };
        Ok(explanation.ahead(self.tasks.rows(cut.collect()).await?))
    }
}

/// The explanation with these tasks ahead, sorted by `key`.
fn with_all<K: Ord>(
    explanation: Explanation,
    (mut tasks, is_all): (Vec<Task>, bool),
    key: impl Fn(&Task) -> K,
) -> Explanation {
    tasks.sort_by_key(key);
    let explanation = explanation.ahead(tasks);
    Explanation { all_ahead: explanation.all_ahead.filter(|_| is_all), ..explanation }
}
