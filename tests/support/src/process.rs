//! Copies of a test program that run beside it: ordered about line by line, frozen, killed, always gone in
//! the end.

use std::{
    env,
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, Command, Stdio},
    thread::{self, JoinHandle},
    time::Duration,
};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use crate::command;

/// Tells a process that it is a copy.
pub(crate) const MARK: &str = "INTERVAL_QUEUE_TEST_COPY";
/// How often it is looked whether a process has ended, and how long it may take: about a minute.
const PAUSE: Duration = Duration::from_millis(10);
const ATTEMPTS: u32 = 6_000;

/// A copy of this test program that runs one of its tests. It is killed when this is dropped.
///
/// The test asks first whether it [is a copy](Self::is_copy); if so it reads its orders from the standard
/// input, one a line, and ends with the input: then nobody is left who wants anything of it.
#[derive(Debug)]
pub struct Process {
    child: Child,
    orders: Option<ChildStdin>,
    reader: Option<JoinHandle<()>>,
}

impl Process {
    /// Whether this is a copy and not the test itself.
    pub fn is_copy() -> bool {
        env::var_os(MARK).is_some()
    }

    /// Starts a copy that runs the test of that name. Each line that it writes is handed to `heard`, on
    /// another thread.
    pub fn start(test: &str, heard: impl FnMut(&str) + Send + 'static) -> Self {
        Self::start_with(test, [], heard)
    }

    /// The same, with more environment variables.
    pub fn start_with(
        test: &str,
        variables: impl IntoIterator<Item = (String, String)>,
        heard: impl FnMut(&str) + Send + 'static,
    ) -> Self {
        let mut copy = command(env::current_exe().expect("the path of this program"));
        Self::of(copy.args(Self::words(test)).envs(variables), heard)
    }

    /// What a copy is told on its command line, to run the test of that name.
    pub fn words(test: &str) -> [&str; 4] {
        ["--exact", test, "--include-ignored", "--nocapture"]
    }

    /// Starts any program as a copy is started. A copy that it starts itself knows that it is one.
    pub fn of(program: &mut Command, mut heard: impl FnMut(&str) + Send + 'static) -> Self {
        program.env(MARK, "1").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = program.spawn().expect("start the program");
        let lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        let reader = thread::spawn(move || lines.map_while(Result::ok).for_each(|line| heard(&line)));
        let orders = child.stdin.take();
        Self { child, orders, reader: Some(reader) }
    }

    /// Sends it a line. One that has ended hears nothing, as what it has written will tell.
    pub fn tell(&mut self, order: &str) {
        if let Some(orders) = &mut self.orders {
            let _ = orders.write_all(format!("{order}\n").as_bytes());
        }
    }

    /// Stops it where it is, with SIGSTOP.
    pub fn freeze(&self) {
        freeze(&self.child);
    }

    /// Lets a frozen one go on.
    pub fn thaw(&self) {
        thaw(&self.child);
    }

    /// Ends it with SIGKILL. All that it had written has been heard then.
    pub fn kill(&mut self) {
        self.child.kill().expect("kill the process");
        self.child.wait().expect("wait for the process");
        self.hear_out();
    }

    /// Waits until it ends by itself. All that it had written has been heard then.
    ///
    /// # Panics
    ///
    /// If it does not end within a minute, or not well.
    pub fn wait(&mut self) {
        for _ in 0..ATTEMPTS {
            if let Some(status) = self.child.try_wait().expect("the state of the process") {
                self.hear_out();
                assert!(status.success(), "a copy of this program ended with {status}");
                return;
            }
            thread::sleep(PAUSE);
        }
        panic!("a copy of this program does not end");
    }

    fn hear_out(&mut self) {
        if let Some(reader) = self.reader.take() {
            assert!(reader.join().is_ok(), "what a copy of this program wrote could not be understood");
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends SIGSTOP to a child that has not been waited for, and waits until all its threads stand still.
pub(crate) fn freeze(child: &Child) {
    let pid = Pid::from_child(child);
    kill_process(pid, Signal::STOP).expect("send SIGSTOP");
    waitid(WaitId::Pid(pid), WaitIdOptions::STOPPED).expect("wait until it stands still");
}

/// Lets it go on.
pub(crate) fn thaw(child: &Child) {
    kill_process(Pid::from_child(child), Signal::CONT).expect("send SIGCONT");
}

#[cfg(test)]
mod tests {
    use std::{
        io::{self, Read},
        sync::mpsc,
    };

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(30);

    /// A copy repeats what it is told.
    fn echo() {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            io::stdout().write_all(format!("\nheard {line}\n").as_bytes()).unwrap();
        }
    }

    fn start(test: &str) -> (Process, mpsc::Receiver<String>) {
        let (sender, heard) = mpsc::channel();
        let process = Process::start(&format!("process::tests::{test}"), move |line| {
            if let Some(line) = line.strip_prefix("heard ") {
                sender.send(line.to_owned()).unwrap();
            }
        });
        (process, heard)
    }

    #[test]
    fn a_copy_hears_and_is_heard_and_freezes() {
        if Process::is_copy() {
            return echo();
        }
        let (mut process, heard) = start("a_copy_hears_and_is_heard_and_freezes");
        process.tell("one");
        assert_eq!(heard.recv_timeout(PATIENCE).unwrap(), "one");
        process.freeze();
        process.tell("two");
        assert!(heard.recv_timeout(Duration::from_millis(200)).is_err());
        process.thaw();
        assert_eq!(heard.recv_timeout(PATIENCE).unwrap(), "two");
        process.orders = None;
        process.wait();
    }

    #[test]
    fn a_copy_is_gone_when_it_is_dropped() {
        if Process::is_copy() {
            // Longer than the test waits, but not for good if the test fails.
            let _ = io::stdin().read(&mut [0]);
            thread::sleep(PATIENCE * 2);
            return;
        }
        let (process, heard) = start("a_copy_is_gone_when_it_is_dropped");
        process.freeze();
        drop(process);
        assert_eq!(heard.recv_timeout(PATIENCE), Err(mpsc::RecvTimeoutError::Disconnected));
    }
}
