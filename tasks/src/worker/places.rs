//! Places that the workers of several queues share, and whose turn it is to ask for tasks.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use interval_queue_worker::{Asks, Worker as Machine};
use tokio::sync::Notify;

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
/// that waits for its slot of a pace takes up a place, too: give at least one more place than there are queues with a
/// pace before others.
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
    /// By the numbers of their seats, in the order in which the workers were built.
    members: BTreeMap<u64, Member>,
    seats: u64,
    turn: Option<Turn>,
    /// The seat that had the last one.
    last: u64,
}

struct Member {
    wake: Arc<Notify>,
    /// How many places it takes up, with those for tasks that its step on the way may bring.
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
    of: u64,
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
        let number = table.seats;
        table.seats += 1;
        table.members.insert(number, Member { wake, taken: 0, room: 0, asks: None });
        Seat { places: self.clone(), number, jobs }
    }
}

impl Table {
    /// Gives the next turn, if nobody has it and a place is free. Whoever gets it is woken, but for this one.
    fn pass(&mut self, shared: &Shared, by: u64, random: u64) {
        let taken: u32 = self.members.values().map(|member| member.taken).sum();
        let free = shared.jobs.saturating_sub(taken);
        if self.turn.is_some() || free == 0 {
            return;
        }
        let would = |asked: Option<Asked>| {
            let members = self.members.iter().filter(move |(_, member)| member.asks.is_some());
            members.filter(move |(_, member)| asked.is_none_or(|asked| member.asks == Some(asked)))
        };
        let now: Vec<u64> = would(Some(Asked::Now)).map(|(of, _)| *of).collect();
        let next = match shared.turns {
            // One whose answer is on the way goes before those behind it.
            Turns::InOrder => would(None).next().map(|(of, _)| *of).filter(|of| now.contains(of)),
            Turns::RoundRobin => now.iter().find(|of| **of > self.last).or(now.first()).copied(),
            Turns::Shuffled => now.get((random % now.len().max(1) as u64) as usize).copied(),
        };
        let fair = match shared.turns {
            Turns::InOrder => free,
            _ => (free / would(None).count().max(1) as u32).max(1),
        };
        let Some((of, member)) = next.and_then(|of| self.members.get_key_value(&of)) else { return };
        if *of != by {
            member.wake.notify_one();
        }
        (self.last, self.turn) = (*of, Some(Turn { of: *of, places: fair.min(member.room), is_used: false }));
    }

    fn turn_of(&mut self, number: u64) -> Option<&mut Turn> {
        self.turn.as_mut().filter(|turn| turn.of == number)
    }
}

/// The part of one worker in the places that it shares.
pub(super) struct Seat {
    places: Places,
    number: u64,
    /// The most that it runs itself.
    jobs: u32,
}

impl Seat {
    /// Says what the worker takes up and whether it would ask for tasks, and gives it the places that it has a right
    /// to now; what it does next has to be asked before anything else changes it. When it would ask.
    pub(super) fn sit(&self, machine: &mut Machine, now: Instant, random: u64) -> Option<Instant> {
        let on_the_way = machine.contact.under_way.as_ref().map(|step| step.want);
        let taken = machine.taken() + on_the_way.unwrap_or(0);
        let room = self.jobs.saturating_sub(taken);
        let asks = if room > 0 { machine.asks(now) } else { Asks::Not };
        let mut table = self.places.table();
        let member = table.members.get_mut(&self.number)?;
        (member.taken, member.room) = (taken, room);
        member.asks = match asks {
            Asks::At(at) if at <= now => Some(Asked::Now),
            Asks::Soon => Some(Asked::Soon),
            _ => None,
        };
        let is_asking = member.asks == Some(Asked::Now);
        if let Some(turn) = table.turn_of(self.number) {
            let is_over = on_the_way.is_none() && (turn.is_used || !is_asking);
            turn.is_used |= on_the_way.is_some();
            if is_over {
                table.turn = None;
            }
        }
        table.pass(&self.places.0, self.number, random);
        // Those that a step has asked for are among the ones that are taken.
        let granted = table.turn_of(self.number).filter(|turn| !turn.is_used).map_or(0, |turn| turn.places);
        machine.identity.places = taken + granted;
        match asks {
            Asks::At(at) if at > now => Some(at),
            _ => None,
        }
    }

    /// The worker has ended.
    pub(super) fn leave(&self, random: u64) {
        let mut table = self.places.table();
        if let Some(member) = table.members.get_mut(&self.number) {
            (member.taken, member.room, member.asks) = (0, 0, None);
        }
        if table.turn_of(self.number).is_some() {
            table.turn = None;
        }
        table.pass(&self.places.0, self.number, random);
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.leave(0);
        self.places.table().members.remove(&self.number);
    }
}

impl fmt::Debug for Places {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shared { jobs, turns, .. } = &*self.0;
        f.debug_struct("Places").field("jobs", jobs).field("turns", turns).finish_non_exhaustive()
    }
}
