//! Wake-ups: a shard that has nothing to do for long watches the queue, and goes on when a pause ends or other
//! settings bring its slot nearer. Where the state cannot tell, it looks every few seconds.
//!
//! One task a shard, alive only while jobs wait and the queue is paused or the next slot is far. It never starts
//! anything itself: it nudges the driver, which asks the state. So a nudge too many costs a command.

use std::{
    panic::AssertUnwindSafe,
    sync::Arc,
    time::{Duration, Instant},
};

use futures::{FutureExt, StreamExt};
use interval_queue_contract::{Changes, Command, QueueName, Reply, SharedState, StateError, StateErrorKind};

use crate::{
    host::{Host, timeout},
    line::{COMMAND_TIMEOUT, retries},
    shard::{Line, Shard, timed_out},
    until::until,
    wake_ups::WakeUps,
};

/// Has the queue watched if the shard has nothing to do for long. To be called after each reply.
pub(crate) fn watch(shard: &Arc<Shard>) {
    if shard.wake_ups == WakeUps::On {
        let is_new = {
            let mut line = shard.line();
            let is_new = is_wanted(&line, shard.host.now()) && !line.watched;
            line.watched |= is_new;
            is_new
        };
        if is_new {
            shard.host.spawn(Box::pin(keep_watching(Watching { shard: shard.clone(), ended: false })));
        }
    }
}

/// Whether jobs wait, and nothing is asked for soon.
fn is_wanted(line: &Line, now: Instant) -> bool {
    let is_idle = line.contact.memory.paused || line.contact.ask_at.is_some_and(|ask_at| ask_at > now + LOOK);
    is_idle && !line.backlog.is_empty()
}

/// Takes back that the queue is watched if the runtime drops the task, which it may do anywhere.
struct Watching {
    shard: Arc<Shard>,
    ended: bool,
}

impl Drop for Watching {
    fn drop(&mut self) {
        if !self.ended {
            let mut line = self.shard.line();
            line.watched = false;
            if !line.backlog.is_empty() {
                // The driver may have stopped and left the pause to us. The next one asks, and has it watched
                // again.
                line.orphaned = true;
                line.contact.nudge(self.shard.host.now());
            }
        }
    }
}

async fn keep_watching(mut watching: Watching) {
    let shard = &watching.shard.clone();
    loop {
        tokio::select! {
            biased;
            () = until(&shard.answered, || !is_wanted(&shard.line(), shard.host.now())) => {}
            () = nudge_on_changes(shard) => {}
        }
        // It may be wanted again by now; a driver that heard of that found it watched.
        let mut line = shard.line();
        line.watched = is_wanted(&line, shard.host.now());
        if !line.watched {
            // Said while the line is locked, so that whoever wants it next finds it unwatched.
            watching.ended = true;
            return;
        }
    }
}

/// The least time between two nudges: no state can make its shards ask in a circle.
const GAP: Duration = Duration::from_millis(20);

/// About how often a shard looks that is not told.
const LOOK: Duration = Duration::from_secs(2);

/// How often one looks that should be told: where changes pass unheard, as on some network mounts.
const SLOW_LOOK: Duration = Duration::from_secs(30);

async fn nudge_on_changes(shard: &Arc<Shard>) {
    let mut delays = None;
    let mut is_told = false;
    loop {
        let error = match begin(&*shard.state, &shard.queue, &shard.host).await {
            Err(error) if error.kind() == StateErrorKind::Unsupported => {
                return look_now_and_then(shard).await;
            }
            Err(error) => error,
            Ok(mut changes) => {
                // What was changed before is not told.
                look(shard).await;
                loop {
                    match timeout(&shard.host, SLOW_LOOK, next(&mut changes)).await {
                        Some(Some(())) => {}
                        Some(None) => break,
                        None => {
                            look(shard).await;
                            continue;
                        }
                    }
                    (delays, is_told) = (None, false);
                    shard.start();
                    shard.host.sleep_until(shard.host.now() + GAP).await;
                }
                StateError::new(StateErrorKind::Unreachable, "the watching ended")
            }
        };
        if !is_told {
            shard.telemetry.watch_failed(&error);
            is_told = true;
        }
        let delay = delays.get_or_insert_with(|| retries(LOOK, shard.host.random())).next().unwrap_or(LOOK);
        shard.host.sleep_until(shard.host.now() + delay).await;
        look(shard).await;
    }
}

async fn look_now_and_then(shard: &Arc<Shard>) {
    loop {
        // Three quarters to five quarters of it, so that shards that wait together do not look together.
        let quarters = shard.host.random() as f64 / u64::MAX as f64 * 2.0 + 3.0;
        shard.host.sleep_until(shard.host.now() + LOOK.mul_f64(quarters / 4.0)).await;
        look(shard).await;
    }
}

/// Nudges the driver if something was changed for all shards. Nothing needs an answer to go on as it is, so a look
/// that fails is only told.
async fn look(shard: &Arc<Shard>) {
    match shard.command(Command::Read).await.and_then(Reply::read) {
        Ok(Some(snapshot)) if snapshot.record.revision == shard.line().contact.memory.revision => {}
        Ok(_) => shard.start(),
        Err(error) => shard.report(error),
    }
}

/// Begins to watch, bounded in time. A backend that panics has failed.
async fn begin(
    state: &dyn SharedState,
    queue: &QueueName,
    host: &Arc<dyn Host>,
) -> Result<Changes, StateError> {
    let begun = AssertUnwindSafe(async { state.changes(queue).await }).catch_unwind();
    match timeout(host, COMMAND_TIMEOUT, begun).await {
        Some(Ok(begun)) => begun,
        Some(Err(_)) => Err(StateError::new(StateErrorKind::Unreachable, "the state backend panicked")),
        None => Err(timed_out()),
    }
}

/// The next item; none: there are no more.
async fn next(changes: &mut Changes) -> Option<()> {
    AssertUnwindSafe(changes.next()).catch_unwind().await.unwrap_or_default()
}
