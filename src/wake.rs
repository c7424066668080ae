//! Wake-ups: while jobs wait and the queue is paused or the next slot is distant, one task of the
//! shard watches the queue. If the store cannot notify, it reads the record every few seconds.
//!
//! The task only wakes the driver, which polls, so a needless wake-up costs one command.

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

/// If the shard has nothing to do for long. Call it after each reply.
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

/// Jobs wait and the shard polls no time soon.
fn is_wanted(line: &Line, now: Instant) -> bool {
    let is_idle = line.connection.memory.paused
        || line.connection.ask_at.is_some_and(|ask_at| ask_at > now + READ_INTERVAL);
    is_idle && !line.backlog.is_empty()
}

/// In `Drop`, since the runtime may drop the task anywhere.
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
                // The driver may have stopped because this task was watching. The next one polls,
                // and watches again.
                line.orphaned = true;
                line.connection.request_now(self.shard.host.now());
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
            () = wake_on_changes(shard) => {}
        }
        // Under the lock: a driver may have found the queue watched and relied on this task.
        let mut line = shard.line();
        line.watched = is_wanted(&line, shard.host.now());
        if !line.watched {
            // Under the lock, so that the next driver finds the queue unwatched.
            watching.ended = true;
            return;
        }
    }
}

/// So that no store makes its shards poll in a loop.
const MIN_WAKE_INTERVAL: Duration = Duration::from_millis(20);

/// Mean interval if the store cannot notify.
const READ_INTERVAL: Duration = Duration::from_secs(2);

/// Notifications may be lost, as on some network mounts.
const SAFETY_READ_INTERVAL: Duration = Duration::from_secs(30);

async fn wake_on_changes(shard: &Arc<Shard>) {
    let mut delays = None;
    let mut is_reported = false;
    loop {
        let error = match begin(&*shard.state, &shard.queue, &shard.host).await {
            Err(error) if error.kind() == StateErrorKind::Unsupported => {
                return poll_record(shard).await;
            }
            Err(error) => error,
            Ok(mut changes) => {
                // Earlier changes are not notified.
                wake_if_changed(shard).await;
                loop {
                    match timeout(&shard.host, SAFETY_READ_INTERVAL, next(&mut changes)).await {
                        Some(Some(())) => {}
                        Some(None) => break,
                        None => {
                            wake_if_changed(shard).await;
                            continue;
                        }
                    }
                    (delays, is_reported) = (None, false);
                    shard.start();
                    shard.host.sleep_until(shard.host.now() + MIN_WAKE_INTERVAL).await;
                }
                StateError::new(StateErrorKind::Unreachable, "the watching ended")
            }
        };
        if !is_reported {
            shard.telemetry.watch_failed(&error);
            is_reported = true;
        }
        let delay = delays
            .get_or_insert_with(|| retries(READ_INTERVAL, shard.host.random()))
            .next()
            .unwrap_or(READ_INTERVAL);
        shard.host.sleep_until(shard.host.now() + delay).await;
        wake_if_changed(shard).await;
    }
}

async fn poll_record(shard: &Arc<Shard>) {
    loop {
        // So that waiting shards do not read at the same time: 3/4 to 5/4 of `READ_INTERVAL`.
        let quarters = shard.host.random() as f64 / u64::MAX as f64 * 2.0 + 3.0;
        shard.host.sleep_until(shard.host.now() + READ_INTERVAL.mul_f64(quarters / 4.0)).await;
        wake_if_changed(shard).await;
    }
}

/// A failed read is only reported: without a change the shard needs no reply.
async fn wake_if_changed(shard: &Arc<Shard>) {
    match shard.command(Command::Read).await.and_then(Reply::read) {
        Ok(Some(snapshot)) if snapshot.record.revision == shard.line().connection.memory.revision => {}
        Ok(_) => shard.start(),
        Err(error) => shard.report(error),
    }
}

/// Within `COMMAND_TIMEOUT`. A panic of the backend is an error.
async fn begin(
    state: &dyn SharedState,
    queue: &QueueName,
    host: &Arc<dyn Host>,
) -> Result<Changes, StateError> {
    let begun = AssertUnwindSafe(async { state.changes(queue).await }).catch_unwind();
    match timeout(host, COMMAND_TIMEOUT, begun).await {
        Some(Ok(begun)) => begun,
        Some(Err(_)) => Err(StateError::new(StateErrorKind::Unreachable, "the store's backend panicked")),
        None => Err(timed_out()),
    }
}

/// `None`: the stream has ended or panicked.
async fn next(changes: &mut Changes) -> Option<()> {
    AssertUnwindSafe(changes.next()).catch_unwind().await.unwrap_or_default()
}
