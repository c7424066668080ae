//! Waits for something that is told, and may have come true already.

use std::pin::pin;

use tokio::sync::Notify;

/// Ends once it is so. It is looked at now, and whenever `told` wakes those who wait.
pub(crate) async fn until(told: &Notify, mut is_so: impl FnMut() -> bool) {
    loop {
        let mut notified = pin!(told.notified());
        notified.as_mut().enable();
        if is_so() {
            return;
        }
        notified.await;
    }
}
