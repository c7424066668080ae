//! What the tests on real processes share: a scene with a place for the state, processes that open a queue
//! there and do as they are told, and the log of all they say.
//!
//! A process is a copy of the test program: `worker.rs` is what it does, `said.rs` what it says, `log.rs`
//! what is known of it, `findings.rs` and `order.rs` what the promises make of that; `place` is where the
//! state is. `chaos.rs` does harm at random instants, and `outcome.rs` tells what came of it.
//!
//! Machines are busy, so what was decided is judged exactly, by slots and the tickets they were granted to,
//! and what the host made of it beside a witness (`witness.rs`). `broken.rs` breaks workers on purpose, to
//! check the checks.
#![allow(
    dead_code,
    unused_imports,
    unused_macros,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::missing_panics_doc,
    reason = "each test file uses a part, and a test fails by panicking"
)]

mod broken;
mod chaos;
mod findings;
mod log;
mod order;
mod outcome;
mod place;
mod said;
mod scene;
mod started;
mod witness;
mod worker;

use std::{env, sync::OnceLock, time::Duration};

pub use broken::Fault;
pub use chaos::{Chaos, Injection, is_long, times};
pub use findings::{Grant, Use, share_of_rate};
use interval_queue_test_support::Process;
pub use log::{Log, Slot, Start};
pub use outcome::{Outcome, counted};
pub use place::{Backend, QUEUE};
use rustix::time::{ClockId, clock_gettime};
pub use scene::{Options, Scene, Worker, finish, keep, stop_and_finish, wait_until};

/// Milliseconds.
pub fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Tells a copy how far the tests' clock is ahead of the host's monotonic one.
const CLOCK: &str = "INTERVAL_QUEUE_TEST_CLOCK";

/// The tests' clock, in microseconds: the same in all processes, and steady also where that of the host is
/// stepped. Unless it is, this is the clock of a state file, too, and of a server on this host.
pub fn now() -> u64 {
    monotonic() + ahead()
}

#[allow(clippy::disallowed_methods, reason = "the tests' own clock")]
fn ahead() -> u64 {
    static AHEAD: OnceLock<u64> = OnceLock::new();
    *AHEAD.get_or_init(|| {
        if let Ok(told) = env::var(CLOCK) {
            return told.parse().unwrap();
        }
        let monotonic = monotonic();
        let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        micros(since_epoch) - monotonic
    })
}

fn monotonic() -> u64 {
    let read = clock_gettime(ClockId::Monotonic);
    u64::try_from(read.tv_sec * 1_000_000 + read.tv_nsec / 1_000).unwrap()
}

/// A length of time in microseconds.
pub fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap()
}

/// Plays a scenario, or, in a copy of this program, what a worker does in it.
pub fn play(module: &str, scenario_name: &str, place: fn() -> Backend, scenario: fn(&mut Scene)) {
    play_with(worker::obey, module, scenario_name, place, scenario);
}

/// The same with copies that do something else.
pub fn play_with(
    obey: fn(),
    module: &str,
    scenario_name: &str,
    place: fn() -> Backend,
    scenario: fn(&mut Scene),
) {
    if Process::is_copy() {
        return if env::var_os(witness::WITNESS).is_some() { witness::watch() } else { obey() };
    }
    // Within the program a test is named without it.
    let (_, module) = module.split_once("::").unwrap();
    scenario(&mut Scene::new(&format!("{module}::{scenario_name}"), place()));
}

/// Makes of each scenario a test in a module, with its state at a place, and ignored if that needs something.
macro_rules! on {
    ($module:ident, $place:ident, $needs:tt; $($scenario:ident),+ $(,)?) => {
        mod $module {
            $(crate::process::on!(@test $place, $needs, $scenario);)+
        }
    };
    (@test $place:ident, [$($needs:literal)?], $scenario:ident) => {
        #[test]
        $(#[ignore = $needs])?
        fn $scenario() {
            let (place, scenario) = (crate::process::Backend::$place, super::$scenario);
            crate::process::play(module_path!(), stringify!($scenario), place, scenario);
        }
    };
}
pub(crate) use on;

/// Makes of each scenario a test on a JSON file.
macro_rules! on_file {
    ($($scenario:ident),+ $(,)?) => { crate::process::on! { json_file, file, []; $($scenario),+ } };
}
pub(crate) use on_file;

/// Makes of each scenario a test on Redis.
macro_rules! on_redis {
    ($($scenario:ident),+ $(,)?) => {
        crate::process::on! { redis, redis, ["needs redis-server: scripts/test runs it"]; $($scenario),+ }
    };
}
pub(crate) use on_redis;

/// Makes of each scenario a test on an SQLite database.
macro_rules! on_sqlite {
    ($($scenario:ident),+ $(,)?) => {
        #[cfg(feature = "sqlite")]
        crate::process::on! { sqlite, sqlite, []; $($scenario),+ }
    };
}
pub(crate) use on_sqlite;

/// Makes of each scenario a test on PostgreSQL.
macro_rules! on_postgres {
    ($($scenario:ident),+ $(,)?) => {
        crate::process::on! { postgres, postgres, ["needs postgresql: scripts/test runs it"]; $($scenario),+ }
    };
}
pub(crate) use on_postgres;

/// Makes of each scenario a test on every state that real processes share.
macro_rules! everywhere {
    ($($scenario:ident),+ $(,)?) => {
        crate::process::on_file!($($scenario),+);
        crate::process::on_sqlite!($($scenario),+);
        crate::process::on_redis!($($scenario),+);
        crate::process::on_postgres!($($scenario),+);
    };
}
pub(crate) use everywhere;
