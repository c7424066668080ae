//! Harm done to a scene of workers and a producer at random instants, time and again, while tasks wait and run.

use std::{collections::BTreeSet, env, fs, sync::atomic::Ordering, thread, time::Duration};

use interval_queue_test_support::{Process, command};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use tempfile::TempDir;

use crate::{
    chaos_facts::{Case, Event, What},
    log::{LOG, Log, NUMBER},
    looks::{Looks, Reader},
    outcome::Outcome,
    process::{QUEUE, Scene, is_long, micros, ms, now, wait_until},
    role::{NAME, ROLE, SEED, STATE},
    worker::LEASE,
};

/// The seed of all random choices.
const CHAOS_SEED: &str = "INTERVAL_QUEUE_CHAOS_SEED";
/// So many runs that are done tell that work goes on.
const DONE: usize = 8;

/// What a process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// A worker of the library.
    Worker,
    /// The program: `interval-queue work -- CMD`.
    Program,
    Producer,
}

/// A process of a scene.
#[derive(Debug)]
pub(crate) struct Actor {
    pub(crate) number: usize,
    pub(crate) part: Part,
    pub(crate) process: Process,
}

/// One time that harm was done.
#[derive(Clone, Debug)]
pub(crate) struct Injection {
    pub(crate) begun: u64,
    pub(crate) over: u64,
    /// Whom it hit, if it was one process.
    pub(crate) victim: Option<usize>,
}

/// Where the log is, whose end is told if the scene fails.
struct Directory(TempDir);

impl Drop for Directory {
    fn drop(&mut self) {
        if thread::panicking() {
            const MOST: usize = 20_000;
            let log = fs::read_to_string(self.0.path().join("log")).unwrap_or_default();
            let lines: Vec<_> = log.lines().collect();
            let last = &lines[lines.len().saturating_sub(MOST)..];
            eprintln!("the end of the log:\n{}", last.join("\n"));
        }
    }
}

/// The processes of a scene, and the harm done to them.
pub(crate) struct Harm {
    pub(crate) workers: Vec<Actor>,
    pub(crate) producer: Actor,
    pub(crate) random: StdRng,
    pub(crate) log: Log,
    pub(crate) reader: Reader,
    pub(crate) case: Case,
    directory: Directory,
    looks: Looks,
    wanted: usize,
    next: usize,
}

impl Harm {
    /// Starts a producer and these workers, and waits until tasks are done.
    pub(crate) fn begin(scene: &Scene, parts: &[Part], times: usize) -> Self {
        let seed = env::var(CHAOS_SEED).map_or_else(|_| rand::random(), |seed| seed.parse().unwrap());
        println!("{}: {CHAOS_SEED}={seed}", scene.name);
        let mut random = StdRng::seed_from_u64(seed);
        let directory = Directory(tempfile::tempdir().unwrap());
        let path = directory.0.path().join("log");
        fs::write(&path, "").unwrap();
        let producer = start(scene, &directory, 0, Part::Producer, &mut random);
        let mut harm = Self {
            workers: Vec::new(),
            producer,
            random,
            log: Log::at(path),
            reader: Reader::new(&scene.place.url),
            case: Case::default(),
            directory,
            looks: Looks::begin(&scene.place.url),
            // There is time for half as many on every further store.
            wanted: if is_long() || scene.place.url.starts_with("sqlite:") {
                times
            } else {
                times.div_ceil(2)
            },
            next: 1,
        };
        // The queue is made by the producer, with its limit.
        harm.wait_until("the producer is ready", |log| log.ready.contains(&0));
        for part in parts {
            let actor = harm.start(scene, *part);
            harm.workers.push(actor);
        }
        harm.wait_for_done(DONE);
        harm
    }

    /// Three workers of the library and one of the program.
    pub(crate) fn usual(scene: &Scene, times: usize) -> Self {
        Self::begin(scene, &[Part::Worker, Part::Worker, Part::Worker, Part::Program], times)
    }

    fn start(&mut self, scene: &Scene, part: Part) -> Actor {
        self.next += 1;
        let actor = start(scene, &self.directory, self.next - 1, part, &mut self.random);
        self.case.parts.insert(actor.number, part);
        actor
    }

    /// Workers that log what they hear of the store.
    pub(crate) fn tellers(&self) -> BTreeSet<usize> {
        let tellers = self.workers.iter().filter(|worker| worker.part == Part::Worker);
        tellers.map(|worker| worker.number).collect()
    }

    /// Waits until the log is so.
    pub(crate) fn wait_until(&mut self, what: &str, is_so: impl Fn(&Log) -> bool) {
        let log = &mut self.log;
        wait_until(what, || {
            log.refresh();
            thread::sleep(ms(4));
            is_so(log)
        });
    }

    /// The same, and does something before each look.
    pub(crate) fn wait_until_or(&mut self, what: &str, is_so: impl Fn(&Log) -> bool, mut or: impl FnMut()) {
        let log = &mut self.log;
        wait_until(what, || {
            or();
            log.refresh();
            is_so(log)
        });
    }

    fn wait_for_done(&mut self, count: usize) {
        self.log.refresh();
        let wanted = self.log.done + count;
        self.wait_until("tasks are done", |log| log.done >= wanted);
    }

    /// Whether more harm is to be done. Waits for a random moment first.
    pub(crate) fn goes_on(&mut self, moment: Duration) -> bool {
        let goes_on = self.case.injections.len() < self.wanted;
        if goes_on {
            thread::sleep(self.length(Duration::ZERO, moment));
        }
        goes_on
    }

    /// A random length of time.
    pub(crate) fn length(&mut self, least: Duration, longest: Duration) -> Duration {
        self.random.random_range(least..=longest)
    }

    /// The place of a random worker.
    pub(crate) fn somebody(&mut self) -> usize {
        self.random.random_range(0..self.workers.len())
    }

    /// Kills a worker with SIGKILL, and puts a new one in its place.
    pub(crate) fn kill(&mut self, scene: &Scene, place: usize) -> usize {
        let victim = &mut self.workers[place];
        let (number, part) = (victim.number, victim.part);
        victim.process.kill();
        self.case.events.push(Event { at: now(), who: number, what: What::Killed });
        self.workers[place] = self.start(scene, part);
        number
    }

    /// The same with the producer. Something is done before there is a new one.
    pub(crate) fn kill_producer(&mut self, scene: &Scene, between: impl FnOnce(&mut Self)) {
        let number = self.producer.number;
        self.producer.process.kill();
        self.case.events.push(Event { at: now(), who: number, what: What::Killed });
        between(self);
        self.producer = self.start(scene, Part::Producer);
        let number = self.producer.number;
        self.wait_until("the producer is ready", |log| log.ready.contains(&number));
    }

    /// Stops a worker for so long.
    pub(crate) fn freeze(&mut self, place: usize, length: Duration) -> usize {
        self.stop(place, What::Frozen);
        thread::sleep(length);
        self.stop(place, What::Thawed);
        self.workers[place].number
    }

    /// Stops a worker, or lets it go on.
    pub(crate) fn stop(&mut self, place: usize, what: What) {
        let Actor { number, process, .. } = &self.workers[place];
        if what == What::Frozen {
            process.freeze();
        }
        self.case.events.push(Event { at: now(), who: *number, what });
        if what == What::Thawed {
            process.thaw();
        }
    }

    /// Makes the store forget something, and waits until work goes on.
    pub(crate) fn forget(&mut self, scene: &mut Scene, harm: impl FnOnce(&mut Self, &mut Scene)) {
        self.looks.forgets.store(u64::MAX, Ordering::Relaxed);
        let begun = now();
        harm(self, scene);
        self.case.losses.push((begun, now()));
        self.looks.forgets.store(now() + micros(LEASE * 2), Ordering::Relaxed);
        self.note(begun, None);
    }

    /// Does harm that is over when `harm` returns, and waits until work goes on.
    pub(crate) fn harm(&mut self, scene: &mut Scene, harm: impl FnOnce(&mut Self, &mut Scene)) {
        let begun = now();
        harm(self, scene);
        self.note(begun, None);
    }

    /// Notes harm that is over now, and waits until work goes on.
    pub(crate) fn note(&mut self, begun: u64, victim: Option<usize>) {
        self.case.injections.push(Injection { begun, over: now(), victim });
        self.wait_for_done(DONE);
    }

    /// Lets work go on to its end, and judges all of it.
    pub(crate) fn end(mut self, scene: &Scene) -> Outcome {
        self.producer.process.tell("stop");
        let number = self.producer.number;
        self.wait_until("the producer has stopped", |log| log.stopped.contains(&number));
        let reader = &mut self.reader;
        wait_until("all tasks have ended", || {
            thread::sleep(ms(50));
            reader.left() == Some(0)
        });
        // A worker that got no answer waits for up to ten seconds before it tries again, and only then hears of runs
        // that do not count.
        let workers = self.tellers();
        self.wait_until("the store has answered all workers", |log| log.unanswered.is_disjoint(&workers));
        // What was said too late is answered.
        thread::sleep(ms(300));
        let seen = self.looks.end();
        let stored = self.reader.all();
        for worker in &mut self.workers {
            worker.process.kill();
        }
        self.log.refresh();
        Outcome::of(scene, self.case, self.log.lines, stored, seen)
    }
}

fn start(scene: &Scene, directory: &Directory, number: usize, part: Part, random: &mut StdRng) -> Actor {
    let copy = env::current_exe().unwrap();
    let words = Process::words(&scene.name);
    let mut program = match part {
        Part::Program => {
            let mut program = command(env!("CARGO_BIN_EXE_interval-queue"));
            program.args(["work", "--lease", "1s", "--jobs", "2", "--"]).arg(copy).args(words);
            program.stderr(fs::File::create(directory.0.path().join(format!("stderr{number}"))).unwrap());
            program
        }
        _ => {
            let mut program = command(copy);
            program.args(words);
            program
        }
    };
    let role = match part {
        Part::Worker => "worker",
        Part::Program => "command",
        Part::Producer => "producer",
    };
    program
        .envs(scene.variables.iter().cloned())
        .env(ROLE, role)
        .env(SEED, random.random::<u64>().to_string())
        .env(LOG, directory.0.path().join("log"))
        .env(NUMBER, number.to_string())
        .env(STATE, &scene.place.url)
        .env(NAME, QUEUE);
    Actor { number, part, process: Process::of(&mut program, |_| {}) }
}
