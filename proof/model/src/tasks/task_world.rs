//! A state of the model: what is stored, the workers, what is on its way between them, and what is held against
//! promises.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use interval_queue_contract::{Micros, OnExisting, StateError, StateErrorKind};
use interval_queue_memory::Tables;
use interval_queue_task_contract::{
    Add, Added, Change, ChangeTasks, Command, Completion, Outcome, Reply, Selector, Step, rules,
};
use interval_queue_worker::{Because, Next, RunId, Worker};

use super::{
    Flaw, judge,
    member::{Life, Member, Wire, instant, long_ago},
    task_flaw,
    task_model::{Action, End},
    task_promise::{Promise, Sight},
    task_setup::{Once, Requests, Setup, Starts, TICK, Trouble, id},
};

/// When the clock of the store begins.
const BEGINNING: Micros = Micros::from_millis(1_000_000_000);

/// A state of the model.
#[derive(Clone, Debug)]
pub struct World {
    /// What all clocks show.
    pub(crate) now: Micros,
    pub(crate) stored: Arc<Tables>,
    pub(crate) members: Vec<Member>,
    /// Runs that have begun, as long as their tokens are known to anybody who could begin them again.
    pub(crate) begun: BTreeSet<RunId>,
    /// How many runs of this life of a task have begun and were not given back.
    pub(crate) runs: BTreeMap<u32, (u32, u32)>,
    pub(crate) left: Trouble,
    /// What has happened of what may happen once.
    pub(crate) happened: u32,
    pub(crate) broken: BTreeSet<Promise>,
    /// What happened on the way here; empty in a state.
    pub(crate) seen: Vec<Sight>,
}

impl World {
    pub(crate) fn new(setup: &Setup) -> Self {
        let mut world = Self {
            now: BEGINNING,
            stored: Arc::default(),
            members: (0..setup.workers).map(|n| Member::new(setup, n)).collect(),
            begun: BTreeSet::new(),
            runs: BTreeMap::new(),
            left: setup.trouble,
            happened: 0,
            broken: BTreeSet::new(),
            seen: Vec::new(),
        };
        let open = Change::Open(setup.settings.clone(), OnExisting::Replace);
        world.honest(setup, &Command::Change(open));
        world.honest(
            setup,
            &Command::Add(Add { tasks: setup.tasks.as_slice().into(), sequence: 0, age: Micros::ZERO }),
        );
        world
    }

    pub(crate) fn happen(&mut self, setup: &Setup, action: Action) {
        match action {
            Action::Pass => self.now = self.now + TICK,
            Action::Act(n) => self.act(setup, n, true),
            Action::Doubt(n) => self.worker(n).connection.unsure = true,
            Action::Arrive(n) => self.arrive(setup, n),
            Action::Receive(n) => self.receive(setup, n),
            Action::ReceiveLate(n) => {
                let Some((late, answer)) = self.members[n].stale.take() else { return };
                let now = instant(self.now);
                let worker = self.worker(n);
                let sequence = late.sequence;
                let under_way = worker.connection.under_way.replace(late);
                if let Ok(stepped) = Arc::unwrap_or_clone(answer) {
                    worker.absorb(sequence, stepped, now);
                }
                worker.connection.under_way = under_way;
                self.drive(setup, n);
            }
            Action::TimeOut(n) => {
                self.left.timeouts -= 1;
                let member = &mut self.members[n];
                match std::mem::take(&mut member.wire) {
                    Wire::Sent(step) => member.strays.push(step),
                    Wire::Answered(_, answer) if setup.flaw == Some(Flaw::UsesLateAnswer) => {
                        let under_way = member.worker.connection.under_way.clone();
                        member.stale = under_way.map(|under_way| (under_way, answer));
                    }
                    Wire::Answered(..) | Wire::Idle => {}
                }
                self.fail(setup, n, StateErrorKind::TimedOut);
            }
            Action::Double(n) => {
                self.left.doubles -= 1;
                let member = &mut self.members[n];
                if let Wire::Sent(step) = &member.wire {
                    member.strays.push(step.clone());
                }
            }
            Action::Stray(n, which) => {
                let step = self.members[n].strays.remove(which);
                self.seen.push(Sight::Stray);
                let _nobody_listens = self.step(setup, &step, true);
            }
            Action::Start(n) => self.start(n),
            Action::End(n, task, end) => self.end(setup, n, task, end),
            Action::Crash(n) => {
                self.left.crashes -= 1;
                self.members[n].go(setup, n);
            }
            Action::Stop(n) => {
                self.left.stops -= 1;
                let by = instant(self.now + TICK);
                self.worker(n).stop(by);
            }
            Action::Once(which) => self.once(setup, which),
        }
        self.forget();
        for member in &mut self.members {
            if member.worker.held.is_free() && member.worker.connection.lease_ends.is_some() {
                // Whether it restates is all that is left to decide.
                Arc::make_mut(&mut member.worker).connection.lease_ends = None;
            }
        }
        judge::beliefs(self);
    }

    fn worker(&mut self, n: usize) -> &mut Worker {
        Arc::make_mut(&mut self.members[n].worker)
    }

    /// A worker looks what is to do: told to by what may have changed, or when it is time.
    pub(crate) fn act(&mut self, setup: &Setup, n: usize, notified: bool) {
        let now = instant(self.now);
        let is_idle = matches!(self.members[n].wire, Wire::Idle);
        let worker = self.worker(n);
        if notified && is_idle {
            worker.notify();
            // How long it rests after a nudge that came for nothing is short of a tick.
            let connection = &mut worker.connection;
            (connection.in_vain, connection.sent) = (0, connection.sent.map(|_| long_ago()));
        }
        let next = task_flaw::next(setup.flaw, worker, now);
        worker.connection.notified = false;
        match next {
            Next::Send(step) => {
                let member = &mut self.members[n];
                (member.generation, member.wire) = (Life::Alive, Wire::Sent(Arc::from(step)));
                if setup.requests == Requests::Quick {
                    self.arrive(setup, n);
                }
            }
            Next::Done => self.members[n].go(setup, n),
            Next::Sleep(_) => {}
        }
        self.drive(setup, n);
    }

    /// A driver carries out orders at once: it drops what is not wanted, and tells the others to end. When they do, is
    /// theirs. Then it begins what it can.
    fn drive(&mut self, setup: &Setup, n: usize) {
        if self.worker(n).held.is_empty() {
            return;
        }
        while let Some(order) = self.worker(n).order() {
            if order.because == Because::LeaseEnded {
                self.seen.push(Sight::LeaseEnded);
                // Given back, a task with a single attempt would run twice.
                let own = self.stored.tasks.get(&order.run.id).and_then(|x| x.policy.max_attempts);
                let once = own.or(setup.settings.policy.map(|policy| policy.max_attempts)) == Some(1);
                let outcome = if once { Outcome::Error("ended".into()) } else { Outcome::Released };
                self.worker(n).ended(order.run, outcome);
            }
        }
        let void: Vec<_> = self.worker(n).held.void.keys().copied().collect();
        void.into_iter().for_each(|run| _ = self.worker(n).ended(run, Outcome::Released));
        while setup.starts == Starts::AtOnce && self.members[n].can_start(self.now) {
            self.start(n);
        }
    }

    pub(crate) fn arrive(&mut self, setup: &Setup, n: usize) {
        if let Wire::Sent(step) = std::mem::take(&mut self.members[n].wire) {
            let answer = self.step(setup, &step, false);
            self.members[n].wire = Wire::Answered(step.sequence, Arc::new(answer));
        }
    }

    pub(crate) fn receive(&mut self, setup: &Setup, n: usize) {
        let Wire::Answered(sequence, answer) = std::mem::take(&mut self.members[n].wire) else { return };
        let now = instant(self.now);
        match Arc::unwrap_or_clone(answer) {
            Ok(stepped) => {
                let worker = self.worker(n);
                worker.absorb(sequence, stepped, now);
                task_flaw::heard(setup.flaw, worker, now);
                self.drive(setup, n);
            }
            Err(kind) => self.fail(setup, n, kind),
        }
    }

    pub(crate) fn change(&mut self, setup: &Setup, change: Change) {
        self.honest(setup, &Command::Change(change));
    }

    fn fail(&mut self, setup: &Setup, n: usize, kind: StateErrorKind) {
        let now = instant(self.now);
        let worker = self.worker(n);
        let sequence = worker.connection.sequence;
        worker.fail(sequence, &StateError::new(kind, "trouble"), now, 0);
        // The next try may come at once.
        worker.connection.failing = None;
        self.drive(setup, n);
    }

    /// A step comes to the store.
    fn step(
        &mut self,
        setup: &Setup,
        step: &Step,
        stray: bool,
    ) -> Result<interval_queue_task_contract::Stepped, StateErrorKind> {
        let before = self.stored.clone();
        match self.apply(setup, &Command::Step(step.clone())) {
            Ok(Reply::Stepped(stepped)) => {
                judge::step(self, &before, step, &stepped);
                Ok(stepped)
            }
            Err(error) => {
                let is_late = error.kind() == StateErrorKind::Superseded;
                self.seen.extend(is_late.then_some(Sight::Superseded));
                if !is_late || !stray && setup.trouble.doubles == 0 {
                    self.broken.insert(Promise::Soundness);
                }
                Err(error.kind())
            }
            Ok(_) => {
                self.broken.insert(Promise::Soundness);
                Err(StateErrorKind::Invalid)
            }
        }
    }

    fn apply(&mut self, setup: &Setup, command: &Command) -> Result<Reply, StateError> {
        let before = self.stored.clone();
        let tables = Arc::make_mut(&mut self.stored);
        let reply = task_flaw::apply(setup, tables, self.now, command);
        tables.finish(reply.is_ok());
        judge::rows(self, &before);
        reply
    }

    /// A command that must not be refused.
    fn honest(&mut self, setup: &Setup, command: &Command) -> Option<Reply> {
        let reply = self.apply(setup, command);
        if reply.is_err() {
            self.broken.insert(Promise::Soundness);
        }
        reply.ok()
    }

    fn start(&mut self, n: usize) {
        let now = instant(self.now);
        let worker = self.worker(n);
        let look = worker.begin_lookup(now);
        worker.finish_lookup(look, false, now);
        let Some(leased) = worker.start(now) else { return };
        self.seen.push(Sight::Start);
        judge::start(self, &leased.task);
    }

    /// The run of a task ends at its worker.
    fn end(&mut self, setup: &Setup, n: usize, task: u32, end: End) {
        let id = id(task);
        let outcome = match end {
            End::Done => Outcome::Done(interval_queue_task_contract::Json::default()),
            End::Stopped => Outcome::Released,
            End::Once(which) => {
                self.happened |= 1 << which;
                match &setup.once[which] {
                    Once::End(outcome) => outcome.clone(),
                    Once::Within(outcome) => return self.end_within(setup, n, task, outcome.clone(), true),
                    Once::Unheard(outcome) => return self.end_within(setup, n, task, outcome.clone(), false),
                    _ => return,
                }
            }
        };
        let running = self.worker(n).held.running.get(&id).map(|running| RunId { id, token: running.token });
        if let Some(run) = running {
            self.worker(n).ended(run, outcome);
        }
        self.drive(setup, n);
    }

    /// The run of a task ends within a transaction of the application.
    fn end_within(&mut self, setup: &Setup, n: usize, task: u32, outcome: Outcome, is_heard: bool) {
        let before = self.stored.clone();
        let worker = &self.members[n].worker;
        let Some(running) = worker.held.running.get(&id(task)) else { return };
        let run = RunId { id: id(task), token: running.token };
        let (worker, completion) =
            (worker.identity.worker, Completion { id: run.id, token: run.token, outcome });
        let tables = Arc::make_mut(&mut self.stored);
        let completed = rules::complete_within(tables, self.now, worker, &completion);
        tables.finish(completed.is_ok());
        judge::rows(self, &before);
        judge::within(self, &before, worker, &completion, completed.as_ref().map_err(StateError::kind));
        if completed.is_ok() && is_heard {
            self.worker(n).completed(run);
        } else {
            self.worker(n)
                .ended(run, Outcome::Error("it was rolled back, as far as its handler knows".into()));
        }
        self.drive(setup, n);
    }

    fn once(&mut self, setup: &Setup, which: usize) {
        self.happened |= 1 << which;
        let before = self.stored.clone();
        match &setup.once[which] {
            Once::Add(task) => {
                let add = Command::Add(Add { tasks: [task.clone()].into(), sequence: 0, age: Micros::ZERO });
                match self.apply(setup, &add) {
                    Ok(Reply::Added(added)) => match added[..] {
                        [Added::Kept(_)] => self.seen.push(Sight::Kept),
                        [Added::Replaced(_)] => self.seen.push(Sight::Replaced),
                        _ => {}
                    },
                    Err(error) if error.kind() == StateErrorKind::Conflict => self.seen.push(Sight::Kept),
                    _ => _ = self.broken.insert(Promise::Soundness),
                }
            }
            Once::Verb(verb, task) => {
                let change = ChangeTasks {
                    selector: Selector::ids([id(*task)]),
                    verb: verb.clone(),
                    after: None,
                    watermark: None,
                    limit: 10,
                    dry_run: false,
                };
                self.honest(setup, &Command::Change(Change::Tasks(change)));
            }
            Once::Change(change) => _ = self.honest(setup, &Command::Change(change.clone())),
            Once::End(_) | Once::Within(_) | Once::Unheard(_) => {}
        }
        judge::others(self, &before);
    }

    /// Tokens that nobody can begin any more are forgotten.
    fn forget(&mut self) {
        if self.begun.is_empty() {
            return;
        }
        let mut known: BTreeSet<RunId> =
            self.stored.tasks.values().map(|x| RunId { id: x.id, token: x.token }).collect();
        for member in &self.members {
            known.extend(member.holds());
            if let Wire::Answered(_, answer) = &member.wire
                && let Ok(stepped) = &**answer
            {
                known.extend(
                    stepped
                        .leased
                        .iter()
                        .map(|leased| RunId { id: leased.task.id, token: leased.task.token }),
                );
            }
        }
        self.begun.retain(|run| known.contains(run));
    }
}
