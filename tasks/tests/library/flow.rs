//! Flows: added whole and once, run as their edges ask, waited for, and grown.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use interval_queue_tasks::{
    Added, Context, ErrorKind, Flow, FlowId, OnFailure, Selector, State, Task, TaskError, TaskId, TaskQueue,
    Verb, Worker, WorkerBuilder,
};

use crate::common::{finish, ms, queue, secs, spawned, stored};

type Done = Result<(), TaskError>;

fn id(text: &str) -> FlowId {
    FlowId::new(text).unwrap()
}

/// The kinds `ok`, whose result is its payload, `no`, which fails for good, and `sum`, which adds up its inputs.
fn worker(queue: &TaskQueue) -> WorkerBuilder {
    let sum = async |context: Context, (): ()| {
        let inputs = context.inputs().await?;
        let each = inputs.iter().map(|input| input.result.as_ref().unwrap().as_str().parse::<u64>().unwrap());
        Ok::<_, TaskError>(each.sum::<u64>())
    };
    Worker::builder(queue)
        .handler("ok", async |_: Context, n: u64| Ok::<_, TaskError>(n))
        .handler("no", async |_: Context, _: u64| Done::Err(TaskError::permanent("no such page")))
        .handler("sum", sum)
}

async fn count(queue: &TaskQueue) -> usize {
    usize::try_from(queue.count(&Selector::default(), u64::MAX).await.unwrap()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn tasks_name_each_other_and_get_inputs_by_these_names() {
    let queue = queue().await;
    let before = queue.add(Task::new("ok", &1)).await.unwrap().id();
    let flow = Flow::new()
        .task("one", Task::new("ok", &2))
        .task("two", Task::new("ok", &3).after("one"))
        .task("last", Task::new("look", &()).after("one").input("second", "two").input("old", before));
    let added = queue.add_flow(flow.clone()).await.unwrap();
    assert_eq!(added.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["one", "two", "last"]);
    assert!(added.iter().all(|(name, added_one)| added_one == Added::New(added.get(name).unwrap())));
    assert_eq!(added.get("three"), None);
    let look = async |context: Context, (): ()| {
        let inputs = context.inputs().await?;
        let all: [u64; 3] = [inputs.get("one")?, inputs.get("second")?, inputs.get("old")?];
        Ok::<_, TaskError>(all)
    };
    finish(worker(&queue).handler("look", look)).await;
    assert_eq!(queue.wait::<[u64; 3]>(added.get("last").unwrap()).await.unwrap(), [2, 3, 1]);
    let progress = queue.wait_flow(flow.id(), |_| ()).await.unwrap();
    assert_eq!((progress.tasks, progress.done, progress.to_string().as_str()), (3, 3, "3 of 3 tasks done"));
}

#[tokio::test(start_paused = true)]
async fn a_flow_that_is_added_again_adds_nothing() {
    let queue = queue().await;
    let flow = Flow::new().task("a", Task::new("ok", &1)).task("b", Task::new("ok", &2).after("a"));
    let prepared = queue.prepare(flow.clone().into_tasks().unwrap()).unwrap().tasks;
    let first = queue.add_flow(flow.clone()).await.unwrap();
    assert_eq!((prepared[0].id, prepared[1].edges[0].up), (first.get("a").unwrap(), first.get("a").unwrap()));
    let again = queue.add_flow(flow).await.unwrap();
    assert!(again.iter().all(|(name, added)| added == Added::Again(first.get(name).unwrap())));
    // One of a name is the same wherever it is made.
    let nightly = || Flow::named(id("night of May 3")).task("a", Task::new("ok", &1));
    let first = queue.add_flow(nightly()).await.unwrap();
    let more = queue.add_flow(nightly().task("b", Task::new("ok", &2).after("a"))).await.unwrap();
    let a = first.get("a").unwrap();
    assert_eq!(more.iter().map(|(_, added)| added).next(), Some(Added::Again(a)));
    assert!(matches!(more.iter().nth(1), Some(("b", Added::New(_)))));
    let other =
        queue.add_flow(Flow::named(id("night of May 4")).task("a", Task::new("ok", &1))).await.unwrap();
    assert_ne!(other.get("a"), Some(a));
    assert_eq!(count(&queue).await, 5);
}

#[tokio::test(start_paused = true)]
async fn a_flow_is_added_whole_or_not_at_all() {
    let queue = queue().await;
    let nowhere = Task::new("ok", &0).id();
    let flow = Flow::new().task("a", Task::new("ok", &1)).task("b", Task::new("ok", &2).after(nowhere));
    let flow_id = flow.id().clone();
    assert_eq!(queue.add_flow(flow).await.unwrap_err().kind(), ErrorKind::Missing);
    assert_eq!(count(&queue).await, 0);
    let error = queue.wait_flow(&flow_id, |_| ()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Missing, "{error}");
    assert!(error.to_string().contains(flow_id.as_str()), "{error}");
}

#[tokio::test(start_paused = true)]
async fn downstreams_of_a_kept_unique_task_wait_for_its_holder() {
    let queue = queue().await;
    let stands = queue.add(Task::new("ok", &7).unique("rates")).await.unwrap().id();
    let flow = Flow::new()
        .task("rates", Task::new("ok", &8).unique("rates"))
        .task("sum", Task::new("sum", &()).after("rates"));
    let added = queue.add_flow(flow).await.unwrap();
    assert_eq!(added.get("rates"), Some(stands));
    finish(worker(&queue)).await;
    assert_eq!(queue.wait::<u64>(added.get("sum").unwrap()).await.unwrap(), 7);
    assert_eq!(queue.flow(added.flow()).await.unwrap().tasks, 1, "the other one is no part of it");
}

#[tokio::test(start_paused = true)]
async fn invalid_flows_are_rejected() {
    let queue = queue().await;
    let ok = || Task::new("ok", &1);
    let twice = Flow::new().task("a", ok()).task("a", ok());
    let itself = Flow::new().task("a", ok().after("a"));
    let unknown = Flow::new().task("a", ok()).task("b", ok().after("c"));
    let cyclic = Flow::new().task("a", ok().after("b")).task("b", ok().after("a"));
    let many = Flow::new().tasks((0..100_000).map(|n| (n.to_string(), ok())));
    let wide = Flow::new().tasks((0..10_001).map(|n| (n.to_string(), ok())));
    let wide = wide.task("join", (0..10_001).fold(ok(), |task, n| task.after(n.to_string())));
    let double = Flow::new().task("a", ok()).task("b", ok().after("a").input("x", "a"));
    for (flow, says) in [
        (twice, "two tasks of the flow are named \"a\": give each a name of its own"),
        (itself, "task \"a\" of the flow waits for itself: let it wait for others"),
        (
            unknown,
            "task \"b\" of the flow waits for \"c\", and the flow has no task of that name: name one of the flow",
        ),
        (cyclic, "\"a\" waits for \"b\" waits for \"a\": a task cannot wait for itself"),
        (many, "100000 tasks in one flow: give it at most 20000"),
        (wide, "task \"join\" of the flow: 10001 upstreams: name at most 10000"),
        (double, "task \"b\" of the flow: task"),
        (Flow::new().task("", ok()), "name of a task in a flow \"\" is empty"),
        (Flow::new().task("x".repeat(96), ok()), "96 bytes is too long: at most 95"),
        (Flow::new().task("a", ok().priority(101)), "task \"a\" of the flow: priority 101"),
    ] {
        let error = queue.add_flow(flow).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        assert!(error.to_string().contains(says), "{error}");
    }
    assert_eq!(count(&queue).await, 0);
    let error = queue.add(ok().after("a")).await.unwrap_err();
    assert!(
        error.to_string().contains("it waits for \"a\", which is no task here: add it in a flow"),
        "{error}"
    );
    assert!(FlowId::new("x".repeat(96)).unwrap_err().to_string().contains("at most 95"));
}

#[tokio::test(start_paused = true)]
async fn a_flow_may_name_tasks_in_any_order() {
    let queue = queue().await;
    let ok = || Task::new("ok", &1);
    let flow = Flow::new().task("c", ok().after("b")).task("b", ok().after("a")).task("a", ok());
    let added = queue.add_flow(flow).await.unwrap();
    assert_eq!(added.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["a", "b", "c"]);
    assert_eq!(queue.flow(added.flow()).await.unwrap().tasks, 3);
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_fan_out_and_in() {
    let queue = queue().await;
    let name = |n: u64| format!("part {n}");
    let flow = Flow::new()
        .task("list", Task::new("ok", &0))
        .tasks((0..10_000).map(|n| (name(n), Task::new("part", &n).after("list"))))
        .task("sum", (0..10_000).map(name).fold(Task::new("sum", &()), Task::after));
    let added = queue.add_flow(flow).await.unwrap();
    let part = async |_: Context, n: u64| {
        tokio::time::sleep(ms(100)).await;
        Ok::<_, TaskError>(n)
    };
    let running = spawned(worker(&queue).handler("part", part).jobs(500).build().unwrap());
    let mut seen = Vec::new();
    let progress = queue.wait_flow(added.flow(), |progress| seen.push(progress.done)).await.unwrap();
    assert_eq!((progress.done, progress.left()), (10_002, 0));
    assert!(seen.len() > 2 && seen.is_sorted() && seen.last() == Some(&10_002), "{seen:?}");
    assert_eq!(queue.wait::<u64>(added.get("sum").unwrap()).await.unwrap(), 49_995_000);
    running.abort();
}

#[tokio::test(start_paused = true)]
async fn a_failed_wait_names_the_task_and_its_error() {
    let queue = queue().await;
    let flow = Flow::named(id("import"))
        .task("list", Task::new("ok", &0))
        .task("page 7", Task::new("no", &7).after("list"))
        .task("page 8", Task::new("ok", &8).after("list"))
        .task("store", Task::new("ok", &9).after("page 7").after("page 8"))
        .task("tell", Task::new("ok", &10).after_or("store", OnFailure::Run));
    let added = queue.add_flow(flow).await.unwrap();
    finish(worker(&queue)).await;
    let error = queue.wait_flow(added.flow(), |_| ()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Failed);
    let page = added.get("page 7").unwrap();
    let says = format!(
        "task \"page 7\" ({page}) of flow \"import\" failed: no such page; 3 of 5 tasks done, 1 failed, 1 cancelled"
    );
    assert_eq!(error.to_string(), says);
    let progress = queue.flow(added.flow()).await.unwrap();
    assert_eq!(progress.wrong.map(|task| task.id), Some(page));

    let cancelled = Flow::named(id("other")).task("a", Task::new("ok", &1).delay(secs(60)));
    let added = queue.add_flow(cancelled).await.unwrap();
    queue.change_flow(added.flow(), Verb::Cancel, false).await.unwrap();
    let error = queue.wait_flow(added.flow(), |_| ()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    assert!(
        error.to_string().contains("of flow \"other\" was cancelled: it was cancelled; 0 of 1"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_flow_that_waits_for_a_retry_is_not_waited_for() {
    let queue = queue().await;
    let flow = Flow::new()
        .task("no", Task::new("no", &0))
        .task("held", Task::new("ok", &1).after_or("no", OnFailure::Wait))
        .task("behind", Task::new("ok", &2).after("held"))
        .task("slow", Task::new("slow", &()));
    let added = queue.add_flow(flow).await.unwrap();
    let slow = async |_: Context, (): ()| {
        tokio::time::sleep(secs(100)).await;
        Done::Ok(())
    };
    let running = spawned(worker(&queue).handler("slow", slow).build().unwrap());
    let error = queue.wait_flow(added.flow(), |_| ()).await.unwrap_err();
    assert!(
        error.to_string().contains("1 of 4 tasks done, 1 failed, 2 wait until that is retried"),
        "{error}"
    );
    assert_eq!(stored(&queue, added.get("slow").unwrap()).await.task.state, State::Done, "that could go on");
    let no = queue.add(Task::new("no", &0)).await.unwrap().id();
    let outside = Flow::new()
        .task("done", Task::new("ok", &1))
        .task("held", Task::new("ok", &1).after_or(no, OnFailure::Wait));
    let added = queue.add_flow(outside).await.unwrap();
    let error = queue.wait_flow(added.flow(), |_| ()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Failed);
    assert!(error.to_string().starts_with("1 tasks of flow"), "{error}");
    assert!(
        error.to_string().ends_with("which is not of it and failed, is retried; 1 of 2 tasks done"),
        "{error}"
    );
    running.abort();
}

#[tokio::test(start_paused = true)]
async fn a_task_comes_behind_one_that_waits_or_runs_or_has_ended() {
    let queue = queue().await;
    let ended = queue.add(Task::new("ok", &1)).await.unwrap().id();
    let failed = queue.add(Task::new("no", &1)).await.unwrap().id();
    finish(worker(&queue)).await;
    let waits = queue.add(Task::new("ok", &2).delay(secs(100))).await.unwrap().id();
    let runs = queue.add(Task::new("slow", &())).await.unwrap().id();
    let slow = async |_: Context, (): ()| {
        tokio::time::sleep(secs(50)).await;
        Ok::<_, TaskError>(4)
    };
    let running = spawned(worker(&queue).handler("slow", slow).build().unwrap());
    tokio::time::sleep(secs(1)).await;
    assert_eq!(stored(&queue, runs).await.task.state, State::Leased);
    let sum = |up: TaskId| Task::new("sum", &()).after(up);
    let flow = Flow::new()
        .task("ended", sum(ended))
        .task("waits", sum(waits))
        .task("runs", sum(runs))
        .task("all", ["ended", "waits", "runs"].into_iter().fold(Task::new("sum", &()), Task::after))
        .task("failed", sum(failed));
    let added = queue.add_flow(flow).await.unwrap();
    let get = |name: &str| added.get(name).unwrap();
    assert_eq!(queue.wait::<u64>(get("ended")).await.unwrap(), 1);
    assert_eq!(stored(&queue, get("runs")).await.task.state, State::Waiting);
    let error = queue.wait_flow(added.flow(), |_| ()).await.unwrap_err();
    assert!(
        error.to_string().ends_with("; 4 of 5 tasks done, 1 cancelled"),
        "what is outside goes on: {error}"
    );
    assert_eq!(queue.wait::<u64>(get("runs")).await.unwrap(), 4);
    assert_eq!(queue.wait::<u64>(get("all")).await.unwrap(), 7);
    assert_eq!(queue.wait::<u64>(get("failed")).await.unwrap_err().kind(), ErrorKind::Cancelled);
    running.abort();
}

#[tokio::test(start_paused = true)]
async fn a_handler_adds_tasks_behind_its_own() {
    let queue = queue().await;
    let runs = Arc::new(AtomicUsize::new(0));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (counted, order) = (runs.clone(), seen.clone());
    let list = move |context: Context, pages: u64| {
        let (counted, order) = (counted.clone(), order.clone());
        async move {
            let more = Flow::named(context.flow().unwrap())
                .tasks((0..pages).map(|n| (format!("page {n}"), Task::new("page", &n).after(context.id()))));
            context.queue().add_flow(more).await?;
            tokio::time::sleep(secs(5)).await;
            order.lock().unwrap().push("list");
            match counted.fetch_add(1, Ordering::Relaxed) {
                0 => Err(TaskError::failed("after it has added them")),
                _ => Ok(()),
            }
        }
    };
    let order = seen.clone();
    let page = move |_: Context, _: u64| {
        order.lock().unwrap().push("page");
        async { Done::Ok(()) }
    };
    let added = queue.add_flow(Flow::new().task("list", Task::new("list", &3))).await.unwrap();
    let running =
        spawned(Worker::builder(&queue).handler("list", list).handler("page", page).build().unwrap());
    let progress = queue.wait_flow(added.flow(), |_| ()).await.unwrap();
    assert_eq!((progress.tasks, progress.done), (4, 4), "those that were added on the way are waited for");
    assert_eq!(*seen.lock().unwrap(), ["list", "list", "page", "page", "page"]);
    assert_eq!(runs.load(Ordering::Relaxed), 2);
    running.abort();
    let alone = queue.add(Task::new("alone", &())).await.unwrap().id();
    finish(
        Worker::builder(&queue)
            .handler("alone", async |context: Context, (): ()| Ok::<_, TaskError>(context.flow().is_none())),
    )
    .await;
    assert!(queue.wait::<bool>(alone).await.unwrap());
}
