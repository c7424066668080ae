//! The stored tasks of the world: the memory store's tables under the real rules, dumps of them,
//! and a judge.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use interval_queue_contract::{Micros, QueueName, StateError};
use interval_queue_memory::{Tables, Written};
use interval_queue_task_contract::{
    Change, ChangeTasks, Command, Overlap, Reply, Rows, Stored, TaskId,
    judge::{Dump, Judge},
};
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::RunMonitor;

/// The rules that a store applies: [`rules::apply`](interval_queue_task_contract::rules::apply), unless something is
/// to be proved.
pub type Rules = fn(&mut Tables, Micros, &Command) -> Result<Reply, StateError>;

/// Kept for a failover or an old copy.
const VERSIONS: usize = 256;

/// Maximum edges of a task in a dump.
const EDGES: u32 = 100;

pub(crate) struct Tasks {
    rules: Rules,
    keeps_versions: bool,
    /// Number of commands so far.
    commands: u64,
    queues: BTreeMap<QueueName, Kept>,
    pub(crate) monitor: RunMonitor,
}

pub(crate) struct Kept {
    tables: Tables,
    /// The latest last.
    versions: VecDeque<Tables>,
    pub(crate) dump: Arc<Dump>,
    pub(crate) judge: Judge,
    /// Watchers in the order of notification.
    watchers: Vec<Sender<()>>,
}

impl Default for Kept {
    fn default() -> Self {
        Self {
            tables: Tables::default(),
            versions: VecDeque::new(),
            dump: Arc::default(),
            judge: Judge::new(false, Overlap::Allow),
            watchers: Vec::new(),
        }
    }
}

impl Tasks {
    pub(crate) fn new(rules: Rules, keeps_versions: bool) -> Self {
        Self { rules, keeps_versions, commands: 0, queues: BTreeMap::new(), monitor: RunMonitor::default() }
    }

    pub(crate) fn kept(&mut self, queue: &QueueName) -> &mut Kept {
        if !self.queues.contains_key(queue) {
            self.queues.insert(queue.clone(), Kept::default());
        }
        #[allow(clippy::expect_used, reason = "it was put there")]
        self.queues.get_mut(queue).expect("a queue that is there")
    }

    pub(crate) fn dump(&self, queue: &QueueName) -> Arc<Dump> {
        self.queues.get(queue).map(|kept| kept.dump.clone()).unwrap_or_default()
    }

    pub(crate) fn queues(&self) -> Vec<QueueName> {
        self.queues.iter().filter(|(_, kept)| !kept.tables.is_empty()).map(|(name, _)| name.clone()).collect()
    }

    /// `since` the beginning; `now` on the store's clock. Returns the reply, and the promise that
    /// it breaks.
    pub(crate) fn apply(
        &mut self,
        process: usize,
        queue: &QueueName,
        command: &Command,
        now: Micros,
        since: Duration,
    ) -> (Result<Reply, StateError>, Result<(), String>) {
        let (rules, keeps_versions) = (self.rules, self.keeps_versions);
        // Each command has its own instant of the clock.
        self.commands += 1;
        let now = now + Micros::new(self.commands);
        let kept = self.kept(queue);
        if command.is_read() {
            return (rules(&mut kept.tables, now, command), Ok(()));
        }
        if keeps_versions {
            kept.versions.push_back(kept.tables.clone());
            if kept.versions.len() > VERSIONS {
                kept.versions.pop_front();
            }
        }
        let dry = dry(command).map(|dry| {
            let reply = rules(&mut kept.tables, now, &dry);
            kept.tables.finish(false);
            reply
        });
        let reply = rules(&mut kept.tables, now, command);
        let written = if reply.is_ok() { kept.tables.written() } else { Written::default() };
        if kept.tables.finish(reply.is_ok()) {
            // A notification that is pending stands for all.
            kept.watchers.retain(|watcher| !watcher.is_closed());
            for watcher in &kept.watchers {
                let _ = watcher.try_send(());
            }
        }
        let before = kept.dump.clone();
        kept.refresh(&written);
        let kind = |reply: &Result<Reply, StateError>| reply.clone().map_err(|error| error.kind());
        let outcome = kind(&reply);
        let mut judged = kept.judge.command(since, &before, &kept.dump, command, &outcome);
        if let Some(dry) = dry.filter(|dry| judged.is_ok() && kind(dry) != outcome) {
            judged = Err(format!("T9: the dry run returned {dry:?}, and the real one {reply:?}"));
        }
        let after = kept.dump.clone();
        if let Ok(reply) = &reply {
            self.monitor.applied(process, command, reply, &after, since);
        }
        (reply, judged)
    }

    pub(crate) fn subscribe(&mut self, queue: &QueueName) -> Receiver<()> {
        let (sender, receiver) = channel(1);
        self.kept(queue).watchers.push(sender);
        receiver
    }

    /// Watches end.
    pub(crate) fn restart(&mut self) {
        self.queues.values_mut().for_each(|kept| kept.watchers.clear());
    }

    pub(crate) fn forget(&mut self, since: Duration) {
        self.lose(since, |kept| kept.tables = Tables::default());
    }

    /// Undoes the last `writes` writes of each queue.
    pub(crate) fn rewind(&mut self, writes: usize, since: Duration) {
        self.lose(since, |kept| {
            for _ in 0..writes {
                if let Some(earlier) = kept.versions.pop_back() {
                    kept.tables = earlier;
                }
            }
        });
    }

    fn lose(&mut self, since: Duration, what: impl Fn(&mut Kept)) {
        for kept in self.queues.values_mut() {
            what(kept);
            kept.dump = Arc::default();
            kept.refresh_all();
            kept.judge.rolled_back(&kept.dump);
        }
        self.monitor.lost(since);
    }

    pub(crate) fn clock_stepped(&mut self, micros: i64, since: Duration) {
        self.monitor.clock_stepped(micros, since);
    }

    pub(crate) fn disturbed(&mut self, until: Duration) {
        self.monitor.disturbed(until);
    }
}

impl Kept {
    fn refresh_all(&mut self) {
        let mut all = Written { queue: true, counts: true, kinds: true, ..Written::default() };
        all.tasks.extend(self.tables.tasks.keys());
        self.refresh(&all);
    }

    fn refresh(&mut self, written: &Written) {
        if written.tasks.is_empty() && !written.queue && !written.counts && !written.kinds {
            return;
        }
        let tables = &mut self.tables;
        let dump = Arc::make_mut(&mut self.dump);
        for &id in &written.tasks {
            match stored(tables, id) {
                Some(stored) => _ = dump.tasks.insert(id, Arc::new(stored)),
                None => _ = dump.tasks.remove(&id),
            }
        }
        if written.queue {
            let queue = tables.queue().ok().flatten();
            dump.paused = queue.as_ref().is_some_and(|queue| queue.paused);
            dump.settings = queue.map(|queue| queue.settings).unwrap_or_default();
        }
        if written.counts {
            let counts = tables.counts().unwrap_or_default();
            dump.counts = counts.into_iter().map(|(kind, counted, n)| ((kind, counted), n)).collect();
        }
        if written.kinds {
            let kinds = tables.kinds().unwrap_or_default();
            dump.kinds = kinds.into_iter().map(|row| (row.kind.clone(), row)).collect();
        }
    }
}

fn stored(tables: &mut Tables, id: TaskId) -> Option<Stored> {
    let task = tables.task(id).ok().flatten()?;
    let (payload, result, log, why) = (None, None, Vec::new(), None);
    let upstreams = tables.edges_to(id, None, None, EDGES).unwrap_or_default();
    let downstreams = tables.edges_from(id, None, EDGES).unwrap_or_default();
    Some(Stored { task, payload, result, log, upstreams, downstreams, why, undecoded: None })
}

fn dry(command: &Command) -> Option<Command> {
    match command {
        Command::Change(Change::Tasks(change)) if !change.dry_run => {
            Some(Command::Change(Change::Tasks(ChangeTasks { dry_run: true, ..change.clone() })))
        }
        _ => None,
    }
}
