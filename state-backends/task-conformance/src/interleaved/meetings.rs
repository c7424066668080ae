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
    scene::{Hand, LEASE, Scene, id},
};
use crate::client::{key, seconds};

/// Sessions that run concurrently on a prepared queue.
#[derive(Clone, Copy)]
pub struct Interleaving {
    /// The name of the interleaving.
    pub name: &'static str,
    pub(super) prepare: for<'s> fn(&'s mut Scene) -> BoxFuture<'s, Vec<Member>>,
}

impl std::fmt::Debug for Interleaving {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Meeting").field(&self.name).finish()
    }
}

macro_rules! meetings {
    ($($name:ident),+ $(,)?) => {
        /// All interleavings.
        pub const INTERLEAVINGS: &[Interleaving] =
            &[$(Interleaving { name: stringify!($name), prepare: |scene| $name(scene).boxed() }),+];
    };
}

meetings![
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
            &[$(Interleaving { name: stringify!($name), prepare: |scene| $name(scene).boxed() }),+];
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

fn keyed(n: u64) -> NewTask {
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

fn wanting(worker: &mut Hand, complete: Vec<Completion>) -> Member {
    one(Command::Step(Step { complete, want: 1, ..worker.step() }))
}

async fn two_steps_for_one_task(scene: &mut Scene) -> Vec<Member> {
    scene.add([task(1)]).await;
    vec![wanting(&mut Hand::new(1), Vec::new()), wanting(&mut Hand::new(2), Vec::new())]
}

async fn two_steps_under_one_limit(scene: &mut Scene) -> Vec<Member> {
    scene.add((1..=3).map(task)).await;
    scene.say(Command::Change(limit(1))).await;
    let mut first = Hand::new(1);
    let leased = scene.lease(&mut first, 1).await;
    vec![wanting(&mut first, done(&leased[0])), wanting(&mut Hand::new(2), Vec::new())]
}

async fn two_steps_at_one_key(scene: &mut Scene) -> Vec<Member> {
    scene.add((1..=3).map(keyed)).await;
    let mut first = Hand::new(1);
    let leased = scene.lease(&mut first, 1).await;
    vec![wanting(&mut first, done(&leased[0])), wanting(&mut Hand::new(2), Vec::new())]
}

/// Two workers complete two upstreams of the same task.
async fn two_steps_at_two_ends_of_one_task(scene: &mut Scene) -> Vec<Member> {
    let both = [id(1), id(2)].map(|up| NewEdge { up, name: None, on_failure: OnFailure::Cancel });
    scene.add([task(1), task(2), NewTask { edges: both.into(), ..task(3) }]).await;
    let (mut first, mut second) = (Hand::new(1), Hand::new(2));
    let ours = scene.lease(&mut first, 1).await;
    let theirs = scene.lease(&mut second, 1).await;
    vec![wanting(&mut first, done(&ours[0])), wanting(&mut second, done(&theirs[0]))]
}

/// A run's end after its lease races the next lease.
async fn a_late_step_and_its_successor(scene: &mut Scene) -> Vec<Member> {
    scene.add([task(1)]).await;
    let (mut first, mut second) = (Hand::new(1), Hand::new(2));
    let leased = scene.lease(&mut first, 1).await;
    for _ in 0..3 {
        scene.pass(LEASE.get() / 3_000_000 + 1);
        scene.step(second.step()).await;
    }
    // Makes the step due for rare lookups.
    scene.pass(1);
    vec![wanting(&mut first, done(&leased[0])), wanting(&mut second, Vec::new())]
}

/// A task is cancelled while it is leased.
async fn a_step_and_a_cancellation(scene: &mut Scene) -> Vec<Member> {
    scene.add([task(1), behind(2, id(1))]).await;
    vec![wanting(&mut Hand::new(1), Vec::new()), verb(Verb::Cancel, id(1))]
}

/// A partly notified failure races the task's retry.
async fn a_step_and_a_retry(scene: &mut Scene) -> Vec<Member> {
    scene.add([task(1), behind(2, id(1)), task(3)]).await;
    let mut first = Hand::new(1);
    let leased = scene.lease(&mut first, 1).await;
    let step = Step { complete: complete(&leased[0], Outcome::Failed("no".into())), ..first.step() };
    scene.step(step).await;
    vec![wanting(&mut first, Vec::new()), verb(Verb::Retry, id(1))]
}

fn link(of: u64, up: u64) -> Member {
    let edge = NewEdge { up: id(up), name: None, on_failure: OnFailure::Cancel };
    verb(Verb::Link(edge), id(of))
}

/// An upstream ends and the other task is leased while they are linked.
async fn a_step_and_a_link(scene: &mut Scene) -> Vec<Member> {
    scene.add([task(1), task(2)]).await;
    let mut first = Hand::new(1);
    let leased = scene.lease(&mut first, 1).await;
    vec![wanting(&mut first, done(&leased[0])), link(2, 1)]
}

/// A task is added downstream of one that is being linked.
async fn a_link_and_an_add_behind_its_task(scene: &mut Scene) -> Vec<Member> {
    scene.add([task(1), task(2)]).await;
    let mut first = Hand::new(1);
    vec![link(2, 1), one(add([behind(3, id(2))])), wanting(&mut first, Vec::new())]
}

/// Two tasks are each linked to wait for the other.
async fn two_links_that_cross(scene: &mut Scene) -> Vec<Member> {
    scene.add([task(1), task(2), task(3)]).await;
    let mut first = Hand::new(1);
    vec![link(1, 2), link(2, 1), wanting(&mut first, Vec::new())]
}

/// An upstream is purged while its downstream ends, which needs the result.
async fn a_step_and_a_purge(scene: &mut Scene) -> Vec<Member> {
    scene.add([task(1), behind(2, id(1))]).await;
    let mut first = Hand::new(1);
    let up = scene.lease(&mut first, 1).await;
    let step = Step { complete: done(&up[0]), want: 1, ..first.step() };
    let mut leased = scene.step(step).await.leased;
    if leased.is_empty() {
        leased = scene.lease(&mut first, 1).await;
    }
    vec![wanting(&mut first, done(&leased[0])), verb(Verb::Purge, id(1))]
}

async fn a_step_and_a_change_of_the_limit(scene: &mut Scene) -> Vec<Member> {
    scene.add([task(1), task(2)]).await;
    let mut first = Hand::new(1);
    scene.lease(&mut first, 1).await;
    vec![wanting(&mut first, Vec::new()), one(Command::Change(limit(1)))]
}

async fn a_step_and_a_pause(scene: &mut Scene) -> Vec<Member> {
    scene.add([task(1)]).await;
    vec![wanting(&mut Hand::new(1), Vec::new()), one(Command::Change(Change::Pause))]
}

/// A downstream is added while its upstream ends.
async fn a_step_and_an_add_behind_its_task(scene: &mut Scene) -> Vec<Member> {
    scene.add([task(1)]).await;
    let mut first = Hand::new(1);
    let leased = scene.lease(&mut first, 1).await;
    vec![wanting(&mut first, done(&leased[0])), one(add([behind(2, id(1))]))]
}

/// A unique name is taken while it is released.
async fn a_step_and_an_add_of_its_name(scene: &mut Scene) -> Vec<Member> {
    scene.add([named(1, OnConflict::Keep)]).await;
    let mut first = Hand::new(1);
    let leased = scene.lease(&mut first, 1).await;
    vec![wanting(&mut first, done(&leased[0])), one(add([named(2, OnConflict::Refuse)]))]
}

async fn two_adds_of_one_id(scene: &mut Scene) -> Vec<Member> {
    scene.add([task(9)]).await;
    let both = add([task(1), behind(2, id(1))]);
    vec![one(both.clone()), one(both)]
}

async fn two_adds_of_one_name(scene: &mut Scene) -> Vec<Member> {
    scene.add([task(9)]).await;
    let both = |n| one(add([task(n + 10), named(n, OnConflict::Refuse)]));
    vec![both(1), both(2)]
}

async fn two_fires_of_one_instant(scene: &mut Scene) -> Vec<Member> {
    let definition = Json::default();
    let (name, at) = (key("tick"), scene.setup.now);
    let new = NewSchedule { name, definition, next: Some(at), paused: false, overlap: Overlap::Skip };
    scene.add([]).await;
    scene.say(Command::Change(Change::Schedule(new))).await;
    scene.pass(1);
    let Reply::Schedules(schedules) = scene.say(Command::Read(Read::Schedules)).await else {
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

async fn three_steps_for_two_tasks(scene: &mut Scene) -> Vec<Member> {
    scene.add([task(1), task(2)]).await;
    (1..=3).map(|n| wanting(&mut Hand::new(n), Vec::new())).collect()
}

async fn with_an_application(scene: &mut Scene, what: Application) -> Vec<Member> {
    scene.add([task(1), task(2), behind(3, id(1))]).await;
    let mut first = Hand::new(1);
    let leased = scene.lease(&mut first, 1).await;
    vec![wanting(&mut first, done(&leased[0])), Member::Application(what)]
}

async fn a_step_and_an_application_that_commits(scene: &mut Scene) -> Vec<Member> {
    with_an_application(scene, Application::Commits).await
}

async fn a_step_and_an_application_that_rolls_back(scene: &mut Scene) -> Vec<Member> {
    with_an_application(scene, Application::RollsBack).await
}

async fn a_step_and_an_application_that_reads_first(scene: &mut Scene) -> Vec<Member> {
    with_an_application(scene, Application::ReadsFirst).await
}

async fn an_add_and_an_application_that_reads_first(scene: &mut Scene) -> Vec<Member> {
    scene.add([task(9)]).await;
    vec![one(add([task(1), behind(2, id(1))])), Member::Application(Application::ReadsFirst)]
}

async fn two_steps_and_an_application(scene: &mut Scene) -> Vec<Member> {
    let mut all = two_steps_for_one_task(scene).await;
    all.push(Member::Application(Application::Commits));
    all
}

/// Commands of one process, two of them rejected: a late one, and an add with an invalid second
/// task.
async fn group(scene: &mut Scene) -> Member {
    scene.add([named(1, OnConflict::Keep), task(2), task(3)]).await;
    let (mut first, mut second) = (Hand::new(1), Hand::new(2));
    let leased = scene.lease(&mut first, 1).await;
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

async fn a_group_and_a_step(scene: &mut Scene) -> Vec<Member> {
    let group = group(scene).await;
    vec![group, wanting(&mut Hand::new(3), Vec::new())]
}

async fn a_group_and_an_application_that_reads_first(scene: &mut Scene) -> Vec<Member> {
    vec![group(scene).await, Member::Application(Application::ReadsFirst)]
}

fn completes(worker: &Hand, leased: &Leased) -> Member {
    let Completion { id, token, .. } = done(leased).remove(0);
    Member::Within(Within::Completes(
        worker.id,
        Completion { id, token, outcome: Outcome::Done(Json::default()) },
    ))
}

fn adds(tasks: impl IntoIterator<Item = NewTask>) -> Member {
    Member::Within(Within::Adds(Add { tasks: tasks.into_iter().collect(), sequence: 0, age: Micros::ZERO }))
}

async fn a_step_and_an_application_that_adds(scene: &mut Scene) -> Vec<Member> {
    scene.add([task(1)]).await;
    let mut first = Hand::new(1);
    let leased = scene.lease(&mut first, 1).await;
    vec![wanting(&mut first, done(&leased[0])), adds([behind(2, id(1)), keyed(3)])]
}

async fn an_add_and_an_application_that_adds_its_name(scene: &mut Scene) -> Vec<Member> {
    scene.add([task(9)]).await;
    let both = |n| [task(n + 10), named(n, OnConflict::Refuse)];
    vec![one(add(both(1))), adds(both(2))]
}

/// Another worker waits for the key.
async fn a_step_and_an_application_that_completes_at_its_key(scene: &mut Scene) -> Vec<Member> {
    scene.add((1..=3).map(keyed)).await;
    let (mut first, mut second) = (Hand::new(1), Hand::new(2));
    let leased = scene.lease(&mut first, 1).await;
    scene.step(second.step()).await;
    vec![completes(&first, &leased[0]), wanting(&mut second, Vec::new())]
}

/// Worker and application complete the same run.
async fn a_step_and_an_application_that_complete_the_same_run(scene: &mut Scene) -> Vec<Member> {
    scene.add([keyed(1), keyed(2)]).await;
    let mut first = Hand::new(1);
    let leased = scene.lease(&mut first, 1).await;
    vec![
        completes(&first, &leased[0]),
        wanting(&mut first, complete(&leased[0], Outcome::Error("no".into()))),
    ]
}

/// The lease has ended, and another worker takes the task.
async fn a_late_step_and_an_application_that_completes(scene: &mut Scene) -> Vec<Member> {
    scene.add([task(1)]).await;
    let (mut first, mut second) = (Hand::new(1), Hand::new(2));
    let leased = scene.lease(&mut first, 1).await;
    for _ in 0..3 {
        scene.pass(LEASE.get() / 3_000_000 + 1);
        scene.step(second.step()).await;
    }
    scene.pass(1);
    vec![completes(&first, &leased[0]), wanting(&mut second, Vec::new())]
}

async fn a_cancellation_and_an_application_that_completes(scene: &mut Scene) -> Vec<Member> {
    scene.add([keyed(1), keyed(2)]).await;
    let mut first = Hand::new(1);
    let leased = scene.lease(&mut first, 1).await;
    vec![completes(&first, &leased[0]), verb(Verb::Cancel, id(1))]
}

async fn an_add_behind_a_task_and_an_application_that_completes_it(scene: &mut Scene) -> Vec<Member> {
    scene.add([task(1)]).await;
    let mut first = Hand::new(1);
    let leased = scene.lease(&mut first, 1).await;
    let next = wanting(&mut first, Vec::new());
    vec![completes(&first, &leased[0]), one(add([behind(2, id(1))])), next]
}

async fn a_link_to_a_task_and_an_application_that_completes_it(scene: &mut Scene) -> Vec<Member> {
    scene.add([task(1), task(2)]).await;
    let mut first = Hand::new(1);
    let leased = scene.lease(&mut first, 1).await;
    let next = wanting(&mut first, Vec::new());
    vec![completes(&first, &leased[0]), link(2, 1), next]
}

async fn two_applications_that_complete_the_same_run(scene: &mut Scene) -> Vec<Member> {
    scene.add([task(1)]).await;
    let mut first = Hand::new(1);
    let leased = scene.lease(&mut first, 1).await;
    vec![completes(&first, &leased[0]), completes(&first, &leased[0])]
}

async fn a_step_and_two_applications_that_complete_under_a_limit(scene: &mut Scene) -> Vec<Member> {
    scene.add((1..=4).map(task)).await;
    scene.say(Command::Change(limit(2))).await;
    let (mut first, mut second) = (Hand::new(1), Hand::new(2));
    let ours = scene.lease(&mut first, 1).await;
    let theirs = scene.lease(&mut second, 1).await;
    vec![completes(&first, &ours[0]), completes(&second, &theirs[0]), wanting(&mut Hand::new(3), Vec::new())]
}
