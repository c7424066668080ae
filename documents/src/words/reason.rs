//! Why a task does not run, in words.

use interval_queue_tasks::{
    Why,
    contract::{ABOVE_ALL, Task},
};

use super::{about, resume_key, resume_kind};

/// Why a task does not run, as a sentence.
pub fn why(task: &Task, why: &Why) -> String {
    match why {
        Why::NoStep => "it was added, and no worker has checked its gates yet".into(),
        Why::Upstreams => "it waits for other tasks".into(),
        Why::Time(left) => format!("its time comes in {}", about(*left)),
        Why::Key(Some(id)) => format!("task {id} of its key is ahead of it"),
        Why::Key(None) => "the limit of its key is reached".into(),
        Why::KeyPaused => match &task.key {
            Some(key) => format!("its key is paused: `{}` ends it", resume_key(key)),
            None => "its key is paused".into(),
        },
        Why::Lost => "the lease of its worker has ended: a poll of another worker takes it back".into(),
        Why::Unserved => "no live worker serves its kind".into(),
        Why::KindPaused => format!("its kind is paused: `{}` ends it", resume_kind(&task.kind)),
        Why::Paused => "the queue is paused: `interval-queue resume` ends it".into(),
        Why::Limit => "the limit of running tasks of the queue is reached".into(),
        Why::Load(least) if *least >= ABOVE_ALL => {
            "all workers of its kind are under load and take no tasks".into()
        }
        Why::Load(least) => {
            format!("all workers of its kind are under load and take only priority {least} and higher")
        }
        Why::Capacity => "no worker that serves its kind has free capacity for its weight".into(),
        Why::Next => "nothing is in its way: a worker with free capacity takes it after those ahead".into(),
        _ => "for a reason of a newer version".into(),
    }
}
