//! Watching: one connection for all queues of a state, there only while somebody watches.
//!
//! A task keeps it, see `keeper.rs`. It takes orders from those who begin to watch and leave, finds its way
//! back after any trouble, and ends with the last who leaves. Whoever watched through such trouble is nudged,
//! since something may have been missed.

use std::{
    fmt,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use futures::{
    Stream, StreamExt,
    channel::{
        mpsc::{Receiver, Sender, UnboundedSender, channel, unbounded},
        oneshot,
    },
};
use interval_queue_contract::{Changes, StateError, StateErrorKind};

use crate::{address::Address, dialer::Dialer, keeper::Keeper};

/// Where to order. None: nobody watches.
pub(crate) type Desk = Arc<Mutex<Option<UnboundedSender<Order>>>>;

/// What is wanted of the keeper.
pub(crate) enum Order {
    Watch(Newcomer),
    /// Somebody has left.
    Left,
}

/// A watcher that begins.
pub(crate) struct Newcomer {
    pub(crate) channel: String,
    pub(crate) items: Sender<()>,
    pub(crate) begun: oneshot::Sender<Result<(), StateError>>,
}

/// Watches channels of a server.
pub(crate) struct Watching {
    address: Address,
    dialer: Dialer,
    timeout: Duration,
    desk: Desk,
}

impl Watching {
    /// Connects to nothing yet.
    pub(crate) fn new(address: Address, dialer: Dialer, timeout: Duration) -> Self {
        Self { address, dialer, timeout, desk: Desk::default() }
    }

    /// Begins to watch a channel.
    ///
    /// # Errors
    ///
    /// [`Unreachable`](StateErrorKind::Unreachable), or [`Denied`](StateErrorKind::Denied): the user has no
    /// right to it.
    pub(crate) async fn watch(&self, channel_name: String) -> Result<Changes, StateError> {
        // A watcher with an item that it has not taken yet needs no second one.
        let (items, received) = channel(0);
        let (begun, outcome) = oneshot::channel();
        let desk = self.order(Newcomer { channel: channel_name, items, begun });
        // From here on dropping this leaves.
        let watch = Watch { items: received, desk };
        let ended = |_| Err(StateError::new(StateErrorKind::Unreachable, "the runtime is shutting down"));
        outcome.await.unwrap_or_else(ended)?;
        Ok(Box::pin(watch))
    }

    fn order(&self, newcomer: Newcomer) -> UnboundedSender<Order> {
        let mut desk = lock(&self.desk);
        let mut order = Order::Watch(newcomer);
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
        let (address, dialer) = (self.address.clone(), self.dialer.clone());
        tokio::spawn(Keeper::new(address, dialer, self.timeout, self.desk.clone(), orders).keep());
        *desk = Some(open.clone());
        open
    }
}

pub(crate) fn lock(desk: &Desk) -> MutexGuard<'_, Option<UnboundedSender<Order>>> {
    desk.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Watching {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watching").field("address", &self.address).finish_non_exhaustive()
    }
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
