//! `list`: the queues that are stored in one place.

use crate::{
    args::List,
    duration::{rate, show},
    exit::{Failure, print},
    status,
    table::table,
    target::{bounded, look},
};

pub(crate) async fn list(list: List) -> Result<(), Failure> {
    let state = list.state.open().await?;
    let names = bounded(async { Ok(state.queues().await?) }).await?;
    let mut queues = Vec::new();
    for name in names {
        // One that has gone in between is not listed.
        if let Some(snapshot) = look(&*state, &name).await? {
            queues.push((name, snapshot));
        }
    }
    if list.json {
        let objects: Vec<_> = queues.iter().map(|(name, snapshot)| status::json(name, snapshot)).collect();
        return print(&format!("{:#}", serde_json::Value::from(objects)));
    }
    let rows: Vec<_> = queues
        .iter()
        .map(|(name, snapshot)| {
            let interval = snapshot.record.interval;
            [name.to_string(), show(interval), rate(interval), snapshot.standing().to_string()]
        })
        .collect();
    print(&table(["QUEUE", "EVERY", "RATE", "STANDING"], &rows))
}
