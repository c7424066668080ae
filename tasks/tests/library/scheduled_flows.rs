//! Schedules of flows: an instant adds all tasks or none, and ends with its last task.

use std::sync::{Arc, Mutex, atomic::Ordering};

use interval_queue::QueueName;
use interval_queue_tasks::{
    Context, Flow, FlowId, Missed, OnConflict, Order, Overlap, Schedule, Selector, State, StoredTask, Task,
    TaskError, TaskQueue, TaskStore, Worker, WorkerBuilder,
    contract::{Command, Read, Reply},
    name_in_flow,
};
use tokio::time::sleep;

use crate::common::{Faulty, builder, queue, secs};

/// `first` gives 20, `last` adds 1 to it.
fn flow() -> Flow {
    let last = Task::new("add", &1).after("first");
    Flow::new().task("last", last).task("first", Task::new("number", &20))
}

/// Tasks of kind `add` take `takes` seconds.
fn worker(queue: &TaskQueue, takes: u64) -> WorkerBuilder {
    let add = move |context: Context, number: u32| async move {
        sleep(secs(takes)).await;
        let first: u32 = context.inputs().await?.get("first")?;
        Ok::<_, TaskError>(first + number)
    };
    let number = async |context: Context, number: u32| {
        context.scheduled().ok_or("it has an instant")?;
        Ok::<_, TaskError>(number)
    };
    Worker::builder(queue)
        .handler("add", add)
        .handler("number", move |context, payload| Box::pin(number(context, payload)))
}

async fn tasks(queue: &TaskQueue) -> Vec<StoredTask> {
    let page = queue.page(&Selector::default(), Order::Oldest, 1_000, false).await.unwrap();
    let mut tasks: Vec<_> = page.tasks.into_iter().map(|stored| stored.task).collect();
    tasks.sort_by_key(|task| (task.added, task.position));
    tasks
}

#[tokio::test(start_paused = true)]
async fn an_instant_makes_one_flow_despite_lost_replies() {
    let store = Faulty::new();
    let queue = store.open(builder()).await;
    queue.set_schedule(Schedule::every("s", secs(10), flow())).await.unwrap();
    let mut workers = Vec::new();
    for store in [store.beside(), store.beside()] {
        let queue = store.open(builder()).await;
        workers.push((store, tokio::spawn(worker(&queue, 0).build().unwrap().run())));
    }
    for _ in 0..20 {
        sleep(secs(5)).await;
        workers[1].0.lost.store(1, Ordering::Relaxed);
    }
    workers.iter().for_each(|(_, worker)| worker.abort());
    let tasks = tasks(&queue).await;
    assert!((18..=22).contains(&tasks.len()), "{}", tasks.len());
    let mut instants = Vec::new();
    for pair in tasks.chunks(2) {
        let [first, last] = pair else { panic!("{pair:?}") };
        assert_eq!((name_in_flow(first), name_in_flow(last)), (Some("first"), Some("last")));
        assert_eq!(FlowId::of(first).unwrap().as_str(), last.id.to_string());
        assert_eq!(FlowId::of(first), FlowId::of(last));
        assert_eq!(first.schedule, last.schedule);
        instants.push(first.schedule.clone().unwrap().at);
    }
    assert!(instants.is_sorted_by(|one, next| next.get() - one.get() == 10_000_000), "{instants:?}");
    assert_eq!(queue.wait::<u32>(tasks[1].id).await.unwrap(), 21);
    let progress = queue.wait_flow(&FlowId::of(&tasks[0]).unwrap(), |_| {}).await.unwrap();
    assert_eq!(progress.tasks, 2);
}

#[tokio::test(start_paused = true)]
async fn overlap_looks_at_the_last_task() {
    for (overlap, most) in [(Overlap::Skip, 2), (Overlap::Keep, 3), (Overlap::Allow, 5)] {
        let queue = queue().await;
        queue.set_schedule(Schedule::every("s", secs(20), flow()).overlap(overlap)).await.unwrap();
        let running = tokio::spawn(worker(&queue, 30).build().unwrap().run());
        sleep(secs(81)).await;
        running.abort();
        let live = tasks(&queue).await.iter().filter(|task| !task.state.is_ended()).count();
        let made = tasks(&queue).await.len() / 2;
        assert!(made <= most && made + 1 >= most, "{overlap:?}: {made}");
        assert!(live <= if overlap == Overlap::Allow { 4 } else { 1 }, "{overlap:?}: {live}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_flow_follows_the_end_of_the_previous_one() {
    let queue = queue().await;
    queue.set_schedule(Schedule::after_end("s", secs(10), flow())).await.unwrap();
    let running = tokio::spawn(worker(&queue, 30).build().unwrap().run());
    sleep(secs(75)).await;
    running.abort();
    let tasks = tasks(&queue).await;
    assert_eq!(tasks.len(), 4);
    assert!(tasks[2].added >= tasks[1].ended.unwrap() + interval_queue::Micros::from_millis(10_000));
}

#[tokio::test(start_paused = true)]
async fn a_scheduled_flow_can_be_added_now() {
    let queue = queue().await;
    queue.set_schedule(Schedule::every("s", secs(3_600), flow()).paused()).await.unwrap();
    let ids = [queue.run_schedule("s").await.unwrap().id(), queue.run_schedule("s").await.unwrap().id()];
    let seen = Arc::new(Mutex::new(0));
    let note = seen.clone();
    let number = move |_: Context, number: u32| {
        *note.lock().unwrap() += 1;
        async move { Ok::<_, TaskError>(number) }
    };
    let add = async |context: Context, number: u32| {
        Ok::<_, TaskError>(context.inputs().await?.get::<u32>("first")? + number)
    };
    let worker = Worker::builder(&queue).handler("number", number);
    let worker = worker.handler("add", move |context, number| Box::pin(add(context, number)));
    worker.build().unwrap().run_until_empty().await.unwrap();
    assert_eq!(*seen.lock().unwrap(), 2);
    for id in ids {
        assert_eq!(queue.wait::<u32>(id).await.unwrap(), 21);
    }
    assert!(tasks(&queue).await.iter().all(|task| task.state == State::Done));
}

#[tokio::test]
async fn an_unchanged_scheduled_flow_is_left_alone() {
    let store = Faulty::new();
    let queue = store.open(builder()).await;
    let revision = async || {
        let read = Command::Read(Read::Schedules);
        match store.apply(&QueueName::new("test").unwrap(), read).await.unwrap() {
            Reply::Schedules(schedules) => schedules[0].revision,
            other => panic!("{other:?}"),
        }
    };
    for _ in 0..2 {
        queue.set_schedule(Schedule::every("s", secs(10), flow())).await.unwrap();
        assert_eq!(revision().await, 1);
    }
    let other = flow().task("more", Task::new("add", &2).after("first").after("last"));
    queue.set_schedule(Schedule::every("s", secs(10), other)).await.unwrap();
    assert_eq!(revision().await, 2);
}

#[tokio::test]
async fn a_flow_that_cannot_be_added_again_is_no_template() {
    let queue = queue().await;
    let stored = queue.add(Task::new("k", &())).await.unwrap().id();
    let two_ends = || flow().task("other", Task::new("k", &()));
    let of = |count: usize| Flow::new().tasks((0..count).map(|n| (n.to_string(), Task::new("k", &n))));
    let task = |task: Task| Flow::new().task("one", task);
    let every = |flow: Flow| Schedule::every("s", secs(10), flow);
    let big = Task::new("k", "x".repeat(2 << 20).as_str());
    for (schedule, says) in [
        (
            every(two_ends()).overlap(Overlap::Skip),
            "task \"last\" of a schedule's flow and task \"other\" of a schedule's flow are both last",
        ),
        (Schedule::after_end("s", secs(10), two_ends()), "let one task of the flow wait for all others"),
        (every(of(0)), "0 tasks in the flow of a schedule: give 1 to 100"),
        (every(of(101)), "101 tasks in the flow of a schedule: give 1 to 100"),
        (every(of(100)).missed(Missed::UpTo(201)), "missed instants 201: give 1 to 200"),
        (every(task(Task::new("k", &()).after(stored))), "name a task of that flow"),
        (every(task(Task::new("k", &()).after("none"))), "the flow has no task of that name"),
        (every(task(Task::new("k", &()).unique("u").on_conflict(OnConflict::Refuse))), "cannot refuse"),
        (every(task(Task::new("k", &()).not_before(std::time::UNIX_EPOCH))), "no time of the clock"),
        (every(task(Task::new("k", &()).deadline_at(std::time::UNIX_EPOCH))), "no time of the clock"),
        (every(task(big).task("last", Task::new("k", &()))), "bytes: this queue stores at most"),
        (Schedule::every("s", secs(10), Task::new("k", &()).after(stored)), "give the schedule a flow"),
    ] {
        let error = queue.set_schedule(schedule).await.unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
    queue.set_schedule(every(two_ends())).await.unwrap();
    queue.set_schedule(every(of(100)).missed(Missed::UpTo(200))).await.unwrap();
}
