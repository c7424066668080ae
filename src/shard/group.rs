//! Groups of jobs that are cancelled together.

use std::{
    ptr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio::sync::Notify;

use super::Shard;
use crate::{error::Error, line::GroupId, until::until};

/// Jobs of any queues of this process that are cancelled together, e.g. those of one crawl or
/// customer.
///
/// Cloning returns another handle to the group. Set it with
/// [`JobOptions::group`](crate::JobOptions::group).
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use std::time::Duration;
/// use interval_queue::{ErrorKind, IntervalQueue, JobGroup};
///
/// # let queue = IntervalQueue::builder("crawl").interval(Duration::from_secs(1)).connect("memory:").await?;
/// # queue.add(async {}).await?.await?;
/// let site = JobGroup::new();
/// let pages = queue.jobs((0..10).map(|page| async move { page })).group(&site).add().await?;
/// assert_eq!(site.cancel(), 10); // none of them has started yet
/// for page in pages {
///     assert_eq!(page.await.unwrap_err().kind(), ErrorKind::Cancelled);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct JobGroup(Arc<Group>);

#[derive(Debug)]
struct Group {
    id: GroupId,
    members: Mutex<Members>,
    ended: Notify,
}

#[derive(Debug, Default)]
struct Members {
    cancelled: bool,
    shards: Vec<Weak<Shard>>,
}

impl JobGroup {
    /// A group without jobs.
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        Self(Arc::new(Group { id, members: Mutex::default(), ended: Notify::new() }))
    }

    /// Cancels the jobs of the group that have not started; their handles return
    /// [`Cancelled`](crate::ErrorKind::Cancelled). Returns the number of positions given up; a job
    /// of several [limits](crate::Limits) may have one in each queue. Running jobs continue but are
    /// not retried. Jobs between two attempts end with their last error.
    ///
    /// This is permanent: jobs added to the group later are refused with the same error.
    pub fn cancel(&self) -> usize {
        let shards = {
            let mut members = self.members();
            members.cancelled = true;
            std::mem::take(&mut members.shards)
        };
        self.0.ended.notify_waiters();
        shards.iter().filter_map(Weak::upgrade).map(|shard| shard.cancel_group(self.0.id)).sum()
    }

    /// Whether it was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.members().cancelled
    }

    pub(crate) fn id(&self) -> GroupId {
        self.0.id
    }

    /// Admits nothing if the group is cancelled.
    pub(super) fn admit<T>(&self, shard: &Arc<Shard>, arrive: impl FnOnce() -> T) -> Result<T, Error> {
        {
            let mut members = self.members();
            if members.cancelled {
                return Err(Error::cancelled());
            }
            if !members.shards.iter().any(|known| ptr::eq(known.as_ptr(), Arc::as_ptr(shard))) {
                members.shards.retain(|known| known.strong_count() > 0);
                members.shards.push(Arc::downgrade(shard));
            }
        }
        // Not under the lock: subscribers and recorders run.
        let arrived = arrive();
        if self.is_cancelled() {
            // The group may have been cancelled meanwhile.
            shard.cancel_group(self.0.id);
        }
        Ok(arrived)
    }

    pub(crate) async fn cancelled(&self) {
        until(&self.0.ended, || self.is_cancelled()).await;
    }

    fn members(&self) -> MutexGuard<'_, Members> {
        self.0.members.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for JobGroup {
    fn default() -> Self {
        Self::new()
    }
}

impl PartialEq for JobGroup {
    fn eq(&self, other: &Self) -> bool {
        self.0.id == other.0.id
    }
}

impl Eq for JobGroup {}
