//! A store with a flaw: a command reads before its transaction begins. Each statement is a transaction of its own.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, atomic::Ordering},
};

use async_trait::async_trait;
use interval_queue_contract::{Changes, Micros, QueueName, StateError};
use interval_queue_task_contract::{Command, Reply, TaskStore, rules};
use rusqlite::Connection;

use super::{
    clients::Clock,
    hold::{Hold, watched},
};
use crate::{
    store::Fault,
    tasks::rows::{Tables, Writes},
};

#[derive(Debug)]
pub(super) struct Flawed {
    path: PathBuf,
    clock: Clock,
    hold: Arc<Hold>,
    connection: Arc<Mutex<Connection>>,
}

impl Flawed {
    pub(super) fn new(path: &Path, clock: Clock, hold: Arc<Hold>) -> Self {
        let connection = Connection::open(path).unwrap();
        connection.busy_timeout(std::time::Duration::ZERO).unwrap();
        let connection = Arc::new(Mutex::new(watched(connection)));
        Self { path: path.to_owned(), clock, hold, connection }
    }
}

#[async_trait]
impl TaskStore for Flawed {
    async fn apply(&self, queue: &QueueName, command: Command) -> Result<Reply, StateError> {
        let (path, queue, hold) = (self.path.clone(), queue.clone(), self.hold.clone());
        let now = Micros::new(self.clock.load(Ordering::Relaxed));
        let connection = self.connection.clone();
        let carry_out = move || {
            hold.holds_this_thread();
            let on = connection.lock().unwrap();
            let writes = Writes::default();
            let mut tables = Tables::new(&on, &path, &writes, &queue);
            let done = rules::apply(&mut tables, now, &command).and_then(|reply| {
                tables.finish()?;
                Ok(reply)
            });
            done.map_err(|fault| match fault {
                Fault::Refused(error) => error,
                other => panic!("{other:?}"),
            })
        };
        let (answer, answered) = tokio::sync::oneshot::channel();
        std::thread::spawn(move || {
            let _ = answer.send(carry_out());
        });
        answered.await.unwrap()
    }

    async fn queues(&self) -> Result<Vec<QueueName>, StateError> {
        Ok(Vec::new())
    }

    async fn changes(&self, _: &QueueName) -> Result<Changes, StateError> {
        Ok(Box::pin(futures::stream::pending()))
    }
}
