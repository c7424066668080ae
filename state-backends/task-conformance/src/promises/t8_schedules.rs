//! T8: each nominal instant adds exactly one task, whichever worker fires it.

use interval_queue_task_contract::{
    Change, Command, Fire, Fired, Json, NewSchedule, NewTask, Overlap, Reply, TaskId,
};

use crate::{
    Handles,
    client::{key, seconds, usual},
};

pub async fn two_workers_that_see_one_instant_make_one_task(handles: Handles) {
    let queue = usual(handles).await.0;
    let at = queue.overview().await.at;
    let definition = Json::default();
    let new =
        NewSchedule { name: key("s"), definition, next: Some(at), paused: false, overlap: Overlap::Allow };
    queue.change(Change::Schedule(new)).await;
    let mut both = Vec::new();
    for mut worker in [queue.worker(), queue.worker()] {
        queue.pass(std::time::Duration::from_secs(1)).await;
        both.extend(worker.beat().await.schedules);
    }
    assert_eq!(both.len(), 2, "both were notified of it");
    let mut fired = Vec::new();
    for due in both {
        let id = TaskId::of_schedule(due.schedule.incarnation, &due.schedule.name, due.at);
        let made = vec![(due.at, NewTask::new(id, Json::default()))];
        let (schedule, revision) = (due.schedule.name, due.schedule.revision);
        let fire = Fire { schedule, revision, from: due.at, made, next: Some(at + seconds(3_600)) };
        fired.push(queue.apply(Command::Fire(fire)).await.unwrap());
    }
    assert_eq!(fired, [Reply::Fired(Fired::Made), Reply::Fired(Fired::Stale)]);
    assert_eq!(queue.rows().await.len(), 1);
}
