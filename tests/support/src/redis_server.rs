//! One `redis-server` (or `valkey-server`): started, killed, started again, always gone in the end.

use std::{
    env, fs,
    net::{Ipv4Addr, TcpListener},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use tempfile::TempDir;

use crate::resp;

/// How often a server is asked for a sign of life before it is given up: about ten seconds.
const ATTEMPTS: u32 = 500;
const PAUSE: Duration = Duration::from_millis(20);
/// A cluster node also listens on its port + 10,000.
const HIGHEST_PORT: u16 = 55_535;

/// A real server on a free loopback port, in a temporary directory of its own. It is killed when this is
/// dropped.
///
/// The program is `redis-server` on the `PATH`, or the one that the environment variable
/// `INTERVAL_QUEUE_REDIS_SERVER` names. Nothing is persisted unless the arguments say so. The process id is
/// in `redis.pid` in the directory as long as the process runs.
#[derive(Debug)]
pub struct RedisServer {
    dir: TempDir,
    port: u16,
    url: String,
    config: String,
    args: Vec<String>,
    process: Option<Child>,
}

/// How servers differ.
pub(crate) struct Kind {
    /// Where a client finds it.
    pub(crate) url: String,
    /// Lines for its configuration file.
    pub(crate) config: String,
    /// Arguments, which come after the file and win.
    pub(crate) args: Vec<String>,
}

impl RedisServer {
    /// A plain server.
    pub fn start() -> Self {
        Self::with_args(&[])
    }

    /// A server with more arguments, for example `["--appendonly", "yes"]`.
    pub fn with_args(args: &[&str]) -> Self {
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        Self::launch(|_, port| Kind {
            url: format!("redis://127.0.0.1:{port}"),
            config: "save \"\"\n".into(),
            args: args.clone(),
        })
    }

    /// A server whose kind depends on its directory and port.
    pub(crate) fn launch(kind: impl Fn(&Path, u16) -> Kind) -> Self {
        // Somebody else may take the port between its choice and its use.
        for _ in 0..10 {
            let dir = tempfile::Builder::new()
                .prefix("interval-queue-redis-")
                .tempdir()
                .expect("a temporary directory");
            let port = free_port();
            let Kind { url, config, args } = kind(dir.path(), port);
            let mut server = Self { dir, port, url, config, args, process: None };
            if server.try_start() {
                return server;
            }
            let log = server.log();
            assert!(log.contains("in use"), "the server does not start:\n{log}");
        }
        panic!("found no free port");
    }

    /// Where a client finds it, without credentials.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Its port for connections without TLS.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The directory of its data and its log.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Ends the process with SIGKILL. What it persisted stays.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().expect("kill the server");
            process.wait().expect("wait for the server");
            fs::remove_file(self.pid_file()).expect("remove redis.pid");
        }
    }

    /// Starts a killed server on the same port, with what it persisted.
    pub fn start_again(&mut self) {
        assert!(self.process.is_none(), "the server runs");
        assert!(self.try_start(), "the server does not start:\n{}", self.log());
    }

    /// Kills it and starts it again.
    pub fn restart(&mut self) {
        self.kill();
        self.start_again();
    }

    /// The id of the process, for signals. None while it is killed.
    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(Child::id)
    }

    /// Stops it where it is, with SIGSTOP: connections stay open and nothing answers.
    #[cfg(unix)]
    pub fn freeze(&self) {
        crate::process::freeze(self.child());
    }

    /// Lets a frozen one go on.
    #[cfg(unix)]
    pub fn thaw(&self) {
        crate::process::thaw(self.child());
    }

    #[cfg(unix)]
    fn child(&self) -> &Child {
        self.process.as_ref().expect("the server runs")
    }

    /// Gives the server an order over a connection of its own. The reply comes as lines, nested arrays
    /// flattened.
    ///
    /// # Errors
    ///
    /// The server cannot be reached, or answers with an error.
    pub fn try_command(&self, words: &[&str]) -> std::io::Result<Vec<String>> {
        resp::command(self.port, words)
    }

    /// As [`try_command`](Self::try_command), for orders that cannot fail.
    pub fn command(&self, words: &[&str]) -> Vec<String> {
        self.try_command(words).unwrap_or_else(|error| panic!("{words:?}: {error}"))
    }

    fn try_start(&mut self) -> bool {
        let program = env::var_os("INTERVAL_QUEUE_REDIS_SERVER").unwrap_or_else(|| "redis-server".into());
        let process = Command::new(&program)
            .arg(self.config())
            .args(&self.args)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("{program:?} cannot be run: {error}"));
        fs::write(self.pid_file(), process.id().to_string()).expect("write redis.pid");
        self.process = Some(process);
        let up = self.answers();
        if !up {
            self.kill();
        }
        up
    }

    /// Its configuration file, written at the first start: a sentinel keeps in it what it learns.
    fn config(&self) -> PathBuf {
        let file = self.dir.path().join("redis.conf");
        if !file.exists() {
            let (port, dir, log) = (self.port, self.dir.path().display(), self.log_file());
            let text = format!("bind 127.0.0.1\nport {port}\ndir \"{dir}\"\nlogfile \"{}\"\n", log.display());
            fs::write(&file, text + &self.config).expect("write redis.conf");
        }
        file
    }

    fn answers(&mut self) -> bool {
        for _ in 0..ATTEMPTS {
            let ended = self.process.as_mut().unwrap().try_wait().expect("the server's state");
            if ended.is_some() {
                return false;
            }
            match self.try_command(&["PING"]) {
                Ok(_) => return true,
                // A server that wants a password first is up, too; one that reads its data is not.
                Err(error) if error.to_string().starts_with("NOAUTH") => return true,
                Err(_) => thread::sleep(PAUSE),
            }
        }
        false
    }

    fn log(&self) -> String {
        fs::read_to_string(self.log_file()).unwrap_or_default()
    }

    fn log_file(&self) -> PathBuf {
        self.dir.path().join("redis.log")
    }

    fn pid_file(&self) -> PathBuf {
        self.dir.path().join("redis.pid")
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A port that is free now, and the bus port of a cluster node with it.
pub(crate) fn free_port() -> u16 {
    let bind = |port| TcpListener::bind((Ipv4Addr::LOCALHOST, port));
    loop {
        let port = bind(0).unwrap().local_addr().unwrap().port();
        if port <= HIGHEST_PORT && bind(port + 10_000).is_ok() {
            return port;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[ignore = "needs redis-server: scripts/test runs it"]
    fn a_server_keeps_its_port_and_with_appendonly_its_data() {
        let mut server = RedisServer::with_args(&["--appendonly", "yes"]);
        server.command(&["SET", "colour", "green"]);
        let port = server.port();
        server.restart();
        assert_eq!(server.port(), port);
        assert_eq!(server.command(&["GET", "colour"]), ["green"]);
        server.kill();
        assert!(server.try_command(&["PING"]).is_err());
        assert!(!server.dir().join("redis.pid").exists());
    }

    #[test]
    #[ignore = "needs redis-server: scripts/test runs it"]
    fn nothing_of_a_server_is_left() {
        let server = RedisServer::start();
        let (port, dir) = (server.port(), server.dir().to_owned());
        drop(server);
        assert!(resp::command(port, &["PING"]).is_err());
        assert!(!dir.exists());
    }
}
