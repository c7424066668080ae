//! The reports of a process that works: how much it has done, since when and until when.

use std::{
    future::Future,
    io::Write,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, BufReader},
    time::sleep,
};

use crate::clock;

/// Time between two reports.
const EACH: Duration = Duration::from_millis(20);

/// Finished work. Instants are those of the monotonic clock, which all processes of a host share.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    count: AtomicU64,
    first: AtomicU64,
    last: AtomicU64,
    commands: AtomicU64,
    /// How late things were, in microseconds.
    late: Mutex<Vec<u64>>,
}

impl Tally {
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    pub(crate) fn add(&self, count: usize) {
        let now = clock::monotonic();
        let _ = self.first.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
        self.last.store(now, Ordering::Relaxed);
        self.count.fetch_add(count as u64, Ordering::Relaxed);
    }

    pub(crate) fn command(&self) {
        self.commands.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a task that was due at that instant.
    pub(crate) fn late_since(&self, nanos: u64) {
        self.late.lock().unwrap().push(clock::monotonic().saturating_sub(nanos) / 1_000);
        self.add(1);
    }

    fn tell(&self) {
        let numbers = [&self.count, &self.first, &self.last, &self.commands];
        let [count, first, last, commands] = numbers.map(|number| number.load(Ordering::Relaxed));
        let mut out = std::io::stdout().lock();
        writeln!(out, "{count} {first} {last} {commands}").unwrap();
        out.flush().unwrap();
    }

    /// Says that it is ready, works from the first line of the standard input on, and ends with that.
    pub(crate) async fn run(self: Arc<Self>, work: impl Future<Output = ()>) {
        let mut input = BufReader::new(tokio::io::stdin());
        println!("ready");
        input.read_line(&mut String::new()).await.unwrap();
        let tally = self.clone();
        let tell = async {
            loop {
                sleep(EACH).await;
                tally.tell();
            }
        };
        let work = async {
            work.await;
            std::future::pending::<()>().await;
        };
        let mut rest = Vec::new();
        tokio::select! {
            _ = input.read_to_end(&mut rest) => {}
            () = tell => {}
            () = work => {}
        }
        self.tell();
        let late: Vec<String> = self.late.lock().unwrap().iter().map(u64::to_string).collect();
        println!("late {}", late.join(" "));
        // Commands that are under way need no reply.
        std::process::exit(0);
    }
}
