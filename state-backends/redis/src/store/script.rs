//! Lua scripts and libraries of functions, which a server remembers by name.

use std::time::Duration;

use interval_queue_contract::StateError;
use redis::{Cmd, Value};

use super::{RedisStore, error};

/// Its first argument is the name of the server that runs it.
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
    /// Sends the source only if the server does not know the script.
    ///
    /// # Errors
    ///
    /// [`TimedOut`](interval_queue_contract::StateErrorKind::TimedOut): it may have been carried
    /// out. [`Unreachable`](interval_queue_contract::StateErrorKind::Unreachable) or
    /// [`Denied`](interval_queue_contract::StateErrorKind::Denied): usually it was not.
    pub(crate) async fn run(
        &self,
        script: &Script,
        keys: &[String],
        arguments: &[impl AsRef<[u8]>],
    ) -> Result<Value, StateError> {
        // The source is sent with the same permit: after a wait, other commands would each send it
        // too.
        let mut permit = self.link.permit().await?;
        let by_hash = call("EVALSHA", &script.hash, permit.server(), keys, arguments);
        match permit.send(&by_hash, None).await? {
            Err(error) if error::is_no_script(&error) => {
                tracing::debug!(redis = ?self, "the server does not know the script: sending its source");
                let by_source = call("EVAL", script.source, permit.server(), keys, arguments);
                permit.send(&by_source, None).await?
            }
            answer => answer,
        }
        .map_err(error::of_command)
    }
}

/// Functions that a server keeps with its data. Their names begin with the library's, which depends
/// on its source: other versions of this software have libraries of their own.
#[derive(Debug)]
pub(crate) struct Library {
    name: String,
    source: String,
}

impl Library {
    /// The source gets the library's name in `NAME`.
    pub(crate) fn new(name: &str, source: &str) -> Self {
        let name = format!("{name}_{}", redis::Script::new(source).get_hash());
        let source = format!("#!lua name={name}\nlocal NAME = '{name}'\n{source}");
        Self { name, source }
    }
}

impl RedisStore {
    /// Loads the library if the server does not know it. The timeout is the store's, but at least
    /// `at_least`.
    ///
    /// # Errors
    ///
    /// The errors of [`run`](Self::run).
    pub(crate) async fn call(
        &self,
        library: &Library,
        function: &str,
        keys: &[String],
        arguments: &[impl AsRef<[u8]>],
        at_least: Duration,
    ) -> Result<Value, StateError> {
        let mut permit = self.link.permit().await?;
        permit.wait_at_least(at_least);
        let size = arguments.iter().map(|argument| argument.as_ref().len()).sum::<usize>();
        let size = size + keys.iter().map(String::len).sum::<usize>() + library.name.len() + 16;
        let mut call = Cmd::with_capacity(3 + keys.len() + arguments.len(), size);
        call.arg("FCALL").arg(format!("{}_{function}", library.name)).arg(keys.len()).arg(keys);
        arguments.iter().for_each(|argument| _ = call.arg(argument.as_ref()));
        match permit.send(&call, None).await? {
            Err(error) if error::is_no_function(&error) => {
                tracing::debug!(redis = ?self, "the server does not know the functions: loading them");
                let mut load = redis::cmd("FUNCTION");
                // Another process may load the library at the same time.
                load.arg("LOAD").arg("REPLACE").arg(&library.source);
                permit.send(&load, None).await?.map_err(error::of_command)?;
                permit.send(&call, None).await?
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
