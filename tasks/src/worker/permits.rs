//! Permits that workers of several queues share, and the order in which they ask for tasks.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use interval_queue_worker::{Asks, Worker as Machine};
use tokio::sync::Notify;

/// Permits that workers of several queues in one process share. They limit how many tasks run at
/// once.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use interval_queue_tasks::{Context, Permits, Task, TaskError, TaskQueue, QueueOrder, Worker, connect};
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
/// let permits = Permits::new(8, QueueOrder::InOrder);
/// let first = Worker::builder(&urgent).permits(&permits).handler("send", send).build()?;
/// let then = Worker::builder(&bulk).permits(&permits).handler("send", send).build()?;
/// tokio::try_join!(first.run_until_empty(), then.run_until_empty())?;
/// # Ok(())
/// # }
/// ```
///
/// One worker at a time asks for tasks, for as many as it has permits. Nothing is prefetched. A
/// worker whose store fails gets no permits; its poll under way keeps permits for at most ten
/// seconds. A task that waits for its slot of a rate takes a permit, too: set more permits than
/// there are queues with a rate ahead of other queues.
#[derive(Clone)]
pub struct Permits(Arc<Shared>);

/// Decides which queue gets a free permit, among queues whose worker was notified or is due to
/// poll.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum QueueOrder {
    /// The first queue, in the order in which the workers were built. Later ones get a permit when
    /// the earlier ones have no tasks. The default.
    #[default]
    InOrder,
    /// Each queue in turn.
    RoundRobin,
    /// A random queue, with equal chances.
    Shuffled,
}

struct Shared {
    jobs: u32,
    order: QueueOrder,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    /// By number: the order in which the workers were built.
    members: BTreeMap<u64, Member>,
    joined: u64,
    grant: Option<Grant>,
    last: u64,
}

struct Member {
    wake: Arc<Notify>,
    /// In use, or reserved for the step under way.
    taken: u32,
    capacity: u32,
    asks: Option<Asked>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    Now,
    Soon,
}

/// The right of one worker to ask for tasks.
struct Grant {
    of: u64,
    permits: u32,
    is_used: bool,
}

impl Permits {
    /// At most `jobs` tasks run at once, 1 to 10,000; building a worker checks it.
    pub fn new(jobs: u32, order: QueueOrder) -> Self {
        Self(Arc::new(Shared { jobs, order, table: Mutex::default() }))
    }

    pub(super) fn jobs(&self) -> u32 {
        self.0.jobs
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn join(&self, wake: Arc<Notify>, jobs: u32) -> Membership {
        let mut table = self.table();
        let number = table.joined;
        table.joined += 1;
        table.members.insert(number, Member { wake, taken: 0, capacity: 0, asks: None });
        Membership { permits: self.clone(), number, jobs }
    }
}

impl Table {
    /// If no grant is pending and a permit is free. Wakes the next worker unless it is `by`.
    fn grant_next(&mut self, shared: &Shared, by: u64, random: u64) {
        let taken: u32 = self.members.values().map(|member| member.taken).sum();
        let free = shared.jobs.saturating_sub(taken);
        if self.grant.is_some() || free == 0 {
            return;
        }
        let would = |asked: Option<Asked>| {
            let members = self.members.iter().filter(move |(_, member)| member.asks.is_some());
            members.filter(move |(_, member)| asked.is_none_or(|asked| member.asks == Some(asked)))
        };
        let now: Vec<u64> = would(Some(Asked::Now)).map(|(of, _)| *of).collect();
        let next = match shared.order {
            // A worker whose step is under way keeps precedence over later ones.
            QueueOrder::InOrder => would(None).next().map(|(of, _)| *of).filter(|of| now.contains(of)),
            QueueOrder::RoundRobin => now.iter().find(|of| **of > self.last).or(now.first()).copied(),
            QueueOrder::Shuffled => now.get((random % now.len().max(1) as u64) as usize).copied(),
        };
        let fair = match shared.order {
            QueueOrder::InOrder => free,
            _ => (free / would(None).count().max(1) as u32).max(1),
        };
        let Some((of, member)) = next.and_then(|of| self.members.get_key_value(&of)) else { return };
        if *of != by {
            member.wake.notify_one();
        }
        (self.last, self.grant) =
            (*of, Some(Grant { of: *of, permits: fair.min(member.capacity), is_used: false }));
    }

    fn grant_of(&mut self, number: u64) -> Option<&mut Grant> {
        self.grant.as_mut().filter(|grant| grant.of == number)
    }
}

pub(super) struct Membership {
    permits: Permits,
    number: u64,
    jobs: u32,
}

impl Membership {
    /// Sets the machine's `permits`; the caller must take the machine's next decision before it
    /// unlocks it. Returns the later instant at which the worker will ask. `None`: it asks now, or
    /// only after an event.
    pub(super) fn acquire(&self, machine: &mut Machine, now: Instant, random: u64) -> Option<Instant> {
        let on_the_way = machine.connection.under_way.as_ref().map(|step| step.want);
        let taken = machine.taken() + on_the_way.unwrap_or(0);
        let capacity = self.jobs.saturating_sub(taken);
        let asks = if capacity > 0 { machine.asks(now) } else { Asks::Not };
        let mut table = self.permits.table();
        let member = table.members.get_mut(&self.number)?;
        (member.taken, member.capacity) = (taken, capacity);
        member.asks = match asks {
            Asks::At(at) if at <= now => Some(Asked::Now),
            Asks::Soon => Some(Asked::Soon),
            _ => None,
        };
        let is_asking = member.asks == Some(Asked::Now);
        if let Some(grant) = table.grant_of(self.number) {
            let is_over = on_the_way.is_none() && (grant.is_used || !is_asking);
            grant.is_used |= on_the_way.is_some();
            if is_over {
                table.grant = None;
            }
        }
        table.grant_next(&self.permits.0, self.number, random);
        let granted =
            table.grant_of(self.number).filter(|grant| !grant.is_used).map_or(0, |grant| grant.permits);
        machine.identity.permits = taken + granted;
        match asks {
            Asks::At(at) if at > now => Some(at),
            _ => None,
        }
    }

    pub(super) fn leave(&self, random: u64) {
        let mut table = self.permits.table();
        if let Some(member) = table.members.get_mut(&self.number) {
            (member.taken, member.capacity, member.asks) = (0, 0, None);
        }
        if table.grant_of(self.number).is_some() {
            table.grant = None;
        }
        table.grant_next(&self.permits.0, self.number, random);
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.leave(0);
        self.permits.table().members.remove(&self.number);
    }
}

impl fmt::Debug for Permits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shared { jobs, order, .. } = &*self.0;
        f.debug_struct("Permits").field("jobs", jobs).field("order", order).finish_non_exhaustive()
    }
}
