//! Scripts in Lua, which a server remembers by name.

use interval_queue_contract::StateError;
use redis::{Cmd, Value};

use super::{RedisStore, error};

/// A script whose first argument is the name of the server that runs it.
#[derive(Debug)]
pub(crate) struct Script {
    source: &'static str,
    hash: String,
}

impl Script {
    pub(crate) fn new(source: &'static str) -> Self {
        Self { source, hash: redis::Script::new(source).get_hash().to_owned() }
    }
}

impl RedisStore {
    /// Runs a script with these arguments behind the name of the server; by its source if the server does not
    /// know it.
    ///
    /// # Errors
    ///
    /// [`TimedOut`](interval_queue_contract::StateErrorKind::TimedOut): it may have happened.
    /// [`Unreachable`](interval_queue_contract::StateErrorKind::Unreachable) or
    /// [`Denied`](interval_queue_contract::StateErrorKind::Denied), as a rule it has not.
    pub(crate) async fn run(
        &self,
        script: &Script,
        keys: &[String],
        arguments: &[impl AsRef<[u8]>],
    ) -> Result<Value, StateError> {
        // A command that has to send the source does so at once: behind all that wait, each of them would
        // have to.
        let mut turn = self.link.turn().await?;
        let by_hash = call("EVALSHA", &script.hash, turn.server(), keys, arguments);
        match turn.send(&by_hash, None).await? {
            Err(error) if error::is_no_script(&error) => {
                tracing::debug!(redis = ?self, "the server does not know the script: sending its source");
                let by_source = call("EVAL", script.source, turn.server(), keys, arguments);
                turn.send(&by_source, None).await?
            }
            answer => answer,
        }
        .map_err(error::of_command)
    }
}

fn call(verb: &str, script: &str, server: &str, keys: &[String], arguments: &[impl AsRef<[u8]>]) -> Cmd {
    let words = arguments.iter().map(|argument| argument.as_ref().len());
    let size = words.chain(keys.iter().map(String::len)).sum::<usize>() + script.len() + server.len() + 8;
    let mut command = Cmd::with_capacity(4 + keys.len() + arguments.len(), size);
    command.arg(verb).arg(script).arg(keys.len()).arg(keys).arg(server);
    for argument in arguments {
        command.arg(argument.as_ref());
    }
    command
}
