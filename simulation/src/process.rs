//! A simulated process: a drifting clock, tasks that can be stopped or killed at any step, and a
//! line to the store.

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures::future::BoxFuture;
use interval_queue::{Builder, Host, IntervalQueue};
use interval_queue_contract::SharedState;
use interval_queue_task_contract::TaskStore;
use interval_queue_tasks::TaskQueue;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::{
    check::{Watched, micros},
    world::World,
};

/// A handle on one simulated process. It is the [`Host`] of the shards that are opened in it, and their way to
/// the store: over the network, with its delays and faults.
#[derive(Clone)]
pub struct Process {
    pub(crate) world: World,
    pub(crate) id: usize,
}

#[derive(Debug)]
pub(crate) struct Condition {
    pub(crate) name: String,
    /// Parts per million by which its clock runs faster than true time.
    pub(crate) drift: i32,
    pub(crate) dead_since: Option<Instant>,
    /// Stopped after the first and until the second instant.
    pub(crate) stopped: Option<(Instant, Instant)>,
    /// Stops for so long at its next look at its clock.
    pub(crate) stop_in_step: Option<Duration>,
    pub(crate) random: fastrand::Rng,
    /// Each task has a clone.
    tasks: Arc<()>,
}

impl Condition {
    pub(crate) fn new(name: String, drift: i32, seed: u64) -> Self {
        let random = fastrand::Rng::with_seed(seed);
        let tasks = Arc::default();
        Self { name, drift, dead_since: None, stopped: None, stop_in_step: None, random, tasks }
    }

    fn stopped_until(&self, now: Instant) -> Option<Instant> {
        self.stopped.filter(|(from, until)| *from < now && now < *until).map(|(_, until)| until)
    }

    /// True time of what it does now: later than now if it was stopped in this step.
    pub(crate) fn present(&self, now: Instant) -> Instant {
        let now = self.stopped.filter(|(from, _)| *from <= now).map_or(now, |(_, until)| now.max(until));
        self.dead_since.map_or(now, |since| now.min(since))
    }
}

impl Process {
    pub(crate) fn new(world: World, id: usize) -> Self {
        Self { world, id }
    }

    /// Settings for opening a queue in this process; open it on a clone of the process.
    pub fn queue(&self, name: &str) -> Builder {
        IntervalQueue::builder(name).host(self.clone()).label(self.name())
    }

    /// Settings for opening a queue of stored tasks in this process; open it with `open_parts(process.tasks(),
    /// process.pace())`.
    pub fn task_queue(&self, name: &str) -> interval_queue_tasks::Builder {
        TaskQueue::builder(name).host(self.clone())
    }

    /// The stored tasks of the world, as this process reaches them.
    pub fn tasks(&self) -> Arc<dyn TaskStore> {
        Arc::new(self.clone())
    }

    /// The state of the world that keeps the pace, as this process reaches it.
    pub fn pace(&self) -> Arc<dyn SharedState> {
        Arc::new(self.clone())
    }

    /// The name it was given.
    pub fn name(&self) -> String {
        self.condition(|condition| condition.name.clone())
    }

    /// Runs a task in this process: it stops, and dies, with it.
    pub fn run(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.spawn(Box::pin(task));
    }

    /// Waits by the clock of this process.
    pub async fn sleep(&self, time: Duration) {
        self.sleep_until(self.now() + time).await;
    }

    /// Kills it: nothing of it runs any more, and messages it has not sent yet are never sent.
    pub fn kill(&self) {
        let now = self.world.now();
        self.world.note(|| format!("{} is killed", self.name()));
        self.condition(|condition| condition.dead_since = condition.dead_since.or(Some(now)));
        let since = now - self.world.began();
        self.world.check(|checks| checks.each_queue(since, |queue, at| queue.killed(self.id, at)));
    }

    /// Stops it where it is, as SIGSTOP does, and lets it go on after `time`.
    pub fn stop(&self, time: Duration) {
        let now = self.world.now();
        self.world.note(|| format!("{} is stopped for {time:?}", self.name()));
        // Work that begins in this instant is carried to its end.
        let from = now + Duration::from_nanos(1);
        self.condition(|condition| condition.stopped = Some((from, now + time)));
    }

    /// Stops it in the middle of its next step, between two looks at its clock.
    pub fn stop_in_step(&self, time: Duration) {
        self.condition(|condition| condition.stop_in_step = Some(time));
    }

    /// Whether it was killed.
    pub fn is_dead(&self) -> bool {
        self.condition(|condition| condition.dead_since.is_some())
    }

    /// How many of its tasks have not ended.
    pub fn unended(&self) -> usize {
        self.condition(|condition| Arc::strong_count(&condition.tasks) - 1)
    }

    pub(crate) fn condition<T>(&self, work: impl FnOnce(&mut Condition) -> T) -> T {
        self.world.inside(|inside| work(&mut inside.processes[self.id]))
    }
}

impl Host for Process {
    fn now(&self) -> std::time::Instant {
        let (now, began) = (self.world.now(), self.world.began());
        let (present, drift, stopped) = self.condition(|condition| {
            let runs = condition.dead_since.is_none() && condition.stopped_until(now).is_none();
            let stopped = if runs { condition.stop_in_step.take() } else { None };
            if let Some(time) = stopped {
                condition.stopped = Some((now, condition.present(now) + time));
            }
            (condition.present(now), condition.drift, stopped)
        });
        if let Some(time) = stopped {
            self.world.disturbed(present);
            let stop = |queue: &mut Watched, at| queue.stopped_in_step(self.id, at, micros(time));
            self.world.check(|checks| checks.each_queue(now - began, stop));
            self.world.note(|| format!("{} is stopped in the middle of a step for {time:?}", self.name()));
        }
        (began + on_clock(present - began, drift)).into_std()
    }

    fn sleep_until(&self, deadline: std::time::Instant) -> BoxFuture<'static, ()> {
        let (began, drift) = (self.world.began(), self.condition(|condition| condition.drift));
        let ours = deadline.saturating_duration_since(began.into_std());
        Box::pin(sleep_until(began + in_truth(ours, drift) + Duration::from_micros(1)))
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        let counted = self.condition(|condition| condition.tasks.clone());
        let gated = Gated { process: self.clone(), task, stopped: None, _counted: counted };
        self.world.runtime().spawn(gated);
    }

    fn spawn_blocking(&self, work: Box<dyn FnOnce() + Send>) {
        self.spawn(Box::pin(async move { work() }));
    }

    fn random(&self) -> u64 {
        self.condition(|condition| condition.random.u64(..))
    }
}

/// Parts per million by which the clock runs faster.
fn on_clock(time: Duration, drift: i32) -> Duration {
    let nanos = time.as_nanos() as i128;
    nanoseconds(nanos + nanos * i128::from(drift) / 1_000_000)
}

fn in_truth(time: Duration, drift: i32) -> Duration {
    nanoseconds(time.as_nanos() as i128 * 1_000_000 / (1_000_000 + i128::from(drift)))
}

fn nanoseconds(nanos: i128) -> Duration {
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Process").field("id", &self.id).finish_non_exhaustive()
    }
}

struct Gated {
    process: Process,
    task: BoxFuture<'static, ()>,
    stopped: Option<Pin<Box<Sleep>>>,
    _counted: Arc<()>,
}

impl Future for Gated {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        loop {
            if self.process.is_dead() {
                return Poll::Ready(());
            }
            let now = self.process.world.now();
            let Some(until) = self.process.condition(|condition| condition.stopped_until(now)) else {
                self.stopped = None;
                return self.task.as_mut().poll(context);
            };
            let timer = self.stopped.get_or_insert_with(|| Box::pin(sleep_until(until)));
            if timer.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            self.stopped = None;
        }
    }
}
