//! `list`: the queues of a store, whether they have a rate limit, stored tasks, or both.

use std::collections::BTreeSet;

use interval_queue::{Operators, QueueName, Snapshot};
use interval_queue_documents::{QueueStatus, Unpaced, Unreadable, words::show};
use interval_queue_tasks::TaskQueues;
use serde::Serialize;

use crate::{
    args::List,
    exit::{CONFIG, Failure, NOINPUT, print},
    json_output::print_json,
    rate::rate,
    table::{room, table},
    target::{bounded, snapshot},
    tasks::StatusLines,
};

struct Listed {
    pace: Option<Snapshot>,
    tasks: Option<StatusLines>,
}

impl Listed {
    /// Reads a queue. Returns `None` if it was deleted meanwhile.
    async fn find(
        name: &QueueName,
        operators: Option<&Operators>,
        tasks: Option<&TaskQueues>,
    ) -> Result<Option<Self>, Failure> {
        let pace = match operators {
            Some(operators) => snapshot(&operators.of(name)).await?,
            None => None,
        };
        let found = match tasks {
            Some(tasks) => tasks.find(name).await?,
            None => None,
        };
        let tasks = match found {
            Some((queue, overview)) => StatusLines::of(&queue, overview).await?,
            None => None,
        };
        Ok((pace.is_some() || tasks.is_some()).then_some(Self { pace, tasks }))
    }

    fn document(&self, name: &str) -> Option<Document> {
        let tasks = self.tasks.as_ref().map(|tasks| tasks.document(self.pace.as_ref()));
        match (&self.pace, tasks) {
            (Some(snapshot), tasks) => Some(Document::Paced(QueueStatus::of(name, snapshot, tasks))),
            (None, tasks) => Some(Document::Unpaced(Unpaced::of(name, tasks?))),
        }
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

#[derive(Serialize)]
#[serde(untagged)]
#[allow(clippy::large_enum_variant, reason = "most are large")]
enum Document {
    Paced(QueueStatus),
    Unpaced(Unpaced),
    Unreadable(Unreadable),
}

pub(crate) async fn run(list: List) -> Result<(), Failure> {
    let tasks = list.store.task_queues().await?;
    let operators = match list.store.operators().await {
        Ok(operators) => Some(operators),
        // A store of tasks alone has no rate limits. A store without either is an error.
        Err(failure) if tasks.is_some() && [CONFIG, NOINPUT].contains(&failure.code) => None,
        Err(failure) => return Err(failure),
    };
    let mut names = BTreeSet::new();
    if let Some(operators) = &operators {
        names.extend(bounded(async { Ok(operators.names().await?) }).await?);
    }
    if let Some(tasks) = &tasks {
        names.extend(bounded(async { Ok(tasks.names().await?) }).await?);
    }
    let mut queues = Vec::new();
    for name in names {
        let found = Listed::find(&name, operators.as_ref(), tasks.as_ref()).await.transpose();
        queues.extend(found.map(|found| (name, found)));
    }
    if list.json {
        let document = |(name, found): &(QueueName, Result<Listed, Failure>)| match found {
            Ok(found) => found.document(name.as_str()),
            Err(failure) => {
                let (error, queue) = (failure.message.clone(), name.to_string());
                Some(Document::Unreadable(Unreadable { error, queue }))
            }
        };
        print_json(&queues.iter().filter_map(document).collect::<Vec<_>>())?;
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
