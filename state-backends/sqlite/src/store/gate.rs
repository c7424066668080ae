//! A gate in front of the database: processes pass it one at a time, roughly in the order in which
//! they come.
//!
//! SQLite has no fair order: a process that finds the database locked retries after a pause, and
//! its share is a matter of chance. A file lock wakes the next process immediately, so shares are
//! even. A process that waits in vain ignores the file for a while: its holder may be stopped.

use std::{
    fs::{File, OpenOptions},
    path::{Path, PathBuf},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use interval_queue_store::files::{beside, lock};

/// A stopped process may hold the gate, so the wait is [`HOLDS`] times as long as this process held
/// it last, within these bounds.
const TIMEOUT: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));
const HOLDS: u32 = 10;

/// Time for which a file is ignored after a time-out; twice as long after each further one.
const IGNORED: (Duration, Duration) = (Duration::from_millis(32), Duration::from_secs(1));

/// The locked file next to the database, and a second one for the time in which the first is
/// ignored: without a turn, one process alone might get the database.
#[derive(Debug)]
pub struct Gate {
    doors: [Door; 2],
    /// The index of the door that is held, and since when.
    held: Option<(usize, Instant)>,
    last_hold: Duration,
}

#[derive(Debug)]
struct Door {
    path: PathBuf,
    /// `None`: not opened yet, or cannot be created; then every process passes.
    turns: Option<Arc<Turns>>,
    ignored_until: Option<Instant>,
    /// Applies after the next time-out.
    ignored: Duration,
}

/// A wait for a file lock has no time-out, so a thread waits.
#[derive(Debug)]
struct Turns {
    file: File,
    state: Mutex<Turn>,
    changed: Condvar,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Turn {
    Idle,
    /// The thread waits for the lock, and the gate for the thread.
    Awaited,
    /// The thread waits for the lock, and unlocks it immediately.
    GivenUp,
    /// The thread has locked the file for the gate.
    Granted,
    /// The gate was dropped.
    Closed,
}

impl Gate {
    /// The gate of the database at this path.
    pub fn beside(database: &Path) -> Self {
        let door = |suffix| Door {
            path: beside(database, suffix),
            turns: None,
            ignored_until: None,
            ignored: IGNORED.0,
        };
        Self { doors: ["-gate", "-gate2"].map(door), held: None, last_hold: Duration::ZERO }
    }

    /// Waits until no other process is between the gate and [`leave`](Self::leave), or until the
    /// time-out. Must not be called while the gate is held.
    pub fn pass(&mut self) {
        let timeout = (self.last_hold * HOLDS).clamp(TIMEOUT.0, TIMEOUT.1);
        let passed = self.doors.iter_mut().position(|door| door.pass(timeout));
        self.held = passed.map(|door| (door, now()));
    }

    /// How long the gate has been held. `None`: it is not held.
    pub fn held_for(&self) -> Option<Duration> {
        self.held.map(|(_, since)| now() - since)
    }

    /// Lets the next process pass.
    pub fn leave(&mut self) {
        let Some((door, since)) = self.held.take() else { return };
        self.last_hold = now() - since;
        if let Some(turns) = &self.doors[door].turns {
            let _ = lock::unlock(&turns.file);
        }
    }
}

impl Door {
    /// Returns false after the time-out.
    fn pass(&mut self, timeout: Duration) -> bool {
        if self.ignored_until.is_some_and(|until| now() < until) {
            return false;
        }
        if self.turns.is_none() {
            let make = || OpenOptions::new().append(true).create(true).open(&self.path);
            // Users with the right to read the file may lock it, so they can share it.
            let file = File::open(&self.path).or_else(|_| make());
            self.turns = file.ok().and_then(Turns::start);
        }
        let Some(turns) = &self.turns else { return false };
        if turns.wait(timeout) {
            self.ignored = IGNORED.0;
            return true;
        }
        self.ignored_until = Some(now() + self.ignored);
        self.ignored = IGNORED.1.min(self.ignored * 2);
        false
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.leave();
        for turns in self.doors.iter().filter_map(|door| door.turns.as_ref()) {
            *turns.state() = Turn::Closed;
            turns.changed.notify_all();
        }
    }
}

impl Turns {
    fn start(file: File) -> Option<Arc<Self>> {
        let turns = Arc::new(Self { file, state: Mutex::new(Turn::Idle), changed: Condvar::new() });
        let waiting = turns.clone();
        let thread = thread::Builder::new().name("interval-queue-gate".into());
        thread.spawn(move || waiting.wait_for_lock()).ok().map(|_| turns)
    }

    fn state(&self) -> MutexGuard<'_, Turn> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A file that cannot be locked counts as locked.
    fn wait(&self, timeout: Duration) -> bool {
        let mut state = self.state();
        if *state == Turn::Idle && !matches!(lock::try_lock(&self.file), Ok(false)) {
            return true;
        }
        *state = Turn::Awaited;
        self.changed.notify_all();
        let waited = self.changed.wait_timeout_while(state, timeout, |state| *state == Turn::Awaited);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let is_granted = *state == Turn::Granted;
        *state = if is_granted { Turn::Idle } else { Turn::GivenUp };
        is_granted
    }

    fn wait_for_lock(&self) {
        loop {
            let wait = |state: &mut Turn| matches!(state, Turn::Idle | Turn::Granted);
            let state = self.changed.wait_while(self.state(), wait).unwrap_or_else(PoisonError::into_inner);
            if *state == Turn::Closed {
                return;
            }
            drop(state);
            let _ = lock::lock(&self.file);
            let mut state = self.state();
            if *state == Turn::Awaited {
                *state = Turn::Granted;
                self.changed.notify_all();
                continue;
            }
            let _ = lock::unlock(&self.file);
            if *state == Turn::GivenUp {
                *state = Turn::Idle;
            }
        }
    }
}

#[allow(clippy::disallowed_methods, reason = "measures a wait, never an instant of the store")]
pub(crate) fn now() -> Instant {
    Instant::now()
}
