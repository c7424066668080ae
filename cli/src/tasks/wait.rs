//! `tasks wait`: waits until tasks, or a flow, have ended.

use std::{
    io::{self, IsTerminal},
    time::Duration,
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use interval_queue::task_contract::State;
use interval_queue_tasks::{FlowId, FlowProgress, TaskQueue, name_in_flow};
use serde_json::json;
use tokio::time::timeout;

use super::{open_queue, queue_tasks::Tasks, task_args::Wait, task_words};
use crate::{
    args::Target,
    duration::show,
    exit::{Failure, SOME_FAILED, TIMED_OUT, print, print_as_it_is, report},
    object::one_line,
};

pub(super) async fn wait(target: &Target, tasks: &Tasks, wait: &Wait) -> Result<(), Failure> {
    // Opening a queue would create it.
    tasks.now().await?;
    let queue = open_queue(target).await?;
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
        let limit = show(wait.timeout.unwrap_or_default());
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
        let wrong = last.wrong.as_ref().map(|task| {
            json!({ "id": task.id, "name": name_in_flow(task), "state": task.state.as_str(), "error": task.error })
        });
        let (tasks, done, failed, cancelled) = (last.tasks, last.done, last.failed, last.cancelled);
        bar.suspend(|| {
            print(&format!(
                "{:#}",
                json!({
                    "flow": flow, "tasks": tasks, "done": done, "failed": failed, "cancelled": cancelled, "wrong": wrong,
                })
            ))
        })?;
    }
    ended.map(drop).map_err(|error| Failure::from(&error))
}

/// Prints the result of each task, in the order of the ids.
async fn each(queue: &TaskQueue, wait: &Wait, bar: &ProgressBar) -> Result<(), Failure> {
    bar.set_length(wait.ids.len() as u64);
    let mut failed = 0;
    for (at, &id) in wait.ids.iter().enumerate() {
        bar.set_position(at as u64);
        bar.set_message(format!("{at} of {} tasks have ended", wait.ids.len()));
        let stored = queue.wait_end(id).await.map_err(|error| Failure::from(&error))?;
        if wait.json {
            bar.suspend(|| print(&super::json::task(&stored).to_string()))?;
        }
        if stored.task.state == State::Done {
            let result = stored.result.unwrap_or_default();
            if !wait.json && !wait.quiet {
                let line = match io::stdout().is_terminal() {
                    true => task_words::line(result.as_str()).into(),
                    false => one_line(result.as_str()),
                };
                bar.suspend(|| print_as_it_is(format!("{line}\n").as_bytes()))?;
            }
            continue;
        }
        failed += 1;
        let what = if stored.task.state == State::Failed { "failed" } else { "was cancelled" };
        let why = stored.task.error.as_deref().map_or("no error text".into(), task_words::line);
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

/// The progress bar on a terminal.
pub(super) fn bar(quiet: bool) -> ProgressBar {
    let is_seen = !quiet && io::stderr().is_terminal();
    let target = if is_seen { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let style = ProgressStyle::with_template("[{bar:16}] {wide_msg}");
    let style = style.unwrap_or_else(|_| ProgressStyle::default_spinner()).progress_chars("=> ");
    ProgressBar::with_draw_target(None, target).with_style(style)
}
