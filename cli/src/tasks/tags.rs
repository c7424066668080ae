//! `tasks tags`: the tags of tasks, with counts.

use clap::Args;
use interval_queue_documents::{TagCount, words};

use super::{
    opened::selector,
    task_args::{SELECTOR, SelectorArgs},
};
use crate::{
    args::Target,
    exit::{Failure, NOINPUT, print, print_as_it_is},
    json_output::json_line,
    table::{room, table},
};

const DEFAULT_TOP: u32 = 20;

/// Show the tags of tasks and how many have them, the most used first.
#[derive(Debug, Args)]
#[command(after_help = format!("Examples:\n  interval-queue tasks tags\n  \
    interval-queue tasks tags --state failed --top 5\n\n{SELECTOR}"))]
pub(super) struct Tags {
    #[command(flatten)]
    pub(super) selector: SelectorArgs,
    /// Print at most N tags. Default: 20, with --json all
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    top: Option<u32>,
    /// Print a JSON object per line for each tag; `interval-queue schema tasks` describes its
    /// fields
    #[arg(long)]
    json: bool,
}

pub(super) async fn tags(target: &Target, args: &Tags) -> Result<(), Failure> {
    let queue = target.tasks().await?;
    let tags = queue.tags(&selector(&queue, &args.selector).await?).await?;
    if tags.is_empty() {
        return Err(Failure::new(NOINPUT, "no selected task has a tag"));
    }
    let top = args.top.unwrap_or(if args.json { u32::MAX } else { DEFAULT_TOP });
    let shown = tags.iter().take(top as usize);
    if args.json {
        let lines: String = shown.map(|(tag, count)| json_line(&TagCount::of(tag, *count))).collect();
        return print_as_it_is(lines.as_bytes());
    }
    let rows: Vec<_> = shown.map(|(tag, count)| [words::line(tag.as_str()), words::number(*count)]).collect();
    let more = tags.len() - rows.len();
    let more = if more > 0 {
        format!("\nand {} more: --top N shows them", words::number(more as u64))
    } else {
        String::new()
    };
    print(&format!("{}{more}", table(["TAG", "TASKS"], &rows, room())))
}
