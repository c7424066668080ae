//! Carries a plan out and says what came of it.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::future::AbortHandle;
use interval_queue::{IntervalQueue, OnExisting};
use interval_queue_contract::QueueName;
use tokio::{
    sync::{mpsc, watch},
    time::{sleep, sleep_until, timeout},
};

use crate::{
    check::{Promise, Violation},
    journal::Entry,
    plan::{Event, Plan},
    process::Process,
    service::{Job, Service, Tally, Waiting, locked},
    simulate::simulate,
    store::Rules,
    world::{Settings, World},
};

/// What came of a plan.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Outcome {
    /// The first promise that was broken.
    pub violation: Option<Violation>,
    /// How many slots were granted.
    pub slots: u64,
    /// How many jobs started.
    pub started: u64,
    /// Slots that came early after a loss, within what is promised.
    pub early: u64,
    /// How often a job started after one with a higher ticket.
    pub inversions: u64,
    /// How much time passed in the simulation.
    pub time: Duration,
    /// Between the first and the last start.
    pub busy: Duration,
    /// What happened, if a journal was asked for.
    pub journal: Vec<Entry>,
}

/// How a plan is run.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// The rules of the store.
    pub rules: Rules,
    /// Whether to keep a journal.
    pub journal: bool,
}

impl Default for Run {
    fn default() -> Self {
        Self { rules: interval_queue_contract::rules::apply, journal: false }
    }
}

/// How long nothing may start, in a calm world, before somebody must have died: retries, time-outs, timers.
const PATIENCE: Duration = Duration::from_secs(30);

/// The name of the queue.
const QUEUE: &str = "simulated";

/// Carries a plan out.
pub fn run(plan: &Plan, run: Run) -> Outcome {
    let keeps_versions =
        plan.events.iter().any(|timed| matches!(timed.event, Event::FailOver { .. } | Event::OldCopy { .. }));
    let settings = Settings { seed: plan.seed, rules: run.rules, keeps_versions, keeps_journal: run.journal };
    simulate(settings, |world| async move {
        let scene = Scene::new(world.clone(), plan);
        tokio::select! {
            biased;
            () = world.violated() => {}
            () = scene.play() => {}
        }
        scene.outcome()
    })
}

/// The processes that carry a plan out.
struct Scene<'a> {
    world: World,
    plan: &'a Plan,
    queue: QueueName,
    places: Vec<Mutex<Place>>,
    tally: Arc<Mutex<Tally>>,
    /// The longest interval that the plan sets.
    interval: Duration,
}

/// Where one shard of the plan is at present.
struct Place {
    process: Process,
    jobs: mpsc::UnboundedSender<Job>,
    open: watch::Receiver<Option<IntervalQueue>>,
    waiting: Waiting,
}

impl<'a> Scene<'a> {
    fn new(world: World, plan: &'a Plan) -> Self {
        let heaviest = plan.events.iter().map(|timed| weight(&timed.event)).max().unwrap_or(1).max(1);
        let intervals = plan.events.iter().map(|timed| match timed.event {
            Event::SetInterval { interval, .. } => interval,
            _ => plan.interval,
        });
        let interval = intervals.max().unwrap_or(plan.interval).max(plan.interval);
        world.check(|checks| checks.longest_stall = Some(plan.lease + PATIENCE + interval * heaviest * 2));
        #[allow(clippy::expect_used, reason = "a constant")]
        let queue = QueueName::new(QUEUE).expect("a name");
        let mut scene = Self { world, plan, queue, places: Vec::new(), tally: Arc::default(), interval };
        for number in 0..plan.shards.len() {
            let place = scene.open(number, 0);
            scene.places.push(Mutex::new(place));
        }
        scene
    }

    /// Starts the process of a shard.
    fn open(&self, number: usize, generation: usize) -> Place {
        let shard = self.plan.shards[number].clone();
        let process = self.world.start_process(format!("shard {number}.{generation}"), shard.drift);
        self.world.set_delays(&process, shard.delay.0, shard.delay.1);
        let (jobs, orders) = mpsc::unbounded_channel();
        let (opened, open) = watch::channel(None);
        let waiting = Waiting::default();
        let (interval, lease, limit) = (self.plan.interval, self.plan.lease, self.plan.max_running);
        let service = Service {
            process: process.clone(),
            queue: self.queue.clone(),
            waiting: waiting.clone(),
            tally: self.tally.clone(),
        };
        let opens = process.clone();
        let builder = move || {
            let builder = opens.queue(QUEUE).interval(interval).lease(lease).late(shard.late);
            let builder = builder.on_existing(OnExisting::Join);
            if let Some(limit) = limit { builder.max_running(limit) } else { builder }
        };
        process.run(service.work(builder, opened, orders));
        Place { process, jobs, open, waiting }
    }

    async fn play(&self) {
        for timed in &self.plan.events {
            sleep_until(self.world.began() + timed.at).await;
            self.happen(&timed.event);
        }
        self.end().await;
    }

    fn happen(&self, event: &Event) {
        let world = &self.world;
        let process = |shard: usize| locked(&self.places[shard]).process.clone();
        match *event {
            Event::Add { shard, weight, runs } => self.add(shard, weight, runs),
            Event::Cancel { shard } => {
                let place = locked(&self.places[shard]);
                let last = locked(&place.waiting).pop_last();
                if let Some((id, handle)) = last {
                    world.note(|| format!("{} cancels job {id}", place.process.name()));
                    world.waiting(-1);
                    handle.abort();
                }
            }
            Event::Befall { shard, mishap } => world.befall(&process(shard), mishap),
            Event::Kill { shard, replaced_after } => self.kill(shard, replaced_after),
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
            Event::Pause { shard } => self.control(shard, |queue| async move { drop(queue.pause().await) }),
            Event::Hold { shard, time } => {
                self.control(shard, move |queue| async move { drop(queue.hold(time).await) })
            }
            Event::SetInterval { shard, interval } => {
                self.control(shard, move |queue| async move { drop(queue.set_interval(interval).await) });
            }
            Event::Resume { shard } => self.resume(shard),
        }
    }

    fn add(&self, shard: usize, weight: u32, runs: Duration) {
        let id = {
            let mut tally = locked(&self.tally);
            tally.added += 1;
            tally.added
        };
        let (handle, cancelled) = AbortHandle::new_pair();
        let place = locked(&self.places[shard]);
        // A shard whose place nobody took gets no jobs any more.
        if !place.process.is_dead() && place.jobs.send(Job { id, weight, runs, cancelled }).is_ok() {
            self.world.note(|| format!("{} gets job {id} of weight {weight}", place.process.name()));
            locked(&place.waiting).insert(id, handle);
            self.world.waiting(1);
        }
    }

    fn kill(&self, shard: usize, replaced_after: Option<Duration>) {
        {
            let place = locked(&self.places[shard]);
            place.process.kill();
            let lost = std::mem::take(&mut *locked(&place.waiting)).len();
            self.world.waiting(-isize::try_from(lost).unwrap_or(0));
        }
        // Somebody has to be left.
        let alive = self.places.iter().any(|place| !locked(place).process.is_dead());
        let generation = self.world.inside(|inside| inside.processes.len());
        let Some(after) = replaced_after.or((!alive).then_some(Duration::ZERO)) else { return };
        let process = self.open(shard, generation);
        process.process.stop(after);
        *locked(&self.places[shard]) = process;
    }

    fn control<F: Future<Output = ()> + Send + 'static>(
        &self,
        shard: usize,
        what: impl FnOnce(IntervalQueue) -> F + Send + 'static,
    ) {
        let place = locked(&self.places[shard]);
        let mut open = place.open.clone();
        place.process.run(async move {
            if let Ok(queue) = open.wait_for(Option::is_some).await.map(|queue| queue.clone())
                && let Some(queue) = queue
            {
                what(queue).await;
            }
        });
    }

    /// One shard resumes; the others are nudged a little later, as cron would.
    fn resume(&self, shard: usize) {
        let others: Vec<_> = self.places.iter().map(|place| locked(place).open.clone()).collect();
        self.control(shard, move |queue| async move {
            if queue.resume().await.is_ok() {
                for queue in others.iter().filter_map(|open| open.borrow().clone()) {
                    queue.start();
                }
            }
        });
    }

    /// All trouble ends; every job of the living has to start, and nothing may be left.
    async fn end(&self) {
        let world = &self.world;
        // Shards that are stopped or not yet started come to it.
        sleep(Duration::from_secs(10)).await;
        world.heal();
        let weights: u32 = self.plan.events.iter().map(|timed| weight(&timed.event)).sum();
        let limit = PATIENCE * 10 + self.plan.lease * 4 + self.interval * weights * 2;
        let deadline = world.now() + limit;
        let mut rounds = 0_u32;
        loop {
            if rounds.is_multiple_of(20) {
                // A shard may be the only one to remember a pause: it tells with its tick, and only then can all resume.
                let in_vain = timeout(limit, self.wake_all()).await.is_err();
                if in_vain {
                    world.check(|checks| {
                        checks.violate(
                            Promise::NoLostPlace,
                            world.now() - world.began(),
                            "a tick is never answered".into(),
                        )
                    });
                    return;
                }
            }
            rounds += 1;
            sleep(Duration::from_millis(500)).await;
            world.check(|checks| checks.check_stall(world.now() - world.began()));
            if self.is_done() {
                break;
            }
            if world.now() > deadline {
                let jobs =
                    |place: &Mutex<Place>| locked(&locked(place).waiting).keys().copied().collect::<Vec<_>>();
                let stuck: Vec<_> = self.places.iter().flat_map(jobs).collect();
                let what =
                    format!("{} jobs are stuck {limit:?} after the last fault: {stuck:?}", stuck.len());
                world.check(|checks| checks.violate(Promise::NoLostPlace, world.now() - world.began(), what));
                return;
            }
        }
        self.check_quiet().await;
        world.check(|checks| checks.check_told(world.now() - world.began()));
    }

    async fn wake_all(&self) {
        let world = &self.world;
        for _ in 0..2 {
            let queues = self.alive();
            let Some(first) = queues.first() else { return };
            // It fails only if something is still wrong, and is tried again.
            let _ = first.resume().await;
            for queue in &queues {
                queue.tick().await;
            }
        }
        world.check(|checks| checks.woken(world.now() - world.began()));
        self.alive().iter().for_each(IntervalQueue::start);
    }

    /// The shards that live and are open.
    fn alive(&self) -> Vec<IntervalQueue> {
        let places = self.places.iter().map(locked);
        places
            .filter(|place| !place.process.is_dead())
            .filter_map(|place| place.open.borrow().clone())
            .collect()
    }

    fn is_done(&self) -> bool {
        self.places.iter().all(|place| {
            let place = locked(place);
            place.process.is_dead()
                || (locked(&place.waiting).is_empty()
                    && place
                        .open
                        .borrow()
                        .as_ref()
                        .is_some_and(|queue| queue.waiting() == 0 && queue.running() == 0))
        })
    }

    /// Nothing may be left of shards that have nothing to do.
    async fn check_quiet(&self) {
        let world = &self.world;
        // Those who could not say goodbye at once try again a few times.
        sleep(Duration::from_secs(30)).await;
        let mut left = Vec::new();
        for place in &self.places {
            let place = locked(place);
            // The service itself waits for jobs.
            if !place.process.is_dead() && place.process.tasks() > 1 {
                left.push(format!("{} has {} tasks", place.process.name(), place.process.tasks() - 1));
            }
            let id = place.open.borrow().as_ref().map(IntervalQueue::shard_id);
            let present = |id| world.is_present(&self.queue, &id);
            if !place.process.is_dead() && id.is_some_and(present) {
                left.push(format!("{} is in the record", place.process.name()));
            }
        }
        if !left.is_empty() {
            let what = format!("nothing waits or runs, but {}", left.join(", "));
            world.check(|checks| checks.violate(Promise::Quiet, world.now() - world.began(), what));
        }
    }

    fn outcome(&self) -> Outcome {
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

fn weight(event: &Event) -> u32 {
    match event {
        Event::Add { weight, .. } => *weight,
        _ => 0,
    }
}
