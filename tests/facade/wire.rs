//! A state whose faults are chosen for each command.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use interval_queue::{
    MemoryState, SharedState, StateError, StateErrorKind,
    contract::{Command, QueueName, Reply, Step},
};
use tokio::time::sleep;

/// What becomes of one command.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fate {
    pub(crate) before: Duration,
    pub(crate) after: Duration,
    pub(crate) lose_request: bool,
    pub(crate) panic: bool,
}

type Decide = Arc<Mutex<Box<dyn FnMut(&Command) -> Fate + Send>>>;

/// A memory at the end of a wire whose faults are decided for each command.
#[derive(Clone)]
pub(crate) struct Wire {
    inner: MemoryState,
    decide: Decide,
}

impl std::fmt::Debug for Wire {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Wire")
    }
}

impl Wire {
    pub(crate) fn new(inner: MemoryState) -> Self {
        Self { inner, decide: Arc::new(Mutex::new(Box::new(|_| Fate::default()))) }
    }

    pub(crate) fn set(&self, decide: impl FnMut(&Command) -> Fate + Send + 'static) {
        *self.decide.lock().unwrap() = Box::new(decide);
    }
}

#[async_trait]
impl SharedState for Wire {
    async fn apply(&self, queue: &QueueName, command: Command) -> Result<Reply, StateError> {
        let fate = (self.decide.lock().unwrap())(&command);
        assert!(!fate.panic, "a backend with a bug");
        if !fate.before.is_zero() {
            sleep(fate.before).await;
        }
        if fate.lose_request {
            return Err(StateError::new(StateErrorKind::TimedOut, "the request was lost on purpose"));
        }
        let reply = self.inner.apply(queue, command).await;
        if !fate.after.is_zero() {
            sleep(fate.after).await;
        }
        reply
    }
}

/// The step that a command is, if it is one.
pub(crate) fn step_of(command: &Command) -> Option<&Step> {
    match command {
        Command::Step(step) => Some(step),
        _ => None,
    }
}
