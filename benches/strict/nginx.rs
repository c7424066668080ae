//! A limiter that refuses what comes early: nginx with `limit_req`, and what it says of a run.

use std::{
    fs, io,
    net::{Ipv4Addr, TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use rustix::process::{Pid, setpriority_process};
use tempfile::TempDir;

/// Where it is looked for: Debian puts it where only root looks.
const PROGRAMS: [&str; 2] = ["nginx", "/usr/sbin/nginx"];
/// A nice value that comes before everything else.
const FIRST: i32 = -19;
/// How often it is asked whether something has happened, and for how long: about five seconds.
const PAUSE: Duration = Duration::from_millis(10);
const ATTEMPTS: u32 = 500;

/// What it lets through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limit {
    /// Requests a second.
    pub(crate) rate: u32,
    /// How many may come early.
    pub(crate) burst: u32,
}

/// A server of its own on a loopback port; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Nginx {
    child: Child,
    port: u16,
    directory: TempDir,
}

/// What a server said of the requests of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Verdict {
    pub(crate) good: u64,
    pub(crate) refused: u64,
    /// Good answers a second, from the first to the last of them; zero if there are not two.
    pub(crate) good_rate: f64,
}

impl Limit {
    /// The configuration of a server that keeps this limit for all its clients together.
    pub(crate) fn configuration(self, port: u16) -> String {
        let burst = match self.burst {
            0 => String::new(),
            burst => format!(" burst={burst} nodelay"),
        };
        // A key that is never empty: nginx lets requests through that have none. `empty_gif` comes after the
        // limit in nginx's order of phases; `return` would come before it.
        format!(
            "daemon off;
master_process off;
pid nginx.pid;
error_log error.log;
events {{}}
http {{
  log_format verdict '$msec $status';
  access_log verdicts.log verdict;
  keepalive_requests 1000000;
  limit_req_zone $server_port zone=all:1m rate={}r/s;
  limit_req_log_level info;
  server {{
    listen 127.0.0.1:{port};
    location / {{ limit_req zone=all{burst}; empty_gif; }}
  }}
}}
",
            self.rate
        )
    }
}

impl Nginx {
    /// How to call it; none: it is not here.
    pub(crate) fn program() -> Option<&'static str> {
        PROGRAMS.into_iter().find(|program| {
            Command::new(program)
                .arg("-v")
                .stderr(Stdio::null())
                .status()
                .is_ok_and(|status| status.success())
        })
    }

    /// # Errors
    ///
    /// It is not here, or does not answer.
    pub(crate) fn start(limit: Limit) -> io::Result<Self> {
        let program = Self::program().ok_or_else(|| io::Error::other("nginx is not here"))?;
        let directory = tempfile::Builder::new().prefix("interval-queue-nginx-").tempdir()?;
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        fs::write(directory.path().join("nginx.conf"), limit.configuration(port))?;
        let child = Command::new(program)
            .arg("-p")
            .arg(directory.path())
            .args(["-c", "nginx.conf", "-e", "error.log"])
            .stdin(Stdio::null())
            .spawn()?;
        // It stands for a server on another host: as far as that is allowed, nothing here makes it late.
        let _ = setpriority_process(Some(Pid::from_child(&child)), FIRST);
        let mut server = Self { child, port, directory };
        for _ in 0..ATTEMPTS {
            if TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok() {
                return Ok(server);
            }
            if server.child.try_wait()?.is_some() {
                break;
            }
            thread::sleep(PAUSE);
        }
        let log = fs::read_to_string(server.directory.path().join("error.log")).unwrap_or_default();
        Err(io::Error::other(format!("nginx does not answer on port {port}: {}", log.trim())))
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Its verdict on so many requests, as soon as it has answered them.
    ///
    /// # Errors
    ///
    /// There were more or fewer.
    pub(crate) fn verdict(&self, requests: u64) -> io::Result<Verdict> {
        let log = self.directory.path().join("verdicts.log");
        let mut verdict = Verdict::default();
        for _ in 0..ATTEMPTS {
            verdict = Verdict::read(&log)?;
            if verdict.requests() >= requests {
                break;
            }
            thread::sleep(PAUSE);
        }
        match verdict.requests() {
            came if came == requests => Ok(verdict),
            came => Err(io::Error::other(format!("{came} requests came to nginx instead of {requests}"))),
        }
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // It has no other processes, and nothing that it would have to save.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Verdict {
    fn read(log: &Path) -> io::Result<Self> {
        let text = fs::read_to_string(log)?;
        Self::parse(&text).ok_or_else(|| io::Error::other(format!("nginx wrote into its log: {text}")))
    }

    /// Reads lines of an instant in seconds and the status of an answer. The last line may be torn.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut verdict = Self::default();
        let (mut first, mut last) = (None, 0.0);
        for line in text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
            let (at, status) = line.split_once(' ')?;
            match status {
                "200" => {
                    verdict.good += 1;
                    last = at.parse::<f64>().ok()?;
                    first.get_or_insert(last);
                }
                "503" => verdict.refused += 1,
                _ => return None,
            }
        }
        let took = last - first.unwrap_or(last);
        if took > 0.0 {
            verdict.good_rate = (verdict.good - 1) as f64 / took;
        }
        Some(verdict)
    }

    pub(crate) fn requests(&self) -> u64 {
        self.good + self.refused
    }

    pub(crate) fn refused_per_1000(&self) -> f64 {
        self.refused as f64 * 1000.0 / self.requests().max(1) as f64
    }
}
