//! Watches the channel of a schema over one shared connection, open only while somebody watches.

use std::{
    collections::HashMap,
    future::poll_fn,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use futures::stream::{StreamExt, unfold};
use interval_queue_contract::{Changes, StateError};
use tokio::{sync::watch, task::AbortHandle};
use tokio_postgres::{AsyncMessage, Client, Connection, Socket, tls::TlsStream};

use super::{dialing::Dialer, error, sql::quoted};

/// Time until the first probe, time between probes, number of probes.
const KEEPALIVE: (Duration, Duration, u32) = (Duration::from_secs(10), Duration::from_secs(5), 3);

pub(super) struct Listener {
    dialer: Dialer,
    channel: String,
    timeout: Duration,
    /// The streams keep it open.
    listening: tokio::sync::Mutex<Weak<ListenerConnection>>,
}

impl Listener {
    pub(super) fn new(mut dialer: Dialer, channel: &str, timeout: Duration) -> Self {
        let (idle, interval, retries) = KEEPALIVE;
        dialer.config.keepalives_idle(idle).keepalives_interval(interval).keepalives_retries(retries);
        Self { dialer, channel: channel.to_owned(), timeout, listening: Default::default() }
    }

    pub(super) async fn watch(&self, name: &str) -> Result<Changes, StateError> {
        let joined = tokio::time::timeout(self.timeout, self.subscribe(name)).await;
        // The last stream closes the connection.
        let joined = joined.unwrap_or_else(|_| Err(error::no_answer().error))?;
        let changes = unfold(joined, |mut joined| async {
            joined.0.changed().await.ok()?;
            Some(((), joined))
        });
        Ok(changes.fuse().boxed())
    }

    async fn subscribe(
        &self,
        name: &str,
    ) -> Result<(watch::Receiver<()>, Arc<ListenerConnection>), StateError> {
        let mut current = self.listening.lock().await;
        let existing = current.upgrade().and_then(|listening| Some((listening.subscribe(name)?, listening)));
        if let Some(existing) = existing {
            return Ok(existing);
        }
        let listening = self.listen().await?;
        *current = Arc::downgrade(&listening);
        let items = listening.subscribe(name);
        Ok((items.ok_or_else(|| error::no_answer().error)?, listening))
    }

    async fn listen(&self) -> Result<Arc<ListenerConnection>, StateError> {
        let dialed = self.dialer.dial().await;
        let (client, connection) =
            dialed.map_err(|error| error::of_connect(error, &self.dialer.server_name).error)?;
        let watchers = Arc::new(Mutex::new(Some(HashMap::new())));
        let task = tokio::spawn(forward(connection, StreamEnd(watchers.clone()))).abort_handle();
        let listening = Arc::new(ListenerConnection { watchers, task, client });
        let listen = format!("LISTEN {}", quoted(&self.channel));
        let started = listening.client.batch_execute(&listen).await;
        started.map_err(|error| error::of_query(error).error)?;
        Ok(listening)
    }
}

/// Dropping it closes the connection.
struct ListenerConnection {
    watchers: Watchers,
    task: AbortHandle,
    client: Client,
}

/// `None`: the connection has ended.
type Watchers = Arc<Mutex<Option<HashMap<String, watch::Sender<()>>>>>;

impl ListenerConnection {
    /// `None`: the connection has ended.
    fn subscribe(&self, name: &str) -> Option<watch::Receiver<()>> {
        let mut watchers = lock(&self.watchers);
        let watchers = watchers.as_mut()?;
        watchers.retain(|_, sender| sender.receiver_count() > 0);
        Some(watchers.entry(name.to_owned()).or_default().subscribe())
    }
}

impl Drop for ListenerConnection {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Ends the streams when dropped, even if the runtime drops the task of the connection.
struct StreamEnd(Watchers);

impl Drop for StreamEnd {
    fn drop(&mut self) {
        *lock(&self.0) = None;
    }
}

async fn forward<T: TlsStream + Unpin>(mut connection: Connection<Socket, T>, stream_end: StreamEnd) {
    let ended = loop {
        match poll_fn(|context| connection.poll_message(context)).await {
            Some(Ok(AsyncMessage::Notification(notification))) => {
                let watchers = lock(&stream_end.0);
                if let Some(watchers) = watchers.as_ref().and_then(|all| all.get(notification.payload())) {
                    watchers.send_replace(());
                }
            }
            Some(Ok(_)) => {}
            Some(Err(error)) => break Some(error),
            None => break None,
        }
    };
    tracing::warn!(
        error = ended.map(tracing::field::display),
        "lost the connection that watches for changes"
    );
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
