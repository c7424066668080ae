//! Users of a common group share a store in files: a directory with the set-group-ID bit, and a umask of 002.
#![cfg(target_os = "linux")]

use std::{
    fs::{self, Permissions},
    os::unix::fs::{MetadataExt, PermissionsExt, chown},
    path::Path,
    process::{Command, Output},
};

use interval_queue_test_support::files::skipped;
use tempfile::TempDir;

const GROUP: u32 = 61_990;
const USERS: [u32; 2] = [61_991, 61_992];

/// A directory of the group, and a copy of the program that its users may run.
struct Shared {
    directory: TempDir,
}

impl Shared {
    /// `None`, said aloud: the test is not run by root.
    fn new(test: &str) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            skipped(test, "root");
            return None;
        }
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).unwrap();
        let shared = Self { directory };
        // By a process of its own: one that another test starts would inherit a file that is open for writing, and what
        // is open so cannot be run.
        let copied =
            Command::new("cp").arg(env!("CARGO_BIN_EXE_interval-queue")).arg(shared.path("iq")).status();
        assert!(copied.unwrap().success());
        fs::create_dir(shared.path("data")).unwrap();
        chown(shared.path("data"), None, Some(GROUP)).unwrap();
        fs::set_permissions(shared.path("data"), Permissions::from_mode(0o2775)).unwrap();
        Some(shared)
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.directory.path().join(name)
    }

    /// The program as one of the users, with a umask.
    fn run(&self, user: u32, umask: &str, state: &str, args: &str) -> Output {
        let ids = [format!("--reuid={user}"), format!("--regid={user}"), format!("--groups={GROUP}")];
        let script = format!("umask {umask}; exec ../iq {args}");
        Command::new("setpriv")
            .args(ids)
            .args(["--", "sh", "-c", &script])
            .current_dir(self.path("data"))
            .env("INTERVAL_QUEUE_STORE", state)
            .env("INTERVAL_QUEUE_NAME", "mail")
            .output()
            .unwrap()
    }

    fn ok(&self, user: u32, state: &str, args: &str) -> String {
        let output = self.run(user, "002", state, args);
        assert!(output.status.success(), "user {user} on {state}: {args}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }
}

/// All files and directories below, each of the group, which may write to it.
fn assert_shared(below: &Path) {
    for entry in fs::read_dir(below).unwrap() {
        let path = entry.unwrap().path();
        let metadata = fs::metadata(&path).unwrap();
        assert_eq!(metadata.gid(), GROUP, "{}", path.display());
        assert_eq!(metadata.mode() & 0o060, 0o060, "{} has mode {:o}", path.display(), metadata.mode());
        if metadata.is_dir() {
            assert_shared(&path);
        }
    }
}

#[test]
#[ignore = "needs root: scripts/test runs it"]
fn users_of_a_group_share_tasks() {
    let Some(shared) = Shared::new("users_of_a_group_share_tasks") else { return };
    let [one, other] = USERS;
    for state in ["sqlite:queues.db", "dir:jobs"] {
        for (adds, works, done) in [(one, other, "3 done"), (other, one, "6 done")] {
            shared.ok(adds, state, "add --kind a 1");
            shared.ok(works, state, "add --kind b 2");
            assert_shared(&shared.path("data"));
            shared.ok(works, state, "work --until-empty --kind a -- ../iq add --kind c 3");
            shared.ok(adds, state, "work --until-empty --kind b --kind c -- true");
            shared.ok(works, state, "tasks set --key-limit 2");
            shared.ok(adds, state, "tasks set --key-limit 1");
            shared.ok(works, state, "run --every 1ms -- true");
            shared.ok(adds, state, "run --every 1ms -- true");
            assert!(shared.ok(adds, state, "tasks").contains(done), "{state}");
            assert_shared(&shared.path("data"));
        }
    }
}

#[test]
#[ignore = "needs root: scripts/test runs it"]
fn users_of_a_group_share_a_pace() {
    let Some(shared) = Shared::new("users_of_a_group_share_a_pace") else { return };
    for state in ["file:pace.json", "file:renamed.json?replacement=rename", "sqlite:pace.db", "dir:pace"] {
        for user in USERS.into_iter().chain(USERS) {
            shared.ok(user, state, "run --every 1ms -- true");
            shared.ok(user, state, "pause");
            shared.ok(user, state, "resume");
            assert_shared(&shared.path("data"));
        }
    }
}

#[test]
#[ignore = "needs root: scripts/test runs it"]
fn a_user_without_rights_is_named_the_file() {
    let Some(shared) = Shared::new("a_user_without_rights_is_named_the_file") else { return };
    let [one, other] = USERS;
    for (state, add, file) in [
        ("sqlite:private.db", "add 1", "private.db"),
        ("dir:private", "add 1", "private"),
        ("file:private.json", "run --every 1ms -- true", "private.json"),
    ] {
        for umask in ["077", "022"] {
            let first = shared.run(one, umask, state, add);
            assert!(first.status.success(), "{state}: {first:?}");
            let second = shared.run(other, "002", state, add);
            let text = String::from_utf8_lossy(&second.stderr);
            assert_eq!(second.status.code(), Some(77), "{state} under umask {umask}: {text}");
            assert!(text.contains(file) && text.contains("right"), "{state} under umask {umask}: {text}");
            assert_eq!(text.lines().count(), 1, "{text}");
            assert!(shared.run(one, umask, state, add).status.success(), "{state} is as it was");
            for entry in fs::read_dir(shared.path("data")).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() { fs::remove_dir_all(path).unwrap() } else { fs::remove_file(path).unwrap() }
            }
        }
    }
}
