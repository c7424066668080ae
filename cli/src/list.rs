//! `list`: the queues of a store, whether they have a rate limit, stored tasks, or both.

use std::collections::BTreeSet;

use interval_queue::{QueueName, SharedState, Snapshot};
use serde_json::json;

use crate::{
    args::List,
    duration::show,
    exit::{CONFIG, Failure, NOINPUT, print},
    rate::rate,
    status,
    table::{room, table},
    target::{bounded, read_queue},
    tasks::{StatusLines, Tasks},
};

/// A queue in one row.
struct Listed {
    pace: Option<Snapshot>,
    tasks: Option<StatusLines>,
}

impl Listed {
    /// Reads a queue. Returns `None` if it was deleted meanwhile.
    async fn find(
        queue: &QueueName,
        state: Option<&dyn SharedState>,
        tasks: Option<&Tasks>,
    ) -> Result<Option<Self>, Failure> {
        let pace = match state {
            Some(state) => read_queue(state, queue).await?,
            None => None,
        };
        let tasks = match tasks {
            Some(tasks) => StatusLines::find(&tasks.of(queue)).await?,
            None => None,
        };
        Ok((pace.is_some() || tasks.is_some()).then_some(Self { pace, tasks }))
    }

    fn row(&self, queue: &QueueName) -> [String; 5] {
        let (every, rate) = match &self.pace {
            Some(snapshot) => {
                let meters = &snapshot.record.meters;
                let every = match meters.first().burst {
                    1 => show(meters.first().interval),
                    burst => format!("{}, up to {burst}", show(meters.first().interval)),
                };
                (every, rate(meters.longest()))
            }
            None => ("-".into(), "-".into()),
        };
        let tasks = self.tasks.as_ref().map_or("-".into(), StatusLines::counts);
        let status = match (&self.tasks, &self.pace) {
            (Some(tasks), pace) if tasks.is_live() || pace.is_none() => tasks.facts(pace.as_ref()),
            (_, Some(snapshot)) => snapshot.start_status().to_string(),
            (_, None) => "-".into(),
        };
        [queue.to_string(), every, rate, tasks, status]
    }
}

pub(crate) async fn run(list: List) -> Result<(), Failure> {
    let tasks = Tasks::open_store_if_kept(&list.store).await?;
    let state = match list.store.shared_state().await {
        Ok(state) => Some(state),
        // A store of tasks alone has no rate limits. A store without either is an error.
        Err(failure) if tasks.is_some() && [CONFIG, NOINPUT].contains(&failure.code) => None,
        Err(failure) => return Err(failure),
    };
    let mut names = BTreeSet::new();
    if let Some(state) = &state {
        names.extend(bounded(async { Ok(state.queues().await?) }).await?);
    }
    if let Some(tasks) = &tasks {
        names.extend(tasks.queues().await?);
    }
    let mut queues = Vec::new();
    for name in names {
        let found = Listed::find(&name, state.as_deref(), tasks.as_ref()).await.transpose();
        queues.extend(found.map(|found| (name, found)));
    }
    if list.json {
        let objects: Vec<_> = queues
            .iter()
            .map(|(name, found)| match found {
                Ok(found) => status::json(name, found.pace.as_ref(), found.tasks.as_ref()),
                Err(failure) => json!({ "queue": name.as_str(), "error": failure.message }),
            })
            .collect();
        print(&format!("{:#}", serde_json::Value::from(objects)))?;
    } else {
        let none = || String::from("-");
        let rows: Vec<_> = queues
            .iter()
            .map(|(name, found)| match found {
                Ok(found) => found.row(name),
                Err(failure) => [name.to_string(), none(), none(), none(), failure.message.clone()],
            })
            .collect();
        print(&table(["QUEUE", "EVERY", "RATE", "TASKS", "STATUS"], &rows, room()))?;
    }
    // An unreadable queue does not hide the others, but is reported.
    match queues.into_iter().find_map(|(name, found)| found.err().map(|failure| (name, failure))) {
        Some((name, failure)) => {
            Err(Failure::new(failure.code, format!("queue {name}: {}", failure.message)))
        }
        None => Ok(()),
    }
}
