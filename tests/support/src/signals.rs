//! Processes that take signals as by default, however this one was started.

use std::{
    ffi::OsStr,
    fs,
    process::{self, Command},
    sync::{Arc, Once, atomic::AtomicBool},
};

use signal_hook::{consts::FORBIDDEN, flag};

/// A command for a process that a test may signal.
///
/// Whoever is started by `nohup`, with `&` or by some runners is told to ignore signals, hands that down, and
/// then a process that keeps to it does not hear the test.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    static ONCE: Once = Once::new();
    // A signal that is handled is as by default in a new program, one that is ignored stays so. The handler
    // does nothing: this process goes on ignoring it.
    ONCE.call_once(|| {
        let ignored = ignored();
        let is_ignored = |signal: &i32| ignored & (1 << (signal - 1)) != 0;
        for signal in (1..32).filter(|signal| is_ignored(signal) && !FORBIDDEN.contains(signal)) {
            flag::register(signal, Arc::new(AtomicBool::new(false))).expect("handle a signal");
        }
    });
    Command::new(program)
}

/// The signals that this process ignores, as a mask.
fn ignored() -> u64 {
    let status = fs::read_to_string("/proc/self/status");
    let mask = match &status {
        Ok(status) => status.lines().find_map(|line| line.strip_prefix("SigIgn:")).map(str::to_owned),
        Err(_) => {
            let this = process::id().to_string();
            let output = Command::new("ps").args(["-o", "ignored=", "-p", &this]).output().ok();
            output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
        }
    };
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::{env, os::unix::process::ExitStatusExt};

    use super::*;

    const MARK: &str = "INTERVAL_QUEUE_TEST_IGNORES";

    fn script(script: &str) -> Command {
        let mut command = command("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_process_hears_signals_that_this_one_was_told_to_ignore() {
        const NAME: &str = "signals::tests::a_process_hears_signals_that_this_one_was_told_to_ignore";
        if env::var_os(MARK).is_none() {
            let mut copy = script("trap '' HUP INT TERM USR1 CHLD; exec \"$0\" --exact \"$1\" --nocapture");
            let output = copy.arg(env::current_exe().unwrap()).arg(NAME).env(MARK, "1").output().unwrap();
            assert!(output.status.success(), "{output:?}");
            return;
        }
        for (name, number) in [("HUP", 1), ("INT", 2), ("TERM", 15)] {
            let status = script(&format!("kill -s {name} $$")).status().unwrap();
            assert_eq!(status.signal(), Some(number), "{name}");
            // This one goes on ignoring it.
            assert!(script(&format!("kill -s {name} $PPID")).status().unwrap().success());
        }
    }
}
