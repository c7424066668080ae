//! The scripts, each put together from the files it needs.

use std::sync::LazyLock;

use redis::Cmd;

use crate::request::Request;

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
pub(crate) static STEP: LazyLock<Script> = script!(
    "numbers", "record", "ask", "clock", "loss", "presence", "others", "slot", "serve", "wait", "keep",
    "save", "reply"
);
/// Changes something for all shards.
pub(crate) static CHANGE: LazyLock<Script> =
    script!("numbers", "record", "wish", "clock", "loss", "presence", "change", "save", "publish", "changed");
/// Looks.
pub(crate) static READ: LazyLock<Script> = script!("numbers", "record", "clock", "read");

impl Script {
    pub(crate) fn new(source: &'static str) -> Self {
        Self { source, hash: redis::Script::new(source).get_hash().to_owned() }
    }

    #[cfg(test)]
    pub(crate) fn source(&self) -> &'static str {
        self.source
    }
}

impl Request<'_> {
    /// The command that runs the script by name. A server that does not know it answers `NOSCRIPT`.
    pub(crate) fn by_hash(&self, keys: &[String; 2], server: &str) -> Cmd {
        self.invocation("EVALSHA", &self.script.hash, keys, server)
    }

    /// The command that runs the script and makes its name known.
    pub(crate) fn by_source(&self, keys: &[String; 2], server: &str) -> Cmd {
        self.invocation("EVAL", self.script.source, keys, server)
    }

    fn invocation(&self, verb: &str, script: &str, keys: &[String; 2], server: &str) -> Cmd {
        let words = self.words.iter().chain([&verb, &script, &server]).map(|word| word.len());
        let size = words.chain(keys.iter().map(String::len)).sum::<usize>() + self.numbers.len() + 1;
        let mut command = Cmd::with_capacity(7 + self.words.len(), size);
        command
            .arg(verb)
            .arg(script)
            .arg(keys.len())
            .arg(&keys[..])
            .arg(&self.numbers)
            .arg(server)
            .arg(&self.words);
        command
    }
}
