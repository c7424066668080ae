//! Finds jobs by deadline and group, which few jobs have.

use std::{collections::BTreeSet, time::Instant};

use crate::jobs::{GroupId, JobId, Waiting};

/// All jobs of a line by deadline and by group.
#[derive(Clone, Debug, Default)]
pub struct Index {
    deadlines: BTreeSet<(Instant, JobId)>,
    groups: BTreeSet<(GroupId, JobId)>,
}

impl Index {
    pub(crate) fn note<J>(&mut self, id: JobId, job: &Waiting<J>) {
        self.deadlines.extend(job.deadline().map(|deadline| (deadline, id)));
        self.groups.extend(job.group().map(|group| (group, id)));
    }

    pub(crate) fn forget<J>(&mut self, id: JobId, job: &Waiting<J>) {
        if let Some(deadline) = job.deadline() {
            self.deadlines.remove(&(deadline, id));
        }
        if let Some(group) = job.group() {
            self.groups.remove(&(group, id));
        }
    }

    pub(crate) fn first_deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    pub(crate) fn overdue(&self, now: Instant) -> Option<JobId> {
        self.deadlines.first().filter(|(deadline, _)| *deadline < now).map(|(_, id)| *id)
    }

    pub(crate) fn group(&self, group: GroupId) -> Vec<JobId> {
        self.groups.range((group, 0)..=(group, JobId::MAX)).map(|(_, id)| *id).collect()
    }
}
