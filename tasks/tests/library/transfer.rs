//! Copies and moves to another queue.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use interval_queue_tasks::{
    Context, ErrorKind, Flow, Order, Selector, State, Task, TaskError, TaskId, TaskQueue, Transferred, Verb,
    Worker, WorkerBuilder,
    contract::{Counted, MOVING, Why},
};
use tokio::{sync::Notify, time::sleep};

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
    let mut reports = Vec::new();
    let moved = from
        .move_to(&to, &Selector::default(), "there", |so_far| reports.push((so_far.new, so_far.running)))
        .await
        .unwrap();
    assert_eq!(counted(&from, [State::Added, State::Scheduled, State::Ready, State::Leased]).await, [0; 4]);
    assert!(reports.iter().any(|(_, running)| *running > 0), "what ran has followed: {reports:?}");
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
    assert_eq!(error.kind(), ErrorKind::Store);
    assert_eq!(counted(&from, [State::Cancelled]).await, [250], "all have left");
    harmed.set_down(false);
    assert_eq!(counted(&to, [State::Added]).await, [100], "some have arrived");
    // One that has arrived before it was said here.
    let tag = Verb::Tag(MOVING.parse().unwrap());
    from.change(&Selector::ids([added[0].id()]), tag, false).await.unwrap();
    let moved = move_all(&from, &to).await;
    assert_eq!((moved.new, moved.again), (150, 1));
    let moving = Selector { tags: vec![MOVING.parse().unwrap()], ..Selector::default() };
    for queue in [&from, &to] {
        assert_eq!(queue.page(&moving, Order::Oldest, 9, false).await.unwrap().tasks, []);
    }
    let again = move_all(&from, &to).await;
    assert_eq!((again.new, again.again), (0, 0), "what has arrived does not come again");
    let runs = Runs::default();
    assert_eq!(finish(worker(&to, &runs)).await.done, 250);
}

#[tokio::test(start_paused = true)]
async fn downstreams_of_a_run_follow_it_with_its_result() {
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
async fn tasks_that_wait_for_a_staying_task_are_reported() {
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
    let all = |queue: TaskQueue| async move {
        queue.page(&Selector::default(), Order::Oldest, 1_000, true).await.unwrap()
    };
    let (here, there) = (all(from).await.tasks, all(to.clone()).await.tasks);
    for (mut here, mut there) in here.into_iter().zip(there) {
        assert_eq!((&here.payload, &here.result), (&there.payload, &there.result));
        for x in [&mut here.task, &mut there.task] {
            (x.ended_lease_clock, x.notified) = (None, true);
            if !x.state.is_ended() {
                x.state = State::Added;
            }
        }
        assert_eq!(here.task, there.task);
    }
    assert_eq!(finish(worker(&to, &runs)).await.done, 2);
}

#[tokio::test(start_paused = true)]
async fn a_task_stays_whose_unique_name_is_taken_there() {
    let (from, to) = (queue().await, queue().await);
    let named = |name: &str| Task::new("n", &7).unique(name);
    let stays = named("b").delay(secs(60));
    let id = stays.id();
    let behind = Task::new("n", &8).after(id);
    let down = behind.id();
    from.add_all([named("a"), stays, behind]).await.unwrap();
    let holder = to.add(named("b")).await.unwrap().id();
    let copied = from.copy_to(&to, &Selector::ids([id]), |_| {}).await.unwrap();
    assert_eq!((copied.new, copied.again, copied.taken), (0, 0, vec![(id, holder)]));
    let moved = move_all(&from, &to).await;
    assert_eq!((moved.new, &moved.taken), (2, &vec![(id, holder)]));
    // It goes on where it is, and what waits for it waits for the task that has its name.
    assert_eq!(stored(&from, id).await.task.state, State::Scheduled);
    assert_eq!(stored(&to, down).await.upstreams[0].up, holder);
    let names = |all: Vec<interval_queue_tasks::contract::Stored>| {
        all.iter().filter(|one| one.task.holds_name).count()
    };
    assert_eq!(names(to.page(&Selector::default(), Order::Oldest, 9, false).await.unwrap().tasks), 2);
}

#[tokio::test(start_paused = true)]
async fn a_task_moves_once_its_unique_name_is_free_there() {
    let (from, to) = (queue().await, queue().await);
    let named = || Task::new("n", &7).unique("b").delay(secs(60));
    let id = from.add(named()).await.unwrap().id();
    let holder = to.add(named()).await.unwrap().id();
    from.add(Task::new("n", &1)).await.unwrap();
    let worker = worker(&from, &Runs::default()).build().unwrap();
    let (here, ended) = (worker.handle(), spawned(worker));
    sleep(ms(300)).await;
    let cancel = async {
        sleep(ms(100)).await;
        to.change(&Selector::ids([holder]), Verb::Cancel, false).await.unwrap();
    };
    let (moved, ()) = tokio::join!(move_all(&from, &to), cancel);
    assert_eq!((moved.new, moved.taken), (1, vec![]));
    assert_eq!(stored(&from, id).await.task.state, State::Cancelled, "it lives at one end");
    assert!(!stored(&to, id).await.task.state.is_ended());
    here.stop();
    ended.await.unwrap();
}

/// More payloads than one command searches.
#[tokio::test(start_paused = true)]
async fn a_key_that_is_selected_by_payload_leaves_by_one_command() {
    let (from, to) = (queue().await, queue().await);
    let payload = format!("{} mine", "x".repeat(200_000));
    from.add_all((0..100).map(|_| Task::new("n", &payload).key("k").ordered())).await.unwrap();
    let mine = Selector { payload: Some("mine".into()), ..Selector::default() };
    let mut left = Vec::new();
    let moved = from.move_to(&to, &mine, "there", |so_far| left.push(so_far.running)).await.unwrap();
    assert_eq!(moved.new, 100);
    assert!(left.iter().all(|left| *left == 0), "some of the key stayed: {left:?}");
}

#[tokio::test]
async fn a_move_ends_though_the_counts_are_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tasks.db");
    let from = TaskQueue::builder("from").connect(&format!("sqlite:{}", path.display())).await.unwrap();
    let to = queue().await;
    from.add_all((0..3).map(|n| Task::new("n", &n))).await.unwrap();
    let change = "UPDATE interval_queue_task_count SET number = number + 5";
    rusqlite::Connection::open(&path).unwrap().execute(change, []).unwrap();
    // Counts alone say how many of a state there are.
    let added = Selector::states([State::Added, State::Ready]);
    assert_eq!(from.count(&added, 100).await.unwrap(), 8);
    let moving = from.move_to(&to, &added, "there", |_| {});
    let moved = tokio::time::timeout(secs(60), moving).await.expect("it does not end").unwrap();
    assert_eq!((moved.new, moved.running), (3, 0));
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
    assert_eq!(error.to_string(), "a move takes tasks that have not ended: copy ended tasks");
    let error = one.move_to(&other, &Selector::default(), &"x".repeat(999), |_| {}).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
}

/// Runs say what they are, and the first one waits until it may end.
fn of_key(queue: &TaskQueue, at: &'static str, log: &Arc<Mutex<Vec<String>>>, first: &Arc<Notify>) -> Worker {
    let (log, first) = (log.clone(), first.clone());
    let handler = move |_: Context, n: u32| {
        let (log, first) = (log.clone(), first.clone());
        async move {
            log.lock().unwrap().push(format!("{n} begins {at}"));
            if n == 1 {
                first.notified().await;
            }
            sleep(ms(50)).await;
            log.lock().unwrap().push(format!("{n} ends {at}"));
            Ok::<u32, TaskError>(n)
        }
    };
    Worker::builder(queue).jobs(5).handler("n", handler).build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn tasks_of_a_key_follow_the_one_that_runs_in_their_order() {
    let (from, to) = (queue().await, queue().await);
    from.set_key_limit("k", Some(2)).await.unwrap();
    from.set_key_limit("other", Some(3)).await.unwrap();
    let tasks = (1..=5_u32).map(|n| Task::new("n", &n).key("k").ordered());
    from.add_all(tasks).await.unwrap();
    let (log, first) = (Arc::<Mutex<Vec<String>>>::default(), Arc::new(Notify::new()));
    let one = of_key(&from, "here", &log, &first);
    let (here, ended) = (one.handle(), spawned(one));
    let other = of_key(&to, "there", &log, &first);
    let (there, also_ended) = (other.handle(), spawned(other));
    sleep(secs(5)).await;
    assert_eq!(*log.lock().unwrap(), ["1 begins here"]);
    let until_it_runs_alone = async {
        sleep(secs(5)).await;
        assert_eq!(*log.lock().unwrap(), ["1 begins here"], "none overtakes it");
        let limit = from.key_limit("k").await.unwrap();
        assert_eq!(limit, Some(0), "and none starts here after it");
        first.notify_one();
    };
    let (moved, ()) = tokio::join!(move_all(&from, &to), until_it_runs_alone);
    assert_eq!(moved.new, 4);
    assert_eq!(from.key_limit("k").await.unwrap(), Some(2), "it has its limit again");
    while counted(&to, [State::Done]).await != [4] {
        sleep(ms(100)).await;
    }
    let all = (2..=5).flat_map(|n| [format!("{n} begins there"), format!("{n} ends there")]);
    let all: Vec<_> = ["1 begins here".into(), "1 ends here".into()].into_iter().chain(all).collect();
    assert_eq!(*log.lock().unwrap(), all);
    here.stop();
    ended.await.unwrap();
    there.stop();
    also_ended.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_move_leaves_a_paused_key_to_resume() {
    let (from, to) = (queue().await, queue().await);
    from.add_all((1..=3_u32).map(|n| Task::new("n", &n).key("k").ordered())).await.unwrap();
    let (log, first) = (Arc::<Mutex<Vec<String>>>::default(), Arc::new(Notify::new()));
    let one = of_key(&from, "here", &log, &first);
    let (here, ended) = (one.handle(), spawned(one));
    sleep(secs(5)).await;
    assert!(tokio::time::timeout(secs(5), move_all(&from, &to)).await.is_err(), "1 runs");
    first.notify_one();
    sleep(secs(5)).await;
    let page = from.page(&Selector::default(), Order::Oldest, 10, false).await.unwrap();
    let waiting: Vec<_> = page.tasks.iter().filter(|stored| stored.task.state == State::Blocked).collect();
    assert_eq!(waiting.len(), 2);
    assert_eq!(stored(&from, waiting[0].task.id).await.why, Some(Why::KeyPaused), "it says why");
    // It goes on where it was, or back.
    from.set_key_limit("k", None).await.unwrap();
    while counted(&from, [State::Done]).await != [3] {
        sleep(ms(100)).await;
    }
    here.stop();
    ended.await.unwrap();
}
