//! `tasks cancel`, `retry`, `release` and `purge`: done with selected tasks in bounded commands.

use interval_queue::task_contract::{Change, ChangeTasks, Command, MAX_PAGE, Reply, TaskId, Verb};
use serde_json::json;

use super::{
    args,
    ask::{Tasks, unexpected},
};
use crate::exit::{Failure, NOINPUT, TEMPFAIL, USAGE, print, print_as_it_is, say};

pub(super) async fn change(tasks: &Tasks, verb: Verb, args: &args::Change) -> Result<(), Failure> {
    let (selector, _) = tasks.selector(&args.selector).await?;
    if selector.is_all() && !args.all {
        let text = format!(
            "nothing says which tasks to {}: name some, select some by --state, --kind, …, or give --all",
            verb.as_str()
        );
        return Err(Failure::new(USAGE, text));
    }
    let mut command =
        ChangeTasks { selector, verb, after: None, watermark: None, limit: MAX_PAGE, dry_run: args.dry_run };
    let (mut ids, mut kept): (Vec<TaskId>, Vec<TaskId>) = Default::default();
    let (mut touched, mut held) = (0, 0);
    loop {
        let reply = tasks.ask(Command::Change(Change::Tasks(command.clone()))).await;
        let Ok(Reply::Touched(page)) = reply else {
            let failure = unexpected(reply);
            let text = format!("{}; {touched} tasks were touched before", failure.message);
            return Err(Failure { message: text, ..failure });
        };
        touched += page.ids.len();
        held += page.kept.len();
        if args.json {
            ids.extend(&page.ids);
            kept.extend(&page.kept);
        } else {
            let lines: String = page.ids.iter().map(|id| format!("{id}\n")).collect();
            print_as_it_is(lines.as_bytes())?;
        }
        (command.after, command.watermark) = (page.next, Some(page.watermark));
        if page.next.is_none() {
            break;
        }
    }
    if args.json {
        let object = json!({
            "verb": verb.as_str(), "dry_run": args.dry_run, "count": touched, "ids": ids, "kept": kept,
        });
        print(&format!("{object:#}"))?;
    }
    if touched > 0 {
        say(&format!("{}{}", if args.dry_run { "dry run: " } else { "" }, done(verb, touched)));
    }
    match (touched, held) {
        (_, 1..) => {
            let text =
                format!("{held} of those that were selected stay: tasks that have not ended wait for them");
            Err(Failure::new(TEMPFAIL, text))
        }
        (0, 0) => Err(Failure::new(
            NOINPUT,
            format!("nothing to {}: no task that it acts on fits the selector", verb.as_str()),
        )),
        _ => Ok(()),
    }
}

fn done(verb: Verb, count: usize) -> String {
    let tasks = if count == 1 { "task" } else { "tasks" };
    let what = match verb {
        Verb::Cancel => "cancelled; those that run are stopped by their workers",
        Verb::Retry => "run again",
        Verb::Release => "released",
        Verb::Purge => "purged",
        _ => "touched",
    };
    format!("{count} {tasks} {what}")
}
