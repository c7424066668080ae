//! `add --flow`: tasks that name each other, from a document.

use std::{fs, io};

use interval_queue_documents::NewFlow;
use interval_queue_tasks::{Added, AddedFlow, ErrorKind, Flow};

use super::{AddArgs, RETRY_TIMEOUT};
use crate::{
    exit::{DATAERR, Failure, NOINPUT, TEMPFAIL, print_as_it_is, report},
    json_output::print_json,
    target::retry,
};

pub(super) async fn add(args: &AddArgs, file: &str) -> Result<(), Failure> {
    let tasks = read_flow(file)?;
    let url = &args.target.store.url;
    let queue = retry(url, RETRY_TIMEOUT, async || args.target.created_tasks().await).await?;
    let flow = args.flow_id.clone().map_or_else(Flow::new, Flow::named);
    // Errors other than the store's are errors of the document.
    let added = queue.add_flow(tasks.add_to(flow)).await.map_err(|error| match Failure::from(&error) {
        failure if error.state().is_none() => Failure { code: DATAERR, ..failure },
        failure if error.kind() == ErrorKind::Conflict => Failure { code: TEMPFAIL, ..failure },
        failure => failure,
    })?;
    print_added(args, &added)
}

fn print_added(args: &AddArgs, added: &AddedFlow) -> Result<(), Failure> {
    if args.json {
        return print_json(&interval_queue_documents::Flow::from(added));
    }
    if args.quiet {
        return Ok(());
    }
    report(&in_words(added));
    let lines: String = added.iter().map(|(name, added)| format!("{} {name}\n", added.id())).collect();
    print_as_it_is(lines.as_bytes())
}

fn in_words(added: &AddedFlow) -> String {
    let all = added.iter().count();
    let (mut new, mut again, mut kept, mut replaced) = (0, 0, 0, 0);
    for (_, added) in added.iter() {
        *match added {
            Added::New(_) => &mut new,
            Added::Again(_) => &mut again,
            Added::Kept(_) => &mut kept,
            Added::Replaced(_) => &mut replaced,
        } += 1;
    }
    let mut words = match new == all {
        true if all == 1 => format!("flow {}: 1 task", added.flow()),
        true => format!("flow {}: {all} tasks", added.flow()),
        false => format!("flow {}: {new} of {all} tasks added", added.flow()),
    };
    for (count, what) in [
        (again, "existed before"),
        (kept, "not added, since another task holds the unique name"),
        (replaced, "replaced another task"),
    ] {
        if count > 0 {
            words += &format!(", {count} {what}");
        }
    }
    words
}

/// Reads from this file, or from stdin with `-`.
pub(crate) fn read_flow(file: &str) -> Result<NewFlow, Failure> {
    let text = if file == "-" { io::read_to_string(io::stdin()) } else { fs::read_to_string(file) };
    let name = if file == "-" { "the standard input" } else { file };
    let text = text.map_err(|error| Failure::new(NOINPUT, format!("cannot read {name}: {error}")))?;
    let wrong = |error: serde_json::Error| Failure::new(DATAERR, format!("{name}: {error}"));
    serde_json::from_str(&text).map_err(wrong)
}
