//! Results of serial orders by the rules, checked for promises.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use interval_queue_contract::{Micros, QueueName, StateError, StateErrorKind};
use interval_queue_task_contract::{
    Command, Completed, Completion, EdgeState, Order, Overlap, Read, Reply, Selector, State, Stored, TaskId,
    TaskStore, WorkerId,
    judge::{Dump, Judge},
};

use super::{
    Interleaving, Member, Sessions, Within, WithinReply,
    preparation::{self, Memory, Preparation, Setup},
};
use crate::fuzzer::dump;

/// The comparable part of replies.
pub(super) fn described(replies: &[Result<Reply, StateError>]) -> String {
    let text = replies.iter().map(|reply| match reply {
        Ok(reply) => format!("{reply:#?}\n"),
        // The text of an error depends on the store.
        Err(error) => format!("{:?}\n", error.kind()),
    });
    text.collect()
}

pub(super) fn described_within(reply: &Result<WithinReply, StateErrorKind>) -> String {
    format!("{reply:#?}\n")
}

/// All that a store returns about a queue.
async fn stored_text(store: &dyn TaskStore, queue: &QueueName) -> String {
    let page = Read::Page {
        selector: Selector::states(State::ALL),
        after: Order::Oldest.start(),
        limit: 1_000,
        bodies: true,
    };
    let mut text = String::new();
    let mut ids = Vec::new();
    for read in [page, Read::Overview, Read::Workers, Read::Schedules] {
        let mut reply = store.apply(queue, Command::Read(read)).await;
        if let Ok(Reply::Page(page)) = &mut reply {
            ids.extend(page.tasks.iter().map(|stored| stored.task.id));
            normalize(page.tasks.iter_mut());
        }
        text += &described(&[reply]);
    }
    let mut reply = store.apply(queue, Command::Read(Read::Tasks(ids))).await;
    if let Ok(Reply::Tasks(tasks)) = &mut reply {
        normalize(tasks.iter_mut().flatten());
    }
    text + &described(&[reply])
}

/// Removes irrelevant differences: an unadmitted task may or may not know of its upstream's end, an
/// application's transaction the lease clock.
fn normalize<'a>(stored: impl Iterator<Item = &'a mut Stored>) {
    let mut stored: Vec<_> = stored.collect();
    stored.iter_mut().for_each(|stored| stored.task.ended_lease_clock = None);
    let of_state = |is_wanted: fn(State) -> bool| -> BTreeSet<TaskId> {
        stored
            .iter()
            .map(|stored| &stored.task)
            .filter(|task| is_wanted(task.state))
            .map(|task| task.id)
            .collect()
    };
    let (added, done) = (of_state(|state| state == State::Added), of_state(|state| state == State::Done));
    let edges =
        stored.iter_mut().flat_map(|stored| stored.upstreams.iter_mut().chain(&mut stored.downstreams));
    let met = edges.filter(|edge| edge.state == EdgeState::Met);
    for edge in met.filter(|edge| added.contains(&edge.down) && done.contains(&edge.up)) {
        edge.state = EdgeState::New;
    }
}

struct Outcome {
    replies: Vec<String>,
    stored: String,
    /// The first broken promise, if any.
    judged: Result<(), String>,
}

/// A prepared interleaving: setup, members and possible results.
pub struct Prepared {
    setup: Setup,
    members: Vec<Member>,
    /// Results of the orders run so far.
    outcomes: BTreeMap<Vec<usize>, Outcome>,
}

impl Prepared {
    /// Prepares an interleaving.
    pub async fn of(interleaving: &Interleaving) -> Self {
        let mut preparation = Preparation::new();
        let members = (interleaving.prepare)(&mut preparation).await;
        Self { setup: preparation.setup, members, outcomes: BTreeMap::new() }
    }

    /// The concurrent members.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// The instant of the interleaving.
    pub fn now(&self) -> Micros {
        self.setup.now
    }

    /// A new prepared queue. Sets the clock to each command's instant.
    pub async fn queue(&self, sessions: &dyn Sessions) -> QueueName {
        let queue = preparation::queue();
        for (at, command) in &self.setup.commands {
            sessions.set_clock(*at);
            let _ = sessions.store().apply(&queue, command.clone()).await;
        }
        sessions.set_clock(self.setup.now);
        queue
    }

    async fn outcome(&mut self, order: &[usize]) -> &Outcome {
        if !self.outcomes.contains_key(order) {
            let outcome = self.run_order(order).await;
            self.outcomes.insert(order.to_vec(), outcome);
        }
        &self.outcomes[order]
    }

    async fn run_order(&self, order: &[usize]) -> Outcome {
        let mut judged = Judged::new();
        for (at, command) in &self.setup.commands {
            judged.memory.set_clock(*at);
            let _ = judged.apply(command).await;
        }
        judged.memory.set_clock(self.setup.now);
        let mut replies = Vec::new();
        for &member in order {
            let mut answers = Vec::new();
            match &self.members[member] {
                Member::Commands(commands) => {
                    for command in commands {
                        answers.push(judged.apply(command).await);
                    }
                    replies.push(described(&answers));
                }
                Member::Application(_) => replies.push(described(&answers)),
                Member::Within(within) => replies.push(described_within(&judged.within(within).await)),
            }
        }
        let stored = stored_text(&judged.memory.store, &judged.memory.queue).await;
        Outcome { replies, stored, judged: judged.judgement }
    }

    /// Checks that rows and replies equal those of some serial order.
    ///
    /// # Errors
    ///
    /// The difference from each order.
    pub async fn check(
        &mut self,
        store: &dyn TaskStore,
        queue: &QueueName,
        done: &[(usize, Option<String>)],
    ) -> Result<(), String> {
        let now = stored_text(store, queue).await;
        let mut why = String::new();
        for order in orders(done.len()) {
            let order: Vec<_> = order.iter().map(|&n| &done[n]).collect();
            let member: Vec<usize> = order.iter().map(|(member, _)| *member).collect();
            let Outcome { replies, stored, judged } = self.outcome(&member).await;
            judged.clone()?;
            let answers = order.iter().zip(replies);
            let other =
                answers.filter_map(|((member, answer), reply)| Some((member, answer.as_ref()?, reply)));
            let different = match other.into_iter().find(|(_, answer, reply)| answer != reply) {
                Some((member, answer, reply)) => {
                    difference(&format!("the answer of {member}"), answer, reply)
                }
                None if now != *stored => difference("what is stored", &now, stored),
                None => return Ok(()),
            };
            why += &format!("\n    not as {member:?}: {different}");
        }
        Err(format!("the outcome is that of no order{why}"))
    }
}

/// A memory with a judge of all its commands.
struct Judged {
    memory: Memory,
    begun: Micros,
    judge: Judge,
    stored: Dump,
    judgement: Result<(), String>,
}

impl Judged {
    fn new() -> Self {
        let memory = Memory::new();
        let judge = Judge::new(false, Overlap::Skip);
        Self { begun: memory.now(), memory, judge, stored: Dump::default(), judgement: Ok(()) }
    }

    async fn apply(&mut self, command: &Command) -> Result<Reply, StateError> {
        let answer = self.memory.apply(command).await;
        if self.judgement.is_ok() && !command.is_read() {
            self.judgement = self.judge(command, &answer).await;
        }
        answer
    }

    async fn within(&mut self, within: &Within) -> Result<WithinReply, StateErrorKind> {
        match within {
            Within::Adds(add) => match self.apply(&Command::Add(add.clone())).await {
                Ok(Reply::Added(added)) => Ok(WithinReply::Added(added)),
                Ok(_) => Err(StateErrorKind::Damaged),
                Err(error) => Err(error.kind()),
            },
            Within::Completes(worker, completion) => {
                let completed = self.memory.store.complete_within(&self.memory.queue, *worker, completion);
                let completed = completed.map_err(|error| error.kind());
                if self.judgement.is_ok() {
                    self.judgement = self.judge_within(*worker, completion, &completed).await;
                }
                completed.map(WithinReply::Completed)
            }
        }
    }

    async fn judge_within(
        &mut self,
        worker: WorkerId,
        completion: &Completion,
        completed: &Result<Completed, StateErrorKind>,
    ) -> Result<(), String> {
        let dumped = dump::dump(&self.memory.store, &self.memory.queue).await;
        let after = dumped.map_err(|error| format!("a dump failed: {error}"))?;
        let now = (self.memory.now() - self.begun).to_duration();
        self.judge.completed_within(now, &self.stored, &after, worker, completion, completed)?;
        self.stored = after;
        Ok(())
    }

    async fn judge(&mut self, command: &Command, answer: &Result<Reply, StateError>) -> Result<(), String> {
        let dumped = dump::dump(&self.memory.store, &self.memory.queue).await;
        let after = dumped.map_err(|error| format!("a dump failed: {error}"))?;
        let (now, outcome) = (self.memory.now() - self.begun, answer.clone().map_err(|error| error.kind()));
        self.judge.command(now.to_duration(), &self.stored, &after, command, &outcome)?;
        self.stored = after;
        Ok(())
    }
}

impl fmt::Debug for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prepared").field("members", &self.members).finish_non_exhaustive()
    }
}

fn difference(what: &str, found: &str, expected: &str) -> String {
    let lines = found.lines().zip(expected.lines()).enumerate();
    let different = lines
        .filter(|(_, (found, expected))| found != expected)
        .map(|(n, (found, expected))| format!("line {n}: {:?}, not {:?}", found.trim(), expected.trim()));
    let lines: Vec<_> = different.take(3).collect();
    format!(
        "{what} has {} lines of {}; {}",
        found.lines().count(),
        expected.lines().count(),
        lines.join("; ")
    )
}

/// All orders of `of` members, starting with the given one.
fn orders(of: usize) -> Vec<Vec<usize>> {
    let mut orders = vec![Vec::new()];
    for _ in 0..of {
        let longer = |order: Vec<usize>| {
            let rest: Vec<_> = (0..of).filter(|n| !order.contains(n)).collect();
            rest.into_iter()
                .map(move |n| order.iter().copied().chain([n]).collect::<Vec<_>>())
                .collect::<Vec<_>>()
        };
        orders = orders.into_iter().flat_map(longer).collect();
    }
    orders
}
