//! Jobs that have not started: without a ticket, with one, or behind a gate.

use std::{
    collections::{HashSet, VecDeque},
    time::Instant,
};

use interval_queue_contract::MAX_TAKE;

use crate::{
    index::Index,
    jobs::{Arriving, Gate, JobId, Waiting, Withdrawn},
    order::{Rank, Ranked},
};

/// A take of tickets. A retry keeps the request number until it succeeds.
#[derive(Clone, Debug)]
pub struct Taking<J, C = ()> {
    /// Number of the request.
    pub request: u64,
    /// Number of tickets requested.
    pub count: u32,
    /// How many of them replace tickets given up as late.
    pub retaken: u32,
    /// The jobs, in the order of adding.
    pub batch: VecDeque<Arriving<J, C>>,
}

/// Jobs that have not started.
#[derive(Clone, Debug)]
pub struct Backlog<J, C = ()> {
    /// The id of the latest job.
    pub last_id: JobId,
    /// Jobs whose take has not begun.
    pub arriving: VecDeque<Arriving<J, C>>,
    /// Jobs whose tickets are being taken.
    pub taking: Option<Taking<J, C>>,
    /// Whether jobs without a ticket may differ in priority.
    pub is_ranked: bool,
    /// Whether a job must not linger.
    pub hurry: bool,
    /// Jobs with a ticket that may start.
    pub waiting: Ranked<J>,
    /// Joint jobs with a ticket whose gate is closed until their other slots are near.
    pub gated: Ranked<J>,
    /// Gated jobs without a ticket.
    pub gated_arriving: HashSet<JobId>,
    /// Joint jobs that will arrive when their slot in another queue comes.
    pub announced: usize,
    /// Jobs with a latest start that need an estimate: new, or with a new ticket.
    pub unestimated: VecDeque<(JobId, Instant)>,
    /// Maximum number of tickets held ahead, not counting gated and urgent jobs.
    pub most_ahead: usize,
    /// Finds jobs by deadline and group.
    pub index: Index,
}

impl<J, C> Default for Backlog<J, C> {
    fn default() -> Self {
        Self {
            last_id: 0,
            arriving: VecDeque::new(),
            taking: None,
            is_ranked: false,
            hurry: false,
            waiting: Ranked::default(),
            gated: Ranked::default(),
            gated_arriving: HashSet::new(),
            announced: 0,
            unestimated: VecDeque::new(),
            most_ahead: usize::MAX,
            index: Index::default(),
        }
    }
}

impl<J, C> Backlog<J, C> {
    /// Number of jobs.
    pub fn len(&self) -> usize {
        self.with_ticket() + self.without_ticket()
    }

    /// Whether no job waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn with_ticket(&self) -> usize {
        self.waiting.len() + self.gated.len()
    }

    /// Number of jobs without a ticket.
    pub fn without_ticket(&self) -> usize {
        self.arriving.len() + self.taking.as_ref().map_or(0, |taking| taking.batch.len())
    }

    pub(crate) fn open(&self) -> usize {
        self.waiting.len() + self.without_ticket() - self.gated_arriving.len()
    }

    pub(crate) fn arrive(&mut self, new: impl FnOnce(JobId) -> Arriving<J, C>, gate: Option<Gate>) -> JobId {
        self.last_id += 1;
        let arriving = new(self.last_id);
        let job = &arriving.job;
        self.index.note(self.last_id, job);
        self.unestimated.extend(job.deadline().map(|deadline| (self.last_id, deadline)));
        self.hurry |= job.priority() > 0 || job.deadline().is_some() || gate == Some(Gate::Open);
        self.is_ranked &= self.without_ticket() > 0;
        self.is_ranked |= job.priority() != 0;
        self.arriving.push_back(arriving);
        if gate == Some(Gate::Closed) {
            self.gated_arriving.insert(self.last_id);
        }
        self.last_id
    }

    pub(crate) fn withdraw(&mut self, id: JobId) -> Option<Withdrawn<J, C>> {
        let withdrawn = match self.waiting.remove(id).or_else(|| self.gated.remove(id)) {
            Some(job) => Withdrawn { job, caller: None },
            None => {
                let Arriving { job, caller, .. } = self.take_arriving(id)?;
                Withdrawn { job, caller: Some(caller) }
            }
        };
        self.forget(id, &withdrawn.job);
        Some(withdrawn)
    }

    /// Jobs without a ticket, and jobs with one.
    pub(crate) fn withdraw_all(&mut self) -> (Vec<Arriving<J, C>>, Ranked<J>) {
        let taking = self.taking.iter_mut().flat_map(|taking| taking.batch.drain(..));
        let arriving = self.arriving.drain(..).chain(taking).collect();
        let mut waiting = std::mem::take(&mut self.waiting);
        while let Some((id, job)) = self.gated.pop_first() {
            waiting.insert(id, job);
        }
        self.gated_arriving.clear();
        self.unestimated.clear();
        self.index = Index::default();
        (arriving, waiting)
    }

    /// Also requires that it has no ticket.
    pub(crate) fn is_held(&self, id: JobId) -> bool {
        !self.gated_arriving.is_empty() && self.gated_arriving.contains(&id)
    }

    pub(crate) fn place(&mut self, id: JobId, job: Waiting<J>) {
        self.unestimated.extend(job.deadline().map(|deadline| (id, deadline)));
        let place = if self.gated_arriving.remove(&id) { &mut self.gated } else { &mut self.waiting };
        place.insert(id, job);
    }

    pub(crate) fn forget(&mut self, id: JobId, job: &Waiting<J>) {
        self.index.forget(id, job);
        self.gated_arriving.remove(&id);
    }

    pub(crate) fn unticketed(&self) -> impl Iterator<Item = &Arriving<J, C>> {
        self.taking.iter().flat_map(|taking| &taking.batch).chain(&self.arriving)
    }

    fn find_arriving(&mut self, id: JobId) -> Option<(&mut VecDeque<Arriving<J, C>>, usize)> {
        let batches = self.taking.iter_mut().map(|taking| &mut taking.batch).chain([&mut self.arriving]);
        batches.into_iter().find_map(|batch| {
            let index = batch.binary_search_by_key(&id, |arriving| arriving.id).ok()?;
            Some((batch, index))
        })
    }

    pub(crate) fn take_arriving(&mut self, id: JobId) -> Option<Arriving<J, C>> {
        let (batch, index) = self.find_arriving(id)?;
        batch.remove(index)
    }

    /// Changes the priority of a job. False: it has started or was cancelled.
    pub fn set_priority(&mut self, id: JobId, priority: i32) -> bool {
        if self.waiting.set_priority(id, priority) {
            return true;
        }
        let Some((batch, index)) = self.find_arriving(id) else { return false };
        batch[index].job.set_priority(priority);
        self.is_ranked |= priority != 0;
        true
    }

    pub(crate) fn first_arriving(&self) -> Option<Rank> {
        let open = self.unticketed().filter(|arriving| !self.is_held(arriving.id));
        let mut ranks = open.map(|arriving| Rank::of(arriving.id, &arriving.job));
        if self.is_ranked { ranks.min() } else { ranks.next() }
    }

    pub(crate) fn arriving_before(&self, rank: Rank) -> impl Iterator<Item = &Waiting<J>> {
        let before = move |arriving: &&Arriving<J, C>| Rank::of(arriving.id, &arriving.job) < rank;
        self.unticketed().filter(before).map(|arriving| &arriving.job)
    }

    pub(crate) fn unticketed_job(&self, id: JobId) -> Option<&Waiting<J>> {
        let batches = self.taking.iter().map(|taking| &taking.batch).chain([&self.arriving]);
        batches.into_iter().find_map(|batch| {
            let index = batch.binary_search_by_key(&id, |arriving| arriving.id).ok()?;
            Some(&batch[index].job)
        })
    }

    pub(crate) fn first_to_take(&self, in_hand: usize) -> Option<&Arriving<J, C>> {
        let first = self.arriving.front()?;
        if self.room_ahead(in_hand) > 0 {
            return Some(first);
        }
        self.arriving.iter().find(|arriving| self.needs_no_room(arriving))
    }

    fn room_ahead(&self, in_hand: usize) -> usize {
        // Gated jobs wait for other queues and must not block others.
        self.most_ahead.saturating_sub(in_hand.saturating_sub(self.gated.len()))
    }

    /// A gated job, or one that would wait for less urgent jobs of its shard with tickets.
    fn needs_no_room(&self, arriving: &Arriving<J, C>) -> bool {
        let last = self.waiting.last_rank();
        self.is_held(arriving.id) || last.is_some_and(|last| Rank::of(arriving.id, &arriving.job) < last)
    }

    fn take_batch(&mut self, most: usize, in_hand: usize) -> VecDeque<Arriving<J, C>> {
        let ahead = self.room_ahead(in_hand);
        if self.arriving.len() <= ahead {
            return self.arriving.drain(..self.arriving.len().min(most)).collect();
        }
        let mut ranks: Vec<_> = self.arriving.iter().map(|new| Rank::of(new.id, &new.job)).collect();
        if self.is_ranked {
            ranks.sort_unstable();
        }
        let last_with_room = ahead.checked_sub(1).map(|last| ranks[last]);
        let (mut batch, mut rest) = (VecDeque::new(), VecDeque::new());
        for new in std::mem::take(&mut self.arriving) {
            let has_room = last_with_room.is_some_and(|last| Rank::of(new.id, &new.job) <= last);
            let is_taken = batch.len() < most && (has_room || self.needs_no_room(&new));
            if is_taken { batch.push_back(new) } else { rest.push_back(new) }
        }
        self.arriving = rest;
        batch
    }

    /// For the jobs that may hold tickets, and up to `retake` replacements, whose number is
    /// returned. A failed take is repeated unchanged.
    pub(crate) fn begin_taking(&mut self, request: u64, retake: u32, in_hand: usize) -> Option<u32> {
        if self.taking.is_some() || (self.first_to_take(in_hand).is_none() && retake == 0) {
            return None;
        }
        let retaken = retake.min(MAX_TAKE);
        let batch = self.take_batch((MAX_TAKE - retaken) as usize, in_hand);
        self.hurry &= !self.arriving.is_empty();
        let count = retaken + u32::try_from(batch.len()).unwrap_or(MAX_TAKE);
        self.taking = Some(Taking { request, count, retaken, batch });
        Some(retaken)
    }

    /// Returns whether the job has its ticket.
    pub(crate) fn open_gate(&mut self, id: JobId) -> bool {
        if self.gated_arriving.remove(&id) {
            self.hurry = true;
            return false;
        }
        let job = self.gated.remove(id);
        job.map(|job| self.waiting.insert(id, job)).is_some()
    }

    pub(crate) fn set_weight(&mut self, id: JobId, weight: u32) {
        if let Some(mut job) = self.gated.remove(id) {
            job.weight = weight;
            self.gated.insert(id, job);
        } else if let Some((batch, index)) = self.find_arriving(id) {
            batch[index].job.weight = weight;
        }
    }

    /// Keeps a job from starting.
    pub fn close_gate(&mut self, id: JobId) {
        if let Some(job) = self.waiting.remove(id) {
            self.gated.insert(id, job);
        } else if self.find_arriving(id).is_some() {
            self.gated_arriving.insert(id);
        }
    }
}
