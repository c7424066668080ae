//! Several limits at once: jobs that need a slot in each of several queues.
//!
//! `plan.rs` says which queue to turn to next, `seat.rs` is the job's place in one of them, and
//! `gathering.rs` carries the plan out. Behind its gate (`joint.rs` of the line) a job holds a ticket that
//! asks for no slot.

mod gathering;
mod plan;
mod seat;

use std::{future::Future, pin::pin, sync::Arc};

use futures::{channel::oneshot, future::abortable};
use interval_queue_contract::{Command, InvalidInput, Reply};
use tokio::sync::OnceCell;

use self::{gathering::Gathering, seat::Seat};
use crate::{
    IntervalQueue, JobOptions, Turn,
    error::{Error, ErrorKind},
    host::timeout,
    line::Gate,
    shard::{Running, Shard},
    telemetry::{Origin, Outcome},
    user_code::{caught, limited},
};

/// The most queues that a job can need a slot of.
const MOST: usize = 16;

/// Several queues that a job needs a slot of at once: one for each customer and one for all, say, or requests
/// per second and tokens per minute.
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
/// A job holds a ticket in each queue and uses no slot before the others are near, so it neither blocks a
/// queue nor wastes its slots while it waits for another. The one in which a slot takes longest, by interval
/// and weight, is asked first, the next one when its slot has come, and so on. It starts when the last one
/// has come. What is in hand by then is given back if that takes longer than half its interval (at least 10
/// ms, or its lead): nothing is held for long, so no two jobs can wait for each other.
///
/// # What can be relied on
///
/// In each queue slots are never closer than its interval, and the job starts at or after its slot. It starts
/// later than the first of its slots by what it waits for the others, mostly less than an interval of the
/// next faster queue, and about one round trip for each further queue. If that is more than answers take, the
/// next slot of the slower queue is held back as long, as if by [`hold`](IntervalQueue::hold), so that starts
/// keep their distance, too. Where the lead reaches half the interval the next slots may have been granted by
/// then, and starts can come nearer to each other.
///
/// A queue that is paused, held, full or not to be reached keeps the job waiting, and nobody else. A job
/// keeps its place in each line from when it has its ticket there. In the longest it has it at once,
/// elsewhere when what is left of that wait is as long as the other line.
///
/// # What it costs
///
/// Each queue has one command for the job, as for any other, and one or two more to see how long the line is,
/// unless it was heard of in the last 50 ms. A slot is lost where a line moved otherwise than it looked: at
/// most about one in each queue for each job, and hardly any where one of the queues is clearly the slowest.
/// So is a slot that was in hand when the caller stopped waiting.
#[derive(Clone, Debug)]
pub struct Limits {
    queues: Arc<[IntervalQueue]>,
    weights: Option<Arc<[u32]>>,
    /// Whether queues of one name are known to be on different states.
    told_apart: Arc<OnceCell<()>>,
}

impl Limits {
    /// Limits of these queues, 1 to 16 of them, on one state or several. The order makes no difference but to
    /// [`weighing`](Self::weighing) and [`Turns::as_slice`].
    ///
    /// # Errors
    ///
    /// [`Invalid`](crate::ErrorKind::Invalid) for none, too many, or the same queue twice. Of two shards of
    /// one name that were opened each by itself only the state can tell whether they are the same queue: the
    /// first job asks it.
    pub fn new(queues: impl IntoIterator<Item = IntervalQueue>) -> Result<Self, Error> {
        let queues: Arc<[_]> = queues.into_iter().collect();
        if queues.is_empty() || queues.len() > MOST {
            let text = format!("limits of {} queues: give 1 to {MOST}", queues.len());
            return Err(InvalidInput::new(text).into());
        }
        let limits = Self { queues, weights: None, told_apart: Arc::default() };
        for (one, other) in limits.namesakes() {
            if Arc::ptr_eq(one, other) || Arc::ptr_eq(&one.state, &other.state) {
                return Err(twice(one));
            }
        }
        Ok(limits)
    }

    /// The same limits for jobs that take so many intervals of each queue, in the order in which the queues
    /// were given. Default: one of each, or the [weight](JobOptions::weight) in the options.
    ///
    /// # Errors
    ///
    /// [`Invalid`](crate::ErrorKind::Invalid) for more or fewer weights than queues. What is wrong with a
    /// weight is told to the job that has it.
    pub fn weighing(&self, weights: impl IntoIterator<Item = u32>) -> Result<Self, Error> {
        let weights: Arc<[u32]> = weights.into_iter().collect();
        if weights.len() != self.queues.len() {
            let text =
                format!("{} weights for {} queues: give one for each", weights.len(), self.queues.len());
            return Err(InvalidInput::new(text).into());
        }
        Ok(Self { weights: Some(weights), ..self.clone() })
    }

    /// Waits for a slot in each queue, to run something in place. While the turns live it counts as a running
    /// job of each.
    ///
    /// # Errors
    ///
    /// As [`IntervalQueue::turn`], of any of the queues; the places in the others are given up then.
    ///
    /// # Cancel safety
    ///
    /// Dropped before it returned, all places are given up.
    pub async fn turn(&self) -> Result<Turns, Error> {
        self.turn_with(JobOptions::new()).await
    }

    /// As [`turn`](Self::turn), with options.
    ///
    /// # Errors
    ///
    /// As [`IntervalQueue::turn`], and [`Invalid`](crate::ErrorKind::Invalid) for a weight if there are
    /// [others](Self::weighing).
    pub async fn turn_with(&self, options: JobOptions) -> Result<Turns, Error> {
        options.check_turn()?;
        let places = self.gather(&options).await?;
        let turn = |mut place: Running| {
            place.begin_turn();
            Turn(place)
        };
        Ok(Turns(places.into_iter().map(turn).collect()))
    }

    /// Runs a job in its slots, as a task of its own, and gives its result.
    ///
    /// # Errors
    ///
    /// As [`turn`](Self::turn), [`Panicked`](crate::ErrorKind::Panicked) if the job panicked, and
    /// [`Cancelled`](crate::ErrorKind::Cancelled) if the [shutdown](IntervalQueue::shutdown) of one of the
    /// queues aborted it.
    ///
    /// # Cancel safety
    ///
    /// Dropped before the job started, all places are given up; later the job runs detached.
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
    /// As [`run`](Self::run) and [`turn_with`](Self::turn_with), and [`TimedOut`](crate::ErrorKind::TimedOut)
    /// as [`timeout`](JobOptions::timeout) says.
    pub async fn run_with<F>(&self, options: JobOptions, job: F) -> Result<F::Output, Error>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        let mut places = self.gather(&options).await?;
        let host = self.queues[0].shard.host.clone();
        let (job, handle) = abortable(caught(limited(host.clone(), options.timeout, job)));
        places.iter().for_each(|place| place.abort_with(handle.clone()));
        let (sender, result) = oneshot::channel();
        host.spawn(Box::pin(async move {
            let Some((first, others)) = places.split_first_mut() else { return };
            let outcome = first.run_beside(others, pin!(Some(job))).await.and_then(|result| result);
            let told = outcome.as_ref().map_or_else(Outcome::of, |_| Outcome::Ok);
            places.iter_mut().for_each(|place| place.ended(told));
            drop(places);
            // The caller may have stopped waiting.
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
            self.tell_apart().await?;
            let mut seats = Vec::with_capacity(self.queues.len());
            for (number, queue) in self.queues.iter().enumerate() {
                let terms = queue.terms(&self.options_of(number, options))?;
                seats.push(Seat::new(queue.clone(), terms.unhurried(), origin.clone()));
            }
            // In one order for all, so that nobody has room here and waits for it there while another does
            // the opposite.
            let mut order: Vec<_> = (0..seats.len()).collect();
            order.sort_by_key(|&seat| Arc::as_ptr(&self.queues[seat].shard).addr());
            for seat in order {
                seats[seat].take_room().await?;
            }
            Gathering::gather(seats, limit).await
        };
        let gathered = Box::pin(gathered);
        let gathered = match limit {
            None => gathered.await,
            Some(limit) => {
                timeout(host, limit, gathered).await.unwrap_or_else(|| Err(Error::started_too_late()))
            }
        };
        gathered.inspect_err(|error| {
            // Nobody can tell which of them it is too late for.
            if error.kind() == ErrorKind::TooLate {
                for (number, queue) in self.queues.iter().enumerate() {
                    if let Ok(terms) = queue.terms(&self.options_of(number, options)) {
                        queue.shard.note_refusal(error, called, &terms.line, 1);
                    }
                }
            }
        })
    }

    /// The options of a job for the queue of that number.
    fn options_of(&self, number: usize, options: &JobOptions) -> JobOptions {
        let weight = self.weights.as_ref().map(|weights| weights[number]);
        weight.map_or_else(|| options.clone(), |weight| options.clone().weight(weight))
    }

    /// Queues of one name, each with each.
    fn namesakes(&self) -> impl Iterator<Item = (&Arc<Shard>, &Arc<Shard>)> {
        let shards = || self.queues.iter().map(|queue| &queue.shard).enumerate();
        shards().flat_map(move |(number, one)| {
            let others = shards().skip(number + 1).filter(|(_, other)| other.queue == one.queue);
            others.map(move |(_, other)| (one, other))
        })
    }

    /// Asks the states of queues of one name whether they are the same: what one knows of a shard, the other
    /// does not.
    async fn tell_apart(&self) -> Result<(), Error> {
        self.told_apart
            .get_or_try_init(|| async {
                for (one, other) in self.namesakes() {
                    let queue = IntervalQueue { shard: one.clone() };
                    let terms = queue.terms(&JobOptions::new())?;
                    let origin = Origin::here(one.host.now());
                    let mut seat = Seat::new(queue, terms, origin);
                    seat.arrive(Gate::Closed, None)?;
                    std::future::poll_fn(|context| seat.poll_change(context)).await?;
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

/// A slot of each queue that has come. While it lives, it counts as a running job of each.
///
/// Returned by [`Limits::turn`].
#[derive(Debug)]
#[must_use = "the job counts as running while its turns live"]
pub struct Turns(Vec<Turn>);

impl Turns {
    /// The turns, in the order in which the queues were given.
    pub fn as_slice(&self) -> &[Turn] {
        &self.0
    }
}
