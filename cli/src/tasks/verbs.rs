//! `tasks cancel`, `retry`, `release`, `delay`, `priority`, `tag`, `link`, `unlink` and `purge`:
//! change selected tasks in bounded commands, or graphs of tasks in their order.

use std::collections::HashSet;

use interval_queue_documents::{Change as Document, Taken};
use interval_queue_tasks::{FlowId, MAX_TAGS, Selector, TaskId, TaskQueue, Touched, Verb};

use super::{
    opened::{require_selection, selector},
    task_args,
};
use crate::{
    args::Target,
    exit::{Failure, NOINPUT, TEMPFAIL, USAGE, print_as_it_is, report},
    json_output::print_json,
};

pub(super) async fn change(
    target: &Target,
    verb: Verb,
    args: &task_args::Change,
    is_rerun: bool,
) -> Result<(), Failure> {
    let queue = target.tasks_for_long().await?;
    let selector = selector(&queue, &args.selector).await?;
    require_selection(&selector, args.all)?;
    let flow = args.selector.flow.as_ref().filter(|flow| flow.selector() == selector);
    let is_graph = args.downstream || flow.is_some();
    if is_graph && args.limit.is_some() {
        let text = "--limit cannot change a part of a graph: leave it out, or select by --state, too";
        return Err(Failure::new(USAGE, text));
    }
    if is_rerun && !is_graph {
        let text = "--done is for graphs: give --flow ID alone, or --downstream and ids; to retry done tasks \
                    without their graph, give --state done instead";
        return Err(Failure::new(USAGE, text));
    }
    let done = if is_graph {
        let touched = in_order(&queue, flow, &selector.ids, &verb, args, is_rerun).await?;
        if !args.json {
            print_ids(&touched.ids)?;
        }
        touched
    } else {
        page_by_page(&queue, &selector, &verb, args).await?
    };
    let Done { touched, held, asked, ids, kept, running, taken } = done;
    if args.json {
        let text = |ids: &[TaskId]| ids.iter().map(ToString::to_string).collect();
        print_json(&Document {
            asked_to_stop: text(&running),
            count: touched as u64,
            dry_run: args.dry_run,
            ids: text(&ids),
            kept: text(&kept),
            taken: Taken::all(&taken),
            verb: verb.as_str(),
        })?;
    }
    if touched > 0 {
        let line = match args.dry_run {
            true => would_be_done(&verb, touched),
            false => done_in_words(&verb, touched, asked),
        };
        report(&line);
    }
    if let Some((id, holder)) = taken.first() {
        let text = match taken.len() {
            1 => format!("task {id} is not retried: task {holder} holds its unique name"),
            many => format!(
                "{many} tasks are not retried: other tasks hold their unique names; the name of {id} is held by task {holder}"
            ),
        };
        return Err(Failure::new(TEMPFAIL, text));
    }
    match (touched, held) {
        (_, 1..) => {
            let why = match verb {
                Verb::Tag(_) => format!("a task has at most {MAX_TAGS} tags"),
                Verb::Link(_) => {
                    "they would wait for themselves, have the maximum of upstreams, or too many tasks wait for them"
                        .to_owned()
                }
                _ => "other tasks still need them".to_owned(),
            };
            let text = format!("{} unchanged: {why}", number(held));
            Err(Failure::new(TEMPFAIL, text))
        }
        (0, 0) => {
            let way_out = match verb {
                Verb::Retry => "; retry a moved task at its destination",
                Verb::Purge => "; cancel tasks that have not ended first",
                _ => "",
            };
            let text = format!("the selector matches no task that can {}{way_out}", infinitive(&verb));
            Err(Failure::new(NOINPUT, text))
        }
        _ => Ok(()),
    }
}

/// Without `--json`, ids of changed tasks are printed at once and not kept.
#[derive(Default)]
struct Done {
    touched: usize,
    held: usize,
    asked: usize,
    ids: Vec<TaskId>,
    kept: Vec<TaskId>,
    running: Vec<TaskId>,
    /// Tasks that are not retried, since another task holds their unique name.
    taken: Vec<(TaskId, TaskId)>,
}

async fn page_by_page(
    queue: &TaskQueue,
    selector: &Selector,
    verb: &Verb,
    args: &task_args::Change,
) -> Result<Done, Failure> {
    let most = args.limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let (mut done, mut printed) = (Done::default(), Ok(()));
    let add = |page: &Touched| {
        done.touched += page.ids.len();
        done.held += page.kept.len();
        done.asked += page.asked.len();
        done.taken.extend(&page.taken);
        if args.json {
            done.running.extend(&page.asked);
            done.ids.extend(&page.ids);
            done.kept.extend(&page.kept);
        } else if printed.is_ok() {
            printed = print_ids(&page.ids);
        }
    };
    let changed = queue.change_in_pages(most, selector, verb.clone(), args.dry_run, add).await;
    changed.map_err(|error| {
        let failure = Failure::from(error);
        let before = match done.touched {
            0 => String::new(),
            touched => format!("; {touched} tasks were changed before"),
        };
        Failure { message: failure.message + &before, ..failure }
    })?;
    printed.map(|()| done)
}

/// A whole flow, or tasks with all their downstreams.
async fn in_order(
    queue: &TaskQueue,
    flow: Option<&FlowId>,
    ids: &[TaskId],
    verb: &Verb,
    args: &task_args::Change,
    is_rerun: bool,
) -> Result<Done, Failure> {
    let mut done = Done::default();
    // A task downstream of two named ones is counted once.
    let mut counted = HashSet::new();
    let mut add = |touched: Touched| {
        done.ids.extend(touched.ids.into_iter().filter(|id| counted.insert(*id)));
        done.kept.extend(touched.kept);
        done.running.extend(touched.asked);
        done.taken.extend(touched.taken);
        (done.touched, done.held, done.asked) = (done.ids.len(), done.kept.len(), done.running.len());
    };
    let wrong = |error| Failure::from(&error);
    match flow {
        Some(flow) if is_rerun => add(queue.rerun_flow(flow, args.dry_run).await.map_err(wrong)?),
        Some(flow) => add(queue.change_flow(flow, verb.clone(), args.dry_run).await.map_err(wrong)?),
        None => {
            for &id in ids {
                let touched = match is_rerun {
                    true => queue.rerun_from(id, args.dry_run).await,
                    false => queue.change_from(id, verb.clone(), args.dry_run).await,
                };
                add(touched.map_err(wrong)?);
            }
        }
    }
    Ok(done)
}

fn print_ids(ids: &[TaskId]) -> Result<(), Failure> {
    let lines: String = ids.iter().map(|id| format!("{id}\n")).collect();
    print_as_it_is(lines.as_bytes())
}

fn would_be_done(verb: &Verb, count: usize) -> String {
    let tasks = if count == 1 { "task" } else { "tasks" };
    format!("dry run: {count} {tasks} would {}", infinitive(verb))
}

/// For a dry run, as in "a task would be cancelled".
fn infinitive(verb: &Verb) -> &'static str {
    match verb {
        Verb::Cancel => "be cancelled",
        Verb::Retry => "be retried",
        Verb::Release => "be released",
        Verb::Delay(_) => "be delayed",
        Verb::Priority(_) => "get another priority",
        Verb::Tag(_) => "be tagged",
        Verb::Untag(_) => "lose the tag",
        Verb::Link(_) => "wait for one more task",
        Verb::Unlink(_) => "wait for one task less",
        Verb::Purge => "be purged",
        _ => "be changed",
    }
}

fn done_in_words(verb: &Verb, count: usize, asked: usize) -> String {
    let (tasks, have, wait) = if count == 1 { ("task", "has", "waits") } else { ("tasks", "have", "wait") };
    let what = match verb {
        Verb::Cancel if asked > 0 => {
            let cancelled = match count - asked {
                0 => String::new(),
                rest => format!("{} cancelled; ", number(rest)),
            };
            let tasks = number(asked);
            let ends = if asked == 1 {
                "it is cancelled when its run ends"
            } else {
                "they are cancelled when their runs end"
            };
            return format!("{cancelled}{tasks} asked to stop: {ends}");
        }
        Verb::Priority(_) => return format!("{count} {tasks} {have} another priority"),
        Verb::Untag(_) => "lost the tag",
        Verb::Link(_) => return format!("{count} {tasks} {wait} for one more task"),
        Verb::Unlink(_) => return format!("{count} {tasks} {wait} for one task less"),
        _ => infinitive(verb).trim_start_matches("be "),
    };
    format!("{count} {tasks} {what}")
}

fn number(tasks: usize) -> String {
    format!("{tasks} {}", if tasks == 1 { "task" } else { "tasks" })
}
