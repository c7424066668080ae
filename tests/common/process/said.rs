//! What workers and the witness say, one line each, and what the test says about them.

/// Instants are microseconds: of a slot on the state's clock, all others on the tests' clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// It was given so many more jobs.
    Given(u64),
    /// The test killed it.
    Killed,
    /// The test stopped it: all its threads stood still at this instant.
    Frozen { at: u64 },
    /// The test let it go on.
    Thawed { at: u64 },
    /// It was told to change something for all shards: somewhere between these instants it did.
    Changed { from: u64, to: u64 },
    /// It carried out an order.
    Done,
    /// A job of it has its ticket.
    Ticket { ticket: u64, job: u64 },
    /// A job of it was refused.
    Refused { at: u64, job: u64 },
    /// It was granted a slot, by a command that the state carried out at the instant `granted` of its clock.
    Slot { at: u64, ticket: u64, granted: u64 },
    /// It heard of the slots that it was granted.
    Heard { at: u64 },
    /// It asked for the slot of a ticket that the state may have believed to be used or gone, at that instant
    /// of its clock. Since then no ticket up to this one owns a slot.
    Returned { at: u64, up_to: u64 },
    /// A job of it started in the slot of this ticket, so long after it by the clock of the shard. Ticket
    /// zero: alone.
    Start { at: u64, job: u64, ticket: u64, late: u64 },
    /// A job of it ended.
    End { at: u64, job: u64 },
    /// The witness wanted to wake at an instant, and woke that much later.
    Woke { due: u64, late: u64 },
    /// The state failed it.
    Trouble(String),
    /// It panicked.
    Panic(String),
}

impl Said {
    pub fn read(line: &str) -> Option<Self> {
        let (word, rest) = line.split_once(' ')?;
        let mut numbers = rest.split(' ').map(|number| number.parse().unwrap());
        let mut next = || numbers.next().unwrap();
        Some(match word {
            "done" => Self::Done,
            "given" => Self::Given(next()),
            "ticket" => Self::Ticket { ticket: next(), job: next() },
            "refused" => Self::Refused { at: next(), job: next() },
            "slot" => Self::Slot { at: next(), ticket: next(), granted: next() },
            "heard" => Self::Heard { at: next() },
            "returned" => Self::Returned { at: next(), up_to: next() },
            "start" => Self::Start { at: next(), job: next(), ticket: next(), late: next() },
            "end" => Self::End { at: next(), job: next() },
            "woke" => Self::Woke { due: next(), late: next() },
            "trouble" => Self::Trouble(rest.to_owned()),
            "panic" => Self::Panic(rest.to_owned()),
            // The test harness in the worker talks, too.
            _ => return None,
        })
    }

    /// When it was, if it says so.
    pub fn at(&self) -> Option<u64> {
        match *self {
            Self::Slot { at, .. }
            | Self::Heard { at }
            | Self::Returned { at, .. }
            | Self::Start { at, .. }
            | Self::End { at, .. }
            | Self::Frozen { at }
            | Self::Thawed { at } => Some(at),
            Self::Woke { due: at, .. } | Self::Changed { from: at, .. } => Some(at),
            _ => None,
        }
    }
}
