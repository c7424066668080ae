//! `list`: the queues that are stored in one place.

use serde_json::json;

use crate::{
    args::List,
    duration::show,
    exit::{Failure, print},
    rate::rate,
    status,
    table::{room, table},
    target::{bounded, look},
};

pub(crate) async fn list(list: List) -> Result<(), Failure> {
    let state = list.state.open().await?;
    let names = bounded(async { Ok(state.queues().await?) }).await?;
    let mut queues = Vec::new();
    for name in names {
        // One that has gone in between is not listed.
        if let Some(found) = look(&*state, &name).await.transpose() {
            queues.push((name, found));
        }
    }
    if list.json {
        let objects: Vec<_> = queues
            .iter()
            .map(|(name, found)| match found {
                Ok(snapshot) => status::json(name, snapshot),
                Err(failure) => json!({ "queue": name.as_str(), "error": failure.message }),
            })
            .collect();
        print(&format!("{:#}", serde_json::Value::from(objects)))?;
    } else {
        let rows: Vec<_> = queues
            .iter()
            .map(|(name, found)| match found {
                Ok(snapshot) => {
                    let meters = &snapshot.record.meters;
                    let (first, longest) = (meters.first(), meters.longest());
                    let every = match first.burst {
                        1 => show(first.interval),
                        burst => format!("{}, up to {burst}", show(first.interval)),
                    };
                    [name.to_string(), every, rate(longest), snapshot.standing().to_string()]
                }
                Err(failure) => [name.to_string(), "-".into(), "-".into(), failure.message.clone()],
            })
            .collect();
        print(&table(["QUEUE", "EVERY", "RATE", "STANDING"], &rows, room()))?;
    }
    // One that cannot be read does not hide the others, but it is told.
    match queues.into_iter().find_map(|(name, found)| found.err().map(|failure| (name, failure))) {
        Some((name, failure)) => {
            Err(Failure::new(failure.code, format!("queue {name}: {}", failure.message)))
        }
        None => Ok(()),
    }
}
