//! Failures, grouped by similar error texts.

pub(crate) mod likeness;

use std::collections::{BTreeMap, HashMap};

use interval_queue::Micros;
use interval_queue_task_contract::{Kind, Selector, State, Task, TaskId};

use crate::{TaskQueue, error::Error};

const MAX_GROUPS: usize = 100;
/// Maximum while counting.
const MAX_HELD_GROUPS: usize = 1_000;

/// Tasks that failed, for good or until a retry, by error text. See [`TaskQueue::failures`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Failures {
    /// The groups, largest first, at most 100.
    pub groups: Vec<Failure>,
    /// Number of tasks outside `groups`.
    pub ungrouped: u64,
}

/// Failed tasks with similar error texts.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Failure {
    /// Error text of one task of the group.
    pub text: String,
    /// Id of the task with `text`.
    pub example: TaskId,
    /// Tasks that failed for good.
    pub count: u64,
    /// Tasks that failed and will be retried, or are being retried.
    pub retrying: u64,
    /// Tasks of each kind.
    pub kinds: BTreeMap<Kind, u64>,
    /// Earliest failure, by the last run of each task, on the store's clock.
    pub first: Micros,
    /// Latest failure, on the store's clock.
    pub last: Micros,
    /// Text contained in all errors of the group, to select by. `None`: they have none in common.
    pub common: Option<String>,
    /// Failed tasks that contain `common`: `count`, or more if other groups contain it.
    pub selects: u64,
}

impl Failure {
    fn new(task: &Task) -> Self {
        Self {
            text: text(task).to_owned(),
            example: task.id,
            count: 0,
            retrying: 0,
            kinds: BTreeMap::new(),
            first: failed(task),
            last: failed(task),
            common: None,
            selects: 0,
        }
    }

    fn count(&mut self, task: &Task) {
        match task.state {
            State::Failed => self.count += 1,
            _ => self.retrying += 1,
        }
        *self.kinds.entry(task.kind.clone()).or_default() += 1;
        (self.first, self.last) = (self.first.min(failed(task)), self.last.max(failed(task)));
    }
}

fn text(task: &Task) -> &str {
    task.error.as_deref().unwrap_or_default()
}

fn failed(task: &Task) -> Micros {
    let last = task.history.last().map_or(task.added, |last| last.ended);
    task.ended.unwrap_or(last)
}

/// See `likeness::parts`.
type Parts = Vec<String>;

fn parts(task: &Task) -> Parts {
    likeness::parts(text(task)).into_iter().map(str::to_owned).collect()
}

struct Group {
    failure: Failure,
    is_one_text: bool,
}

/// Each with the number of other groups' tasks that contain it.
type Candidates = Vec<(String, u64)>;

impl Group {
    fn candidates(&self, parts: &Parts) -> Candidates {
        let common = if self.is_one_text {
            likeness::common([self.failure.text.as_str()])
        } else {
            likeness::common(parts.iter().map(String::as_str))
        };
        common.into_iter().map(|text| (text, 0)).collect()
    }
}

impl TaskQueue {
    /// Tasks that failed, for good or until a retry, in groups of similar error texts. Ignores the
    /// selector's states.
    ///
    /// Similar texts differ only in numbers, hexadecimal words, UUIDs, times, host or mail
    /// addresses, or quoted text. Short numbers after words such as `code`, `status` or `HTTP`
    /// distinguish failures. Failures that handlers have given the same
    /// [group](crate::TaskError::group) are one group, also with different texts.
    ///
    /// To select a group, for example for [`change`](Self::change), set [`Selector::error`] to
    /// [`Failure::common`]. It selects only that group if `selects` equals `count`.
    ///
    /// Reads all selected tasks page by page, twice if there are several groups. Concurrent
    /// failures may or may not count. Holds 1,000 groups in memory; tasks of others, and of all but
    /// the 100 largest, are `ungrouped`.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), interval_queue_tasks::Error> {
    /// # use interval_queue_tasks::{Context, Task, TaskError, TaskQueue, Worker};
    /// use interval_queue_tasks::{Selector, State, Verb};
    ///
    /// # let queue = TaskQueue::builder("rows").connect("memory:").await?;
    /// # queue.add_all((0..3).map(|n| Task::new("import", &n))).await?;
    /// # let import = |context: Context, _: u32| async move {
    /// #     Err::<(), _>(TaskError::failed(format!("no customer for {}", context.id())))
    /// # };
    /// # Worker::builder(&queue).handler("import", import).build()?.run_until_empty().await?;
    /// let failures = queue.failures(&Selector::default()).await?;
    /// let worst = &failures.groups[0];
    /// assert_eq!((worst.count, worst.selects, worst.common.as_deref()), (3, 3, Some("no customer for")));
    ///
    /// let these = Selector { error: worst.common.clone(), ..Selector::states([State::Failed]) };
    /// assert_eq!(queue.change(&these, Verb::Retry, false).await?.ids.len(), 3);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`task`](Self::task), and [`Invalid`](crate::ErrorKind::Invalid) for an invalid selector.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: it changes nothing.
    pub async fn failures(&self, selector: &Selector) -> Result<Failures, Error> {
        // `common` replaces this text in a later selector, so `selects` counts without it.
        let wanted = selector.error.as_deref().unwrap_or_default();
        let failed = Selector { error: None, states: vec![State::Failed], ..selector.clone() };
        let mut kept: HashMap<Parts, Group> = HashMap::new();
        let mut ungrouped = 0;
        let mut see = |task: &Task| {
            if !text(task).contains(wanted) {
                return;
            }
            let parts = parts(task);
            if kept.len() == MAX_HELD_GROUPS && !kept.contains_key(&parts) {
                ungrouped += 1;
                return;
            }
            let new = || Group { failure: Failure::new(task), is_one_text: true };
            let group = kept.entry(parts).or_insert_with(new);
            group.is_one_text &= group.failure.text == text(task);
            group.failure.count(task);
        };
        self.each(&failed, |task| see(&task)).await?;
        // An `error`, even an empty one, excludes live tasks without an error.
        let states = State::ALL.into_iter().filter(|state| !state.is_ended()).collect();
        let live = Selector { error: Some(wanted.to_owned()), states, ..selector.clone() };
        self.each(&live, |task| {
            if task.failures > 0 {
                see(&task);
            }
        })
        .await?;
        let is_alone = kept.len() < 2 && wanted.is_empty();
        let mut groups: Vec<(Parts, Group)> = kept.into_iter().collect();
        groups.sort_by(|(_, a), (_, b)| {
            let (a, b) = (&a.failure, &b.failure);
            let all = |failure: &Failure| failure.count + failure.retrying;
            all(b).cmp(&all(a)).then_with(|| a.text.cmp(&b.text))
        });
        let all = |group: &Group| group.failure.count + group.failure.retrying;
        ungrouped += groups.iter().skip(MAX_GROUPS).map(|(_, group)| all(group)).sum::<u64>();
        groups.truncate(MAX_GROUPS);
        let mut listed: Vec<(Parts, Failure, Candidates)> = groups
            .into_iter()
            .map(|(parts, group)| {
                let candidates = group.candidates(&parts);
                (parts, group.failure, candidates)
            })
            .collect();
        if !is_alone {
            self.each(&failed, |task| {
                let own = parts(&task);
                for (_, _, candidates) in listed.iter_mut().filter(|(parts, ..)| *parts != own) {
                    for (candidate, others) in candidates {
                        *others += u64::from(text(&task).contains(candidate.as_str()));
                    }
                }
            })
            .await?;
        }
        let groups = listed.into_iter().map(|(_, mut failure, candidates)| {
            // Candidates are sorted longest first; of equal counts `min_by_key` returns the first.
            if let Some((common, others)) = candidates.into_iter().min_by_key(|(_, others)| *others) {
                (failure.common, failure.selects) = (Some(common), failure.count + others);
            }
            failure
        });
        Ok(Failures { groups: groups.collect(), ungrouped })
    }
}
