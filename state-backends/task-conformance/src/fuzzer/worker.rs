//! A simple worker: runs up to three tasks, crashes, stalls, stops its runs when its lease ends.

use std::collections::BTreeMap;

use interval_queue_contract::{Label, Micros, StateErrorKind};
use interval_queue_task_contract::{
    Command, Completion, DueSchedule, Fire, FreeCapacity, Json, Kind, NewTask, Outcome as End, Overlap,
    Progress, Reply, Step, Stepped, TaskId, Token, WorkerId,
};
use uuid::Uuid;

use super::{
    Event, Fuzzer, Outcome, Sender,
    operator::SCHEDULE_INTERVAL,
    plan::{kinds, pick, seconds},
};

/// The lease in seconds.
pub(super) const LEASE: u64 = 60;
/// Timeout of a step in seconds.
const STEP_TIMEOUT: u64 = 12;
const MAX_RUNNING: usize = 3;

#[derive(Debug)]
pub(super) struct Worker {
    pub(super) id: WorkerId,
    kinds: Vec<Kind>,
    pub(super) is_alive: bool,
    sequence: u64,
    acknowledged: u64,
    running: BTreeMap<TaskId, Token>,
    results: Vec<Completion>,
    /// Whether the next step must resync its held leases.
    is_uncertain: bool,
    sent: Option<u64>,
    /// The end of the lease, counted from the send.
    until: u64,
    has_more: bool,
}

impl Worker {
    fn runs(&self, id: TaskId, now: u64) -> bool {
        self.is_alive && now < self.until && self.running.contains_key(&id)
    }

    /// Ends a run; the next step reports `outcome`, if any.
    pub(super) fn knows(&mut self, run: &Completion, outcome: Option<End>) {
        if self.running.get(&run.id) == Some(&run.token) {
            self.running.remove(&run.id);
            self.results.extend(outcome.map(|outcome| Completion { outcome, ..run.clone() }));
        }
    }
}

impl Fuzzer {
    pub(super) fn start_worker(&mut self, all_kinds: bool) {
        let mut served: Vec<Kind> =
            kinds().into_iter().filter(|_| all_kinds || self.rng.u8(..3) > 0).collect();
        if served.is_empty() {
            served = vec![Kind::default()];
        }
        served.sort();
        let number = self.workers.len();
        self.workers.push(Worker {
            id: WorkerId::new(Uuid::from_u128(0xab00 + number as u128)),
            kinds: served,
            is_alive: true,
            sequence: 0,
            acknowledged: 0,
            running: BTreeMap::new(),
            results: Vec::new(),
            is_uncertain: true,
            sent: None,
            until: self.now + LEASE,
            has_more: false,
        });
        self.at(self.now, Event::Tick(number));
    }

    pub(super) fn tick(&mut self, number: usize) {
        let (now, can_fail) = (self.now, self.has_faults && !self.plan.only_outages);
        if can_fail && self.rng.f64() < 0.01 {
            self.workers[number].is_alive = false;
            let at = now + self.rng.u64(0..=100);
            return self.at(at, Event::StartWorker);
        }
        if can_fail && self.rng.f64() < 0.01 {
            let at = now + self.rng.u64(1..=200);
            return self.at(at, Event::Tick(number));
        }
        let worker = &mut self.workers[number];
        if now >= worker.until && !worker.running.is_empty() {
            // The store may not know that these runs have begun.
            let over = End::Error("the lease of its worker ended".into());
            let ended = std::mem::take(&mut worker.running).into_iter();
            worker.results.extend(ended.map(|(id, token)| Completion { id, token, outcome: over.clone() }));
            worker.is_uncertain = true;
        }
        if worker.sent.is_none_or(|sent| now - sent > STEP_TIMEOUT) {
            worker.is_uncertain |= worker.sent.is_some();
            self.step(number);
        }
        let more = self.workers[number].has_more;
        let at = now + if more { 1 } else { self.rng.u64(1..=10) };
        self.at(at, Event::Tick(number));
    }

    fn step(&mut self, number: usize) {
        let (now, rng) = (self.now, &mut self.rng);
        let worker = &mut self.workers[number];
        worker.sequence += 1;
        worker.sent = Some(now);
        let held = worker.running.len() + worker.results.len();
        let progress = worker
            .running
            .iter()
            .filter(|_| rng.u8(..8) == 0)
            .map(|(&id, &token)| (id, token, Progress { done: now, total: 0, text: String::new() }));
        let progress = progress.collect();
        let step = Step {
            worker: worker.id,
            label: Label::default(),
            sequence: worker.sequence,
            acknowledged: worker.acknowledged,
            lease: seconds(LEASE),
            kinds: worker.kinds.clone(),
            complete: worker.results.clone(),
            held: worker
                .is_uncertain
                .then(|| worker.running.iter().map(|(&id, &token)| (id, token)).collect()),
            progress,
            log: Vec::new(),
            want: MAX_RUNNING.saturating_sub(held) as u32,
            ahead: rng.u32(..3),
            at_least: if self.has_faults { pick(rng, &[None, None, None, None, Some(0)]) } else { None },
            free_capacity: self
                .has_faults
                .then(|| FreeCapacity { weight: rng.u32(..4), empty: held == 0 })
                .filter(|_| rng.u8(..4) == 0),
        };
        let from = Sender::Worker { worker: number, sequence: worker.sequence, sent: now };
        self.send(from, Command::Step(step), 0.05);
    }

    pub(super) fn stepped(
        &mut self,
        number: usize,
        sequence: u64,
        sent: u64,
        command: &Command,
        outcome: Outcome,
    ) -> Result<(), String> {
        let now = self.now;
        let worker = &mut self.workers[number];
        if !worker.is_alive || sequence != worker.sequence || worker.sent.is_none() {
            return Ok(());
        }
        let (step, stepped) = match (command, outcome) {
            (Command::Step(step), Ok(Reply::Stepped(stepped))) => (step, stepped),
            // The step was duplicated, and the reply to the first copy was lost.
            (_, Err(StateErrorKind::Superseded)) => return Ok(()),
            (_, other) => return Err(format!("T2: a step was answered by {other:?}")),
        };
        worker.sent = None;
        worker.acknowledged = sequence;
        worker.is_uncertain = stepped.resync;
        worker.has_more = stepped.more;
        worker.results.retain(|completion| !step.complete.contains(completion));
        if !stepped.resync {
            worker.until = sent + LEASE;
        }
        for id in &stepped.lost {
            worker.running.remove(id);
        }
        for (id, _) in &stepped.stop {
            if let Some(token) = worker.running.remove(id) {
                worker.results.push(Completion { id: *id, token, outcome: End::Released });
            }
        }
        self.begin(number, &stepped, now)?;
        for due in stepped.schedules {
            let fire = fire(&due);
            self.send(Sender::Schedule, Command::Fire(fire), 0.05);
        }
        Ok(())
    }

    fn begin(&mut self, number: usize, stepped: &Stepped, now: u64) -> Result<(), String> {
        for leased in &stepped.leased {
            let (id, token) = (leased.task.id, leased.task.token);
            if now >= self.workers[number].until {
                break;
            }
            let other =
                self.workers.iter().enumerate().find(|(n, worker)| *n != number && worker.runs(id, now));
            if let Some((_, other)) = other
                && self.plan.steps.is_empty()
                && !self.judge.was_rolled_back()
            {
                return Err(format!("T2: task {id} begins at {token} while worker {} runs it", other.id));
            }
            self.judge.begins(&leased.task)?;
            self.workers[number].running.insert(id, token);
            let at = now + self.rng.u64(1..=40);
            self.at(at, Event::Finish(number, id, token));
        }
        Ok(())
    }

    pub(super) fn finish(&mut self, number: usize, id: TaskId, token: Token) {
        let (now, rng) = (self.now, &mut self.rng);
        let worker = &self.workers[number];
        if !worker.runs(id, now) || worker.running.get(&id) != Some(&token) {
            return;
        }
        let outcome = match rng.u8(..100) {
            0..78 => End::Done(Json::stored(format!("\"{token}\""))),
            78..88 => End::Error("it went wrong".into()),
            88..92 => End::Retry(seconds(rng.u64(0..=60)), "later".into()),
            92..95 => End::Failed("it never will".into()),
            95..98 => End::Released,
            _ => End::Exchanged,
        };
        let complete = Completion { id, token, outcome };
        if !self.ends_within(number, &complete) {
            let worker = &mut self.workers[number];
            worker.running.remove(&id);
            worker.results.push(complete);
        }
    }
}

/// Fires every missed instant, or only the last.
fn fire(due: &DueSchedule) -> Fire {
    let schedule = &due.schedule;
    let apart = seconds(SCHEDULE_INTERVAL);
    let new = |at: Micros| {
        let id = TaskId::of_schedule(schedule.incarnation, &schedule.name, at);
        (at, NewTask::new(id, Json::default()))
    };
    let (mut made, mut next) = (vec![new(due.at)], schedule.next);
    if schedule.kept.is_none_or(|kept| kept != due.at) {
        let mut at = due.at + apart;
        while at <= due.now && made.len() < 5 {
            if schedule.overlap != Overlap::Allow {
                made.clear();
            }
            made.push(new(at));
            at = at + apart;
        }
        next = Some(at);
    }
    Fire { schedule: schedule.name.clone(), revision: schedule.revision, from: due.at, made, next }
}
