//! A scene: a place, workers, and the orders that a test gives them.

use std::{sync::Arc, thread, time::Duration};

use interval_queue::{RateLimit, WakeUps};
use interval_queue_test_support::Process;

use super::{Backend, CLOCK, Log, ahead, broken::Fault, micros, ms, now, said::Said, witness::WITNESS};

/// How long anything may take that is not to fail, on however busy a machine. A worker may report the end of an outage
/// a minute late, after several outages in a row.
const PATIENCE: Duration = Duration::from_secs(150);

/// The number of the witness, which is no worker.
const NOBODY: usize = usize::MAX;

/// How a worker opens the queue.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    pub interval: Duration,
    /// How many may start at once.
    pub burst: u32,
    /// No more than so many in so much time. Zero: any number.
    pub quota: (u32, Duration),
    pub lease: Option<Duration>,
    pub max_running: Option<u32>,
    /// How long a command takes to the state, and its reply back.
    pub away: Duration,
    /// After how long without the state it runs alone, as one of how many shards. Zero: never.
    pub alone: (Duration, u32),
    pub wake_ups: WakeUps,
    pub fault: Fault,
}

impl Options {
    pub fn every(interval: Duration) -> Self {
        Self {
            interval,
            burst: 1,
            quota: (0, Duration::ZERO),
            lease: None,
            max_running: None,
            away: Duration::ZERO,
            alone: (Duration::ZERO, 0),
            wake_ups: WakeUps::Off,
            fault: Fault::None,
        }
    }

    pub fn burst(self, burst: u32) -> Self {
        Self { burst, ..self }
    }

    pub fn quota(self, count: u32, time: Duration) -> Self {
        Self { quota: (count, time), ..self }
    }

    /// How fast the queue may be.
    pub fn pace(&self) -> RateLimit {
        let pace = RateLimit::every(self.interval).burst(self.burst);
        match self.quota {
            (0, _) => pace,
            (count, time) => pace.and(count.into()).per(time),
        }
    }

    pub fn lease(self, lease: Duration) -> Self {
        Self { lease: Some(lease), ..self }
    }

    pub fn max_running(self, limit: u32) -> Self {
        Self { max_running: Some(limit), ..self }
    }

    pub fn away(self, away: Duration) -> Self {
        Self { away, ..self }
    }

    pub fn alone(self, after: Duration, shards: u32) -> Self {
        Self { alone: (after, shards), ..self }
    }

    pub fn wake_ups(self) -> Self {
        Self { wake_ups: WakeUps::On, ..self }
    }

    /// Breaks it on purpose.
    pub fn broken(self, fault: Fault) -> Self {
        Self { fault, ..self }
    }

    /// As one line, with the URL of the state. Zero stands for none.
    fn written(&self, url: &str) -> String {
        let (after, shards) = self.alone;
        let (count, time) = self.quota;
        let [interval, time, lease, away, after] =
            [self.interval, time, self.lease.unwrap_or_default(), self.away, after]
                .map(|length| length.as_millis());
        let limit = self.max_running.unwrap_or_default();
        let wake_ups = u8::from(self.wake_ups == WakeUps::On);
        let fault = self.fault.number();
        let burst = self.burst;
        format!(
            "{interval} {burst} {count} {time} {lease} {limit} {away} {after} {shards} {wake_ups} {fault} {url}"
        )
    }

    pub fn read(line: &str) -> (Self, &str) {
        let mut words = line.splitn(12, ' ');
        let mut number = || words.next().unwrap().parse::<u64>().unwrap();
        let interval = ms(number());
        let burst = u32::try_from(number()).unwrap();
        let quota = (u32::try_from(number()).unwrap(), ms(number()));
        let lease = Some(ms(number())).filter(|lease| !lease.is_zero());
        let max_running = u32::try_from(number()).ok().filter(|limit| *limit > 0);
        let away = ms(number());
        let alone = (ms(number()), u32::try_from(number()).unwrap());
        let wake_ups = if number() == 1 { WakeUps::On } else { WakeUps::Off };
        let fault = Fault::numbered(number());
        (
            Self { interval, burst, quota, lease, max_running, away, alone, wake_ups, fault },
            words.next().unwrap(),
        )
    }
}

/// Where a scenario plays.
#[derive(Debug)]
pub struct Scene {
    pub name: String,
    pub place: Backend,
    pub log: Arc<Log>,
    /// What the environment of workers has besides that of the test.
    pub variables: Vec<(String, String)>,
    workers: usize,
    /// Kept to be ended with the scene.
    _witness: Process,
}

impl Scene {
    pub fn new(name: &str, place: Backend) -> Self {
        let variables = vec![(CLOCK.to_owned(), ahead().to_string())];
        let log = Arc::<Log>::default();
        let of_witness = variables.iter().cloned().chain([(WITNESS.to_owned(), "1".to_owned())]);
        let heard = {
            let log = log.clone();
            move |line: &str| log.hear(NOBODY, line)
        };
        let witness = Process::start_with(name, of_witness, heard);
        Self { name: name.to_owned(), place, log, variables, workers: 0, _witness: witness }
    }

    /// Starts a worker and does not wait until it has opened the queue.
    pub fn spawn(&mut self, options: Options) -> Worker {
        let (number, log) = (self.workers, self.log.clone());
        self.workers += 1;
        let heard = {
            let log = log.clone();
            move |line: &str| log.hear(number, line)
        };
        let mut process = Process::start_with(&self.name, self.variables.clone(), heard);
        process.tell(&options.written(&self.place.url));
        Worker { number, process, log, orders: 0 }
    }

    /// Starts a worker that has opened the queue.
    pub fn worker(&mut self, options: Options) -> Worker {
        let worker = self.spawn(options);
        worker.done();
        worker
    }

    /// Starts as many as the array has.
    pub fn workers<const N: usize>(&mut self, options: Options) -> [Worker; N] {
        let workers = std::array::from_fn(|_| self.spawn(options));
        workers.iter().for_each(Worker::done);
        workers
    }

    /// Stops a worker while so many of its slots are yet to come. One that is stopped while it holds the lock
    /// of the state keeps everybody waiting; then another moment is tried.
    pub fn freeze_with_grants_in_hand(&self, worker: &Worker, least: usize) {
        wait_until("a process is stopped with grants in hand", || {
            worker.freeze();
            let in_hand = self.log.slots_to_come().iter().filter(|slot| slot.worker == worker.number).count();
            if in_hand >= least && !self.place.is_locked() {
                return true;
            }
            worker.thaw();
            thread::sleep(ms(7));
            false
        });
    }

    /// Waits until so many jobs have started.
    pub fn wait_for_starts(&self, count: usize) {
        self.log.wait_until(&format!("{count} jobs have started"), |heard| heard.starts >= count);
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("what the workers said:\n{}", self.log);
        }
    }
}

/// A process that has opened the queue.
#[derive(Debug)]
pub struct Worker {
    pub number: usize,
    process: Process,
    log: Arc<Log>,
    orders: u64,
}

impl Worker {
    /// Adds jobs at once, and waits until they have their tickets.
    pub fn add(&mut self, count: u64) {
        self.add_lasting(count, Duration::ZERO);
    }

    /// Adds jobs of this length at once, and waits until they have their tickets.
    pub fn add_lasting(&mut self, count: u64, length: Duration) {
        self.log.note(self.number, Said::Given(count));
        self.tell(&format!("add {count} {}", length.as_millis()));
        self.done();
    }

    /// Has it add jobs at once, and does not wait.
    pub fn begin_to_add(&mut self, count: u64) {
        self.log.note(self.number, Said::Given(count));
        self.tell(&format!("add {count} 0"));
    }

    /// Has it add jobs one after another, and does not wait.
    pub fn feed(&mut self, count: u64, every: Duration) {
        self.log.note(self.number, Said::Given(count));
        self.tell(&format!("feed {count} {}", every.as_millis()));
    }

    /// Has it add jobs so that so many always wait, until it is told to [stop](Self::stop).
    pub fn keep(&mut self, depth: u64) {
        self.tell(&format!("keep {depth}"));
    }

    /// Has it add no more.
    pub fn stop(&mut self) {
        self.tell("stop");
    }

    pub fn pause(&mut self) {
        self.change("pause");
    }

    pub fn resume(&mut self) {
        self.change("resume");
    }

    pub fn tick(&mut self) {
        self.ask("tick");
    }

    /// The same, and does not wait for other orders.
    pub fn begin_to_tick(&mut self) {
        self.tell("tick");
    }

    pub fn hold(&mut self, length: Duration) {
        self.change(&format!("hold {}", length.as_millis()));
    }

    pub fn set_interval(&mut self, interval: Duration) {
        self.change(&format!("interval {}", interval.as_millis()));
    }

    /// Waits until it has carried out all orders.
    pub fn done(&self) {
        let (number, orders) = (self.number, self.orders);
        self.log.wait_until(&format!("worker {number} has carried out its orders"), |heard| {
            heard.done.get(&number).is_some_and(|done| *done > orders)
        });
    }

    /// Waits until its jobs have started and nothing of it is left in the record, and until it has ended.
    pub fn finish(mut self) {
        self.done();
        self.tell("finish");
        self.done();
        self.process.wait();
    }

    /// `kill -9`
    pub fn kill(&mut self) {
        self.log.note(self.number, Said::Killed);
        self.process.kill();
    }

    /// Stops it where it is.
    pub fn freeze(&self) {
        self.process.freeze();
        self.log.note(self.number, Said::Frozen { at: now() });
    }

    /// Lets it go on.
    pub fn thaw(&self) {
        self.log.note(self.number, Said::Thawed { at: now() });
        self.process.thaw();
    }

    fn change(&mut self, order: &str) {
        let from = now();
        self.ask(order);
        self.log.note(self.number, Said::Changed { from, to: now() });
    }

    fn ask(&mut self, order: &str) {
        self.tell(order);
        self.done();
    }

    fn tell(&mut self, order: &str) {
        self.orders += 1;
        self.process.tell(&format!("{} {order}", self.orders));
    }
}

/// Has each keep so many jobs waiting.
pub fn keep(workers: &mut [Worker], depth: u64) {
    workers.iter_mut().for_each(|worker| worker.keep(depth));
}

/// Finishes those that kept jobs waiting.
pub fn stop_and_finish(workers: impl IntoIterator<Item = Worker>) {
    let mut workers: Vec<_> = workers.into_iter().collect();
    workers.iter_mut().for_each(Worker::stop);
    finish(workers);
}

/// Finishes them all.
pub fn finish(workers: impl IntoIterator<Item = Worker>) {
    workers.into_iter().for_each(Worker::finish);
}

/// Waits, long enough for any machine, until something is so.
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = now();
    while !is_so() {
        assert!(now() - begun < micros(PATIENCE), "in vain waited until {what}");
        thread::sleep(ms(1));
    }
}
