//! The programs of PostgreSQL: where they are, as whom they run, and a cluster that they made for all
//! servers.

use std::{
    env,
    ffi::OsStr,
    fs,
    os::unix::{fs::chown, process::CommandExt},
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::{Arc, Mutex, PoisonError, Weak},
};

use tempfile::TempDir;

/// The oldest version that the queue works with.
const OLDEST: u32 = 13;
/// The users to be, the better first, where this one is root: PostgreSQL refuses to run as root.
const USERS: [&str; 2] = ["postgres", "nobody"];
/// Directories with a directory for each version, how the names of these begin, and where in them the
/// programs are.
const VERSIONS: [(&str, &str, &str); 5] = [
    ("/usr/lib/postgresql", "", "bin"),
    ("/usr", "pgsql-", "bin"),
    ("/usr/libexec", "postgresql", ""),
    ("/opt/homebrew/opt", "postgresql@", "bin"),
    ("/usr/local/opt", "postgresql@", "bin"),
];

/// Where the programs are and as whom they run.
#[derive(Clone, Debug)]
pub(crate) struct Programs {
    directory: PathBuf,
    /// User and group. None: as whoever this is.
    ids: Option<(u32, u32)>,
}

impl Programs {
    /// Those in the directory that `INTERVAL_QUEUE_POSTGRES_BIN` names, on the `PATH`, or of the newest
    /// version where distributions put them.
    pub(crate) fn find() -> Self {
        let directory = Self::locate().expect(
            "PostgreSQL is not here: install its server, or name the directory of its programs in \
             INTERVAL_QUEUE_POSTGRES_BIN",
        );
        // What is not there would be run from the PATH, and be of another version.
        assert!(
            has_server(&directory),
            "{} has no postgres and no initdb: name another directory in INTERVAL_QUEUE_POSTGRES_BIN",
            directory.display()
        );
        let is_root = rustix::process::geteuid().is_root();
        let ids = is_root.then(|| {
            let found = USERS.iter().find_map(|user| Some((id("-u", user)?, id("-g", user)?)));
            found.unwrap_or_else(|| panic!("there is no user to run PostgreSQL: none of {USERS:?}"))
        });
        let programs = Self { directory, ids };
        let says = programs.run("postgres", &["--version"], Path::new("/"));
        let version = says.split(|c: char| !c.is_ascii_digit()).find_map(|number| number.parse::<u32>().ok());
        assert!(version >= Some(OLDEST), "{says}: version {OLDEST} or later is needed");
        programs
    }

    /// The directory that they are in; none: there are none.
    pub(crate) fn locate() -> Option<PathBuf> {
        let named = env::var_os("INTERVAL_QUEUE_POSTGRES_BIN").map(PathBuf::from);
        named.or_else(on_path).or_else(newest)
    }

    /// A program, to be run by the user who owns the cluster.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>, directory: &Path) -> Command {
        let program = Path::new(program.as_ref());
        let here = self.directory.join(program);
        let mut command = crate::command(if here.exists() { &here } else { program });
        // Another user is not let into the directories of this one.
        command.current_dir(directory).env("HOME", directory);
        for (name, _) in env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("PG")) {
            command.env_remove(name);
        }
        if let Some((user, group)) = self.ids {
            command.uid(user).gid(group);
        }
        command
    }

    /// Runs a program to its end, and gives what it wrote.
    pub(crate) fn run(&self, program: &str, arguments: &[&str], directory: &Path) -> String {
        let output = self.command(program, directory).args(arguments).output();
        let Output { status, stdout, stderr } =
            output.unwrap_or_else(|error| panic!("{program} cannot be run: {error}"));
        assert!(status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&stderr));
        String::from_utf8_lossy(&stdout).into_owned()
    }

    /// Gives a file or directory to the user who runs the programs.
    pub(crate) fn give(&self, path: &Path) {
        if let Some((user, group)) = self.ids {
            chown(path, Some(user), Some(group)).expect("give a file to the user who runs PostgreSQL");
        }
    }

    /// A directory that belongs to that user. Its path is short: a socket in it may have about a hundred
    /// bytes.
    pub(crate) fn directory(&self) -> TempDir {
        let directory = tempfile::Builder::new().prefix("iq-postgres-").tempdir();
        let directory = directory.expect("a temporary directory");
        self.give(directory.path());
        directory
    }

    /// A fresh cluster in `data`, to be copied, since making one takes ten times as long. It is shared by all
    /// who need it at the same time.
    pub(crate) fn template(&self) -> Arc<TempDir> {
        static SHARED: Mutex<Weak<TempDir>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(template) = shared.upgrade() {
            return template;
        }
        let template = Arc::new(self.directory());
        let words = "-D data -U postgres -A trust -E UTF8 --locale=C --no-sync --wal-segsize=1";
        self.run("initdb", &words.split(' ').collect::<Vec<_>>(), template.path());
        *shared = Arc::downgrade(&template);
        template
    }
}

fn has_server(directory: &Path) -> bool {
    ["postgres", "initdb"].iter().all(|program| directory.join(program).exists())
}

fn on_path() -> Option<PathBuf> {
    env::split_paths(&env::var_os("PATH")?).find(|directory| has_server(directory))
}

fn newest() -> Option<PathBuf> {
    let of_a_kind = |(parent, prefix, bin): (&str, &str, &str)| {
        let entries = fs::read_dir(parent).into_iter().flatten().map_while(Result::ok);
        let versions = entries.filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            Some((name.strip_prefix(prefix)?.parse::<u32>().ok()?, entry.path().join(bin)))
        });
        versions.collect::<Vec<_>>()
    };
    let all = VERSIONS.into_iter().flat_map(of_a_kind).filter(|(_, directory)| has_server(directory));
    all.max().map(|(_, directory)| directory)
}

/// A number of a user: `-u` is that of itself, `-g` that of its group.
fn id(which: &str, user: &str) -> Option<u32> {
    let output = Command::new("id").args([which, user]).output().ok()?;
    String::from_utf8(output.stdout).ok()?.trim().parse().ok()
}
