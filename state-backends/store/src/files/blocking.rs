//! Blocking work on tokio's blocking threads.

use interval_queue_contract::{StateError, StateErrorKind};
use tokio::task::spawn_blocking;

/// Runs `work` on a blocking thread. Once begun, it completes even if the future is dropped.
///
/// # Errors
///
/// As `work`; `Unreachable` if the runtime is shutting down.
pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StateError> + Send + 'static,
) -> Result<T, StateError> {
    let error = match spawn_blocking(work).await {
        Ok(result) => return result,
        Err(error) => error,
    };
    match error.try_into_panic() {
        Ok(panic) => std::panic::resume_unwind(panic),
        Err(error) => {
            let text = "the runtime is shutting down: the command was not begun";
            Err(StateError::new(StateErrorKind::Unreachable, text).with_source(error))
        }
    }
}
