//! Copies and moves to another queue.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use interval_queue_tasks::{
    Context, ErrorKind, Flow, Selector, State, Task, TaskError, TaskId, TaskQueue, Transferred, Verb, Worker,
    WorkerBuilder,
    contract::{Counted, Key, MOVING},
};
use tokio::time::sleep;

use crate::common::{Faulty, builder, finish, ms, queue, secs, spawned, stored};

/// How often each number was run.
type Runs = Arc<Mutex<BTreeMap<u32, u32>>>;

/// A worker of numbers. What ends with 3 fails at first.
fn worker(queue: &TaskQueue, runs: &Runs) -> WorkerBuilder {
    let runs = runs.clone();
    let handler = move |_: Context, n: u32| {
        let count = {
            let mut runs = runs.lock().unwrap();
            *runs.entry(n).and_modify(|count| *count += 1).or_insert(1)
        };
        async move {
            sleep(ms(700)).await;
            if n % 10 == 3 && count == 1 { Err(TaskError::failed("not yet")) } else { Ok(n) }
        }
    };
    Worker::builder(queue).jobs(5).handler("n", handler)
}

async fn move_all(from: &TaskQueue, to: &TaskQueue) -> Transferred {
    from.move_to(to, &Selector::default(), "there", |_| {}).await.unwrap()
}

/// How many are in each of these states.
async fn counted<const N: usize>(queue: &TaskQueue, states: [State; N]) -> [u64; N] {
    let counts = queue.overview().await.unwrap().counts;
    states.map(|state| {
        let of_state = counts.iter().filter(|(_, counted, _)| *counted == Counted::Now(state));
        of_state.map(|(.., n)| n).sum()
    })
}

#[tokio::test(start_paused = true)]
async fn a_queue_is_moved_while_workers_run_at_both_ends() {
    let (from, to) = (queue().await, queue().await);
    let tasks = (0..1_500_i32).map(|n| Task::new("n", &n).priority(n % 3));
    let ids: Vec<TaskId> = from.add_all(tasks).await.unwrap().iter().map(|added| added.id()).collect();
    let runs = Runs::default();
    let one = worker(&from, &runs).build().unwrap();
    let (here, ended) = (one.handle(), spawned(one));
    let other = worker(&to, &runs).build().unwrap();
    let (there, also_ended) = (other.handle(), spawned(other));
    sleep(secs(20)).await;
    let mut told = Vec::new();
    let moved = from
        .move_to(&to, &Selector::default(), "there", |so_far| told.push((so_far.new, so_far.running)))
        .await
        .unwrap();
    assert_eq!(counted(&from, [State::Added, State::Scheduled, State::Ready, State::Leased]).await, [0; 4]);
    assert!(told.iter().any(|(_, running)| *running > 0), "what ran has followed: {told:?}");
    assert_eq!((moved.again, moved.running, moved.kept.as_slice()), (0, 0, [].as_slice()));
    here.stop();
    ended.await.unwrap();
    for &id in &ids {
        if stored(&from, id).await.task.state == State::Cancelled {
            to.wait_end(id).await.unwrap();
        }
    }
    there.stop();
    also_ended.await.unwrap();
    let [done_here, cancelled] = counted(&from, [State::Done, State::Cancelled]).await;
    let [done_there] = counted(&to, [State::Done]).await;
    assert!(done_here > 0 && done_there > 0);
    assert_eq!((done_here + done_there, cancelled), (1_500, moved.new));
    let runs = runs.lock().unwrap();
    assert_eq!(runs.len(), 1_500);
    let wrong: Vec<_> = runs.iter().filter(|&(n, count)| *count != if n % 10 == 3 { 2 } else { 1 }).collect();
    assert!(wrong.is_empty(), "ran as often as they should not: {wrong:?}");
}

#[tokio::test(start_paused = true)]
async fn a_move_that_was_interrupted_goes_on() {
    let (from, harmed) = (queue().await, Faulty::new());
    let to = harmed.open(builder()).await;
    let added = from.add_all((0..250).map(|n| Task::new("n", &n).tag("mine"))).await.unwrap();
    let all = Selector::default();
    let error = from.move_to(&to, &all, "there", |_| harmed.set_down(true)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unanswered);
    assert_eq!(counted(&from, [State::Cancelled]).await, [250], "all have left");
    harmed.set_down(false);
    assert_eq!(counted(&to, [State::Added]).await, [100], "some have arrived");
    // One that has arrived before it was said here.
    let tag = Verb::Tag(MOVING.parse().unwrap());
    from.change(&Selector::ids([added[0].id()]), tag, false).await.unwrap();
    let moved = move_all(&from, &to).await;
    assert_eq!((moved.new, moved.again), (150, 1));
    let moving = Selector { tag: Some(MOVING.parse().unwrap()), ..Selector::default() };
    for queue in [&from, &to] {
        assert_eq!(queue.page(&moving, None, 9, false).await.unwrap().tasks, []);
    }
    let again = move_all(&from, &to).await;
    assert_eq!((again.new, again.again), (0, 0), "what has arrived does not come again");
    let runs = Runs::default();
    assert_eq!(finish(worker(&to, &runs)).await.done, 250);
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_a_run_follows_it_with_its_result() {
    let (from, to) = (queue().await, queue().await);
    let flow = Flow::new()
        .task("first", Task::new("n", &1))
        .task("slow", Task::new("n", &2).after("first"))
        .task("last", Task::new("sum", &()).after("first").after("slow"))
        .task("end", Task::new("n", &4).after("last"));
    let added = from.add_flow(flow).await.unwrap();
    let sum = |context: Context, (): ()| async move {
        let inputs = context.inputs().await?;
        Ok::<u32, TaskError>(inputs.get::<u32>("first")? + inputs.get::<u32>("slow")?)
    };
    let runs = Runs::default();
    let one = worker(&from, &runs).handler("sum", sum).build().unwrap();
    let (here, ended) = (one.handle(), spawned(one));
    sleep(secs(1)).await;
    assert_eq!(stored(&from, added.get("slow").unwrap()).await.task.state, State::Leased);
    let moved = move_all(&from, &to).await;
    here.stop();
    ended.await.unwrap();
    assert_eq!((moved.new, moved.kept), (4, vec![]), "two that wait, and what they have waited for");
    assert_eq!(finish(worker(&to, &runs).handler("sum", sum)).await.done, 2);
    assert_eq!(to.wait::<u32>(added.get("last").unwrap()).await.unwrap(), 3);
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_something_that_stays_is_told() {
    let (from, to) = (queue().await, queue().await);
    let flow = Flow::new()
        .task("up", Task::new("up", &()))
        .task("down", Task::new("n", &1).after("up"))
        .task("end", Task::new("n", &2).after("down"));
    let added = from.add_flow(flow).await.unwrap();
    let get = |name| added.get(name).unwrap();
    let kind = Selector { kinds: vec!["n".to_owned().try_into().unwrap()], ..Selector::default() };
    let moved = from.move_to(&to, &kind, "there", |_| {}).await.unwrap();
    assert_eq!((moved.new, moved.kept), (0, vec![get("down"), get("end")]));
    let x = stored(&from, get("down")).await.task;
    assert_eq!((x.state, x.error.as_deref()), (State::Cancelled, Some("it was moved to there")));
    // Elsewhere there is nothing that they wait for, though it has left, too.
    let (elsewhere, below) = (queue().await, Selector::ids([get("down"), get("end")]));
    from.change(&below, Verb::Retry, false).await.unwrap();
    let ups = Selector::ids([get("up")]);
    assert_eq!(from.move_to(&to, &ups, "there", |_| {}).await.unwrap().new, 1);
    let moved = from.move_to(&elsewhere, &kind, "elsewhere", |_| {}).await.unwrap();
    assert_eq!((moved.new, moved.kept), (0, vec![get("down"), get("end")]));
    from.change(&below, Verb::Retry, false).await.unwrap();
    // Together with what they wait for they go.
    let moved = move_all(&from, &to).await;
    assert_eq!((moved.new, moved.kept), (2, vec![]));
    assert_eq!(counted(&to, [State::Added]).await, [3]);
}

#[tokio::test(start_paused = true)]
async fn a_copy_has_all_that_is_stored() {
    let (from, to) = (queue().await, queue().await);
    from.add_all((0..300).map(|n| Task::new("n", &n).key((n % 7).to_string()))).await.unwrap();
    let runs = Runs::default();
    finish(worker(&from, &runs)).await;
    let down = Task::new("n", &301).delay(secs(99));
    let up = Task::new("n", &300).delay(secs(50));
    from.add_flow(Flow::new().task("up", up).task("down", down.after("up"))).await.unwrap();
    let copied = from.copy_to(&to, &Selector::default(), |_| {}).await.unwrap();
    assert_eq!((copied.new, copied.again, copied.kept), (302, 0, vec![]));
    let again = from.copy_to(&to, &Selector::default(), |_| {}).await.unwrap();
    assert_eq!((again.new, again.again), (0, 302));
    let all =
        |queue: TaskQueue| async move { queue.page(&Selector::default(), None, 1_000, true).await.unwrap() };
    let (here, there) = (all(from).await.tasks, all(to.clone()).await.tasks);
    for (mut here, mut there) in here.into_iter().zip(there) {
        assert_eq!((&here.payload, &here.result), (&there.payload, &there.result));
        for x in [&mut here.task, &mut there.task] {
            (x.ended_tick, x.told) = (None, true);
            if !x.state.is_ended() {
                x.state = State::Added;
            }
        }
        assert_eq!(here.task, there.task);
    }
    assert_eq!(finish(worker(&to, &runs)).await.done, 2);
}

#[tokio::test(start_paused = true)]
async fn a_unique_name_goes_with_its_task_unless_it_is_taken() {
    let (from, to) = (queue().await, queue().await);
    let named = |name: &str| Task::new("n", &7).unique(name);
    from.add_all([named("a"), named("b")]).await.unwrap();
    to.add(named("b")).await.unwrap();
    assert_eq!(move_all(&from, &to).await.new, 2);
    let holds =
        |name: &str| Selector { unique: Some(Key::new(name.to_owned()).unwrap()), ..Selector::default() };
    let held = async |name| {
        let page = to.page(&holds(name), None, 9, false).await.unwrap();
        page.tasks.iter().filter(|stored| stored.task.holds_name).count()
    };
    assert_eq!((held("a").await, held("b").await), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_queue_is_not_carried_onto_itself() {
    let store = Faulty::new();
    let (one, other) = (store.open(builder()).await, store.beside().open(builder()).await);
    let id = one.add(Task::new("n", &1)).await.unwrap().id();
    let before = stored(&one, id).await;
    for error in [
        one.move_to(&other, &Selector::default(), "there", |_| {}).await.unwrap_err(),
        one.copy_to(&other, &Selector::default(), |_| {}).await.unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains("itself: name another one"), "{error}");
    }
    assert_eq!(stored(&one, id).await, before);
    let error = one.move_to(&other, &Selector::states([State::Failed]), "there", |_| {}).await.unwrap_err();
    assert_eq!(error.to_string(), "a move takes tasks that have not ended: copy those that have");
    let error = one.move_to(&other, &Selector::default(), &"x".repeat(999), |_| {}).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
}
