//! How many tasks a second four processes add, lease and settle together, and how many go through other libraries.

use std::env;

use interval_queue_report::counted;
use tokio::process::Command;

use crate::{
    crew::{self, Found},
    figures::{figure, median},
    peers::{Installed, Peer},
    place::Place,
};

pub(crate) const PROCESSES: usize = 4;
/// Where several are added in one command.
const ADDED: usize = 1_000;

/// How tasks are stored, added and leased.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) is_full: bool,
    /// So many are added in one command.
    pub(crate) added: usize,
    /// So many are leased in one command, or run at once in a worker.
    pub(crate) batch: usize,
    /// How many there are in all.
    pub(crate) tasks: usize,
}

impl Case {
    /// With a part of the tasks, as many whole commands for each process.
    fn part(self, share: usize) -> Self {
        let each = self.tasks / share / PROCESSES;
        let added = self.added.min(each.max(self.batch));
        let whole = added.max(self.batch);
        Self { added, tasks: each.max(whole) / whole * whole * PROCESSES, ..self }
    }
}

/// What runs tasks.
enum Contender {
    /// The commands of a worker by themselves.
    Steps,
    /// A worker of this library.
    Worker,
    Peer(Installed),
}

impl Contender {
    fn name(&self) -> String {
        match self {
            Self::Steps => "steps".into(),
            Self::Worker => "`Worker`".into(),
            Self::Peer(peer) => peer.name(),
        }
    }

    fn can(&self, case: &Case) -> bool {
        match self {
            Self::Steps | Self::Worker => true,
            Self::Peer(peer) => peer.can(case),
        }
    }

    async fn measure(&self, case: &Case) -> Found {
        let place = Place::new(case.is_full);
        let ours = || {
            let mut command = Command::new(env::current_exe().unwrap());
            command.arg("speed").arg(&place.url);
            command.args([case.batch, case.tasks / PROCESSES, case.added].map(|number| number.to_string()));
            if matches!(self, Self::Worker) {
                command.arg("--worker");
            }
            command
        };
        let commands = match self {
            Self::Steps | Self::Worker => (0..PROCESSES).map(|_| ours()).collect(),
            Self::Peer(peer) => peer.commands(case, &place),
        };
        crew::measure(commands, case.tasks).await
    }
}

pub(crate) async fn measure(runs: u32, share: usize, with_peers: bool) {
    let cases = [
        Case { is_full: false, added: 1, batch: 1, tasks: 20_000 },
        Case { is_full: false, added: ADDED, batch: 1, tasks: 40_000 },
        Case { is_full: false, added: ADDED, batch: 10, tasks: 200_000 },
        Case { is_full: false, added: ADDED, batch: 100, tasks: 400_000 },
        Case { is_full: true, added: 1, batch: 1, tasks: 4_000 },
        Case { is_full: true, added: ADDED, batch: 1, tasks: 4_000 },
        Case { is_full: true, added: ADDED, batch: 10, tasks: 40_000 },
        Case { is_full: true, added: ADDED, batch: 100, tasks: 200_000 },
    ];
    let cases = cases.map(|case| case.part(share));
    println!("## Tasks a second\n");
    let peers = if with_peers { Peer::installed() } else { Vec::new() };
    let ours = [Contender::Steps, Contender::Worker];
    let contenders: Vec<Contender> = ours.into_iter().chain(peers.into_iter().map(Contender::Peer)).collect();
    let mut rows: Vec<(&Case, &Contender, Vec<Found>)> = Vec::new();
    for case in &cases {
        let able = contenders.iter().filter(|contender| contender.can(case));
        rows.extend(able.map(|contender| (case, contender, Vec::new())));
    }
    for _ in 0..runs {
        for (case, contender, found) in &mut rows {
            found.push(contender.measure(case).await);
        }
    }
    println!(
        "Four processes add tasks with payloads of 100 bytes, lease them, run nothing and settle them, on one SQLite \
         database. *Steps* are the commands of a worker by themselves; `Worker` is the one of the library, with as many \
         jobs as a step has tasks. The ratio is that of tasks a second, to those of `Worker` in the same case.\n"
    );
    println!("| durability | added at once | in a step | what | tasks a second | ratio | CPU per task, µs |");
    println!("|---|---:|---:|---|---:|---:|---:|");
    let middle = |found: &[Found], of: fn(&Found) -> f64| median(found.iter().map(of)).unwrap();
    let rate_of_worker = |case: &Case| {
        let of_it = |row: &&(&Case, &Contender, Vec<Found>)| {
            std::ptr::eq(row.0, case) && matches!(row.1, Contender::Worker)
        };
        middle(&rows.iter().find(of_it).unwrap().2, |found| found.rate)
    };
    for (case, contender, found) in &rows {
        let Case { is_full, added, batch, .. } = case;
        let durability = if *is_full { "full" } else { "relaxed" };
        let (rate, cpu) = (middle(found, |found| found.rate), middle(found, |found| found.cpu));
        let ratio = rate / rate_of_worker(case);
        let (added, name) = (counted(*added as u64), contender.name());
        println!(
            "| {durability} | {added} | {batch} | {name} | {} | {ratio:.2} | {} |",
            figure(rate),
            figure(cpu)
        );
    }
    println!();
    if with_peers {
        println!(
            "effectum runs in one process only, which has four workers with as many jobs each as a step has tasks. huey adds \
             and leases tasks one by one, deletes a task before it runs it, and never syncs where it is relaxed. The \
             others keep tasks that have ended. `benches/peers/README.md` says how each is set up.\n"
        );
    }
}
