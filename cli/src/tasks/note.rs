//! `tasks note`: a note in the log of a task.

use clap::Args;
use interval_queue_tasks::MAX_LOG_TEXT;

use super::id_arg::IdArg;
use crate::{args::Target, exit::Failure};

/// Add a note to the log of a task, in any state: why it was retried, or whom to ask. `tasks show`
/// prints it.
///
/// The last 16 notes are kept, until the task is deleted.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  \
    interval-queue tasks note 0c6e3a1f2b4d 'refunded by hand, do not retry: ask Ada'")]
pub(super) struct Note {
    /// The id of the task, or its last 8 characters or more
    #[arg(value_name = "ID")]
    id: IdArg,
    /// The note: one line of at most 500 characters
    #[arg(value_name = "TEXT", value_parser = line)]
    text: String,
}

fn line(text: &str) -> Result<String, String> {
    let (text, long) = (text.trim(), text.chars().count());
    match text {
        "" => Err("the note is empty: give a text".into()),
        _ if long > MAX_LOG_TEXT => Err(format!("{long} characters: give at most {MAX_LOG_TEXT}")),
        _ if text.contains(['\n', '\r']) => Err("the note has several lines: give one".into()),
        _ => Ok(text.to_owned()),
    }
}

pub(super) async fn note(target: &Target, args: &Note) -> Result<(), Failure> {
    let queue = target.tasks().await?;
    Ok(queue.note(args.id.id(&queue).await?, &args.text).await?)
}
