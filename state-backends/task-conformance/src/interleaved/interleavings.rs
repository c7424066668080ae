//! The interleavings: the members of each and the prepared queue.

use futures::{FutureExt, future::BoxFuture};
use interval_queue_contract::{MaxRunning, Micros};
use interval_queue_task_contract::{
    Add, Change, ChangeTasks, Command, Completion, Fire, Json, Leased, NewEdge, NewSchedule, NewTask,
    OnConflict, OnFailure, Outcome, Overlap, Read, Reply, Selector, SettingsChange, Step, TaskId, Unique,
    Until, Verb,
};

use super::{
    Application, Member, Within,
    preparation::{LEASE, Preparation, PreparedWorker, id},
};
use crate::client::{key, seconds};

/// Sessions that run concurrently on a prepared queue.
#[derive(Clone, Copy)]
pub struct Interleaving {
    /// The name of the interleaving.
    pub name: &'static str,
    pub(super) prepare: for<'s> fn(&'s mut Preparation) -> BoxFuture<'s, Vec<Member>>,
}

impl std::fmt::Debug for Interleaving {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Interleaving").field(&self.name).finish()
    }
}

macro_rules! interleavings {
    ($($name:ident),+ $(,)?) => {
        /// All interleavings.
        pub const INTERLEAVINGS: &[Interleaving] =
            &[$(Interleaving { name: stringify!($name), prepare: |preparation| $name(preparation).boxed() }),+];
    };
}

interleavings![
    two_steps_for_one_task,
    two_steps_under_one_limit,
    two_steps_at_one_key,
    two_steps_at_two_ends_of_one_task,
    a_late_step_and_its_successor,
    a_step_and_a_cancellation,
    a_step_and_a_retry,
    a_step_and_a_purge,
    a_step_and_a_link,
    a_link_and_an_add_behind_its_task,
    two_links_that_cross,
    a_step_and_a_change_of_the_limit,
    a_step_and_a_pause,
    a_step_and_an_add_behind_its_task,
    a_step_and_an_add_of_its_name,
    two_adds_of_one_id,
    two_adds_of_one_name,
    two_fires_of_one_instant,
    three_steps_for_two_tasks,
    a_step_and_an_application_that_commits,
    a_step_and_an_application_that_rolls_back,
    a_step_and_an_application_that_reads_first,
    an_add_and_an_application_that_reads_first,
    two_steps_and_an_application,
    a_group_and_a_step,
    a_group_and_an_application_that_reads_first,
];

macro_rules! within {
    ($($name:ident),+ $(,)?) => {
        /// Interleavings with tasks written in applications' transactions. Not all stores support
        /// that.
        pub const INTERLEAVINGS_WITHIN: &[Interleaving] =
            &[$(Interleaving { name: stringify!($name), prepare: |preparation| $name(preparation).boxed() }),+];
    };
}

within![
    a_step_and_an_application_that_adds,
    an_add_and_an_application_that_adds_its_name,
    a_step_and_an_application_that_completes_at_its_key,
    a_step_and_an_application_that_complete_the_same_run,
    a_late_step_and_an_application_that_completes,
    a_cancellation_and_an_application_that_completes,
    an_add_behind_a_task_and_an_application_that_completes_it,
    a_link_to_a_task_and_an_application_that_completes_it,
    two_applications_that_complete_the_same_run,
    a_step_and_two_applications_that_complete_under_a_limit,
];

pub(super) fn add(tasks: impl IntoIterator<Item = NewTask>) -> Command {
    Command::Add(Add { tasks: tasks.into_iter().collect(), sequence: 0, age: Micros::ZERO })
}

fn task(n: u64) -> NewTask {
    NewTask::new(id(n), Json::default())
}

fn with_key(n: u64) -> NewTask {
    NewTask { key: Some(key("k")), ..task(n) }
}

fn named(n: u64, on_conflict: OnConflict) -> NewTask {
    NewTask { unique: Some(Unique { name: key("only"), until: Until::Ended }), on_conflict, ..task(n) }
}

fn behind(n: u64, up: TaskId) -> NewTask {
    NewTask { edges: vec![NewEdge { up, name: None, on_failure: OnFailure::Cancel }], ..task(n) }
}

fn limit(most: u32) -> Change {
    let max_running = MaxRunning::AtMost(most);
    Change::Set(SettingsChange { max_running, ..SettingsChange::default() })
}

fn verb(verb: Verb, of: TaskId) -> Member {
    let selector = Selector::ids([of]);
    let change = ChangeTasks { selector, verb, after: None, watermark: None, limit: 10, dry_run: false };
    one(Command::Change(Change::Tasks(change)))
}

fn complete(leased: &Leased, outcome: Outcome) -> Vec<Completion> {
    vec![Completion { id: leased.task.id, token: leased.task.token, outcome }]
}

fn done(leased: &Leased) -> Vec<Completion> {
    complete(leased, Outcome::Done(Json::default()))
}

fn one(command: Command) -> Member {
    Member::Commands(vec![command])
}

fn wanting(worker: &mut PreparedWorker, complete: Vec<Completion>) -> Member {
    one(Command::Step(Step { complete, want: 1, ..worker.step() }))
}

async fn two_steps_for_one_task(preparation: &mut Preparation) -> Vec<Member> {
    preparation.add([task(1)]).await;
    vec![wanting(&mut PreparedWorker::new(1), Vec::new()), wanting(&mut PreparedWorker::new(2), Vec::new())]
}

async fn two_steps_under_one_limit(preparation: &mut Preparation) -> Vec<Member> {
    preparation.add((1..=3).map(task)).await;
    preparation.run(Command::Change(limit(1))).await;
    let mut first = PreparedWorker::new(1);
    let leased = preparation.lease(&mut first, 1).await;
    vec![wanting(&mut first, done(&leased[0])), wanting(&mut PreparedWorker::new(2), Vec::new())]
}

async fn two_steps_at_one_key(preparation: &mut Preparation) -> Vec<Member> {
    preparation.add((1..=3).map(with_key)).await;
    let mut first = PreparedWorker::new(1);
    let leased = preparation.lease(&mut first, 1).await;
    vec![wanting(&mut first, done(&leased[0])), wanting(&mut PreparedWorker::new(2), Vec::new())]
}

/// Two workers complete two upstreams of the same task.
async fn two_steps_at_two_ends_of_one_task(preparation: &mut Preparation) -> Vec<Member> {
    let both = [id(1), id(2)].map(|up| NewEdge { up, name: None, on_failure: OnFailure::Cancel });
    preparation.add([task(1), task(2), NewTask { edges: both.into(), ..task(3) }]).await;
    let (mut first, mut second) = (PreparedWorker::new(1), PreparedWorker::new(2));
    let ours = preparation.lease(&mut first, 1).await;
    let theirs = preparation.lease(&mut second, 1).await;
    vec![wanting(&mut first, done(&ours[0])), wanting(&mut second, done(&theirs[0]))]
}

/// A run's end after its lease races the next lease.
async fn a_late_step_and_its_successor(preparation: &mut Preparation) -> Vec<Member> {
    preparation.add([task(1)]).await;
    let (mut first, mut second) = (PreparedWorker::new(1), PreparedWorker::new(2));
    let leased = preparation.lease(&mut first, 1).await;
    for _ in 0..3 {
        preparation.pass(LEASE.get() / 3_000_000 + 1);
        preparation.step(second.step()).await;
    }
    // Makes the step due for rare lookups.
    preparation.pass(1);
    vec![wanting(&mut first, done(&leased[0])), wanting(&mut second, Vec::new())]
}

/// A task is cancelled while it is leased.
async fn a_step_and_a_cancellation(preparation: &mut Preparation) -> Vec<Member> {
    preparation.add([task(1), behind(2, id(1))]).await;
    vec![wanting(&mut PreparedWorker::new(1), Vec::new()), verb(Verb::Cancel, id(1))]
}

/// A partly notified failure races the task's retry.
async fn a_step_and_a_retry(preparation: &mut Preparation) -> Vec<Member> {
    preparation.add([task(1), behind(2, id(1)), task(3)]).await;
    let mut first = PreparedWorker::new(1);
    let leased = preparation.lease(&mut first, 1).await;
    let step = Step { complete: complete(&leased[0], Outcome::Failed("no".into())), ..first.step() };
    preparation.step(step).await;
    vec![wanting(&mut first, Vec::new()), verb(Verb::Retry, id(1))]
}

fn link(of: u64, up: u64) -> Member {
    let edge = NewEdge { up: id(up), name: None, on_failure: OnFailure::Cancel };
    verb(Verb::Link(edge), id(of))
}

/// An upstream ends and the other task is leased while they are linked.
async fn a_step_and_a_link(preparation: &mut Preparation) -> Vec<Member> {
    preparation.add([task(1), task(2)]).await;
    let mut first = PreparedWorker::new(1);
    let leased = preparation.lease(&mut first, 1).await;
    vec![wanting(&mut first, done(&leased[0])), link(2, 1)]
}

/// A task is added downstream of one that is being linked.
async fn a_link_and_an_add_behind_its_task(preparation: &mut Preparation) -> Vec<Member> {
    preparation.add([task(1), task(2)]).await;
    let mut first = PreparedWorker::new(1);
    vec![link(2, 1), one(add([behind(3, id(2))])), wanting(&mut first, Vec::new())]
}

/// Two tasks are each linked to wait for the other.
async fn two_links_that_cross(preparation: &mut Preparation) -> Vec<Member> {
    preparation.add([task(1), task(2), task(3)]).await;
    let mut first = PreparedWorker::new(1);
    vec![link(1, 2), link(2, 1), wanting(&mut first, Vec::new())]
}

/// An upstream is purged while its downstream ends, which needs the result.
async fn a_step_and_a_purge(preparation: &mut Preparation) -> Vec<Member> {
    preparation.add([task(1), behind(2, id(1))]).await;
    let mut first = PreparedWorker::new(1);
    let up = preparation.lease(&mut first, 1).await;
    let step = Step { complete: done(&up[0]), want: 1, ..first.step() };
    let mut leased = preparation.step(step).await.leased;
    if leased.is_empty() {
        leased = preparation.lease(&mut first, 1).await;
    }
    vec![wanting(&mut first, done(&leased[0])), verb(Verb::Purge, id(1))]
}

async fn a_step_and_a_change_of_the_limit(preparation: &mut Preparation) -> Vec<Member> {
    preparation.add([task(1), task(2)]).await;
    let mut first = PreparedWorker::new(1);
    preparation.lease(&mut first, 1).await;
    vec![wanting(&mut first, Vec::new()), one(Command::Change(limit(1)))]
}

async fn a_step_and_a_pause(preparation: &mut Preparation) -> Vec<Member> {
    preparation.add([task(1)]).await;
    vec![wanting(&mut PreparedWorker::new(1), Vec::new()), one(Command::Change(Change::Pause))]
}

/// A downstream is added while its upstream ends.
async fn a_step_and_an_add_behind_its_task(preparation: &mut Preparation) -> Vec<Member> {
    preparation.add([task(1)]).await;
    let mut first = PreparedWorker::new(1);
    let leased = preparation.lease(&mut first, 1).await;
    vec![wanting(&mut first, done(&leased[0])), one(add([behind(2, id(1))]))]
}

/// A unique name is taken while it is released.
async fn a_step_and_an_add_of_its_name(preparation: &mut Preparation) -> Vec<Member> {
    preparation.add([named(1, OnConflict::Keep)]).await;
    let mut first = PreparedWorker::new(1);
    let leased = preparation.lease(&mut first, 1).await;
    vec![wanting(&mut first, done(&leased[0])), one(add([named(2, OnConflict::Refuse)]))]
}

async fn two_adds_of_one_id(preparation: &mut Preparation) -> Vec<Member> {
    preparation.add([task(9)]).await;
    let both = add([task(1), behind(2, id(1))]);
    vec![one(both.clone()), one(both)]
}

async fn two_adds_of_one_name(preparation: &mut Preparation) -> Vec<Member> {
    preparation.add([task(9)]).await;
    let both = |n| one(add([task(n + 10), named(n, OnConflict::Refuse)]));
    vec![both(1), both(2)]
}

async fn two_fires_of_one_instant(preparation: &mut Preparation) -> Vec<Member> {
    let definition = Json::default();
    let (name, at) = (key("tick"), preparation.setup.now);
    let new = NewSchedule { name, definition, next: Some(at), paused: false, overlap: Overlap::Skip };
    preparation.add([]).await;
    preparation.run(Command::Change(Change::Schedule(new))).await;
    preparation.pass(1);
    let Reply::Schedules(schedules) = preparation.run(Command::Read(Read::Schedules)).await else {
        return Vec::new();
    };
    let fire = schedules.first().map(|schedule| {
        let made = TaskId::of_schedule(schedule.incarnation, &schedule.name, at);
        Command::Fire(Fire {
            schedule: schedule.name.clone(),
            revision: schedule.revision,
            from: at,
            made: vec![(at, NewTask::new(made, Json::default()))],
            next: Some(at + seconds(60)),
        })
    });
    fire.into_iter().flat_map(|fire| [one(fire.clone()), one(fire)]).collect()
}

async fn three_steps_for_two_tasks(preparation: &mut Preparation) -> Vec<Member> {
    preparation.add([task(1), task(2)]).await;
    (1..=3).map(|n| wanting(&mut PreparedWorker::new(n), Vec::new())).collect()
}

async fn with_an_application(preparation: &mut Preparation, what: Application) -> Vec<Member> {
    preparation.add([task(1), task(2), behind(3, id(1))]).await;
    let mut first = PreparedWorker::new(1);
    let leased = preparation.lease(&mut first, 1).await;
    vec![wanting(&mut first, done(&leased[0])), Member::Application(what)]
}

async fn a_step_and_an_application_that_commits(preparation: &mut Preparation) -> Vec<Member> {
    with_an_application(preparation, Application::Commits).await
}

async fn a_step_and_an_application_that_rolls_back(preparation: &mut Preparation) -> Vec<Member> {
    with_an_application(preparation, Application::RollsBack).await
}

async fn a_step_and_an_application_that_reads_first(preparation: &mut Preparation) -> Vec<Member> {
    with_an_application(preparation, Application::ReadsFirst).await
}

async fn an_add_and_an_application_that_reads_first(preparation: &mut Preparation) -> Vec<Member> {
    preparation.add([task(9)]).await;
    vec![one(add([task(1), behind(2, id(1))])), Member::Application(Application::ReadsFirst)]
}

async fn two_steps_and_an_application(preparation: &mut Preparation) -> Vec<Member> {
    let mut all = two_steps_for_one_task(preparation).await;
    all.push(Member::Application(Application::Commits));
    all
}

/// Commands of one process, two of them rejected: a late one, and an add with an invalid second
/// task.
async fn group(preparation: &mut Preparation) -> Member {
    preparation.add([named(1, OnConflict::Keep), task(2), task(3)]).await;
    let (mut first, mut second) = (PreparedWorker::new(1), PreparedWorker::new(2));
    let leased = preparation.lease(&mut first, 1).await;
    let late = first.step();
    let next = Step { complete: done(&leased[0]), want: 1, ..first.step() };
    Member::Commands(vec![
        add([task(4), behind(5, id(1))]),
        Command::Step(next),
        add([task(6), named(7, OnConflict::Keep), named(8, OnConflict::Refuse)]),
        Command::Step(late),
        Command::Step(Step { want: 1, ..second.step() }),
    ])
}

async fn a_group_and_a_step(preparation: &mut Preparation) -> Vec<Member> {
    let group = group(preparation).await;
    vec![group, wanting(&mut PreparedWorker::new(3), Vec::new())]
}

async fn a_group_and_an_application_that_reads_first(preparation: &mut Preparation) -> Vec<Member> {
    vec![group(preparation).await, Member::Application(Application::ReadsFirst)]
}

fn completes(worker: &PreparedWorker, leased: &Leased) -> Member {
    let Completion { id, token, .. } = done(leased).remove(0);
    Member::Within(Within::Completes(
        worker.id,
        Completion { id, token, outcome: Outcome::Done(Json::default()) },
    ))
}

fn adds(tasks: impl IntoIterator<Item = NewTask>) -> Member {
    Member::Within(Within::Adds(Add { tasks: tasks.into_iter().collect(), sequence: 0, age: Micros::ZERO }))
}

async fn a_step_and_an_application_that_adds(preparation: &mut Preparation) -> Vec<Member> {
    preparation.add([task(1)]).await;
    let mut first = PreparedWorker::new(1);
    let leased = preparation.lease(&mut first, 1).await;
    vec![wanting(&mut first, done(&leased[0])), adds([behind(2, id(1)), with_key(3)])]
}

async fn an_add_and_an_application_that_adds_its_name(preparation: &mut Preparation) -> Vec<Member> {
    preparation.add([task(9)]).await;
    let both = |n| [task(n + 10), named(n, OnConflict::Refuse)];
    vec![one(add(both(1))), adds(both(2))]
}

/// Another worker waits for the key.
async fn a_step_and_an_application_that_completes_at_its_key(preparation: &mut Preparation) -> Vec<Member> {
    preparation.add((1..=3).map(with_key)).await;
    let (mut first, mut second) = (PreparedWorker::new(1), PreparedWorker::new(2));
    let leased = preparation.lease(&mut first, 1).await;
    preparation.step(second.step()).await;
    vec![completes(&first, &leased[0]), wanting(&mut second, Vec::new())]
}

/// Worker and application complete the same run.
async fn a_step_and_an_application_that_complete_the_same_run(preparation: &mut Preparation) -> Vec<Member> {
    preparation.add([with_key(1), with_key(2)]).await;
    let mut first = PreparedWorker::new(1);
    let leased = preparation.lease(&mut first, 1).await;
    vec![
        completes(&first, &leased[0]),
        wanting(&mut first, complete(&leased[0], Outcome::Error("no".into()))),
    ]
}

/// The lease has ended, and another worker takes the task.
async fn a_late_step_and_an_application_that_completes(preparation: &mut Preparation) -> Vec<Member> {
    preparation.add([task(1)]).await;
    let (mut first, mut second) = (PreparedWorker::new(1), PreparedWorker::new(2));
    let leased = preparation.lease(&mut first, 1).await;
    for _ in 0..3 {
        preparation.pass(LEASE.get() / 3_000_000 + 1);
        preparation.step(second.step()).await;
    }
    preparation.pass(1);
    vec![completes(&first, &leased[0]), wanting(&mut second, Vec::new())]
}

async fn a_cancellation_and_an_application_that_completes(preparation: &mut Preparation) -> Vec<Member> {
    preparation.add([with_key(1), with_key(2)]).await;
    let mut first = PreparedWorker::new(1);
    let leased = preparation.lease(&mut first, 1).await;
    vec![completes(&first, &leased[0]), verb(Verb::Cancel, id(1))]
}

async fn an_add_behind_a_task_and_an_application_that_completes_it(
    preparation: &mut Preparation,
) -> Vec<Member> {
    preparation.add([task(1)]).await;
    let mut first = PreparedWorker::new(1);
    let leased = preparation.lease(&mut first, 1).await;
    let next = wanting(&mut first, Vec::new());
    vec![completes(&first, &leased[0]), one(add([behind(2, id(1))])), next]
}

async fn a_link_to_a_task_and_an_application_that_completes_it(preparation: &mut Preparation) -> Vec<Member> {
    preparation.add([task(1), task(2)]).await;
    let mut first = PreparedWorker::new(1);
    let leased = preparation.lease(&mut first, 1).await;
    let next = wanting(&mut first, Vec::new());
    vec![completes(&first, &leased[0]), link(2, 1), next]
}

async fn two_applications_that_complete_the_same_run(preparation: &mut Preparation) -> Vec<Member> {
    preparation.add([task(1)]).await;
    let mut first = PreparedWorker::new(1);
    let leased = preparation.lease(&mut first, 1).await;
    vec![completes(&first, &leased[0]), completes(&first, &leased[0])]
}

async fn a_step_and_two_applications_that_complete_under_a_limit(
    preparation: &mut Preparation,
) -> Vec<Member> {
    preparation.add((1..=4).map(task)).await;
    preparation.run(Command::Change(limit(2))).await;
    let (mut first, mut second) = (PreparedWorker::new(1), PreparedWorker::new(2));
    let ours = preparation.lease(&mut first, 1).await;
    let theirs = preparation.lease(&mut second, 1).await;
    vec![
        completes(&first, &ours[0]),
        completes(&second, &theirs[0]),
        wanting(&mut PreparedWorker::new(3), Vec::new()),
    ]
}
