//! One PostgreSQL server: started, killed, started again, always gone in the end.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Stdio},
    sync::Arc,
    thread,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::{children, postgres_programs::Programs, process, redis_server::free_port};

/// How often a server is asked for a sign of life before it is given up: about thirty seconds, since it may
/// have to recover first.
const ATTEMPTS: u32 = 3_000;
const PAUSE: Duration = Duration::from_millis(10);
/// A process that is killed loses nothing of what it gave to the kernel, so there is nothing to be learned
/// from waiting for the disk.
const SETTINGS: [(&str, &str); 3] =
    [("fsync", "off"), ("shared_buffers", "16MB"), ("wal_retrieve_retry_interval", "100ms")];

/// A real server with a cluster of its own, on a free loopback port, with a socket in its temporary
/// directory. All its processes are killed when this is dropped.
///
/// The programs are those in the directory that the environment variable `INTERVAL_QUEUE_POSTGRES_BIN` names,
/// those on the `PATH`, or the newest that a distribution has installed: version 13 or later. Where this user
/// is root they run as `postgres` or `nobody`, who must be able to reach the directory for temporary files.
///
/// What was committed survives a [`kill`](Self::kill), since the kernel has it: `fsync` is off, unless a
/// setting says otherwise. The process id is in `postgres.pid` in the directory as long as the process runs.
#[derive(Debug)]
pub struct PostgresServer {
    dir: TempDir,
    port: u16,
    pub(crate) url: String,
    pub(crate) settings: Vec<(String, String)>,
    process: Option<Child>,
    pub(crate) programs: Programs,
    /// Kept for the servers that start while this one runs.
    _template: Option<Arc<TempDir>>,
}

impl PostgresServer {
    /// Whether its programs are here.
    pub fn is_possible() -> bool {
        Programs::locate().is_some()
    }

    /// A server that trusts everybody.
    pub fn start() -> Self {
        Self::with_settings(&[])
    }

    /// A server with more settings, for example `[("max_connections", "20")]`.
    pub fn with_settings(settings: &[(&str, &str)]) -> Self {
        Self::fresh(settings).launch("postgres@127.0.0.1")
    }

    /// The same, not yet running.
    pub(crate) fn fresh(settings: &[(&str, &str)]) -> Self {
        let programs = Programs::find();
        let template = programs.template();
        let from = template.path().join("data");
        let mut server = Self::empty(programs, settings);
        server.programs.run("cp", &["-R", &from.to_string_lossy(), "data"], server.dir());
        server._template = Some(template);
        server
    }

    /// One that has no data yet.
    pub(crate) fn empty(programs: Programs, settings: &[(&str, &str)]) -> Self {
        let settings = SETTINGS.iter().chain(settings).map(|(name, value)| ((*name).into(), (*value).into()));
        let (settings, dir) = (settings.collect(), programs.directory());
        Self { dir, port: 0, url: String::new(), settings, process: None, programs, _template: None }
    }

    /// Starts it for clients who find it by this user and host.
    pub(crate) fn launch(mut self, who: &str) -> Self {
        // Somebody else may take the port between its choice and its use.
        for _ in 0..10 {
            self.port = free_port();
            self.url = format!("postgres://{who}:{}/postgres", self.port);
            if self.try_start() {
                return self;
            }
            let log = self.log();
            assert!(log.contains("in use"), "the server does not start:\n{log}");
        }
        panic!("found no free port");
    }

    /// Where a client finds it: `postgres://USER@HOST:PORT/postgres`, without a password.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The directory of its data, its log and its socket.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The directory of its cluster.
    pub fn data(&self) -> PathBuf {
        self.dir().join("data")
    }

    /// What it has written to its log.
    pub fn log(&self) -> String {
        fs::read_to_string(self.log_file()).unwrap_or_default()
    }

    /// Ends all its processes at once with SIGKILL, as a power cut would. What it committed stays, but for
    /// what `synchronous_commit = off` was yet to write.
    pub fn kill(&mut self) {
        let Some(mut process) = self.process.take() else { return };
        // One that stands still neither replaces a child nor tells the others to end.
        process::freeze(&process);
        let children = children::of(Pid::from_child(&process));
        children::signal(&children, Signal::KILL);
        process.kill().expect("kill the server");
        process.wait().expect("wait for the server");
        children::wait(&children);
        fs::remove_file(self.pid_file()).expect("remove postgres.pid");
    }

    /// Ends it in good order: sessions are ended, and all is written.
    pub fn stop(&mut self) {
        self.end(Signal::INT);
    }

    /// Starts a server that was killed or stopped on the same port, with what it has.
    pub fn start_again(&mut self) {
        assert!(self.process.is_none(), "the server runs");
        assert!(self.try_start(), "the server does not start:\n{}", self.log());
    }

    /// Kills it and starts it again.
    pub fn restart(&mut self) {
        self.kill();
        self.start_again();
    }

    /// The id of its first process, for signals. None while it does not run.
    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(Child::id)
    }

    /// Stops all its processes where they are, with SIGSTOP: connections stay open and nothing answers.
    pub fn freeze(&self) {
        process::freeze(self.child());
        let children = children::of(self.first());
        children::signal(&children, Signal::STOP);
        self.note(&children);
    }

    /// Lets a frozen one go on.
    pub fn thaw(&self) {
        children::signal(&children::of(self.first()), Signal::CONT);
        process::thaw(self.child());
        self.note(&[]);
    }

    fn child(&self) -> &Child {
        self.process.as_ref().expect("the server runs")
    }

    fn first(&self) -> Pid {
        Pid::from_child(self.child())
    }

    fn try_start(&mut self) -> bool {
        let log = File::options().create(true).append(true).open(self.log_file()).expect("open its log");
        let mut command = self.programs.command("postgres", self.dir());
        command.args(["-D", "data", "-h", "127.0.0.1", "-p", &self.port.to_string(), "-k"]).arg(self.dir());
        for (name, value) in &self.settings {
            command.args(["-c", &format!("{name}={value}")]);
        }
        let process = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn();
        self.process = Some(process.unwrap_or_else(|error| panic!("postgres cannot be run: {error}")));
        self.note(&[]);
        let up = self.is_up();
        if !up {
            self.end(Signal::QUIT);
        }
        up
    }

    /// Waits until it says that clients may come: a word in the eighth line of the file that begins with its
    /// number.
    fn is_up(&mut self) -> bool {
        let number = self.child().id().to_string();
        for _ in 0..ATTEMPTS {
            if self.process.as_mut().unwrap().try_wait().expect("the server's state").is_some() {
                return false;
            }
            let file = fs::read_to_string(self.data().join("postmaster.pid")).unwrap_or_default();
            let mut lines = file.lines().map(str::trim);
            if lines.next() == Some(&number) && lines.nth(6) == Some("ready") {
                return true;
            }
            thread::sleep(PAUSE);
        }
        false
    }

    /// Ends it by a signal that it understands, or all the same if it does not heed it.
    fn end(&mut self, signal: Signal) {
        let Some(process) = &mut self.process else { return };
        let _ = kill_process(Pid::from_child(process), signal);
        for _ in 0..ATTEMPTS {
            if process.try_wait().expect("the server's state").is_some() {
                self.process = None;
                fs::remove_file(self.pid_file()).expect("remove postgres.pid");
                return;
            }
            thread::sleep(PAUSE);
        }
        self.kill();
    }

    /// Writes down which processes are to be ended if this one cannot do it: the others end with the first,
    /// unless they are frozen.
    fn note(&self, frozen: &[Pid]) {
        let all = [self.first()].into_iter().chain(frozen.iter().copied());
        let numbers: Vec<_> = all.map(|pid| pid.as_raw_nonzero().to_string()).collect();
        fs::write(self.pid_file(), numbers.join("\n")).expect("write postgres.pid");
    }

    fn log_file(&self) -> PathBuf {
        self.dir().join("postgres.log")
    }

    fn pid_file(&self) -> PathBuf {
        self.dir().join("postgres.pid")
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        if self.process.is_some() {
            self.thaw();
            // Not with SIGKILL: it would leave a segment of shared memory in the kernel.
            self.end(Signal::QUIT);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{BufRead, BufReader, Write},
        net::{Ipv4Addr, TcpStream},
        sync::mpsc,
    };

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(30);

    fn processes(server: &PostgresServer) -> Vec<Pid> {
        let mut all = children::of(server.first());
        all.push(server.first());
        all
    }

    #[test]
    #[ignore = "needs postgresql: scripts/test runs it"]
    fn a_killed_server_comes_back_with_what_was_committed() {
        let mut server = PostgresServer::with_settings(&[("max_connections", "20")]);
        assert_eq!(server.psql("SHOW max_connections"), ["20"]);
        server.psql("CREATE TABLE colours (name text, number int)");
        server.psql("INSERT INTO colours VALUES ('green', 1), (NULL, 2)");
        let (port, processes) = (server.port(), processes(&server));
        assert!(processes.len() > 3, "{processes:?}");
        server.kill();
        assert!(processes.into_iter().all(children::is_gone));
        assert!(server.try_psql("SELECT 1").is_err());
        assert!(!server.dir().join("postgres.pid").exists());
        server.start_again();
        assert_eq!(server.port(), port);
        assert_eq!(server.psql("SELECT * FROM colours ORDER BY number"), ["green|1", "|2"]);
        assert!(server.log().contains("not properly shut down"), "{}", server.log());
        server.stop();
        server.start_again();
        let restarts = server.log().matches("not properly shut down").count();
        assert_eq!(restarts, 1, "a stop leaves nothing to recover: {}", server.log());
        assert!(server.try_psql("SELECT nonsense").unwrap_err().to_string().contains("nonsense"));
    }

    #[test]
    #[ignore = "needs postgresql: scripts/test runs it"]
    fn a_frozen_server_answers_nobody_until_it_is_thawed() {
        let server = PostgresServer::start();
        let mut client = server.client().stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut orders = client.stdin.take().unwrap();
        let output = BufReader::new(client.stdout.take().unwrap());
        let (sender, heard) = mpsc::channel();
        thread::spawn(move || output.lines().map_while(Result::ok).for_each(|line| drop(sender.send(line))));
        orders.write_all(b"SELECT 'one';\n").unwrap();
        assert_eq!(heard.recv_timeout(PATIENCE).unwrap(), "one");
        server.freeze();
        orders.write_all(b"SELECT 'two';\n").unwrap();
        assert!(heard.recv_timeout(Duration::from_millis(300)).is_err());
        server.thaw();
        assert_eq!(heard.recv_timeout(PATIENCE).unwrap(), "two");
        drop(orders);
        assert!(client.wait().unwrap().success());
    }

    #[test]
    #[ignore = "needs postgresql: scripts/test runs it"]
    fn nothing_of_a_server_is_left() {
        let server = PostgresServer::start();
        server.freeze();
        let noted = fs::read_to_string(server.pid_file()).unwrap().lines().count();
        let (port, dir, processes) = (server.port(), server.dir().to_owned(), processes(&server));
        assert_eq!(noted, processes.len());
        drop(server);
        assert!(TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err());
        assert!(!dir.exists());
        children::wait(&processes);
        assert!(processes.into_iter().all(children::is_gone));
    }
}
