//! `add`: stores tasks, from the command line or from the lines of the input.

mod add_args;
mod add_flow;
mod add_progress;
mod lines;
mod options;

use std::time::Duration;

pub(crate) use self::{
    add_args::{AddArgs, TASK_OPTIONS},
    add_flow::read_flow,
    options::{TaskOptions, key, kind, tag},
};
use self::{
    add_progress::Progress,
    lines::{Line, Lines},
};
use crate::{
    exit::{DATAERR, Failure, TEMPFAIL, USAGE, print_as_it_is, report},
    target::retry,
};
use interval_queue_tasks::{Added, ErrorKind, Json, Settings, Task, TaskQueue};

/// If the store does not answer, also when it opens the store.
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
    let mut adder = retry(&add.target.store.url, RETRY_TIMEOUT, async || Adder::new(&add).await).await?;
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

fn given(texts: &[String]) -> Result<Vec<Json>, Failure> {
    if texts.iter().any(|text| text == "-") {
        return Err(Failure::new(USAGE, "- is stdin: give it alone, or give payloads"));
    }
    let json =
        |text: &String| Json::new(text.as_str()).map_err(|error| Failure::new(USAGE, error.to_string()));
    texts.iter().map(json).collect()
}

struct Adder<'a> {
    args: &'a AddArgs,
    /// `None`: the queue does not exist yet. Its first tasks create it.
    queue: Option<TaskQueue>,
    settings: Settings,
    added: u64,
}

impl<'a> Adder<'a> {
    async fn new(args: &'a AddArgs) -> Result<Self, Failure> {
        let (queue, settings) = match args.target.tasks_if_any().await? {
            Some((queue, overview)) => (Some(queue), overview.settings),
            None => (None, Settings::default()),
        };
        Ok(Self { args, queue, settings, added: 0 })
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
            tasks.push(self.args.task(line.payload));
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

    /// Adds tasks, until the store answers. Ids make the retries idempotent.
    async fn send(&mut self, tasks: Vec<Task>) -> Result<(), Failure> {
        let (target, queue) = (&self.args.target, &mut self.queue);
        let mut may_have_happened = false;
        let added = retry(&target.store.url, RETRY_TIMEOUT, async || {
            let queue = match queue {
                Some(queue) => queue,
                None => queue.insert(target.created_tasks_once().await?),
            };
            queue.add_all(tasks.clone()).await.map_err(|error| {
                may_have_happened |= error.kind() == ErrorKind::Unanswered;
                let failure =
                    error.state().map_or_else(|| Failure::from(&error), |state| state.clone().into());
                match error.kind() {
                    ErrorKind::Conflict if self.args.task.refuses() => Failure { code: TEMPFAIL, ..failure },
                    _ => failure,
                }
            })
        });
        let added = added.await.map_err(|failure| match may_have_happened {
            true => {
                Failure { message: format!("{}; the tasks may have been added", failure.message), ..failure }
            }
            false => failure,
        })?;
        for (added, task) in added.iter().zip(&tasks) {
            if let (Added::Kept(other), Some(name)) = (added, &self.args.task.unique) {
                report(&format!("nothing was added: task {other} holds the unique name {:?}", name.as_str()));
            } else if added.id() == task.id() {
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
