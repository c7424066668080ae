//! The processes of a plan of stored tasks.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, Weak},
};

use interval_queue_contract::QueueName;
use interval_queue_task_contract::{
    Added, Overlap,
    judge::{Dump, Judge},
};
use interval_queue_tasks::{Builder, ErrorKind, Keep, OnExisting, Task, TaskQueue, WorkerHandle};
use tokio::time::sleep_until;

use super::{
    actor::{self, Service},
    handler::Tally,
    ids,
    opened::Opened,
    plan_generator::KINDS,
    task_plan::{Batch, Event, Plan, TaskPlan, WorkerPlan},
    task_run::Outcome,
};
use crate::{
    plan::{Event as Trouble, ms},
    process::Process,
    service::locked,
    world::World,
};

const QUEUE: &str = "simulated";

/// Pause after a call without a reply.
pub(super) const RETRY_PAUSE: std::time::Duration = ms(200);

pub(super) struct Execution {
    pub(super) world: World,
    pub(super) plan: Arc<Plan>,
    pub(super) queue: QueueName,
    pub(super) hosts: Vec<Mutex<Host>>,
    pub(super) tally: Arc<Mutex<Tally>>,
    /// The calls that processes run besides their workers, which hold the other end.
    calls: Mutex<Vec<(Process, Weak<()>)>>,
}

pub(super) struct Host {
    pub(super) process: Process,
    pub(super) open: Opened,
    pub(super) handle: Arc<Mutex<Option<WorkerHandle>>>,
}

impl Execution {
    pub(super) fn new(world: World, plan: &Plan) -> Self {
        #[allow(clippy::expect_used, reason = "a constant")]
        let queue = QueueName::new(QUEUE).expect("a name");
        let judge = Judge::new(plan.only_outages(), Overlap::Allow);
        world.inside(|inside| inside.tasks.kept(&queue).judge = judge);
        let tally = Arc::default();
        let (plan, calls) = (Arc::new(plan.clone()), Mutex::default());
        let mut execution = Self { world, plan, queue, hosts: Vec::new(), tally, calls };
        for number in 0..execution.plan.workers.len() {
            let host = execution.open(&execution.plan.workers[number], format!("worker {number}.0"));
            execution.hosts.push(Mutex::new(host));
        }
        execution
    }

    pub(super) fn open(&self, worker: &WorkerPlan, name: String) -> Host {
        let process = self.world.start_process(name, worker.drift);
        self.world.inside(|inside| {
            let line = &mut inside.lines[process.id];
            (line.delay, line.time_out, line.wakes) = (worker.delay, self.plan.time_out, self.plan.wakes);
        });
        let open = Opened::default();
        let handle = Arc::default();
        let service = Service {
            process: process.clone(),
            queue: self.queue.clone(),
            plan: self.plan.clone(),
            worker: worker.clone(),
            tally: self.tally.clone(),
            handle: Arc::clone(&handle),
        };
        process.run(actor::work(service, builder(&process, &self.plan), open.clone()));
        Host { process, open, handle }
    }

    pub(super) async fn run(&self) {
        for timed in &self.plan.events {
            sleep_until(self.world.began() + timed.at).await;
            match &timed.event {
                Event::Add(batch) => self.add(batch),
                Event::Operate { worker, operation } => {
                    let operation = operation.clone();
                    let world = self.world.clone();
                    self.with_queue(*worker, async move |queue| {
                        if let Err(error) = operation.act(&queue).await {
                            world.judged(Err(format!("T9: {operation:?} failed: {error}")));
                        }
                    });
                }
                Event::Retire { worker } => {
                    let host = locked(&self.hosts[*worker]);
                    self.world.note(|| format!("{} is asked to stop", host.process.name()));
                    if let Some(handle) = &*locked(&host.handle) {
                        handle.stop_within(ms(300));
                    }
                }
                Event::Trouble(Trouble::Kill { shard, replaced_after }) => self.kill(*shard, *replaced_after),
                Event::Trouble(trouble) => {
                    trouble.strike(&self.world, |shard| locked(&self.hosts[shard]).process.clone());
                }
            }
        }
        self.end().await;
    }

    pub(super) fn dump(&self) -> Arc<Dump> {
        self.world.inside(|inside| inside.tasks.dump(&self.queue))
    }

    fn kill(&self, shard: usize, replaced_after: Option<std::time::Duration>) {
        self.world.disturbed(self.world.now());
        locked(&self.hosts[shard]).process.kill();
        // At least one worker must stay alive.
        let alive = self.hosts.iter().any(|host| !locked(host).process.is_dead());
        let Some(after) = replaced_after.or((!alive).then_some(ms(0))) else { return };
        let generation = self.world.inside(|inside| inside.processes.len());
        let host = self.open(&self.plan.workers[shard], format!("worker {shard}.{generation}"));
        host.process.stop(after);
        *locked(&self.hosts[shard]) = host;
    }

    /// Waits until the process has opened the queue.
    fn with_queue<F>(&self, worker: usize, what: impl FnOnce(TaskQueue) -> F + Send + 'static)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let host = locked(&self.hosts[worker]);
        let open = host.open.clone();
        let call = Arc::new(());
        locked(&self.calls).push((host.process.clone(), Arc::downgrade(&call)));
        host.process.run(async move {
            let _goes_on = call;
            what(open.queue().await).await;
        });
    }

    /// A living process still adds or changes something.
    pub(super) fn is_busy(&self) -> bool {
        locked(&self.calls).iter().any(|(process, call)| !process.is_dead() && call.strong_count() > 0)
    }

    fn add(&self, batch: &Batch) {
        let tasks: Vec<Task> =
            batch.tasks.iter().map(|&number| task(number, &self.plan.tasks[number], true)).collect();
        let alone: Vec<Task> =
            batch.tasks.iter().map(|&number| task(number, &self.plan.tasks[number], false)).collect();
        let (world, name) = (self.world.clone(), self.queue.clone());
        let process = locked(&self.hosts[batch.worker]).process.clone();
        self.with_queue(batch.worker, move |queue| async move {
            let mut tasks = tasks;
            loop {
                let error = match queue.add_all(tasks.clone()).await {
                    Ok(added) => return accepted(&world, &name, &added),
                    Err(error) => error,
                };
                match error.kind() {
                    // Its upstreams were never added, or are gone.
                    ErrorKind::Missing => tasks.clone_from(&alone),
                    // A unique name is taken.
                    ErrorKind::Conflict => return,
                    _ => process.sleep(RETRY_PAUSE).await,
                }
            }
        });
    }

    pub(super) fn outcome(&self) -> Outcome {
        let tally = locked(&self.tally);
        let tasks = self.world.inside(|inside| inside.tasks.kept(&self.queue).judge.tasks());
        Outcome {
            violation: self.world.violation(),
            tasks: tasks as u64,
            runs: tally.starts.len() as u64,
            starts: tally.starts.clone(),
            slots: self.world.check(|checks| checks.counts().0),
            steps: self.world.inside(|inside| inside.tasks.monitor.all_steps()),
            time: self.world.now() - self.world.began(),
            journal: self.world.journal(),
        }
    }
}

fn accepted(world: &World, queue: &QueueName, added: &[Added]) {
    world.note(|| format!("added: {added:?}"));
    world.inside(|inside| {
        let dump = inside.tasks.dump(queue);
        inside.tasks.kept(queue).judge.accepted(added, &dump);
    });
}

fn builder(process: &Process, plan: &Plan) -> Builder {
    let keep = Keep::default().of(interval_queue_task_contract::State::Purged).to_duration();
    let mut builder = process
        .task_queue(QUEUE)
        .key_limit(plan.key_limit)
        .ageing(ms(1_000))
        .keep_done(keep)
        .keep_failed(keep)
        .keep_cancelled(keep)
        .on_existing(OnExisting::Keep);
    if let Some(limit) = plan.max_running {
        builder = builder.max_running(limit);
    }
    if let Some(interval) = plan.interval {
        builder = builder.interval(interval);
    }
    builder
}

fn task(number: usize, plan: &TaskPlan, with_edges: bool) -> Task {
    let payload = interval_queue_tasks::Json::of(&number).unwrap_or_default();
    let policy = plan.policy;
    let mut task = Task::json(plan.kind, payload)
        .with_id(ids::id(number))
        .priority(plan.priority)
        .max_attempts(policy.max_attempts)
        .max_retries(policy.max_retries)
        .backoff(policy.backoff.to_duration(), policy.max_backoff.to_duration());
    if let Some(timeout) = policy.timeout {
        task = task.timeout(timeout.to_duration());
    }
    if let Some(key) = plan.key {
        task = task.key(key);
    }
    if plan.ordered {
        task = task.ordered();
    }
    if let Some((name, until)) = plan.unique {
        task = match until {
            interval_queue_task_contract::Until::Ended => task.unique(name),
            interval_queue_task_contract::Until::Leased => task.unique_until_leased(name),
        };
        task = task.on_conflict(plan.on_conflict);
    }
    if let Some(delay) = plan.delay {
        task = task.delay(delay);
    }
    if let Some(deadline) = plan.deadline {
        task = task.deadline(deadline);
    }
    for &(up, on_failure) in plan.after.iter().filter(|_| with_edges) {
        task = task.after_or(ids::id(up), on_failure);
    }
    task
}

/// Handles all kinds; no fault affects its process.
pub(super) fn helper() -> WorkerPlan {
    WorkerPlan { kinds: KINDS.to_vec(), jobs: 3, prefetch: 0, drift: 0, delay: (ms(1), ms(1)) }
}

/// Runs begun, by the task's number.
pub(super) type Begun = HashMap<usize, usize>;
