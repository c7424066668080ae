//! A state backend of one's own: any store with compare-and-swap will do, here a key-value store that keeps a
//! version with each value, as etcd, Consul, DynamoDB and object stores do.
//!
//! The backend is the thirty lines from `struct KeyValueState` on. `main` runs the suite that every backend
//! passes.
//!
//!     cargo run --example own_backend

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{SystemTime, UNIX_EPOCH},
};

use interval_queue::contract::{
    Command, Micros, QueueName, Reading, Record, Reply, SharedState, StateError, StateErrorKind, rules,
};
use interval_queue_conformance::{CHECKS, Handles};

#[derive(Clone, Debug)]
struct KeyValueState {
    store: KeyValueStore,
}

#[async_trait::async_trait]
impl SharedState for KeyValueState {
    async fn apply(&self, queue: &QueueName, command: Command) -> Result<Reply, StateError> {
        for _ in 0..10_000 {
            let (version, text, now) = self.store.get(queue.as_str()).await;
            let mut record = text.map(|text| Record::from_json(&text)).transpose()?;
            let reply = rules::apply(&mut record, &Reading::of_clock(now), &command)?;
            if matches!(command, Command::Read) {
                return Ok(reply);
            }
            let text = record.map(|record| record.to_json()).transpose()?;
            if self.store.compare_and_swap(queue.as_str(), version, text).await {
                return Ok(reply);
            }
            // Somebody else was faster: look again. Nothing was stored.
        }
        Err(StateError::new(StateErrorKind::Unreachable, "the key is changed too often: try again later"))
    }

    async fn queues(&self) -> Result<Vec<QueueName>, StateError> {
        self.store.keys().await.into_iter().map(|key| Ok(QueueName::new(key)?)).collect()
    }
}

/// A value and its version.
type Versioned = (u64, Option<String>);

/// The store, which would be a client of a server. It tells its own time with each value.
#[derive(Clone, Debug, Default)]
struct KeyValueStore {
    values: Arc<Mutex<HashMap<String, Versioned>>>,
}

impl KeyValueStore {
    #[allow(clippy::disallowed_methods, reason = "this is the clock of the store")]
    async fn get(&self, key: &str) -> (u64, Option<String>, Micros) {
        tokio::task::yield_now().await;
        let values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let (version, text) = values.get(key).cloned().unwrap_or_default();
        (version, text, Micros::from_duration(now))
    }

    /// Without a text it removes the value. The version goes on, or else a process that is slow could take a new
    /// value for the one it saw.
    async fn compare_and_swap(&self, key: &str, version: u64, text: Option<String>) -> bool {
        tokio::task::yield_now().await;
        let mut values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        let same = values.get(key).map_or(0, |(version, _)| *version) == version;
        if same {
            values.insert(key.to_owned(), (version + 1, text));
        }
        same
    }

    async fn keys(&self) -> Vec<String> {
        let values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        let there = values.iter().filter(|(_, (_, text))| text.is_some());
        let mut keys: Vec<_> = there.map(|(key, _)| key.clone()).collect();
        keys.sort();
        keys
    }
}

/// Two handles on one state, as two processes would have them.
async fn make() -> Handles {
    let state = KeyValueState { store: KeyValueStore::default() };
    (Arc::new(state.clone()), Arc::new(state))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut failed = 0;
    for check in CHECKS {
        match check.run(make().await).await {
            Ok(()) => println!("  ok      {}", check.name()),
            Err(failure) => {
                failed += 1;
                println!("  FAILED  {failure}");
            }
        }
    }
    println!("\n{} of {} checks passed", CHECKS.len() - failed, CHECKS.len());
    if failed > 0 {
        return Err("the backend does not keep the contract".into());
    }

    let queue = interval_queue::IntervalQueue::builder("demo")
        .interval(std::time::Duration::from_millis(50))
        .open(make().await.0)
        .await?;
    println!("a job paced by it: {}", queue.add(async { "hello" }).await?.await?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::make;

    interval_queue_conformance::suite!(make);
}
