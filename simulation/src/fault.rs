//! The faults that can be switched on, each by its name.

use std::{fmt, str::FromStr};

/// One kind of trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Fault {
    /// Messages take longer than usual and overtake each other.
    Delay,
    /// A request does not arrive.
    LoseRequest,
    /// A request arrives, its reply does not.
    LoseReply,
    /// A request arrives twice.
    Duplicate,
    /// A shard is killed, and may be started again.
    Crash,
    /// A shard is stopped, at any step, and goes on later.
    Stop,
    /// Some shards are cut off.
    Partition,
    /// The store cannot be reached by anybody.
    Outage,
    /// The store is restarted and has kept everything.
    Restart,
    /// The store is restarted and has lost everything.
    Forget,
    /// A replica takes over that lacks the last writes.
    FailOver,
    /// Somebody puts an old copy of the record back.
    OldCopy,
    /// The store's clock is stepped forward or back.
    ClockStep,
    /// The clocks of the shards drift.
    Drift,
    /// Somebody pauses, resumes, holds or sets another interval.
    Control,
    /// Jobs are cancelled.
    Cancel,
}

impl Fault {
    /// All of them.
    pub const ALL: [Fault; 16] = [
        Fault::Delay,
        Fault::LoseRequest,
        Fault::LoseReply,
        Fault::Duplicate,
        Fault::Crash,
        Fault::Stop,
        Fault::Partition,
        Fault::Outage,
        Fault::Restart,
        Fault::Forget,
        Fault::FailOver,
        Fault::OldCopy,
        Fault::ClockStep,
        Fault::Drift,
        Fault::Control,
        Fault::Cancel,
    ];

    /// Its name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Fault::Delay => "delay",
            Fault::LoseRequest => "lose-request",
            Fault::LoseReply => "lose-reply",
            Fault::Duplicate => "duplicate",
            Fault::Crash => "crash",
            Fault::Stop => "stop",
            Fault::Partition => "partition",
            Fault::Outage => "outage",
            Fault::Restart => "restart",
            Fault::Forget => "forget",
            Fault::FailOver => "fail-over",
            Fault::OldCopy => "old-copy",
            Fault::ClockStep => "clock-step",
            Fault::Drift => "drift",
            Fault::Control => "control",
            Fault::Cancel => "cancel",
        }
    }
}

impl Fault {
    /// What it does, in words.
    pub fn what(self) -> &'static str {
        match self {
            Fault::Delay => "messages take longer than usual and overtake each other",
            Fault::LoseRequest => "a request does not arrive",
            Fault::LoseReply => "a request arrives, its reply does not",
            Fault::Duplicate => "a request arrives twice",
            Fault::Crash => "a shard is killed, and mostly replaced",
            Fault::Stop => "a shard is stopped, at any step, and goes on later",
            Fault::Partition => "some shards cannot reach the store",
            Fault::Outage => "nobody can reach the store",
            Fault::Restart => "the store is restarted and has kept everything",
            Fault::Forget => "the store is restarted and has lost everything",
            Fault::FailOver => "a replica takes over that lacks the last writes",
            Fault::OldCopy => "somebody puts an old copy of the record back",
            Fault::ClockStep => "the store's clock is stepped forward or back",
            Fault::Drift => "the clocks of the shards drift",
            Fault::Control => "somebody pauses, resumes, holds or sets another interval",
            Fault::Cancel => "jobs are cancelled",
        }
    }
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
