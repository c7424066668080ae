//! The order in which the jobs of a line start.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
};

use crate::jobs::{JobId, Waiting};

/// A job's place in the order of starts: priority, then age.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank(Reverse<i32>, JobId);

impl Rank {
    pub(crate) fn new(priority: i32, id: JobId) -> Self {
        Self(Reverse(priority), id)
    }

    pub(crate) fn last_of(priority: i32) -> Self {
        Self::new(priority, JobId::MAX)
    }

    pub(crate) fn of<J>(id: JobId, job: &Waiting<J>) -> Self {
        Self::new(job.priority(), id)
    }

    pub(crate) fn id(self) -> JobId {
        self.1
    }
}

/// Jobs with a ticket, in the order of starts.
#[derive(Clone, Debug)]
pub struct Ranked<J> {
    jobs: BTreeMap<Rank, Waiting<J>>,
    /// Only priorities other than 0.
    priorities: HashMap<JobId, i32>,
    /// Sum of `weight - 1` over all jobs.
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
    /// Number of jobs.
    pub fn len(&self) -> usize {
        self.jobs.len()
    }

    /// Whether no job has a ticket.
    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Whether the job has a ticket.
    pub fn contains(&self, id: JobId) -> bool {
        self.jobs.contains_key(&self.rank(id))
    }

    pub(crate) fn insert(&mut self, id: JobId, job: Waiting<J>) {
        let priority = job.priority();
        if priority != 0 {
            self.priorities.insert(id, priority);
        }
        self.overweight += overweight(&job);
        self.jobs.insert(Rank::new(priority, id), job);
    }

    pub(crate) fn remove(&mut self, id: JobId) -> Option<Waiting<J>> {
        let job = self.jobs.remove(&self.rank(id))?;
        self.priorities.remove(&id);
        self.overweight -= overweight(&job);
        Some(job)
    }

    /// The job that starts first.
    pub fn first(&self) -> Option<&Waiting<J>> {
        self.jobs.first_key_value().map(|(_, job)| job)
    }

    pub(crate) fn first_rank(&self) -> Option<Rank> {
        self.jobs.first_key_value().map(|(rank, _)| *rank)
    }

    pub(crate) fn last_rank(&self) -> Option<Rank> {
        self.jobs.last_key_value().map(|(rank, _)| *rank)
    }

    pub(crate) fn pop_first(&mut self) -> Option<(JobId, Waiting<J>)> {
        let (Rank(_, id), job) = self.jobs.pop_first()?;
        self.priorities.remove(&id);
        self.overweight -= overweight(&job);
        Some((id, job))
    }

    /// All jobs in the order of starts.
    pub fn values(&self) -> impl Iterator<Item = &Waiting<J>> {
        self.jobs.values()
    }

    pub(crate) fn before_new(&self, priority: i32) -> usize {
        if self.priorities.is_empty() {
            return if priority > 0 { 0 } else { self.len() };
        }
        self.before(Rank::last_of(priority)).count()
    }

    pub(crate) fn before(&self, rank: Rank) -> impl Iterator<Item = &Waiting<J>> {
        self.jobs.range(..rank).map(|(_, job)| job)
    }

    pub(crate) fn overweight_before(&self, rank: Rank) -> u64 {
        if self.overweight == 0 { 0 } else { self.before(rank).map(overweight).sum() }
    }

    /// 1 if it is not here.
    pub(crate) fn weight(&self, id: JobId) -> u32 {
        self.jobs.get(&self.rank(id)).map_or(1, |job| job.weight)
    }

    pub(crate) fn is_last(&self, id: JobId) -> bool {
        self.jobs.last_key_value().is_some_and(|(rank, _)| rank.1 == id)
    }

    /// False: it is not here.
    pub(crate) fn set_priority(&mut self, id: JobId, priority: i32) -> bool {
        let Some(mut job) = self.remove(id) else { return false };
        job.set_priority(priority);
        self.insert(id, job);
        true
    }

    /// With priority 0 if it is not here.
    pub(crate) fn rank(&self, id: JobId) -> Rank {
        Rank::new(self.priorities.get(&id).copied().unwrap_or(0), id)
    }
}
