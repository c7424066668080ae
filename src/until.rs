//! Waits for a condition that is signalled, and may hold already.

use std::pin::pin;

use tokio::sync::Notify;

/// Checks now and after each notification, and misses none.
pub(crate) async fn until(notify: &Notify, mut is_so: impl FnMut() -> bool) {
    loop {
        let mut notified = pin!(notify.notified());
        notified.as_mut().enable();
        if is_so() {
            return;
        }
        notified.await;
    }
}
