//! The processes of a plan.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::future::AbortHandle;
use interval_queue::{IntervalQueue, OnExisting};
use interval_queue_contract::QueueName;
use tokio::{
    sync::{mpsc, watch},
    time::sleep_until,
};

use crate::{
    plan::{Event, Plan, pace},
    process::Process,
    run::Outcome,
    service::{Job, Service, Tally, Waiting, locked},
    world::World,
};

/// Longest stall in a calm world: retries, time-outs, timers.
pub(crate) const STALL_TIMEOUT: Duration = Duration::from_secs(30);

const QUEUE: &str = "simulated";

pub(crate) struct Execution<'a> {
    pub(crate) world: World,
    pub(crate) plan: &'a Plan,
    pub(crate) queue: QueueName,
    pub(crate) hosts: Vec<Mutex<Host>>,
    tally: Arc<Mutex<Tally>>,
    pub(crate) interval: Duration,
}

pub(crate) struct Host {
    pub(crate) process: Process,
    jobs: mpsc::UnboundedSender<Job>,
    pub(crate) open: watch::Receiver<Option<IntervalQueue>>,
    pub(crate) waiting: Waiting,
}

impl<'a> Execution<'a> {
    pub(crate) fn new(world: World, plan: &'a Plan) -> Self {
        let heaviest = plan.events.iter().map(|timed| weight(&timed.event)).max().unwrap_or(1).max(1);
        let interval = plan.longest_interval();
        world.check(|checks| {
            checks.longest_stall = Some(plan.lease + STALL_TIMEOUT + interval * heaviest * 2)
        });
        #[allow(clippy::expect_used, reason = "a constant")]
        let queue = QueueName::new(QUEUE).expect("a name");
        let mut execution = Self { world, plan, queue, hosts: Vec::new(), tally: Arc::default(), interval };
        for number in 0..plan.shards.len() {
            let host = execution.open(number, 0);
            execution.hosts.push(Mutex::new(host));
        }
        execution
    }

    fn open(&self, number: usize, generation: usize) -> Host {
        let shard = self.plan.shards[number].clone();
        let process = self.world.start_process(format!("shard {number}.{generation}"), shard.drift);
        self.world.set_delays(&process, shard.delay.0, shard.delay.1);
        let (jobs, orders) = mpsc::unbounded_channel();
        let (opened, open) = watch::channel(None);
        let waiting = Waiting::default();
        let (rates, lease, limit) = (self.plan.rates, self.plan.lease, self.plan.max_running);
        let service = Service {
            process: process.clone(),
            queue: self.queue.clone(),
            waiting: waiting.clone(),
            tally: self.tally.clone(),
        };
        let opens = process.clone();
        let builder = move || {
            let builder = opens.queue(QUEUE).rate_limit(pace(&rates)).lease(lease).late(shard.late);
            let builder = builder.space_by(shard.space_by).on_existing(OnExisting::Keep);
            if let Some(limit) = limit { builder.max_running(limit) } else { builder }
        };
        process.run(service.work(builder, opened, orders));
        Host { process, jobs, open, waiting }
    }

    pub(crate) async fn run(&self) {
        for timed in &self.plan.events {
            sleep_until(self.world.began() + timed.at).await;
            self.happen(&timed.event);
        }
        self.end().await;
    }

    fn happen(&self, event: &Event) {
        let world = &self.world;
        let process = |shard: usize| locked(&self.hosts[shard]).process.clone();
        match *event {
            Event::Add { shard, weight, runs } => self.add(shard, weight, runs),
            Event::Cancel { shard } => {
                let host = locked(&self.hosts[shard]);
                let last = locked(&host.waiting).pop_last();
                if let Some((id, handle)) = last {
                    world.note(|| format!("{} cancels job {id}", host.process.name()));
                    world.waiting(-1);
                    handle.abort();
                }
            }
            Event::Kill { shard, replaced_after } => self.kill(shard, replaced_after),
            Event::Pause { shard } => self.control(shard, |queue| async move { drop(queue.pause().await) }),
            Event::Hold { shard, time } => {
                self.control(shard, move |queue| async move { drop(queue.hold(time).await) })
            }
            Event::SetRates { shard, rates } => {
                self.control(
                    shard,
                    move |queue| async move { drop(queue.set_rate_limit(pace(&rates)).await) },
                );
            }
            Event::Resume { shard } => self.resume(shard),
            _ => event.strike(world, process),
        }
    }

    fn add(&self, shard: usize, weight: u32, runs: Duration) {
        let id = {
            let mut tally = locked(&self.tally);
            tally.added += 1;
            tally.added
        };
        let (handle, cancelled) = AbortHandle::new_pair();
        let host = locked(&self.hosts[shard]);
        // A shard that was not replaced gets no more jobs.
        if !host.process.is_dead() && host.jobs.send(Job { id, weight, runs, cancelled }).is_ok() {
            self.world.note(|| format!("{} gets job {id} of weight {weight}", host.process.name()));
            locked(&host.waiting).insert(id, handle);
            self.world.waiting(1);
        }
    }

    fn kill(&self, shard: usize, replaced_after: Option<Duration>) {
        {
            let host = locked(&self.hosts[shard]);
            host.process.kill();
            let lost = std::mem::take(&mut *locked(&host.waiting)).len();
            self.world.waiting(-isize::try_from(lost).unwrap_or(0));
        }
        // At least one shard must stay alive.
        let alive = self.hosts.iter().any(|host| !locked(host).process.is_dead());
        let generation = self.world.inside(|inside| inside.processes.len());
        let Some(after) = replaced_after.or((!alive).then_some(Duration::ZERO)) else { return };
        let process = self.open(shard, generation);
        process.process.stop(after);
        *locked(&self.hosts[shard]) = process;
    }

    fn control<F: Future<Output = ()> + Send + 'static>(
        &self,
        shard: usize,
        what: impl FnOnce(IntervalQueue) -> F + Send + 'static,
    ) {
        let host = locked(&self.hosts[shard]);
        let mut open = host.open.clone();
        host.process.run(async move {
            if let Ok(queue) = open.wait_for(Option::is_some).await.map(|queue| queue.clone())
                && let Some(queue) = queue
            {
                what(queue).await;
            }
        });
    }

    /// One shard resumes; the others are woken a little later, as cron would.
    fn resume(&self, shard: usize) {
        let others: Vec<_> = self.hosts.iter().map(|host| locked(host).open.clone()).collect();
        self.control(shard, move |queue| async move {
            if queue.resume().await.is_ok() {
                for queue in others.iter().filter_map(|open| open.borrow().clone()) {
                    queue.start();
                }
            }
        });
    }

    pub(crate) fn outcome(&self) -> Outcome {
        let tally = locked(&self.tally);
        let ((slots, early), inversions) = self.world.check(|checks| (checks.counts(), checks.inversions()));
        Outcome {
            violation: self.world.violation(),
            slots,
            started: tally.started,
            early,
            inversions,
            time: self.world.now() - self.world.began(),
            busy: tally.last.saturating_sub(tally.first.unwrap_or_default()),
            journal: self.world.journal(),
        }
    }
}

pub(crate) fn weight(event: &Event) -> u32 {
    match event {
        Event::Add { weight, .. } => *weight,
        _ => 0,
    }
}

impl Event {
    pub(crate) fn strike(&self, world: &World, process: impl Fn(usize) -> Process) {
        match *self {
            Event::Befall { shard, mishap } => world.befall(&process(shard), mishap),
            Event::Stop { shard, time } => {
                world.disturbed(world.now() + time);
                process(shard).stop(time);
            }
            Event::StopInStep { shard, time } => process(shard).stop_in_step(time),
            Event::Partition { shard, time, cut } => world.cut(&process(shard), time, cut),
            Event::Outage { time, cut } => world.outage(time, cut),
            Event::Restart => world.restart_store(),
            Event::Forget => world.lose_state(),
            Event::FailOver { writes } => world.fail_over(writes),
            Event::OldCopy { writes } => world.restore_copy(writes),
            Event::ClockStep { micros } => world.step_clock(micros),
            _ => {}
        }
    }
}
