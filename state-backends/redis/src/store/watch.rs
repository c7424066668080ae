//! Watching: one connection for all channels of a store, there only while somebody watches.
//!
//! A task keeps it, see `keeper.rs`. It takes orders from those who begin to watch and leave, finds its way
//! back after any trouble, and ends with the last who leaves. A watcher that lived through such trouble is nudged,
//! since something may have been missed.

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

/// What is wanted of the keeper.
pub(super) enum Order {
    /// Somebody begins.
    Watch { channel: String, items: Sender<()>, begun: oneshot::Sender<Result<(), StateError>> },
    /// Somebody has left.
    Left,
}

/// Where to order. None: nobody watches.
pub(super) type Desk = Arc<Mutex<Option<UnboundedSender<Order>>>>;

impl RedisStore {
    /// Begins to watch a channel. There is an item for what is said on it from now on, and after any trouble
    /// in which something may have been missed.
    ///
    /// # Errors
    ///
    /// [`Unreachable`](StateErrorKind::Unreachable), or [`Denied`](StateErrorKind::Denied): the user has no
    /// right to it.
    pub(crate) async fn watch(&self, channel_name: String) -> Result<BoxStream<'static, ()>, StateError> {
        // A watcher with an item that it has not taken yet needs no second one.
        let (items, received) = channel(0);
        let (begun, outcome) = oneshot::channel();
        let desk = self.order(Order::Watch { channel: channel_name, items, begun });
        // From here on dropping this leaves.
        let watch = Watch { items: received, desk };
        let ended = |_| Err(StateError::new(StateErrorKind::Unreachable, "the runtime is shutting down"));
        outcome.await.unwrap_or_else(ended)?;
        Ok(watch.boxed())
    }

    fn order(&self, mut order: Order) -> UnboundedSender<Order> {
        let mut desk = lock(&self.desk);
        if let Some(open) = &*desk {
            match open.unbounded_send(order) {
                Ok(()) => return open.clone(),
                // Its runtime has ended.
                Err(refused) => order = refused.into_inner(),
            }
        }
        let (open, orders) = unbounded();
        // The receiver is there.
        let _ = open.unbounded_send(order);
        tokio::spawn(Keeper::new(self.link.dialer.clone(), self.desk.clone(), orders).keep());
        *desk = Some(open.clone());
        open
    }
}

pub(super) fn lock(desk: &Desk) -> MutexGuard<'_, Option<UnboundedSender<Order>>> {
    desk.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What one who watches has.
struct Watch {
    items: Receiver<()>,
    desk: UnboundedSender<Order>,
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
        // A watcher that has gone keeps nothing.
        let _ = self.desk.unbounded_send(Order::Left);
    }
}
