//! qless: a job server on Redis.

use interval_queue_tasks::{
    Context, Order, Selector, SettingsChange, State, Task, TaskError, TaskId, TaskQueue, Verb, Worker,
    contract::{Counted, Tag},
};
use tokio::time::sleep;

use super::{Runs, add, counted, number, state};
use crate::common::{Alive, finish, ms, spawned, stored};

everywhere!(another_priority_jumps_over_no_equals);
async fn another_priority_jumps_over_no_equals(one: TaskQueue, other: TaskQueue) {
    let ids = add(&one, (0..5).map(number)).await;
    for n in [4, 3] {
        let touched = other.change(&Selector::ids([ids[n]]), Verb::Priority(1), false).await.unwrap();
        assert_eq!(touched.ids, [ids[n]]);
    }
    other.change(&Selector::ids([ids[0]]), Verb::Priority(-1), false).await.unwrap();
    let runs = Runs::default();
    assert_eq!(finish(runs.worker(&other)).await.done, 5);
    assert_eq!(runs.all(), [3, 4, 1, 2, 0]);
}

everywhere!(all_failures_of_a_group_are_found_and_retried);
async fn all_failures_of_a_group_are_found_and_retried(one: TaskQueue, other: TaskQueue) {
    add(&one, (0..120).map(|n| Task::new("fails", &n).max_attempts(1))).await;
    let worker = Worker::builder(&other).jobs(8).handler("fails", async |_: Context, n: u32| {
        let why = if n.is_multiple_of(3) { "the disk is full" } else { "no route to host" };
        Err::<(), _>(TaskError::failed(why))
    });
    finish(worker).await;
    let failures = one.failures(&Selector::default()).await.unwrap();
    let groups: Vec<_> = failures.groups.iter().map(|group| (group.text.as_str(), group.count)).collect();
    assert_eq!(groups, [("no route to host", 80), ("the disk is full", 40)]);
    let full = Selector { error: failures.groups[1].common.clone(), ..Selector::states([State::Failed]) };
    assert_eq!(one.change(&full, Verb::Retry, false).await.unwrap().ids.len(), 40);
    assert_eq!(counted(&other, Counted::Now(State::Failed)).await, 80);
}

everywhere!(a_retry_waits_as_long_as_it_says_and_the_last_error_is_kept);
async fn a_retry_waits_as_long_as_it_says_and_the_last_error_is_kept(one: TaskQueue, other: TaskQueue) {
    let ids = add(&one, [Task::new("fails", &()).max_attempts(1)]).await;
    let worker = Worker::builder(&other).handler("fails", async |context: Context, (): ()| {
        let is_first = context.token().attempt == 1;
        let busy = || TaskError::retry_after(ms(200)).because("busy");
        Err::<(), _>(if is_first { busy() } else { TaskError::failed("gone") })
    });
    finish(worker).await;
    let x = stored(&one, ids[0]).await.task;
    assert_eq!((x.state, x.error.as_deref(), x.retries), (State::Failed, Some("gone"), 1));
    let waited = x.leased.unwrap() - x.history[0].ended;
    assert!(waited.to_duration() >= ms(200), "{waited:?}");
}

everywhere!(dependencies_come_and_go_while_a_task_waits);
async fn dependencies_come_and_go_while_a_task_waits(one: TaskQueue, other: TaskQueue) {
    let later = Task::new("n", &4).delay(ms(1_500));
    let ids = add(&one, [number(1), number(2), number(3), later, number(5)]).await;
    let change = async |of, verb| other.change(&Selector::ids([of]), verb, false).await.unwrap().ids;
    // The first one waits for the second, the fourth and the fifth for the third.
    for (down, up) in [(0, 1), (3, 2), (4, 2)] {
        assert_eq!(change(ids[down], Verb::Link(ids[up].into())).await, [ids[down]]);
    }
    assert_eq!(change(ids[4], Verb::Unlink(ids[2])).await, [ids[4]]);
    assert_eq!(change(ids[1], Verb::Link(ids[0].into())).await, [], "that one waits for it");
    let runs = Runs::default();
    assert_eq!(finish(runs.worker(&other)).await.done, 5);
    let order = runs.all();
    let at = |n| order.iter().position(|&other| other == n);
    assert!(order[0] == 2 && at(2) < at(1) && at(3) < at(4) && order[4] == 4, "{order:?}");
    let [three, four] = [stored(&one, ids[2]).await.task, stored(&one, ids[3]).await.task];
    assert!(
        four.leased.unwrap() >= four.not_before && four.not_before > three.ended.unwrap(),
        "its delay holds"
    );
}

everywhere!(a_done_task_goes_on_as_the_next_stage_once);
async fn a_done_task_goes_on_as_the_next_stage_once(one: TaskQueue, other: TaskQueue) {
    let id = add(&one, [Task::new("first", &7)]).await[0];
    let runs = Runs::default();
    let worker = runs.worker(&other).handler("first", async |context: Context, n: u32| {
        let next = Task::new("n", &(n + 1)).with_id(TaskId::named(&format!("second of {}", context.id())));
        context.queue().add(next.delay(ms(300)).after(context.id())).await?;
        // The first run dies behind the add, so there are two.
        match context.token().attempt {
            1 => Err(TaskError::retry_after(ms(1))),
            _ => Ok(()),
        }
    });
    assert_eq!(finish(worker).await.done, 2);
    assert_eq!(runs.all(), [8]);
    let next = stored(&one, TaskId::named(&format!("second of {id}"))).await.task;
    // One step may complete the first and lease the next.
    assert!(next.leased.unwrap() >= next.not_before && next.leased >= stored(&one, id).await.task.ended);
}

everywhere!(tags_are_given_taken_and_found);
async fn tags_are_given_taken_and_found(one: TaskQueue, other: TaskQueue) {
    let ids = add(&one, [number(1).tag("a"), number(2)]).await;
    let tagged = |text: &str| Selector { tags: vec![Tag::new(text).unwrap()], ..Selector::default() };
    other.change(&Selector::ids([ids[1]]), Verb::Tag(Tag::new("b").unwrap()), false).await.unwrap();
    other.change(&tagged("a"), Verb::Untag(Tag::new("a").unwrap()), false).await.unwrap();
    let found = async |text| {
        let page = one.page(&tagged(text), Order::Oldest, 9, false).await.unwrap();
        page.tasks.iter().map(|stored| stored.task.id).collect::<Vec<_>>()
    };
    assert_eq!((found("a").await, found("b").await), (vec![], vec![ids[1]]));
    add(&other, [number(3).tag("c").tag("b"), number(4).tag("a").tag("b")]).await;
    let most_used = one.tags(&Selector::default()).await.unwrap();
    let most_used: Vec<_> = most_used.iter().map(|(tag, count)| (tag.as_str(), *count)).collect();
    assert_eq!(most_used, [("b", 3), ("a", 1), ("c", 1)]);
}

everywhere!(a_limit_that_is_lowered_holds_for_what_comes_and_a_pause_stops_all);
async fn a_limit_that_is_lowered_holds_for_what_comes_and_a_pause_stops_all(
    one: TaskQueue,
    other: TaskQueue,
) {
    let most =
        SettingsChange { max_running: interval_queue::MaxRunning::AtMost(1), ..SettingsChange::default() };
    one.set(most).await.unwrap();
    one.pause().await.unwrap();
    let ids = add(&one, (0..6).map(number)).await;
    let (running, runs) = (Alive::default(), Alive::default());
    let (alive, most) = (running.clone(), runs.clone());
    let worker = Worker::builder(&other).jobs(4).handler("n", move |_: Context, n: u32| {
        let (guard, is_alone) = (alive.begin(), alive.count() == 1);
        let most = most.clone();
        async move {
            if !is_alone {
                std::mem::forget(most.begin());
            }
            sleep(ms(10)).await;
            drop(guard);
            Ok::<_, TaskError>(n)
        }
    });
    let worker = worker.build().unwrap();
    let (handle, ended) = (worker.handle(), spawned(worker));
    sleep(ms(100)).await;
    assert_eq!(counted(&one, Counted::EverLeased).await, 0, "it is paused");
    one.resume().await.unwrap();
    for id in ids {
        one.wait_end(id).await.unwrap();
        assert_eq!(state(&one, id).await, State::Done);
    }
    handle.stop();
    ended.await.unwrap();
    assert_eq!(runs.count(), 0, "two ran at once");
}

everywhere!(each_transition_has_one_event);
async fn each_transition_has_one_event(one: TaskQueue, other: TaskQueue) {
    let mut follower = one.follow().await.unwrap();
    let ids = add(&other, (0..3).map(number)).await;
    other.change(&Selector::ids([ids[2]]), Verb::Cancel, false).await.unwrap();
    let runs = Runs::default();
    assert_eq!(finish(runs.worker(&other)).await.done, 2);
    let mut steps = vec![Vec::new(); 3];
    while steps.iter().map(Vec::len).sum::<usize>() < 8 {
        for event in follower.next().await.unwrap().events {
            let n = ids.iter().position(|id| *id == event.task).unwrap();
            steps[n].push((event.from, event.to));
        }
    }
    use State::{Cancelled, Done, Leased, Ready};
    let added = (None, Some(Ready));
    let whole = vec![added, (Some(Ready), Some(Leased)), (Some(Leased), Some(Done))];
    assert_eq!(steps, [whole.clone(), whole, vec![added, (Some(Ready), Some(Cancelled))]]);
}
