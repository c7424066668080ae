//! What workers say, one line each, and what the test says about them.

/// Instants are microseconds: of a start on the tests' clock, of a slot on the state's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// It was given so many more jobs.
    Given(u64),
    /// The test killed it.
    Killed,
    /// It carried out an order.
    Done,
    /// A job of it has its ticket.
    Ticket { ticket: u64, job: u64 },
    /// A job of it was refused.
    Refused { at: u64, job: u64 },
    /// It was granted a slot.
    Slot { at: u64, ticket: u64 },
    /// A job of it started.
    Start { at: u64, job: u64 },
    /// A job of it ended.
    End { at: u64, job: u64 },
    /// The state failed it.
    Trouble(String),
    /// It panicked.
    Panic(String),
}

impl Said {
    pub fn read(line: &str) -> Option<Self> {
        let (word, rest) = line.split_once(' ')?;
        let numbers = || {
            let (first, second) = rest.split_once(' ').unwrap();
            (first.parse().unwrap(), second.parse().unwrap())
        };
        Some(match word {
            "done" => Self::Done,
            "given" => Self::Given(rest.parse().unwrap()),
            "trouble" => Self::Trouble(rest.to_owned()),
            "panic" => Self::Panic(rest.to_owned()),
            "ticket" => {
                let (ticket, job) = numbers();
                Self::Ticket { ticket, job }
            }
            "refused" => {
                let (at, job) = numbers();
                Self::Refused { at, job }
            }
            "slot" => {
                let (at, ticket) = numbers();
                Self::Slot { at, ticket }
            }
            "start" => {
                let (at, job) = numbers();
                Self::Start { at, job }
            }
            "end" => {
                let (at, job) = numbers();
                Self::End { at, job }
            }
            // The test harness in the worker talks, too.
            _ => return None,
        })
    }

    /// When it was, if it says so.
    pub fn at(&self) -> Option<u64> {
        match *self {
            Self::Slot { at, .. } | Self::Start { at, .. } | Self::End { at, .. } => Some(at),
            _ => None,
        }
    }
}
