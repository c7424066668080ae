//! How scenes become tests: each on every store that several processes can share.

use crate::{
    process::{self, Backend, Scene},
    role,
};

/// Plays a scenario, or, in a copy of this program, the part of a process in it.
pub(crate) fn play(module: &str, name: &str, place: fn() -> Backend, scenario: fn(&mut Scene)) {
    process::play_with(role::obey, module, name, place, scenario);
}

/// Makes of each scenario a test in a module, with its store at a place, and ignored if that needs something.
macro_rules! on {
    ($module:ident, $place:ident, $needs:tt; $($scenario:ident),+ $(,)?) => {
        mod $module {
            $(crate::scenes::on!(@test $place, $needs, $scenario);)+
        }
    };
    (@test $place:ident, [$($needs:literal)?], $scenario:ident) => {
        #[test]
        $(#[ignore = $needs])?
        fn $scenario() {
            let (place, scenario) = (crate::process::Backend::$place, super::$scenario);
            crate::scenes::play(module_path!(), stringify!($scenario), place, scenario);
        }
    };
}
pub(crate) use on;

/// Makes of each scenario a test on every store of tasks that real processes share. A line for each.
macro_rules! everywhere {
    ($($scenario:ident),+ $(,)?) => {
        crate::scenes::on! { sqlite, sqlite, []; $($scenario),+ }
        crate::scenes::on! { directory, tasks_in_files, []; $($scenario),+ }
        crate::scenes::on! { redis, redis, ["needs redis-server: scripts/test runs it"]; $($scenario),+ }
        crate::scenes::on! { postgres, postgres, ["needs postgresql: scripts/test runs it"]; $($scenario),+ }
    };
}
pub(crate) use everywhere;
