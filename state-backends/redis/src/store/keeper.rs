//! The task that maintains the connection of watched channels.

use std::{collections::BTreeMap, io, pin::Pin, sync::Arc, time::Duration};

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use futures::{
    StreamExt,
    channel::mpsc::{Sender, UnboundedReceiver},
};
use interval_queue_contract::StateError;
use redis::{
    RedisError, RedisResult,
    aio::{PubSubSink, PubSubStream},
};
use tokio::time::{self, Sleep};

use super::{
    dialer::Dialer,
    error,
    watch::{KeeperHandle, Order, lock},
};

/// Minimum and maximum, before jitter.
const RETRY_DELAYS: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));
/// Silence after which the connection is checked.
const PING_INTERVAL: Duration = Duration::from_secs(10);

pub(super) struct Keeper {
    dialer: Arc<Dialer>,
    handle: KeeperHandle,
    orders: UnboundedReceiver<Order>,
    /// Channels that are subscribed, or were when the connection broke.
    watchers: BTreeMap<String, Vec<Sender<()>>>,
    connection: Option<(PubSubSink, PubSubStream)>,
    delays: ExponentialBackoff,
    /// The next attempt to connect, or the next ping.
    due: Pin<Box<Sleep>>,
}

impl Keeper {
    pub(super) fn new(dialer: Arc<Dialer>, handle: KeeperHandle, orders: UnboundedReceiver<Order>) -> Self {
        Self {
            dialer,
            handle,
            orders,
            watchers: BTreeMap::new(),
            connection: None,
            delays: backoff(),
            due: after(Duration::ZERO),
        }
    }

    pub(super) async fn keep(mut self) {
        loop {
            if self.watchers.is_empty() {
                let Some(order) = self.last_order() else { return };
                self.obey(order).await;
                continue;
            }
            let message = async {
                match &mut self.connection {
                    Some((_, stream)) => stream.next().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                Some(order) = self.orders.next() => self.obey(order).await,
                message = message => match message {
                    Some(message) => {
                        self.due = after(PING_INTERVAL);
                        self.watchers.get_mut(message.get_channel_name()).into_iter().flatten().for_each(notify);
                    }
                    None => self.lose(&reset()),
                },
                () = &mut self.due => match self.connection {
                    Some(_) => self.ping().await,
                    None => self.reconnect().await,
                },
            }
        }
    }

    /// An order that arrived after the last watcher had left. `None`: the next order starts another
    /// task.
    fn last_order(&mut self) -> Option<Order> {
        // The lock keeps new orders out.
        let mut handle = lock(&self.handle);
        let order = self.orders.try_recv().ok();
        if order.is_none() {
            *handle = None;
        }
        order
    }

    async fn obey(&mut self, order: Order) {
        match order {
            Order::Left => self.unsubscribe().await,
            Order::Watch { started, .. } if started.is_canceled() => {}
            Order::Watch { channel, items, started } => {
                let outcome = self.subscribe_for(&channel).await;
                if outcome.is_ok() {
                    self.watchers.entry(channel).or_default().push(items);
                }
                // A watcher that no longer listens has left, and sends `Left`.
                let _ = started.send(outcome);
            }
        }
    }

    async fn subscribe_for(&mut self, channel: &str) -> Result<(), StateError> {
        if self.connection.is_none() {
            let connected = self.connect().await;
            connected.map_err(|error| error::of_dialing(error, &self.dialer.address))?;
            self.notify_all();
        }
        if self.watchers.contains_key(channel) {
            return Ok(());
        }
        let subscribed = self.subscribe(channel).await;
        subscribed.map_err(|error| error::of_watching(error, channel))
    }

    async fn connect(&mut self) -> RedisResult<()> {
        self.connection = Some(self.dialer.dial_to_watch().await?.split());
        let known: Vec<String> = self.watchers.keys().cloned().collect();
        for channel in known {
            if let Err(error) = self.subscribe(&channel).await {
                if self.connection.is_none() {
                    return Err(error);
                }
                tracing::warn!(redis = %self.dialer.address, channel, %error, "cannot watch any more");
                // Dropping the senders ends the streams of its watchers.
                self.watchers.remove(&channel);
            }
        }
        self.delays = backoff();
        self.due = after(PING_INTERVAL);
        Ok(())
    }

    async fn subscribe(&mut self, channel: &str) -> RedisResult<()> {
        self.request(async |sink| sink.subscribe(channel).await).await
    }

    /// An error that breaks the connection closes it.
    async fn request(
        &mut self,
        question: impl AsyncFnOnce(&mut PubSubSink) -> RedisResult<()>,
    ) -> RedisResult<()> {
        let Some((sink, _)) = &mut self.connection else { return Err(reset()) };
        let answer = self.dialer.in_time(question(sink)).await;
        if let Err(error) = &answer
            && !error::is_refused_command(error)
        {
            self.lose(error);
        }
        answer
    }

    async fn unsubscribe(&mut self) {
        let mut left = Vec::new();
        self.watchers.retain(|channel, watchers| {
            watchers.retain(|watcher| !watcher.is_closed());
            if watchers.is_empty() {
                left.push(channel.clone());
            }
            !watchers.is_empty()
        });
        // Without watchers the connection is closed, too.
        if !self.watchers.is_empty() && !left.is_empty() && self.connection.is_some() {
            let _ = self.request(async |sink| sink.unsubscribe(&left).await).await;
        }
    }

    /// The other end may have vanished silently.
    async fn ping(&mut self) {
        self.due = after(PING_INTERVAL);
        let _ = self.request(async |sink| sink.ping::<redis::Value>().await.map(drop)).await;
    }

    async fn reconnect(&mut self) {
        match self.connect().await {
            Ok(()) => {
                tracing::info!(redis = %self.dialer.address, "watches channels again");
                self.notify_all();
            }
            Err(error) => {
                tracing::debug!(redis = %self.dialer.address, %error, "cannot connect to watch");
                self.try_again_later();
            }
        }
    }

    fn lose(&mut self, error: &RedisError) {
        tracing::warn!(redis = %self.dialer.address, %error, "lost the connection that watches channels");
        self.try_again_later();
    }

    fn try_again_later(&mut self) {
        self.connection = None;
        self.due = after(self.delays.next().unwrap_or(RETRY_DELAYS.1));
    }

    /// Messages may have been missed.
    fn notify_all(&mut self) {
        self.watchers.values_mut().flatten().for_each(notify);
    }
}

fn backoff() -> ExponentialBackoff {
    let delays = ExponentialBuilder::new().with_min_delay(RETRY_DELAYS.0).with_max_delay(RETRY_DELAYS.1);
    delays.without_max_times().with_jitter().build()
}

fn notify(watcher: &mut Sender<()>) {
    let _ = watcher.try_send(());
}

fn after(delay: Duration) -> Pin<Box<Sleep>> {
    Box::pin(time::sleep(delay))
}

fn reset() -> RedisError {
    io::Error::from(io::ErrorKind::ConnectionReset).into()
}
