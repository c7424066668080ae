//! A host's clock that a test can set, for the processes that it starts, by the library `libfaketime`.

use std::{
    fs,
    path::{Path, PathBuf},
};

use tempfile::TempDir;

/// Where distributions put the library, below `/usr`.
const DIRECTORIES: [&str; 2] = ["lib", "lib64"];
const LIBRARY: &str = "faketime/libfaketimeMT.so.1";

/// What the clock of the host shows to some processes. Their monotonic clock is the true one.
#[derive(Debug)]
pub struct FakeClock {
    directory: TempDir,
    library: PathBuf,
}

impl FakeClock {
    /// A clock that is right.
    ///
    /// # Panics
    ///
    /// If the library is not installed.
    pub fn new() -> Self {
        let library =
            library().expect("the library libfaketime: install the package faketime or libfaketime");
        let clock = Self { directory: tempfile::tempdir().expect("a directory"), library };
        clock.set(0);
        clock
    }

    /// The environment variables that make a process read this clock.
    pub fn variables(&self) -> Vec<(String, String)> {
        let text = |path: &Path| path.display().to_string();
        [
            ("LD_PRELOAD", text(&self.library)),
            ("FAKETIME_TIMESTAMP_FILE", text(&self.file())),
            ("FAKETIME_NO_CACHE", "1".to_owned()),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .to_vec()
    }

    /// Sets it to so many microseconds after the true time, in one step.
    pub fn set(&self, ahead: i64) {
        let sign = if ahead < 0 { '-' } else { '+' };
        let (seconds, micros) = (ahead.unsigned_abs() / 1_000_000, ahead.unsigned_abs() % 1_000_000);
        // By rename, so that nobody reads half of it.
        let new = self.directory.path().join("new");
        fs::write(&new, format!("{sign}{seconds}.{micros:06}\n")).expect("write the time");
        fs::rename(new, self.file()).expect("put the time in its place");
    }

    fn file(&self) -> PathBuf {
        self.directory.path().join("time")
    }
}

impl Default for FakeClock {
    fn default() -> Self {
        Self::new()
    }
}

fn library() -> Option<PathBuf> {
    let here = DIRECTORIES.map(|directory| Path::new("/usr").join(directory));
    let below = here.iter().filter_map(|directory| fs::read_dir(directory).ok()).flatten();
    let below = below.map_while(Result::ok).map(|entry| entry.path());
    here.clone().into_iter().chain(below).map(|directory| directory.join(LIBRARY)).find(|path| path.exists())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn shown(clock: &FakeClock) -> i64 {
        let output = Command::new("date").arg("+%s").envs(clock.variables()).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().parse().unwrap()
    }

    #[test]
    #[ignore = "needs libfaketime: scripts/test runs it"]
    fn it_steps_forward_and_back() {
        let clock = FakeClock::new();
        let before = shown(&clock);
        clock.set(7_200_000_000);
        let ahead = shown(&clock);
        assert!(ahead - before >= 7_200 && ahead - before < 7_260, "{ahead} after {before}");
        clock.set(-3_600_500_000);
        let behind = shown(&clock);
        assert!(before - behind > 3_500 && before - behind <= 3_601, "{behind} after {before}");
    }
}
