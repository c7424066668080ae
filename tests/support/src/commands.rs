//! What tests say to any state.

use std::time::Duration;

use interval_queue_contract::{
    Change, Changed, Command, MaxRunning, Memory, Micros, OnExisting, QueueName, Rates, SharedState,
    Snapshot, StateError, StateErrorKind,
};

/// The queue of most tests.
pub fn mail() -> QueueName {
    QueueName::new("mail").unwrap()
}

/// Opens a queue with this interval, whatever its settings were.
pub fn opening(interval_ms: u64) -> Command {
    let change = Change::Open {
        rates: Some(Rates::every(Micros::from_millis(interval_ms))),
        max_running: MaxRunning::Keep,
        on_existing: OnExisting::Replace,
    };
    Command::Change(change, Memory::default())
}

/// Changes the queue `mail`.
///
/// # Errors
///
/// Those of the state.
pub async fn change(state: &dyn SharedState, change: Change, memory: Memory) -> Result<Changed, StateError> {
    state.apply(&mail(), Command::Change(change, memory)).await?.changed()
}

/// Opens the queue `mail` with an interval of a second.
///
/// # Errors
///
/// Those of the state.
pub async fn open(state: &dyn SharedState) -> Result<Changed, StateError> {
    state.apply(&mail(), opening(1000)).await?.changed()
}

/// What is stored of the queue `mail`.
pub async fn read(state: &dyn SharedState) -> Option<Snapshot> {
    state.apply(&mail(), Command::Read).await.unwrap().read().unwrap()
}

/// What kind of error it is.
pub fn kind<T: std::fmt::Debug>(result: Result<T, StateError>) -> StateErrorKind {
    result.unwrap_err().kind()
}

/// Tries until it works, for about half a minute.
pub async fn until_it_works(state: &dyn SharedState) -> Changed {
    for _ in 0..300 {
        match open(state).await {
            Ok(changed) => return changed,
            Err(error) => assert!(error.is_retryable(), "{error:?}"),
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the state did not recover");
}
