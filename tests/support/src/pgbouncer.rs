//! PgBouncer between clients and a server.

use std::{
    fs::{self, File},
    net::{Ipv4Addr, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Stdio},
    thread,
    time::Duration,
};

use tempfile::TempDir;

use crate::{PostgresServer, redis_server::free_port};

/// How often it is asked for a sign of life: about thirty seconds.
const ATTEMPTS: u32 = 3_000;
const PAUSE: Duration = Duration::from_millis(10);
/// Distributions put it where only the superuser looks.
const ELSEWHERE: [&str; 2] = ["/usr/sbin", "/usr/local/sbin"];

/// A PgBouncer that pools transactions: each transaction of a client goes to any of few connections to the server. It
/// is killed when this is dropped.
#[derive(Debug)]
pub struct PgBouncer {
    dir: TempDir,
    port: u16,
    process: Child,
}

impl PgBouncer {
    /// One in front of this server, with so many connections to it. `None`: the program is not installed.
    pub fn start(server: &PostgresServer, connections: usize) -> Option<Self> {
        let program = locate()?;
        let dir = server.programs.directory();
        let port = free_port();
        let settings = format!(
            "[databases]\npostgres = host=127.0.0.1 port={} dbname=postgres user=postgres\n\
             [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n\
             pool_mode = transaction\ndefault_pool_size = {connections}\n",
            server.port()
        );
        fs::write(dir.path().join("pgbouncer.ini"), settings).expect("write pgbouncer.ini");
        let log = File::create(dir.path().join("pgbouncer.log")).expect("open the log of pgbouncer");
        let mut command = server.programs.command(program, dir.path());
        command.arg("pgbouncer.ini").stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let process = command.spawn().unwrap_or_else(|error| panic!("pgbouncer cannot be run: {error}"));
        fs::write(dir.path().join("pgbouncer.pid"), process.id().to_string()).expect("write pgbouncer.pid");
        let mut started = Self { dir, port, process };
        if started.is_up() {
            return Some(started);
        }
        let log = started.log();
        // Somebody else may take the port between its choice and its use.
        assert!(log.contains("in use"), "pgbouncer does not start:\n{log}");
        Self::start(server, connections)
    }

    /// Where a client finds it.
    pub fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    /// What it has written to its log.
    pub fn log(&self) -> String {
        fs::read_to_string(self.dir.path().join("pgbouncer.log")).unwrap_or_default()
    }

    fn is_up(&mut self) -> bool {
        for _ in 0..ATTEMPTS {
            if self.process.try_wait().expect("the state of pgbouncer").is_some() {
                return false;
            }
            if TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_ok() {
                return true;
            }
            thread::sleep(PAUSE);
        }
        false
    }
}

impl Drop for PgBouncer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn locate() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path);
    let places = on_path.chain(ELSEWHERE.iter().map(PathBuf::from));
    places.map(|place| place.join("pgbouncer")).find(|program: &PathBuf| Path::exists(program))
}
