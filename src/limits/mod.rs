//! Several limits at once: jobs that need a slot in each of several queues.
//!
//! `plan.rs` decides the next move, `member.rs` is the job's position in one queue, `gathering.rs`
//! carries the plan out.

mod gathering;
mod member;
mod plan;

use std::{future::Future, pin::pin, sync::Arc};

use futures::{channel::oneshot, future::abortable};
use interval_queue_contract::{Command, InvalidInput, Reply};
use tokio::sync::OnceCell;

use self::{gathering::Gathering, member::Member};
use crate::{
    IntervalQueue, JobOptions, Turn,
    error::{Error, ErrorKind},
    host::timeout,
    line::Gate,
    shard::{Running, Shard},
    telemetry::{Origin, Outcome},
    user_code::{catch_panic, limited},
};

const MAX_QUEUES: usize = 16;

/// Several queues in each of which a job needs a slot, e.g. one per customer and one for all, or
/// requests per second and tokens per minute.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use interval_queue::{IntervalQueue, Limits, MemoryState};
///
/// let state = MemoryState::new();
/// let open = |name, millis| IntervalQueue::builder(name).interval(Duration::from_millis(millis)).open(state.clone());
/// let limits = Limits::new([open("customer 7", 1000).await?, open("all", 10).await?])?;
/// assert_eq!(limits.run(async { "sent" }).await?, "sent");
///
/// // One request of 350 tokens.
/// let limits = Limits::new([open("requests", 100).await?, open("tokens", 1).await?])?;
/// let turns = limits.weighing([1, 350])?.turn().await?;
/// drop(turns);
/// # Ok(())
/// # }
/// ```
///
/// A job holds a ticket in each queue and requests no slot before the others are near, so it
/// neither blocks a queue nor wastes slots. It requests a slot of the slowest queue first (by
/// interval and weight), then of the next slower one. It starts when the last slot has come. A slot
/// is given back after half its interval (at least 10 ms, at least the lead), so jobs cannot
/// deadlock.
///
/// # Guarantees
///
/// Slots of a queue keep its interval, and the job starts at or after each of its slots. After its
/// first slot it waits for the others: usually less than an interval of the next faster queue, plus
/// a round trip per further queue. If that exceeds the round trips, the slower queue's next slot is
/// delayed as much, as by [`hold`](IntervalQueue::hold), so that starts keep their distance. They
/// can come closer if the lead reaches half the interval, as the next slots may be granted by then.
///
/// A queue that is paused, held, full or unreachable delays only this job. Once it has a ticket,
/// the job keeps its position in that line. It takes the ticket at once in the longest line, and in
/// a shorter one when the rest of the longest wait is as short.
///
/// # Cost
///
/// Each queue gets one command per job, as usual, and one or two more to read the line's length
/// unless it was read in the last 50 ms. A slot is lost if a line moves differently than estimated:
/// about one per queue and job at most, hardly any if one queue is clearly the slowest. A slot in
/// hand is also lost if the caller stops waiting.
#[derive(Clone, Debug)]
pub struct Limits {
    queues: Arc<[IntervalQueue]>,
    weights: Option<Arc<[u32]>>,
    names_checked: Arc<OnceCell<()>>,
}

impl Limits {
    /// Limits of 1 to 16 queues, on one store or several. Their order matters only to
    /// [`weighing`](Self::weighing) and [`Turns::as_slice`].
    ///
    /// # Errors
    ///
    /// [`Invalid`](crate::ErrorKind::Invalid) for no queue, more than 16, or a queue given twice.
    /// If two shards of one name were opened separately, only the store can show that they are one
    /// queue: the first job checks it and returns the error.
    pub fn new(queues: impl IntoIterator<Item = IntervalQueue>) -> Result<Self, Error> {
        let queues: Arc<[_]> = queues.into_iter().collect();
        if queues.is_empty() || queues.len() > MAX_QUEUES {
            let text = format!("limits of {} queues: give 1 to {MAX_QUEUES}", queues.len());
            return Err(InvalidInput::new(text).into());
        }
        let limits = Self { queues, weights: None, names_checked: Arc::default() };
        for (one, other) in limits.namesakes() {
            if Arc::ptr_eq(one, other) || Arc::ptr_eq(&one.state, &other.state) {
                return Err(twice(one));
            }
        }
        Ok(limits)
    }

    /// These limits with one weight per queue, in the order of the queues: how many intervals a job
    /// takes. Default: 1 each, or the [weight](JobOptions::weight) in the options.
    ///
    /// # Errors
    ///
    /// [`Invalid`](crate::ErrorKind::Invalid) for another number of weights than of queues. Each
    /// job returns the error of an invalid weight.
    pub fn weighing(&self, weights: impl IntoIterator<Item = u32>) -> Result<Self, Error> {
        let weights: Arc<[u32]> = weights.into_iter().collect();
        if weights.len() != self.queues.len() {
            let text =
                format!("{} weights for {} queues: give one for each", weights.len(), self.queues.len());
            return Err(InvalidInput::new(text).into());
        }
        Ok(Self { weights: Some(weights), ..self.clone() })
    }

    /// Waits for a slot in each queue, to run code in place. Counts as a running job of each queue
    /// until the turns are dropped.
    ///
    /// # Errors
    ///
    /// As [`IntervalQueue::turn`], of any queue. The positions in the others are given up.
    ///
    /// # Cancel safety
    ///
    /// If dropped before it returns, all positions are given up.
    pub async fn turn(&self) -> Result<Turns, Error> {
        self.turn_with(JobOptions::new()).await
    }

    /// As [`turn`](Self::turn), with options.
    ///
    /// # Errors
    ///
    /// As [`IntervalQueue::turn`], and [`Invalid`](crate::ErrorKind::Invalid) for a weight if
    /// [`weighing`](Self::weighing) has set weights.
    pub async fn turn_with(&self, options: JobOptions) -> Result<Turns, Error> {
        options.check_turn()?;
        let running = self.gather(&options).await?;
        let turn = |mut running: Running| {
            running.begin_turn();
            Turn(running)
        };
        Ok(Turns(running.into_iter().map(turn).collect()))
    }

    /// Runs a job in its slots, as a task of its own, and returns its result.
    ///
    /// # Errors
    ///
    /// As [`turn`](Self::turn), [`Panicked`](crate::ErrorKind::Panicked) if the job panicked, and
    /// [`Cancelled`](crate::ErrorKind::Cancelled) if the [shutdown](IntervalQueue::shutdown) of one
    /// of the queues aborted it.
    ///
    /// # Cancel safety
    ///
    /// If dropped before the job starts, all positions are given up; later the job runs on,
    /// detached.
    pub async fn run<F>(&self, job: F) -> Result<F::Output, Error>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        self.run_with(JobOptions::new(), job).await
    }

    /// As [`run`](Self::run), with options.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run) and [`turn_with`](Self::turn_with), and
    /// [`TimedOut`](crate::ErrorKind::TimedOut) after the [`timeout`](JobOptions::timeout).
    pub async fn run_with<F>(&self, options: JobOptions, job: F) -> Result<F::Output, Error>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        let mut running = self.gather(&options).await?;
        let host = self.queues[0].shard.host.clone();
        let (job, handle) = abortable(catch_panic(limited(host.clone(), options.timeout, job)));
        running.iter().for_each(|run| run.abort_with(handle.clone()));
        let (sender, result) = oneshot::channel();
        host.spawn(Box::pin(async move {
            let Some((first, others)) = running.split_first_mut() else { return };
            let outcome = first.run_with_others(others, pin!(Some(job))).await.and_then(|result| result);
            let ended_as = outcome.as_ref().map_or_else(Outcome::of, |_| Outcome::Ok);
            running.iter_mut().for_each(|run| run.ended(ended_as));
            drop(running);
            let _ = sender.send(outcome);
        }));
        result.await.unwrap_or_else(|_| Err(Error::cancelled()))
    }

    async fn gather(&self, options: &JobOptions) -> Result<Vec<Running>, Error> {
        if self.weights.is_some() && options.weight.is_some() {
            let text = "a weight for all queues beside one for each: give one of them";
            return Err(InvalidInput::new(text).into());
        }
        let host = &self.queues[0].shard.host;
        let limit = options.start_within;
        let called = host.now();
        let origin = Origin::here(called);
        let gathered = async {
            self.check_names().await?;
            let mut members = Vec::with_capacity(self.queues.len());
            for (number, queue) in self.queues.iter().enumerate() {
                let terms = queue.terms(&self.options_of(number, options))?;
                members.push(Member::new(queue.clone(), terms.without_deadline(), origin.clone()));
            }
            // One order for all jobs avoids deadlock.
            let mut order: Vec<_> = (0..members.len()).collect();
            order.sort_by_key(|&member| Arc::as_ptr(&self.queues[member].shard).addr());
            for member in order {
                members[member].take_permit().await?;
            }
            Gathering::gather(members, limit).await
        };
        let gathered = Box::pin(gathered);
        let gathered = match limit {
            None => gathered.await,
            Some(limit) => {
                timeout(host, limit, gathered).await.unwrap_or_else(|| Err(Error::started_too_late()))
            }
        };
        gathered.inspect_err(|error| {
            // Which queue was late is unknown: each counts a refusal.
            if error.kind() == ErrorKind::TooLate {
                for (number, queue) in self.queues.iter().enumerate() {
                    if let Ok(terms) = queue.terms(&self.options_of(number, options)) {
                        queue.shard.note_refusal(error, called, &terms.line, 1);
                    }
                }
            }
        })
    }

    fn options_of(&self, number: usize, options: &JobOptions) -> JobOptions {
        let weight = self.weights.as_ref().map(|weights| weights[number]);
        weight.map_or_else(|| options.clone(), |weight| options.clone().weight(weight))
    }

    fn namesakes(&self) -> impl Iterator<Item = (&Arc<Shard>, &Arc<Shard>)> {
        let shards = || self.queues.iter().map(|queue| &queue.shard).enumerate();
        shards().flat_map(move |(number, one)| {
            let others = shards().skip(number + 1).filter(|(_, other)| other.queue == one.queue);
            others.map(move |(_, other)| (one, other))
        })
    }

    /// Two handles on one queue: a shard of one that has a ticket appears in the other's record.
    async fn check_names(&self) -> Result<(), Error> {
        self.names_checked
            .get_or_try_init(|| async {
                for (one, other) in self.namesakes() {
                    let queue = IntervalQueue { shard: one.clone() };
                    let terms = queue.terms(&JobOptions::new())?;
                    let origin = Origin::here(one.host.now());
                    let mut member = Member::new(queue, terms, origin);
                    member.arrive(Gate::Closed, None)?;
                    std::future::poll_fn(|context| member.poll_change(context)).await?;
                    let snapshot = other.command(Command::Read).await.and_then(Reply::read)?;
                    let id = one.line().identity.shard.clone();
                    if snapshot.is_some_and(|snapshot| snapshot.record.shards.contains_key(&id)) {
                        return Err(twice(one));
                    }
                }
                Ok(())
            })
            .await
            .copied()
    }
}

fn twice(shard: &Shard) -> Error {
    InvalidInput::new(format!("the queue {} is given twice: give each once", shard.queue)).into()
}

/// A slot in each queue. Counts as a running job of each until dropped.
///
/// Returned by [`Limits::turn`].
#[derive(Debug)]
#[must_use = "the job counts as running while its turns live"]
pub struct Turns(Vec<Turn>);

impl Turns {
    /// The turns, in the order of the queues.
    pub fn as_slice(&self) -> &[Turn] {
        &self.0
    }
}
