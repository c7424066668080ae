//! Many processes that take tickets from one state in a file, some of which are killed.

use std::{
    io::{self, BufRead, Write},
    path::Path,
    sync::mpsc,
    time::Duration,
};

use tokio::runtime;

use super::{InFile, Taker, last_ticket, open, open_queue};
use crate::Process;

/// A copy of the test program that takes tickets, and those that it has told of.
#[derive(Debug)]
pub struct Worker {
    /// The copy.
    pub process: Process,
    /// Those that it has told of.
    pub tickets: mpsc::Receiver<u64>,
}

impl Worker {
    /// Starts one and gives it its orders.
    pub fn start(test: &str, path: &Path, shard: &str, takes: u64) -> Self {
        let (sender, tickets) = mpsc::channel();
        let mut process = Process::start(test, move |line| {
            if let Some(ticket) = line.strip_prefix("ticket ") {
                let _ = sender.send(ticket.parse().unwrap());
            }
        });
        process.tell(&format!("{}\n{shard}\n{takes}", path.display()));
        Self { process, tickets }
    }

    /// Kills it: all tickets that it has told of and nobody has heard yet.
    fn kill(&mut self) -> Vec<u64> {
        self.process.kill();
        self.tickets.iter().collect()
    }
}

/// Starts copies of a test program which are to carry out their orders on the file, and waits until they have
/// ended: all tickets that they tell of, sorted.
pub fn tickets_of_crowd(test: &str, path: &Path, processes: u64, takes: u64) -> Vec<u64> {
    let crowd = (0..processes).map(|n| Worker::start(test, path, &format!("shard {n}"), takes));
    let mut crowd: Vec<_> = crowd.collect();
    crowd.iter_mut().for_each(|worker| worker.process.wait());
    let mut tickets: Vec<_> = crowd.iter().flat_map(|worker| worker.tickets.iter()).collect();
    tickets.sort_unstable();
    tickets
}

/// What a copy of a test program is ordered: a path, the name of a shard, and how many tickets it is to take.
pub fn orders() -> (String, String, u64) {
    let mut orders = io::stdin().lock().lines().map_while(Result::ok);
    let mut order = || orders.next().unwrap();
    (order(), order(), order().parse().unwrap())
}

/// Tells of a ticket, in one write: a killed process leaves no half of a line.
pub fn tell(ticket: u64) {
    io::stdout().write_all(format!("\nticket {ticket}\n").as_bytes()).unwrap();
}

/// Runs something on a runtime of one thread.
pub fn block_on<T>(work: impl Future<Output = T>) -> T {
    runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

fn take_tickets<S: InFile>() {
    let (path, shard, takes) = orders();
    block_on(async {
        // Forty processes with a flush each on a poor disk need more than the usual five seconds to take
        // turns.
        let state = S::open_at(path.as_ref(), Duration::from_secs(60)).await.unwrap();
        open_queue(&state).await.unwrap();
        let mut taker = Taker::new(&state, &shard);
        for _ in 0..takes {
            tell(taker.take().await.unwrap());
        }
    });
}

/// A promise.
pub fn processes_get_every_ticket_once<S: InFile>(test: &str) {
    if Process::is_copy() {
        return take_tickets::<S>();
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(S::FILE);
    assert_eq!(tickets_of_crowd(test, &path, 40, 25), (1..=1_000).collect::<Vec<_>>());
    assert!(S::is_whole(&path));
}

/// A promise.
pub fn a_killed_process_leaves_it_whole<S: InFile>(test: &str) {
    const ENDLESS: u64 = 1_000_000;
    const ROUNDS: usize = 24;
    const VICTIMS: usize = 3;
    if Process::is_copy() {
        return take_tickets::<S>();
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(S::FILE);
    let start = |name: String| Worker::start(test, &path, &name, ENDLESS);
    let mut survivors: Vec<_> = (0..S::SURVIVORS).map(|n| start(format!("survivor {n}"))).collect();
    let mut tickets = Vec::new();
    for round in 0..ROUNDS {
        let mut victims: Vec<_> = (0..VICTIMS).map(|n| start(format!("victim {round} {n}"))).collect();
        // At a moment of the processes' making: as unrelated to the victims' steps as can be.
        tickets.push(victims[0].tickets.recv().unwrap());
        for _ in 0..round * VICTIMS {
            tickets.push(victims[round % VICTIMS].tickets.recv().unwrap());
        }
        for victim in &mut victims {
            tickets.extend(victim.kill());
            // In half of the rounds this process recovers what the killed ones left, in the others those of
            // the next round at once.
            assert!(round % 2 == 0 || S::is_whole(&path), "round {round}");
        }
        for survivor in &survivors {
            // More than can have been on their way.
            let last = block_on(async { last_ticket(&open::<S>(&path).await.unwrap()).await });
            while tickets.last().is_none_or(|ticket| *ticket <= last) {
                tickets.push(survivor.tickets.recv().unwrap());
            }
        }
    }
    tickets.extend(survivors.iter_mut().flat_map(Worker::kill));
    assert!(S::is_whole(&path));
    let given = tickets.len();
    tickets.sort_unstable();
    tickets.dedup();
    assert_eq!(tickets.len(), given, "a ticket was given twice");
    block_on(async {
        let state = open::<S>(&path).await.unwrap();
        let last = last_ticket(&state).await;
        // A killed process may have taken one ticket that it could not tell of any more.
        let most = (given + ROUNDS * VICTIMS + S::SURVIVORS) as u64;
        assert!((given as u64..=most).contains(&last), "{given} tickets told of, the last is {last}");
        assert_eq!(Taker::new(&state, "last").take().await.unwrap(), last + 1);
    });
}
