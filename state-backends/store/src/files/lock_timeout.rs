//! How long a command waits for files in use, and how often it retries.

use std::{
    hash::{BuildHasher, RandomState},
    thread,
    time::{Duration, Instant},
};

/// The first pause. Each further pause is twice as long, up to the limit below.
const FIRST_PAUSE: Duration = Duration::from_micros(50);
/// Maximum pause, as a part of the wait so far. Shorter pauses take processor
/// time from the holder: many waiting commands are then served ten times slower.
const MAX_PAUSE_PART: u32 = 8;

/// The wait of one command and its limit.
#[derive(Debug)]
pub struct LockTimeout {
    begun: Instant,
    limit: Duration,
    longest_pause: (Duration, Duration),
}

impl LockTimeout {
    /// Starts the wait now. `longest_pause`: lower and upper bound of the maximum pause.
    #[allow(
        clippy::disallowed_methods,
        reason = "measures how long a command waits, never an instant of the state"
    )]
    pub fn begin(limit: Duration, longest_pause: (Duration, Duration)) -> Self {
        Self { begun: Instant::now(), limit, longest_pause }
    }

    /// Maximum wait of the command.
    pub fn limit(&self) -> Duration {
        self.limit
    }

    /// Whether the maximum wait has passed.
    pub fn is_over(&self) -> bool {
        self.begun.elapsed() >= self.limit
    }

    /// Attempts until `is_taken` is false or the wait is over. Returns the last result.
    pub fn until_free<T>(&self, is_taken: impl Fn(&T) -> bool, mut attempt: impl FnMut() -> T) -> T {
        let (least, most) = self.longest_pause;
        let mut pause = FIRST_PAUSE;
        loop {
            let result = attempt();
            if !is_taken(&result) || self.is_over() {
                return result;
            }
            thread::sleep(jittered(pause));
            let part = self.begun.elapsed() / MAX_PAUSE_PART;
            pause = (pause * 2).min(part.clamp(least, most));
        }
    }
}

/// A random duration from half of `pause` to all of it, so that waiting commands spread out.
pub fn jittered(pause: Duration) -> Duration {
    let random = RandomState::new().hash_one(()) % 512;
    pause * (512 + random as u32) / 1024
}
