//! The world of a simulation: true time, store, network, processes, and the checks that watch them.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use interval_queue_contract::{Command, Micros, QueueName, Record, Reply, ShardId, StateError, rules};
use interval_queue_task_contract::{Command as TaskCommand, Reply as TaskReply};
use tokio::{runtime::Handle, sync::Notify, time::Instant};

use crate::{
    check::{Checks, Promise, Violation},
    journal::Entry,
    process::{Condition, Process},
    store::{Rules, Store},
    tasks::{self, Tasks},
    wire::{Cut, Line, Mishap, words},
};

/// What a simulated world is made of besides what happens in it.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Decides every random choice.
    pub seed: u64,
    /// The rules that the store applies to the pace.
    pub rules: Rules,
    /// The rules that it applies to stored tasks.
    pub task_rules: tasks::Rules,
    /// Whether earlier versions of the records are kept, for [`World::fail_over`] and
    /// [`World::restore_copy`].
    pub keeps_versions: bool,
    /// Whether a journal is kept.
    pub keeps_journal: bool,
}

impl Settings {
    /// The real rules, every fault possible, no journal.
    pub fn seeded(seed: u64) -> Self {
        Self {
            seed,
            rules: rules::apply,
            task_rules: interval_queue_task_contract::rules::apply,
            keeps_versions: true,
            keeps_journal: false,
        }
    }
}

/// A handle on a simulated world. Made by [`simulate`](crate::simulate).
#[derive(Clone)]
pub struct World {
    shared: Arc<Shared>,
}

struct Shared {
    began: Instant,
    runtime: Handle,
    violated: Notify,
    inside: Mutex<Inside>,
}

pub(crate) struct Inside {
    pub(crate) store: Store,
    pub(crate) tasks: Tasks,
    pub(crate) processes: Vec<Condition>,
    pub(crate) lines: Vec<Line>,
    pub(crate) outage: Option<(Instant, Cut)>,
    pub(crate) checks: Checks,
    random: fastrand::Rng,
    /// `None` unless requested: it costs most of the time.
    journal: Option<Vec<Entry>>,
}

impl World {
    #[allow(clippy::disallowed_methods, reason = "true time is tokio's virtual time")]
    pub(crate) fn new(settings: &Settings) -> Self {
        let inside = Inside {
            store: Store::new(settings.rules, settings.keeps_versions),
            tasks: Tasks::new(settings.task_rules, settings.keeps_versions),
            processes: Vec::new(),
            lines: Vec::new(),
            outage: None,
            checks: Checks::default(),
            random: fastrand::Rng::with_seed(settings.seed),
            journal: settings.keeps_journal.then(Vec::new),
        };
        Self {
            shared: Arc::new(Shared {
                began: Instant::now(),
                runtime: Handle::current(),
                violated: Notify::new(),
                inside: Mutex::new(inside),
            }),
        }
    }

    /// True time, which no process can see.
    #[allow(clippy::disallowed_methods, reason = "true time is tokio's virtual time")]
    pub fn now(&self) -> Instant {
        Instant::now()
    }

    /// When it began.
    pub fn began(&self) -> Instant {
        self.shared.began
    }

    pub(crate) fn runtime(&self) -> &Handle {
        &self.shared.runtime
    }

    pub(crate) fn inside<T>(&self, work: impl FnOnce(&mut Inside) -> T) -> T {
        work(&mut self.shared.inside.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn since(&self) -> Duration {
        self.now() - self.shared.began
    }

    /// Starts a process whose clock runs faster than true time by `drift` parts per million. The state's
    /// clock is read right up to 500 (RFC 5905, section 11.3).
    pub fn start_process(&self, name: impl Into<String>, drift: i32) -> Process {
        self.inside(|inside| {
            let seed = inside.random.u64(..);
            inside.processes.push(Condition::new(name.into(), drift, seed));
            inside.lines.push(Line::default());
            Process::new(self.clone(), inside.processes.len() - 1)
        })
    }

    /// Ordinary delays of the requests and replies of a process: a random part of these.
    pub fn set_delays(&self, process: &Process, request: Duration, reply: Duration) {
        self.inside(|inside| inside.lines[process.id].delay = (request, reply));
    }

    /// Something befalls the next command of a process.
    pub fn befall(&self, process: &Process, mishap: Mishap) {
        self.disturbed(self.now());
        self.inside(|inside| inside.lines[process.id].next.push_back(mishap));
    }

    /// Cuts a process off the store for a time.
    pub fn cut(&self, process: &Process, time: Duration, cut: Cut) {
        self.note(|| format!("{} is cut off for {time:?}, {cut:?}", process.name()));
        let until = self.now() + time;
        self.disturbed(until);
        self.inside(|inside| inside.lines[process.id].cut = Some((until, cut)));
    }

    /// Nobody reaches the store for a time.
    pub fn outage(&self, time: Duration, cut: Cut) {
        self.note(|| format!("the store cannot be reached for {time:?}, {cut:?}"));
        let until = self.now() + time;
        self.disturbed(until);
        self.inside(|inside| inside.outage = Some((until, cut)));
    }

    /// Ends every cut and outage, and forgets the mishaps to come.
    pub fn heal(&self) {
        self.note(|| "the network is healed".to_owned());
        self.inside(|inside| {
            inside.outage = None;
            for line in &mut inside.lines {
                line.cut = None;
                line.next.clear();
            }
        });
    }

    /// The store is restarted and has kept everything.
    pub fn restart_store(&self) {
        self.note(|| "the store is restarted".to_owned());
        self.inside(|inside| {
            inside.store.restart();
            inside.tasks.restart();
        });
    }

    /// The store is restarted and has lost everything.
    pub fn lose_state(&self) {
        self.note(|| "the store is restarted and has lost everything".to_owned());
        self.lose(true, |Inside { store, tasks, .. }, since| {
            store.restart();
            tasks.restart();
            store.forget();
            tasks.forget(since);
        });
    }

    /// Another server takes over that lacks the last `writes` writes of each queue.
    pub fn fail_over(&self, writes: usize) {
        self.note(|| format!("a replica takes over that lacks the last {writes} writes"));
        self.lose(true, |Inside { store, tasks, .. }, since| {
            store.restart();
            tasks.restart();
            store.rewind(writes);
            tasks.rewind(writes, since);
        });
    }

    /// Somebody puts an old copy of the records back, `writes` writes old.
    pub fn restore_copy(&self, writes: usize) {
        self.note(|| format!("a copy is put back that is {writes} writes old"));
        self.lose(false, |Inside { store, tasks, .. }, since| {
            store.rewind(writes);
            tasks.rewind(writes, since);
        });
    }

    fn lose(&self, is_reported: bool, what: impl FnOnce(&mut Inside, Duration)) {
        self.disturbed(self.now());
        let since = self.since();
        self.inside(|inside| {
            what(inside, since);
            inside.checks.each_queue(since, |queue, at| queue.lost(is_reported, at));
            let Inside { store, checks, .. } = inside;
            checks.rates_are(since, |queue| store.record(queue).is_some());
        });
    }

    /// Steps the store's clock.
    pub fn step_clock(&self, micros: i64) {
        self.note(|| format!("the store's clock is stepped by {} ms", micros as f64 / 1000.0));
        self.disturbed(self.now());
        let since = self.since();
        self.inside(|inside| {
            inside.store.step_clock(micros);
            inside.tasks.clock_stepped(micros, since);
            inside.checks.each_queue(since, |queue, at| queue.clock_stepped(micros, at));
        });
    }

    /// Whether the record of a queue takes a shard for alive.
    pub fn is_present(&self, queue: &QueueName, shard: &ShardId) -> bool {
        let since = Micros::from_duration(self.since());
        self.inside(|inside| {
            let presence = inside.store.record(queue).and_then(|record| record.shards.get(shard));
            presence.is_some_and(|presence| presence.expires_at > inside.store.clock(since))
        })
    }

    /// The record of a queue as the store has it.
    pub fn record(&self, queue: &QueueName) -> Option<Record> {
        self.inside(|inside| inside.store.record(queue).cloned())
    }

    /// Tells the checks that a job of this process has started with this ticket.
    pub fn started(&self, process: &Process, queue: &QueueName, ticket: interval_queue_contract::Ticket) {
        let now = self.now();
        let since = process.condition(|condition| condition.present(now)) - self.shared.began;
        self.note(|| format!("{} starts ticket {ticket}", process.name()));
        let decided = now - self.shared.began;
        self.check(|checks| checks.started(process.id, queue, ticket, since, decided));
    }

    /// Tells the checks that so many more (or fewer) jobs of the living wait.
    pub fn waiting(&self, more: isize) {
        let since = self.since();
        self.inside(|inside| inside.checks.waiting(more, since));
    }

    /// What the checks have found first.
    pub fn violation(&self) -> Option<Violation> {
        self.inside(|inside| inside.checks.violation.clone())
    }

    /// Ends when the checks have found something.
    pub async fn violated(&self) {
        let violated = self.shared.violated.notified();
        if self.violation().is_none() {
            violated.await;
        }
    }

    /// Notes what happens, if a journal is kept.
    pub fn note(&self, what: impl FnOnce() -> String) {
        // The text may read the world.
        if self.inside(|inside| inside.journal.is_some()) {
            let entry = Entry { at: self.since(), what: what() };
            self.inside(|inside| inside.journal.as_mut().map(|journal| journal.push(entry)));
        }
    }

    /// The journal so far.
    pub fn journal(&self) -> Vec<Entry> {
        self.inside(|inside| inside.journal.clone()).unwrap_or_default()
    }

    pub(crate) fn violate(&self, promise: Promise, what: String) {
        let since = self.since();
        self.check(|checks| checks.violate(promise, since, what));
    }

    pub(crate) fn check<T>(&self, work: impl FnOnce(&mut Checks) -> T) -> T {
        self.watch(|inside| work(&mut inside.checks))
    }

    /// Notifies those who wait for a violation if this finds the first one.
    fn watch<T>(&self, work: impl FnOnce(&mut Inside) -> T) -> T {
        let (result, found) = self.inside(|inside| {
            let before = inside.checks.violation.is_some();
            let result = work(inside);
            (result, inside.checks.violation.clone().filter(|_| !before))
        });
        if let Some(violation) = found {
            self.note(|| format!("VIOLATION: {violation}"));
            self.shared.violated.notify_waiters();
        }
        result
    }

    /// Until `until` a fault excuses a pause of the starts.
    pub(crate) fn disturbed(&self, until: Instant) {
        let since = until - self.shared.began;
        self.inside(|inside| {
            inside.checks.disturbed(since);
            inside.tasks.disturbed(since);
        });
    }

    pub(crate) fn is_cut(&self, process: usize) -> bool {
        let now = self.now();
        self.inside(|inside| {
            [inside.lines[process].cut, inside.outage].into_iter().flatten().any(|(until, _)| now < until)
        })
    }

    pub(crate) fn apply(
        &self,
        process: usize,
        queue: &QueueName,
        command: &Command,
    ) -> Result<Reply, StateError> {
        let since = self.since();
        let reply = self.inside(|inside| inside.store.apply(queue, command, Micros::from_duration(since)));
        self.note(|| {
            let answer = match &reply {
                Ok(reply) => answer(reply),
                Err(error) => error.to_string(),
            };
            format!("the store does for process {process}: {} → {answer}", words(command))
        });
        if let Ok(reply) = &reply {
            self.watch(|Inside { store, checks, .. }| {
                let clock = store.clock(Micros::from_duration(since));
                checks.applied(process, queue, command, reply, store.record(queue), since, clock);
            });
        }
        reply
    }

    pub(crate) fn apply_to_tasks(
        &self,
        process: usize,
        queue: &QueueName,
        command: &TaskCommand,
    ) -> Result<TaskReply, StateError> {
        let since = self.since();
        let (reply, judged) = self.inside(|inside| {
            let now = inside.store.clock(Micros::from_duration(since));
            let (reply, judged) = inside.tasks.apply(process, queue, command, now, since);
            (reply, judged.and_then(|()| inside.tasks.monitor.all_notified(since)))
        });
        self.note(|| {
            let answer = match &reply {
                Ok(reply) => tasks::answer(reply),
                Err(error) => error.to_string(),
            };
            format!("the store does for process {process}: {} → {answer}", tasks::words(command))
        });
        self.judged(judged);
        reply
    }

    pub(crate) fn judged(&self, judged: Result<(), String>) {
        if let Err(what) = judged {
            self.violate(Promise::of_tasks(&what), what);
        }
    }

    /// A run of a stored task, leased at `leased_at`, uses up a slot granted to this process, or no
    /// rate was in force.
    pub(crate) fn starts_at_rate(&self, process: &Process, queue: &QueueName, leased_at: Duration) {
        let now = self.now();
        let since = process.condition(|condition| condition.present(now)) - self.shared.began;
        let decided = now - self.shared.began;
        self.check(|checks| checks.starts_at_rate(process.id, queue, leased_at, (since, decided)));
    }

    pub(crate) fn delivered(&self, process: usize, queue: &QueueName, reply: &Reply, applied: Instant) {
        let now = self.now();
        let present = self.inside(|inside| inside.processes[process].present(now));
        let times = (applied - self.shared.began, present - self.shared.began);
        self.inside(|inside| inside.checks.delivered(process, queue, reply, times));
    }
}

fn answer(reply: &Reply) -> String {
    match reply {
        Reply::Stepped(stepped) => {
            let grants: Vec<_> = stepped
                .grants
                .iter()
                .map(|grant| {
                    format!(
                        "{} in {} ms",
                        grant.ticket,
                        (grant.slot.get() as f64 - stepped.memory.at.get() as f64) / 1000.0
                    )
                })
                .collect();
            let taken = stepped
                .taken
                .map_or(String::new(), |taken| format!("took {}+{}, ", taken.first, taken.count));
            let wait = stepped
                .wait
                .as_ref()
                .map_or(String::new(), |wait| format!(", {:?} ask in {:?}", wait.reason, wait.ask_in));
            format!("{taken}grants [{}]{wait}, current {}", grants.join(", "), stepped.memory.current)
        }
        Reply::Changed(changed) => format!("revision {}", changed.memory.revision),
        other => format!("{other:?}"),
    }
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World").finish_non_exhaustive()
    }
}
