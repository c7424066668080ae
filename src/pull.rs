//! Late binding: a place in the line first, and what runs in it chosen shortly before its slot.
//!
//! Until then the job is behind a gate, as those of several limits are (`joint.rs` of the line): it holds its
//! ticket and asks for no slot. So a place that nobody needs is given up before a slot is granted for it.

use std::{
    future::IntoFuture,
    marker::PhantomData,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use futures::{
    FutureExt,
    channel::oneshot,
    future::{AbortHandle, BoxFuture},
};

use crate::{
    IntervalQueue, JobHandle, JobOptions,
    error::Error,
    host::sleep_until,
    job,
    job_builder::JobBuilder,
    line::{FRESH, Gate},
    shard::{Accepted, Entry, Running, Start},
};

/// What is chosen shortly before its slot, see [`IntervalQueue::pull`].
#[derive(Clone, Debug)]
pub struct Pull<'a, C>(C, PhantomData<&'a ()>);

/// What is chosen for a place that was [pulled](IntervalQueue::pull): a job, or one that is [weighed](Weighed).
pub trait Choice {
    /// The job.
    type Job;

    /// The weight that its slot is to have, if it is not that of the place, and the job.
    fn into_parts(self) -> (Option<u32>, Self::Job);
}

impl<J: Future> Choice for J {
    type Job = J;

    fn into_parts(self) -> (Option<u32>, J) {
        (None, self)
    }
}

/// A choice that takes as many intervals as it says, whatever its place was pulled with.
#[derive(Clone, Copy, Debug)]
pub struct Weighed<J> {
    /// How many intervals its slot takes, see [`JobOptions::weight`](crate::JobOptions::weight).
    pub weight: u32,
    /// The job.
    pub job: J,
}

impl<J> Choice for Weighed<J> {
    type Job = J;

    fn into_parts(self) -> (Option<u32>, J) {
        (Some(self.weight), self.job)
    }
}

/// The least time between two looks at a line that is waited for.
const LEAST_LOOK: Duration = Duration::from_millis(100);

/// What starts when the slot comes; none before it is chosen.
type Chosen = Arc<Mutex<Option<Box<dyn Start>>>>;

fn locked(chosen: &Chosen) -> MutexGuard<'_, Option<Box<dyn Start>>> {
    chosen.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A place that is not given to a job yet.
struct Open {
    chosen: Chosen,
    refused: oneshot::Sender<Error>,
}

impl Start for Open {
    fn start(self: Box<Self>, place: Running) -> Result<Option<AbortHandle>, Running> {
        let chosen = locked(&self.chosen).take();
        match chosen {
            Some(chosen) => chosen.start(place),
            None => Err(place),
        }
    }

    fn refuse(self: Box<Self>, error: Error) {
        let chosen = locked(&self.chosen).take();
        match chosen {
            Some(chosen) => chosen.refuse(error),
            // The caller may have stopped waiting.
            None => drop(self.refused.send(error)),
        }
    }
}

impl IntervalQueue {
    /// Takes a place in the line, and calls `choose` shortly before its slot to learn what runs there: the
    /// choice is made last, from any source, such as a table or a stream. If there is nothing to do the place
    /// is given up before a slot is granted for it, so the next job of this shard has it. Other shards were
    /// told to ask later and may leave that one slot unused: wait until there is something before you pull.
    ///
    /// Returns once the choice is made: the handle of the chosen job, which starts at the slot as a task of its
    /// own, or none. A loop of pulls so empties a source at the pace. `choose` is called once, about as long
    /// before the slot as the shard asks for it, a few milliseconds as a rule, and as the last choice took; a
    /// slower one makes the start late. Options are given as for a [turn](Self::turn):
    /// `queue.pull(…).weight(2).await`. A choice that weighs something else is [`Weighed`].
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::{sync::{Arc, Mutex}, time::Duration};
    /// # use interval_queue::IntervalQueue;
    /// # let queue = IntervalQueue::builder("api").interval(Duration::from_millis(100)).connect("memory:").await?;
    /// let table = Arc::new(Mutex::new(vec![1, 2, 3]));
    /// let next = || async { table.lock().unwrap().pop().map(|row| async move { row * 2 }) };
    /// let mut sum = 0;
    /// while let Some(job) = queue.pull(next).await? {
    ///     sum += job.await?;
    /// }
    /// assert_eq!(sum, 12);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add) and [its handle](JobHandle). `choose` has not been called then, unless the weight of what
    /// it has chosen is out of its bounds.
    ///
    /// # Cancel safety
    ///
    /// Dropped before it returned, the place is given up, and a choice that is being made is dropped.
    pub fn pull<'a, C, Fut, J>(&self, choose: C) -> JobBuilder<Pull<'a, C>>
    where
        C: FnOnce() -> Fut + Send + 'a,
        Fut: Future<Output = Option<J>> + Send + 'a,
        J: Choice<Job: Future<Output: Send> + Send + 'static> + Send + 'static,
    {
        JobBuilder::new(self, Pull(choose, PhantomData))
    }
}

impl<C> JobBuilder<Pull<'_, C>> {
    async fn choose<Fut, J, T>(self) -> Result<Option<JobHandle<T>>, Error>
    where
        C: FnOnce() -> Fut,
        Fut: Future<Output = Option<J>>,
        J: Choice<Job: Future<Output = T> + Send + 'static>,
        T: Send + 'static,
    {
        let Self { queue, options, job: Pull(choose, _) } = self;
        let shard = &queue.shard;
        let terms = queue.terms(&options)?;
        let chosen = Chosen::default();
        let (refused, mut is_refused) = oneshot::channel();
        let open = Box::new(Open { chosen: chosen.clone(), refused });
        let accepted = shard.enqueue(&terms, open, Entry::Joint(Gate::Closed)).await?;
        tokio::select! {
            biased;
            error = &mut is_refused => return Err(error.unwrap_or_else(|_| Error::cancelled())),
            () = queue.near(&accepted, terms.line.priority) => {}
        }
        let began = shard.host.now();
        let choice = choose().await;
        *shard.choice_took() = shard.host.now().saturating_duration_since(began);
        // Dropped, the place is given up.
        let Some(choice) = choice else { return Ok(None) };
        let (weight, job) = choice.into_parts();
        if let Some(weight) = weight {
            queue.terms(&JobOptions::new().weight(weight))?;
            shard.line().set_weight(accepted.place.id, weight);
        }
        let (start, result) = job::task(&shard.host, options.timeout, job);
        *locked(&chosen) = Some(start);
        if let Ok(Some(error)) = is_refused.try_recv() {
            return Err(error);
        }
        shard.line().open_gate(accepted.place.id, shard.host.now());
        shard.wake();
        Ok(Some(queue.handle(accepted, result)))
    }
}

impl<'a, C, Fut, J, T> IntoFuture for JobBuilder<Pull<'a, C>>
where
    C: FnOnce() -> Fut + Send + 'a,
    Fut: Future<Output = Option<J>> + Send + 'a,
    J: Choice<Job: Future<Output = T> + Send + 'static> + Send + 'static,
    T: Send + 'static,
{
    type Output = Result<Option<JobHandle<T>>, Error>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        self.choose().boxed()
    }
}

impl IntervalQueue {
    /// Ends when it is time to choose what runs in this place.
    async fn near(&self, accepted: &Accepted, priority: i32) {
        let shard = &self.shard;
        let mut earliest: Option<Instant> = None;
        loop {
            let mut answered = std::pin::pin!(shard.answered.notified());
            answered.as_mut().enable();
            let now = shard.host.now();
            let has_ticket = accepted.taken.is_told();
            let ahead = shard.lead().get().to_duration() + *shard.choice_took();
            let (start, heard) = {
                let line = shard.line();
                let start = line.gated_start(accepted.place.id, priority, has_ticket, now);
                (start, now.saturating_duration_since(line.contact.heard))
            };
            // Tickets of those who have left are in front as far as one can tell. While all wait, they pass only
            // when somebody asks: what was estimated first is waited for, not what recedes from then on.
            earliest = start.map(|start| earliest.map_or(start, |earliest| earliest.min(start)));
            let near = earliest.map(|start| start.checked_sub(ahead).unwrap_or(start));
            if near.is_some_and(|near| near <= now) {
                return;
            }
            // The line may move faster than it looked: half-way it is looked at again.
            let least = FRESH.saturating_sub(heard).max(LEAST_LOOK);
            let half = near.map(|near| near.min(now + ((near - now) / 2).max(least)));
            tokio::select! {
                biased;
                () = answered => {}
                () = accepted.taken.told(), if !has_ticket => {}
                () = sleep_until(&*shard.host, half) => {
                    if half < near && shard.line().contact.failing.is_none() {
                        self.tick().await;
                    }
                }
            }
        }
    }
}
