//! A store that refuses a worker, or is away: one line, one more when it is back, and the commands that look say why.
//! Each test takes five seconds or more: for three of them no second line may follow.

use std::{fs, io::Write as _, path::PathBuf, thread::sleep, time::Duration};

use interval_queue_test_support::{PostgresServer, RedisServer, SmallDisk};
use rustix::process::Signal;

use crate::{
    place_tests::Backend,
    process::{Process, text, wait_until},
};

/// A worker at a store.
struct Watched<'a> {
    place: &'a Backend,
    url: String,
    worker: Process,
}

impl<'a> Watched<'a> {
    /// One that has run a task.
    fn start(place: &'a Backend, url: String) -> Self {
        let mut command = place.command(&["work", "--lease", "1s", "--", "sh", "-c", "cat; echo >> runs"]);
        let stderr = fs::File::create(place.path("stderr")).unwrap();
        let worker = command.env("INTERVAL_QUEUE_STORE", &url).stderr(stderr).spawn().unwrap();
        let watched = Self { place, url, worker: Process::adopt(worker) };
        watched.runs(1);
        watched
    }

    fn run(&self, args: &[&str]) -> std::process::Output {
        let mut command = self.place.command(args);
        Process::spawn(command.env("INTERVAL_QUEUE_STORE", &self.url)).finish()
    }

    /// Adds a task and waits until it has run.
    fn runs(&self, count: usize) {
        let output = self.run(&["add", "1"]);
        assert!(output.status.success(), "{output:?}");
        let runs = || fs::read_to_string(self.place.path("runs")).unwrap_or_default().lines().count();
        wait_until("the task runs", || runs() >= count);
    }

    fn printed(&self) -> Vec<String> {
        let printed = fs::read_to_string(self.place.path("stderr")).unwrap();
        printed.lines().map(str::to_owned).collect()
    }

    /// Waits for the line that has these words, and sees that no other one follows.
    fn fails(&self, words: &[&str]) {
        wait_until("the outage is printed", || !self.printed().is_empty());
        // Several steps later.
        sleep(Duration::from_secs(3));
        let printed = self.printed();
        assert_eq!(printed.len(), 1, "{printed:?}");
        for word in words {
            assert!(printed[0].contains(word), "{word}: {printed:?}");
        }
        assert!(printed[0].starts_with("interval-queue: store ") && printed[0].ends_with("; trying again"));
    }

    /// What only looks ends with a line of its own.
    fn looks_fail(&self, code: i32) {
        for args in [&["status"][..], &["tasks"]] {
            let output = self.run(args);
            assert_eq!(output.status.code(), Some(code), "{args:?}: {output:?}");
            assert_eq!(text(&output.stderr).lines().count(), 1, "{args:?}: {output:?}");
        }
    }

    fn answers(self) {
        wait_until("its end is printed", || self.printed().len() == 2);
        assert!(self.printed()[1].contains(" answers again, after "), "{:?}", self.printed());
        self.runs(2);
        assert_eq!(self.printed().len(), 2);
        self.worker.signal(Signal::TERM);
        self.worker.finish();
    }
}

fn path_of(url: &str) -> PathBuf {
    url.split_once(':').unwrap().1.into()
}

#[test]
fn a_database_that_is_gone_and_comes_back() {
    for scheme in ["sqlite", "dir"] {
        let mut place = Backend::sqlite();
        let url = place.url().replace("sqlite:", &format!("{scheme}:"));
        {
            let watched = Watched::start(&place, url.clone());
            fs::rename(place.path("data"), place.path("kept")).unwrap();
            watched.fails(&["unusable", &path_of(&url).display().to_string()]);
            watched.looks_fail(66);
            fs::rename(place.path("kept"), place.path("data")).unwrap();
            watched.answers();
        }
        place.take_away();
    }
}

#[test]
fn a_database_of_garbage() {
    let place = Backend::sqlite();
    // The last one who closes a database writes the log into it.
    place.ok(&["add", "1"]);
    place.run(&["work", "--until-empty", "--", "true"]);
    let watched = Watched::start(&place, place.url());
    let path = path_of(&place.url());
    let garbage: Vec<u8> = (0..200_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    // In the same file: the log and its index stay, so the worker has all pages in its memory. By one write: a file that
    // is empty for a moment is an empty database.
    let mut file = fs::OpenOptions::new().write(true).open(path).unwrap();
    assert!(file.metadata().unwrap().len() <= garbage.len() as u64);
    file.write_all(&garbage).unwrap();
    watched.fails(&["unusable", "queues.db"]);
    watched.looks_fail(65);
}

#[test]
#[ignore = "needs root: scripts/test runs it"]
fn a_disk_that_is_full_and_has_room_again() {
    if !SmallDisk::is_possible() {
        eprintln!("skipped: only root may mount a disk");
        return;
    }
    for scheme in ["sqlite", "dir"] {
        let (place, disk) = (Backend::sqlite(), SmallDisk::mount());
        let watched = Watched::start(&place, format!("{scheme}:{}/queues", disk.path().display()));
        // Some room may be left in files that are there.
        wait_until("the outage is printed", || {
            disk.fill();
            !watched.printed().is_empty()
        });
        // What a flush has no room for may be stored or not.
        watched.fails(&[]);
        let printed = watched.printed().remove(0);
        assert!(printed.contains("no room left") || printed.contains("disk is full"), "{printed}");
        disk.free();
        watched.answers();
    }
}

#[test]
#[ignore = "needs redis-server: scripts/test runs it"]
fn a_redis_that_refuses_and_one_that_is_away() {
    let server = RedisServer::start();
    let place = Backend::file();
    server.command(&["ACL", "SETUSER", "worker", "on", ">se:cret", "~*", "&*", "+@all"]);
    let url = server.url().replace("redis://", "redis://worker:se%3Acret@");
    let watched = Watched::start(&place, url);
    server.command(&["ACL", "SETUSER", "worker", "-@all"]);
    watched.fails(&["unusable", "does not permit"]);
    assert!(!watched.printed()[0].contains("cret"), "{:?}", watched.printed());
    watched.looks_fail(77);
    server.command(&["ACL", "SETUSER", "worker", "+@all"]);
    watched.answers();

    let mut server = RedisServer::start();
    let place = Backend::file();
    let watched = Watched::start(&place, server.url().to_owned());
    server.kill();
    watched.fails(&["unreachable", "cannot be reached"]);
    watched.looks_fail(69);
    server.start_again();
    watched.answers();
}

#[test]
#[ignore = "needs postgresql: scripts/test runs it"]
fn a_postgres_that_refuses_and_one_that_is_away() {
    let mut server = PostgresServer::start();
    let place = Backend::file();
    let grant = "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA interval_queue";
    server.psql("CREATE ROLE worker LOGIN; GRANT CREATE ON DATABASE postgres TO worker");
    let (scheme, rest) = server.url().split_once("://").unwrap();
    let host = rest.split_once('@').map_or(rest, |(_, host)| host);
    let url = format!("{scheme}://worker@{host}");
    let watched = Watched::start(&place, url);
    let revoke = grant.replace("GRANT", "REVOKE");
    server.psql(&format!("REVOKE CREATE ON DATABASE postgres FROM worker; {revoke} FROM worker"));
    watched.fails(&["unusable", "does not permit"]);
    watched.looks_fail(77);
    server.psql(&format!("{grant} TO worker"));
    watched.answers();

    fs::remove_file(place.path("runs")).unwrap();
    let watched = Watched::start(&place, server.url().to_owned());
    server.stop();
    watched.fails(&["unreachable"]);
    watched.looks_fail(69);
    server.start_again();
    watched.answers();
}
