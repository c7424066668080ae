//! enq: graphs of tasks, whose results are arguments of others.

use interval_queue_tasks::{
    Context, ErrorKind, Flow, OnFailure, State, Task, TaskError, TaskQueue, Verb, Worker,
};

use super::{Runs, add, number, state};
use crate::common::{finish, secs, stored};

everywhere!(a_submission_names_its_tasks_and_gives_results_on);
async fn a_submission_names_its_tasks_and_gives_results_on(one: TaskQueue, other: TaskQueue) {
    let flow = Flow::new()
        .task("a", number(2))
        .task("b", number(3))
        .task("sum", Task::new("sum", &10).after("a").after("b"));
    let added = one.add_flow(flow).await.unwrap();
    let worker = Runs::default().worker(&other).handler("sum", async |context: Context, more: u32| {
        let inputs = context.inputs().await?;
        Ok::<u32, TaskError>(inputs.get::<u32>("a")? + inputs.get::<u32>("b")? + more)
    });
    assert_eq!(finish(worker).await.done, 3);
    // Each is a future, for whoever knows its id, as often as it is asked.
    let sum = added.get("sum").unwrap();
    for queue in [&one, &other] {
        assert_eq!(queue.wait::<u32>(sum).await.unwrap(), 15);
    }
    let unknown = Flow::new().task("x", number(1)).task("y", number(2).after("nobody"));
    assert_eq!(one.add_flow(unknown).await.unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(finish(Runs::default().worker(&one)).await.done, 0, "all or none");
}

everywhere!(a_failure_for_good_fails_all_that_needs_it);
async fn a_failure_for_good_fails_all_that_needs_it(one: TaskQueue, other: TaskQueue) {
    let flow = Flow::new()
        .task("bad", Task::new("bad", &()))
        .task("next", number(1).after("bad"))
        .task("end", number(2).after("next"));
    let added = one.add_flow(flow).await.unwrap();
    let runs = Runs::default();
    let worker = runs
        .worker(&other)
        .handler("bad", async |_: Context, (): ()| Err::<(), _>(TaskError::permanent("no such thing")));
    finish(worker).await;
    assert!(runs.all().is_empty());
    assert_eq!(state(&one, added.get("end").unwrap()).await, State::Cancelled);
    let error = one.wait::<u32>(added.get("end").unwrap()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
}

everywhere!(a_failure_cancels_what_else_the_join_waited_for);
async fn a_failure_cancels_what_else_the_join_waited_for(one: TaskQueue, other: TaskQueue) {
    let flow = Flow::new()
        .task("bad", Task::new("bad", &()))
        .task("long", Task::new("long", &()))
        .task("later", number(1).after("long"))
        .task("join", number(2).after("bad").after("later"))
        .task("watch", Task::new("watch", &()).after_or("bad", OnFailure::Run));
    let added = one.add_flow(flow).await.unwrap();
    let runs = Runs::default();
    let worker = runs
        .worker(&other)
        .jobs(3)
        .handler("bad", async |_: Context, (): ()| Err::<(), _>(TaskError::permanent("no such thing")))
        .handler("long", async |context: Context, (): ()| {
            context.cancelled().await;
            Err::<(), _>(TaskError::released())
        })
        .handler("watch", async |context: Context, (): ()| {
            let inputs = context.inputs().await?;
            if let (Some(State::Failed), Some(flow)) =
                (inputs.find("bad").map(|bad| bad.state), context.flow())
            {
                context.queue().change_flow(&flow, Verb::Cancel, false).await?;
            }
            Ok::<_, TaskError>(())
        });
    finish(worker).await;
    let states = async |names: [&str; 4]| {
        let mut states = Vec::new();
        for name in names {
            states.push(state(&one, added.get(name).unwrap()).await);
        }
        states
    };
    use State::{Cancelled, Failed};
    assert_eq!(states(["bad", "long", "later", "join"]).await, [Failed, Cancelled, Cancelled, Cancelled]);
    assert!(runs.all().is_empty());
}

everywhere!(a_deadline_ends_retrying);
async fn a_deadline_ends_retrying(one: TaskQueue, other: TaskQueue) {
    let ids = add(&one, [Task::new("fails", &()).deadline(secs(1))]).await;
    let worker = Worker::builder(&other).handler("fails", async |_: Context, (): ()| {
        Err::<(), _>(TaskError::retry_after(secs(2)).because("busy"))
    });
    assert_eq!(finish(worker).await.done, 0);
    let x = stored(&one, ids[0]).await.task;
    assert_eq!((x.state, x.token.attempt), (State::Failed, 1));
    assert!(x.error.unwrap().contains("deadline"));
}
