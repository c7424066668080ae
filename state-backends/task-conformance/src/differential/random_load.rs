//! Random commands of producers, workers and operators that process the replies.

#![allow(clippy::unwrap_used, reason = "the names and texts are constants")]

use fastrand::Rng;
use interval_queue_contract::{Label, MaxRunning, Micros, OnExisting};
use interval_queue_task_contract::{
    Add, Attempt, AttemptEnd, Change, ChangeTasks, Command, Completion, Cursor, DueSchedule, Fire,
    FreeCapacity, Imported, Json, Keep, Key, Kind, LogLine, NewEdge, NewLogLine, NewSchedule, NewTask,
    OnConflict, OnFailure, Order, Outcome, Overlap, Policy, PolicyOverride, Progress, Read, Reply, RunLog,
    Selector, SettingsChange, State, Step, Tag, Task, TaskId, Token, Traceparent, Unique, Until, Verb, When,
    WorkerId,
};
use uuid::Uuid;

const SECOND: Micros = Micros::from_millis(1_000);

fn id(n: u64) -> TaskId {
    TaskId::new(Uuid::from_u64_pair(7, n))
}

fn worker(n: u64) -> WorkerId {
    WorkerId::new(Uuid::from_u64_pair(9, n))
}

struct Member {
    worker: WorkerId,
    sequence: u64,
    acknowledged: u64,
    holds: Vec<(TaskId, Token)>,
    resync: bool,
}

pub(super) struct Load {
    rng: Rng,
    /// Whether tasks have only kind and payload, for which stores may have a fast path.
    adds_plain: bool,
    ids: Vec<TaskId>,
    members: Vec<Member>,
    workers: u64,
    due: Vec<DueSchedule>,
    /// The worker of the last command, and whether its reply is lost.
    stepped: Option<(usize, bool)>,
}

impl Load {
    pub(super) fn new(seed: u64) -> Self {
        let rng = Rng::with_seed(seed);
        let mut load = Self {
            rng,
            adds_plain: seed % 3 == 2,
            ids: Vec::new(),
            members: Vec::new(),
            workers: 0,
            due: Vec::new(),
            stepped: None,
        };
        (0..3).for_each(|_| load.join());
        load
    }

    fn join(&mut self) {
        self.workers += 1;
        let worker = worker(self.workers);
        self.members.push(Member { worker, sequence: 0, acknowledged: 0, holds: Vec::new(), resync: true });
    }

    /// Microseconds until the next command. Negative: the clock steps back.
    pub(super) fn pause(&mut self) -> i64 {
        match self.rng.u32(..100) {
            0 => -self.rng.i64(0..90_000_000),
            1 => self.rng.i64(0..90_000_000_000),
            2..8 => self.rng.i64(0..90_000_000),
            _ => self.rng.i64(0..900_000),
        }
    }

    pub(super) fn command(&mut self) -> Command {
        self.stepped = None;
        match self.rng.u32(..100) {
            0..25 => self.add(),
            25..75 => self.step(),
            75..77 => self.fire(),
            77..79 => self.import(),
            79..90 => self.change(),
            _ => self.read(),
        }
    }

    /// The end of a run that a worker holds, or of an earlier run, within a transaction.
    pub(super) fn end_within(&mut self) -> Option<(WorkerId, Completion)> {
        if self.rng.u32(..10) > 0 {
            return None;
        }
        let n = self.rng.usize(..self.members.len());
        let is_stale = self.rng.u32(..5) == 0;
        let member = &mut self.members[n];
        let (id, token) = if is_stale { member.holds.last().copied() } else { member.holds.pop() }?;
        let token = Token { attempt: token.attempt - u32::from(is_stale), ..token };
        let worker = member.worker;
        let outcome = match self.rng.u32(..4) {
            0 => Outcome::Failed("ö".repeat(self.rng.usize(1_000..3_000)) + &"x".repeat(self.rng.usize(..3))),
            1 => Outcome::Released,
            _ => Outcome::Done(self.body()),
        };
        Some((worker, Completion { id, token, outcome }))
    }

    pub(super) fn observe_reply(&mut self, reply: Option<&Reply>) {
        let Some((n, is_lost)) = self.stepped else { return };
        let member = &mut self.members[n];
        match reply {
            Some(Reply::Stepped(stepped)) if !is_lost => {
                member.acknowledged = member.sequence;
                member.resync = stepped.resync;
                member.holds.retain(|(id, _)| !stepped.lost.contains(id));
                member.holds.extend(stepped.leased.iter().map(|leased| (leased.task.id, leased.task.token)));
                self.due.extend(stepped.schedules.iter().cloned());
            }
            _ => member.resync = true,
        }
    }

    fn one<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.rng.usize(..of.len())].clone()
    }

    fn maybe<T>(&mut self, percent: u32, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        (self.rng.u32(..100) < percent).then(|| make(self))
    }

    pub(super) fn kinds() -> [Kind; 3] {
        ["a", "b", "c"].map(|kind| Kind::new(kind).unwrap())
    }

    fn kind(&mut self) -> Kind {
        self.one(&Self::kinds())
    }

    fn key(&mut self) -> Key {
        Key::new(self.one(&["k", "l", "ordered", "ö"])).unwrap()
    }

    fn tag(&mut self) -> Tag {
        Tag::new(self.one(&["red", "green"])).unwrap()
    }

    fn body(&mut self) -> Json {
        let long = if self.rng.u32(..5) == 0 { self.rng.usize(..3_000) } else { self.rng.usize(..20) };
        Json::of(&"x".repeat(long)).unwrap()
    }

    fn known(&mut self) -> TaskId {
        match self.ids.len() {
            0 => id(self.rng.u64(..5)),
            n => self.ids[n - 1 - self.rng.usize(..n.min(40))],
        }
    }

    fn new_task(&mut self, id: TaskId) -> NewTask {
        if self.adds_plain {
            return NewTask { kind: self.kind(), ..NewTask::new(id, self.body()) };
        }
        let key = self.maybe(40, Self::key);
        let unique =
            self.maybe(25, |own| Unique { name: own.key(), until: own.one(&[Until::Ended, Until::Leased]) });
        let on_conflict =
            self.one(&[OnConflict::Keep, OnConflict::Keep, OnConflict::Replace, OnConflict::Refuse]);
        let edges = if on_conflict == OnConflict::Replace { 0 } else { self.rng.usize(..3) };
        let mut ups: Vec<_> = (0..edges).map(|_| self.known()).filter(|up| *up != id).collect();
        ups.sort();
        ups.dedup();
        let edge = |own: &mut Self, up| NewEdge {
            up,
            name: own.maybe(30, Self::key),
            on_failure: own.one(&[OnFailure::Cancel, OnFailure::Run, OnFailure::Wait]),
        };
        let edges = ups.into_iter().map(|up| edge(self, up)).collect();
        NewTask {
            kind: self.kind(),
            priority: self.rng.i32(-2..3),
            ordered: key.as_ref().is_some_and(|key| key.as_str() == "ordered"),
            key,
            unique,
            on_conflict,
            not_before: self.maybe(20, |own| When::After(SECOND * own.rng.u64(..30))).unwrap_or_default(),
            deadline: self.maybe(10, |own| When::After(SECOND * own.rng.u64(..60))),
            policy: self.maybe(20, Self::own_policy).unwrap_or_default(),
            weight: self.rng.u32(1..3),
            tags: self.maybe(20, Self::tag).into_iter().collect(),
            trace: self.maybe(20, |own| {
                Traceparent::new(format!("00-{:032x}-{:016x}-01", own.rng.u128(1..), own.rng.u64(1..)))
                    .unwrap()
            }),
            edges,
            ..NewTask::new(id, self.body())
        }
    }

    fn policy(&mut self) -> Policy {
        let backoff = SECOND * self.rng.u64(1..30);
        Policy {
            max_attempts: self.rng.u32(1..4),
            max_retries: self.rng.u32(..3),
            backoff,
            max_backoff: backoff + SECOND * self.rng.u64(..30),
            timeout: self.maybe(50, |own| SECOND * own.rng.u64(1..30)),
        }
    }

    /// A partial policy, which may contradict the queue's.
    fn own_policy(&mut self) -> PolicyOverride {
        let backoff = self.maybe(50, |own| SECOND * own.rng.u64(1..30));
        PolicyOverride {
            max_attempts: self.maybe(50, |own| own.rng.u32(1..3)),
            max_retries: self.maybe(50, |own| own.rng.u32(..3)),
            backoff,
            max_backoff: self.maybe(50, |own| backoff.unwrap_or_default() + SECOND * own.rng.u64(..30)),
            timeout: self.maybe(50, |own| SECOND * own.rng.u64(1..30)),
        }
    }

    fn add(&mut self) -> Command {
        let mut tasks = Vec::new();
        for _ in 0..self.rng.usize(1..5) {
            let new = id(self.ids.len() as u64 ^ 5);
            let id = if self.rng.u32(..20) == 0 { self.known() } else { new };
            let task = self.new_task(id);
            if !tasks.iter().any(|other: &NewTask| other.id == id) {
                self.ids.push(id);
                tasks.push(task);
            }
        }
        let age = self.maybe(5, |own| SECOND * own.rng.u64(..1_200)).unwrap_or_default();
        let sequence = self.rng.u32(..5);
        Command::Add(Add { tasks: tasks.into(), sequence, age })
    }

    /// An import of a new task, as another queue may have stored it.
    fn import(&mut self) -> Command {
        let new = id(self.ids.len() as u64 ^ 5);
        let new = self.new_task(new);
        self.ids.push(new.id);
        let at = |own: &mut Self| SECOND * own.rng.u64(999_000..1_001_000);
        let state = self.one(&[State::Ready, State::Blocked, State::Waiting, State::Done, State::Failed]);
        let token = Token { incarnation: at(self), attempt: self.rng.u32(1..4) };
        let run = Attempt {
            token,
            worker: Some(worker(7)),
            leased: Some(at(self)),
            ended: at(self),
            end: AttemptEnd::Error,
            error: Some("elsewhere".into()),
        };
        let task = Task {
            kind: new.kind,
            priority: new.priority,
            key: new.key,
            ordered: new.ordered,
            holds_name: new.unique.is_some() && self.rng.bool(),
            unique: new.unique,
            weight: new.weight,
            tags: new.tags,
            trace: new.trace,
            policy: new.policy,
            not_before: at(self),
            added: at(self),
            position: self.rng.u32(..5),
            due: self.rng.i64(-5..2_000_000_000_000),
            state,
            token,
            failures: self.rng.u32(..3),
            retries: self.rng.u32(..2),
            worker: Some(worker(7)),
            admitted: self.maybe(50, |own| at(own)),
            leased: Some(at(self)),
            ended: state.is_ended().then(|| at(self)),
            error: self.maybe(50, |_| "elsewhere".into()),
            history: self.maybe(50, |_| run).into_iter().collect(),
            ..Task::bare(new.id)
        };
        let (payload, edges) = (new.payload, new.edges);
        let result = self.maybe(50, Self::body).filter(|_| state == State::Done);
        let log = self.maybe(50, |own| own.log_line(task.token)).into_iter().collect();
        Command::Import([Imported { task, payload, result, log, edges }].into())
    }

    fn outcome(&mut self) -> Outcome {
        match self.rng.u32(..11) {
            0..5 => Outcome::Done(self.body()),
            5 => Outcome::Error("it broke".into()),
            6 => Outcome::Retry(SECOND * self.rng.u64(..5), "again".into()),
            7 => Outcome::Failed("for good".into()),
            8 => Outcome::Released,
            9 => Outcome::Unable("no room for a process".into()),
            _ => Outcome::Exchanged,
        }
    }

    fn log_line(&mut self, token: Token) -> LogLine {
        LogLine { at: SECOND * 1_000_000, token, number: self.rng.u32(1..70), text: self.text() }
    }

    fn text(&mut self) -> String {
        self.one(&["began", "ö %", ""]).repeat(self.rng.usize(1..90))
    }

    /// Lines of a run, some of them with numbers that are stored already.
    fn run_log(&mut self, running: Option<(TaskId, Token)>, late: Option<(TaskId, Token)>) -> Option<RunLog> {
        let (id, token) = running.or(late)?;
        let (first, many) = (self.rng.u32(1..90), self.rng.u32(..60));
        let line = |number| NewLogLine { number, age: SECOND * self.rng.u64(..3), text: self.text() };
        Some(RunLog { id, token, lines: (first..first + many).map(line).collect() })
    }

    fn step(&mut self) -> Command {
        if self.rng.u32(..60) == 0 {
            let leaves = self.rng.usize(..self.members.len());
            self.members.remove(leaves);
            self.join();
        }
        let n = self.rng.usize(..self.members.len());
        self.stepped = Some((n, self.rng.u32(..20) == 0));
        let (completes, resends) = (self.rng.usize(..4), self.rng.u32(..50) == 0);
        let member = &mut self.members[n];
        member.sequence += u64::from(!resends);
        let completes = completes.min(member.holds.len());
        let completed: Vec<_> = member.holds.drain(..completes).collect();
        let (held, worker) = (member.resync.then(|| member.holds.clone()), member.worker);
        let (sequence, acknowledged) = (member.sequence, member.acknowledged);
        let running = member.holds.first().copied();
        let late = completed.first().copied();
        let complete = completed
            .into_iter()
            .map(|(id, token)| Completion { id, token, outcome: self.outcome() })
            .collect();
        let progress = running.filter(|_| self.rng.bool());
        let progress =
            progress.map(|(id, token)| (id, token, Progress { done: 1, total: 3, text: "it goes".into() }));
        let kinds = if self.rng.u32(..10) == 0 { &Self::kinds()[..1] } else { &Self::kinds() };
        Command::Step(Step {
            worker,
            label: Label::new("host:1").unwrap(),
            sequence,
            acknowledged,
            lease: SECOND * self.rng.u64(5..60),
            kinds: kinds.to_vec(),
            complete,
            held,
            progress: progress.into_iter().collect(),
            log: self.maybe(30, |own| own.run_log(running, late)).into_iter().flatten().collect(),
            want: self.rng.u32(..5),
            ahead: self.maybe(40, |own| own.rng.u32(..4)).unwrap_or_default(),
            at_least: self.maybe(10, |own| own.rng.i32(-2..3)),
            free_capacity: self
                .maybe(25, |own| FreeCapacity { weight: own.rng.u32(0..5), empty: own.rng.bool() }),
        })
    }

    fn fire(&mut self) -> Command {
        let due = self.due.pop();
        let schedule = due.as_ref().map_or_else(|| self.key(), |due| due.schedule.name.clone());
        let from = due.as_ref().map_or(SECOND, |due| due.at);
        let incarnation = due.as_ref().map_or(SECOND, |due| due.schedule.incarnation);
        let last = TaskId::of_schedule(incarnation, &schedule, from);
        let mut last = NewTask { edges: Vec::new(), ..self.new_task(last) };
        let mut made = Vec::new();
        if let Some(first) = self.maybe(30, |own| own.new_task(id(own.ids.len() as u64 ^ 5))) {
            self.ids.push(first.id);
            last.edges.push(NewEdge { up: first.id, name: None, on_failure: OnFailure::Wait });
            made.push((from, first));
        }
        made.push((from, last));
        if self.rng.u32(..20) == 0 {
            made.reverse();
        }
        Command::Fire(Fire {
            revision: due.map_or(1, |due| due.schedule.revision),
            from,
            made,
            next: self.maybe(90, |own| from + SECOND * own.rng.u64(1..40)),
            schedule,
        })
    }

    /// `most`: of named ids.
    fn selector(&mut self, most: usize) -> Selector {
        let many = if self.rng.bool() { most } else { 0 };
        let ids = (0..many).map(|_| self.known()).collect();
        Selector {
            ids,
            kinds: self.maybe(20, Self::kind).into_iter().collect(),
            states: (0..self.rng.usize(..3)).map(|_| self.one(&State::ALL)).collect(),
            key: self.maybe(20, Self::key),
            unique: self.maybe(10, Self::key),
            id_suffix: self.maybe(5, |own| own.known().to_string()[20..].to_owned()),
            tags: (0..self.rng.usize(..3).saturating_sub(1)).map(|_| self.tag()).collect(),
            schedule: self.maybe(5, Self::key),
            worker: self.maybe(5, |own| worker(own.rng.u64(1..5))),
            error: self.maybe(5, |own| own.one(&["it", "ö", "%"]).into()),
            payload: self.maybe(10, |own| own.one(&["1", "a", "%", "\"x"]).into()),
            added_from: self.maybe(5, |own| SECOND * own.rng.u64(1_000_000..1_000_500)),
            added_before: self.maybe(5, |own| SECOND * own.rng.u64(1_000_000..1_000_500)),
            ended_from: self.maybe(5, |own| SECOND * own.rng.u64(1_000_000..1_000_500)),
            ended_before: self.maybe(5, |own| SECOND * own.rng.u64(1_000_000..1_000_500)),
        }
    }

    fn cursor(&mut self, order: Order) -> Cursor {
        Cursor { order, at: SECOND * self.rng.u64(1_000_000..1_000_500), id: self.known() }
    }

    /// Where a page begins.
    fn start(&mut self) -> Cursor {
        let order = self.one(&Order::ALL);
        self.maybe(30, |own| own.cursor(order)).unwrap_or(order.start())
    }

    fn change(&mut self) -> Command {
        Command::Change(match self.rng.u32(..22) {
            0 => Change::Pause,
            1 | 2 => Change::Resume,
            3 => Change::Kind(self.kind(), self.rng.bool()),
            4 => Change::Kind(self.kind(), false),
            5 => Change::Key(self.key(), self.maybe(70, |own| own.rng.u32(..3))),
            6 => Change::Set(SettingsChange {
                max_running: self.one(&[MaxRunning::Keep, MaxRunning::AtMost(2), MaxRunning::Unlimited]),
                key_limit: self.maybe(60, |own| own.rng.u32(1..4)),
                keep: self.maybe(50, |own| Keep {
                    most_done: own.maybe(50, |own| own.rng.u32(..9)),
                    most_cancelled: own.maybe(50, |own| own.rng.u32(..9)),
                    ..Keep::default()
                }),
                ageing: self.maybe(20, |own| SECOND * own.rng.u64(1..100)),
                policy: self.maybe(50, Self::policy),
                kinds: self.maybe(50, |own| [(own.kind(), own.own_policy())].into()).unwrap_or_default(),
                ..SettingsChange::default()
            }),
            7 => Change::Open(SettingsChange::default(), self.one(&[OnExisting::Fail, OnExisting::Replace])),
            8..10 => Change::Schedule(NewSchedule {
                name: self.key(),
                definition: Json::new("{\"every\": 1}").unwrap(),
                next: Some(SECOND * self.rng.u64(1_000_000..1_000_500)),
                paused: self.rng.u32(..10) == 0,
                overlap: self.one(&[Overlap::Allow, Overlap::Skip, Overlap::Keep]),
            }),
            10 => Change::Unschedule(self.key()),
            11 => Change::Recount,
            13 => Change::Note(self.known(), self.text()),
            12 => Change::DeclareLost(worker(self.rng.u64(1..6))),
            _ => Change::Tasks(ChangeTasks {
                selector: self.selector(2),
                verb: self.verb(),
                after: self.maybe(10, |own| own.cursor(Order::Oldest)),
                watermark: None,
                limit: self.rng.u32(1..10),
                dry_run: self.rng.u32(..10) == 0,
            }),
        })
    }

    fn verb(&mut self) -> Verb {
        match self.rng.u32(..13) {
            10 | 11 => Verb::Link(NewEdge {
                up: self.known(),
                name: self.maybe(30, Self::key),
                on_failure: self.one(&[OnFailure::Cancel, OnFailure::Run, OnFailure::Wait]),
            }),
            12 => Verb::Unlink(self.known()),
            8 => Verb::Move(Label::new("there").unwrap()),
            0 => Verb::Cancel,
            1 | 2 => Verb::Retry,
            3 => Verb::Release,
            4 => Verb::Delay(SECOND * self.rng.u64(..30)),
            5 => Verb::Priority(self.rng.i32(-2..3)),
            6 => Verb::Tag(self.tag()),
            7 => Verb::Untag(self.tag()),
            _ => Verb::Purge,
        }
    }

    fn read(&mut self) -> Command {
        Command::Read(match self.rng.u32(..12) {
            11 => Read::Days { kind: self.kind(), from: SECOND * self.rng.u64(..2_000_000) },
            10 => Read::Count {
                selector: self.selector(8),
                after: self.maybe(20, |own| own.cursor(Order::Oldest)),
            },
            9 => Read::Clock,
            8 => Read::Downstreams { up: self.known(), after: self.maybe(30, Self::known) },
            0 => Read::Overview,
            1 => Read::Tasks((0..3).map(|_| self.known()).collect()),
            2 => Read::Page {
                selector: self.selector(8),
                after: self.start(),
                limit: self.rng.u32(1..10),
                bodies: self.rng.bool(),
            },
            3 => Read::Inputs { down: self.known(), after: None },
            4 => Read::Workers,
            5 => Read::Schedules,
            6 => Read::Times { kind: self.kind(), from: SECOND * self.rng.u64(..2_000_000) },
            _ => match self.kind() {
                kind if kind.as_str() == "b" => Read::Upcoming(5),
                kind => Read::Ready(vec![kind]),
            },
        })
    }
}
