//! `add`: stores tasks, from the command line or from the lines of the input.
//!
//! `add_args` is the command line, `options` the options of a task, `lines` the input and
//! `add_progress` its progress on a terminal. `add_flow` adds tasks that wait for each other.

mod add_args;
mod add_flow;
mod add_progress;
mod lines;
mod options;

use std::{sync::Arc, time::Duration};

pub(crate) use self::{
    add_args::AddArgs,
    options::{TaskOptions, key, kind, tag},
};
use self::{
    add_progress::Progress,
    lines::{Line, Lines},
};
use crate::{
    args::Target,
    clock::now,
    exit::{DATAERR, Failure, NOINPUT, USAGE, print_as_it_is, report},
    target::{bounded, retry},
};
use interval_queue::{
    Micros,
    task_contract::{Add, Added, Command, Json, MAX_ADD, NewTask, Read, Reply, Settings, TaskStore},
};

/// How long `add` retries if the store does not answer, also when it opens the store.
const RETRY_TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) async fn run(add: AddArgs) -> Result<(), Failure> {
    if let Some(file) = &add.flow {
        return add_flow::add(&add, file).await;
    }
    let from_stdin = add.payloads == ["-"];
    if add.task.unique.is_some() && add.payloads.len() > 1 {
        let text = "--unique is for one task: give one payload, or run `add` for each";
        return Err(Failure::new(USAGE, text));
    }
    let given = if from_stdin { Vec::new() } else { given(&add.payloads)? };
    let url = &add.target.store.url;
    let mut adder =
        retry(url, RETRY_TIMEOUT, async || Adder::new(&add, add.target.store.task_store().await?).await)
            .await?;
    if !from_stdin {
        let lines = given.into_iter().map(|payload| Line { number: None, payload }).collect();
        return adder.add(lines).await;
    }
    let mut lines = Lines::of_stdin()?;
    let progress = Progress::of_stdin(add.quiet);
    let outcome = loop {
        let Some(batch) = lines.next().await else { break Ok(()) };
        let read = batch.bytes;
        if let Err(failure) = adder.add(batch.lines).await {
            break Err(failure);
        }
        progress.post(adder.added, read);
        if let Some(failure) = batch.failure {
            break Err(failure);
        }
    };
    progress.clear();
    outcome.map_err(|failure| match from_stdin {
        true => Failure { message: format!("{}; {}", failure.message, adder.so_far()), ..failure },
        false => failure,
    })
}

/// Parses the payloads on the command line.
fn given(texts: &[String]) -> Result<Vec<Json>, Failure> {
    if texts.iter().any(|text| text == "-") {
        return Err(Failure::new(USAGE, "- is stdin: give it alone, or give payloads"));
    }
    let json =
        |text: &String| Json::new(text.as_str()).map_err(|error| Failure::new(USAGE, error.to_string()));
    texts.iter().map(json).collect()
}

/// Adds tasks and counts them.
struct Adder<'a> {
    args: &'a AddArgs,
    store: Arc<dyn TaskStore>,
    settings: Settings,
    added: u64,
    /// Number of tasks sent so far.
    sequence: u32,
}

impl<'a> Adder<'a> {
    async fn new(args: &'a AddArgs, store: Arc<dyn TaskStore>) -> Result<Self, Failure> {
        let queue = &args.target.queue;
        let overview = bounded(async { Ok(store.apply(queue, Command::Read(Read::Overview)).await?) }).await;
        let settings = match overview {
            Ok(Reply::Overview(overview)) => overview.settings,
            // The queue does not exist yet: its first task creates it.
            Err(failure) if failure.code == NOINPUT => Settings::default(),
            Ok(_) => Settings::default(),
            Err(failure) => return Err(failure),
        };
        // Invalid options are invalid for every payload: check them before the first one.
        args.task.task(Json::default()).check().map_err(interval_queue::Error::from)?;
        Ok(Self { args, store, settings, added: 0, sequence: 0 })
    }

    /// Adds all `lines` or none, and prints their ids.
    async fn add(&mut self, lines: Vec<Line>) -> Result<(), Failure> {
        let mut tasks = Vec::with_capacity(lines.len());
        let mut wrong = Ok(());
        for line in lines {
            if let Err(failure) = self.check(&line) {
                wrong = Err(failure);
                break;
            }
            tasks.push(self.args.task.task(line.payload));
        }
        // From stdin, the lines before an invalid line are added.
        if wrong.is_err() && self.args.payloads != ["-"] {
            return wrong;
        }
        if !tasks.is_empty() {
            self.send(tasks).await?;
        }
        wrong
    }

    fn check(&self, line: &Line) -> Result<(), Failure> {
        let (size, most) = (line.payload.as_str().len(), self.settings.max_payload);
        if size <= most as usize {
            return Ok(());
        }
        let place = line.number.map_or("the payload".into(), |number| format!("line {number}"));
        let text = format!(
            "{place} has {size} bytes: a payload of this queue has at most {most}, so store large data elsewhere and \
             add a reference to it"
        );
        Err(Failure::new(if line.number.is_some() { DATAERR } else { USAGE }, text))
    }

    async fn send(&mut self, tasks: Vec<NewTask>) -> Result<(), Failure> {
        let ours: Vec<_> = tasks.iter().map(|task| task.id).collect();
        let add = Add { sequence: self.sequence, tasks: tasks.into(), ..Add::default() };
        // After the maximum, the order of tasks added at one instant of the store's clock starts
        // again.
        self.sequence = self.sequence.saturating_add(ours.len() as u32);
        if self.sequence > u32::MAX - MAX_ADD as u32 {
            self.sequence = 0;
        }
        let added = sent(&*self.store, &self.args.target, add).await?;
        for (added, ours) in added.iter().zip(&ours) {
            if let (Added::Kept(other), Some(name)) = (added, &self.args.task.unique) {
                report(&format!("nothing was added: task {other} holds the unique name {:?}", name.as_str()));
            } else if added.id() == *ours {
                self.added += 1;
            }
        }
        if self.args.quiet {
            return Ok(());
        }
        let ids: String = added.iter().map(|added| format!("{}\n", added.id())).collect();
        print_as_it_is(ids.as_bytes())
    }

    fn so_far(&self) -> String {
        match self.added {
            0 => "nothing was added".into(),
            1 => "the task before it was added".into(),
            added => format!("the {added} tasks before it were added"),
        }
    }
}

/// Sends an `add` until the store answers. Ids make the retries idempotent.
async fn sent(store: &dyn TaskStore, target: &Target, add: Add) -> Result<Vec<Added>, Failure> {
    let began = now();
    let mut may_have_happened = false;
    let reply = retry(&target.store.url, RETRY_TIMEOUT, async || {
        let age = Micros::from_duration(now().saturating_duration_since(began));
        let add = Command::Add(Add { age, ..add.clone() });
        // Reset below if an answer arrives.
        let before = std::mem::replace(&mut may_have_happened, true);
        bounded(async {
            let reply = store.apply(&target.queue, add).await;
            may_have_happened = before | reply.as_ref().is_err_and(|error| !error.has_no_effect());
            Ok(reply?)
        })
        .await
    });
    match reply.await {
        Ok(Reply::Added(added)) => Ok(added),
        Ok(_) => Err(Failure::new(crate::exit::SOFTWARE, "the store returned a reply of another type")),
        Err(failure) if may_have_happened => {
            let message = format!("{}; the tasks may have been added", failure.message);
            Err(Failure { message, ..failure })
        }
        Err(failure) => Err(failure),
    }
}
