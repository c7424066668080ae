//! `each`: runs a command for each item of the input, at the rate of the queue. `each_flow` gives
//! the `items` their turns, `attempt` runs their commands, and `output` prints.

mod attempt;
mod each_args;
mod each_flow;
mod each_progress;
mod each_stop;
mod item;
mod items;
mod jobs;
mod output;
mod overlong;
mod spool;
mod tally;
mod template;

use std::{
    io::{self, IsTerminal},
    time::Duration,
};

use signal_hook::consts::SIGPIPE;
use tokio::time::timeout;

pub(crate) use self::each_args::Each;
use self::{
    each_flow::Flow,
    each_progress::Board,
    each_stop::Stop,
    items::Items,
    output::{Fate, Grouping, Output},
    overlong::Keeping,
    tally::Tally,
    template::Template,
};
use crate::{
    child::expect_children,
    clock::{expired, now},
    connection_state::{ConnectionState, Stage},
    exit::{Ending, Failure, IOERR, SOME_FAILED, report},
    shard::{FirstConnection, leave, too_late},
    signals::Signals,
};

/// A second signal waits as long for the terminal to be cleared.
const CLEAR_TIMEOUT: Duration = Duration::from_millis(200);

pub(crate) async fn run(each: Each) -> Result<Ending, Failure> {
    let template = Template::find(&each.command, &each.replace)?;
    let mut tally = Tally::new(each.failed.as_deref(), each.separator(), now())?;
    let keeping = if tally.has_file() { Keeping::Whole } else { Keeping::Beginning };
    let mut items = Items::of_stdin(each.separator(), keeping)?;
    let mut signals = Signals::listen()?;
    expect_children()?;
    let mut output = Output::start(each.grouping())?;
    let connection = ConnectionState::with_sink(&each.shard.target.store.url, output.line_writer());

    let first =
        if each.start_within.is_some() { FirstConnection::MayFail } else { FirstConnection::MustSucceed };
    let name = template.program().base_name();
    let queue = tokio::select! {
        biased;
        signal = signals.next() => return Ok(Ending::Signal(signal.number)),
        queue = each.shard.open(&name, first, &connection) => queue?,
        limit = expired(each.start_within) => return Err(too_late(limit, &connection)),
    };
    let board = Board::new(connection.clone());
    if !each.quiet && each.grouping() != Grouping::None && io::stderr().is_terminal() {
        output.show(board.clone());
    }
    let (stop, mut unprinted) = {
        let flow = Flow::new(&each, &queue, &template, &mut items, &mut tally, &mut output, &board);
        flow.run(&connection, &mut signals).await
    };
    connection.enter(Stage::Leaving);
    tally.flush();
    let repeated = matches!(stop, Some(Stop::Signal { repeated: true, .. }));
    if repeated {
        let _ = timeout(CLEAR_TIMEOUT, output.end()).await;
    } else {
        tokio::select! {
            ((), ()) = async { tokio::join!(leave(&queue), output.end()) } => {}
            _ = signals.next() => {}
        }
    }
    while let Some(Fate { item, written }) = output.fate() {
        if let (Some(item), Err(error)) = (unprinted.remove(&item), written) {
            tally.output_lost(&item.value, error);
        }
    }
    for item in unprinted.into_values() {
        tally.output_lost(&item.value, io::Error::other("the end came before it was printed"));
    }
    let undone = tally.close();
    let quiet = matches!(stop, Some(Stop::OutputClosed)) || each.quiet && tally.is_complete();
    let ending = ending(stop, &mut items, &tally, undone.clone());
    // The cause comes before its effects.
    let (cause, undone) = (ending.as_ref().err(), undone.err());
    let causes = cause
        .into_iter()
        .chain(undone.iter().filter(|undone| cause.is_none_or(|cause| cause.message != undone.message)));
    causes.for_each(|failure| report(&failure.message));
    if !quiet {
        tally.lines(now()).iter().for_each(|line| report(line));
        if !items.is_read() {
            report("the input was not read to its end");
        }
    }
    Ok(ending.unwrap_or_else(|failure| Ending::Code(failure.code)))
}

fn ending(
    stop: Option<Stop>,
    items: &mut Items,
    tally: &Tally,
    undone: Result<(), Failure>,
) -> Result<Ending, Failure> {
    match stop {
        Some(Stop::Signal { number, .. }) => return Ok(Ending::Signal(number)),
        Some(Stop::OutputClosed) => return Ok(Ending::Signal(SIGPIPE)),
        Some(Stop::OutputFailed(error)) => {
            return Err(Failure::new(IOERR, format!("cannot write the output: {error}")));
        }
        Some(Stop::Failure(failure)) => return Err(failure),
        Some(Stop::FirstFailure) | None => {}
    }
    undone?;
    if let Some(failure) = items.failure() {
        return Err(failure);
    }
    Ok(Ending::Code(if tally.counts.failed > 0 { SOME_FAILED } else { 0 }))
}
