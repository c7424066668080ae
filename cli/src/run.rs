//! `run`: waits for a slot, then becomes CMD, or starts it as a child.

use std::{cell::OnceCell, time::Duration};

use interval_queue::{ErrorKind, IntervalQueue, Turn};
use rustix::process::{Resource, Rlimit, setrlimit};
use tokio::time::timeout;

use crate::{
    args::Run,
    child::{End, Running, expect_children},
    clock::expired,
    connection_state::{ConnectionState, Stage},
    exit::{BY_SIGNAL, Ending, Failure, SOFTWARE, TEMPFAIL, TIMED_OUT},
    program::{Program, cannot_execute},
    shard::{FirstConnection, leave, tick_through_pauses, too_late},
    signals::Signals,
    target::close_stores,
};

/// While CMD waits for it. Usually there is nothing to send.
const EXEC_LEAVE_TIMEOUT: Duration = Duration::from_millis(100);
/// While CMD waits for it: flushes of a busy disk.
const EXEC_CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

enum Waited {
    Slot(Turn),
    Signal(i32),
    TooLong(Failure),
}

pub(crate) async fn run(run: Run) -> Result<Ending, Failure> {
    let program = Program::find(&run.command)?;
    let mut signals = Signals::listen()?;
    let connection = ConnectionState::new(&run.shard.target.store.url);
    let opened = OnceCell::new();

    let waited = tokio::select! {
        biased;
        signal = signals.next() => Ok(Waited::Signal(signal.number)),
        slot = wait(&run, &program, &connection, &opened) => slot.map(Waited::Slot),
        limit = expired(time_limit(&run)) => Ok(Waited::TooLong(too_late(limit, &connection))),
    };
    match (waited, opened.get()) {
        (Ok(Waited::Slot(turn)), Some(queue)) => {
            start(program, run.timeout, queue, turn, &connection, signals).await
        }
        (waited, queue) => {
            connection.enter(Stage::Leaving);
            if let Some(queue) = queue {
                tokio::select! {
                    () = leave(queue) => {}
                    _ = signals.next() => {}
                }
            }
            match waited? {
                Waited::Signal(signal) => Ok(Ending::Signal(signal)),
                Waited::TooLong(failure) => Err(failure),
                Waited::Slot(_) => Err(Failure::new(SOFTWARE, "a slot came without a queue")),
            }
        }
    }
}

/// `None`: without limit, or not at all.
fn time_limit(run: &Run) -> Option<Duration> {
    run.start_within.filter(|limit| !limit.is_zero())
}

/// # Cancel safety
///
/// Dropping it returns the ticket.
async fn wait(
    run: &Run,
    program: &Program,
    connection: &ConnectionState,
    opened: &OnceCell<IntervalQueue>,
) -> Result<Turn, Failure> {
    let first =
        if time_limit(run).is_some() { FirstConnection::MayFail } else { FirstConnection::MustSucceed };
    let queue = run.shard.open(&program.base_name(), first, connection).await?;
    let queue = opened.get_or_init(|| queue);
    let mut turn = queue.turn().weight(run.shard.weight);
    if run.start_within == Some(Duration::ZERO) {
        turn = turn.start_within(Duration::ZERO);
    }
    tokio::select! {
        biased;
        turn = turn.into_future() => turn.map_err(|error| match error.kind() {
            ErrorKind::TooLate => Failure::new(TEMPFAIL, format!("not started now: {error}")),
            _ => error.into(),
        }),
        never = tick_through_pauses(queue, connection) => never,
    }
}

/// Time spent from the slot to the start is lateness.
async fn start(
    program: Program,
    limit: Option<Duration>,
    queue: &IntervalQueue,
    turn: Turn,
    connection: &ConnectionState,
    mut signals: Signals,
) -> Result<Ending, Failure> {
    connection.refresh();
    if queue.max_running().is_none() && limit.is_none() {
        drop(turn);
        // Without a running limit, leaving returns at once.
        let _ = timeout(EXEC_LEAVE_TIMEOUT, queue.close()).await;
        close_stores(EXEC_CLOSE_TIMEOUT).await;
        return match signals.latest() {
            Some(signal) => Ok(Ending::Signal(signal)),
            None => Err(program.exec()),
        };
    }
    connection.enter(Stage::Running);
    let ending = run_child(program, limit, &mut signals).await;
    connection.enter(Stage::Leaving);
    drop(turn);
    leave(queue).await;
    ending
}

/// Forwards signals to CMD.
async fn run_child(
    program: Program,
    timeout: Option<Duration>,
    signals: &mut Signals,
) -> Result<Ending, Failure> {
    expect_children()?;
    let command = program.into_command();
    let name = command.get_program().to_owned();
    let mut running = Running::start(command.into()).map_err(|error| cannot_execute(&name, &error))?;
    match running.wait(timeout, async || signals.next().await).await {
        End::Unable(failure) => Err(failure),
        End::TimedOut => Ok(Ending::Code(TIMED_OUT)),
        End::Signal(signal) => {
            // This process dies by the same signal, but must not overwrite the core file of CMD.
            let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
            Ok(Ending::Signal(signal))
        }
        End::Code(code) => Ok(Ending::Code(u8::try_from(code).unwrap_or(BY_SIGNAL))),
        // Only a command under a guard ends so.
        End::Stopped | End::LeaseOver | End::GuardGone(_) => Ok(Ending::Code(BY_SIGNAL)),
    }
}
