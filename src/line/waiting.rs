//! Jobs that wait for their start: on which terms, and in which order.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::time::Instant;

use super::{GroupId, JobId};

/// The terms on which a job waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    pub(crate) weight: u32,
    pub(crate) priority: i32,
    /// The latest start.
    pub(crate) deadline: Option<Instant>,
    pub(crate) group: Option<GroupId>,
}

/// A job that has not started.
pub(crate) struct Waiting<J> {
    pub(crate) weight: u32,
    pub(crate) payload: J,
    /// None for most jobs, so that a million of them take little room.
    rest: Option<Box<Rest>>,
}

/// What few jobs have.
#[derive(Default)]
struct Rest {
    priority: i32,
    deadline: Option<Instant>,
    group: Option<GroupId>,
    batch: Option<Batch>,
}

/// Jobs that are added together, or none of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Batch(Arc<AtomicBool>);

impl Batch {
    /// Whether one of them has started. For sure only while the line is locked.
    pub(crate) fn has_begun(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

impl<J> Waiting<J> {
    pub(crate) fn new(terms: Terms, payload: J) -> Self {
        let Terms { weight, priority, deadline, group } = terms;
        let ordinary = priority == 0 && deadline.is_none() && group.is_none();
        let rest = (!ordinary).then(|| Box::new(Rest { priority, deadline, group, batch: None }));
        Self { weight, payload, rest }
    }

    /// It is added together with others.
    pub(crate) fn together(mut self, batch: Option<&Batch>) -> Self {
        if let Some(batch) = batch {
            self.rest.get_or_insert_default().batch = Some(batch.clone());
        }
        self
    }

    /// Takes in that it starts.
    pub(crate) fn note_start(&self) {
        if let Some(batch) = self.rest.as_ref().and_then(|rest| rest.batch.as_ref()) {
            batch.0.store(true, Ordering::Release);
        }
    }

    pub(crate) fn priority(&self) -> i32 {
        self.rest.as_ref().map_or(0, |rest| rest.priority)
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.rest.as_ref()?.deadline
    }

    fn group(&self) -> Option<GroupId> {
        self.rest.as_ref()?.group
    }

    /// Changes the priority of a job that is in no order yet.
    pub(crate) fn set_priority(&mut self, priority: i32) {
        match &mut self.rest {
            Some(rest) => rest.priority = priority,
            None if priority == 0 => {}
            None => self.rest = Some(Box::new(Rest { priority, ..Rest::default() })),
        }
    }
}

/// A job's place in the order of starts: priority, then age.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank(Reverse<i32>, JobId);

impl Rank {
    pub(crate) fn of<J>(id: JobId, job: &Waiting<J>) -> Self {
        Self(Reverse(job.priority()), id)
    }

    pub(crate) fn id(self) -> JobId {
        self.1
    }
}

/// The jobs that have a ticket, in the order in which they are to start.
pub(crate) struct Ranked<J> {
    jobs: BTreeMap<Rank, Waiting<J>>,
    /// Of those jobs where it is not 0.
    priorities: HashMap<JobId, i32>,
    /// What the weights of all jobs are above 1, in sum.
    overweight: u64,
}

fn overweight<J>(job: &Waiting<J>) -> u64 {
    u64::from(job.weight).saturating_sub(1)
}

impl<J> Default for Ranked<J> {
    fn default() -> Self {
        Self { jobs: BTreeMap::new(), priorities: HashMap::new(), overweight: 0 }
    }
}

impl<J> Ranked<J> {
    pub(crate) fn len(&self) -> usize {
        self.jobs.len()
    }

    pub(crate) fn contains(&self, id: JobId) -> bool {
        self.jobs.contains_key(&self.rank(id))
    }

    pub(crate) fn insert(&mut self, id: JobId, job: Waiting<J>) {
        let priority = job.priority();
        if priority != 0 {
            self.priorities.insert(id, priority);
        }
        self.overweight += overweight(&job);
        self.jobs.insert(Rank(Reverse(priority), id), job);
    }

    pub(crate) fn remove(&mut self, id: JobId) -> Option<Waiting<J>> {
        let job = self.jobs.remove(&self.rank(id))?;
        self.priorities.remove(&id);
        self.overweight -= overweight(&job);
        Some(job)
    }

    pub(crate) fn first(&self) -> Option<&Waiting<J>> {
        self.jobs.first_key_value().map(|(_, job)| job)
    }

    pub(crate) fn first_rank(&self) -> Option<Rank> {
        self.jobs.first_key_value().map(|(rank, _)| *rank)
    }

    pub(crate) fn pop_first(&mut self) -> Option<(JobId, Waiting<J>)> {
        let (Rank(_, id), job) = self.jobs.pop_first()?;
        self.priorities.remove(&id);
        self.overweight -= overweight(&job);
        Some((id, job))
    }

    /// In the order of starts.
    pub(crate) fn values(&self) -> impl Iterator<Item = &Waiting<J>> {
        self.jobs.values()
    }

    /// How many start before a new one of that priority.
    pub(crate) fn before_new(&self, priority: i32) -> usize {
        if self.priorities.is_empty() {
            return if priority > 0 { 0 } else { self.len() };
        }
        self.jobs.range(..=Rank(Reverse(priority), JobId::MAX)).count()
    }

    /// Those that are to start before this one.
    pub(crate) fn before(&self, id: JobId) -> impl Iterator<Item = &Waiting<J>> {
        self.jobs.range(..self.rank(id)).map(|(_, job)| job)
    }

    /// How many of these start before one of that priority and age.
    pub(crate) fn count_before(&self, priority: i32, id: JobId) -> usize {
        self.jobs.range(..Rank(Reverse(priority), id)).count()
    }

    /// How many intervals more than one each those take.
    pub(crate) fn overweight_before_place(&self, priority: i32, id: JobId) -> u64 {
        if self.overweight == 0 {
            return 0;
        }
        self.jobs.range(..Rank(Reverse(priority), id)).map(|(_, job)| overweight(job)).sum()
    }

    /// How many intervals more than one each they take.
    pub(crate) fn overweight_before(&self, id: JobId) -> u64 {
        if self.overweight == 0 { 0 } else { self.before(id).map(overweight).sum() }
    }

    /// Whether this is the one that is to start last.
    pub(crate) fn is_last(&self, id: JobId) -> bool {
        self.jobs.last_key_value().is_some_and(|(rank, _)| rank.1 == id)
    }

    /// Moves a job. False if it is not here.
    pub(crate) fn set_priority(&mut self, id: JobId, priority: i32) -> bool {
        let Some(mut job) = self.remove(id) else { return false };
        job.set_priority(priority);
        self.insert(id, job);
        true
    }

    fn rank(&self, id: JobId) -> Rank {
        Rank(Reverse(self.priorities.get(&id).copied().unwrap_or(0)), id)
    }
}

/// Finds the jobs of a line, with a ticket or without, by what few of them have.
#[derive(Default)]
pub(crate) struct Index {
    deadlines: BTreeSet<(Instant, JobId)>,
    groups: HashMap<GroupId, BTreeSet<JobId>>,
}

impl Index {
    pub(crate) fn note<J>(&mut self, id: JobId, job: &Waiting<J>) {
        self.deadlines.extend(job.deadline().map(|deadline| (deadline, id)));
        if let Some(group) = job.group() {
            self.groups.entry(group).or_default().insert(id);
        }
    }

    /// Forgets a job that leaves the line.
    pub(crate) fn forget<J>(&mut self, id: JobId, job: &Waiting<J>) {
        if let Some(deadline) = job.deadline() {
            self.deadlines.remove(&(deadline, id));
        }
        if let Some(group) = job.group()
            && let Some(members) = self.groups.get_mut(&group)
        {
            members.remove(&id);
            if members.is_empty() {
                self.groups.remove(&group);
            }
        }
    }

    /// When the first job becomes too late.
    pub(crate) fn first_deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    /// A job whose deadline has passed.
    pub(crate) fn overdue(&self, now: Instant) -> Option<JobId> {
        self.deadlines.first().filter(|(deadline, _)| *deadline < now).map(|(_, id)| *id)
    }

    /// The jobs of a group.
    pub(crate) fn group(&self, group: GroupId) -> Vec<JobId> {
        self.groups.get(&group).into_iter().flatten().copied().collect()
    }
}
