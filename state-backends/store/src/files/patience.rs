//! How long a command waits for those who have the files, and how often it looks whether they are done.

use std::{
    hash::{BuildHasher, RandomState},
    thread,
    time::{Duration, Instant},
};

/// The first pause; each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_micros(50);
/// Pauses grow up to this part of the wait so far: a crowd that looks more often keeps whoever has the files
/// from the processor, and ends up being served a tenth as fast.
const PART_OF_WAIT: u32 = 8;

/// How long a command has been waiting, and how long it may.
#[derive(Debug)]
pub struct Patience {
    begun: Instant,
    limit: Duration,
    longest_pause: (Duration, Duration),
}

impl Patience {
    /// That of a command that begins now. `longest_pause` is what a part of the wait so far is at least and
    /// at most as the longest pause.
    #[allow(
        clippy::disallowed_methods,
        reason = "measures how long a command waits, never an instant of the state"
    )]
    pub fn begin(limit: Duration, longest_pause: (Duration, Duration)) -> Self {
        Self { begun: Instant::now(), limit, longest_pause }
    }

    /// How long the command may wait.
    pub fn limit(&self) -> Duration {
        self.limit
    }

    /// Whether it has waited for so long.
    pub fn is_over(&self) -> bool {
        self.begun.elapsed() >= self.limit
    }

    /// Makes an attempt, and again while the files are taken, until patience is over: then the last result.
    pub fn until_free<T>(&self, is_taken: impl Fn(&T) -> bool, mut attempt: impl FnMut() -> T) -> T {
        let (least, most) = self.longest_pause;
        let mut pause = FIRST_PAUSE;
        loop {
            let result = attempt();
            if !is_taken(&result) || self.is_over() {
                return result;
            }
            thread::sleep(jittered(pause));
            let part = self.begun.elapsed() / PART_OF_WAIT;
            pause = (pause * 2).min(part.clamp(least, most));
        }
    }
}

/// Between half of `pause` and all of it, so that those who wait do not come back together.
pub fn jittered(pause: Duration) -> Duration {
    let random = RandomState::new().hash_one(()) % 512;
    pause * (512 + random as u32) / 1024
}
