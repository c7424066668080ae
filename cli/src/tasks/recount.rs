//! `tasks recount`: counts the stored tasks again.

use clap::Args;
use interval_queue_documents::{
    Recount as Document,
    words::{self, number, quoted},
};
use interval_queue_tasks::{Corrected, Kind};

use crate::{
    args::Target,
    exit::{Failure, print, report},
    json_output::print_json,
    place::without_secrets,
};

/// Count the stored tasks again, after rows were removed or added manually; print each count that
/// was wrong.
///
/// `tasks`, `tasks list` and `status` report wrong counts when they find them. All tasks of the queue are counted in
/// one command, while workers continue. On Redis it also removes index entries of removed tasks. A
/// task that waits for a removed task keeps waiting: `tasks unlink` ends that.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  interval-queue tasks recount")]
pub(super) struct Recount {
    /// Print one JSON object; `interval-queue schema tasks` describes its fields
    #[arg(long)]
    json: bool,
}

pub(super) async fn recount(target: &Target, args: &Recount) -> Result<(), Failure> {
    let recounted = target.tasks_for_long().await?.recount().await?;
    if args.json {
        print_json(&Document::from(&recounted))?;
    } else {
        for one in &recounted.corrected {
            print(&line(one))?;
        }
    }
    if recounted.dropped > 0 {
        report(&format!("{} index entries of removed tasks were removed", number(recounted.dropped)));
    }
    if recounted.corrected.is_empty() {
        report("all counts are right");
    }
    Ok(())
}

fn line(one: &Corrected) -> String {
    let kind = match one.kind == Kind::default() {
        true => String::new(),
        false => format!("{} ", words::line(one.kind.as_str())),
    };
    format!("{kind}{}: {} counted, {} before", one.state, one.counted, one.before)
}

/// The command works wherever it is pasted.
pub(super) fn advice(target: &Target) -> String {
    let (place, queue) = (quoted(&without_secrets(&target.store.url)), quoted(target.queue.as_str()));
    format!(
        "the counts are wrong, since rows were removed or added manually: \
         `interval-queue tasks recount --store={place} --queue={queue}` counts again"
    )
}
