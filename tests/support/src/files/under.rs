//! A test in a copy of its program that has other mounts or rights, so that nothing is left behind and no
//! real place is touched.

use std::{
    env,
    io::{self, Write},
    path::Path,
    process::{Command, Stdio},
};

use crate::{Process, process::MARK};

/// Mounts that nobody else sees and that go with the process; a user who may not mount becomes one who may
/// there.
pub const OWN_MOUNTS: [&str; 5] = ["unshare", "--map-root-user", "--user", "--mount", "--"];
/// The superuser without the power to pass over permissions.
pub const NO_POWERS: [&str; 3] = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--"];
/// A process of its own, no more.
pub const AS_IT_IS: [&str; 1] = ["env"];

/// Whether this is the copy that `wrapper` has started. If not, runs the test in one, or says aloud that this
/// host does not let it. Temporary directories of the copy are taken away with it.
pub fn is_copy_under(wrapper: &[&str], test: &str) -> bool {
    if Process::is_copy() {
        return true;
    }
    let start = || {
        let mut program = Command::new(wrapper[0]);
        program.args(&wrapper[1..]).stdin(Stdio::null());
        program
    };
    if !start().arg("true").stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
        skipped(test, &wrapper.join(" "));
        return false;
    }
    let directory = tempfile::tempdir().unwrap();
    let output = start()
        .arg(env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--include-ignored"])
        .env(MARK, "1")
        .env("TMPDIR", directory.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 passed"), "{said}{complained}");
    false
}

/// Says that a test was not run. Not `eprintln!`, which a passing test swallows.
pub fn skipped(test: &str, needs: &str) {
    let _ = writeln!(io::stderr(), "SKIPPED {test}: needs {needs}");
}

/// Mounts something.
pub fn mount(arguments: &[&str], target: &Path) {
    let status = Command::new("mount").args(arguments).arg(target).status().unwrap();
    assert!(status.success(), "mount {arguments:?} {}", target.display());
}

/// Takes a mount away.
pub fn unmount(target: &Path) {
    assert!(Command::new("umount").arg(target).status().unwrap().success());
}
