//! Who hears of changes: all queues of a state over one connection, which is there only while somebody
//! watches.

use std::{
    collections::HashMap,
    future::poll_fn,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use futures::{
    StreamExt,
    channel::mpsc::{Receiver, Sender, channel},
};
use interval_queue_contract::{Changes, QueueName, StateError, StateErrorKind};
use tokio::task::AbortHandle;
use tokio_postgres::{AsyncMessage, Client, Connection, Socket, tls::TlsStream};

use crate::{address::Address, error, statements::quoted};

/// How soon the system asks whether a silent connection is still there, and how often until it gives it up.
const SILENCE: (Duration, Duration, u32) = (Duration::from_secs(10), Duration::from_secs(5), 3);

/// Where watching begins.
pub(crate) struct Watching {
    place: Option<Place>,
    /// The connection that there is, as long as a stream holds it.
    listening: tokio::sync::Mutex<Weak<Listening>>,
}

struct Place {
    address: Address,
    channel: String,
    timeout: Duration,
}

impl Watching {
    pub(crate) fn new(mut address: Address, schema: String, timeout: Duration) -> Self {
        let (idle, interval, retries) = SILENCE;
        let config = &mut address.config;
        config.keepalives_idle(idle).keepalives_interval(interval).keepalives_retries(retries);
        Self { place: Some(Place { address, channel: schema, timeout }), listening: Default::default() }
    }

    /// For who has no address.
    pub(crate) fn impossible() -> Self {
        Self { place: None, listening: Default::default() }
    }

    pub(crate) async fn watch(&self, queue: &QueueName) -> Result<Changes, StateError> {
        let Some(place) = &self.place else {
            let text = "a pool that is shared cannot listen: connect by an address, or leave wake-ups off";
            return Err(StateError::new(StateErrorKind::Unsupported, text));
        };
        let joined = tokio::time::timeout(place.timeout, self.join(place, queue)).await;
        let (items, listening) = joined.unwrap_or_else(|_| Err(error::no_answer().error))?;
        // With the last stream the connection goes.
        Ok(Box::pin(items.map(move |()| {
            let _ = &listening;
        })))
    }

    /// Over the connection that there is, or else a new one.
    async fn join(
        &self,
        place: &Place,
        queue: &QueueName,
    ) -> Result<(Receiver<()>, Arc<Listening>), StateError> {
        let mut current = self.listening.lock().await;
        let known = current.upgrade().and_then(|listening| Some((listening.join(queue)?, listening)));
        if let Some(known) = known {
            return Ok(known);
        }
        let listening = place.listen().await?;
        *current = Arc::downgrade(&listening);
        let items = listening.join(queue);
        Ok((items.ok_or_else(|| error::no_answer().error)?, listening))
    }
}

impl Place {
    async fn listen(&self) -> Result<Arc<Listening>, StateError> {
        let dialed = self.address.dial().await;
        let (client, connection) =
            dialed.map_err(|error| error::of_dialing(error, &self.address.place).error)?;
        let watchers = Arc::new(Mutex::new(Some(HashMap::new())));
        let task = tokio::spawn(hear(connection, Hearing(watchers.clone()))).abort_handle();
        let listening = Arc::new(Listening { watchers, task, client });
        let listen = format!("LISTEN {}", quoted(&self.channel));
        let begun = listening.client.batch_execute(&listen).await;
        begun.map_err(|error| error::of_question(error).error)?;
        Ok(listening)
    }
}

/// A connection that listens, until this is dropped.
struct Listening {
    watchers: Watchers,
    task: AbortHandle,
    client: Client,
}

/// The watchers of each queue; none once the connection has ended.
type Watchers = Arc<Mutex<Option<HashMap<String, Vec<Sender<()>>>>>>;

impl Listening {
    /// One more who watches; none: the connection has ended.
    fn join(&self, queue: &QueueName) -> Option<Receiver<()>> {
        let mut watchers = lock(&self.watchers);
        let watchers = watchers.as_mut()?;
        // Those who have left are forgotten when others come.
        watchers.retain(|_, of_queue| {
            of_queue.retain(|watcher| !watcher.is_closed());
            !of_queue.is_empty()
        });
        // One item says all that several do.
        let (sender, receiver) = channel(0);
        watchers.entry(queue.as_str().to_owned()).or_default().push(sender);
        Some(receiver)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Ends the streams, also if the runtime that their connection belongs to drops it.
struct Hearing(Watchers);

impl Drop for Hearing {
    fn drop(&mut self) {
        *lock(&self.0) = None;
    }
}

/// Passes on what is told. When the connection ends, so do the streams.
async fn hear<T: TlsStream + Unpin>(mut connection: Connection<Socket, T>, hearing: Hearing) {
    let ended = loop {
        match poll_fn(|context| connection.poll_message(context)).await {
            Some(Ok(AsyncMessage::Notification(told))) => {
                let mut watchers = lock(&hearing.0);
                let of_queue = watchers.as_mut().and_then(|watchers| watchers.get_mut(told.payload()));
                for watcher in of_queue.into_iter().flatten() {
                    let _ = watcher.try_send(());
                }
            }
            Some(Ok(_)) => {}
            Some(Err(error)) => break Some(error),
            None => break None,
        }
    };
    tracing::warn!(error = ended.map(tracing::field::display), "lost the connection that watches queues");
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
