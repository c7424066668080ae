//! `run`: waits for a slot, then becomes CMD, or starts it and stays with it.

use std::{cell::OnceCell, future::pending, time::Duration};

use interval_queue::{IntervalQueue, JobOptions, MaxRunning, Turn};
use tokio::time::{sleep, timeout};

use crate::{
    args::Run,
    child,
    contact::{Contact, Stage},
    duration::show,
    exit::{Ending, Failure, NOINPUT, SOFTWARE, TEMPFAIL, say},
    program::Program,
    signals::Signals,
    target::{bounded, look},
};

/// How long the state may take to hear that this process has left. If it does not, the lease ends by itself.
const LEAVE_PATIENCE: Duration = Duration::from_secs(2);
/// As much if CMD waits for it. There is nothing to tell then, as a rule.
const BECOME_PATIENCE: Duration = Duration::from_millis(100);
/// About how often a paused queue, or a state that did not answer at first, is asked again.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// What the wait for a slot comes to.
enum Waited {
    Slot(Turn),
    Signal(i32),
    TooLong(Failure),
}

pub(crate) async fn run(run: Run) -> Result<Ending, Failure> {
    let program = Program::find(&run.command)?;
    let mut signals = Signals::listen().map_err(|error| Failure::os("cannot listen to signals", &error))?;
    let contact = Contact::new();
    let label = run.label.clone().unwrap_or_else(|| label(&program));
    let opened = OnceCell::new();

    let waited = tokio::select! {
        biased;
        signal = signals.next() => Ok(Waited::Signal(signal.number)),
        slot = wait(&run, label, &contact, &opened) => slot.map(Waited::Slot),
        limit = expired(run.start_within) => Ok(Waited::TooLong(too_late(limit, &contact))),
    };
    match (waited, opened.get()) {
        (Ok(Waited::Slot(turn)), Some(queue)) => {
            start(program, run.timeout, queue, turn, &contact, signals).await
        }
        (waited, queue) => {
            contact.enter(Stage::Leaving);
            if let Some(queue) = queue {
                tokio::select! {
                    _ = timeout(LEAVE_PATIENCE, queue.close()) => {}
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

/// Opens the queue and waits for the slot. Dropped, the place is given up.
async fn wait(
    run: &Run,
    label: String,
    contact: &Contact,
    opened: &OnceCell<IntervalQueue>,
) -> Result<Turn, Failure> {
    let queue = loop {
        match open(run, label.clone(), contact).await {
            Err(failure) if failure.passes && run.start_within.is_some() => {
                contact.failed(failure);
                sleep(about(ASK_AGAIN)).await;
            }
            opened => break opened?,
        }
    };
    let queue = opened.get_or_init(|| queue);
    tokio::select! {
        biased;
        turn = queue.turn_with(JobOptions::new().weight(run.weight)) => Ok(turn?),
        never = tick_through_pauses(queue, contact) => never,
    }
}

async fn open(run: &Run, label: String, contact: &Contact) -> Result<IntervalQueue, Failure> {
    let target = &run.target;
    let state = target.state.open().await?;
    let may_change = run.every.is_some() || run.max_running.is_some();
    let before = if may_change { look(&*state, &target.queue).await? } else { None };

    let failing = contact.clone();
    let mut builder = IntervalQueue::builder(target.queue.as_str())
        .label(label)
        .on_error(move |error| failing.failed(Failure::from(error)));
    if let Some(every) = run.every {
        builder = builder.interval(every);
    }
    builder = match run.max_running {
        Some(MaxRunning::AtMost(limit)) => builder.max_running(limit),
        Some(MaxRunning::Unlimited) => builder.unlimited_running(),
        _ => builder,
    };
    let queue =
        bounded(async { Ok(builder.open(contact.watch(state)).await?) }).await.map_err(|failure| {
            let missing = failure.code == NOINPUT && run.every.is_none();
            if missing { no_interval(run) } else { failure }
        })?;
    if let Some(before) = before {
        warn_of_new_settings(&queue, before.record.interval.to_duration(), before.record.max_running);
    }
    Ok(queue)
}

fn no_interval(run: &Run) -> Failure {
    let queue = run.target.queue.as_str();
    Failure::new(
        NOINPUT,
        format!("there is no queue {queue:?} here yet: give its interval, for example --every 250ms"),
    )
}

fn warn_of_new_settings(queue: &IntervalQueue, interval: Duration, max_running: Option<u32>) {
    let name = queue.name().as_str();
    if queue.interval() != interval {
        let (before, now) = (show(interval), show(queue.interval()));
        say(&format!("interval of queue {name:?} changed from {before} to {now} for all shards"));
    }
    if queue.max_running() != max_running {
        let limit = |limit: Option<u32>| limit.map_or("none".into(), |limit| limit.to_string());
        let (before, now) = (limit(max_running), limit(queue.max_running()));
        say(&format!("running limit of queue {name:?} changed from {before} to {now} for all shards"));
    }
}

/// A shard goes idle in a pause. This process has nobody else to restart it, so it asks now and then.
async fn tick_through_pauses<T>(queue: &IntervalQueue, contact: &Contact) -> T {
    loop {
        contact.paused().await;
        sleep(about(ASK_AGAIN)).await;
        queue.tick().await;
    }
}

/// Hands over to CMD. From the slot to here and on, every microsecond is lateness.
async fn start(
    program: Program,
    limit: Option<Duration>,
    queue: &IntervalQueue,
    turn: Turn,
    contact: &Contact,
    mut signals: Signals,
) -> Result<Ending, Failure> {
    if queue.max_running().is_none() && limit.is_none() {
        drop(turn);
        // Without a running limit the record knows nothing of a job that runs, and this returns at once.
        let _ = timeout(BECOME_PATIENCE, queue.close()).await;
        return match signals.latest() {
            Some(signal) => Ok(Ending::Signal(signal)),
            None => Err(program.become_it()),
        };
    }
    contact.enter(Stage::Running);
    let ending = child::run(program, limit, &mut signals).await;
    contact.enter(Stage::Leaving);
    drop(turn);
    let _ = timeout(LEAVE_PATIENCE, queue.close()).await;
    ending
}

fn too_late(limit: Duration, contact: &Contact) -> Failure {
    Failure::new(TEMPFAIL, format!("not started within {}: {contact}", show(limit)))
}

async fn expired(limit: Option<Duration>) -> Duration {
    match limit {
        Some(limit) => sleep(limit).await,
        None => pending().await,
    }
    limit.unwrap_or_default()
}

/// Three quarters to five quarters of it, so that processes that wait together do not ask together.
fn about(duration: Duration) -> Duration {
    duration.mul_f64(rand::random_range(0.75..1.25))
}

/// What `status` calls this process: `CMD pid N`.
fn label(program: &Program) -> String {
    let printable = |c: char| if c.is_control() { '?' } else { c };
    let mut name: String = program.base_name().chars().map(printable).collect();
    // A label has at most 128 bytes; " pid " and a number take no more than 28.
    while name.len() > 100 {
        name.pop();
    }
    format!("{} pid {}", name, std::process::id()).trim().to_owned()
}
