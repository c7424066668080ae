//! Late binding: a job takes its ticket first, and its content is chosen shortly before its slot.
//!
//! Until then its gate is closed, as for jobs of several limits (`joint.rs` of the line), so a
//! ticket without work is given up before a slot is granted for it.

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
    line::{Gate, MAX_MEMORY_AGE},
    shard::{Accepted, Entry, Running, Start},
};

/// A job that is chosen shortly before its slot, see [`IntervalQueue::pull`].
#[derive(Clone, Debug)]
pub struct Pull<'a, C>(C, PhantomData<&'a ()>);

/// The result of `choose` in a [pull](IntervalQueue::pull): a job, or a [`Weighed`] job.
pub trait Choice {
    /// The job.
    type Job;

    /// The weight of the job, if it has its own, and the job.
    fn into_parts(self) -> (Option<u32>, Self::Job);
}

impl<J: Future> Choice for J {
    type Job = J;

    fn into_parts(self) -> (Option<u32>, J) {
        (None, self)
    }
}

/// A job with its own weight instead of the pull's.
#[derive(Clone, Copy, Debug)]
pub struct Weighed<J> {
    /// The intervals that the job takes, see [`JobOptions::weight`](crate::JobOptions::weight).
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

/// Time between two reads by a waiting pull.
const MIN_READ_INTERVAL: Duration = Duration::from_millis(100);

/// `None`: not chosen yet.
type Chosen = Arc<Mutex<Option<Box<dyn Start>>>>;

fn locked(chosen: &Chosen) -> MutexGuard<'_, Option<Box<dyn Start>>> {
    chosen.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Open {
    chosen: Chosen,
    refused: oneshot::Sender<Error>,
}

impl Start for Open {
    fn start(self: Box<Self>, running: Running) -> Result<Option<AbortHandle>, Running> {
        let chosen = locked(&self.chosen).take();
        match chosen {
            Some(chosen) => chosen.start(running),
            None => Err(running),
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
    /// Takes a ticket, and calls `choose` shortly before its slot to get a job, from any source,
    /// such as a table or a stream. If `choose` returns `None`, the ticket is given up before a
    /// slot is granted for it, and the next job of this shard starts instead. Other shards may
    /// leave that one slot unused, so pull only when there is work.
    ///
    /// Returns after the choice: `None`, or the handle of the chosen job, which starts at the slot
    /// as a task of its own. A loop of pulls empties a source at the rate. `choose` is called once,
    /// before the slot by the lead, usually a few milliseconds, plus the time of the last choice. A
    /// slower choice delays the start. Options are set as for a [turn](Self::turn):
    /// `queue.pull(…).weight(2).await`. To choose the weight, too, return [`Weighed`].
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
    /// As [`add`](Self::add) and [its handle](JobHandle). `choose` was not called then, unless its
    /// choice has an invalid weight.
    ///
    /// # Cancel safety
    ///
    /// If dropped before it returns, the ticket is given up and a running `choose` is dropped.
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
        // Dropping `accepted` gives the ticket up.
        let Some(choice) = choice else { return Ok(None) };
        let (weight, job) = choice.into_parts();
        if let Some(weight) = weight {
            queue.terms(&JobOptions::new().weight(weight))?;
            shard.line().set_weight(accepted.guard.id, weight);
        }
        let (start, result) = job::task(&shard.host, options.timeout, job);
        *locked(&chosen) = Some(start);
        if let Ok(Some(error)) = is_refused.try_recv() {
            return Err(error);
        }
        shard.line().open_gate(accepted.guard.id, shard.host.now());
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
    async fn near(&self, accepted: &Accepted, priority: i32) {
        let shard = &self.shard;
        let mut earliest: Option<Instant> = None;
        loop {
            let mut answered = std::pin::pin!(shard.answered.notified());
            answered.as_mut().enable();
            let now = shard.host.now();
            let has_ticket = accepted.taken.is_known();
            let ahead = shard.lead().get().to_duration() + *shard.choice_took();
            let (start, reply_age) = {
                let line = shard.line();
                let start = line.gated_start(accepted.guard.id, priority, has_ticket, now);
                (start, now.saturating_duration_since(line.connection.last_reply))
            };
            // Tickets of shards that left count as ahead, and pass only when a shard polls. So the
            // earliest estimate holds, and later ones do not postpone it.
            earliest = start.map(|start| earliest.map_or(start, |earliest| earliest.min(start)));
            let near = earliest.map(|start| start.checked_sub(ahead).unwrap_or(start));
            if near.is_some_and(|near| near <= now) {
                return;
            }
            // Starts may come faster than estimated.
            let least = MAX_MEMORY_AGE.saturating_sub(reply_age).max(MIN_READ_INTERVAL);
            let half = near.map(|near| near.min(now + ((near - now) / 2).max(least)));
            tokio::select! {
                biased;
                () = answered => {}
                () = accepted.taken.known(), if !has_ticket => {}
                () = sleep_until(&*shard.host, half) => {
                    if half < near && shard.line().connection.failing.is_none() {
                        self.tick().await;
                    }
                }
            }
        }
    }
}
