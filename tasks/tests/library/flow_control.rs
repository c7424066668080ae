//! Cancel and retry of whole flows, and from one task on.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use interval_queue_tasks::{
    AddedFlow, Context, ErrorKind, Flow, FlowId, OnFailure, State, Task, TaskError, TaskQueue, Verb, Worker,
    WorkerBuilder,
};

use crate::common::{finish, queue, stored};

/// A worker whose tasks of the kind `no` fail as long as it says so.
fn worker(queue: &TaskQueue, fails: &Arc<AtomicBool>) -> WorkerBuilder {
    let fails = fails.clone();
    let no = move |_: Context, (): ()| {
        let fails = fails.load(Ordering::Relaxed);
        async move { if fails { Err(TaskError::permanent("so")) } else { Ok(()) } }
    };
    Worker::builder(queue).handler("ok", async |_: Context, (): ()| Ok::<_, TaskError>(())).handler("no", no)
}

async fn states(queue: &TaskQueue, added: &AddedFlow) -> Vec<State> {
    let mut states = Vec::new();
    for (_, added) in added.iter() {
        states.push(stored(queue, added.id()).await.task.state);
    }
    states
}

fn ok() -> Task {
    Task::new("ok", &())
}

/// `first` before all; `no` fails; `cut` and `ran` are behind it, `end` behind `cut`; `beside` is not.
fn flow() -> Flow {
    Flow::new()
        .task("first", ok())
        .task("no", Task::new("no", &()).after("first"))
        .task("cut", ok().after("no"))
        .task("ran", ok().after_or("no", OnFailure::Run))
        .task("end", ok().after("cut"))
        .task("beside", ok().after("first"))
}

#[tokio::test(start_paused = true)]
async fn a_flow_is_retried_where_it_broke() {
    let queue = queue().await;
    let fails = Arc::new(AtomicBool::new(true));
    let added = queue.add_flow(flow()).await.unwrap();
    finish(worker(&queue, &fails)).await;
    use State::{Cancelled, Done, Failed};
    let broken = [Done, Failed, Cancelled, Done, Cancelled, Done];
    assert_eq!(states(&queue, &added).await, broken);
    let [no, cut, end] = ["no", "cut", "end"].map(|name| added.get(name).unwrap());
    let would = queue.change_flow(added.flow(), Verb::Retry, true).await.unwrap();
    assert_eq!(would.ids, [no, cut, end], "what is done stays done");
    assert_eq!(states(&queue, &added).await, broken, "a dry run changes nothing");
    fails.store(false, Ordering::Relaxed);
    assert_eq!(queue.change_flow(added.flow(), Verb::Retry, false).await.unwrap(), would);
    assert_eq!(finish(worker(&queue, &fails)).await.done, 3);
    assert_eq!(queue.wait_flow(added.flow(), |_| ()).await.unwrap().done, 6);
}

#[tokio::test(start_paused = true)]
async fn a_retry_from_one_task_on_leaves_the_rest() {
    let queue = queue().await;
    let fails = Arc::new(AtomicBool::new(true));
    let broken = flow().task("other", Task::new("no", &()));
    let added = queue.add_flow(broken).await.unwrap();
    finish(worker(&queue, &fails)).await;
    fails.store(false, Ordering::Relaxed);
    let get = |name: &str| added.get(name).unwrap();
    let touched = queue.change_from(get("no"), Verb::Retry, false).await.unwrap();
    assert_eq!(touched.ids, ["no", "cut", "end"].map(get));
    finish(worker(&queue, &fails)).await;
    assert_eq!(stored(&queue, get("end")).await.task.state, State::Done);
    assert_eq!(stored(&queue, get("other")).await.task.state, State::Failed);
    let nothing = queue.change_from(ok().id(), Verb::Retry, false).await.unwrap_err();
    assert_eq!(nothing.kind(), ErrorKind::Missing);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_from_one_task_on_takes_all_below_it() {
    let queue = queue().await;
    let fails = Arc::new(AtomicBool::new(false));
    let added = queue.add_flow(flow()).await.unwrap();
    let get = |name: &str| added.get(name).unwrap();
    // Below it are also tasks that are of no flow.
    let outside = queue.add(ok().after(get("ran"))).await.unwrap().id();
    let touched = queue.change_from(get("no"), Verb::Cancel, false).await.unwrap();
    let mut ids = touched.ids.clone();
    ids.sort();
    let mut all = ["no", "cut", "ran", "end"].map(get).to_vec();
    all.push(outside);
    all.sort();
    assert_eq!(ids, all);
    assert_eq!(finish(worker(&queue, &fails)).await.done, 2, "the first one, and the one beside");
    assert_eq!(stored(&queue, get("beside")).await.task.state, State::Done);
}

#[tokio::test(start_paused = true)]
async fn a_flow_is_cancelled_whole_and_nothing_of_it_starts() {
    let queue = queue().await;
    let fails = Arc::new(AtomicBool::new(false));
    let added = queue.add_flow(flow()).await.unwrap();
    let apart = queue.add(ok()).await.unwrap().id();
    assert_eq!(queue.change_flow(added.flow(), Verb::Cancel, false).await.unwrap().ids.len(), 6);
    assert_eq!(finish(worker(&queue, &fails)).await.done, 1);
    assert_eq!(stored(&queue, apart).await.task.state, State::Done);
    assert_eq!(states(&queue, &added).await, [State::Cancelled; 6]);
}

/// The ids of a named flow have no order, and more than one command is needed.
#[tokio::test(start_paused = true)]
async fn a_long_flow_is_retried_from_above_and_cancelled_from_below() {
    let queue = queue().await;
    let flow = Flow::named(FlowId::new("long").unwrap()).task("0", Task::new("no", &()));
    let flow = (1..1_200).fold(flow, |flow, n| flow.task(n.to_string(), ok().after((n - 1).to_string())));
    let added = queue.add_flow(flow).await.unwrap();
    let ids: Vec<_> = added.iter().map(|(_, added)| added.id()).collect();
    let sorted = |mut ids: Vec<_>| {
        ids.sort();
        ids
    };
    // Each command tells in the order of ids what it has touched.
    let would = queue.change_flow(added.flow(), Verb::Cancel, true).await.unwrap().ids;
    assert_eq!(sorted(would[..1_000].to_vec()), sorted(ids[200..].to_vec()), "the last ones first");
    let fails = Arc::new(AtomicBool::new(true));
    finish(worker(&queue, &fails)).await;
    fails.store(false, Ordering::Relaxed);
    let would = queue.change_from(ids[0], Verb::Retry, true).await.unwrap().ids;
    assert_eq!(sorted(would[..1_000].to_vec()), sorted(ids[..1_000].to_vec()), "the first ones first");
    assert_eq!(queue.change_flow(added.flow(), Verb::Retry, false).await.unwrap().ids, would);
    assert_eq!(finish(worker(&queue, &fails)).await.done, 1_200);
}

#[tokio::test(start_paused = true)]
async fn more_than_a_store_lists_are_below_a_task() {
    let queue = queue().await;
    let name = |n: u32| format!("part {n}");
    let flow = Flow::new()
        .task("list", ok())
        .tasks((0..1_500).map(|n| (name(n), ok().after("list"))))
        .task("join", (0..1_500).map(name).fold(ok(), Task::after));
    let added = queue.add_flow(flow).await.unwrap();
    let list = added.get("list").unwrap();
    assert_eq!(queue.change_from(list, Verb::Cancel, true).await.unwrap().ids.len(), 1_502);
    // Also what is in no flow.
    let up = queue.add(ok()).await.unwrap().id();
    for many in [99, 100, 1_100, 2_300] {
        let there = queue.change_from(up, Verb::Cancel, true).await.unwrap().ids.len() - 1;
        queue.add_all((there..many).map(|_| ok().after(up))).await.unwrap();
        assert_eq!(queue.change_from(up, Verb::Cancel, true).await.unwrap().ids.len(), many + 1);
    }
}

/// What is done runs again, each task behind those that it waits for; without being asked to, it stays done.
#[tokio::test(start_paused = true)]
async fn a_done_task_runs_again_with_all_its_downstreams() {
    let queue = queue().await;
    let runs = Arc::<Mutex<Vec<String>>>::default();
    let worker = || {
        let runs = runs.clone();
        Worker::builder(&queue).handler("n", move |context: Context, n: u32| {
            let runs = runs.clone();
            async move {
                let inputs = context.inputs().await?;
                let results = inputs.iter().map(|input| input.result.as_ref().unwrap().as_str());
                let sum: u32 = results.map(|result| result.parse::<u32>().unwrap()).sum();
                runs.lock().unwrap().push(format!("{n}: {sum}"));
                Ok::<_, TaskError>(sum + n + 10 * context.token().attempt)
            }
        })
    };
    let n = |n: u32| Task::new("n", &n);
    let flow = Flow::new()
        .task("a", n(1))
        .task("b", n(2).after("a"))
        .task("c", n(3).after("a").after("b"))
        .task("apart", n(4));
    let added = queue.add_flow(flow).await.unwrap();
    let get = |name: &str| added.get(name).unwrap();
    let outside = queue.add(n(5).after(get("c"))).await.unwrap().id();
    let all = || std::mem::take(&mut *runs.lock().unwrap());
    assert_eq!(finish(worker()).await.done, 5);
    all();
    assert_eq!(queue.change_from(get("b"), Verb::Retry, false).await.unwrap().ids, []);
    let would = queue.rerun_from(get("b"), true).await.unwrap().ids;
    assert_eq!(would.iter().collect::<BTreeSet<_>>(), [get("b"), get("c"), outside].iter().collect());
    assert_eq!(queue.rerun_from(get("b"), false).await.unwrap().ids, would);
    finish(worker()).await;
    // The second runs of b and c: a gave 11, b gives 11 + 2 + 20, c 11 + 33 + 3 + 20.
    assert_eq!(all(), ["2: 11", "3: 44", "5: 67"]);
    assert_eq!(queue.rerun_flow(added.flow(), false).await.unwrap().ids.len(), 4);
    finish(worker()).await;
    let again = all();
    assert_eq!(again.len(), 4, "{again:?}");
    let at = |what: &str| again.iter().position(|run| run.starts_with(what)).unwrap();
    assert!(at("1: 0") < at("2: 21") && at("2: 21") < at("3: "), "{again:?}");
    assert_eq!(queue.rerun_from(ok().id(), false).await.unwrap_err().kind(), ErrorKind::Missing);
}
