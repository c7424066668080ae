//! The witness: a small process that does nothing but sleep, and says how late it wakes. What the host did to
//! it, it may have done to the workers; what it did not see, they did themselves.

use std::{io, thread, time::Duration};

use super::{Log, micros, now, said::Said};

/// Makes a copy of the test program a witness.
pub(super) const WITNESS: &str = "INTERVAL_QUEUE_TEST_WITNESS";

/// How long it sleeps at a time.
const SLEEP: Duration = Duration::from_millis(5);
/// What every host is late by.
const USUAL: u64 = 500;
/// A start passes through so many wake-ups, of a process that is larger and has more to do, and may wait each
/// time for all that is ready to run.
const WAKES: u64 = 10;

/// Sleeps until nobody listens any more.
pub(super) fn watch() {
    thread::spawn(|| {
        // The end of the input: the test is gone.
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        std::process::exit(0);
    });
    loop {
        let due = now() + micros(SLEEP);
        thread::sleep(SLEEP);
        let late = now().saturating_sub(due);
        if late > USUAL {
            println!("\nwoke {due} {late}");
        }
    }
}

impl Log {
    /// What of a delay between two instants the host may have brought, as the witness saw it.
    pub fn explained(&self, from: u64, to: u64) -> u64 {
        /// Whoever is woken at the same time waits for the same.
        const NEAR: u64 = 50_000;
        let near =
            self.woke().into_iter().filter(|(due, late)| *due <= to + NEAR && due + late + NEAR >= from);
        WAKES * near.map(|(_, late)| late).max().unwrap_or(0)
    }

    /// How late the witness woke between two instants on average.
    pub fn mean_lateness(&self, from: u64, to: u64) -> f64 {
        let within = self.woke().into_iter().filter(|(due, _)| (from..to).contains(due));
        let late: u64 = within.map(|(_, late)| late).sum();
        let slept = to.saturating_sub(from).saturating_sub(late).max(1);
        late as f64 * micros(SLEEP) as f64 / slept as f64
    }

    fn woke(&self) -> Vec<(u64, u64)> {
        self.collect(|_, said| match *said {
            Said::Woke { due, late } => Some((due, late)),
            _ => None,
        })
    }
}
