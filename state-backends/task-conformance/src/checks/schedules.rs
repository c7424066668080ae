//! Schedules: each nominal instant adds exactly one task.

use interval_queue_contract::{Micros, StateErrorKind};
use interval_queue_task_contract::{
    Change, Command, Fire, Fired, Json, NewEdge, NewSchedule, NewTask, OnFailure, Order, Overlap, Read,
    Reply, Schedule, Selector, State, Step, TaskId, Verb,
};

use crate::client::{Client, Handles, done, key, refusal, task, usual};

fn new(name: &str, next: Micros, overlap: Overlap) -> Change {
    let definition = Json::new("{\"every\": \"1 s\"}").unwrap();
    Change::Schedule(NewSchedule { name: key(name), definition, next: Some(next), paused: false, overlap })
}

async fn schedules(client: &Client) -> Vec<Schedule> {
    match client.read(Read::Schedules).await {
        Reply::Schedules(schedules) => schedules,
        other => panic!("a read of schedules was answered by {other:?}"),
    }
}

/// A fire of the instant `at`; the next is one second later.
fn fire(schedule: &Schedule, at: Micros) -> Fire {
    let id = TaskId::of_schedule(schedule.incarnation, &schedule.name, at);
    Fire {
        schedule: schedule.name.clone(),
        revision: schedule.revision,
        from: at,
        made: vec![(at, NewTask::new(id, Json::default()))],
        next: Some(at + crate::client::seconds(1)),
    }
}

async fn fired(client: &Client, fire: Fire) -> Fired {
    match client.apply(Command::Fire(fire)).await.unwrap() {
        Reply::Fired(fired) => fired,
        other => panic!("a fire was answered by {other:?}"),
    }
}

/// The first fire of an instant adds its task; a second, early or outdated one adds nothing.
pub async fn each_instant_makes_one_task(handles: Handles) {
    let (one, other) = usual(handles).await;
    let past = Micros::new(one.overview().await.at.get() - 5_000_000);
    one.change(new("tick ü", past, Overlap::Allow)).await;
    let schedule = schedules(&other).await.remove(0);
    assert_eq!((schedule.next, schedule.revision, schedule.last), (Some(past), 1, None));
    let mut worker = other.worker();
    let due = worker.beat().await.schedules;
    assert_eq!((due.len(), due[0].at, &due[0].schedule), (1, past, &schedule));
    let first = fire(&schedule, past);
    assert_eq!(fired(&one, first.clone()).await, Fired::Made);
    assert_eq!(fired(&other, first.clone()).await, Fired::Stale);
    let next = fire(&schedule, past + crate::client::seconds(1));
    assert_eq!(fired(&one, Fire { revision: 2, ..next.clone() }).await, Fired::Stale);
    assert_eq!(fired(&other, next).await, Fired::Made);
    let made = other.rows().await;
    assert_eq!(made.len(), 2);
    let nominal = one.row(first.made[0].1.id).await.schedule.unwrap();
    assert_eq!((nominal.schedule, nominal.at), (schedule.name.clone(), past));
    let of_schedule = Selector { schedule: Some(schedule.name.clone()), ..Selector::default() };
    assert_eq!(other.page(of_schedule, Order::Newest, 9).await.tasks.len(), 2);
    let far = Micros::new(one.overview().await.at.get() + 3_600_000_000);
    one.change(new("tick ü", far, Overlap::Allow)).await;
    let changed = schedules(&one).await.remove(0);
    assert_eq!((changed.revision, changed.incarnation), (2, schedule.incarnation));
    assert_eq!(fired(&one, fire(&changed, far)).await, Fired::Stale, "it has not come");
    let stranger = Fire { made: vec![(far, task())], ..fire(&changed, far) };
    one.change(new("tick ü", past, Overlap::Allow)).await;
    let changed = schedules(&one).await.remove(0);
    let stranger = Fire {
        from: past,
        revision: changed.revision,
        made: vec![(past, stranger.made[0].1.clone())],
        ..stranger
    };
    assert_eq!(refusal(one.apply(Command::Fire(stranger)).await), StateErrorKind::Invalid);
    one.change(Change::Unschedule(key("tick ü"))).await;
    assert_eq!(schedules(&one).await, []);
    let gone = one.apply(Command::Change(Change::Unschedule(key("tick ü")))).await;
    assert_eq!(refusal(gone), StateErrorKind::NotFound);
}

/// `Overlap::Skip` skips an instant while the task before is live.
pub async fn an_instant_is_skipped(handles: Handles) {
    let (one, other) = usual(handles).await;
    let at = Micros::new(one.overview().await.at.get() - 9_000_000);
    one.change(new("s", at, Overlap::Skip)).await;
    let schedule = schedules(&one).await.remove(0);
    let mut worker = other.worker();
    let nth = |n: u64| fire(&schedule, at + crate::client::seconds(n));
    assert_eq!(fired(&one, nth(0)).await, Fired::Made);
    assert_eq!(fired(&one, nth(1)).await, Fired::Skipped);
    worker.run().await;
    assert_eq!(fired(&one, nth(2)).await, Fired::Made);
    assert_eq!(one.rows().await.len(), 2);
}

/// The tasks of an instant are added all or none. The last one counts as the task before.
pub async fn an_instant_makes_a_flow(handles: Handles) {
    let (one, other) = usual(handles).await;
    let at = Micros::new(one.overview().await.at.get() - 9_000_000);
    one.change(new("s", at, Overlap::Keep)).await;
    let schedule = schedules(&one).await.remove(0);
    let mut worker = other.worker();
    let nth = |n: u64| {
        let lone = fire(&schedule, at + crate::client::seconds(n));
        let (first, mut last) = (task(), lone.made[0].1.clone());
        last.edges = vec![NewEdge { up: first.id, name: None, on_failure: OnFailure::Cancel }];
        Fire { made: vec![(lone.from, first), (lone.from, last)], ..lone }
    };
    let mut unordered = nth(0);
    unordered.made.reverse();
    assert_eq!(refusal(one.apply(Command::Fire(unordered)).await), StateErrorKind::Invalid);
    let mut dangling = nth(0);
    dangling.made[1].1.edges[0].up = task().id;
    assert_eq!(refusal(one.apply(Command::Fire(dangling)).await), StateErrorKind::NotFound);
    assert_eq!(one.rows().await, [], "no part of a flow is added");
    let flow = nth(0);
    assert_eq!(fired(&one, flow.clone()).await, Fired::Made);
    assert_eq!(fired(&other, flow.clone()).await, Fired::Stale);
    let rows = one.rows().await;
    assert_eq!(rows.len(), 2);
    assert!(rows.iter().all(|x| x.schedule.as_ref().is_some_and(|nominal| nominal.at == at)));
    let run = worker.one().await;
    assert_eq!(run.0, flow.made[0].1.id);
    worker.end(run, done()).await;
    assert_eq!(fired(&one, nth(1)).await, Fired::Kept, "the last task has not ended");
    worker.run().await;
    assert_eq!(schedules(&one).await[0].last, Some(flow.made[1].1.id));
    one.pass(std::time::Duration::from_millis(150)).await;
    assert_eq!(worker.beat().await.schedules[0].at, nth(1).from);
    assert_eq!(fired(&one, nth(1)).await, Fired::Made);
}

/// `Overlap::Keep` keeps the last instant until the task before has ended.
pub async fn an_instant_is_kept(handles: Handles) {
    let (one, other) = usual(handles).await;
    let at = Micros::new(one.overview().await.at.get() - 9_000_000);
    one.change(new("s", at, Overlap::Keep)).await;
    let schedule = schedules(&one).await.remove(0);
    let mut worker = other.worker();
    let nth = |n: u64| fire(&schedule, at + crate::client::seconds(n));
    assert_eq!(fired(&one, nth(0)).await, Fired::Made);
    let run = worker.one().await;
    assert_eq!(fired(&one, nth(1)).await, Fired::Kept);
    assert_eq!(fired(&one, nth(2)).await, Fired::Kept);
    assert_eq!(fired(&one, nth(2)).await, Fired::Kept, "it still runs");
    worker.end(run, done()).await;
    // Another worker was quicker: the last of several instants is kept.
    assert_eq!(fired(&one, nth(3)).await, Fired::Made);
    assert_eq!(fired(&one, nth(2)).await, Fired::Stale);
    let run = worker.one().await;
    assert_eq!(fired(&one, nth(4)).await, Fired::Kept);
    worker.end(run, done()).await;
    // The task before runs again.
    one.touch(Verb::Retry, [run.0]).await;
    assert_eq!(fired(&one, nth(4)).await, Fired::Kept);
    worker.run().await;
    one.pass(std::time::Duration::from_millis(150)).await;
    let due = worker.beat().await.schedules;
    assert_eq!(due[0].at, nth(4).from);
    assert_eq!(fired(&one, nth(4)).await, Fired::Made);
    let made = one.rows().await;
    let states: Vec<State> = made.iter().map(|x| x.state).collect();
    assert_eq!((made.len(), states.iter().filter(|state| state.is_ended()).count()), (3, 2));
}

/// A notified worker has one second to fire an instant; others poll soon. Neither polls at once,
/// because the schedule may be unreadable to it.
pub async fn an_instant_that_is_due_hurries_nobody(handles: Handles) {
    let (one, other) = usual(handles).await;
    let mut worker = other.worker();
    worker.beat().await;
    let now = one.overview().await.at;
    one.change(new("s", Micros::new(now.get() + 3_600_000_000), Overlap::Keep)).await;
    one.pass(std::time::Duration::from_millis(150)).await;
    let idle = |step| Step { want: 1, ..step };
    let step = idle(worker.step());
    let next = worker.send(step).await.next.unwrap();
    assert!(next > crate::client::seconds(3_500), "it comes in an hour, not in {next:?}");
    one.change(new("s", now, Overlap::Keep)).await;
    one.pass(std::time::Duration::from_millis(150)).await;
    let step = idle(worker.step());
    let stepped = worker.send(step).await;
    assert_eq!((stepped.schedules.len(), stepped.next), (1, Some(crate::client::seconds(1))));
    let step = idle(worker.step());
    let unnotified = worker.send(step).await;
    // On a slow host the worker may be notified again.
    let soon =
        if unnotified.schedules.is_empty() { Micros::from_millis(100) } else { crate::client::seconds(1) };
    assert_eq!(unnotified.next, Some(soon));
    // A kept instant that may follow is also due.
    let schedule = schedules(&one).await.remove(0);
    assert_eq!(fired(&one, fire(&schedule, now)).await, Fired::Made);
    let run = worker.one().await;
    let far = Micros::new(now.get() + 3_600_000_000);
    let next = Fire { next: Some(far), ..fire(&schedule, now + crate::client::seconds(1)) };
    one.pass(std::time::Duration::from_secs(1)).await;
    assert_eq!(fired(&one, next).await, Fired::Kept);
    worker.end(run, done()).await;
    let step = idle(worker.step());
    let follows = worker.send(step).await;
    assert!(follows.next.unwrap() <= crate::client::seconds(1), "{follows:?}");
    one.change(Change::Unschedule(key("s"))).await;
    let step = idle(worker.step());
    assert_eq!(worker.send(step).await.next, None);
}
