//! Workers and what their handlers are given.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use futures::FutureExt;
use interval_queue_tasks::{Context, Json, OnFailure, Selector, Task, TaskError, Worker};
use tokio::time::sleep;

use crate::common::{Faulty, builder, finish, ms, now, queue, secs, spawned, stored};

type Done = Result<(), TaskError>;

#[tokio::test(start_paused = true)]
async fn kinds_have_handlers_of_their_own_types_and_share_a_state() {
    let queue = queue().await;
    let [double, shout, other] = ["double", "shout", "other"].map(|kind| Task::new(kind, &21));
    let shout = Task::new("shout", &"hey").delay(ms(10)).tag(shout.id().to_string());
    let ids = queue.add_all([double, shout, other]).await.unwrap();
    let worker = Worker::builder(&queue)
        .state(AtomicUsize::new(0))
        .handler("double", |context: Context<AtomicUsize>, n: u32| async move {
            context.state().fetch_add(1, Ordering::Relaxed);
            Ok::<_, TaskError>(n * 2)
        })
        .handler("shout", |context: Context<AtomicUsize>, text: String| async move {
            let before = context.state().load(Ordering::Relaxed);
            Ok::<_, std::io::Error>((text.to_uppercase(), before))
        });
    let totals = finish(worker).await;
    assert_eq!(totals.done, 2);
    assert_eq!(queue.wait::<u32>(ids[0].id()).await.unwrap(), 42);
    assert_eq!(queue.wait::<(String, usize)>(ids[1].id()).await.unwrap(), ("HEY".into(), 1));
    assert!(!stored(&queue, ids[2].id()).await.task.state.is_ended(), "nobody serves it");
}

#[tokio::test(start_paused = true)]
async fn a_handler_of_several_kinds_sees_the_whole_task() {
    let queue = queue().await;
    let task = Task::json("b", Json::new(r#"{"a":  1}"#).unwrap()).tag("t").deadline(secs(60));
    let id = queue.add(task).await.unwrap().id();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sees = seen.clone();
    let kinds = vec!["a".to_string(), "b".to_string()];
    let worker = Worker::builder(&queue).handler_for(kinds, move |context: Context| {
        let deadline = context.deadline().is_some();
        let tags = context.task().tags.len();
        let all =
            (context.id(), context.kind().to_string(), context.payload().to_string(), context.attempt());
        sees.lock().unwrap().push((all, context.token().attempt, deadline, tags));
        async { Ok::<_, TaskError>(Json::new("[7 ]").unwrap()) }
    });
    finish(worker).await;
    assert_eq!(*seen.lock().unwrap(), [((id, "b".into(), r#"{"a":  1}"#.into(), 1), 1, true, 1)]);
    assert_eq!(stored(&queue, id).await.result.unwrap().as_str(), "[7 ]", "byte by byte");
}

#[tokio::test(start_paused = true)]
async fn inputs_come_by_name_however_many_there_are() {
    let queue = queue().await;
    let ups: Vec<_> = (0..250).map(|n| Task::new("up", &n)).collect();
    let fails = Task::new("fails", &0).max_attempts(1);
    let mut down = Task::new("down", &()).input_or("bad", fails.id(), OnFailure::Run);
    for (n, up) in ups.iter().enumerate() {
        down = if n == 7 { down.input("seven", up.id()) } else { down.after(up.id()) };
    }
    let (id, eighth) = (down.id(), ups[8].id());
    queue.add_all(ups.into_iter().chain([fails, down])).await.unwrap();
    let worker = Worker::builder(&queue)
        .handler("up", |_: Context, n: u32| async move { Ok::<_, TaskError>(n * 10) })
        .handler("fails", |_: Context, _: u32| async move { Err::<(), _>(TaskError::permanent("no")) })
        .handler("down", move |context: Context, (): ()| async move {
            let inputs = context.inputs().await?;
            let missing = inputs.get::<u32>("nothing").unwrap_err().to_string();
            let bad = inputs.get::<u32>("bad").unwrap_err().to_string();
            assert!(missing.contains("no input \"nothing\"") && bad.contains("is failed"), "{missing} {bad}");
            let eighth: u32 = inputs.get(&eighth.to_string())?;
            Ok::<_, TaskError>((inputs.iter().count(), inputs.get::<u32>("seven")?, eighth))
        });
    finish(worker).await;
    assert_eq!(queue.wait::<(usize, u32, u32)>(id).await.unwrap(), (251, 70, 80));
}

#[tokio::test(start_paused = true)]
async fn a_handler_adds_what_it_finds() {
    let queue = queue().await;
    queue.add(Task::new("page", &3)).await.unwrap();
    let totals = finish(Worker::builder(&queue).handler("page", |context: Context, depth: u32| async move {
        if depth > 0 {
            let found = [Task::new("page", &(depth - 1)), Task::new("page", &(depth - 1))];
            context.queue().add_all(found).await?;
        }
        Done::Ok(())
    }))
    .await;
    assert_eq!(totals.done, 15);
}

#[tokio::test(start_paused = true)]
async fn progress_is_seen_by_others() {
    let queue = queue().await;
    let id = queue.add(Task::new("a", &())).await.unwrap().id();
    let worker = Worker::builder(&queue).handler("a", |context: Context, (): ()| async move {
        context.progress(3, 10, "page three");
        sleep(secs(20)).await;
        Done::Ok(())
    });
    let worker = worker.build().unwrap();
    let (handle, ended) = (worker.handle(), spawned(worker));
    sleep(secs(10)).await;
    let progress = stored(&queue, id).await.task.progress.unwrap();
    assert_eq!((progress.done, progress.total, &*progress.text), (3, 10, "page three"));
    handle.stop_within(secs(60));
    assert_eq!(ended.await.unwrap().done, 1);
}

#[tokio::test(start_paused = true)]
async fn a_log_is_stored_during_a_run_and_with_its_end() {
    let queue = queue().await;
    let id = queue.add(Task::new("a", &())).await.unwrap().id();
    let worker = Worker::builder(&queue).handler("a", |context: Context, (): ()| async move {
        context.log(format!("one\r\ntwo {}\n", "ü".repeat(600)));
        sleep(secs(20)).await;
        context.log("three");
        Err::<(), _>(TaskError::permanent("no").group("smtp v 2"))
    });
    let worker = worker.build().unwrap();
    let (handle, ended) = (worker.handle(), spawned(worker));
    sleep(secs(10)).await;
    let log = stored(&queue, id).await.log;
    let texts: Vec<_> = log.iter().map(|line| line.text.chars().take(8).collect::<String>()).collect();
    assert_eq!((texts, log[1].text.chars().count()), (vec!["one".to_owned(), "two üüüü".into()], 500));
    handle.stop_within(secs(60));
    assert_eq!(ended.await.unwrap().failed, 1);
    let stored = stored(&queue, id).await;
    let numbers: Vec<_> = stored.log.iter().map(|line| (line.number, line.token)).collect();
    assert_eq!(numbers, [1, 2, 3].map(|number| (number, stored.task.token)));
    assert_eq!(stored.task.error.as_deref(), Some("[group smtp-v-2] no"));
    let failures = queue.failures(&Selector::default()).await.unwrap();
    assert_eq!(failures.groups[0].common.as_deref(), Some("[group smtp-v-2] no"));
}

#[tokio::test(start_paused = true)]
async fn all_permits_are_used_and_refilled_at_once() {
    let store = Faulty::new();
    let queue = store.open(builder()).await;
    queue.add_all((0..100).map(|n| Task::new("a", &n))).await.unwrap();
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (seen, highest) = (running.clone(), most.clone());
    let began = now();
    let worker = Worker::builder(&queue).jobs(5).handler("a", move |_: Context, _: u32| {
        let (running, most) = (running.clone(), most.clone());
        async move {
            most.fetch_max(running.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
            sleep(ms(100)).await;
            running.fetch_sub(1, Ordering::Relaxed);
            Done::Ok(())
        }
    });
    finish(worker).await;
    assert_eq!((highest.load(Ordering::Relaxed), seen.load(Ordering::Relaxed)), (5, 0));
    assert!(began.elapsed() < ms(2_100), "no place was free for long: {:?}", began.elapsed());
    assert!(store.steps() <= 100, "results travel together: {} steps", store.steps());
}

#[tokio::test(start_paused = true)]
async fn an_idle_worker_polls_rarely_and_is_notified_at_once() {
    let store = Faulty::new();
    let queue = store.open(builder()).await;
    let worker =
        Worker::builder(&queue).handler("a", |_: Context, (): ()| async { Done::Ok(()) }).build().unwrap();
    let (handle, ended) = (worker.handle(), spawned(worker));
    sleep(secs(600)).await;
    let before = store.steps();
    sleep(secs(600)).await;
    // One in a quarter of the lease.
    assert!(store.steps() - before <= 81, "{} steps in ten minutes", store.steps() - before);
    let began = now();
    let id = queue.add(Task::new("a", &())).await.unwrap().id();
    queue.wait::<()>(id).await.unwrap();
    assert!(began.elapsed() < ms(100), "{:?}", began.elapsed());
    handle.stop();
    ended.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_most_urgent_start_first_and_one_of_a_key_at_a_time() {
    let queue = queue().await;
    let tasks = [
        ("low", -1, None),
        ("high", 1, None),
        ("one", 0, Some("k")),
        ("two", 0, Some("k")),
        ("three", 0, None),
    ];
    let tasks = tasks.map(|(name, priority, key)| {
        let task = Task::new("a", &name).priority(priority);
        if let Some(key) = key { task.key(key) } else { task }
    });
    queue.add_all(tasks).await.unwrap();
    let log = Arc::new(Mutex::new(Vec::new()));
    let logs = log.clone();
    let worker = Worker::builder(&queue).jobs(2).prefetch(0).handler("a", move |_: Context, name: String| {
        let log = logs.clone();
        async move {
            log.lock().unwrap().push(name);
            sleep(ms(100)).await;
            Done::Ok(())
        }
    });
    finish(worker).await;
    assert_eq!(*log.lock().unwrap(), ["high", "one", "two", "three", "low"]);
}

#[tokio::test(start_paused = true)]
async fn a_limit_holds_over_workers_and_keeps_all_places_busy() {
    let store = Faulty::new();
    let queue = store.open(builder().max_running(3)).await;
    queue.add_all((0..60).map(|n| Task::new("a", &n))).await.unwrap();
    let running = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
    let began = now();
    let worker = || {
        let running = running.clone();
        let worker = Worker::builder(&queue).jobs(10).handler("a", move |_: Context, _: u32| {
            let running = running.clone();
            async move {
                running.1.fetch_max(running.0.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
                sleep(ms(500)).await;
                running.0.fetch_sub(1, Ordering::Relaxed);
                Done::Ok(())
            }
        });
        finish(worker)
    };
    let (one, other) = tokio::join!(worker(), worker());
    assert_eq!((one.done + other.done, running.1.load(Ordering::Relaxed)), (60, 3));
    assert!(began.elapsed() < secs(13), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn places_of_a_limit_are_not_for_waiting() {
    let store = Faulty::new();
    let queue = store.open(builder().max_running(4)).await;
    queue.add_all((0..40).map(|n| Task::new("a", &n))).await.unwrap();
    let began = now();
    let worker = || {
        let handler = |_: Context, _: u32| sleep(ms(500)).map(Done::Ok);
        finish(Worker::builder(&queue).jobs(2).handler("a", handler))
    };
    let (one, other) = tokio::join!(worker(), worker());
    assert_eq!(one.done + other.done, 40);
    assert!(
        began.elapsed() < secs(6),
        "one worker does not keep what the other could run: {:?}",
        began.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn bad_workers_are_named() {
    let queue = queue().await;
    let handler = |_: Context, (): ()| async { Done::Ok(()) };
    let wrong = |worker: interval_queue_tasks::WorkerBuilder| worker.build().unwrap_err().to_string();
    assert!(wrong(Worker::builder(&queue)).contains("without a handler"));
    assert!(wrong(Worker::builder(&queue).handler("", handler)).contains("kind"));
    assert!(
        wrong(Worker::builder(&queue).handler("a", handler).handler("a", handler))
            .contains("kind \"a\" has two handlers")
    );
    assert!(wrong(Worker::builder(&queue).handler("a", handler).jobs(0)).contains("0 jobs at once"));
    assert!(
        wrong(Worker::builder(&queue).handler("a", handler).lease(ms(5)))
            .contains("lease 5ms: give 1 s to a day")
    );
    assert!(wrong(Worker::builder(&queue).handler("a", handler).grace(secs(1 << 20))).contains("grace"));
}
