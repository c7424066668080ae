//! Places that the workers of several queues share, and whose turn it is to ask for tasks.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use interval_queue_worker::Asks;
use tokio::sync::Notify;

use super::core::Core;

/// Places that the workers of several queues share, in one process: so many tasks of all of them run at once.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use interval_queue_tasks::{Context, Places, Task, TaskError, TaskQueue, Turns, Worker, connect};
///
/// async fn send(_: Context, to: String) -> Result<(), TaskError> {
///     # let _ = to;
///     Ok(())
/// }
///
/// let store = connect("memory:").await?;
/// let urgent = TaskQueue::builder("urgent").open(&store).await?;
/// let bulk = TaskQueue::builder("bulk").open(&store).await?;
/// # bulk.add(Task::new("send", "ada@example.com")).await?;
/// let places = Places::new(8, Turns::InOrder);
/// let first = Worker::builder(&urgent).places(&places).handler("send", send).build()?;
/// let then = Worker::builder(&bulk).places(&places).handler("send", send).build()?;
/// tokio::try_join!(first.run_until_empty(), then.run_until_empty())?;
/// # Ok(())
/// # }
/// ```
///
/// One worker asks for tasks at a time, for as many as it is given places, and nothing is leased ahead. A queue whose
/// store does not answer takes no turns until it does; what it was asked for is waited for at most ten seconds. A task
/// in hand that waits for its slot of a pace takes up a place, too.
#[derive(Clone)]
pub struct Places(Arc<Shared>);

/// Which of several queues a free place goes to, among those that may have something: a worker asks those that it was
/// told of, or that it looks at now and then, as any worker does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Turns {
    /// To the first one, in the order in which the workers were built. The others are served when those before them
    /// have nothing. The default.
    #[default]
    InOrder,
    /// To each in its turn.
    RoundRobin,
    /// To one of them at random, all with the same chance.
    Shuffled,
}

struct Shared {
    jobs: u32,
    turns: Turns,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    members: Vec<Member>,
    turn: Option<Turn>,
    /// Who had the last one.
    last: usize,
}

struct Member {
    wake: Arc<Notify>,
    /// How many places it takes up.
    taken: u32,
    /// How many more it can take.
    room: u32,
    asks: Option<Asked>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    Now,
    Soon,
}

/// The one that may ask for tasks.
struct Turn {
    of: usize,
    places: u32,
    /// Whether its step is on the way, or was.
    is_used: bool,
}

impl Places {
    /// So many tasks run at once, 1 to 10,000.
    pub fn new(jobs: u32, turns: Turns) -> Self {
        Self(Arc::new(Shared { jobs, turns, table: Mutex::default() }))
    }

    pub(super) fn jobs(&self) -> u32 {
        self.0.jobs
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A seat for a worker, which is woken by this when it is its turn.
    pub(super) fn seat(&self, wake: Arc<Notify>, jobs: u32) -> Seat {
        let mut table = self.table();
        table.members.push(Member { wake, taken: 0, room: 0, asks: None });
        Seat { places: self.clone(), number: table.members.len() - 1, jobs }
    }
}

impl Table {
    /// Gives the next turn, if nobody has it and a place is free. Whoever gets it is woken, but for this one.
    fn pass(&mut self, shared: &Shared, by: usize, random: u64) {
        let taken: u32 = self.members.iter().map(|member| member.taken).sum();
        let free = shared.jobs.saturating_sub(taken);
        if self.turn.is_some() || free == 0 {
            return;
        }
        let asks = |of: &usize| self.members[*of].asks == Some(Asked::Now);
        let all: Vec<usize> = (0..self.members.len()).filter(asks).collect();
        let next = match shared.turns {
            // One whose answer is on the way goes before those behind it.
            Turns::InOrder => {
                (0..self.members.len()).find(|of| self.members[*of].asks.is_some()).filter(asks)
            }
            Turns::RoundRobin => all.iter().find(|of| **of > self.last).or(all.first()).copied(),
            Turns::Shuffled => all.get((random % all.len().max(1) as u64) as usize).copied(),
        };
        let Some(of) = next else { return };
        let fair = match shared.turns {
            Turns::InOrder => free,
            _ => {
                let many = self.members.iter().filter(|member| member.asks.is_some()).count();
                (free / many.max(1) as u32).max(1)
            }
        };
        let member = &self.members[of];
        self.turn = Some(Turn { of, places: fair.min(member.room), is_used: false });
        self.last = of;
        if of != by {
            member.wake.notify_one();
        }
    }
}

/// The part of one worker in the places that it shares.
pub(super) struct Seat {
    places: Places,
    number: usize,
    /// The most that it runs itself.
    jobs: u32,
}

impl Seat {
    /// Says what the worker takes up and whether it would ask for tasks, and gives it the places that it has a right
    /// to now. When it would ask.
    pub(super) fn sit(&self, core: &Core, now: Instant) -> Option<Instant> {
        let mut machine = core.machine();
        let (taken, is_under_way) = (machine.taken(), machine.contact.under_way.is_some());
        let room = self.jobs.saturating_sub(taken);
        let asks = if room > 0 { machine.asks(now) } else { Asks::Not };
        let mut table = self.places.table();
        let member = &mut table.members[self.number];
        (member.taken, member.room) = (taken, room);
        member.asks = match asks {
            Asks::At(at) if at <= now => Some(Asked::Now),
            Asks::Soon => Some(Asked::Soon),
            _ => None,
        };
        let is_asking = member.asks == Some(Asked::Now);
        if let Some(turn) = table.turn.as_mut().filter(|turn| turn.of == self.number) {
            let is_over = if is_under_way { false } else { turn.is_used || !is_asking };
            turn.is_used |= is_under_way;
            if is_over {
                table.turn = None;
            }
        }
        table.pass(&self.places.0, self.number, core.host().random());
        let granted = table.turn.as_ref().filter(|turn| turn.of == self.number).map_or(0, |turn| turn.places);
        machine.identity.places = taken + granted;
        match asks {
            Asks::At(at) if at > now => Some(at),
            _ => None,
        }
    }

    /// The worker has ended.
    pub(super) fn leave(&self, random: u64) {
        let mut table = self.places.table();
        let member = &mut table.members[self.number];
        (member.taken, member.room, member.asks) = (0, 0, None);
        if table.turn.as_ref().is_some_and(|turn| turn.of == self.number) {
            table.turn = None;
        }
        table.pass(&self.places.0, self.number, random);
    }
}

impl fmt::Debug for Places {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shared { jobs, turns, .. } = &*self.0;
        f.debug_struct("Places").field("jobs", jobs).field("turns", turns).finish_non_exhaustive()
    }
}
