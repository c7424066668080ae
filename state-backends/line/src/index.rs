//! Finds jobs by what few of them have: a deadline, a group.

use std::{
    collections::{BTreeSet, HashMap},
    time::Instant,
};

use crate::jobs::{GroupId, JobId, Waiting};

/// Finds the jobs of a line, with a ticket or without, by what few of them have.
#[derive(Clone, Debug, Default)]
pub struct Index {
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
