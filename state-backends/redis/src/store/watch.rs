//! Watches channels over one connection, which the task in `keeper.rs` maintains. It takes orders
//! from watchers, reconnects after errors, and ends with the last watcher.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};

use futures::{
    Stream, StreamExt,
    channel::{
        mpsc::{Receiver, Sender, UnboundedSender, channel, unbounded},
        oneshot,
    },
    stream::BoxStream,
};
use interval_queue_contract::{StateError, StateErrorKind};

use super::{RedisStore, keeper::Keeper};

pub(super) enum Order {
    Watch { channel: String, items: Sender<()>, started: oneshot::Sender<Result<(), StateError>> },
    Left,
}

/// `None`: nothing is watched.
pub(super) type KeeperHandle = Arc<Mutex<Option<UnboundedSender<Order>>>>;

impl RedisStore {
    /// Has an item for each message from now on, and after each reconnect, since messages may have
    /// been missed.
    ///
    /// # Errors
    ///
    /// [`Unreachable`](StateErrorKind::Unreachable), or [`Denied`](StateErrorKind::Denied): the
    /// user has no right to the channel.
    pub(crate) async fn watch(&self, channel_name: String) -> Result<BoxStream<'static, ()>, StateError> {
        // A watcher with an item it has not taken needs no second one.
        let (items, received) = channel(0);
        let (started, outcome) = oneshot::channel();
        let keeper = self.order(Order::Watch { channel: channel_name, items, started });
        // From here on, dropping this future leaves.
        let watch = Watch { items: received, keeper };
        let ended = |_| Err(StateError::new(StateErrorKind::Unreachable, "the runtime is shutting down"));
        outcome.await.unwrap_or_else(ended)?;
        Ok(watch.boxed())
    }

    fn order(&self, mut order: Order) -> UnboundedSender<Order> {
        let mut keeper = lock(&self.keeper);
        if let Some(open) = &*keeper {
            match open.unbounded_send(order) {
                Ok(()) => return open.clone(),
                // The runtime of the keeper has ended.
                Err(refused) => order = refused.into_inner(),
            }
        }
        let (open, orders) = unbounded();
        // The receiver exists.
        let _ = open.unbounded_send(order);
        tokio::spawn(Keeper::new(self.link.dialer.clone(), self.keeper.clone(), orders).keep());
        *keeper = Some(open.clone());
        open
    }
}

pub(super) fn lock(keeper: &KeeperHandle) -> MutexGuard<'_, Option<UnboundedSender<Order>>> {
    keeper.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Watch {
    items: Receiver<()>,
    keeper: UnboundedSender<Order>,
}

impl Stream for Watch {
    type Item = ();

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<()>> {
        self.items.poll_next_unpin(context)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.items.close();
        // The keeper drops the sender of a watcher that has gone.
        let _ = self.keeper.unbounded_send(Order::Left);
    }
}
