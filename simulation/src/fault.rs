//! The faults that can be switched on, by name.

use std::{fmt, str::FromStr};

macro_rules! faults {
    ($($fault:ident $name:literal $what:literal,)*) => {
        /// One kind of trouble.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Fault {
            $(#[doc = $what] $fault,)*
        }

        impl Fault {
            /// All of them.
            pub const ALL: [Fault; 16] = [$(Fault::$fault),*];

            /// Its name on the command line and in reports.
            pub fn name(self) -> &'static str {
                match self {
                    $(Fault::$fault => $name,)*
                }
            }

            /// What it does, in words.
            pub fn what(self) -> &'static str {
                match self {
                    $(Fault::$fault => $what,)*
                }
            }
        }
    };
}

faults! {
    Delay "delay" "messages take longer than usual and overtake each other",
    LoseRequest "lose-request" "a request does not arrive",
    LoseReply "lose-reply" "a request arrives, its reply does not",
    Duplicate "duplicate" "a request arrives twice",
    Crash "crash" "a shard is killed, and mostly replaced",
    Stop "stop" "a shard is stopped, at any step, and goes on later",
    Partition "partition" "some shards cannot reach the store",
    Outage "outage" "nobody can reach the store",
    Restart "restart" "the store is restarted and has kept everything",
    Forget "forget" "the store is restarted and has lost everything",
    FailOver "fail-over" "a replica takes over that lacks the last writes",
    OldCopy "old-copy" "somebody puts an old copy of the record back",
    ClockStep "clock-step" "the store's clock is stepped forward or back",
    Drift "drift" "the clocks of the shards drift",
    Control "control" "somebody pauses, resumes, holds or sets other rates",
    Cancel "cancel" "jobs are cancelled",
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Fault {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Fault::ALL.into_iter().find(|fault| fault.name() == text).ok_or_else(|| {
            let names: Vec<_> = Fault::ALL.iter().map(|fault| fault.name()).collect();
            format!("there is no fault {text:?}: use all, none, or some of {}", names.join(","))
        })
    }
}
