//! Many queues by their keys: each is opened once, kept while it is used, and dropped when it is idle.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use futures::future::join_all;
use interval_queue::{Builder, ErrorKind, IntervalQueue, IntervalQueues, MemoryState, Retry, StateErrorKind};
use interval_queue_conformance::{Faults, Faulty};
use tokio::{runtime::Handle, time::sleep};

use crate::common::{Noting, Starts, all_done, memory, ms, with_ticket};

/// Longer than an idle queue is kept.
const LONG: Duration = Duration::from_secs(61);

fn make(key: &str) -> Builder {
    IntervalQueue::builder(format!("customer/{key}")).interval(ms(100))
}

/// Queues of which idle ones are kept as long as usual.
fn queues() -> (Faulty, IntervalQueues) {
    let faulty = Faulty::new(MemoryState::new());
    (faulty.clone(), IntervalQueues::new(faulty, make))
}

/// Makes the queues look at those they keep.
async fn look(queues: &IntervalQueues) {
    drop(queues.get("another").await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_key_has_one_shard_and_keys_have_paces_of_their_own() {
    let (faulty, queues) = queues();
    let (ada, bob) = (queues.get("ada").await.unwrap(), queues.get("bob".to_owned()).await.unwrap());
    assert_eq!(ada.name().as_str(), "customer/ada");
    assert_eq!(queues.clone().get("ada").await.unwrap().shard_id(), ada.shard_id());
    assert_ne!(ada.shard_id(), bob.shard_id());
    assert_eq!((queues.len(), faulty.counts().changes), (2, 2));

    let starts = Starts::new();
    let mut handles = Vec::new();
    for job in 0..6 {
        handles.push([&ada, &bob][job % 2].add(starts.job(job)).await.unwrap());
    }
    all_done(handles).await;
    let at: Vec<_> = starts.all().iter().map(|start| start.at.as_millis() / 100).collect();
    assert_eq!(at, [0, 0, 1, 1, 2, 2]);
}

#[tokio::test(start_paused = true)]
async fn concurrent_requests_of_a_key_share_one_opening() {
    let (faulty, queues) = queues();
    faulty.set(Faults { delay_before: ms(20), ..Faults::default() });
    let got = join_all((0..100).map(|n| {
        let queues = queues.clone();
        async move {
            sleep(ms(n % 15)).await;
            queues.get("ada").await.unwrap().shard_id()
        }
    }))
    .await;
    assert!(got.iter().all(|id| *id == got[0]));
    assert_eq!((faulty.counts().total(), queues.len()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_failed_opening_fails_all_waiters_and_is_retried() {
    let (faulty, queues) = queues();
    faulty.set(Faults { lose_request: 1.0, time_out: ms(20), ..Faults::default() });
    for error in join_all((0..3).map(|_| queues.get("ada"))).await.into_iter().map(Result::unwrap_err) {
        assert_eq!(error.kind(), ErrorKind::State);
        assert_eq!(error.state().unwrap().kind(), StateErrorKind::TimedOut);
        assert!(error.to_string().starts_with(r#"key "ada": "#), "{error}");
    }
    // One opening is tried six to nine times.
    let tries = faulty.counts().total();
    assert!((2..12).contains(&tries), "{tries} tries of all together");
    assert_eq!(queues.len(), 0);
    faulty.set(Faults::default());
    queues.get("ada").await.unwrap();
    assert_eq!(queues.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_opening_ends_with_the_last_of_its_waiters() {
    let (faulty, queues) = queues();
    faulty.set(Faults { delay_before: ms(50), ..Faults::default() });
    let patient = tokio::spawn({
        let queues = queues.clone();
        async move {
            sleep(ms(5)).await;
            queues.get("ada").await.unwrap().shard_id()
        }
    });
    // The first one to ask is the first one to go.
    assert!(tokio::time::timeout(ms(20), queues.get("ada")).await.is_err());
    let id = patient.await.unwrap();
    assert_eq!(queues.get("ada").await.unwrap().shard_id(), id);
    assert_eq!(faulty.counts().total(), 1);

    for _ in 0..3 {
        assert!(tokio::time::timeout(ms(20), queues.get("bob")).await.is_err());
        sleep(Duration::from_secs(3_600)).await;
    }
    queues.get("bob").await.unwrap();
    assert_eq!(faulty.counts().total(), 5);
}

#[tokio::test(start_paused = true)]
async fn settings_that_panic_stop_no_other_key_and_not_the_next_try() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let queues = IntervalQueues::new(MemoryState::new(), move |key| {
        assert!(key != "ada" || counted.fetch_add(1, SeqCst) > 0, "no settings for ada");
        make(key)
    });
    let error = queues.get("ada").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Panicked);
    assert_eq!(error.to_string(), r#"key "ada": the opening panicked: no settings for ada"#);
    queues.get("bob").await.unwrap();
    queues.get("ada").await.unwrap();
    assert_eq!(queues.len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_panic_of_the_settings_fails_all_waiters() {
    let calls = Arc::new(AtomicUsize::new(0));
    let (counted, (go, gone)) = (calls.clone(), std::sync::mpsc::channel::<()>());
    let gone = std::sync::Mutex::new(gone);
    let queues = IntervalQueues::new(MemoryState::new(), move |key| {
        if counted.fetch_add(1, SeqCst) == 0 {
            let _ = gone.lock().unwrap().recv();
            panic!("not yet");
        }
        make(key)
    });
    let ask = || {
        let queues = queues.clone();
        tokio::spawn(async move { queues.get("ada").await.map(drop) })
    };
    let first = ask();
    while calls.load(SeqCst) == 0 {
        sleep(ms(1)).await;
    }
    let others = [ask(), ask()];
    // So that they wait, as a rule.
    sleep(ms(100)).await;
    drop(go);
    let told = join_all([first].into_iter().chain(others));
    for told in tokio::time::timeout(Duration::from_secs(30), told).await.expect("nobody waits for ever") {
        // Who was slow to ask came to the next opening.
        if let Err(error) = told.unwrap() {
            assert_eq!(error.to_string(), r#"key "ada": the opening panicked: not yet"#);
        }
    }
    queues.get("ada").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_idle_queue_is_dropped_and_reopened_with_order_and_rate() {
    let (memory, noting) = memory();
    let queues = IntervalQueues::new(noting.clone(), |key| {
        IntervalQueue::builder(format!("customer/{key}")).interval(Duration::from_secs(300))
    });
    let starts = Starts::new();
    let queue = queues.get("ada").await.unwrap();
    let (first_shard, first) = (queue.shard_id(), queue.add(starts.job(0)).await.unwrap());
    let ticket = first.ticket().await.unwrap();
    drop(queue);
    first.await.unwrap();

    sleep(LONG).await;
    look(&queues).await;
    assert_eq!(queues.len(), 1, "only the other one");
    assert_eq!(Handle::current().metrics().num_alive_tasks(), 0);

    let queue = queues.get("ada").await.unwrap();
    assert_ne!(queue.shard_id(), first_shard);
    let second = queue.add(starts.job(1)).await.unwrap();
    assert!(second.ticket().await.unwrap() > ticket);
    second.await.unwrap();
    assert!(starts.gaps()[0] >= Duration::from_secs(300), "{:?}", starts.gaps());
    noting.assert_spaced(Duration::from_secs(300));
    queue.wait_idle().await;
    assert!(memory.snapshot(queue.name()).unwrap().shards.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_queue_is_kept_for_a_while_after_its_last_use() {
    let queues = IntervalQueues::builder(make).keep_idle(ms(1_000)).open(MemoryState::new());
    let id = queues.get("ada").await.unwrap().shard_id();
    for _ in 0..5 {
        sleep(ms(900)).await;
        look(&queues).await;
        assert_eq!(queues.get("ada").await.unwrap().shard_id(), id);
    }
    sleep(ms(1_100)).await;
    assert_eq!(queues.get("ada").await.unwrap().shard_id(), id, "it was there when it was asked for");
    sleep(ms(1_100)).await;
    look(&queues).await;
    assert_ne!(queues.get("ada").await.unwrap().shard_id(), id, "nobody used it for longer than that");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_dropped_that_has_work_or_a_handle() {
    let (_, queues) = queues();
    let slow = || sleep(LONG * 3);

    // A handle, and a handle of a job that has ended.
    let held = queues.get("held").await.unwrap();
    let job = queues.get("job").await.unwrap().add(async {}).await.unwrap();
    // A running job, and one that waits behind it.
    queues.get("runs").await.unwrap().add(slow()).await.unwrap();
    let waits = queues.get("waits").await.unwrap();
    waits.hold(LONG * 3).await.unwrap();
    waits.add(async {}).await.unwrap();
    drop(waits);
    // One between two attempts.
    let retries = queues.get("backs off").await.unwrap();
    let policy = Retry::times(2).first_delay(LONG * 3).longest_delay(LONG * 4);
    retries.retrying(policy, || async { Err::<(), _>("no") }).add().await.unwrap();
    drop(retries);
    // One in a paused queue, which has neither task nor timer.
    let ran = Arc::new(AtomicUsize::new(0));
    let paused = queues.get("paused").await.unwrap();
    paused.pause().await.unwrap();
    let count = ran.clone();
    paused.add(async move { count.fetch_add(1, SeqCst) }).await.unwrap();
    drop(paused);

    for _ in 0..3 {
        sleep(LONG / 2).await;
        look(&queues).await;
        look(&queues).await;
        assert_eq!(queues.len(), 7, "six and the one that is asked for to look");
    }
    queues.get("paused").await.unwrap().resume().await.unwrap();
    drop((held, job));
    sleep(LONG * 20).await;
    assert_eq!(ran.load(SeqCst), 1);
    for _ in 0..2 {
        // They are seen to be idle only now.
        look(&queues).await;
        sleep(LONG).await;
    }
    look(&queues).await;
    assert_eq!(queues.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn too_many_idle_queues_go_at_once_the_longest_unused_first() {
    let queues = IntervalQueues::builder(make).max_kept(10).open(MemoryState::new());
    let mut ids = Vec::new();
    for key in 0..10 {
        ids.push(queues.get(key.to_string()).await.unwrap().shard_id());
    }
    // Used again, so that it is not the oldest.
    queues.get("0").await.unwrap();
    let held = queues.get("1").await.unwrap();
    for key in 10..13 {
        ids.push(queues.get(key.to_string()).await.unwrap().shard_id());
    }
    queues.get("12").await.unwrap();
    assert_eq!(queues.len(), 10);
    for (key, kept) in [("0", true), ("1", true), ("12", true), ("9", true), ("2", false), ("3", false)] {
        let id = queues.get(key).await.unwrap().shard_id();
        assert_eq!(id == ids[key.parse::<usize>().unwrap()], kept, "{key}");
    }
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn a_hundred_thousand_keys_used_once_are_not_kept() {
    let queues = IntervalQueues::builder(make).max_kept(1_000).open(MemoryState::new());
    for key in 0..100_000 {
        queues.get(key.to_string()).await.unwrap();
        assert!(queues.len() <= 1_001, "{}", queues.len());
    }
}

#[tokio::test(start_paused = true)]
async fn many_that_have_become_idle_go_while_a_few_keys_are_asked_for() {
    let (_, queues) = queues();
    join_all((0..5_000).map(|key| queues.get(key.to_string()))).await;
    sleep(LONG).await;
    for _ in 0..1_000 {
        look(&queues).await;
    }
    assert_eq!(queues.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn jobs_go_on_when_the_queues_are_gone() {
    let (_, noting) = memory();
    let queues = IntervalQueues::new(Noting::new(noting), make);
    let starts = Starts::new();
    let queue = queues.get("ada").await.unwrap();
    let handles = join_all((0..5).map(|job| queue.add(starts.job(job)))).await;
    drop((queue, queues));
    all_done(handles.into_iter().map(Result::unwrap)).await;
    assert_eq!(starts.jobs(), [0, 1, 2, 3, 4]);
}

#[tokio::test(start_paused = true)]
async fn queues_that_do_nothing_send_nothing_and_have_no_task() {
    let (faulty, queues) = queues();
    for key in 0..100 {
        queues.get(key.to_string()).await.unwrap();
    }
    let before = faulty.counts();
    sleep(Duration::from_secs(3_600)).await;
    assert_eq!(faulty.counts(), before);
    assert_eq!(Handle::current().metrics().num_alive_tasks(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_key_that_is_no_name_is_named_in_the_error() {
    let queues = IntervalQueues::new(MemoryState::new(), |key| IntervalQueue::builder(key).interval(ms(10)));
    let long = "x".repeat(201);
    for (key, says) in [
        ("", r#"key "": queue name "" is empty"#),
        ("a\n", r#"key "a\n": queue name "a\n" has a control character"#),
        (&long, &format!("key {:?}…: queue name of 201 bytes is too long", "x".repeat(64))),
    ] {
        let error = queues.get(key).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().starts_with(says), "{error}");
    }
    assert!(queues.is_empty());
}

#[tokio::test(start_paused = true)]
async fn closing_finishes_what_was_accepted_in_all_queues() {
    let (faulty, queues) = queues();
    let starts = Starts::new();
    for job in 0..6 {
        queues.get((job % 3).to_string()).await.unwrap().add(starts.job(job)).await.unwrap();
    }
    faulty.set(Faults { delay_before: ms(5), ..Faults::default() });
    let (late, mut opening) = (queues.clone(), Box::pin(queues.get("late")));
    assert!(futures::FutureExt::now_or_never(&mut opening).is_none());
    late.close().await;
    assert_eq!(starts.all().len(), 6);
    for refused in [opening.await, late.get("0").await, late.get("new").await] {
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::Closed);
    }
    assert_eq!(Handle::current().metrics().num_alive_tasks(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_ends_all_queues_at_once() {
    let (_, queues) = queues();
    let mut handles = Vec::new();
    for key in 0..3 {
        let queue = queues.get(key.to_string()).await.unwrap();
        with_ticket(&queue, sleep(LONG)).await;
        handles.push(queue.add(async {}).await.unwrap());
    }
    let ended = queues.shutdown(ms(50)).await;
    assert_eq!((ended.cancelled, ended.aborted), (3, 3));
    for handle in handles {
        assert_eq!(handle.await.unwrap_err().kind(), ErrorKind::Cancelled);
    }
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_somebody_closed_is_opened_anew() {
    let (_, queues) = queues();
    let closed = queues.get("ada").await.unwrap();
    closed.close().await;
    let again = queues.get("ada").await.unwrap();
    again.add(async {}).await.unwrap().await.unwrap();
    assert_ne!(again.shard_id(), closed.shard_id());
    assert_eq!(queues.len(), 1);
}
