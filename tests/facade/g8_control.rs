//! G8: pause, hold and new settings act on all shards from any shard.

use interval_queue::{
    IntervalQueue, MAX_LEAD, MaxRunning, Micros, OnExisting, Rates, Reason, StartStatus, StateErrorKind,
};

use crate::common::{add_in_turn, all_done, begun, memory, ms, one, queue, shards};

#[tokio::test(start_paused = true)]
async fn a_pause_stops_every_shard_and_a_resume_starts_every_one() {
    let (state, shards, starts) = begun(3, ms(20)).await;
    let handles = add_in_turn(&shards, &starts, 60).await;
    tokio::time::sleep(ms(300)).await;
    shards[0].pause().await.unwrap();
    tokio::time::sleep(MAX_LEAD.to_duration()).await;
    let started = starts.all().len();
    tokio::time::sleep(ms(2_000)).await;
    assert_eq!(starts.all().len(), started);
    assert!(matches!(shards[2].status().await.reason, Reason::Start(StartStatus::Paused)));

    shards[1].resume().await.unwrap();
    tokio::time::timeout(ms(60 * 20), all_done(handles)).await.expect("all go on, without a tick");
    state.assert_spaced(ms(20));
}

#[tokio::test(start_paused = true)]
async fn a_hold_keeps_everybody_from_starting_until_it_ends() {
    let (state, shards, starts) = begun(2, ms(50)).await;
    let handles = add_in_turn(&shards, &starts, 20).await;
    tokio::time::sleep(ms(220)).await;
    shards[1].hold(ms(3_000)).await.unwrap();
    let before = starts.all().len();
    tokio::time::sleep(ms(2_900)).await;
    assert!(starts.all().len() <= before + 1);
    assert!(matches!(shards[0].status().await.reason, Reason::Start(StartStatus::Held { .. })));
    all_done(handles).await;
    let resumed = starts.all()[before + 1].at;
    assert!(resumed >= ms(3_219) && resumed < ms(3_400), "{resumed:?}");
    assert_eq!(starts.jobs(), (0..20).collect::<Vec<_>>());
    state.assert_spaced(ms(50));
}

#[tokio::test(start_paused = true)]
async fn a_new_interval_holds_for_all_shards_from_the_next_slot_on() {
    let (_, shards, starts) = begun(2, ms(10)).await;
    let handles = add_in_turn(&shards, &starts, 60).await;
    tokio::time::sleep(ms(105)).await;
    shards[0].set_interval(ms(40)).await.unwrap();
    let before = starts.all().len();
    all_done(handles).await;
    // What was granted within the lead before the change may still follow the old interval.
    assert!(starts.gaps()[before + 1..].iter().all(|gap| *gap >= ms(39)), "{:?}", starts.gaps());
    assert_eq!(shards[1].interval(), ms(40));
}

#[tokio::test(start_paused = true)]
async fn an_hour_set_by_mistake_is_mended_at_once() {
    let queue = one(ms(10)).await;
    queue.set_interval(ms(3_600_000)).await.unwrap();
    queue.add(async {}).await.unwrap().await.unwrap();
    let next = queue.add(async {}).await.unwrap();
    tokio::time::sleep(ms(1_000)).await;
    queue.set_interval(ms(10)).await.unwrap();
    tokio::time::timeout(ms(100), next).await.expect("the reservation shrinks with the interval").unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_running_limit_can_be_changed_while_jobs_run() {
    let (_, state) = memory();
    let shards = shards(2, &state, ms(10)).await;
    shards[0].set_max_running(MaxRunning::AtMost(1)).await.unwrap();
    let mut handles = Vec::new();
    for job in 0..6 {
        handles.push(shards[job % 2].add(tokio::time::sleep(ms(500))).await.unwrap());
    }
    tokio::time::sleep(ms(250)).await;
    assert_eq!(shards[0].running() + shards[1].running(), 1);
    let reason = shards[1].status().await.reason;
    assert!(matches!(reason, Reason::Start(StartStatus::AtMaxRunning { running: 1, limit: 1 })), "{reason}");
    shards[1].set_max_running(MaxRunning::Unlimited).await.unwrap();
    tokio::time::sleep(ms(200)).await;
    assert!(shards[0].running() + shards[1].running() >= 4);
    all_done(handles).await;
}

#[tokio::test(start_paused = true)]
async fn stored_settings_are_kept_by_default() {
    let (memory, state) = memory();
    let open = |interval, on_existing| {
        IntervalQueue::builder("test").interval(ms(interval)).on_existing(on_existing).open(state.clone())
    };
    let stored = || memory.snapshot(&queue()).unwrap();
    open(10, OnExisting::Replace).await.unwrap();
    open(20, OnExisting::Replace).await.unwrap();
    assert_eq!(stored().interval().to_duration(), ms(20));
    let before = stored();
    let kept = open(30, OnExisting::Keep).await.unwrap();
    assert_eq!((kept.interval(), stored()), (ms(20), before.clone()));
    let asked = kept.overruled_settings().unwrap();
    assert_eq!((asked.rates, asked.max_running), (Rates::every(Micros::from_millis(30)), None));
    assert_eq!(kept.status().await.overruled, Some(asked));
    let default = IntervalQueue::builder("test").interval(ms(30)).max_running(2).open(state.clone());
    let asked = default.await.unwrap().overruled_settings().unwrap();
    assert_eq!((stored(), asked.max_running), (before.clone(), Some(2)), "the default keeps, too");
    let same = IntervalQueue::builder("test").interval(ms(20)).open(state.clone()).await.unwrap();
    assert_eq!(same.overruled_settings(), None);
    let joins = IntervalQueue::builder("test").open(state.clone()).await.unwrap();
    assert_eq!(joins.overruled_settings(), None, "it asked for nothing");
    kept.set_interval(ms(30)).await.unwrap();
    assert_eq!(kept.overruled_settings(), None, "it is in force by now");
    kept.set_interval(ms(20)).await.unwrap();
    let before = stored();
    let error = open(30, OnExisting::Fail).await.unwrap_err();
    assert_eq!(error.state().unwrap().kind(), StateErrorKind::Conflict);
    assert!(error.to_string().contains("20ms") && error.to_string().contains("30ms"), "{error}");
    assert_eq!(stored(), before);
    open(20, OnExisting::Fail).await.unwrap();
    let queue = open(40, OnExisting::Replace).await.unwrap();
    queue.pause().await.unwrap();
    open(40, OnExisting::Reset).await.unwrap();
    assert!(!stored().paused);
}
