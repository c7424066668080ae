//! What a worker does: it opens the queue, carries out its orders, and says what happens, one line each.

use std::{
    io::Write,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use interval_queue::{
    IntervalQueue, OnExisting, SharedState, StateError, Ticket, WhenStateIsLost, connect,
    contract::{Changes, Command, Memory, Micros, QueueName, Reply, Step},
};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinSet,
};

use super::{
    broken::{self, Fault, Stopless},
    micros, ms, now,
    place::QUEUE,
    scene::Options,
    started,
};

/// A shard that was silent for longer may count as gone: leases are longer.
pub(super) const ALIVE: Micros = Micros::from_millis(200);

/// Reads orders from the standard input until it ends. The first line is how to open the queue.
pub fn obey() {
    started::listen();
    std::panic::set_hook(Box::new(|info| {
        say(&format!("\npanic {}", info.to_string().replace('\n', " ")));
        std::process::exit(101);
    }));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let mut orders = BufReader::new(tokio::io::stdin()).lines();
        let opening = orders.next_line().await.unwrap().expect("the line that says how to open the queue");
        let worker = Worker {
            queue: open(&opening).await,
            jobs: Arc::default(),
            room: Arc::new(Semaphore::new(0)),
            keeping: Arc::default(),
        };
        say("\ndone 0");
        while let Some(line) = orders.next_line().await.unwrap() {
            let (number, order) = line.split_once(' ').expect("a number and an order");
            if order == "finish" {
                worker.queue.close().await;
                say(&format!("done {number}"));
                // A runtime that ends waits for the read of the standard input.
                std::process::exit(0);
            }
            worker.begin(number.to_owned(), order);
        }
        // The test is gone.
        std::process::exit(1);
    });
}

/// Opens the queue, however long that takes.
async fn open(opening: &str) -> IntervalQueue {
    loop {
        match try_to_open(opening).await {
            Ok(queue) => return queue,
            Err(error) => say(&format!("\ntrouble {error}")),
        }
        tokio::time::sleep(ms(50)).await;
    }
}

async fn try_to_open(opening: &str) -> Result<IntervalQueue, interval_queue::Error> {
    let (options, url) = Options::read(opening);
    let inner = connect(url).await?.rates().await?;
    let broken = broken::Replies::new(options.fault);
    let state = Telling { inner, away: options.away, broken, seen: Mutex::default() };
    let hook = |error: &interval_queue::Error| say(&format!("trouble {error}"));
    let mut builder =
        IntervalQueue::builder(QUEUE).rate_limit(options.pace()).linger(Duration::ZERO).on_error(hook);
    builder = builder.wake_ups(options.wake_ups).on_existing(OnExisting::Replace);
    if let Some(lease) = options.lease {
        builder = builder.lease(lease);
    }
    if let Some(limit) = options.max_running {
        builder = builder.max_running(limit);
    }
    if let (after, shards @ 1..) = options.alone {
        builder = builder.when_state_is_lost(WhenStateIsLost::RunAlone { after, shards });
    }
    if options.fault == Fault::Stale {
        builder = builder.host(Stopless::default());
    }
    builder.open(state).await
}

#[derive(Clone)]
struct Worker {
    queue: IntervalQueue,
    jobs: Arc<AtomicU64>,
    /// Room for jobs that wait, while it is to keep so many.
    room: Arc<Semaphore>,
    keeping: Arc<tokio::sync::Mutex<JoinSet<()>>>,
}

impl Worker {
    /// Begins an order, so that one that takes long does not keep others waiting.
    fn begin(&self, number: String, order: &str) {
        let words: Vec<&str> = order.split(' ').collect();
        let word = words[0].to_owned();
        let amounts: Vec<u64> = words[1..].iter().map(|word| word.parse().unwrap()).collect();
        let first = match word.as_str() {
            "add" | "feed" => self.jobs.fetch_add(amounts[0], Ordering::Relaxed),
            _ => 0,
        };
        let worker = self.clone();
        tokio::spawn(async move {
            worker.carry_out(&word, first, &amounts).await;
            say(&format!("done {number}"));
        });
    }

    async fn carry_out(&self, word: &str, first: u64, amounts: &[u64]) {
        let queue = &self.queue;
        match (word, amounts) {
            ("add", &[count, length]) => {
                futures::future::join_all((0..count).map(|n| self.add(first + n, ms(length)))).await;
            }
            ("feed", &[count, every]) => {
                for n in 0..count {
                    self.add(first + n, Duration::ZERO).await;
                    tokio::time::sleep(ms(every)).await;
                }
            }
            ("keep", &[depth]) => {
                let worker = self.clone();
                let keeping = async move { worker.keep(usize::try_from(depth).unwrap()).await };
                self.keeping.lock().await.spawn(keeping);
            }
            ("stop", []) => {
                self.room.close();
                while self.keeping.lock().await.join_next().await.is_some() {}
            }
            ("pause", []) => queue.pause().await.unwrap(),
            ("resume", []) => queue.resume().await.unwrap(),
            ("tick", []) => drop(queue.tick().await),
            ("hold", &[length]) => queue.hold(ms(length)).await.unwrap(),
            ("interval", &[length]) => queue.set_interval(ms(length)).await.unwrap(),
            _ => panic!("unknown order {word} {amounts:?}"),
        }
    }

    async fn add(&self, job: u64, length: Duration) {
        let added = self.queue.add(async move {
            say_start(job);
            if !length.is_zero() {
                tokio::time::sleep(length).await;
                say(&format!("end {} {job}", now()));
            }
        });
        let ticket = async { added.await?.ticket().await };
        let ticket = ticket.await.unwrap_or_else(|error| panic!("job {job} is refused: {error}"));
        say(&format!("ticket {ticket} {job}"));
    }

    /// Adds a job whenever there is room for one. In the end it says how many it has added in all.
    async fn keep(&self, depth: usize) {
        self.room.add_permits(depth);
        let mut adding = JoinSet::new();
        while let Ok(room) = self.room.clone().acquire_owned().await {
            let job = self.jobs.fetch_add(1, Ordering::Relaxed);
            let worker = self.clone();
            adding.spawn(async move { worker.add_or_be_refused(job, Arc::new(room)).await });
            while adding.try_join_next().is_some() {}
        }
        adding.join_all().await;
        say(&format!("given {}", self.jobs.load(Ordering::Relaxed)));
    }

    /// The job has the room until it starts.
    async fn add_or_be_refused(&self, job: u64, room: Arc<OwnedSemaphorePermit>) {
        let of_job = room.clone();
        let added = self.queue.add(async move {
            say_start(job);
            drop(of_job);
        });
        let ticket = async { added.await?.ticket().await };
        match ticket.await {
            Ok(ticket) => say(&format!("ticket {ticket} {job}")),
            Err(_) => {
                say(&format!("refused {} {job}", now()));
                // A person would not try again at once either.
                tokio::time::sleep(ms(20)).await;
            }
        }
        drop(room);
    }
}

/// A state that tells of every slot it grants before the shard hears of it, and may be far away.
#[derive(Debug)]
struct Telling {
    inner: Arc<dyn SharedState>,
    away: Duration,
    broken: broken::Replies,
    /// The highest ticket that was granted a slot, and when it last spoke to the state.
    seen: Mutex<(Ticket, Micros)>,
}

#[async_trait]
impl SharedState for Telling {
    async fn apply(&self, queue: &QueueName, command: Command) -> Result<Reply, StateError> {
        self.travel().await;
        let asked = command.clone();
        let mut has_grants = false;
        let mut reply = self.inner.apply(queue, command).await;
        if let (Command::Step(step), Ok(Reply::Stepped(stepped))) = (&asked, &mut reply) {
            self.broken.spoil(step, stepped);
            let granted = stepped.memory.at;
            self.note_return(step, &stepped.memory);
            for grant in &stepped.grants {
                say(&format!("slot {} {} {}", grant.slot.get(), grant.ticket, granted.get()));
            }
            has_grants = !stepped.grants.is_empty();
            let mut seen = self.seen.lock().unwrap();
            let highest = stepped.grants.iter().map(|grant| grant.ticket).max();
            *seen = (seen.0.max(highest.unwrap_or_default()), granted);
        }
        self.travel().await;
        if has_grants {
            say_later(&format!("heard {}", now()));
        }
        reply
    }

    async fn changes(&self, queue: &QueueName) -> Result<Changes, StateError> {
        self.inner.changes(queue).await
    }
}

impl Telling {
    /// Says if the lowest ticket asked for is one that was given up, or that waited longer than some leases.
    fn note_return(&self, step: &Step, now: &Memory) {
        let (highest, before) = *self.seen.lock().unwrap();
        if step.ask.first().is_some_and(|ask| ask.ticket <= highest || now.at - before > ALIVE) {
            say(&format!("returned {} {}", now.at.get(), now.ticket));
        }
    }

    async fn travel(&self) {
        if !self.away.is_zero() {
            tokio::time::sleep(self.away).await;
        }
    }
}

/// The first thing that a job does.
fn say_start(job: u64) {
    let (ticket, late) = started::place();
    say(&format!("start {} {job} {ticket} {late}", now()));
}

/// What is to be said with the next line.
static LATER: Mutex<String> = Mutex::new(String::new());

/// Says a line. It is written at once and as a whole, so that a killed process leaves no half of one.
fn say(line: &str) {
    let mut later = LATER.lock().unwrap();
    let lines = format!("{}{line}\n", std::mem::take(&mut *later));
    let mut out = std::io::stdout().lock();
    // If nobody listens the end of the input will tell.
    let _ = out.write_all(lines.as_bytes());
    let _ = out.flush();
}

/// Says a line before the next one. Nobody can be stopped over it, as over one that is written.
fn say_later(line: &str) {
    *LATER.lock().unwrap() += &format!("{line}\n");
}
