//! Watching: one connection for all queues of a state, there only while somebody watches.
//!
//! A task keeps it. It takes orders from those who begin to watch and leave, finds its way back after any trouble, and ends
//! with the last who leaves. Whoever watched through such trouble is nudged, since something may have been missed.

use std::{
    collections::BTreeMap,
    fmt, io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use futures::{
    Stream, StreamExt,
    channel::{
        mpsc::{Receiver, Sender, UnboundedReceiver, UnboundedSender, channel, unbounded},
        oneshot,
    },
};
use interval_queue_contract::{Changes, StateError, StateErrorKind};
use redis::{
    RedisResult,
    aio::{PubSubSink, PubSubStream},
};
use tokio::time::{self, Sleep};

use crate::{address::Address, dialer::Dialer, error};

/// The first and the longest time between two attempts to connect, before jitter.
const RETRY: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));
/// How long a connection may say nothing before it is asked whether it is still there.
const SILENCE: Duration = Duration::from_secs(10);

/// Where to order. None: nobody watches.
type Desk = Arc<Mutex<Option<UnboundedSender<Order>>>>;

enum Order {
    Watch(Newcomer),
    /// Somebody has left.
    Left,
}

struct Newcomer {
    channel: String,
    items: Sender<()>,
    begun: oneshot::Sender<Result<(), StateError>>,
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
    /// [`Unreachable`](StateErrorKind::Unreachable), or [`Denied`](StateErrorKind::Denied): the user has no right to it.
    pub(crate) async fn watch(&self, channel_name: String) -> Result<Changes, StateError> {
        // Who has an item that it has not taken yet needs no second one.
        let (items, received) = channel(0);
        let (begun, outcome) = oneshot::channel();
        let desk = self.order(Newcomer { channel: channel_name, items, begun });
        // From here on whoever drops this leaves.
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
        let keeper = Keeper {
            address: self.address.clone(),
            dialer: self.dialer.clone(),
            timeout: self.timeout,
            desk: self.desk.clone(),
            orders,
            watchers: BTreeMap::new(),
            connection: None,
            delays: backoff(),
            due: after(Duration::ZERO),
        };
        tokio::spawn(keeper.keep());
        *desk = Some(open.clone());
        open
    }
}

fn lock(desk: &Desk) -> MutexGuard<'_, Option<UnboundedSender<Order>>> {
    desk.lock().unwrap_or_else(PoisonError::into_inner)
}

fn backoff() -> ExponentialBackoff {
    let delays = ExponentialBuilder::new().with_min_delay(RETRY.0).with_max_delay(RETRY.1);
    delays.without_max_times().with_jitter().build()
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
        // Who is not there any more keeps nothing.
        let _ = self.desk.unbounded_send(Order::Left);
    }
}

struct Keeper {
    address: Address,
    dialer: Dialer,
    timeout: Duration,
    desk: Desk,
    orders: UnboundedReceiver<Order>,
    /// All channels that are subscribed, or were when the connection broke.
    watchers: BTreeMap<String, Vec<Sender<()>>>,
    connection: Option<(PubSubSink, PubSubStream)>,
    delays: ExponentialBackoff,
    /// When to connect again, or to ask whether the connection is still there.
    due: Pin<Box<Sleep>>,
}

enum Event {
    Order(Order),
    /// Something was said on a channel.
    Said(String),
    Lost,
    Due,
}

impl Keeper {
    async fn keep(mut self) {
        while let Some(event) = self.event().await {
            match event {
                Event::Order(Order::Watch(newcomer)) => self.welcome(newcomer).await,
                Event::Order(Order::Left) => self.let_go().await,
                Event::Said(channel) => {
                    self.due = after(SILENCE);
                    self.watchers.get_mut(&channel).into_iter().flatten().for_each(tell);
                }
                Event::Lost => self.lose(io::Error::from(io::ErrorKind::ConnectionReset).into()),
                Event::Due if self.connection.is_some() => self.ping().await,
                Event::Due => self.come_back().await,
            }
        }
    }

    /// What happens next. None: nobody watches any more.
    async fn event(&mut self) -> Option<Event> {
        if self.watchers.is_empty() {
            // Said while nobody can order, so that the next one starts another task.
            let mut desk = lock(&self.desk);
            let order = self.orders.try_recv().ok();
            if order.is_none() {
                *desk = None;
            }
            return order.map(Event::Order);
        }
        let said = async {
            match &mut self.connection {
                Some((_, stream)) => stream.next().await,
                None => std::future::pending().await,
            }
        };
        Some(tokio::select! {
            order = self.orders.next() => Event::Order(order?),
            said = said => said.map_or(Event::Lost, |said| Event::Said(said.get_channel_name().to_owned())),
            () = &mut self.due => Event::Due,
        })
    }

    async fn welcome(&mut self, Newcomer { channel, items, begun }: Newcomer) {
        if begun.is_canceled() {
            return;
        }
        let outcome = self.subscribe_for(&channel).await;
        if outcome.is_ok() {
            self.watchers.entry(channel).or_default().push(items);
        }
        // Who does not listen any more has left, and says so.
        let _ = begun.send(outcome);
    }

    async fn subscribe_for(&mut self, channel: &str) -> Result<(), StateError> {
        if self.connection.is_none() {
            self.connect().await.map_err(|error| error::of_dialing(error, &self.address))?;
            self.tell_all();
        }
        if self.watchers.contains_key(channel) {
            return Ok(());
        }
        let subscribed = self.subscribe(channel).await;
        subscribed.map_err(|error| error::of_watching(error, channel))
    }

    /// Connects, and subscribes to all channels that are watched.
    async fn connect(&mut self) -> RedisResult<()> {
        let connecting = time::timeout(self.timeout, self.dialer.clone().dial_to_watch());
        let connection = connecting.await.unwrap_or_else(|_| Err(timed_out()))?;
        self.connection = Some(connection.split());
        let known: Vec<String> = self.watchers.keys().cloned().collect();
        for channel in known {
            if let Err(error) = self.subscribe(&channel).await {
                if self.connection.is_none() {
                    return Err(error);
                }
                tracing::warn!(redis = %self.address, channel, %error, "cannot watch any more");
                // Its watchers see that this is the end.
                self.watchers.remove(&channel);
            }
        }
        self.delays = backoff();
        self.due = after(SILENCE);
        Ok(())
    }

    async fn subscribe(&mut self, channel: &str) -> RedisResult<()> {
        self.ask(async |sink| sink.subscribe(channel).await).await
    }

    /// Asks the server for something. What breaks the connection gives it up.
    async fn ask(
        &mut self,
        question: impl AsyncFnOnce(&mut PubSubSink) -> RedisResult<()>,
    ) -> RedisResult<()> {
        let Some((sink, _)) = &mut self.connection else { return Err(timed_out()) };
        let answer = time::timeout(self.timeout, question(sink)).await.unwrap_or_else(|_| Err(timed_out()));
        match answer {
            Err(error) if !error::is_refused_command(&error) => {
                self.lose(error.clone());
                Err(error)
            }
            answer => answer,
        }
    }

    async fn let_go(&mut self) {
        let mut left = Vec::new();
        self.watchers.retain(|channel, watchers| {
            watchers.retain(|watcher| !watcher.is_closed());
            if watchers.is_empty() {
                left.push(channel.clone());
            }
            !watchers.is_empty()
        });
        // With the last one the connection goes, too.
        if !self.watchers.is_empty() && !left.is_empty() && self.connection.is_some() {
            let _ = self.ask(async |sink| sink.unsubscribe(&left).await).await;
        }
    }

    /// Sees to it that a connection whose other end has vanished without a word is noticed.
    async fn ping(&mut self) {
        self.due = after(SILENCE);
        let _ = self.ask(async |sink| sink.ping::<redis::Value>().await.map(drop)).await;
    }

    async fn come_back(&mut self) {
        match self.connect().await {
            Ok(()) => {
                tracing::info!(redis = %self.address, "watches queues again");
                self.tell_all();
            }
            Err(error) => {
                tracing::debug!(redis = %self.address, %error, "cannot connect to watch");
                self.connection = None;
                self.try_again_later();
            }
        }
    }

    fn lose(&mut self, error: redis::RedisError) {
        tracing::warn!(redis = %self.address, %error, "lost the connection that watches queues");
        self.connection = None;
        self.try_again_later();
    }

    fn try_again_later(&mut self) {
        self.due = after(self.delays.next().unwrap_or(RETRY.1));
    }

    /// Something may have been missed.
    fn tell_all(&mut self) {
        self.watchers.values_mut().flatten().for_each(tell);
    }
}

fn tell(watcher: &mut Sender<()>) {
    let _ = watcher.try_send(());
}

fn after(delay: Duration) -> Pin<Box<Sleep>> {
    Box::pin(time::sleep(delay))
}

fn timed_out() -> redis::RedisError {
    io::Error::from(io::ErrorKind::TimedOut).into()
}
