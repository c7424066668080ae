//! Harm done to a scene at random instants, time and again, while all of its workers have jobs that wait.

use std::{env, thread, time::Duration};

use rand::{RngExt, SeedableRng, rngs::StdRng};

use super::{Options, Outcome, Scene, Worker, keep, ms, now, stop_and_finish};

/// Says how long the chaos is to last: `long`, or short.
const LENGTH: &str = "INTERVAL_QUEUE_CHAOS";
/// The seed of all random choices.
const SEED: &str = "INTERVAL_QUEUE_CHAOS_SEED";
/// How many jobs of a worker always wait.
const DEPTH: u64 = 12;
/// How many starts tell that work goes on.
const STARTS: usize = 12;
/// How many starts at the end tell that nothing is left of the harm.
const CALM: usize = 40;

/// Whether there is time for many injections.
pub fn is_long() -> bool {
    match env::var(LENGTH).as_deref() {
        Ok("long") => true,
        Ok("short") | Err(_) => false,
        Ok(other) => panic!("{LENGTH} is {other:?}: long or short"),
    }
}

/// How often harm is done: so often if there is little time, so often if there is much.
pub fn times(short: usize, long: usize) -> usize {
    if is_long() { long } else { short }
}

/// One time that harm was done.
#[derive(Clone, Copy, Debug)]
pub struct Injection {
    pub begun: u64,
    /// Until when it lasted at least, and at most.
    pub lasted: u64,
    pub over: u64,
    /// Whom it hit, if it was one worker.
    pub victim: Option<usize>,
}

impl Injection {
    /// Is over now.
    pub fn since(begun: u64, victim: Option<usize>) -> Self {
        Self { begun, lasted: begun, over: now(), victim }
    }
}

/// Workers that always have jobs waiting, and the harm done to them.
#[derive(Debug)]
pub struct Chaos {
    pub options: Options,
    pub workers: Vec<Worker>,
    pub random: StdRng,
    /// Whether the state's clock is stepped, so that slots cannot be compared with the tests' clock.
    pub is_clock_stepped: bool,
    injections: Vec<Injection>,
    wanted: usize,
}

impl Chaos {
    /// Starts four workers, and waits until jobs start.
    pub fn begin(scene: &mut Scene, options: Options, times: usize) -> Self {
        let seed = env::var(SEED).map_or_else(|_| rand::random(), |seed| seed.parse().unwrap());
        println!("{}: {SEED}={seed}", scene.name);
        let mut workers: Vec<_> = scene.workers::<4>(options).into();
        keep(&mut workers, DEPTH);
        scene.wait_for_starts(STARTS);
        let random = StdRng::seed_from_u64(seed);
        Self { options, workers, random, is_clock_stepped: false, injections: Vec::new(), wanted: times }
    }

    /// The same at an interval of 10 ms, with leases of a second.
    pub fn usual(scene: &mut Scene, times: usize) -> Self {
        Self::begin(scene, Options::every(ms(10)).lease(ms(1_000)), times)
    }

    /// Does harm as often as it is wanted, each time at a random moment, and then ends.
    pub fn harmed(
        mut self,
        scene: &mut Scene,
        moment: Duration,
        mut harm: impl FnMut(&mut Self, &mut Scene),
    ) -> Outcome {
        while self.goes_on(moment) {
            self.harm(scene, &mut harm);
        }
        self.end(scene)
    }

    /// Whether more harm is to be done. Waits for a random moment first.
    pub fn goes_on(&mut self, moment: Duration) -> bool {
        if self.is_to_go_on() {
            thread::sleep(self.length(Duration::ZERO, moment));
        }
        self.is_to_go_on()
    }

    /// Whether more harm is to be done.
    pub fn is_to_go_on(&self) -> bool {
        self.injections.len() < self.wanted
    }

    /// A random length of time.
    pub fn length(&mut self, least: Duration, longest: Duration) -> Duration {
        self.random.random_range(least..=longest)
    }

    /// The place of a random worker.
    pub fn somebody(&mut self) -> usize {
        self.random.random_range(0..self.workers.len())
    }

    /// The same, so that one worker is spared.
    pub fn somebody_but_the_first(&mut self) -> usize {
        self.random.random_range(1..self.workers.len())
    }

    /// Puts a new worker in the place of one.
    pub fn replace(&mut self, scene: &mut Scene, place: usize) {
        let mut fresh = scene.spawn(self.options);
        fresh.keep(DEPTH);
        self.workers[place] = fresh;
    }

    /// Does harm that is over when `harm` returns, and waits until work goes on.
    pub fn harm(&mut self, scene: &mut Scene, harm: impl FnOnce(&mut Self, &mut Scene)) {
        let begun = now();
        harm(self, scene);
        self.note(scene, Injection::since(begun, None));
    }

    /// Does harm that lasts so long, ends it, and waits until work goes on.
    pub fn harm_for<T>(
        &mut self,
        scene: &mut Scene,
        length: Duration,
        begin: impl FnOnce(&mut Scene) -> T,
        end: impl FnOnce(&mut Self, &mut Scene, T),
    ) {
        let harm = begin(scene);
        let begun = now();
        thread::sleep(length);
        let lasted = now();
        end(self, scene, harm);
        self.note(scene, Injection { lasted, ..Injection::since(begun, None) });
    }

    /// Notes harm that was done, and waits until work goes on.
    pub fn note(&mut self, scene: &Scene, injection: Injection) {
        self.injections.push(injection);
        let wanted = scene.log.count_of_starts() + STARTS;
        let what = format!("work goes on after injection {}", self.injections.len());
        scene.log.wait_until(&what, |heard| heard.starts >= wanted);
    }

    /// Lets the workers go on for a while unharmed, and then finish what they have. All of them end.
    pub fn end(self, scene: &Scene) -> Outcome {
        if self.injections.last().is_some_and(|injection| injection.victim.is_some()) {
            // It may cost slots until its lease ends.
            thread::sleep(self.options.lease.unwrap_or_default());
        }
        let unharmed = now();
        scene.wait_for_starts(scene.log.count_of_starts() + CALM);
        let calm = unharmed..now();
        stop_and_finish(self.workers);
        Outcome::new(scene, self.options.interval, self.injections, self.is_clock_stepped, calm)
    }
}
