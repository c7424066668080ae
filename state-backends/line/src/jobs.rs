//! Jobs of a line: an opaque payload and terms.

use std::{hash::Hasher, time::Instant};

/// Names jobs that are withdrawn together.
pub type GroupId = u64;

/// Names a job within its shard, rising in the order of adding.
pub type JobId = u64;

/// Fibonacci hashing (Knuth, The Art of Computer Programming, 6.4): no outsider chooses ids.
#[derive(Clone, Copy, Debug, Default)]
pub struct IdHasher(u64);

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(self.0 ^ u64::from(*byte)));
    }

    fn write_u64(&mut self, id: JobId) {
        self.0 = id.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Terms of a wait.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// Number of intervals that its slot takes.
    pub weight: u32,
    /// Higher ones start first.
    pub priority: i32,
    /// The latest start.
    pub deadline: Option<Instant>,
    /// Jobs that are withdrawn together.
    pub group: Option<GroupId>,
}

/// A job that has not started.
#[derive(Clone, Debug)]
pub struct Waiting<J> {
    /// Number of intervals that its slot takes.
    pub weight: u32,
    /// Opaque to the line.
    pub payload: J,
    /// `None` for most jobs: a million of them take little memory.
    rest: Option<Box<Rest>>,
}

#[derive(Clone, Debug, Default)]
struct Rest {
    priority: i32,
    deadline: Option<Instant>,
    group: Option<GroupId>,
}

impl<J> Waiting<J> {
    /// A job on these terms.
    pub fn new(terms: Terms, payload: J) -> Self {
        let Terms { weight, priority, deadline, group } = terms;
        let ordinary = priority == 0 && deadline.is_none() && group.is_none();
        let rest = (!ordinary).then(|| Box::new(Rest { priority, deadline, group }));
        Self { weight, payload, rest }
    }

    /// Higher ones start first.
    pub fn priority(&self) -> i32 {
        self.rest.as_ref().map_or(0, |rest| rest.priority)
    }

    /// The latest start.
    pub fn deadline(&self) -> Option<Instant> {
        self.rest.as_ref()?.deadline
    }

    pub(crate) fn group(&self) -> Option<GroupId> {
        self.rest.as_ref()?.group
    }

    /// Of a job that is in no order yet.
    pub(crate) fn set_priority(&mut self, priority: i32) {
        if self.priority() != priority {
            self.rest.get_or_insert_default().priority = priority;
        }
    }
}

/// Whether a joint job may start when a slot comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// It may.
    Open,
    /// It waits for slots of other queues.
    Closed,
}

/// A job without a ticket.
#[derive(Clone, Debug)]
pub struct Arriving<J, C = ()> {
    /// Its id.
    pub id: JobId,
    /// The job.
    pub job: Waiting<J>,
    /// Waits for its ticket.
    pub caller: C,
    /// When it was added.
    pub since: Instant,
}

/// A removed job.
#[derive(Clone, Debug)]
pub struct Withdrawn<J, C = ()> {
    /// The job.
    pub job: Waiting<J>,
    /// The caller waiting for its ticket, if it has none.
    pub caller: Option<C>,
}
