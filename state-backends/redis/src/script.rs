//! The scripts, each put together from the files it needs.

use std::sync::LazyLock;

use redis::Cmd;

/// A Lua script and the name under which a server remembers it.
#[derive(Debug)]
pub(crate) struct Script {
    source: &'static str,
    hash: String,
}

macro_rules! script {
    ($($file:literal),+) => {
        LazyLock::new(|| Script::new(concat!($(include_str!(concat!("lua/", $file, ".lua"))),+)))
    };
}

/// Takes tickets and asks for slots.
pub(crate) static STEP: LazyLock<Script> =
    script!("numbers", "record", "presence", "clock", "loss", "slot", "wait", "step");
/// Changes something for all shards.
pub(crate) static CHANGE: LazyLock<Script> =
    script!("numbers", "record", "presence", "clock", "loss", "change");
/// Looks.
pub(crate) static READ: LazyLock<Script> = script!("numbers", "record", "presence", "clock", "read");

impl Script {
    pub(crate) fn new(source: &'static str) -> Self {
        Self { source, hash: redis::Script::new(source).get_hash().to_owned() }
    }

    /// The command that runs it by name. A server that does not know it answers `NOSCRIPT`.
    pub(crate) fn by_hash(&self, keys: &[String; 4], args: &[String]) -> Cmd {
        invocation("EVALSHA", &self.hash, keys, args)
    }

    /// The command that runs it and makes its name known.
    pub(crate) fn by_source(&self, keys: &[String; 4], args: &[String]) -> Cmd {
        invocation("EVAL", self.source, keys, args)
    }

    #[cfg(test)]
    pub(crate) fn source(&self) -> &'static str {
        self.source
    }
}

fn invocation(verb: &str, script: &str, keys: &[String; 4], args: &[String]) -> Cmd {
    let mut command = redis::cmd(verb);
    command.arg(script).arg(keys.len()).arg(&keys[..]).arg(args);
    command
}
