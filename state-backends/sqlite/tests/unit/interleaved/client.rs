//! A process that uses the store: its commands are held before each statement.

use std::{
    pin::Pin,
    sync::{Arc, mpsc},
    time::Duration,
};

use async_trait::async_trait;
use futures::{FutureExt, future::join_all};
use interval_queue_contract::{QueueName, StateError};
use interval_queue_task_conformance::interleaved::{End, Session, SessionState};
use interval_queue_task_contract::{Command, Reply, TaskStore};
use tokio::{
    sync::mpsc::{UnboundedReceiver, unbounded_channel},
    time::timeout,
};

use super::{
    clients::nothing,
    hold::{Hold, Line},
};

/// A command that has not come to the database by then waits at the gate. On a busy machine it may only be slow: then
/// the order is another one.
const AT_THE_GATE: Duration = Duration::from_millis(20);

type Answers = Pin<Box<dyn Future<Output = Vec<Result<Reply, StateError>>> + Send>>;

#[derive(Debug)]
pub(super) struct Client {
    pub(super) store: Arc<dyn TaskStore>,
    pub(super) hold: Arc<Hold>,
}

impl Client {
    /// A session in which these commands are sent together.
    pub(super) async fn begin(&self, has_gate: bool, queue: &QueueName, commands: &[Command]) -> Held {
        let ((arrive, comes), (go, waits)) = (unbounded_channel(), mpsc::channel());
        self.hold.by(Line { comes: arrive, go: waits });
        let (store, queue, commands) = (self.store.clone(), queue.clone(), commands.to_vec());
        let is_group = commands.len() > 1;
        let send = {
            let store = store.clone();
            move |command| {
                let (store, queue) = (store.clone(), queue.clone());
                async move { store.apply(&queue, command).await }
            }
        };
        let answers = Box::pin(join_all(commands.into_iter().map(send)));
        let mut held = Held { has_gate, comes, go, before: None, answers, answered: Vec::new() };
        if is_group {
            held.gather(store).await;
        }
        held
    }
}

/// Commands that are held.
pub(super) struct Held {
    has_gate: bool,
    comes: UnboundedReceiver<String>,
    go: mpsc::Sender<()>,
    /// The statement that they are held before.
    before: Option<String>,
    answers: Answers,
    answered: Vec<Result<Reply, StateError>>,
}

impl Held {
    /// All are sent while the thread is busy with another command, so that they are carried out together.
    async fn gather(&mut self, store: Arc<dyn TaskStore>) {
        let (queue, nothing) = nothing();
        let mut first = store.apply(&queue, nothing);
        tokio::select! {
            _ = &mut first => panic!("it is not held"),
            Some(_) = self.comes.recv() => {}
        }
        assert!((&mut self.answers).now_or_never().is_none());
        self.go.send(()).unwrap();
        while let Some(sql) = self.comes.recv().await {
            self.go.send(()).unwrap();
            if sql == "COMMIT" {
                break;
            }
        }
        first.await.unwrap();
    }

    /// What they come to next, or their answers.
    async fn next(&mut self) -> SessionState {
        tokio::select! {
            biased;
            Some(sql) = self.comes.recv() => {
                // They find the database taken each time that the transaction begins once more.
                let waits = sql.starts_with("BEGIN") && self.before.as_ref() == Some(&sql);
                self.before = Some(sql);
                if waits { SessionState::Waits } else { SessionState::Held }
            }
            answered = &mut self.answers => {
                self.answered = answered;
                SessionState::Over
            }
        }
    }
}

#[async_trait]
impl Session for Held {
    async fn go_on(&mut self) -> SessionState {
        if self.before.is_some() {
            self.go.send(()).unwrap();
            return self.next().await;
        }
        if !self.has_gate {
            return self.next().await;
        }
        timeout(AT_THE_GATE, self.next()).await.unwrap_or(SessionState::Waits)
    }

    async fn end(&mut self) -> End {
        End::Answered(std::mem::take(&mut self.answered))
    }
}
