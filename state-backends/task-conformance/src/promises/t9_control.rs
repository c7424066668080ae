//! T9: selectors and verbs, with exact dry runs. Workers are notified of runs to stop.

use interval_queue_contract::Micros;
use interval_queue_task_contract::{
    AttemptEnd, ChangeTasks, EdgeState, Json, NewTask, OnFailure, Outcome, Selector, State, Stop, Tag, Verb,
};

use crate::{
    Handles,
    client::{behind, done, in_seconds, seconds, task, touch, usual, with_key},
};

pub async fn a_dry_run_shows_what_the_real_one_touches(handles: Handles) {
    let queue = usual(handles).await.0;
    queue.add([task(), with_key("k"), with_key("k"), NewTask { not_before: in_seconds(9), ..task() }]).await;
    let mut worker = queue.worker();
    let run = worker.one().await;
    worker.end(run, done()).await;
    worker.lease(1).await;
    let soon = Verb::Delay(seconds(1));
    let tag = Verb::Tag(Tag::new("t").unwrap());
    for verb in [soon, Verb::Priority(1), tag, Verb::Release, Verb::Cancel, Verb::Retry, Verb::Purge] {
        let change = touch(verb.clone(), Selector::default());
        let before = queue.rows().await;
        let dry = queue.try_touch(ChangeTasks { dry_run: true, ..change.clone() }).await.unwrap();
        assert_eq!(queue.rows().await, before);
        let real = queue.try_touch(ChangeTasks { watermark: Some(dry.watermark), ..change }).await.unwrap();
        assert_eq!(real, dry, "{verb:?}");
        let changed = queue
            .rows()
            .await
            .iter()
            .zip(&before)
            .filter(|(is, was)| is != was)
            .map(|(is, _)| is.id)
            .collect::<Vec<_>>();
        assert!(
            real.ids.iter().all(|id| changed.contains(id)),
            "{verb:?} touched {:?}, changed {changed:?}",
            real.ids
        );
    }
}

pub async fn a_worker_hears_of_a_cancellation_with_its_next_step(handles: Handles) {
    let queue = usual(handles).await.0;
    let id = queue.add_one(task()).await;
    let mut worker = queue.worker();
    worker.one().await;
    queue.touch(Verb::Cancel, [id]).await;
    assert_eq!(queue.state(id).await, State::Leased);
    assert_eq!(worker.beat().await.stop, [(id, Stop::Cancel)]);
}

/// Downstreams see a cancelled task, whatever its worker reports; history and result keep the run's
/// outcome.
pub async fn a_task_cancelled_while_it_runs_ends_cancelled(handles: Handles) {
    let queue = usual(handles).await.0;
    let result = Json::new("7").unwrap();
    for (outcome, end, error) in [
        (Outcome::Done(result.clone()), AttemptEnd::Done, None),
        (Outcome::Error("no".into()), AttemptEnd::Error, Some("no")),
        (Outcome::Failed("never".into()), AttemptEnd::Error, Some("never")),
        (Outcome::Retry(Micros::ZERO, "later".into()), AttemptEnd::Retry, Some("later")),
        (Outcome::Released, AttemptEnd::Stopped, None),
    ] {
        let id = queue.add_one(task()).await;
        let cut = queue.add_one(behind([id], OnFailure::Cancel)).await;
        let runs = queue.add_one(behind([id], OnFailure::Run)).await;
        let mut worker = queue.worker();
        let run = worker.one().await;
        let touched = queue.try_touch(touch(Verb::Cancel, Selector::ids([id]))).await.unwrap();
        assert_eq!((touched.ids, touched.asked), (vec![id], vec![id]));
        worker.end(run, outcome.clone()).await;
        let stored = queue.stored(id).await;
        assert_eq!(stored.task.state, State::Cancelled, "{outcome:?}");
        assert!(stored.task.error.is_some_and(|error| error.starts_with("it was cancelled")), "{outcome:?}");
        let last = stored.task.history.last().unwrap();
        assert_eq!((last.token, last.end, last.error.as_deref()), (run.1, end, error));
        assert_eq!(stored.result.is_some(), end == AttemptEnd::Done, "{outcome:?}");
        worker.tidy().await;
        assert_eq!(queue.edges(cut).await, [EdgeState::Cut], "{outcome:?}");
        assert_eq!(queue.state(cut).await, State::Cancelled, "{outcome:?}");
        assert_eq!(worker.run().await, runs, "{outcome:?}");
        let touched = queue.try_touch(touch(Verb::Cancel, Selector::ids([id]))).await.unwrap();
        assert_eq!((touched.ids, touched.asked), (vec![], vec![]), "it has ended");
    }
}
