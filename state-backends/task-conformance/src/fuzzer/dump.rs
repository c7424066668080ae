//! Reads all that a store returns about a queue.

use std::sync::Arc;

use interval_queue_contract::{QueueName, StateError, StateErrorKind};
use interval_queue_task_contract::{
    Command, MAX_PAGE, Order, Read, Reply, Selector, State, TaskStore, judge::Dump,
};

/// A missing queue gives an empty result.
pub(crate) async fn dump(store: &dyn TaskStore, queue: &QueueName) -> Result<Dump, StateError> {
    let read = async |read| store.apply(queue, Command::Read(read)).await;
    let mut dump = Dump::default();
    match read(Read::Overview).await {
        Ok(Reply::Overview(overview)) => {
            dump.settings = overview.settings;
            dump.paused = overview.paused;
            dump.counts =
                overview.counts.into_iter().map(|(kind, counted, n)| ((kind, counted), n)).collect();
            dump.kinds = overview.kinds.into_iter().map(|row| (row.kind.clone(), row)).collect();
        }
        Err(error) if error.kind() == StateErrorKind::NotFound => return Ok(dump),
        other => return Err(unexpected(other)),
    }
    let mut after = None;
    loop {
        let selector = Selector::states(State::ALL);
        let page = match read(Read::Page {
            selector,
            after: after.unwrap_or(Order::Oldest.start()),
            limit: MAX_PAGE,
            bodies: false,
        })
        .await
        {
            Ok(Reply::Page(page)) => page,
            other => return Err(unexpected(other)),
        };
        let ids = page.tasks.iter().map(|stored| stored.task.id).collect();
        match read(Read::Tasks(ids)).await {
            Ok(Reply::Tasks(tasks)) => {
                dump.tasks
                    .extend(tasks.into_iter().flatten().map(|stored| (stored.task.id, Arc::new(stored))));
            }
            other => return Err(unexpected(other)),
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    match read(Read::Schedules).await {
        Ok(Reply::Schedules(schedules)) => dump.schedules = schedules,
        other => return Err(unexpected(other)),
    }
    Ok(dump)
}

fn unexpected(reply: Result<Reply, StateError>) -> StateError {
    match reply {
        Err(error) => error,
        Ok(reply) => {
            StateError::new(StateErrorKind::Damaged, format!("the reply belongs to another read: {reply:?}"))
        }
    }
}
