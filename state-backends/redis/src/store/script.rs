//! A Lua script and the name under which a server remembers it.

use redis::Cmd;

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

    /// The command that runs it by name. A server that does not know it answers `NOSCRIPT`.
    pub(super) fn by_hash(&self, server: &str, keys: &[String], arguments: &[impl AsRef<[u8]>]) -> Cmd {
        call("EVALSHA", &self.hash, server, keys, arguments)
    }

    /// The command that runs it and makes its name known.
    pub(super) fn by_source(&self, server: &str, keys: &[String], arguments: &[impl AsRef<[u8]>]) -> Cmd {
        call("EVAL", self.source, server, keys, arguments)
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
