//! What the tests on real processes share: a scene with a place for the state, processes that open a queue there and
//! do as they are told, and the log of all they say.
//!
//! A process is a copy of the test program: `worker.rs` is what it does, `log.rs` what is known of it, `place.rs` where
//! the state is.
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

mod log;
mod place;
mod scene;
mod worker;

use std::time::Duration;

use interval_queue_test_support::Process;
pub use log::{Log, Slot, Start, assert_kept_pace, share_of_rate};
pub use place::Place;
pub use scene::{Options, Scene, Worker, add_mixed, finish, wait_until};

/// Milliseconds.
pub fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// The host's clock, in microseconds. It is also that of a state file, and of a Redis on this host.
#[allow(clippy::disallowed_methods, reason = "the tests' own clock")]
pub fn now() -> u64 {
    let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    u64::try_from(since_epoch.as_micros()).unwrap()
}

/// A length of time in microseconds.
pub fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap()
}

/// Plays a scenario, or, in a copy of this program, what a worker does in it.
pub fn play(name: &str, place: fn() -> Place, scenario: fn(&mut Scene)) {
    if Process::is_copy() {
        return worker::obey();
    }
    scenario(&mut Scene::new(name, place()));
}

/// Makes of each scenario a test on a JSON file.
macro_rules! on_file {
    ($($scenario:ident),+ $(,)?) => {
        mod json_file {
            $(#[test]
            fn $scenario() {
                let name = concat!("json_file::", stringify!($scenario));
                super::process::play(name, super::process::Place::file, super::$scenario);
            })+
        }
    };
}
pub(crate) use on_file;

/// Makes of each scenario a test on Redis.
macro_rules! on_redis {
    ($($scenario:ident),+ $(,)?) => {
        mod redis {
            $(#[test]
            #[ignore = "needs redis-server: scripts/test runs it"]
            fn $scenario() {
                let name = concat!("redis::", stringify!($scenario));
                super::process::play(name, super::process::Place::redis, super::$scenario);
            })+
        }
    };
}
pub(crate) use on_redis;
