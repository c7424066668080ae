//! `tasks wait`: waits until tasks, or a flow, have ended.

use std::{
    io::{self, IsTerminal},
    time::Duration,
};

use indicatif::ProgressBar;
use interval_queue_documents::{FlowStatus, Task, words};
use interval_queue_tasks::{FlowId, FlowProgress, State, TaskQueue};
use tokio::time::timeout;

use super::{id_arg::IdArg, task_args::Wait};
use crate::{
    args::Target,
    exit::{Failure, SOME_FAILED, TIMED_OUT, print_as_it_is, report},
    json_output::{json_line, one_line, print_json},
    progress,
};

pub(super) async fn wait(target: &Target, wait: &Wait) -> Result<(), Failure> {
    let queue = target.tasks_for_long().await?;
    let bar = bar(wait.quiet);
    let ended = async {
        match &wait.flow {
            Some(flow) => whole(&queue, flow, wait.json, &bar).await,
            None => each(&queue, wait, &bar).await,
        }
    };
    let ended = timeout(wait.timeout.unwrap_or(Duration::MAX), ended).await;
    let so_far = bar.message();
    bar.finish_and_clear();
    ended.unwrap_or_else(|_| {
        let limit = words::show(wait.timeout.unwrap_or_default());
        Err(Failure::new(TIMED_OUT, format!("not ended within {limit}: {so_far}")))
    })
}

async fn whole(queue: &TaskQueue, flow: &FlowId, json: bool, bar: &ProgressBar) -> Result<(), Failure> {
    let mut last = FlowProgress::default();
    let show_progress = |progress: &FlowProgress| {
        bar.set_length(progress.tasks);
        bar.set_position(progress.tasks - progress.left());
        bar.set_message(progress.to_string());
        last = progress.clone();
    };
    let ended = queue.wait_flow(flow, show_progress).await;
    if json && last.tasks > 0 {
        bar.suspend(|| print_json(&FlowStatus::of(flow, &last)))?;
    }
    ended.map(drop).map_err(|error| Failure::from(&error))
}

/// Prints in the order of the ids.
async fn each(queue: &TaskQueue, wait: &Wait, bar: &ProgressBar) -> Result<(), Failure> {
    bar.set_length(wait.ids.len() as u64);
    let mut failed = 0;
    for (at, id) in IdArg::ids(queue, &wait.ids).await?.into_iter().enumerate() {
        bar.set_position(at as u64);
        bar.set_message(format!("{at} of {} tasks have ended", wait.ids.len()));
        let stored = queue.wait_end(id).await.map_err(|error| Failure::from(&error))?;
        if wait.json {
            bar.suspend(|| print_as_it_is(json_line(&Task::listed(&stored)).as_bytes()))?;
        }
        if stored.task.state == State::Done {
            let result = stored.result.unwrap_or_default();
            if !wait.json && !wait.quiet {
                let line = match io::stdout().is_terminal() {
                    true => words::line(result.as_str()).into(),
                    false => one_line(result.as_str()),
                };
                bar.suspend(|| print_as_it_is(format!("{line}\n").as_bytes()))?;
            }
            continue;
        }
        failed += 1;
        let what = if stored.task.state == State::Failed { "failed" } else { "was cancelled" };
        let why = stored.task.error.as_deref().map_or("no error text".into(), words::line);
        bar.suspend(|| report(&format!("task {id} {what}: {why}")));
    }
    match failed {
        0 => Ok(()),
        _ => {
            let text = format!("{failed} of {} tasks failed or were cancelled", wait.ids.len());
            Err(Failure::new(SOME_FAILED, text))
        }
    }
}

pub(super) fn bar(quiet: bool) -> ProgressBar {
    progress::bar(!quiet && io::stderr().is_terminal(), "[{bar:16}] {wide_msg}")
}
